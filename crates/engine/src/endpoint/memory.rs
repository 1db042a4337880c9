//! How the sessions of an endpoint share the memory for received data
//! ([`Config::shared_memory`](crate::Config::shared_memory)). A flow-control window promises memory
//! to the peer, and a promise cannot be taken back. So its limit moves only as the application
//! takes data.

use super::{ConnectionSlot, Endpoint};
use alloc::vec::Vec;
use byway_wire::fair_share::may_take;

/// A session's share of the memory, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MemoryShare {
    /// Bytes that the peer may send, or has sent, and that the owner has not taken.
    pub granted: u64,
    /// Bytes that the session has a use for.
    pub wanted: u64,
}

/// The largest window in bytes that every session may be granted now, if it wants as much. `total`:
/// bytes for the windows of all sessions, and for the window of one new session. Sessions with
/// larger windows keep them.
pub(super) fn level(total: u64, shares: &[MemoryShare]) -> u64 {
    let used = |level: u64| {
        let each = shares.iter().map(|share| share.granted.max(share.wanted.min(level)));
        each.fold(level, u64::saturating_add)
    };
    let (mut low, mut high) = (0, total);
    while low < high {
        let middle = high - (high - low) / 2;
        if used(middle) <= total {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    low
}

impl Endpoint {
    /// Returns the most sessions that may be confirmed. Their smallest windows together take at
    /// most half of the memory.
    fn most_sessions(&self) -> usize {
        let shared = self.config.shared_memory.zip(self.config.least_window());
        shared.map_or(usize::MAX, |(shared, least)| (shared / 2 / least.max(1) as usize).max(1))
    }

    /// Whether there is no memory for another session.
    pub(super) fn is_full(&self) -> bool {
        self.confirmed >= self.most_sessions()
    }

    /// Whether a peer that has `own` sessions may have another: one peer takes half of the places
    /// at most. A second session it may always have, because it may have lost the first.
    pub(super) fn may_have_another(&self, own: usize) -> bool {
        own < 2 || may_take(own, self.most_sessions().saturating_sub(self.confirmed))
    }

    /// Sets the windows of all sessions again, after a session came, went, or wants more memory.
    pub(super) fn share_memory(&mut self) {
        let Some((shared, least)) = self.config.shared_memory.zip(self.config.least_window()) else { return };
        let mut sessions = Vec::new();
        for (handle, entry) in &mut self.entries {
            if let ConnectionSlot::Connection { connection, .. } = &mut entry.slot
                && connection.is_confirmed()
            {
                let (granted, wanted) = connection.incoming().share();
                sessions.push((*handle, MemoryShare { granted, wanted }));
            }
        }
        let shares: Vec<MemoryShare> = sessions.iter().map(|(_, share)| *share).collect();
        let level = level(shared as u64 / 2, &shares);
        for (handle, share) in sessions {
            let Some(ConnectionSlot::Connection { connection, .. }) =
                self.entries.get_mut(&handle).map(|entry| &mut entry.slot)
            else {
                continue;
            };
            connection.incoming().set_window(share.wanted.min(level).max(least));
            if connection.incoming().wants_to_send() {
                self.touch(handle);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn share(granted: u64, wanted: u64) -> MemoryShare {
        MemoryShare { granted, wanted }
    }

    fn sum(level: u64, shares: &[MemoryShare]) -> u64 {
        shares.iter().map(|share| share.granted.max(share.wanted.min(level))).sum()
    }

    #[test]
    fn one_has_half_and_each_of_many_as_much_as_is_left() {
        assert_eq!(level(64 * MIB, &[]), 64 * MIB);
        assert_eq!(level(64 * MIB, &[share(0, 1000 * MIB)]), 32 * MIB);
        let three = [share(0, 1000 * MIB), share(16 * MIB, 1000 * MIB), share(3, 1000 * MIB)];
        assert_eq!(level(64 * MIB, &three), 16 * MIB);
        // Who wants little leaves the rest to the others.
        let modest = [share(0, 4 * MIB), share(0, 1000 * MIB)];
        assert_eq!(level(64 * MIB, &modest), 30 * MIB);
    }

    #[test]
    fn who_has_least_comes_first_and_nothing_is_taken_back() {
        let unequal = [share(40 * MIB, 40 * MIB), share(0, 1000 * MIB), share(2 * MIB, 1000 * MIB)];
        assert_eq!(level(64 * MIB, &unequal), 8 * MIB);
        let full = [share(50 * MIB, 50 * MIB), share(14 * MIB, 50 * MIB), share(0, 50 * MIB)];
        assert_eq!(level(64 * MIB, &full), 0);
        assert_eq!(level(10, &[share(u64::MAX, u64::MAX), share(u64::MAX, 0)]), 0);
    }

    /// Whatever sessions come and take, their grants together stay within the total.
    #[test]
    fn what_is_granted_in_all_stays_within_the_total() {
        let mut random = crate::random::Random::new([3; 32]);
        let mut shares: Vec<MemoryShare> = Vec::new();
        for _ in 0..20_000 {
            match random.below(4) {
                0 if shares.len() < 50 => shares.push(share(0, random.below(40 * MIB))),
                1 if !shares.is_empty() => {
                    let gone = random.below(shares.len() as u64) as usize;
                    shares.swap_remove(gone);
                }
                _ => {
                    for share in &mut shares {
                        share.granted -= random.below(share.granted / 4 + 1);
                        share.wanted = (share.wanted + random.below(MIB)).min(40 * MIB);
                    }
                }
            }
            let level = level(64 * MIB, &shares);
            assert!(sum(level, &shares) + level <= 64 * MIB);
            // No byte more would have been possible.
            assert!(sum(level + 1, &shares) + level + 1 > 64 * MIB);
            for share in &mut shares {
                share.granted = share.granted.max(share.wanted.min(level));
            }
        }
    }
}
