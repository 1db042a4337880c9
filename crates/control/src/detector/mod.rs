//! What one-way delays tell. All of it works on differences, so the clocks of both ends need not agree.

mod average;
mod base;
mod burst;
mod drain;
mod leap;
mod short;
mod signal;
mod spacing;
mod tremble;

pub use average::Average;
pub use base::{Base, Extremes};
pub use burst::Burst;
pub use drain::Drain;
pub use leap::{Leap, Line};
pub use short::Short;
pub use signal::{Run, Share, Smoothed};
pub use spacing::Spacing;
pub use tremble::Tremble;
