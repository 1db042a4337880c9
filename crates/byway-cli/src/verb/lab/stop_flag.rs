//! How runs are stopped.

use crate::output::Output;
use crate::signals::{Hangup, Signals};
use anyhow::Result;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that SIGINT sets. It lives as long as the process, as do the threads that look at it.
pub(super) fn cancellation(output: &mut Output) -> Result<(&'static AtomicBool, Signals)> {
    static CANCEL_FLAG: AtomicBool = AtomicBool::new(false);
    let signals = Signals::install(Hangup::Stop)?;
    signals.wake_by(|| CANCEL_FLAG.store(true, Ordering::Relaxed));
    output.heed(&signals);
    Ok((&CANCEL_FLAG, signals))
}
