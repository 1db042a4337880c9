//! Decides whose place a new session takes if there are too many, so that no network keeps the
//! others out.

use alloc::collections::{BTreeMap, BTreeSet};
use byway_wire::NetworkPrefix;
use core::cmp::Reverse;

/// Sessions at once.
pub(super) const MAX_SESSIONS: usize = 2_048;
/// The most sessions of one network at once.
const MAX_SESSIONS_OF_NETWORK: usize = MAX_SESSIONS / 8;

/// The sessions of one network.
#[derive(Debug)]
struct Holding<H> {
    sessions: usize,
    /// Idle sessions, the longest idle first.
    idle: BTreeSet<(u64, H)>,
}

/// The places of sessions. A session is *idle* while its client has to say something, and *busy*
/// while the registry has to answer.
#[derive(Debug)]
pub(super) struct SessionPlaces<H> {
    /// The network of each session. If the session is idle, also when it became idle.
    sessions: BTreeMap<H, (NetworkPrefix, Option<u64>)>,
    networks: BTreeMap<NetworkPrefix, Holding<H>>,
    /// Counts events, so that idle sessions are ordered.
    clock: u64,
}

impl<H> Default for SessionPlaces<H> {
    fn default() -> Self {
        Self { sessions: BTreeMap::new(), networks: BTreeMap::new(), clock: 0 }
    }
}

impl<H: Copy + Ord> SessionPlaces<H> {
    /// Gives a new session, which is idle, a place. If there are too many, returns the one that has
    /// to go: it is idle longest in its network. That is the new session's network if this has its
    /// share, else one of those that hold most. It can be the new session.
    pub fn enter(&mut self, handle: H, network: NetworkPrefix) -> Option<H> {
        self.sessions.insert(handle, (network, None));
        let holding = self.networks.entry(network).or_insert(Holding { sessions: 0, idle: BTreeSet::new() });
        holding.sessions += 1;
        let crowded = holding.sessions > MAX_SESSIONS_OF_NETWORK;
        self.set_idle(handle);
        let from = if crowded {
            self.networks.get(&network)
        } else if self.sessions.len() > MAX_SESSIONS {
            let idle = self.networks.values().filter(|it| !it.idle.is_empty());
            idle.max_by_key(|it| (it.sessions, it.idle.first().map(|(since, _)| Reverse(*since))))
        } else {
            None
        };
        let (_, leaves) = *from?.idle.first()?;
        self.leave(leaves);
        Some(leaves)
    }

    /// Removes a session that has ended.
    pub fn leave(&mut self, handle: H) {
        self.set_busy(handle);
        let Some((network, _)) = self.sessions.remove(&handle) else { return };
        if let Some(holding) = self.networks.get_mut(&network) {
            holding.sessions = holding.sessions.saturating_sub(1);
            if holding.sessions == 0 {
                self.networks.remove(&network);
            }
        }
    }

    /// A session's client waits for an answer.
    pub fn set_busy(&mut self, handle: H) {
        let Some((network, idle)) = self.sessions.get_mut(&handle) else { return };
        if let (Some(since), Some(holding)) = (idle.take(), self.networks.get_mut(network)) {
            holding.idle.remove(&(since, handle));
        }
    }

    /// Marks a session as idle, because its client has its answer.
    pub fn set_idle(&mut self, handle: H) {
        self.set_busy(handle);
        let Some((network, idle)) = self.sessions.get_mut(&handle) else { return };
        self.clock += 1;
        *idle = Some(self.clock);
        if let Some(holding) = self.networks.get_mut(network) {
            holding.idle.insert((self.clock, handle));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;
    use std::vec::Vec;

    fn network(number: u8) -> NetworkPrefix {
        NetworkPrefix::of(IpAddr::from([10, 0, number, 1]))
    }

    #[test]
    fn a_network_has_an_eighth_and_its_own_session_that_is_idle_longest_goes_first() {
        let mut places = SessionPlaces::default();
        let of = |number: usize| number as u32;
        assert!((0..MAX_SESSIONS_OF_NETWORK).all(|it| places.enter(of(it), network(1)).is_none()));
        // The client of the first waits for the registry, and the second has just had an answer.
        places.set_busy(0);
        places.set_busy(1);
        places.set_idle(1);
        assert_eq!(places.enter(9_000, network(2)), None);
        assert_eq!(places.enter(9_001, network(1)), Some(2));
        (3..of(MAX_SESSIONS_OF_NETWORK)).chain([1, 9_001]).for_each(|it| places.set_busy(it));
        assert_eq!(places.enter(9_002, network(1)), Some(9_002), "all others wait for the registry");
        places.leave(5);
        assert_eq!(places.enter(9_003, network(1)), None);
    }

    /// A site with an IPv6 /44 has so many networks, as has a crowd of hosts that were broken into.
    #[test]
    fn where_each_network_has_one_session_the_one_that_is_idle_longest_goes() {
        for newcomer in ["0.0.1.1", "10.4.0.1", "250.0.0.1", "2001:db8::1", "fd00::1"] {
            let mut places = SessionPlaces::default();
            let site = |number: usize| {
                let [high, low] = (number as u16).to_be_bytes();
                NetworkPrefix::of(IpAddr::from([0x20, 1, 0xd, 0xb8, 1, high, low, 0, 0, 0, 0, 0, 0, 0, 0, 1]))
            };
            assert!((0..MAX_SESSIONS).all(|it| places.enter(it, site(it)).is_none()));
            let honest = NetworkPrefix::of(newcomer.parse().unwrap());
            assert_eq!(places.enter(10_000, honest), Some(0), "{newcomer}");
            // Hundreds come before its request has.
            for more in 0..500 {
                assert_eq!(places.enter(20_000 + more, site(3_000 + more)), Some(1 + more), "{newcomer}");
            }
            assert!(places.sessions.contains_key(&10_000));
        }
    }

    #[test]
    fn where_all_places_are_taken_the_network_with_most_sessions_gives_one_up() {
        let mut places = SessionPlaces::default();
        let mut next = 0..;
        let mut enter = |places: &mut SessionPlaces<u32>, from: u8| {
            let handle = next.next().unwrap();
            (handle, places.enter(handle, network(from)))
        };
        let modest: Vec<u32> = (0..100).map(|_| enter(&mut places, 0).0).collect();
        while places.sessions.len() < MAX_SESSIONS {
            for from in 1..=8 {
                enter(&mut places, from);
            }
        }
        for from in 20..120 {
            let (_, dismissed) = enter(&mut places, from);
            let dismissed = dismissed.expect("one has to go");
            assert!(!modest.contains(&dismissed), "the networks with most hold 243");
        }
        assert_eq!(places.sessions.len(), MAX_SESSIONS);
        (0..10_000).for_each(|handle| places.leave(handle));
        assert!(places.sessions.is_empty() && places.networks.is_empty());
    }
}
