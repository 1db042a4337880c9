//! What tests that depend on the machine share: whether it has what they need, commands, and waiting for what comes.

use libtest_mimic::{Arguments, Failed, Trial};
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The time between two looks at what is waited for.
const LOOK: Duration = Duration::from_millis(20);

/// Whether this is root.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The network namespaces in which processes live.
pub fn inhabited() -> BTreeSet<PathBuf> {
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    processes.filter_map(|process| fs::read_link(process.path().join("ns/net")).ok()).collect()
}

/// Whether a command (words between single spaces) does well.
pub fn works(command: &str) -> bool {
    run(&command.split(' ').collect::<Vec<_>>())
}

/// Whether a command does well.
pub fn run(command: &[&str]) -> bool {
    let (program, arguments) = command.split_first().unwrap();
    let mut program = Command::new(program);
    program.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    program.status().is_ok_and(|status| status.success())
}

/// Runs a command that must do well; what it says.
#[track_caller]
pub fn must(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let (said, told) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {said} {told}");
    said
}

/// Looks until there is what is waited for.
pub fn wait_for<T>(patience: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let begun = Instant::now();
    loop {
        let found = look();
        if found.is_some() || begun.elapsed() > patience {
            return found;
        }
        std::thread::sleep(LOOK);
    }
}

/// A test; *ignored* by name where it is not `possible`.
pub fn test(name: &str, possible: bool, test: fn() -> Result<(), Failed>) -> Trial {
    Trial::test(name, test).with_ignored_flag(!possible)
}

/// Runs tests. `missing` says what those that are ignored need.
pub fn conclude(tests: Vec<Trial>, missing: Option<&str>, one_at_a_time: bool) -> ! {
    let mut arguments = Arguments::from_args();
    if one_at_a_time {
        arguments.test_threads = Some(1);
    }
    if let Some(missing) = missing {
        eprintln!("some tests are ignored: {missing}");
    }
    libtest_mimic::run(&arguments, tests).exit()
}
