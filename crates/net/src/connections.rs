//! When a machine is asked whether its TCP connections serve anything.

use byway_wire::{Duration, Instant, Local};
use std::collections::BTreeMap;

/// Time for which a connection may be unused. A handshake over it takes a few round trips.
const UNUSED_TIMEOUT: Duration = Duration::from_secs(10);

/// TCP connections by number.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    /// When the machine is asked next whether each serves anything.
    open: BTreeMap<Local, Instant>,
    ask_at: Option<Instant>,
}

impl Connections {
    /// Enters that a connection was opened.
    pub(crate) fn opened(&mut self, local: Local, now: Instant) {
        self.open.insert(local, now + UNUSED_TIMEOUT);
        self.ask_at = Some(self.ask_at.map_or(now + UNUSED_TIMEOUT, |at| at.min(now + UNUSED_TIMEOUT)));
    }

    /// Enters that a connection is over.
    pub(crate) fn closed(&mut self, local: Local) {
        self.open.remove(&local);
    }

    /// When [`next_to_ask`](Self::next_to_ask) may return a connection.
    pub(crate) const fn ask_at(&self) -> Option<Instant> {
        self.ask_at
    }

    /// Returns the next connection to ask the machine about: whether it is still useful.
    pub(crate) fn next_to_ask(&mut self, now: Instant) -> Option<Local> {
        if self.ask_at.is_none_or(|at| at > now) {
            return None;
        }
        let due = self.open.iter_mut().find(|(_, at)| **at <= now);
        if let Some((local, at)) = due {
            *at = now + UNUSED_TIMEOUT;
            return Some(*local);
        }
        self.ask_at = self.open.values().min().copied();
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_asked_about_once_per_while() {
        let at = Instant::from_millis;
        let mut connections = Connections::default();
        connections.opened(Local(3), at(0));
        connections.opened(Local(5), at(4_000));
        assert_eq!((connections.ask_at(), connections.next_to_ask(at(9_999))), (Some(at(10_000)), None));
        assert_eq!(connections.next_to_ask(at(10_000)), Some(Local(3)));
        assert_eq!((connections.next_to_ask(at(10_000)), connections.ask_at()), (None, Some(at(14_000))));
        connections.closed(Local(5));
        assert_eq!((connections.next_to_ask(at(14_000)), connections.ask_at()), (None, Some(at(20_000))));
        connections.closed(Local(3));
        assert_eq!((connections.next_to_ask(at(20_000)), connections.ask_at()), (None, None));
    }
}
