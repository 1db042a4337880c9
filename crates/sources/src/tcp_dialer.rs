//! TCP connections that a source keeps: to the sink and to its relays.

use byway_net::{Carrier, Dialing, Ready, TcpCarrier, Token, Watch};
use byway_wire::{Duration, Instant};
use std::net::SocketAddr;

/// An address may take so long to answer a SYN.
const ANSWER: Duration = Duration::from_secs(5);
/// An address is dialled again so much later, and ever later.
const AGAIN: Duration = Duration::from_millis(500);
const AGAIN_AT_MOST: Duration = Duration::from_secs(5);
/// How often it is looked which connections there are.
const LOOK: Duration = Duration::from_millis(50);

/// Dials addresses until a connection leads to each.
pub struct TcpDialer {
    watch: Watch,
    all: Vec<DialledAddress>,
    look_at: Instant,
    opened: Vec<TcpCarrier>,
}

struct DialledAddress {
    address: SocketAddr,
    under_way: Option<(Dialing, Instant)>,
    next_at: Instant,
    failures: u32,
}

impl TcpDialer {
    pub fn new(watch: &Watch, addresses: impl Iterator<Item = SocketAddr>) -> Self {
        let dialled =
            |address| DialledAddress { address, under_way: None, next_at: Instant::ZERO, failures: 0 };
        Self {
            watch: watch.clone(),
            all: addresses.map(dialled).collect(),
            look_at: Instant::ZERO,
            opened: Vec::new(),
        }
    }

    /// Dials where no connection leads.
    pub fn look(&mut self, now: Instant, leads_to: impl Fn(SocketAddr) -> bool) {
        if now < self.look_at {
            return;
        }
        self.look_at = now + LOOK;
        for (dialled, number) in self.all.iter_mut().zip(0..) {
            if leads_to(dialled.address) {
                (dialled.under_way, dialled.failures) = (None, 0);
                continue;
            }
            // Closed, it is watched no more.
            dialled.under_way.take_if(|(_, until)| *until <= now);
            if dialled.under_way.is_some() || now < dialled.next_at {
                continue;
            }
            dialled.next_at = now + (AGAIN * (1 << dialled.failures.min(5))).min(AGAIN_AT_MOST);
            dialled.failures += 1;
            let Ok(dialing) = Dialing::begin(dialled.address, None) else { continue };
            if self.watch.add(&dialing, Token(number)).is_ok() {
                dialled.under_way = Some((dialing, now + ANSWER));
            }
        }
    }

    /// Takes in that a descriptor is ready.
    pub fn ready(&mut self, ready: Ready) {
        let at = usize::try_from(ready.token.0).ok();
        let Some(dialled) = at.and_then(|at| self.all.get_mut(at)) else { return };
        if let Some((dialing, _)) = dialled.under_way.take_if(|_| ready.writable) {
            let _ = self.watch.remove(&dialing);
            self.opened.extend(dialing.finish().ok());
        }
    }

    /// Connections for the driver.
    pub fn opened(&mut self) -> Vec<Carrier> {
        self.opened.drain(..).map(Carrier::from).collect()
    }
}
