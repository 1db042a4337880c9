//! Byte counters of a network interface, and what passed between two looks at them.

use byway_wire::{Duration, Instant};

/// Bytes per second that no interface carries. Counters that grow faster have jumped.
const MAX_INTERFACE_RATE: u64 = 125_000_000_000;

/// Byte counters of a network interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterfaceCounters {
    /// Bytes that the host sent.
    pub sent: u64,
    /// Bytes that the host received.
    pub received: u64,
}

/// What a look at the counters tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterLook {
    /// The counters cannot be read: the interface is gone, or the system does not say.
    Unreadable,
    /// There is no earlier look to compare with, or only one that is too old.
    First,
    /// The counters wrapped, were reset, or jumped. Or no time has passed.
    Reset,
    /// Bytes passed since the look before.
    Passed {
        /// Bytes that the host sent and received.
        bytes: InterfaceCounters,
        /// The time between the two looks.
        time: Duration,
    },
}

/// Compares each look at the counters with the one before.
#[derive(Clone, Copy, Debug)]
pub struct CounterReader {
    max_age: Duration,
    looked_at: Option<Instant>,
    latest: Option<InterfaceCounters>,
}

impl CounterReader {
    /// A reader for which a look older than `max_age` tells nothing of the present: the host slept,
    /// or nobody looked.
    #[must_use]
    pub const fn new(max_age: Duration) -> Self {
        Self { max_age, looked_at: None, latest: None }
    }

    /// When the counters were looked at last, readable or not.
    #[must_use]
    pub const fn looked_at(&self) -> Option<Instant> {
        self.looked_at
    }

    /// Takes in what the counters show now. `None`: they cannot be read.
    pub fn look(&mut self, now: Instant, shown: Option<InterfaceCounters>) -> CounterLook {
        let before = core::mem::replace(&mut self.latest, shown);
        let time = self.looked_at.replace(now).map_or(Duration::MAX, |looked| now.since(looked));
        let Some(shown) = shown else { return CounterLook::Unreadable };
        let Some(before) = before.filter(|_| time <= self.max_age) else { return CounterLook::First };
        let most = u128::from(MAX_INTERFACE_RATE) * time.as_nanos() / 1_000_000_000;
        let grown = |now: u64, before: u64| {
            now.checked_sub(before).filter(|bytes| !time.is_zero() && u128::from(*bytes) <= most)
        };
        match (grown(shown.sent, before.sent), grown(shown.received, before.received)) {
            (Some(sent), Some(received)) => {
                CounterLook::Passed { bytes: InterfaceCounters { sent, received }, time }
            }
            _ => CounterLook::Reset,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MAX_AGE: Duration = Duration::from_millis(1_500);

    fn counters(sent: u64, received: u64) -> Option<InterfaceCounters> {
        Some(InterfaceCounters { sent, received })
    }

    #[test]
    fn only_what_two_looks_in_a_row_agree_on_has_passed() {
        let at = Instant::from_millis;
        let mut reader = CounterReader::new(MAX_AGE);
        let passed = |sent, received, millis| CounterLook::Passed {
            bytes: InterfaceCounters { sent, received },
            time: Duration::from_millis(millis),
        };
        assert_eq!(reader.look(at(10), counters(5_000, 70)), CounterLook::First);
        assert_eq!(reader.look(at(30), counters(6_000, 70)), passed(1_000, 0, 20));
        assert_eq!(reader.look(at(30), counters(6_500, 70)), CounterLook::Reset, "no time has passed");
        assert_eq!(reader.look(at(50), counters(100, 80)), CounterLook::Reset, "it wrapped");
        assert_eq!(reader.look(at(70), counters(100, 80)), passed(0, 0, 20), "it stands still");
        assert_eq!(reader.look(at(90), counters(1 << 60, 80)), CounterLook::Reset, "it jumped");
        assert_eq!(reader.look(at(110), None), CounterLook::Unreadable);
        assert_eq!(reader.look(at(130), counters(1 << 60, 90)), CounterLook::First);
        assert_eq!(reader.look(at(1_700), counters(1 << 61, 90)), CounterLook::First, "the host slept");
        assert_eq!(reader.looked_at(), Some(at(1_700)));
    }

    proptest! {
        /// Whatever counters show: what passed is never more than any interface carries, and bytes
        /// that grow steadily are all told.
        #[test]
        fn no_more_passes_than_an_interface_carries(
            looks in proptest::collection::vec((0_u64..3_000, proptest::option::of((any::<u64>(), 0_u64..9_000))), 1..60),
        ) {
            let mut reader = CounterReader::new(MAX_AGE);
            let mut now = Instant::from_millis(1);
            let mut steady = 0;
            for (millis, shown) in looks {
                now += Duration::from_millis(millis);
                steady += shown.map_or(0, |(_, more)| more);
                let look = reader.look(now, shown.map(|(sent, _)| InterfaceCounters { sent, received: steady }));
                if let CounterLook::Passed { bytes, time } = look {
                    let most = u128::from(MAX_INTERFACE_RATE) * time.as_nanos() / 1_000_000_000;
                    prop_assert!(u128::from(bytes.sent) <= most && time <= MAX_AGE);
                    prop_assert_eq!(Some(bytes.received), shown.map(|(_, more)| more));
                }
            }
        }
    }
}
