//! The processor time of a thread.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Processor time of this thread in seconds.
pub(crate) fn thread_seconds() -> f64 {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default().as_secs_f64()
}
