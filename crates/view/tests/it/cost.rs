//! How much memory a page takes that is open for long.

use super::{Place, sender};
use std::process::Command;
use std::{env, fs};

/// Bytes that this process holds.
fn resident() -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

/// Browsers come and go, as over a week. Other tests would share the memory of their process.
#[test]
fn visits_without_end_leave_nothing() {
    let mut alone = Command::new(env::current_exe().unwrap());
    alone.args(["--exact", "cost::two_thousand_visits", "--ignored"]);
    let ended = alone.output().unwrap();
    let told = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success() && told.contains("1 passed"), "{told}");
}

#[test]
#[ignore = "needs a process of its own"]
fn two_thousand_visits() {
    let place = Place::new();
    let _process = place.process("send", || sender(1.0, 7).to_string());
    let (folder, cookie) = place.enter();
    let fields = format!("Cookie: {cookie}\r\n");
    let visit = || {
        place.get(&folder, &fields);
        assert!(place.frames(&folder, &cookie).next().is_some());
    };
    (0..200).for_each(|_| visit());
    let before = resident();
    (0..2_000).for_each(|_| visit());
    let grown = resident().saturating_sub(before);
    assert!(grown < 2 << 20, "{grown} bytes more");
}
