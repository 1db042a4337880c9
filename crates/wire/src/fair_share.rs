//! Places that several parties share: nobody takes them all, however fast he asks.

/// Whether a party that holds `held` places may take another while `free` are free: only as long as
/// it holds fewer than are left. One party alone gets half of the places. With `n` that want all
/// they can get, each gets one part of `n + 1`, and one part stays free for the next who comes. No
/// place need be taken back (Choudhury and Hahne, "Dynamic Queue Length Thresholds for
/// Shared-Memory Packet Switches", IEEE/ACM Transactions on Networking 6(2), 1998).
#[must_use]
pub const fn may_take(held: usize, free: usize) -> bool {
    held < free
}

#[cfg(test)]
mod tests {
    use super::may_take;
    use alloc::vec;
    use alloc::vec::Vec;

    /// Returns the places of each party, if all take places in turn until none may take more.
    fn greedy(parties: usize, places: usize) -> Vec<usize> {
        let mut held = vec![0; parties];
        loop {
            let before = held.clone();
            for party in 0..parties {
                let free = places - held.iter().sum::<usize>();
                held[party] += usize::from(may_take(held[party], free));
            }
            if held == before {
                return held;
            }
        }
    }

    #[test]
    fn who_takes_all_that_he_may_leaves_as_much_to_the_next() {
        assert_eq!(greedy(1, 512), [256]);
        assert_eq!(greedy(3, 512), [128; 3]);
        assert_eq!(greedy(63, 64), [1; 63]);
        assert!(may_take(0, 1) && !may_take(0, 0));
    }
}
