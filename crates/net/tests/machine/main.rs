//! What depends on the machine: IPv6, and an interface that is slow and narrow. A test is *skipped*
//! by name where that is missing.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test says so when it cannot go on")]

#[path = "../common/mod.rs"]
mod common;
mod ipv6;
mod shaped;

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use std::io::Write as _;

fn main() {
    // The tests of the shaped interface run this program again, inside a namespace.
    if shaped::play() {
        return;
    }
    let tests = [ipv6::tests(), shaped::tests()].into_iter().flatten().collect();
    libtest_mimic::run(&Arguments::from_args(), tests).exit();
}

/// A test; skipped by name where something is missing.
fn test(
    name: String,
    missing: Option<&'static str>,
    test: impl FnOnce() -> Result<(), Failed> + Send + 'static,
) -> Trial {
    let label = name.clone();
    Trial::ignorable_test(name, move || match missing {
        Some(needs) => {
            // Whole, among the lines of other tests.
            let _ = std::io::stderr().write_all(format!("skipped: {label}: {needs}\n").as_bytes());
            Ok(Completion::ignored_with(needs))
        }
        None => test().map(|()| Completion::Completed),
    })
}
