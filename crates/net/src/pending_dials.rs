//! TCP connections that a machine asked for and that are being opened.

use crate::tcp::Dialing;
use byway_wire::{Duration, Instant};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// TCP connections that are being established, by number.
#[derive(Debug, Default)]
pub(crate) struct PendingDials {
    under_way: BTreeMap<u32, (Dialing, Instant)>,
    next: u32,
}

impl PendingDials {
    /// Starts to establish a connection. `None`: the system refuses.
    pub(crate) fn dial(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        patience: Duration,
    ) -> Option<(u32, &Dialing)> {
        let dialing = Dialing::begin(peer, None).ok()?;
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        let (dialing, _) = self.under_way.entry(number).or_insert((dialing, now + patience));
        Some((number, dialing))
    }

    /// Removes a connection that is established or has failed.
    pub(crate) fn done(&mut self, number: u32) -> Option<Dialing> {
        self.under_way.remove(&number).map(|(dialing, _)| dialing)
    }

    /// When [`next_over`](Self::next_over) may return an address.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.under_way.values().map(|(_, until)| *until).min()
    }

    /// Removes a connection that took too long. Returns its remote address.
    pub(crate) fn next_over(&mut self, now: Instant) -> Option<SocketAddr> {
        let number =
            self.under_way.iter().find(|(_, (_, until))| *until <= now).map(|(number, _)| *number)?;
        self.under_way.remove(&number).map(|(dialing, _)| dialing.peer())
    }
}
