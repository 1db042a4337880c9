//! Whole transfers without a network. They have a source, its objects cut into pieces and shuffled,
//! a sink, and reports back.
#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "a test that fails says so; each test binary uses its part"
)]

use byway_files::{
    Difference, Finish, Journals, Modes, NotCopied, Reason, Report, Reports, Sink, SinkOptions, Source,
    SourceOptions, TreeSelection, WarningKind, Written, compare,
};
use byway_wire::ObjectId;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How a transfer is cut up.
#[derive(Clone, Copy, Debug)]
pub struct Cut {
    /// Bytes of a manifest batch.
    pub batch: usize,
    /// Objects announced per batch.
    pub objects: usize,
    /// Bytes of a piece of an object.
    pub piece: usize,
    /// Pieces held to be shuffled.
    pub window: usize,
    pub seed: u64,
    /// Whether contents are compared where size and time are the same.
    pub contents: bool,
    /// Whether further names of a file are sent as such.
    pub hard_links: bool,
    /// Whether the receiver deletes what the sender has not.
    pub deletes: bool,
    /// Patterns of what is left out.
    pub excluded: &'static [&'static str],
}

pub const PLAIN: Cut = Cut {
    batch: 16 << 10,
    objects: 64,
    piece: 64 << 10,
    window: 1,
    seed: 1,
    contents: false,
    hard_links: false,
    deletes: false,
    excluded: &[],
};

pub const MIRROR: Cut = Cut { deletes: true, ..PLAIN };

/// What may be done to a piece on its way.
pub type Meddle<'a> = &'a mut dyn FnMut(ObjectId, u64, &mut Vec<u8>);

#[derive(Debug, Default)]
pub struct Outcome {
    pub verified: usize,
    pub failed: Vec<(ObjectId, Reason)>,
    /// Links that the receiver refused.
    pub refused: Vec<(Vec<u8>, Reason)>,
    pub done: Option<(u64, u64, u64)>,
    pub warnings: Vec<WarningKind>,
    pub unsent: u64,
    /// Bytes of objects that travelled, and that the sender says did not have to.
    pub travelled: u64,
    pub kept: u64,
    pub unchanged: u64,
    pub not_copied: NotCopied,
    /// How many entries the receiver moved to its trash, and what it refused to move or make.
    pub deleted: u64,
    pub stayed: Vec<(String, Reason)>,
}

/// A whole transfer.
pub fn transfer(paths: &[PathBuf], into: &Path, cut: Cut, meddle: Meddle<'_>) -> Outcome {
    attempt(paths, into, cut, None, u64::MAX, meddle)
}

/// Runs a transfer and breaks it off once about `stop` bytes have travelled, as if both processes
/// were killed. The sender keeps its journals in the directory `journals`.
pub fn attempt(
    paths: &[PathBuf],
    into: &Path,
    cut: Cut,
    journals: Option<&Path>,
    stop: u64,
    meddle: Meddle<'_>,
) -> Outcome {
    let options = SourceOptions {
        open_files: 4,
        compares_contents: cut.contents,
        hard_links: cut.hard_links,
        deletes: cut.deletes,
        replaces_newer: cut.deletes,
        ..SourceOptions::default()
    };
    let mut selection = TreeSelection::default();
    cut.excluded.iter().for_each(|pattern| selection.filter.add(pattern.as_bytes(), true).unwrap());
    let mut source = Source::open(paths, options).unwrap().select(Arc::new(selection));
    if let Some(path) = journals {
        source = source.with_journals(Journals::open(path).unwrap());
    }
    // Trees are compared with their modes: what a mask takes away has tests of its own.
    let modes = Modes::Masked(0);
    let mut sink =
        Sink::open(into, SinkOptions { modes, open_files: 4, sync: false, ..SinkOptions::default() })
            .unwrap();
    let (mut reports, mut outcome) = (Reports::new(), Outcome::default());
    let mut seed = cut.seed | 1;
    let mut random = |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed as usize % below
    };
    // Pieces to be sent. Each has its object, offset and length. Then comes whether the object was
    // told finished after its last one.
    let mut pieces: Vec<(ObjectId, u64, usize)> = Vec::new();
    let mut left: std::collections::BTreeMap<ObjectId, u64> = std::collections::BTreeMap::new();
    for _ in 0..1_000_000 {
        let batch = source.next_records(cut.batch, cut.objects);
        for object in batch.objects {
            left.insert(object.id, object.size);
            let mut offset = 0;
            while offset < object.size {
                let length = (object.size - offset).min(cut.piece as u64);
                pieces.push((object.id, offset, length as usize));
                offset += length;
            }
        }
        // Some pieces overtake the records that announce them.
        for early in [true, false] {
            while !pieces.is_empty() && (!early || random(3) == 0) {
                let chosen = random(pieces.len().min(cut.window));
                let (object, offset, length) = pieces[chosen];
                let mut bytes = source.read(object, offset, length).unwrap();
                meddle(object, offset, &mut bytes);
                match sink.write(object, offset, &bytes).unwrap() {
                    Written::Pending => {
                        // Its record is not there yet, or only in part: a batch ends wherever its
                        // limit falls.
                        assert_eq!(sink.finish(object).unwrap(), Finish::Pending);
                        break;
                    }
                    Written::Stored | Written::Ignored => {}
                }
                pieces.remove(chosen);
                outcome.travelled += length as u64;
                if outcome.travelled >= stop {
                    return outcome;
                }
                let missing = left.get_mut(&object).unwrap();
                *missing -= length as u64;
                if *missing == 0 {
                    sink.finish(object).unwrap();
                }
                if pieces.len() < cut.window {
                    break;
                }
            }
            if early {
                for piece in batch.bytes.chunks(1 + random(700)) {
                    sink.records(piece).unwrap();
                }
            }
        }
        while sink.work(100_000).unwrap() {}
        for report in reports.feed(&sink.reports()).unwrap() {
            match report {
                Report::Verified { object } => {
                    outcome.verified += 1;
                    source.release(object);
                }
                Report::Failed { object, reason, .. } => {
                    outcome.failed.push((object, reason));
                    pieces.retain(|piece| piece.0 != object);
                    source.release(object);
                }
                Report::Refused { path, reason, .. } if cut.hard_links && !reason.is_of_deletion() => {
                    outcome.refused.push((path, reason));
                }
                Report::Refused { path, reason, .. } if cut.deletes => {
                    outcome.stayed.push((String::from_utf8(path).unwrap(), reason));
                }
                Report::Trashed { entries, folder } => {
                    outcome.deleted = entries;
                    assert!(into.join(".byway-trash").join(folder.to_string()).is_dir());
                }
                Report::Refused { .. } | Report::Limit { .. } | Report::Looked { .. } => panic!("{report:?}"),
                Report::Have { object, first, hashes, placed, last } => {
                    source.have(object, first, &hashes, placed, last).unwrap();
                }
                Report::Same(objects) => source.same(objects).unwrap(),
                Report::Wanted(objects) => source.wanted(objects).unwrap(),
                Report::Done { files, bytes, failed } => outcome.done = Some((files, bytes, failed)),
            }
        }
        if sink.is_complete() {
            assert!(source.is_finished());
            assert!(!into.join(".byway-partial").exists());
            outcome.warnings = source.warnings().into_iter().map(|warning| warning.kind).collect();
            outcome.unsent = source.unsent();
            outcome.kept = source.kept();
            outcome.unchanged = source.unchanged();
            outcome.not_copied = source.not_copied();
            assert_eq!(sink.summary().unchanged, outcome.unchanged);
            assert_eq!(sink.summary().kept, outcome.kept);
            assert_eq!(sink.summary().deleted, outcome.deleted);
            let undeleted = outcome.stayed.iter().filter(|(_, reason)| reason.is_of_deletion()).count();
            assert_eq!(sink.summary().undeleted, undeleted as u64);
            if outcome.failed.is_empty() {
                source.forget_journals();
            }
            return outcome;
        }
    }
    panic!("no end: {outcome:?}");
}

/// Waits until the clock of the file system has ticked, so that what was made before is older than
/// what is made from now on.
pub fn tick(directory: &Path) {
    let path = directory.join("tick");
    let made = || {
        std::fs::write(&path, "").unwrap();
        let metadata = path.metadata().unwrap();
        std::fs::remove_file(&path).unwrap();
        (metadata.ctime(), metadata.ctime_nsec())
    };
    let first = made();
    while made() == first {}
}

pub fn untouched(_: ObjectId, _: u64, _: &mut Vec<u8>) {}

#[track_caller]
pub fn same(a: &Path, b: &Path) {
    assert_eq!(compare(a, b).unwrap(), Vec::<Difference>::new());
}
