//! A receiver without scruples: any reports in any order. The sender gives nothing but the bytes of
//! its files, never past their ends, and the stream of its records can be read to its end.
#![no_main]

use byway_files::manifest::{Record, RecordCodec};
use byway_files::{ObjectRange, Report, Reports, Source, SourceOptions};
use byway_wire::{DecodeError, ObjectId};
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

#[derive(Arbitrary, Debug)]
enum Step {
    /// The sender goes on.
    Next {
        limit: u16,
        objects: u8,
    },
    Read {
        object: u8,
        offset: u32,
        length: u16,
    },
    Verified(u8),
    Same {
        first: u8,
        count: u8,
    },
    Wanted {
        first: u8,
        count: u8,
    },
    /// Chunks that are the file's own where a bit is set.
    Have {
        object: u8,
        first: u8,
        own: u8,
        count: u8,
        placed: bool,
        last: bool,
    },
    Raw(Vec<u8>),
}

/// Below and above a chunk, whose bounds are what differs.
const SIZES: [usize; 6] = [0, 1, 5_000, 262_144, 262_145, 600_000];
const CHUNK_LEN: usize = 262_144;

fn contents(file: usize) -> Vec<u8> {
    (0..SIZES[file]).map(|at| (at.wrapping_mul(31) ^ (at >> 9) ^ (file * 77)) as u8).collect()
}

/// The tree, made once. Its files are named in the order of their numbers.
fn tree() -> &'static (PathBuf, Vec<Vec<u8>>) {
    static TREE: OnceLock<(PathBuf, Vec<Vec<u8>>)> = OnceLock::new();
    TREE.get_or_init(|| {
        let memory = Path::new("/dev/shm");
        let above = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let tree = above.join(format!("byway-fuzz-reports-{}", std::process::id()));
        fs::create_dir_all(&tree).expect("a directory");
        let files: Vec<Vec<u8>> = (0..SIZES.len()).map(contents).collect();
        for (number, file) in files.iter().enumerate() {
            fs::write(tree.join(number.to_string()), file).expect("a file");
        }
        (tree, files)
    })
}

/// What the sender takes a report for, as its reading thread does.
fn take(source: &mut Source, report: Report) -> Result<(), DecodeError> {
    match report {
        Report::Have { object, first, hashes, placed, last } => {
            source.have(object, first, &hashes, placed, last)
        }
        Report::Same(objects) => source.same(objects),
        Report::Wanted(objects) => source.wanted(objects),
        Report::Verified { object } | Report::Failed { object, .. } => {
            source.release(object);
            Ok(())
        }
        _ => Ok(()),
    }
}

fuzz_target!(|steps: Vec<Step>| {
    let (tree, files) = tree();
    let options = SourceOptions { open_files: 2, ..SourceOptions::DEFAULT };
    let mut source = Source::open(&[tree.join(".")], options).expect("it is there");
    let (mut reports, mut codec) = (Reports::new(), RecordCodec::default());
    let (mut stream, mut sizes) = (Vec::new(), BTreeMap::new());
    let range = |first: u8, count: u8| ObjectRange {
        first: ObjectId((first % 8).into()),
        count: u32::from(count % 8),
    };
    for step in steps.iter().take(200) {
        let said = match step {
            Step::Next { limit, objects } => {
                let batch = source.next_records(usize::from(*limit), usize::from(*objects));
                stream.extend(batch.bytes);
                for new in batch.objects {
                    assert!(new.size <= SIZES[new.id.0 as usize] as u64);
                    sizes.insert(new.id, new.size);
                }
                Ok(())
            }
            Step::Read { object, offset, length } => {
                let object = ObjectId((*object % 8).into());
                let read = source.read(object, (*offset).into(), (*length).into());
                // The caller asks for no object before it was handed out.
                if let (Ok(bytes), Some(size)) = (read, sizes.get(&object)) {
                    let left = size.saturating_sub((*offset).into());
                    assert!(bytes.len() as u64 <= left.min((*length).into()));
                    let file = &files[object.0 as usize];
                    // What the receiver says that it has is left out of an object.
                    if *size == file.len() as u64 {
                        let rest = file.get(*offset as usize..).unwrap_or_default();
                        assert!(rest.starts_with(&bytes), "other bytes than the file's");
                    }
                }
                Ok(())
            }
            Step::Verified(object) => {
                take(&mut source, Report::Verified { object: ObjectId((*object % 8).into()) })
            }
            Step::Same { first, count } => take(&mut source, Report::Same(range(*first, *count))),
            Step::Wanted { first, count } => take(&mut source, Report::Wanted(range(*first, *count))),
            Step::Have { object, first, own, count, placed, last } => {
                let chunks = files[usize::from(*object) % files.len()].chunks(CHUNK_LEN);
                let hash = |(index, chunk): (usize, &[u8])| match own >> (index % 8) & 1 {
                    1 => *blake3::hash(chunk).as_bytes(),
                    _ => [*own; 32],
                };
                let hashes = chunks.enumerate().map(hash).cycle().take(usize::from(*count % 5)).collect();
                let (object, first) = (ObjectId((*object % 8).into()), u32::from(*first % 4));
                take(&mut source, Report::Have { object, first, hashes, placed: *placed, last: *last })
            }
            Step::Raw(raw) => reports
                .feed(raw)
                .and_then(|all| all.into_iter().try_for_each(|report| take(&mut source, report))),
        };
        if said.is_err() {
            return;
        }
    }
    let mut rest = stream.as_slice();
    while let Some((length, after)) = rest.split_first_chunk::<2>() {
        let Some((body, after)) = after.split_at_checked(u16::from_be_bytes(*length).into()) else { break };
        if let Record::File { size, path, .. } = codec.decode(body).expect("the sender's own record") {
            let number: usize = std::str::from_utf8(path).expect("a digit").parse().expect("a number");
            assert_eq!(size, SIZES[number] as u64);
        }
        rest = after;
    }
});
