//! Limits how many bytes of an input wait to be sent: what the demand sends in 250 ms. The demand
//! is the source's wanted rate in bytes per second. In an outage more may wait, since the input may
//! still give bytes at this rate.

use crate::rate_limiter::Bucket;
use byway_wire::{Duration, Instant};

/// The bytes that the demand sends in this time may wait.
const QUEUE_TIME: Duration = Duration::from_millis(250);
/// Bytes that may wait whatever the demand is.
const MIN_QUEUE_BYTES: f64 = 32_768.0;

/// The limit on bytes of an input that wait to be sent.
#[derive(Clone, Debug)]
pub struct Intake {
    bucket: Bucket,
    held_back: bool,
}

impl Intake {
    /// For a demand in bytes per second.
    pub fn new(demand: u64) -> Self {
        Self { bucket: Bucket::new(demand), held_back: false }
    }

    /// Whether one more record may be read while `waiting` bytes wait to be sent. `outage`: the
    /// paths carried less than the demand permits.
    pub fn may_take(&mut self, now: Instant, demand: u64, waiting: usize, outage: bool) -> bool {
        self.bucket.set_rate(demand);
        let soon = (demand as f64 * QUEUE_TIME.as_secs_f64()).max(MIN_QUEUE_BYTES);
        let may = (waiting as f64) < soon || outage && self.bucket.available(now) > 0;
        self.held_back |= !may;
        may
    }

    /// A record of `bytes` bytes was taken.
    pub fn take(&mut self, bytes: usize) {
        self.bucket.spend(bytes);
    }

    /// Whether the input was held back since the last call.
    pub const fn was_held_back(&mut self) -> bool {
        std::mem::replace(&mut self.held_back, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that an input of endless records gives from one millisecond to another, of which none
    /// leaves.
    fn given(intake: &mut Intake, from: u64, until: u64, outage: bool) -> usize {
        let mut waiting = 0;
        for millis in from..until {
            while intake.may_take(Instant::from_millis(millis), 200_000, waiting, outage) {
                intake.take(100);
                waiting += 100;
            }
        }
        waiting
    }

    #[test]
    fn an_input_without_end_gives_what_leaves_soon_and_in_an_outage_the_demand() {
        let mut intake = Intake::new(200_000);
        assert_eq!(given(&mut intake, 0, 5_000, false), 50_000);
        assert!(intake.was_held_back() && !intake.was_held_back());
        let mut intake = Intake::new(200_000);
        let ten_seconds = given(&mut intake, 0, 10_000, true);
        assert!((1_950_000..2_030_000).contains(&ten_seconds), "{ten_seconds}");
    }
}
