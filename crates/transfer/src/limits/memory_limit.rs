//! The memory that this process may use: the memory of the host, or of the process's cgroup if the
//! cgroup allows less. Also how a receiver's sessions share this memory.

use crate::limits::receive_limit::window;
use byway_engine::Config;
use std::fs;
use std::path::Path;

/// The mount point of cgroups (version 2).
const CGROUP_ROOT: &str = "/sys/fs/cgroup";
/// Bytes of memory that are assumed if neither the host's nor the cgroup's can be read.
const DEFAULT_MEMORY_BYTES: u64 = 1 << 30;
/// The most memory of a session, as a multiple of its window: it includes room for coming data, and
/// for fragments.
const WINDOW_MEMORY_FACTOR: u64 = 4;
/// The least bytes that all windows share.
const MIN_WINDOW_BYTES: usize = 1 << 20;

/// The configuration of a receiver's sessions. `limit`: bytes per second that all sessions together
/// receive at most. `memory`: bytes of memory that all use at most; with `None`, half of the memory
/// of this host or of the process's cgroup.
#[must_use]
pub fn receiving_config(limit: Option<u64>, memory: Option<u64>) -> Config {
    let memory = memory.unwrap_or_else(|| available() / 2);
    let windows = usize::try_from(memory / WINDOW_MEMORY_FACTOR).unwrap_or(usize::MAX).max(MIN_WINDOW_BYTES);
    let mut config = Config { shared_memory: Some(windows), ..Config::default() };
    config.incoming.memory = receiving_window(limit, config.incoming.memory);
    config
}

/// The flow-control window in bytes of a side that receives `limit` bytes per second at most. At
/// most `memory`, which is that of a side without a limit.
#[must_use]
pub fn receiving_window(limit: Option<u64>, memory: usize) -> usize {
    limit.map_or(memory, |limit| memory.min(window(limit)))
}

/// Bytes of memory of the machine, or of the cgroup of this process if that allows less.
fn available() -> u64 {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| total(&text));
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let cgroup = allowed(Path::new(CGROUP_ROOT), path_of(&own));
    [machine, cgroup].into_iter().flatten().min().unwrap_or(DEFAULT_MEMORY_BYTES)
}

/// `MemTotal` of /proc/meminfo, in bytes.
fn total(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Returns the path of a process's cgroup (version 2), from the text of its `/proc/PID/cgroup`.
fn path_of(text: &str) -> &str {
    text.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or("/")
}

/// Returns the smallest `memory.max` of a cgroup and its ancestors, in bytes. `None`: no limit.
fn allowed(root: &Path, own: &str) -> Option<u64> {
    let own = root.join(own.trim_start_matches('/'));
    let above = own.ancestors().take_while(|cgroup| cgroup.starts_with(root));
    let limit = |cgroup: &Path| fs::read_to_string(cgroup.join("memory.max")).ok()?.trim().parse().ok();
    above.filter_map(limit).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_s_memory_is_read() {
        let text = "MemTotal:       24684252 kB\nMemFree:        20409560 kB\n";
        assert_eq!(total(text), Some(24_684_252 * 1024));
        for text in ["", "MemTotal: much", "MemTotal: 5 MB", "MemTotal: 99999999999999999999 kB"] {
            assert_eq!(total(text), None, "{text}");
        }
        assert!(available() > 0);
    }

    #[test]
    fn the_tightest_cgroup_counts() {
        let root = std::env::temp_dir().join(format!("byway-cgroup-{}", std::process::id()));
        let own = root.join("a.slice/b.scope");
        fs::create_dir_all(&own).unwrap();
        assert_eq!(path_of("1:name=systemd:/x\n0::/a.slice/b.scope\n"), "/a.slice/b.scope");
        let read = || allowed(&root, "/a.slice/b.scope");
        assert_eq!(read(), None);
        fs::write(own.join("memory.max"), "max\n").unwrap();
        assert_eq!(read(), None);
        fs::write(root.join("a.slice/memory.max"), "536870912\n").unwrap();
        assert_eq!(read(), Some(512 << 20));
        fs::write(own.join("memory.max"), "1073741824\n").unwrap();
        assert_eq!(read(), Some(512 << 20));
        assert_eq!(allowed(&root, "/../../etc"), None);
        fs::remove_dir_all(&root).unwrap();
    }
}
