//! Which sender may have another connection to a target: none takes the places of all others.

use crate::name_lookup_queue::Sender;
use byway_wire::fair_share::may_take;
use std::collections::BTreeMap;

/// The sessions and connections of one sender.
#[derive(Debug, Default)]
struct Share {
    sessions: usize,
    connections: usize,
}

/// The places for connections, and how many of them each sender has.
#[derive(Debug)]
pub(crate) struct ConnectionShares {
    /// Connections at most.
    most: usize,
    connections: usize,
    senders: BTreeMap<Sender, Share>,
}

impl ConnectionShares {
    /// Makes `most` free places.
    pub const fn new(most: usize) -> Self {
        Self { most, connections: 0, senders: BTreeMap::new() }
    }

    /// The number of connections of all senders.
    pub const fn len(&self) -> usize {
        self.connections
    }

    /// Notes that a session of this sender began.
    pub fn join(&mut self, sender: Sender) {
        self.senders.entry(sender).or_default().sessions += 1;
    }

    /// Notes that a session of this sender ended, with this number of connections still open.
    pub fn leave(&mut self, sender: Sender, connections: usize) {
        (0..connections).for_each(|_| self.give_back(sender));
        if let Some(share) = self.senders.get_mut(&sender) {
            share.sessions = share.sessions.saturating_sub(1);
            if share.sessions == 0 {
                self.senders.remove(&sender);
            }
        }
    }

    /// Takes a place for a connection of this sender, if it may have one. A sender has at most as
    /// many as are free. A place is kept for each sender with a session that has no connection.
    pub fn take(&mut self, sender: Sender) -> bool {
        let free = self.most.saturating_sub(self.connections);
        let kept = self.senders.values().filter(|share| share.connections == 0).count();
        let Some(share) = self.senders.get_mut(&sender) else { return false };
        let held = share.connections;
        let may = may_take(held, free) && (held == 0 || kept < free);
        if may {
            share.connections += 1;
            self.connections += 1;
        }
        may
    }

    /// Notes that a connection of this sender ended, and frees its place.
    pub fn give_back(&mut self, sender: Sender) {
        if let Some(share) = self.senders.get_mut(&sender)
            && share.connections > 0
        {
            share.connections -= 1;
            self.connections -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of places that this sender gets now.
    fn take_all(shares: &mut ConnectionShares, sender: u8) -> usize {
        std::iter::from_fn(|| shares.take([sender; 32]).then_some(())).count()
    }

    #[test]
    fn one_sender_takes_half_and_who_comes_later_half_of_the_rest() {
        let mut shares = ConnectionShares::new(512);
        // It has two sessions, which is no reason for more.
        shares.join([1; 32]);
        shares.join([1; 32]);
        assert_eq!(take_all(&mut shares, 1), 256);
        shares.join([2; 32]);
        assert_eq!(take_all(&mut shares, 2), 128);
        assert_eq!(take_all(&mut shares, 9), 0, "it has no session");
        shares.leave([1; 32], 156);
        assert_eq!(take_all(&mut shares, 2), 78, "it has 206, and 206 are free");
        shares.leave([1; 32], 100);
        shares.leave([2; 32], 206);
        assert!(shares.senders.is_empty() && shares.len() == 0);
    }

    #[test]
    fn a_place_is_kept_for_each_sender_that_has_none() {
        let mut shares = ConnectionShares::new(6);
        (0..4).for_each(|sender| shares.join([sender; 32]));
        assert_eq!(take_all(&mut shares, 0), 3);
        for sender in 1..4 {
            assert_eq!(take_all(&mut shares, sender), 1, "{sender}");
        }
    }
}
