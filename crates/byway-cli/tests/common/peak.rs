//! The memory that a process has, and the most that it ever had, told while it still runs.

use std::thread::{JoinHandle, sleep, spawn};
use std::time::Duration;

/// Watches process `id` to its end. Returns the most resident memory it had in bytes, as last seen
/// (`VmHWM`, proc(5)).
pub fn peak_memory(id: i32) -> JoinHandle<u64> {
    spawn(move || {
        let mut peak = 0;
        // Of one that ended and was not waited for yet, the file has no such line.
        while let Some(now) = memory(id, "VmHWM") {
            peak = now;
            sleep(Duration::from_millis(5));
        }
        peak
    })
}

/// A number of `/proc/ID/status`, of bytes.
pub fn memory(id: i32, what: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(what))?;
    Some(line.trim_start_matches(':').trim().strip_suffix(" kB")?.parse::<u64>().ok()? << 10)
}
