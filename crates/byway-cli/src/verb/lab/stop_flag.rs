//! How runs are stopped.

use crate::output::Output;
use crate::signals::{Hangup, Signals};
use anyhow::Result;
use std::sync::atomic::{AtomicBool, Ordering};

/// Returns a flag that each handled signal sets, such as SIGINT and SIGTERM, and the signals. The
/// flag is static, since threads read it until the process ends.
pub(super) fn cancellation(output: &mut Output) -> Result<(&'static AtomicBool, Signals)> {
    static CANCEL_FLAG: AtomicBool = AtomicBool::new(false);
    let signals = output.catch_signals(Hangup::Stop)?;
    signals.wake_by(|| CANCEL_FLAG.store(true, Ordering::Relaxed));
    Ok((&CANCEL_FLAG, signals))
}
