//! A transfer that is broken off, then damage to what either side keeps of it on its disk, then the
//! same again: whatever journals and unfinished files hold, the tree arrives as it is.
#![no_main]

use byway_files::{Journals, Report, Reports, Sink, SinkOptions, Source, SourceOptions, Written, compare};
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

#[derive(Arbitrary, Debug)]
struct Story {
    tries: Vec<Try>,
}

#[derive(Arbitrary, Debug)]
struct Try {
    /// Pieces that travel before both are killed.
    pieces: u8,
    damage: Vec<Damage>,
}

#[derive(Arbitrary, Debug)]
struct Damage {
    /// The sender's journals, or what the receiver has.
    sender: bool,
    file: u8,
    what: What,
}

#[derive(Arbitrary, Debug)]
enum What {
    Change { at: u16, to: u8 },
    Swap { from: u16, to: u16 },
    Length(u16),
    Remove,
    Replace(Vec<u8>),
}

const PIECE: u64 = 64 << 10;

fn place() -> PathBuf {
    let memory = Path::new("/dev/shm");
    let above = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    above.join(format!("byway-fuzz-journals-{}", std::process::id()))
}

/// A tree: several chunks, one chunk, chunks that are holes, nothing.
fn plant(tree: &Path) {
    fs::create_dir_all(tree.join("d")).expect("a directory");
    let contents: Vec<u8> = (0..700_000u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 11) as u8).collect();
    fs::write(tree.join("large"), &contents).expect("a file");
    fs::write(tree.join("d/small"), &contents[..10_000]).expect("a file");
    fs::write(tree.join("empty"), "").expect("a file");
    let sparse = File::create(tree.join("d/sparse")).expect("a file");
    sparse.set_len(1_500_000).expect("a length");
    sparse.write_all_at(&contents[..1_000], 600_000).expect("a piece");
}

/// Sends until so many pieces travelled; whether it came to its end.
fn send(top: &Path, mut pieces: u64) -> bool {
    let journals = Journals::open(&top.join("journals")).expect("nobody else has them");
    let tree = [top.join("tree")];
    let mut source =
        Source::open(&tree, SourceOptions::default()).expect("it is there").with_journals(journals);
    let options = SinkOptions { sync: false, ..SinkOptions::default() };
    let mut sink = Sink::open(&top.join("in"), options).expect("nobody else has it");
    let mut reports = Reports::new();
    for _ in 0..1_000 {
        let batch = source.next_records(1 << 16, 100);
        sink.records(&batch.bytes).expect("an honest manifest");
        for object in batch.objects {
            let mut offset = 0;
            while offset < object.size {
                if pieces == 0 {
                    return false;
                }
                pieces -= 1;
                let bytes = source.read(object.id, offset, PIECE as usize).expect("it was announced");
                let written = sink.write(object.id, offset, &bytes).expect("there is room");
                assert_ne!(written, Written::Pending);
                offset += PIECE;
            }
            sink.finish(object.id).expect("there is room");
        }
        while sink.work(1 << 20).expect("there is room") {}
        for report in reports.feed(&sink.reports()).expect("honest reports") {
            match report {
                Report::Verified { object } => source.release(object),
                Report::Have { object, first, hashes, placed, last } => {
                    source.have(object, first, &hashes, placed, last).expect("an honest answer");
                }
                Report::Done { failed: 0, .. } => {
                    source.forget_journals();
                    return true;
                }
                report => panic!("{report:?}"),
            }
        }
    }
    panic!("no end");
}

fn files(directory: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}

fn damage(top: &Path, damage: &Damage) {
    let mut found = Vec::new();
    files(&top.join(if damage.sender { "journals" } else { "in" }), &mut found);
    found.sort();
    if found.is_empty() {
        return;
    }
    let path = &found[usize::from(damage.file) % found.len()];
    let mut bytes = fs::read(path).expect("a file");
    // Headers and slots of journals are in the first few hundred bytes.
    let at = |at: u16| if at & 1 == 0 { usize::from(at >> 1) % 300 } else { usize::from(at) * 16 };
    match &damage.what {
        What::Change { at: place, to } => {
            bytes.iter_mut().skip(at(*place)).take(1).for_each(|byte| *byte = *to)
        }
        What::Swap { from, to } if at(*from) < bytes.len() && at(*to) < bytes.len() => {
            bytes.swap(at(*from), at(*to));
        }
        What::Swap { .. } => {}
        What::Length(length) => bytes.resize(at(*length), 0),
        What::Remove => {
            fs::remove_file(path).expect("a file");
            return;
        }
        What::Replace(with) => bytes = with.clone(),
    }
    // In place: times of journals are told by what is in them.
    let file = File::options().write(true).open(path).expect("a file");
    file.set_len(bytes.len() as u64).expect("a length");
    file.write_all_at(&bytes, 0).expect("there is room");
}

fuzz_target!(|story: Story| {
    let top = place();
    let _ = fs::remove_dir_all(&top);
    plant(&top.join("tree"));
    for attempt in story.tries.iter().take(4) {
        if send(&top, (attempt.pieces % 40).into()) {
            return;
        }
        attempt.damage.iter().take(20).for_each(|one| damage(&top, one));
    }
    assert!(send(&top, u64::MAX));
    let differences = compare(&top.join("tree"), &top.join("in/tree")).expect("both are there");
    assert!(differences.is_empty(), "{differences:?}");
});
