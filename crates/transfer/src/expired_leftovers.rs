//! Removes leftovers of transfers that were not resumed for long. It runs beside other work, and
//! delays none.

use crate::allowed_sender::AllowedSender;
use byway_files::{Timestamp, expire_journals, expire_partials, expire_trash};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::thread::Builder;
use std::time::{SystemTime, UNIX_EPOCH};

/// Removes expired unfinished files and expired trash in a receiver's directory and in its senders'
/// directories. A thread of its own does so.
pub(crate) fn expire_beside(directory: PathBuf, senders: &[AllowedSender]) {
    let below = senders.iter().filter_map(|sender| sender.below.as_ref());
    let below: Vec<PathBuf> =
        below.map(|place| Path::new(OsStr::from_bytes(place.as_bytes())).into()).collect();
    let expire = move || {
        let expire = |directory: &Path| {
            expire_partials(directory, wall_clock());
            expire_trash(directory, wall_clock());
        };
        expire(&directory);
        let Ok(whole) = directory.canonicalize() else { return };
        // A symbolic link may have been put where a sender's directory was.
        let places = below.iter().map(|below| whole.join(below));
        for place in places.filter(|place| place.canonicalize().is_ok_and(|real| real == *place)) {
            expire(&place);
        }
    };
    // Without a thread it waits for another run.
    let _ = Builder::new().name("byway expire".into()).spawn(expire);
}

/// Removes a sender's journals below `directory`.
pub(crate) fn expire_sent(directory: &Path) {
    expire_journals(directory, wall_clock());
}

/// The current time as a file timestamp.
fn wall_clock() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
    Timestamp { seconds, nanoseconds: since.subsec_nanos() }
}
