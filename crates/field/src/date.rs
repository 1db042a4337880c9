//! Today's date, without a crate for it.

use byway_wire::date::{DAY_SECONDS, civil};
use std::time::{SystemTime, UNIX_EPOCH};

/// Today, in UTC, as 2026-01-31.
pub(crate) fn today() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let (year, month, day) = civil(seconds / DAY_SECONDS);
    format!("{year:04}-{month:02}-{day:02}")
}
