//! What depends on the machine: who runs the tests, and what is mounted. Skipped by name where it cannot be.
#![allow(clippy::unwrap_used, reason = "a test that fails says so")]

use byway_files::{Sink, SinkError, SinkOptions, Source, SourceOptions, WarningKind};
use libtest_mimic::{Arguments, Failed, Trial};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let root = rustix::process::geteuid().is_root();
    let trials = vec![
        Trial::test("a_sink_without_permission_is_found_at_open (binds anyone but root)", no_permission)
            .with_ignored_flag(root),
        Trial::test("unreadable_files_are_warned_of_and_counted (binds anyone but root)", unreadable)
            .with_ignored_flag(root),
        Trial::test("a_sink_that_cannot_be_made_is_named (needs /proc)", unmakeable)
            .with_ignored_flag(!Path::new("/proc/self/fd").exists()),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn no_permission() -> Result<(), Failed> {
    let top = tempfile::tempdir()?;
    fs::set_permissions(top.path(), Permissions::from_mode(0o500))?;
    for path in [top.path().to_owned(), top.path().join("below")] {
        let refused = Sink::open(&path, SinkOptions::default());
        assert!(matches!(refused, Err(SinkError::NotWritable(_))), "{refused:?}");
    }
    Ok(())
}

fn unreadable() -> Result<(), Failed> {
    let top = tempfile::tempdir()?;
    fs::write(top.path().join("secret"), "s")?;
    fs::set_permissions(top.path().join("secret"), Permissions::from_mode(0o000))?;
    fs::create_dir(top.path().join("closed"))?;
    fs::set_permissions(top.path().join("closed"), Permissions::from_mode(0o000))?;
    let mut source = Source::open(&[top.path().join(".")], SourceOptions::default())?;
    let batch = source.next_records(1 << 16, 10);
    assert!(batch.objects.is_empty());
    assert_eq!(source.unsent(), 2);
    assert_eq!(source.counts().directories, 1, "the closed directory itself is sent");
    assert!(source.warnings().iter().all(|warning| matches!(warning.kind, WarningKind::Unreadable(_))));
    fs::set_permissions(top.path().join("closed"), Permissions::from_mode(0o700))?;
    Ok(())
}

/// No directory can be made in `/proc`, root or not.
fn unmakeable() -> Result<(), Failed> {
    let refused = Sink::open(Path::new("/proc/byway"), SinkOptions::default());
    let error = refused.err().ok_or("opened a sink in /proc")?;
    assert!(error.to_string().contains("/proc/byway"), "{error}");
    Ok(())
}
