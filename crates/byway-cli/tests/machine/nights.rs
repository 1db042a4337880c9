//! A backup of one tree, night after night: only what changed travels, and what is gone goes.
//!
//! ```text
//!   sender 10.88.1.1 ─── hub ─── receiver 10.88.2.1
//! ```
//!
//! Bytes are those of both directions at the sender's interface. Needs root and `ip`; otherwise the
//! test is reported as ignored.

use crate::common::machine::{missing, slow};
use crate::common::spaces::Spaces;
use crate::common::{Running, assert_same};
use libtest_mimic::{Failed, Trial};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

const RECEIVER: &str = "10.88.2.1";
/// Files of the tree, and bytes of each.
const FILE_COUNT: u64 = 5_000;
const FILE_LEN: usize = 1_000;
/// What a file may cost that did not change, in bytes.
const UNCHANGED_COST: u64 = 24;

pub fn tests() -> Vec<Trial> {
    let lacks = missing(Spaces::possible(&[]), "it needs root and the program ip");
    vec![slow("nights::five_nights_carry_what_changed", lacks, five_nights)]
}

/// The two hosts, the tree and its copy.
struct Backup {
    spaces: Spaces,
    place: tempfile::TempDir,
    ticket: String,
    _receiver: Running,
}

impl Backup {
    fn new() -> Self {
        let spaces = Spaces::star("n", &[("sender", "10.88.1.1"), ("receiver", RECEIVER)]);
        let place = tempfile::tempdir().unwrap();
        let into = place.path().join("in").display().to_string();
        let state = place.path().join("receiver");
        let mut receiver = spaces.byway("receiver", &state, &["recv", &into]);
        let ticket = receiver.event("ready")["ticket"].as_str().unwrap().to_owned();
        Self { spaces, place, ticket, _receiver: receiver }
    }

    fn tree(&self) -> PathBuf {
        self.place.path().join("tree")
    }

    fn copy(&self) -> PathBuf {
        self.place.path().join("in/tree")
    }

    /// Writes a file of the tree that is unlike others.
    fn write(&self, number: u64, length: usize) {
        let path = self.tree().join(format!("{:02}/file{number:04}", number % 50));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let bytes: Vec<u8> = (0..length as u64).map(|at| ((at * (number | 1)) >> 3) as u8).collect();
        fs::write(path, bytes).unwrap();
    }

    fn send(&self, more: &[&str]) -> Running {
        let tree = self.tree().display().to_string();
        let state = self.place.path().join("sender");
        self.spaces.byway("sender", &state, &[&["send", &tree, &self.ticket], more].concat())
    }

    /// Bytes at the sender's interface so far.
    fn interface_bytes(&self) -> u64 {
        let counters = self.spaces.says("sender", &["ip", "-j", "-s", "link", "show", "dev", "eth0"]);
        let counters: Value = serde_json::from_str(&counters).unwrap();
        let stats = &counters[0]["stats64"];
        stats["rx"]["bytes"].as_u64().unwrap() + stats["tx"]["bytes"].as_u64().unwrap()
    }

    /// A night in which `changed` bytes are new.
    fn night(&self, what: &str, changed: u64, exit: u64, backup: impl FnOnce(&Self) -> Value) {
        let before = self.interface_bytes();
        let result = backup(self);
        assert_eq!(result["exit"], exit, "{what}: {result}");
        let carried = self.interface_bytes() - before;
        let most = changed * 11 / 10 + UNCHANGED_COST * FILE_COUNT;
        println!("{what}: {carried} bytes carried, of {most} at most");
        assert!(carried <= most, "{what}");
    }
}

fn modified(path: &Path) -> SystemTime {
    path.metadata().unwrap().modified().unwrap()
}

fn five_nights() -> Result<(), Failed> {
    let backup = Backup::new();
    (0..FILE_COUNT).for_each(|number| backup.write(number, FILE_LEN));
    let whole = |backup: &Backup| backup.send(&[]).event("result");
    assert_eq!(whole(&backup)["exit"], 0);
    backup.night("nothing changed", 0, 0, |backup| {
        let result = whole(backup);
        assert_eq!(result["unchanged_files"], FILE_COUNT, "{result}");
        result
    });
    assert_same(&backup.tree(), &backup.copy());

    (0..50).for_each(|number| backup.write(number, 20_000));
    (FILE_COUNT..FILE_COUNT + 50).for_each(|number| backup.write(number, 20_000));
    backup.night("100 files edited or new", 2_000_000, 0, whole);
    assert_same(&backup.tree(), &backup.copy());

    // What is gone here stays there.
    let gone = backup.tree().join("07/file0007");
    let text = fs::read(&gone).unwrap();
    fs::remove_file(&gone).unwrap();
    backup.night("a file deleted", 0, 0, whole);
    assert_eq!(fs::read(backup.copy().join("07/file0007")).unwrap(), text);

    // Until the backup is told to mirror. Excluded files of the receiver stay in any case.
    let log = backup.copy().join("07/night.log");
    fs::write(&log, "mine").unwrap();
    let mirror = |backup: &Backup| backup.send(&["--delete", "--exclude", "*.log"]).event("result");
    backup.night("the deleted file goes", 0, 0, |backup| {
        let result = mirror(backup);
        assert_eq!(result["deleted_entries"], 1, "{result}");
        let trash = backup.place.path().join("in").join(result["trash"].as_str().unwrap());
        assert_eq!(fs::read(trash.join("tree/07/file0007")).unwrap(), text);
        result
    });
    fs::remove_file(&log).unwrap();
    fs::File::open(backup.copy().join("07"))
        .unwrap()
        .set_modified(modified(&backup.tree().join("07")))
        .unwrap();
    assert_same(&backup.tree(), &backup.copy());

    let (mine, theirs) = (backup.tree().join("08/file0008"), backup.copy().join("08/file0008"));
    fs::write(&theirs, "newer").unwrap();
    let newer = fs::File::options().write(true).open(&theirs).unwrap();
    newer.set_modified(modified(&mine) + Duration::from_secs(1)).unwrap();
    backup.night("a file newer at the receiver", 0, 4, whole);
    assert_eq!(fs::read(&theirs).unwrap(), b"newer");
    let replace = |backup: &Backup| backup.send(&["--replace-newer"]).event("result");
    backup.night("the newer file is replaced", FILE_LEN as u64, 0, replace);

    let length = 10_000_000;
    backup.write(9, length);
    backup.night(
        "killed in the middle, and gone on",
        length as u64 + UNCHANGED_COST * FILE_COUNT,
        0,
        |backup| {
            let mut sender = backup.send(&["--bwlimit", "20Mbit"]);
            while sender.event("progress")["bytes"].as_u64() < Some(length as u64 / 3) {}
            sender.signal("KILL");
            sender.end();
            whole(backup)
        },
    );
    assert_same(&backup.tree(), &backup.copy());
    Ok(())
}
