//! Messages of `byway demo`.

use crate::units::{Bytes, Rate};
use std::path::Path;

pub const CANNOT_MAKE_DIRECTORY: &str = "cannot make a temporary directory";
pub const CANNOT_GENERATE: &str = "cannot write the files to send";
pub const CANNOT_COMPARE: &str = "cannot compare what arrived with what was sent";
pub const DEMO_STOPPED: &str = "the demo was stopped";
pub const CONTENTS_DIFFER: &str = "what arrived is not what was sent";

pub const GENERATED_TREE: &str = "a generated tree";
pub const DIRECT_PATH: &str = "the direct path only";
pub const ALL_PATHS: &str = "all three paths";

pub fn cannot_find(path: &Path) -> String {
    format!("cannot find {}", path.display())
}

pub fn nothing_to_send(path: &Path) -> String {
    format!("{} holds nothing that can be sent: name a file or a directory", path.display())
}

pub fn sends(bytes: u64, what: &str) -> String {
    format!(
        "the demo sends {} of {what} over loopback, on three paths that the simulator makes:",
        Bytes(bytes)
    )
}

pub fn line(name: &str, rate: u64, rtt_ms: u128) -> String {
    format!("  {name:<12} {}, {rtt_ms} ms round trip", Rate(rate as f64))
}

pub fn sending_over(paths: &str) -> String {
    format!("sending over {paths}")
}

pub fn speedup(factor: f64) -> String {
    format!("{factor:.1} times as fast over all three paths")
}
