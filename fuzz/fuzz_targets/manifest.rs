//! A sender without scruples: any records in any order, bytes wherever they like, and what an
//! earlier try left below. Nothing is written beside the sink, and nothing stands under a final
//! name but contents whose hash was told.
#![no_main]

use byway_files::manifest::{ComparePlan, MANIFEST_VERSION, Record, RecordCodec};
use byway_files::{Counts, Metadata, Sink, SinkOptions, Timestamp};
use byway_wire::ObjectId;
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

#[derive(Arbitrary, Debug)]
enum Step {
    Directory {
        path: u8,
        mode: u16,
    },
    Symlink {
        path: u8,
        target: u8,
    },
    File {
        path: u8,
        size: u8,
        mode: u16,
    },
    /// A further name of a file, or of nothing.
    HardLink {
        path: u8,
        first: u8,
        size: u8,
    },
    /// The right hash, or another file's.
    Hash {
        object: u8,
        of: u8,
    },
    Withdrawn(u8),
    Compare {
        resumes: bool,
        contents: bool,
        replaces_newer: bool,
        deletes: bool,
    },
    Filter {
        excludes: bool,
        pattern: Vec<u8>,
    },
    Root(u8),
    Keep(u8),
    End {
        honest: bool,
    },
    /// PARTS or HOLES, from whatever bytes.
    Ranges {
        parts: bool,
        object: u8,
        bytes: [u8; 4],
    },
    Raw(Vec<u8>),
    Write {
        object: u8,
        offset: u8,
        length: u8,
    },
    /// All of it, as it should be.
    Fill(u8),
    Finish(u8),
    Work(u8),
    /// The process is killed, and another one takes the transfer up.
    Again,
}

const PATHS: [&[u8]; 13] = [
    b"a",
    b"b",
    b"a/b",
    b"a/b/c",
    b"..",
    b"../x",
    b"/x",
    b"",
    b"l",
    b"l/x",
    b".byway-partial/x",
    b".byway-trash/x",
    b"a//b",
];
const TARGETS: [&[u8]; 5] = [b"..", b"../outside", b"/", b"a", b""];
/// Below and above a chunk, whose bounds are what differs.
const SIZES: [u64; 6] = [0, 1, 5_000, 262_144, 262_145, 600_000];

fn contents(object: u32, size: u64) -> Vec<u8> {
    (0..size).map(|at| (at.wrapping_mul(31) ^ (at >> 9) ^ u64::from(object) * 77) as u8).collect()
}

fn place() -> PathBuf {
    let memory = Path::new("/dev/shm");
    let above = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    above.join(format!("byway-fuzz-manifest-{}", std::process::id()))
}

fn check(directory: &Path, told: &BTreeSet<[u8; 32]>) {
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        let kind = path.symlink_metadata().expect("it is there").file_type();
        if kind.is_dir() && !path.ends_with(".byway-partial") {
            check(&path, told);
        } else if kind.is_file() {
            let hash = *blake3::hash(&fs::read(&path).expect("a file")).as_bytes();
            assert!(told.contains(&hash), "{} is what nobody told", path.display());
        }
    }
}

fuzz_target!(|steps: Vec<Step>| {
    let top = place();
    let _ = fs::remove_dir_all(&top);
    fs::create_dir_all(top.join("outside")).expect("a directory");
    let inside = top.join("inside");
    let open = || {
        let options = SinkOptions { sync: false, open_files: 3, ..SinkOptions::default() };
        Sink::open(&inside, options).expect("nobody else has it")
    };
    let mut sink = open();
    let mut told: BTreeSet<[u8; 32]> = BTreeSet::new();
    let (mut counts, mut sizes, mut begun) = (Counts::default(), Vec::<u64>::new(), false);
    let mut codec = RecordCodec::default();
    for step in steps.iter().take(200) {
        let mut bytes = Vec::new();
        let metadata = |mode: u16| Metadata {
            mode: mode & 0o7777 | 0o700,
            mtime: Timestamp { seconds: 1_000, nanoseconds: 1 },
        };
        let path = |index: u8| PATHS[usize::from(index) % PATHS.len()];
        if !std::mem::replace(&mut begun, true) {
            codec.encode(&Record::Start { version: MANIFEST_VERSION }, &mut bytes);
        }
        match step {
            Step::Directory { path: at, mode } => {
                counts.directories += 1;
                codec.encode(&Record::Directory { metadata: metadata(*mode), path: path(*at) }, &mut bytes);
            }
            Step::Symlink { path: at, target } => {
                counts.symlinks += 1;
                let target = TARGETS[usize::from(*target) % TARGETS.len()];
                codec.encode(
                    &Record::Symlink { mtime: metadata(0).mtime, path: path(*at), target },
                    &mut bytes,
                );
            }
            Step::File { path: at, size, mode } => {
                let (object, size) = (ObjectId(sizes.len() as u32), SIZES[usize::from(*size) % SIZES.len()]);
                counts.files += 1;
                counts.bytes += size;
                sizes.push(size);
                codec.encode(
                    &Record::File { object, size, metadata: metadata(*mode), path: path(*at) },
                    &mut bytes,
                );
            }
            Step::HardLink { path: at, first, size } => {
                counts.files += 1;
                let size = SIZES[usize::from(*size) % SIZES.len()];
                let (mtime, path, first) = (metadata(0).mtime, path(*at), path(*first));
                codec.encode(&Record::HardLink { size, mtime, path, first }, &mut bytes);
            }
            Step::Hash { object, of } => {
                let of = u32::from(*of) % 8;
                let size = sizes.get(of as usize).copied().unwrap_or(1);
                let hash = *blake3::hash(&contents(of, size)).as_bytes();
                told.insert(hash);
                codec.encode(&Record::Hash { object: ObjectId((*object % 8).into()), hash }, &mut bytes);
            }
            Step::Withdrawn(object) => {
                let why = byway_files::manifest::Withdrawal::Changed;
                codec.encode(&Record::Withdrawn { object: ObjectId((*object % 8).into()), why }, &mut bytes);
            }
            Step::Compare { resumes, contents, replaces_newer, deletes } => {
                let plan = ComparePlan {
                    resumes: *resumes,
                    contents: *contents,
                    replaces_newer: *replaces_newer,
                    deletes: *deletes,
                    expects_newer: *deletes != *contents,
                };
                codec.encode(&Record::Compare(plan), &mut bytes);
            }
            Step::Filter { excludes, pattern } => {
                let pattern = pattern.get(..100).unwrap_or(pattern);
                codec.encode(&Record::Filter { excludes: *excludes, pattern }, &mut bytes);
            }
            Step::Root(at) => codec.encode(&Record::Root { path: path(*at) }, &mut bytes),
            Step::Keep(at) => codec.encode(&Record::Keep { path: path(*at) }, &mut bytes),
            Step::End { honest } => {
                codec.encode(&Record::End(if *honest { counts } else { Counts::default() }), &mut bytes)
            }
            Step::Ranges { parts, object, bytes: ranges } => {
                let body = match parts {
                    true => [&[PARTS, object % 8][..], ranges].concat(),
                    false => [&[HOLES][..], ranges].concat(),
                };
                if let Ok(record) = RecordCodec::default().decode(&body) {
                    codec.encode(&record, &mut bytes);
                }
            }
            Step::Raw(raw) => bytes.extend(raw),
            Step::Write { object, offset, length } => {
                let data = vec![*length; usize::from(*length) * 64];
                let at = u64::from(*offset) * 4_096;
                sink.write(ObjectId((*object % 8).into()), at, &data).expect("there is room");
            }
            Step::Fill(object) => {
                let object = u32::from(object % 8);
                let all = contents(object, sizes.get(object as usize).copied().unwrap_or(0));
                for (index, piece) in all.chunks(100_000).enumerate() {
                    let at = index as u64 * 100_000;
                    sink.write(ObjectId(object), at, piece).expect("there is room");
                }
                sink.finish(ObjectId(object)).expect("there is room");
            }
            Step::Finish(object) => {
                sink.finish(ObjectId((*object % 8).into())).expect("there is room");
            }
            Step::Work(budget) => {
                sink.work(u64::from(*budget) << 12).expect("there is room");
            }
            Step::Again => {
                drop(sink);
                sink = open();
                (counts, begun, codec) = (Counts::default(), false, RecordCodec::default());
                sizes.clear();
                continue;
            }
        }
        let broken = sink.records(&bytes).is_err();
        sink.reports();
        if broken {
            break;
        }
    }
    while sink.work(1 << 20).expect("there is room") {
        sink.reports();
    }
    drop(sink);
    check(&inside, &told);
    let beside: Vec<_> =
        fs::read_dir(&top).expect("a directory").map(|it| it.expect("it").file_name()).collect();
    assert_eq!(beside.len(), 2, "{beside:?}");
    assert_eq!(fs::read_dir(top.join("outside")).expect("a directory").count(), 0);
});

const PARTS: u8 = 7;
const HOLES: u8 = 9;
