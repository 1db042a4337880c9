//! Detectors that use one-way delays. All of it works on differences, so the clocks of both ends
//! need not agree.

mod average;
mod base_delay;
mod hystart;
mod route_change;
mod shared_bottleneck;
mod signal;
mod spacing;

pub use average::{Average, ExponentialAverage};
pub use base_delay::{BaseDelay, Extremes};
pub use hystart::{HyStart, HyStartOptions, RoundDelay};
pub use route_change::{DelayNoise, RouteChange};
pub use shared_bottleneck::DelaySeries;
pub use signal::{ConsecutiveDelays, DelayedShare, Smoothed};
pub use spacing::Spacing;
