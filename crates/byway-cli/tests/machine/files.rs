//! Transfers of difficult files: files that change while they are sent, sparse files, and files in
//! directories and on disks that refuse writes. A test is reported as ignored if the machine
//! forbids the mounts.

use crate::common::machine::{is_root, missing, test, works};
use crate::common::{Place, Running, assert_same, for_anybody};
use libtest_mimic::{Failed, Trial};
use serde_json::Value;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt as _};
use std::path::Path;
use std::process::{Command, Stdio};

const MIB: u64 = 1 << 20;
/// Set where this program has mounts of its own: the name of the part that it plays there.
const OWN_MOUNTS: &str = "BYWAY_TEST_OWN_MOUNTS";
/// Whom root runs as where root would be refused nothing.
const NOBODY: u32 = 65_534;
const NEEDS_MOUNTS: &str = "it needs root, and leave to mount";

pub fn tests() -> Vec<Trial> {
    let root = is_root();
    let mounts = missing(root && own_mounts("probe"), NEEDS_MOUNTS);
    let strace = missing(works("strace -o /dev/null true"), "it needs strace, and leave to use it");
    let other = missing(!root || works("setpriv --version"), "run by root, it needs setpriv");
    vec![
        test("files::a_file_that_changes_or_goes_is_left_out_and_said_so", None, || whole(changing)),
        test("files::holes_do_not_travel_and_are_holes_again", None, || whole(holes)),
        test("files::two_senders_at_once_share_a_directory", None, || whole(two_at_once)),
        test("files::a_full_disk_is_said_and_with_room_the_rest_goes_on", mounts, || inside("full_disk")),
        test("files::a_read_only_disk_is_said_before_anybody_sends", mounts, || inside("read_only_disk")),
        test("files::a_directory_that_refuses_is_said_before_anybody_sends", other, || {
            whole(refusing_directory)
        }),
        test("files::once_keeps_its_ticket_when_the_sender_could_not_read_all", other, || whole(unreadable)),
        test("files::all_is_on_the_disk_by_one_sync_at_the_end", strace, || whole(one_sync)),
    ]
}

fn whole(test: fn()) -> Result<(), Failed> {
    test();
    Ok(())
}

fn inside(part: &str) -> Result<(), Failed> {
    if own_mounts(part) { Ok(()) } else { Err(format!("{part} failed with mounts of its own").into()) }
}

/// Plays the part that needs mounts of its own; whether there is one.
pub fn play() -> bool {
    let Ok(part) = std::env::var(OWN_MOUNTS) else { return false };
    match part.as_str() {
        "probe" => assert!(small_disk(&Place::new().path("probe"), MIB).is_some()),
        "full_disk" => full_disk(),
        "read_only_disk" => read_only_disk(),
        _ => panic!("no such part: {part}"),
    }
    true
}

/// Runs a part of this program with mounts of its own, which are gone with the process, however it
/// ends.
fn own_mounts(part: &str) -> bool {
    let mut again = Command::new("unshare");
    again.args(["-m", "--propagation", "private"]).arg(std::env::current_exe().unwrap());
    again.env(OWN_MOUNTS, part).status().is_ok_and(|status| status.success())
}

fn contents(size: u64, seed: u32) -> Vec<u8> {
    (0..size as u32).map(|at| ((at ^ seed).wrapping_mul(2_654_435_761) >> 11) as u8).collect()
}

/// Reads events until at least `bytes` are there.
fn until(sender: &mut Running, bytes: u64) {
    while serde_json::from_str::<Value>(&sender.line()).unwrap()["bytes"].as_u64() < Some(bytes) {}
}

fn changing() {
    let place = Place::new();
    fs::create_dir(place.path("tree")).unwrap();
    fs::write(place.path("tree/a"), "good").unwrap();
    // More than is read ahead, and more files than are held open.
    fs::write(place.path("tree/b"), contents(48 * MIB, 0)).unwrap();
    fs::create_dir(place.path("tree/c")).unwrap();
    for index in 0..100 {
        fs::write(place.path(&format!("tree/c/{index:02}")), "small").unwrap();
    }
    let (receiver, ticket) = place.recv(&["in", "--once"]);
    let mut sender =
        Running::start(place.command("sender", &["send", "tree", &ticket, "--bwlimit", "8M", "--json"]));
    until(&mut sender, 4 * MIB);
    // What comes later first: once `b` has ended, the rest is soon read.
    fs::remove_dir_all(place.path("tree/c")).unwrap();
    File::options().write(true).open(place.path("tree/b")).unwrap().set_len(5 * MIB).unwrap();
    let sent = sender.end();
    sent.failed(4, "not everything was transferred");
    let warned = String::from_utf8(sent.stdout.clone()).unwrap();
    for name in ["tree/b", "tree/c/99"] {
        let words = format!("{name}: not sent, it changed while it was read");
        assert!(warned.contains(&words), "{warned}");
    }
    assert_eq!(receiver.end().code, Some(4));
    assert_eq!(fs::read(place.path("in/tree/a")).unwrap(), b"good");
    assert!(!place.path("in/tree/b").exists() && !place.path("in/tree/c/99").exists());
    // At rest the same commands send what is missing.
    let (receiver, again) = place.recv(&["in", "--once"]);
    assert_eq!(again, ticket);
    place.run("sender", &["send", "tree", &ticket]).succeeded();
    receiver.end().succeeded();
    // What has gone since is not taken away.
    fs::remove_dir_all(place.path("in/tree/c")).unwrap();
    assert!(fs::read(place.path("tree/b")).unwrap() == fs::read(place.path("in/tree/b")).unwrap());
}

fn holes() {
    let place = Place::new();
    let file = File::create(place.path("disk.img")).unwrap();
    file.set_len(512 * MIB).unwrap();
    for at in [0, 100 * MIB + 5, 511 * MIB] {
        std::os::unix::fs::FileExt::write_all_at(&file, b"something", at).unwrap();
    }
    drop(file);
    let (receiver, ticket) = place.recv(&["in", "--once"]);
    let sent = place.run("sender", &["send", "disk.img", &ticket, "--json"]);
    sent.succeeded();
    receiver.end().succeeded();
    let result = sent.result();
    assert_eq!(result["bytes"], 512 * MIB);
    let travelled: u64 =
        result["paths"].as_array().unwrap().iter().map(|path| path["bytes"].as_u64().unwrap()).sum();
    assert!(travelled < 4 * MIB, "{result}");
    let arrived = place.path("in/disk.img");
    assert!(arrived.metadata().unwrap().blocks() * 512 < 4 * MIB);
    assert!(fs::read(place.path("disk.img")).unwrap() == fs::read(arrived).unwrap());
}

fn two_at_once() {
    let place = Place::new();
    for (host, seed) in [("one", 1), ("two", 2)] {
        byway_files::generate(&place.path(host).join(format!("own-{host}")), seed.into(), 3_000_000).unwrap();
        fs::write(place.path(host).join("same"), contents(6 * MIB, seed)).unwrap();
    }
    let keys = ["one", "two"].map(|host| String::from_utf8(place.run(host, &["id"]).stdout).unwrap());
    // Or else the ticket would be the first one's, as soon as that is done.
    let (receiver, ticket) =
        place.recv(&["in", "--allow", keys[0].trim_end(), "--allow", keys[1].trim_end()]);
    let start = |host: &str| {
        let (own, same) = (format!("{host}/own-{host}"), format!("{host}/same"));
        Running::start(place.command(host, &["send", &own, &same, &ticket]))
    };
    let (one, two) = (start("one"), start("two"));
    one.end().succeeded();
    two.end().succeeded();
    for host in ["one", "two"] {
        let own = format!("own-{host}");
        assert_same(&place.path(host).join(&own), &place.path("in").join(&own));
    }
    // Of one name there is one file, and it is one of theirs.
    let same = fs::read(place.path("in/same")).unwrap();
    assert!(["one", "two"].iter().any(|host| fs::read(place.path(host).join("same")).unwrap() == same));
    assert!(!place.path("in/.byway-partial").exists());
    drop(receiver);
}

/// A disk that goes away with its guard.
pub(super) struct Mounted(std::path::PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).output();
    }
}

pub(super) fn small_disk(at: &Path, bytes: u64) -> Option<Mounted> {
    fs::create_dir_all(at).unwrap();
    let size = format!("size={bytes}");
    let mount =
        Command::new("mount").args(["-t", "tmpfs", "-o", &size, "byway-test"]).arg(at).output().ok()?;
    mount.status.success().then(|| Mounted(at.to_owned()))
}

fn full_disk() {
    let place = Place::new();
    let _disk = small_disk(&place.path("in"), 24 * MIB).unwrap();
    fs::write(place.path("in/ballast"), contents(16 * MIB, 9)).unwrap();
    fs::write(place.path("big"), contents(20 * MIB, 1)).unwrap();
    let (receiver, ticket) = place.recv(&["in", "--once", "--json"]);
    let ticket = serde_json::from_str::<Value>(&ticket).unwrap()["ticket"].as_str().unwrap().to_owned();
    let mut sender = place.command("sender", &["send", "big", &ticket]);
    sender.stdin(Stdio::null());
    let sent = Running::start(sender).end();
    sent.failed(1, "is full: free some space and start again, what has arrived is kept");
    receiver.interrupt();
    let ended = receiver.end();
    assert!(ended.stderr.contains("is full"), "{}", ended.stderr);
    assert!(!place.path("in/big").exists());
    fs::remove_file(place.path("in/ballast")).unwrap();
    let (receiver, again) = place.recv(&["in", "--once"]);
    assert_eq!(again, ticket);
    let sent = place.run("sender", &["send", "big", &ticket, "--json"]);
    sent.succeeded();
    assert!(sent.result()["kept_bytes"].as_u64().unwrap() >= 4 * MIB, "{}", sent.result());
    receiver.end().succeeded();
    assert!(fs::read(place.path("big")).unwrap() == fs::read(place.path("in/big")).unwrap());
}

fn read_only_disk() {
    let place = Place::new();
    let _disk = small_disk(&place.path("in"), MIB).unwrap();
    let remounted = Command::new("mount").args(["-o", "remount,ro"]).arg(place.path("in")).status().unwrap();
    assert!(remounted.success());
    place
        .run("receiver", &["recv", "in"])
        .failed(1, "in is on a read-only file system: name another directory");
}

/// `byway` with these arguments, as somebody whom modes bind: root runs it as [`NOBODY`].
fn bound_by_modes(place: &Place, host: &str, arguments: &[&str]) -> Command {
    let mut command = place.command(host, arguments);
    if is_root() {
        let (directory, program, home) = (place.path(""), place.path("byway"), place.path(host));
        for_anybody(&program);
        fs::create_dir_all(&home).unwrap();
        fs::set_permissions(&directory, Permissions::from_mode(0o755)).unwrap();
        std::os::unix::fs::chown(&home, Some(NOBODY), Some(NOBODY)).unwrap();
        command = Command::new("setpriv");
        command.args([&format!("--reuid={NOBODY}"), &format!("--regid={NOBODY}"), "--clear-groups"]);
        command.arg(program).args(arguments).env("HOME", home).current_dir(directory);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    }
    command
}

fn refusing_directory() {
    let place = Place::new();
    let refusing = place.path("in");
    fs::create_dir(&refusing).unwrap();
    fs::set_permissions(&refusing, Permissions::from_mode(0o500)).unwrap();
    if is_root() {
        std::os::unix::fs::chown(&refusing, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let command = bound_by_modes(&place, "receiver", &["recv", "in"]);
    Running::start(command).end().failed(1, "in cannot be written to: change its permissions");
}

/// Of a file that the sender cannot open, the receiver never hears. Both sides end with 4, and the
/// ticket is good for the rest.
fn unreadable() {
    let place = Place::new();
    let secret = place.path("tree/secret");
    fs::create_dir(place.path("tree")).unwrap();
    fs::write(place.path("tree/good"), "good").unwrap();
    fs::write(&secret, "secret").unwrap();
    fs::set_permissions(&secret, Permissions::from_mode(0o000)).unwrap();
    let send = |ticket: &str| {
        Running::start(bound_by_modes(&place, "sender", &["send", "tree", ticket, "--json"])).end()
    };
    let (receiver, ticket) = place.recv(&["in", "--once"]);
    let sent = send(&ticket);
    sent.failed(4, "not everything was transferred");
    assert_eq!(sent.result()["failed_entries"], 1, "{}", sent.result());
    receiver.end().failed(4, "not everything arrived: the sender could not read all of it");
    assert_eq!(fs::read(place.path("in/tree/good")).unwrap(), b"good");
    assert!(!place.path("in/tree/secret").exists());
    fs::set_permissions(&secret, Permissions::from_mode(0o644)).unwrap();
    let (receiver, again) = place.recv(&["in", "--once"]);
    assert_eq!(again, ticket);
    send(&ticket).succeeded();
    receiver.end().succeeded();
    assert_eq!(fs::read(place.path("in/tree/secret")).unwrap(), b"secret");
    let (_receiver, other) = place.recv(&["in", "--once"]);
    assert_ne!(other, ticket, "it is used up");
}

/// Checks the order of the receiver's system calls: no file is synced on its own, and the one sync
/// comes after the last file has its final name.
fn one_sync() {
    let place = Place::new();
    byway_files::generate(&place.path("tree"), 6, 3_000_000).unwrap();
    for index in 0..200 {
        fs::write(place.path(&format!("tree/{index}")), "small").unwrap();
    }
    let trace = place.path("trace");
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-e", "trace=fsync,fdatasync,sync,syncfs,rename,renameat,renameat2", "-o"]);
    command.arg(&trace).args([
        env!("CARGO_BIN_EXE_byway"),
        "recv",
        "--listen",
        "127.0.0.1:0",
        "in",
        "--once",
    ]);
    command.env_clear().env("HOME", place.path("receiver")).current_dir(place.path(""));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut receiver = Running::start(command);
    let ticket = receiver.line();
    place.run("sender", &["send", "tree", &ticket]).succeeded();
    receiver.end().succeeded();
    assert_same(&place.path("tree"), &place.path("in/tree"));
    let trace = fs::read_to_string(trace).unwrap();
    let calls: Vec<&str> =
        trace.lines().filter_map(|line| Some(line.split_once(' ')?.1.split_once('(')?.0.trim())).collect();
    let is_name = |call: &&str| call.starts_with("rename");
    let (first, last) = (calls.iter().position(is_name).unwrap(), calls.iter().rposition(is_name).unwrap());
    assert!(last - first > 200, "{calls:?}");
    assert!(calls[first..last].iter().all(is_name), "{calls:?}");
    assert_eq!(calls[last + 1..], ["syncfs"]);
}
