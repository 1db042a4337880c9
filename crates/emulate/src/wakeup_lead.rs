//! Measures by how much the lab's process must wake up before a frame is due. Sleeps usually end
//! later than asked, by about the same time. Each link of a route would add this time to a packet's
//! delay.

use byway_wire::time::nanos;
use byway_wire::{Duration, Instant};

/// The most lateness of one sleep that is learnt, in nanoseconds. More is caused by other
/// processes, not by the machine itself.
const MAX_LEARNT_NANOS: u64 = 200_000;
/// The weight of a new measurement in the average is 1 divided by this number.
const SMOOTHING_DIVISOR: u64 = 16;

/// The shortest sleep. Frames that become due during such a sleep leave together at its end, at
/// most 50 µs late. On a busy line, waking up for each frame costs more than sending the frame.
const MIN_SLEEP: Duration = Duration::from_micros(50);

/// How late a sleep usually ends, in nanoseconds. Each sleep is shortened by two thirds of this
/// time, so most sleeps end a little late. After a sleep that ends early, the process spins until
/// the deadline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WakeupLead {
    usual: u64,
}

impl WakeupLead {
    /// Returns the time to sleep before a frame that is due at `deadline`.
    #[must_use]
    pub fn sleep(&self, now: Instant, deadline: Instant) -> Duration {
        let left = deadline.since(now);
        if left.is_zero() {
            left
        } else {
            left.saturating_sub(Duration::from_nanos(self.usual * 2 / 3)).max(MIN_SLEEP)
        }
    }

    /// A sleep that was to last `asked` lasted from `from` until `to`.
    pub fn learn(&mut self, asked: Duration, from: Instant, to: Instant) {
        let late = nanos(to.since(from)).saturating_sub(nanos(asked)).min(MAX_LEARNT_NANOS);
        self.usual = (self.usual * (SMOOTHING_DIVISOR - 1) + late) / SMOOTHING_DIVISOR;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn us(micros: u64) -> Duration {
        Duration::from_micros(micros)
    }

    #[test]
    fn a_machine_that_sleeps_long_is_woken_earlier_and_outliers_change_little() {
        let (mut lead, now) = (WakeupLead::default(), Instant::from_millis(1));
        let deadline = now + us(1_000);
        assert_eq!(lead.sleep(now, deadline), us(1_000));
        for _ in 0..200 {
            lead.learn(us(500), now, now + us(590));
        }
        let slept = lead.sleep(now, deadline);
        assert!(slept > us(939) && slept < us(942), "{slept:?}");
        assert_eq!(lead.sleep(now, now + us(55)), MIN_SLEEP);
        assert_eq!(lead.sleep(now, now), Duration::ZERO, "what is due is not waited for");
        lead.learn(us(500), now, now + us(80_000));
        assert!(lead.sleep(now, deadline) > us(930), "one delay of 80 ms: {lead:?}");
        // Sleeps that end on time are soon believed.
        for _ in 0..200 {
            lead.learn(us(500), now, now + us(500));
        }
        assert!(lead.sleep(now, deadline) >= us(999), "{lead:?}");
    }
}
