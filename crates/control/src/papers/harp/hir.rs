//! The mean delay that is compared instead of each packet's (HIR, 7.1). The paper: "take average
//! delay observed over the recent 50 packets".
//!
//! The paper names neither the extremes nor the window. What is averaged is compared with the
//! extremes of averages. One mean beyond the threshold is a signal, since it stands for many
//! packets already.

use super::{Coupling, DelayRule, HarpOptions};
use crate::detector::Average;
use byway_wire::Duration;

/// Delays in a mean, at least: fewer are none.
pub(super) const LEAST_AVERAGED: f64 = 4.0;

/// The mean of the latest delays of one path.
#[derive(Clone, Debug)]
pub(super) struct Mean {
    latest: Average,
    packets: usize,
    capped: bool,
}

impl Mean {
    /// A mean of `packets` delays. If `capped`, it has no more of them than packets are in a
    /// window.
    pub fn new(packets: u32, capped: bool) -> Self {
        Self { latest: Average::new(packets), packets: packets as usize, capped }
    }

    /// Takes a delay into account. The mean under a window of `window` packets; `None` before there
    /// are enough.
    pub fn sample(&mut self, delay: i64, window: f64) -> Option<i64> {
        self.latest.sample(delay);
        let fits = if self.capped { window.max(LEAST_AVERAGED) as usize } else { usize::MAX };
        self.latest.mean(fits.min(self.packets))
    }

    /// Forgets all delays.
    pub fn clear(&mut self) {
        self.latest.clear();
    }
}

impl HarpOptions {
    /// Harp as HIR has it (HIR, 4 and 7.1). It is adaptive, with delta 0.3 and means of 50 delays.
    /// If `capped`, a mean has no more delays than the window has packets; the paper does not say
    /// so.
    #[must_use]
    pub const fn averaged(capped: bool) -> Self {
        let least_range = Duration::from_millis(1);
        Self {
            delay: DelayRule::Averaged { delta: 0.3, packets: 50, capped, least_range },
            ..Self::literal(Coupling::Adaptive)
        }
    }
}
