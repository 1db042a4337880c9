//! What one-way delays tell. All of it works on differences, so the clocks of both ends need not agree.

mod average;
mod base;
mod leap;
mod same_queue;
mod signal;
mod spacing;

pub use average::Average;
pub use base::{Base, Extremes};
pub use leap::{Leap, Line};
pub use same_queue::Delays;
pub use signal::{Run, Share, Smoothed};
pub use spacing::Spacing;
