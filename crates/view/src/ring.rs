//! The last ten minutes of a figure, one value a second.

use std::collections::VecDeque;

/// Seconds that are kept.
pub const KEPT_SECONDS: u64 = 600;
/// Seconds over which one value holds. After a longer pause nothing is known of the time between.
const MAX_HELD_SECONDS: u64 = 10;

/// Values by second, the newest last. A second without one has a gap.
#[derive(Clone, Debug, Default)]
pub struct Ring {
    /// NaN is a gap.
    values: VecDeque<f32>,
    /// The second of the newest value.
    newest: u64,
}

impl Ring {
    /// Notes the value of a second. A value of the same second is replaced.
    pub fn push(&mut self, second: u64, value: Option<f64>) {
        let value = value.map_or(f32::NAN, |value| value as f32);
        if self.values.is_empty() {
            self.newest = second;
            self.values.push_back(value);
            return;
        }
        let passed = second.saturating_sub(self.newest);
        if passed == 0 {
            if let Some(last) = self.values.back_mut() {
                *last = value;
            }
            return;
        }
        let between = if passed <= MAX_HELD_SECONDS { value } else { f32::NAN };
        for _ in 1..passed.min(KEPT_SECONDS) {
            self.values.push_back(between);
        }
        self.values.push_back(value);
        let excess = self.values.len().saturating_sub(KEPT_SECONDS as usize);
        self.values.drain(..excess);
        self.newest = second;
    }

    /// Returns the values up to `second`, the newest last, at most [`KEPT_SECONDS`] of them.
    pub fn until(&self, second: u64) -> Vec<Option<f32>> {
        let mut copy = self.clone();
        if second > self.newest && !self.values.is_empty() {
            copy.push(second, None);
        }
        copy.values.iter().map(|value| Some(*value).filter(|value| value.is_finite())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_week_takes_no_more_room_than_ten_minutes() {
        let mut ring = Ring::default();
        for second in 0..7 * 24 * 3_600 {
            ring.push(second, Some(second as f64));
            assert!(ring.values.len() <= KEPT_SECONDS as usize);
        }
        assert!(ring.values.capacity() <= 4 * KEPT_SECONDS as usize, "{}", ring.values.capacity());
        let values = ring.until(ring.newest);
        assert_eq!((values.len(), values.last().copied().flatten()), (600, Some(604_799.0)));
    }

    #[test]
    fn what_was_not_looked_at_is_a_gap() {
        let mut ring = Ring::default();
        ring.push(100, Some(1.0));
        ring.push(102, Some(2.0));
        assert_eq!(ring.until(102), [Some(1.0), Some(2.0), Some(2.0)]);
        ring.push(120, Some(3.0));
        let values = ring.until(121);
        assert_eq!((values.len(), values[2], values[3]), (22, Some(2.0), None));
        assert_eq!(values[19..], [None, Some(3.0), None]);
        ring.push(9_999_999, None);
        assert!(ring.until(9_999_999).iter().all(Option::is_none));
        ring.push(9_999_999, Some(4.0));
        assert_eq!(ring.until(9_999_999).last(), Some(&Some(4.0)));
        // A clock that steps back replaces the newest value.
        ring.push(5, Some(5.0));
        assert_eq!(ring.until(9_999_999).len(), KEPT_SECONDS as usize);
    }
}
