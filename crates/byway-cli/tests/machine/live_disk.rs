//! A sink whose disk is full.
//!
//! Needs root, to mount a small disk; otherwise the test is reported as ignored.

use super::files::small_disk;
use crate::common::machine::{PATIENCE, is_root, missing, test, wait_for};
use crate::common::{Place, Running};
use libtest_mimic::{Failed, Trial};
use std::fs::{self, File};

/// Bytes of the disk, and of a file on it that is not the sink's.
const DISK: u64 = 1 << 20;
const BALLAST: usize = 700 << 10;
/// Records, of 100 bytes each: less than the disk holds, and more than it does beside the ballast.
const RECORDS: usize = 6_000;

pub fn tests() -> Vec<Trial> {
    let lacks = missing(is_root(), "it needs root to mount a disk");
    vec![test("live_disk::a_full_disk_is_told_and_the_sink_goes_on_when_there_is_room", lacks, full_disk)]
}

fn full_disk() -> Result<(), Failed> {
    let place = Place::new();
    let out = place.path("out");
    let _disk = small_disk(&out, DISK).ok_or("no disk can be mounted")?;
    fs::write(out.join("ballast"), vec![7; BALLAST])?;
    let records: String = (0..RECORDS).map(|number| format!("{number:09} {}\n", "x".repeat(89))).collect();
    fs::write(place.path("records"), &records)?;
    let out_word = out.display().to_string();
    let mut sink =
        Running::start(place.command("sink", &["sink", &out_word, "--listen", "127.0.0.1:0", "--json"]));
    let ticket = sink.event("ready")["ticket"].as_str().ok_or("no ticket")?.to_owned();
    let arguments = ["source", "--name", "radar7", "--to", &ticket, "--demand", "10M", "--json"];
    let mut command = place.command("source", &arguments);
    command.stdin(File::open(place.path("records"))?);
    let mut source = Running::start(command);
    // Another warning is that only this host can send to it.
    let warning = loop {
        let warning = sink.event("warning")["message"].as_str().unwrap_or_default().to_owned();
        if warning.contains("cannot write") {
            break warning;
        }
    };
    assert!(warning.contains("radar7"), "{warning}");
    assert!(warning.contains("sources are held back until it can be written"), "{warning}");
    let held_back = wait_for(PATIENCE, || {
        let event = source.event("source");
        let (written, waiting) = (event["written_records"].as_u64()?, event["lag_records"].as_u64()?);
        (written > 0 && waiting > 0).then_some(written as usize)
    });
    assert!(held_back.is_some_and(|written| written < RECORDS), "{held_back:?}");
    fs::remove_file(out.join("ballast"))?;
    let result = source.event("result");
    assert_eq!((&result["exit"], &result["written_records"][0]), (&0.into(), &RECORDS.into()));
    assert!(fs::read_to_string(out.join("radar7"))? == records, "the records differ");
    sink.signal("TERM");
    sink.end().succeeded();
    Ok(())
}
