//! Connections whose peer has yet to show that it is no replay: who gets a place, and whose, where
//! there are too many.

use super::handle::Handle;
use alloc::vec::Vec;
use byway_wire::NetworkPrefix;

/// The most peers that may wait at once.
const MAX_PEERS: usize = 1024;
/// Places of one network.
const MAX_NETWORK_PEERS: usize = 64;

/// The standing of a peer with this host, from its first message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PeerPriority {
    /// The owner refuses the peer. The peer has a place so that the refusal can be sent to it.
    Refused,
    /// The owner accepts the peer.
    Welcome,
    /// The owner wants the peer, which has a confirmed connection already.
    Known,
}

/// A connection that waits.
#[derive(Clone, Copy, Debug)]
struct UnconfirmedPeer {
    handle: Handle,
    network: NetworkPrefix,
    standing: PeerPriority,
}

/// The decision about a new peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NewcomerDecision {
    /// The newcomer has a place.
    Room,
    /// The newcomer takes the place of this connection, which is to be removed.
    Instead(Handle),
    /// No place is free.
    Full,
}

/// Connections whose peers have yet to prove that their HELLO is no replay.
#[derive(Debug, Default)]
pub(super) struct UnconfirmedPeers(Vec<UnconfirmedPeer>);

impl UnconfirmedPeers {
    pub(super) const fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn insert(&mut self, handle: Handle, network: NetworkPrefix, standing: PeerPriority) {
        self.0.push(UnconfirmedPeer { handle, network, standing });
    }

    /// Removes a connection, if it is waiting.
    pub(super) fn remove(&mut self, handle: Handle) {
        if let Some(at) = self.0.iter().position(|place| place.handle == handle) {
            self.0.swap_remove(at);
        }
    }

    /// Decides whether a new peer gets a place. If all places are taken, or all places of the
    /// peer's network, the peer may replace a random connection among those of the lowest priority.
    /// `below(n)` draws a random number below n.
    pub(super) fn judge(
        &self,
        network: NetworkPrefix,
        standing: PeerPriority,
        below: impl FnOnce(u64) -> u64,
    ) -> NewcomerDecision {
        let neighbours = self.0.iter().filter(|place| place.network == network).count();
        let crowded = neighbours >= MAX_NETWORK_PEERS;
        if !crowded && self.0.len() < MAX_PEERS {
            return NewcomerDecision::Room;
        }
        let rivals = || self.0.iter().filter(|place| !crowded || place.network == network);
        let Some(lowest) = rivals().map(|place| place.standing).min().filter(|lowest| *lowest <= standing)
        else {
            return NewcomerDecision::Full;
        };
        let count = rivals().filter(|place| place.standing == lowest).count();
        let chosen = below(count as u64) as usize;
        let chosen = rivals().filter(|place| place.standing == lowest).nth(chosen);
        chosen.map_or(NewcomerDecision::Full, |place| NewcomerDecision::Instead(place.handle))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use core::net::IpAddr;

    struct Hall {
        waiting: UnconfirmedPeers,
        random: Random,
        next: u32,
    }

    impl Hall {
        fn new() -> Self {
            Self { waiting: UnconfirmedPeers::default(), random: Random::new([1; 32]), next: 0 }
        }

        fn enter(&mut self, network: NetworkPrefix, standing: PeerPriority) -> (Handle, NewcomerDecision) {
            let verdict = self.waiting.judge(network, standing, |most| self.random.below(most));
            let handle = Handle::new(self.next);
            self.next += 1;
            if let NewcomerDecision::Instead(handle) = verdict {
                self.waiting.remove(handle);
            }
            if verdict != NewcomerDecision::Full {
                self.waiting.insert(handle, network, standing);
            }
            (handle, verdict)
        }

        fn waits(&self, handle: Handle) -> bool {
            self.waiting.0.iter().any(|place| place.handle == handle)
        }
    }

    fn network(number: u32) -> NetworkPrefix {
        NetworkPrefix::of(IpAddr::from((number << 8).to_be_bytes()))
    }

    #[test]
    fn a_network_fills_its_own_places_and_no_more() {
        let mut hall = Hall::new();
        for _ in 0..10_000 {
            hall.enter(network(1), PeerPriority::Welcome);
        }
        assert_eq!(hall.waiting.len(), MAX_NETWORK_PEERS);
        let (other, verdict) = hall.enter(network(2), PeerPriority::Refused);
        assert_eq!(verdict, NewcomerDecision::Room);
        for _ in 0..10_000 {
            hall.enter(network(1), PeerPriority::Known);
        }
        assert!(hall.waits(other));
    }

    #[test]
    fn who_is_welcome_replaces_who_is_not_and_never_the_other_way_round() {
        let mut hall = Hall::new();
        for _ in 0..100 {
            hall.enter(network(1), PeerPriority::Refused);
        }
        let (welcome, _) = hall.enter(network(1), PeerPriority::Welcome);
        for _ in 0..10_000 {
            hall.enter(network(1), PeerPriority::Refused);
        }
        assert!(hall.waits(welcome));
        for _ in 0..MAX_NETWORK_PEERS {
            assert_ne!(hall.enter(network(1), PeerPriority::Known).1, NewcomerDecision::Full);
        }
        assert!(!hall.waits(welcome));
        assert_eq!(hall.enter(network(1), PeerPriority::Welcome).1, NewcomerDecision::Full);
    }

    #[test]
    fn with_all_places_taken_a_newcomer_stays_for_long_enough() {
        let mut hall = Hall::new();
        for number in 0..10_000 {
            hall.enter(network(number % 500), PeerPriority::Welcome);
        }
        assert_eq!(hall.waiting.len(), MAX_PEERS);
        // Forty come while its answer is under way, at 200 a second.
        let mut stayed = 0;
        for number in 0..1_000 {
            let (newcomer, _) = hall.enter(network(1_000 + number), PeerPriority::Welcome);
            for other in 0..40 {
                hall.enter(network(other), PeerPriority::Welcome);
            }
            stayed += u32::from(hall.waits(newcomer));
        }
        assert!(stayed > 940, "{stayed} of 1000");
    }
}
