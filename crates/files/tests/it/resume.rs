//! Transfers that break off and are taken up again, without a network.

use crate::common::{Cut, PLAIN, attempt, same, untouched};
use byway_files::{Journals, generate};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const MIB: u64 = 1 << 20;

/// A sender's directory, a receiver's, and the sender's journals.
struct Place {
    top: TempDir,
}

impl Place {
    fn new() -> Self {
        let top = tempfile::tempdir().unwrap();
        fs::create_dir(top.path().join("from")).unwrap();
        Self { top }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.top.path().join(name)
    }

    fn big(&self, size: u64) -> PathBuf {
        let contents: Vec<u8> =
            (0..size as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 11) as u8).collect();
        fs::write(self.at("from/big"), contents).unwrap();
        self.at("from/big")
    }

    fn attempt(&self, cut: Cut, stop: u64) -> crate::common::Outcome {
        let journals = self.at("state/journals");
        attempt(&[self.at("from/.")], &self.at("into"), cut, Some(&journals), stop, &mut untouched)
    }

    fn same(&self) {
        same(&self.at("from"), &self.at("into"));
        assert!(!self.at("state/journals").exists(), "nothing is kept of a transfer that is complete");
    }
}

/// The only partial file.
fn partial(into: &Path) -> PathBuf {
    let transfer = fs::read_dir(into.join(".byway-partial")).unwrap().next().unwrap().unwrap().path();
    let mut names = fs::read_dir(transfer).unwrap().map(|entry| entry.unwrap().path());
    names.find(|path| path.extension().is_none()).unwrap()
}

#[test]
fn only_what_is_missing_travels() {
    let place = Place::new();
    place.big(16 * MIB + 5);
    for stop in [5 * MIB, 5 * MIB] {
        assert!(place.attempt(PLAIN, stop).done.is_none());
    }
    let outcome = place.attempt(PLAIN, u64::MAX);
    // Of a piece of 64 KiB that ends in a chunk that is not complete, that chunk travels again.
    assert_eq!((outcome.travelled, outcome.kept), (6 * MIB + 5, 10 * MIB));
    place.same();
}

#[test]
fn pieces_in_another_order_lose_no_more_than_the_chunks_that_they_are_in() {
    let place = Place::new();
    place.big(32 * MIB);
    let cut = Cut { piece: 50_000, window: 60, seed: 3, ..PLAIN };
    assert!(place.attempt(cut, 20 * MIB).done.is_none());
    let outcome = place.attempt(cut, u64::MAX);
    assert!(outcome.travelled < 12 * MIB + 60 * 256 * 1_024, "{outcome:?}");
    assert_eq!(outcome.travelled + outcome.kept, 32 * MIB);
    place.same();
}

#[test]
fn a_tree_broken_off_again_and_again_arrives_as_it_is_and_travels_once() {
    let place = Place::new();
    generate(&place.at("from"), 9, 30_000_000).unwrap();
    let (mut travelled, mut rounds) = (0, 0);
    loop {
        rounds += 1;
        let outcome = place.attempt(Cut { seed: rounds, ..PLAIN }, 3_000_000);
        travelled += outcome.travelled;
        if outcome.done.is_some() {
            break;
        }
        assert!(rounds < 20);
    }
    assert!(rounds > 8, "{rounds}");
    // Each break loses at most what is in an incomplete chunk.
    assert!(travelled <= 30_000_000 + rounds * 2 * 256 * 1_024, "{travelled} in {rounds} rounds");
    place.same();
}

#[test]
fn a_source_that_changed_is_sent_anew() {
    type Change = fn(&Path);
    let changes: [(Change, u64); 3] = [
        // Another time; another size; other contents under the same size and time.
        (
            |path| {
                File::options().write(true).open(path).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap()
            },
            8,
        ),
        (|path| File::options().append(true).open(path).unwrap().write_at(b"x", 0).map(drop).unwrap(), 8),
        (
            |path| {
                let file = File::options().write(true).open(path).unwrap();
                let modified = file.metadata().unwrap().modified().unwrap();
                file.write_all_at(b"other", MIB / 2).unwrap();
                file.set_modified(modified).unwrap();
            },
            4,
        ),
    ];
    for (change, mebibytes) in changes {
        let place = Place::new();
        let path = place.big(8 * MIB);
        place.attempt(PLAIN, 4 * MIB);
        change(&path);
        let outcome = place.attempt(PLAIN, u64::MAX);
        let changed = if mebibytes == 4 { 256 << 10 } else { 0 };
        assert!(outcome.travelled.abs_diff(mebibytes * MIB + changed) < 2, "{outcome:?}");
        place.same();
    }
}

#[test]
fn a_destination_that_was_tampered_with_is_made_good() {
    let place = Place::new();
    place.big(8 * MIB);
    place.attempt(PLAIN, 4 * MIB);
    let file = File::options().write(true).open(partial(&place.at("into"))).unwrap();
    file.write_all_at(b"evil", MIB).unwrap();
    let outcome = place.attempt(PLAIN, u64::MAX);
    assert_eq!(outcome.travelled, 4 * MIB + (256 << 10));
    place.same();
    // One that is in place already, while another file of the transfer is not.
    let place = Place::new();
    place.big(2 * MIB);
    fs::write(place.at("from/last"), vec![7; MIB as usize]).unwrap();
    assert!(place.attempt(Cut { objects: 1, ..PLAIN }, 2 * MIB + MIB / 2).done.is_none());
    let into = place.at("into/big");
    let modified = into.metadata().unwrap().modified().unwrap();
    let file = File::options().write(true).open(&into).unwrap();
    file.write_all_at(b"evil", MIB).unwrap();
    file.set_modified(modified).unwrap();
    let outcome = place.attempt(Cut { contents: true, ..PLAIN }, u64::MAX);
    assert_eq!(outcome.travelled, 2 * MIB + MIB / 2);
    place.same();
}

#[test]
fn a_transfer_that_was_complete_costs_nothing_to_repeat() {
    let place = Place::new();
    generate(&place.at("from"), 4, 3_000_000).unwrap();
    assert!(place.attempt(PLAIN, u64::MAX).done.is_some());
    // As if the sender had been killed before it heard of it.
    drop(Journals::open(&place.at("state/journals")).unwrap());
    let outcome = place.attempt(PLAIN, u64::MAX);
    assert_eq!((outcome.travelled, outcome.kept), (0, 3_000_000));
    place.same();
}

#[test]
fn a_sender_without_its_journals_still_resumes_and_two_at_once_do_not() {
    let place = Place::new();
    place.big(4 * MIB);
    place.attempt(PLAIN, 2 * MIB);
    for entry in fs::read_dir(place.at("state/journals")).unwrap() {
        fs::write(entry.unwrap().path(), "damaged").unwrap();
    }
    let journals = Journals::open(&place.at("state/journals")).unwrap();
    let second = Journals::open(&place.at("state/journals"));
    assert_eq!(second.unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    drop(journals);
    let outcome = place.attempt(PLAIN, u64::MAX);
    assert_eq!(outcome.travelled, 2 * MIB);
    place.same();
}

#[test]
fn holes_do_not_travel_nor_do_they_hide_what_somebody_put_there() {
    let place = Place::new();
    let file = File::create(place.at("from/disk")).unwrap();
    file.set_len(64 * MIB).unwrap();
    for at in [0, 20 * MIB, 63 * MIB] {
        file.write_all_at(&vec![at as u8 | 1; MIB as usize], at).unwrap();
    }
    File::create(place.at("from/empty")).unwrap().set_len(32 * MIB + 1).unwrap();
    assert!(place.attempt(PLAIN, 2 * MIB).done.is_none());
    let disk = fs::read_dir(partial(&place.at("into")).parent().unwrap()).unwrap();
    let disk =
        disk.map(|entry| entry.unwrap().path()).find(|path| path.metadata().unwrap().len() == 64 * MIB);
    let tampered = File::options().write(true).open(disk.unwrap()).unwrap();
    tampered.write_all_at(b"evil", 40 * MIB).unwrap();
    let outcome = place.attempt(PLAIN, u64::MAX);
    assert_eq!((outcome.travelled, outcome.verified), (MIB, 1));
    assert_eq!(outcome.kept, 2 * MIB + 32 * MIB + 1, "the empty disk was in place");
    for name in ["disk", "empty"] {
        let stored = std::os::unix::fs::MetadataExt::blocks(&place.at("into").join(name).metadata().unwrap());
        assert!(stored * 512 <= 4 * MIB, "{name} takes {stored} blocks");
    }
    place.same();
    // In place, and asked about again.
    drop(Journals::open(&place.at("state/journals")).unwrap());
    let outcome = place.attempt(PLAIN, u64::MAX);
    assert_eq!((outcome.travelled, outcome.kept), (0, 96 * MIB + 1));
}
