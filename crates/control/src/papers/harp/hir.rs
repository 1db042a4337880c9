//! Means of delays, for the paper called HIR. Its section 7.1 proposes two: "use exponential
//! weighted average or take average within a fixed window size". Its example of the second one is
//! "over the recent 50 packets". A mean above `dmin + delta (dmax - dmin)` signals congestion. The
//! paper leaves open what dmin and dmax are. Here they are the smallest and the largest mean.

use super::options::{Coupling, DelayRule, HarpOptions};
use crate::detector::{Average, ExponentialAverage};
use byway_wire::Duration;

/// The least number of delays in a mean.
pub(super) const MIN_AVERAGED_PACKETS: f64 = 4.0;

/// The mean of the latest delays of one path.
#[derive(Clone, Debug)]
pub(super) struct Mean {
    latest: LatestDelays,
    packets: f64,
    capped: bool,
}

/// The two means that the paper proposes.
#[derive(Clone, Debug)]
enum LatestDelays {
    /// "take average within a fixed window size"
    Window(Average),
    /// "use exponential weighted average"
    Exponential(ExponentialAverage),
}

impl Mean {
    /// A mean of `packets` delays, or an `exponential` one whose delays are as old on average. If
    /// `capped`, a mean has at most as many delays as the window has packets.
    pub fn new(packets: u32, capped: bool, exponential: bool) -> Self {
        let latest = if exponential {
            LatestDelays::Exponential(ExponentialAverage::new(packets))
        } else {
            LatestDelays::Window(Average::new(packets))
        };
        Self { latest, packets: f64::from(packets), capped }
    }

    /// Takes a delay into account. Returns the mean under a window of `window` packets, or `None`
    /// before there are enough delays.
    pub fn sample(&mut self, delay: i64, window: f64) -> Option<i64> {
        let fits = if self.capped { window.max(MIN_AVERAGED_PACKETS) } else { f64::INFINITY };
        let packets = fits.min(self.packets);
        match &mut self.latest {
            LatestDelays::Window(latest) => {
                latest.sample(delay);
                latest.mean(packets as usize)
            }
            LatestDelays::Exponential(latest) => {
                latest.sample(delay, packets);
                latest.mean(packets)
            }
        }
    }

    /// Forgets all delays.
    pub fn clear(&mut self) {
        match &mut self.latest {
            LatestDelays::Window(latest) => latest.clear(),
            LatestDelays::Exponential(latest) => latest.clear(),
        }
    }
}

impl HarpOptions {
    /// Harp with the delay rule of the paper called HIR (4 and 7.1): a high mean of 50 delays
    /// signals congestion. If `capped`, a mean has at most as many delays as the window has
    /// packets, but at least four. The paper has no cap.
    #[must_use]
    pub const fn averaged(capped: bool) -> Self {
        let least_range = Duration::from_millis(1);
        Self {
            delay: DelayRule::Averaged { delta: 0.3, packets: 50, capped, exponential: false, least_range },
            ..Self::literal(Coupling::Adaptive)
        }
    }
}
