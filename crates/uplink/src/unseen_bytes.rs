//! What byway sent and the interface's counters have yet to show. What the counters show beyond it
//! is the host's own traffic.

/// Bytes that byway handed to the interface and that its counter has not shown yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnseenBytes {
    bytes: u64,
}

impl UnseenBytes {
    /// Notes that byway handed these bytes to the interface, as its counter counts them.
    pub const fn on_sent(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Splits what the counter showed: returns what of it is not byway's.
    pub fn split(&mut self, shown: u64) -> u64 {
        let seen = self.bytes.min(shown);
        self.bytes -= seen;
        shown - seen
    }

    /// Keeps at most this many bytes. What was dropped in the interface's queue never shows.
    pub fn limit(&mut self, most: u64) {
        self.bytes = self.bytes.min(most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// A counter that shows what byway sent, late and in any pieces, and what the host sent.
        /// What is not byway's is exactly the host's, once all has shown.
        #[test]
        fn what_shows_late_is_not_taken_for_the_hosts(
            steps in proptest::collection::vec((0_u64..9_000, 0_u64..9_000, 0.0_f64..1.0), 1..200),
        ) {
            let mut unseen = UnseenBytes::default();
            let (mut waiting, mut host, mut told) = (0, 0, 0);
            for (ours, hosts, share) in steps {
                unseen.on_sent(ours);
                waiting += ours;
                let shown = (waiting as f64 * share) as u64;
                waiting -= shown;
                host += hosts;
                told += unseen.split(shown + hosts);
                prop_assert!(told <= host);
            }
            told += unseen.split(waiting);
            prop_assert_eq!(told, host);
        }
    }

    #[test]
    fn what_was_dropped_hides_no_more_than_the_limit() {
        let mut unseen = UnseenBytes::default();
        unseen.on_sent(100_000);
        unseen.limit(3_000);
        assert_eq!(unseen.split(10_000), 7_000);
        assert_eq!(unseen.split(10_000), 10_000);
    }
}
