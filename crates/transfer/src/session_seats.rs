//! Decides who gets a place among the sessions of a receiver or a sink, where one network may want
//! all of them.

use byway_engine::{Endpoint, Handle};
use byway_wire::fair_share::may_take;
use byway_wire::{Instant, NetworkPrefix};
use std::cmp::Reverse;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A session that has a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seat<K> {
    /// The session that has the seat.
    pub session: K,
    /// The network of the session's peer. `None`: it is on this host.
    pub network: Option<NetworkPrefix>,
    /// Whether the peer has not sent its request yet.
    pub is_silent: bool,
    /// When the session began.
    pub came_at: Instant,
}

/// Whether a new session gets a seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeatDecision<K> {
    /// There is a place.
    Free,
    /// The new session gets a seat if this one ends.
    InPlaceOf(K),
    /// There is none.
    Full,
}

/// Whether a newcomer from `network` gets one of `most` places, of which `seats` are taken. One
/// network takes a place only while it has fewer than are free. A silent session makes place for a
/// newcomer: the oldest of its own network, or in a full table of the network that has most.
#[must_use]
pub fn seat<K: Copy>(seats: &[Seat<K>], network: Option<NetworkPrefix>, most: usize) -> SeatDecision<K> {
    let taken_by = |network| seats.iter().filter(|seat| seat.network == network).count();
    let free = most.saturating_sub(seats.len());
    let own = network.map_or(0, |_| taken_by(network));
    if may_take(own, free) {
        return SeatDecision::Free;
    }
    let silent = seats.iter().filter(|seat| seat.is_silent && (own == 0 || seat.network == network));
    let oldest = silent.max_by_key(|seat| (taken_by(seat.network), Reverse(seat.came_at)));
    oldest.map_or(SeatDecision::Full, |seat| SeatDecision::InPlaceOf(seat.session))
}

/// The network of a session's peer. `None`: it is on this host.
#[must_use]
pub fn network_of(endpoint: &Endpoint, session: Handle) -> Option<NetworkPrefix> {
    let own = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)].map(NetworkPrefix::of);
    endpoint.network_of(session).filter(|network| !own.contains(network))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(number: u8) -> Option<NetworkPrefix> {
        Some(NetworkPrefix::of(IpAddr::from([198, 51, number, 7])))
    }

    /// A table of 16 places, and sessions of networks that came one after another.
    #[derive(Default)]
    struct Table(Vec<Seat<u64>>, u64);

    impl Table {
        fn come(&mut self, from: Option<NetworkPrefix>, is_silent: bool) -> SeatDecision<u64> {
            let decision = seat(&self.0, from, 16);
            if let SeatDecision::InPlaceOf(session) = decision {
                self.0.retain(|seat| seat.session != session);
            }
            if decision != SeatDecision::Full {
                self.1 += 1;
                let came_at = Instant::from_millis(self.1);
                self.0.push(Seat { session: self.1, network: from, is_silent, came_at });
            }
            decision
        }

        fn of(&self, number: u8) -> usize {
            self.0.iter().filter(|seat| seat.network == network(number)).count()
        }
    }

    #[test]
    fn no_network_takes_more_than_half_of_the_places() {
        for is_silent in [false, true] {
            let mut table = Table::default();
            (0..100).for_each(|_| _ = table.come(network(1), is_silent));
            assert_eq!(table.of(1), 8);
            (0..100).for_each(|_| _ = table.come(network(2), is_silent));
            assert_eq!((table.of(1), table.of(2)), (8, 4));
            assert_eq!(table.come(network(3), false), SeatDecision::Free);
        }
    }

    #[test]
    fn who_says_nothing_makes_place_and_who_speaks_keeps_it() {
        let mut table = Table::default();
        (0..3).for_each(|_| _ = table.come(None, false));
        (1..=13).for_each(|number| _ = table.come(network(number), number < 4));
        assert_eq!(table.0.len(), 16);
        // The oldest silent one, as no network has more than another.
        assert_eq!(table.come(network(20), false), SeatDecision::InPlaceOf(4));
        assert_eq!(table.come(None, false), SeatDecision::InPlaceOf(5));
        // One of the newcomer's own network, where that has some.
        assert_eq!(table.come(network(3), false), SeatDecision::InPlaceOf(6));
        // Those that speak are never sent away.
        assert_eq!(table.come(network(21), false), SeatDecision::Full);
        assert_eq!(table.come(network(13), false), SeatDecision::Full);
    }

    #[test]
    fn this_host_may_have_all_places() {
        let mut table = Table::default();
        (0..16).for_each(|_| assert_eq!(table.come(None, false), SeatDecision::Free));
        assert_eq!(table.come(network(1), false), SeatDecision::Full);
    }
}
