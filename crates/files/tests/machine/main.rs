//! What depends on the machine: who runs the tests, and what is mounted. Skipped by name where it
//! cannot be.
#![allow(clippy::unwrap_used, reason = "a test that fails says so")]

#[path = "../common/mod.rs"]
mod common;
mod deleted;

use byway_files::{
    ObjectRange, Sink, SinkError, SinkOptions, Source, SourceOptions, TreeFilter, WarningKind,
};
use byway_wire::ObjectId;
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use std::fs::{self, Permissions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus};

/// Set for the run of this program inside a mount namespace: the small disk to fill, and the test.
const SMALL_DISK: &str = "BYWAY_TEST_SMALL_DISK";
const DISK_TEST: &str = "BYWAY_TEST_OF_DISK";

fn main() -> ExitCode {
    if let Some(disk) = std::env::var_os(SMALL_DISK) {
        match std::env::var(DISK_TEST).unwrap_or_default().as_str() {
            "inodes" => deleted::without_inodes(Path::new(&disk)),
            "mounts" => deleted::over_mounts(Path::new(&disk)),
            _ => fill(Path::new(&disk)),
        }
        return ExitCode::SUCCESS;
    }
    let root = rustix::process::geteuid().is_root();
    let proc = Path::new("/proc/self/fd").exists();
    let disks = on_small_disk("true", "").is_ok_and(|status| status.success());
    let rsync = Command::new("rsync").arg("--version").output().is_ok();
    const NAMESPACES: &str = "it needs user and mount namespaces";
    let git = Command::new("git").arg("--version").output().is_ok();
    let trials = vec![
        test("patterns_match_as_git_says", git, "it needs git", as_git_says),
        test("a_sink_without_permission_is_found_at_open", !root, "it binds anyone but root", no_permission),
        test("unreadable_files_are_warned_of_and_counted", !root, "it binds anyone but root", unreadable),
        test("a_sink_that_cannot_be_made_is_named", proc, "it needs /proc", unmakeable),
        test("a_full_disk_ends_the_transfer_and_says_so", disks, NAMESPACES, || in_namespace("fill")),
        test("without_inodes_nothing_is_deleted", disks, NAMESPACES, || in_namespace("inodes")),
        test("nothing_is_deleted_over_a_mount", disks, NAMESPACES, || in_namespace("mounts")),
        test("what_the_sender_cannot_read_is_kept", !root, "it binds anyone but root", deleted::unreadable),
        test("deleting_does_what_rsync_does", rsync, "it needs rsync", deleted::as_rsync_does),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// A test; skipped by name where it is not `possible`.
fn test(name: &'static str, possible: bool, needs: &'static str, test: fn() -> Result<(), Failed>) -> Trial {
    Trial::ignorable_test(name, move || {
        if possible {
            return test().map(|()| Completion::Completed);
        }
        // Whole, among the lines of other tests.
        let _ = std::io::stderr().write_all(format!("skipped: {name}: {needs}\n").as_bytes());
        Ok(Completion::ignored_with(needs))
    })
}

/// Patterns and paths of a few letters, drawn from a seed, and the word of git on each.
fn as_git_says() -> Result<(), Failed> {
    const PARTS: [&str; 14] =
        ["a", "b", "c", "?", "*", "**", "/", "/", "[ab]", "[!a-b]", "[[:alpha:]]", "\\a", "/**/", "b"];
    let top = tempfile::tempdir()?;
    let git = |arguments: &[&str]| Command::new("git").args(arguments).current_dir(top.path()).output();
    assert!(git(&["init", "-q"])?.status.success());
    let mut seed = 88_172_645_463_325_252_u64;
    let mut draw = |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed >> 11) as usize % below
    };
    let mut compared = 0;
    for _ in 0..60 {
        let mut filter = TreeFilter::default();
        let mut lines = String::new();
        for _ in 0..=draw(3) {
            let parts = (0..=draw(5)).map(|_| PARTS[draw(PARTS.len())]).collect::<String>();
            let line = if draw(4) == 0 { format!("!{parts}") } else { parts };
            // What git makes of two slashes, and of `**` behind letters, its page leaves open.
            let is_open = line.contains("//") || line.contains("***") || line.starts_with("!!");
            let behind_letters =
                line.match_indices("**").any(|(at, _)| !line[..at].ends_with(['/', '!']) && at > 0);
            if !is_open && !behind_letters && filter.add(line.as_bytes(), true).is_ok() {
                lines += &format!("{line}\n");
            }
        }
        fs::write(top.path().join(".gitignore"), &lines)?;
        let name = |draw: &mut dyn FnMut(usize) -> usize| -> String {
            (0..=draw(2)).map(|_| ["a", "b", "c"][draw(3)]).collect()
        };
        for _ in 0..10 {
            let names: Vec<String> = (0..=draw(3)).map(|_| name(&mut draw)).collect();
            let path = names.join("/");
            let is_directory = draw(2) == 0;
            let asked = if is_directory { format!("{path}/") } else { path.clone() };
            let said = git(&["check-ignore", "-q", "--no-index", &asked])?.status.code() == Some(0);
            // What lies in an excluded directory is excluded.
            let above = path.match_indices('/').map(|(at, _)| (&path[..at], true));
            let ours = above
                .chain([(path.as_str(), is_directory)])
                .any(|(path, is_directory)| filter.excludes(path.as_bytes(), is_directory));
            assert_eq!(ours, said, "{asked}:\n{lines}");
            compared += 1;
        }
    }
    assert_eq!(compared, 600);
    Ok(())
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

/// Runs `program` where a disk of one megabyte is mounted that nobody else sees.
fn on_small_disk(program: &str, test: &str) -> std::io::Result<ExitStatus> {
    let disk = tempfile::tempdir()?;
    Command::new("unshare")
        .args([
            "-Urm",
            "sh",
            "-c",
            "mount -t tmpfs -o size=1m,nr_inodes=64 none \"$1\" && exec \"$0\"",
            program,
        ])
        .arg(disk.path())
        .env(SMALL_DISK, disk.path())
        .env(DISK_TEST, test)
        .stderr(std::process::Stdio::inherit())
        .status()
}

fn in_namespace(test: &str) -> Result<(), Failed> {
    let program = std::env::current_exe()?;
    let status = on_small_disk(program.to_str().ok_or("the program's path is not UTF-8")?, test)?;
    if status.success() { Ok(()) } else { Err(format!("{status}").into()) }
}

/// Receives more than the disk holds; then, with room made, the same transfer again.
fn fill(disk: &Path) {
    let from = tempfile::tempdir().unwrap();
    fs::write(from.path().join("big"), vec![7; 900_000]).unwrap();
    fs::write(disk.join("ballast"), vec![7; 500_000]).unwrap();
    let receive = || -> Result<bool, SinkError> {
        let mut source = Source::open(&[from.path().join("big")], SourceOptions::default()).unwrap();
        let mut sink = Sink::open(disk, SinkOptions::default())?;
        sink.records(&source.next_records(4_096, 1).bytes)?;
        let object = ObjectId(0);
        source.wanted(ObjectRange::one(object)).unwrap();
        sink.records(&source.next_records(4_096, 1).bytes)?;
        for offset in (0..900_000).step_by(50_000) {
            let bytes = source.read(object, offset, 50_000).unwrap();
            sink.write(object, offset, &bytes)?;
        }
        sink.finish(object)?;
        sink.records(&source.next_records(4_096, 1).bytes)?;
        while sink.work(1 << 20)? {}
        Ok(sink.is_complete())
    };
    let full = receive();
    assert!(matches!(&full, Err(SinkError::Full(path)) if path == disk), "{full:?}");
    assert!(!disk.join("big").exists());
    fs::remove_file(disk.join("ballast")).unwrap();
    assert!(receive().unwrap());
    assert_eq!(fs::read(disk.join("big")).unwrap(), vec![7; 900_000]);
    assert!(!disk.join(".byway-partial").exists());
}
