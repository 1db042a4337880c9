//! The rate that a line was seen to carry, from windows of half a second or so. It is a lower bound
//! of what the line can carry.

/// The fall of the peak in each window.
const PEAK_FADE: u64 = 256;

/// What a line was seen to carry, in bytes per second.
#[derive(Clone, Copy, Debug)]
pub struct CarriedRate {
    least: u64,
    /// The rate in each of the last two windows.
    recent: [u64; 2],
    sustained: u64,
    peak: u64,
}

impl CarriedRate {
    /// A line that is assumed to carry `least` bytes per second.
    #[must_use]
    pub const fn new(least: u64) -> Self {
        Self { least, recent: [0; 2], sustained: least, peak: least }
    }

    /// Takes in the rate of a window. `fade`: by which part of itself the sustained rate falls
    /// first, as `Some(64)` for a 64th.
    pub fn on_window(&mut self, carried: u64, fade: Option<u64>) {
        let lasted = self.recent.into_iter().fold(carried, u64::min);
        self.recent = [self.recent[1], carried];
        if let Some(part) = fade {
            self.sustained -= self.sustained / part.max(1);
        }
        self.sustained = self.sustained.max(lasted).max(self.least);
        self.peak = carried.max(self.peak - self.peak / PEAK_FADE);
    }

    /// The most that the line carried for three windows in a row.
    #[must_use]
    pub const fn sustained(&self) -> u64 {
        self.sustained
    }

    /// The most that the line carried for one window. It falls by 1/256 a window.
    #[must_use]
    pub const fn peak(&self) -> u64 {
        self.peak
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever the line carries: neither rate exceeds what it carried. A rate that lasts is
        /// found in three windows.
        #[test]
        fn no_rate_exceeds_what_was_carried(
            windows in proptest::collection::vec((1_000_u64..1_000_000, proptest::option::of(1_u64..2_000)), 3..100),
        ) {
            let mut rate = CarriedRate::new(1_000);
            let mut most = 0;
            for (carried, fade) in &windows {
                rate.on_window(*carried, *fade);
                most = most.max(*carried);
                prop_assert!(rate.sustained() <= most && rate.peak() <= most);
                prop_assert!(rate.peak() >= *carried);
            }
            for _ in 0..3 {
                rate.on_window(2_000_000, None);
            }
            prop_assert_eq!(rate.sustained(), 2_000_000);
        }
    }

    #[test]
    fn one_window_alone_is_a_peak_and_fades() {
        let mut rate = CarriedRate::new(1_000);
        rate.on_window(64_000, None);
        assert_eq!((rate.sustained(), rate.peak()), (1_000, 64_000));
        rate.on_window(0, None);
        assert_eq!(rate.peak(), 63_750);
        for _ in 0..3 {
            rate.on_window(6_400, None);
        }
        rate.on_window(0, Some(64));
        assert_eq!(rate.sustained(), 6_300);
    }
}
