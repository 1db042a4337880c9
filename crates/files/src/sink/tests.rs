//! Attacks of a hostile sender.

mod deleting;
mod holes;
mod resume;
mod unchanged;

use super::*;
use crate::manifest::RecordCodec;
use crate::manifest::{ChunkRanges, Withdrawal};
use crate::{Counts, Reports, Timestamp};
use byway_engine::data::RangeSet;
use proptest::collection::vec;
use proptest::prelude::*;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use tempfile::TempDir;

const META: Metadata = Metadata { mode: 0o644, mtime: Timestamp { seconds: 1_000, nanoseconds: 1 } };

/// A malicious sender, and a directory beside the sink that must not change.
struct Host {
    top: TempDir,
    sink: Sink,
    codec: RecordCodec,
    counts: Counts,
}

/// A transfer that was begun before, by a sender that believes no size and no time.
const AGAIN: ComparePlan =
    ComparePlan { resumes: true, contents: true, replaces_newer: true, deletes: false, expects_newer: false };

impl Host {
    fn new() -> Self {
        let top = tempfile::tempdir().unwrap();
        fs::create_dir(top.path().join("outside")).unwrap();
        fs::write(top.path().join("outside/treasure"), "gold").unwrap();
        let sink = Sink::open(&top.path().join("sink"), SinkOptions::default()).unwrap();
        let mut host = Self { top, sink, codec: RecordCodec::default(), counts: Counts::default() };
        host.say(&Record::Start { version: MANIFEST_VERSION }).unwrap();
        host
    }

    fn at(&self, name: &str) -> PathBuf {
        self.top.path().join("sink").join(name)
    }

    fn say(&mut self, record: &Record<'_>) -> Result<(), SinkError> {
        let mut bytes = Vec::new();
        self.codec.encode(record, &mut bytes);
        self.sink.records(&bytes)
    }

    fn directory(&mut self, path: &[u8]) {
        self.counts.directories += 1;
        self.say(&Record::Directory { metadata: Metadata { mode: 0o755, ..META }, path }).unwrap();
    }

    fn link(&mut self, path: &[u8], target: &[u8]) {
        self.counts.symlinks += 1;
        self.say(&Record::Symlink { mtime: META.mtime, path, target }).unwrap();
    }

    fn file(&mut self, path: &[u8], contents: &[u8]) -> ObjectId {
        let object = ObjectId(self.counts.files as u32);
        self.counts.files += 1;
        self.counts.bytes += contents.len() as u64;
        let size = contents.len() as u64;
        self.say(&Record::File { object, size, metadata: META, path }).unwrap();
        object
    }

    /// Announces a file, and sends all its bytes.
    fn send(&mut self, path: &[u8], contents: &[u8]) -> Finish {
        let object = self.file(path, contents);
        self.fill(object, contents)
    }

    fn fill(&mut self, object: ObjectId, contents: &[u8]) -> Finish {
        self.sink.write(object, 0, contents).unwrap();
        self.say(&Record::Hash { object, hash: *blake3::hash(contents).as_bytes() }).unwrap();
        self.sink.finish(object).unwrap()
    }

    /// Ends the manifest, and returns the reasons of failed entries. Asserts that the directory
    /// outside is unchanged.
    fn end(mut self) -> (Vec<Reason>, TempDir) {
        self.say(&Record::End(self.counts)).unwrap();
        while self.sink.work(1).unwrap() {}
        assert!(self.sink.is_complete());
        assert!(!self.at(".byway-partial").exists());
        let mut all = self.problems();
        let reports = Reports::new().feed(&self.sink.reports()).unwrap();
        all.truncate(MAX_PROBLEMS);
        let done = matches!(reports.last(), Some(Report::Done { failed, .. }) if *failed == all.len() as u64);
        assert!(done, "{reports:?}");
        outside_is_untouched(self.top.path());
        (all, self.top)
    }

    /// Starts another attempt of the transfer, with a new sink for the same directory.
    fn again(self) -> Self {
        let Self { top, sink, .. } = self;
        drop(sink);
        let sink = Sink::open(&top.path().join("sink"), SinkOptions::default()).unwrap();
        let mut host = Self { top, sink, codec: RecordCodec::default(), counts: Counts::default() };
        host.say(&Record::Start { version: MANIFEST_VERSION }).unwrap();
        host.say(&Record::Compare(AGAIN)).unwrap();
        host
    }

    /// Returns the sink's offer for an object: its chunks, and whether they are in place.
    fn asked(&mut self) -> (Vec<u32>, bool) {
        while self.sink.work(1).unwrap() {}
        let mut have = (Vec::new(), false);
        for report in Reports::new().feed(&self.sink.reports()).unwrap() {
            if let Report::Have { first, hashes, placed, .. } = report {
                have.0.extend(first..first + hashes.len() as u32);
                have.1 = placed;
            }
        }
        have
    }

    fn parts(&mut self, object: ObjectId, kept: &[(u64, u64)]) -> Result<(), SinkError> {
        let mut set = RangeSet::new();
        kept.iter().for_each(|(start, end)| _ = set.insert(*start, *end));
        let (bytes, _) = ChunkRanges::write(&set);
        self.say(&Record::Parts { object, kept: ChunkRanges::written(&bytes) })
    }

    fn problems(&mut self) -> Vec<Reason> {
        self.sink.problems().into_iter().map(|problem| problem.reason).collect()
    }
}

fn outside_is_untouched(top: &Path) {
    let names: Vec<_> = fs::read_dir(top).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert_eq!(fs::read_dir(top.join("outside")).unwrap().count(), 1);
    assert_eq!(fs::read(top.join("outside/treasure")).unwrap(), b"gold");
    assert_ne!(fs::metadata(top.join("outside")).unwrap().permissions().mode() & 0o777, 0o111);
}

#[test]
fn what_comes_has_a_name_and_a_size_before_it_is_there() {
    let mut host = Host::new();
    assert_eq!(host.sink.top(), &TreeTop::default());
    let top = |others| TreeTop { first: b"photos".to_vec(), others };
    host.directory(b"photos");
    host.say(&Record::Total { bytes: 9 }).unwrap();
    host.send(b"photos/a", b"one");
    assert_eq!((host.sink.top(), host.sink.summary().total), (&top(false), Some(9)));
    host.send(b"b", b"two");
    assert_eq!(host.sink.top(), &top(true));
    // What the sender said is its word alone.
    assert_eq!(host.end().0, []);
}

#[test]
fn a_tree_that_lands_below_is_called_by_its_place_and_its_own_name() {
    let mut host = Host::new();
    let top = |others| TreeTop { first: b"2026/photos".to_vec(), others };
    host.directory(b"2026/photos");
    host.send(b"2026/photos/a", b"one");
    assert_eq!(host.sink.top(), &top(false));
    host.send(b"2026/photos2", b"two");
    assert_eq!(host.sink.top(), &top(true));
    host.end();
    let mut host = Host::new();
    host.send(&[&[b'x'; 200], &b"/"[..], &[b'y'; 200]].concat(), b"long");
    assert_eq!(host.sink.top().first, [b'x'; 200]);
    host.end();
}

#[test]
fn names_that_lead_elsewhere_are_refused_one_by_one() {
    let long = [b'x'; 256];
    let names: [&[u8]; 12] = [
        b"/tmp/x",
        b"..",
        b"../outside/x",
        b"a/../../outside/x",
        b".",
        b"",
        b"a//b",
        b"a/",
        b"a\0b",
        &long,
        b"./x",
        b".byway-partial/x",
    ];
    for name in names {
        let mut host = Host::new();
        assert_eq!(host.send(name, b"x"), Finish::Settled);
        host.directory(name);
        host.link(name, b"target");
        host.send(b"good", b"good");
        let (reasons, top) = host.end();
        assert_eq!(reasons, [Reason::Name; 3]);
        assert_eq!(fs::read(top.path().join("sink/good")).unwrap(), b"good");
        assert_eq!(fs::read_dir(top.path().join("sink")).unwrap().count(), 1);
    }
}

#[test]
fn nothing_is_written_through_a_link_that_was_there_before() {
    let mut host = Host::new();
    symlink(host.top.path().join("outside"), host.at("absolute")).unwrap();
    symlink("../outside", host.at("relative")).unwrap();
    symlink("../outside/treasure", host.at("file")).unwrap();
    for link in ["absolute", "relative"] {
        assert!(matches!(
            host.send(format!("{link}/x").as_bytes(), b"x"),
            Finish::Failed(Reason::Link | Reason::NotADirectory)
        ));
        host.directory(link.as_bytes());
        host.directory(format!("{link}/d").as_bytes());
        host.link(format!("{link}/l").as_bytes(), b"t");
    }
    // A file replaces a link that has its own name.
    assert_eq!(host.send(b"file", b"mine"), Finish::Verified);
    let (reasons, top) = host.end();
    assert_eq!(reasons.len(), 8);
    let file = top.path().join("sink/file");
    assert!(file.symlink_metadata().unwrap().is_file());
}

#[test]
fn nothing_is_written_through_a_link_that_the_sender_plants() {
    for target in [&b"../outside"[..], b"/tmp", b"."] {
        let mut host = Host::new();
        // Announced first, yet made last: the directory that the file needs is in its way by then.
        host.link(b"l", target);
        assert_eq!(host.send(b"l/treasure", b"lead"), Finish::Verified);
        // A link below a link, and a directory record for one.
        host.link(b"m", target);
        host.link(b"m/n", b"x");
        host.directory(b"k/d");
        host.link(b"k/d", target);
        let (reasons, top) = host.end();
        assert_eq!(reasons.len(), 3, "{reasons:?}");
        assert_eq!(fs::read(top.path().join("sink/l/treasure")).unwrap(), b"lead");
        assert!(top.path().join("sink/k/d").symlink_metadata().unwrap().is_dir());
    }
}

#[test]
fn a_link_planted_between_two_calls_is_not_followed() {
    let mut host = Host::new();
    host.directory(b"d/e");
    let object = host.file(b"d/e/f", b"contents");
    host.sink.write(object, 0, b"contents").unwrap();
    fs::remove_dir(host.at("d/e")).unwrap();
    symlink("../../outside", host.at("d/e")).unwrap();
    // Nobody's directory was held open for this file yet, or one that is removed: either way it
    // goes nowhere.
    assert!(matches!(host.fill(object, b"contents"), Finish::Failed(_)));
    let (reasons, _top) = host.end();
    assert_eq!(reasons.len(), 2, "{reasons:?}");
}

#[test]
fn one_name_for_a_file_and_a_directory() {
    let mut host = Host::new();
    let early = host.file(b"a", b"file");
    host.directory(b"a");
    assert_eq!(host.fill(early, b"file"), Finish::Failed(Reason::IsDirectory));
    assert_eq!(host.send(b"b", b"file"), Finish::Verified);
    host.directory(b"b");
    assert_eq!(host.send(b"b/c", b"file"), Finish::Failed(Reason::NotADirectory));
    let (reasons, top) = host.end();
    assert_eq!(reasons, [Reason::IsDirectory, Reason::NotADirectory, Reason::NotADirectory]);
    assert!(top.path().join("sink/a").is_dir());
    assert_eq!(fs::read(top.path().join("sink/b")).unwrap(), b"file");
}

#[test]
fn a_file_named_twice_never_shares_its_partial_file() {
    let mut host = Host::new();
    let first = host.file(b"a", b"one");
    let second = host.file(b"a", b"two");
    assert_eq!(host.sink.write(second, 0, b"two").unwrap(), Written::Ignored);
    assert_eq!(host.fill(first, b"one"), Finish::Verified);
    assert_eq!(host.sink.write(first, 0, b"bad").unwrap(), Written::Ignored);
    assert_eq!(fs::read(host.at("a")).unwrap(), b"one");
    // Once it is in place, another may replace it.
    assert_eq!(host.send(b"a", b"six"), Finish::Verified);
    host.link(b"a", b"target");
    host.link(b"a", b"target-2");
    let (reasons, top) = host.end();
    assert_eq!(reasons, [Reason::Protocol]);
    assert_eq!(fs::read_link(top.path().join("sink/a")).unwrap(), Path::new("target-2"));
}

#[test]
fn wrong_contents_and_bytes_past_the_end_leave_nothing() {
    let mut host = Host::new();
    let wrong = host.file(b"wrong", b"right");
    host.sink.write(wrong, 0, b"WRONG").unwrap();
    host.say(&Record::Hash { object: wrong, hash: *blake3::hash(b"right").as_bytes() }).unwrap();
    assert_eq!(host.sink.finish(wrong).unwrap(), Finish::Failed(Reason::Integrity));
    // Told finished, though no byte or not every byte was written.
    for part in [0, 3] {
        let object = host.file(format!("part{part}").as_bytes(), b"right");
        host.sink.write(object, 0, &b"right"[..part]).unwrap();
        host.say(&Record::Hash { object, hash: *blake3::hash(b"right").as_bytes() }).unwrap();
        assert_eq!(host.sink.finish(object).unwrap(), Finish::Failed(Reason::Integrity));
    }
    for offset in [1, u64::MAX - 2] {
        let object = host.file(offset.to_string().as_bytes(), b"right");
        assert_eq!(host.sink.write(object, offset, b"right").unwrap(), Written::Ignored);
    }
    let withdrawn = host.file(b"withdrawn", b"right");
    host.sink.write(withdrawn, 0, b"right").unwrap();
    host.say(&Record::Withdrawn { object: withdrawn, why: Withdrawal::Changed }).unwrap();
    let (reasons, top) = host.end();
    use Reason::{Integrity, Protocol, Withdrawn};
    assert_eq!(reasons, [Integrity, Integrity, Integrity, Protocol, Protocol, Withdrawn]);
    assert_eq!(fs::read_dir(top.path().join("sink")).unwrap().count(), 0);
}

#[test]
fn what_came_first_stays_and_is_what_was_hashed() {
    let contents: Vec<u8> = (0..1_000_000u32).map(|at| (at % 251) as u8).collect();
    let mut host = Host::new();
    let object = host.file(b"f", &contents);
    host.sink.write(object, 400_000, &contents[400_000..700_000]).unwrap();
    host.sink.write(object, 0, &contents[..500_000]).unwrap();
    // Other bytes for what is there already are of no effect, wherever they begin.
    for (offset, length) in [(0, 700_000), (399_000, 2_000), (650_000, 50_000)] {
        assert_eq!(host.sink.write(object, offset, &vec![0xee; length]).unwrap(), Written::Stored);
    }
    host.sink.write(object, 600_000, &contents[600_000..]).unwrap();
    assert_eq!(host.fill(object, b""), Finish::Failed(Reason::Integrity), "the hash of nothing");
    let object = host.file(b"f", &contents);
    host.sink.write(object, 300_000, &contents[300_000..]).unwrap();
    assert_eq!(host.fill(object, &contents), Finish::Verified);
    let (_, top) = host.end();
    assert!(fs::read(top.path().join("sink/f")).unwrap() == contents);
}

#[test]
fn unfinished_files_are_their_owners_alone_and_outlive_the_process() {
    let mut host = Host::new();
    let object = host.file(b"secret", b"0123456789");
    host.sink.write(object, 5, b"56789").unwrap();
    assert!(!host.at("secret").exists());
    let Host { top, sink, .. } = host;
    let again = Sink::open(&top.path().join("sink"), SinkOptions::default());
    assert!(matches!(again, Err(SinkError::Busy(_))));
    let other = SinkOptions { transfer: [1; 16], ..SinkOptions::default() };
    drop(Sink::open(&top.path().join("sink"), other).unwrap());
    drop(sink);
    let transfer = top.path().join("sink/.byway-partial").join("00".repeat(16));
    let partials: Vec<_> = fs::read_dir(&transfer).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(partials.len(), 1);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    assert_eq!((mode(&transfer), mode(&partials[0])), (0o700, META.mode.into()));
    assert_eq!(fs::read(&partials[0]).unwrap(), b"\0\0\0\0\x0056789");
    // Whoever leads the name elsewhere meanwhile gains nothing: the file is made anew.
    fs::remove_file(&partials[0]).unwrap();
    fs::hard_link(top.path().join("outside/treasure"), &partials[0]).unwrap();
    let sink = Sink::open(&top.path().join("sink"), SinkOptions::default()).unwrap();
    let mut host = Host { top, sink, codec: RecordCodec::default(), counts: Counts::default() };
    host.say(&Record::Start { version: MANIFEST_VERSION }).unwrap();
    assert_eq!(host.send(b"secret", b"0123456789"), Finish::Verified);
    assert_eq!(host.end().0, []);
}

#[test]
fn modes_that_cannot_be_had_at_once_come_at_the_end() {
    // The sink's mask 022 removes write bits from 666 and 777. The setuid bit of 4755 is removed as
    // well. Files with mode 444, 000 or 200 cannot be opened for both reading and writing.
    for (index, mode) in [0o600, 0o644, 0o666, 0o777, 0o444, 0o000, 0o200, 0o4755].into_iter().enumerate() {
        for planted in [false, true] {
            let mut host = Host::new();
            if planted {
                // A directory that others can look into.
                let Host { top, sink, codec, counts } = host;
                drop(sink);
                let directory = top.path().join("sink/.byway-partial").join("00".repeat(16));
                fs::create_dir_all(&directory).unwrap();
                fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).unwrap();
                let sink = Sink::open(&top.path().join("sink"), SinkOptions::default()).unwrap();
                host = Host { top, sink, codec, counts };
                host.say(&Record::Start { version: MANIFEST_VERSION }).unwrap();
            }
            let partial = |host: &Host| {
                let all = fs::read_dir(host.at(".byway-partial").join("00".repeat(16))).unwrap();
                let file = all.into_iter().map(|entry| entry.unwrap().path()).next().unwrap();
                fs::metadata(file).unwrap().permissions().mode() & 0o7777
            };
            // Two of each: what the first one showed, the second is made by.
            for name in ["a", "b"] {
                let metadata = Metadata { mode, ..META };
                let object = ObjectId(host.counts.files as u32);
                host.counts.files += 1;
                host.counts.bytes += 5;
                host.say(&Record::File { object, size: 5, metadata, path: name.as_bytes() }).unwrap();
                host.sink.write(object, 0, b"ri").unwrap();
                let early = partial(&host);
                assert!(!planted || early == 0o600, "{early:o}");
                assert_eq!(early & !0o777, 0);
                host.sink.write(object, 2, b"ght").unwrap();
                host.say(&Record::Hash { object, hash: *blake3::hash(b"right").as_bytes() }).unwrap();
                assert_eq!(host.sink.finish(object).unwrap(), Finish::Verified, "{index}");
                let placed = fs::metadata(host.at(name)).unwrap();
                assert_eq!(placed.permissions().mode() & 0o7777, u32::from(mode) & 0o755, "{mode:o}");
                assert_eq!((placed.mtime(), placed.mtime_nsec()), (1_000, 1));
            }
        }
    }
}

#[test]
fn a_sink_that_cannot_be_used_is_found_at_open() {
    let top = tempfile::tempdir().unwrap();
    fs::write(top.path().join("file"), "").unwrap();
    let open = |name: &str| Sink::open(&top.path().join(name), SinkOptions::default());
    assert!(matches!(open("file"), Err(SinkError::NotADirectory(_))));
    assert!(matches!(open("file/below"), Err(SinkError::NotADirectory(_))));
    for planted in ["linked", "filed"] {
        fs::create_dir(top.path().join(planted)).unwrap();
    }
    symlink(top.path(), top.path().join("linked/.byway-partial")).unwrap();
    fs::write(top.path().join("filed/.byway-partial"), "").unwrap();
    assert!(
        matches!(open("linked"), Err(SinkError::NotADirectory(path)) if path.ends_with(".byway-partial"))
    );
    assert!(matches!(open("filed"), Err(SinkError::NotADirectory(_))));
    drop(open("new/and/deep").unwrap());
    assert_eq!(fs::read_dir(top.path().join("new/and/deep")).unwrap().count(), 0, "no trace without a file");
}

#[test]
fn a_size_beyond_the_file_system_fails_that_file_alone() {
    let mut host = Host::new();
    let size = byway_wire::codec::VARINT_MAX;
    host.say(&Record::File { object: ObjectId(0), size, metadata: META, path: b"huge" }).unwrap();
    host.counts.files += 1;
    host.counts.bytes += size;
    host.sink.write(ObjectId(0), 0, b"x").unwrap();
    if host.sink.objects.is_empty() {
        assert_eq!(host.problems(), [Reason::TooLarge]);
    } else {
        // A file system that takes it, as holes: the last byte works as well.
        assert_eq!(host.sink.write(ObjectId(0), size - 1, b"x").unwrap(), Written::Stored);
    }
}

#[test]
fn manifests_that_break_the_rules_are_stopped() {
    let file = |object| Record::File { object: ObjectId(object), size: 1, metadata: META, path: b"a" };
    let hash = Record::Hash { object: ObjectId(0), hash: [0; 32] };
    let end = Record::End(Counts { files: 1, bytes: 1, ..Counts::default() });
    let start = Record::Start { version: MANIFEST_VERSION };
    let cases: [&[Record<'_>]; 7] = [
        &[start],                                         // twice
        &[hash],                                          // of what was not announced
        &[file(0), hash, hash],                           // a hash twice
        &[file(0), end],                                  // without its hash
        &[file(0), hash, Record::End(Counts::default())], // counted wrongly
        &[file(0), hash, end, end],                       // after the end
        &[Record::Withdrawn { object: ObjectId(0), why: Withdrawal::Changed }],
    ];
    for (index, case) in cases.iter().enumerate() {
        let mut host = Host::new();
        let results: Vec<_> = case.iter().map(|record| host.say(record)).collect();
        let (last, before) = results.split_last().unwrap();
        assert!(matches!(last, Err(SinkError::Manifest(_))), "{index}: {last:?}");
        assert!(before.iter().all(Result::is_ok), "{index}");
        // It stays stopped.
        assert!(host.say(&Record::Directory { metadata: META, path: b"late" }).is_err());
        assert!(!host.sink.work(1_000).unwrap());
        assert!(!host.at("late").exists());
    }
    let top = tempfile::tempdir().unwrap();
    let mut sink = Sink::open(top.path(), SinkOptions::default()).unwrap();
    assert_eq!(
        sink.records(&[0, 2, 0, 4]).unwrap_err().to_string(),
        "the sender's manifest is of version 4, this byway reads version 3: update the older side"
    );
}

#[test]
fn memory_has_a_bound_that_the_sender_cannot_pass() {
    let top = tempfile::tempdir().unwrap();
    let options = SinkOptions { memory: 10_000, ..SinkOptions::default() };
    let sink = Sink::open(top.path(), options).unwrap();
    let mut host = Host { sink, top, codec: RecordCodec::default(), counts: Counts::default() };
    host.say(&Record::Start { version: MANIFEST_VERSION }).unwrap();
    let link = Record::Symlink { mtime: META.mtime, path: b"l", target: &[b'x'; 1_000] };
    let taken = (0..20).take_while(|_| host.say(&link).is_ok()).count();
    assert!((5..10).contains(&taken), "{taken}");
}

/// Generates records of a sender that tries to leave the directory, with few names so that they
/// collide.
fn trick() -> impl Strategy<Value = (u8, Vec<u8>, Vec<u8>, bool)> {
    let part = prop_oneof![Just("a"), Just("b"), Just(".."), Just("l"), Just("outside"), Just("")];
    let path = vec(part, 1..4).prop_map(|parts| parts.join("/").into_bytes());
    let target = prop_oneof![Just(".."), Just("../outside"), Just("/"), Just("a"), Just("../../outside")];
    let target = target.prop_map(|target| target.as_bytes().to_vec());
    (0..4u8, path, target, any::<bool>())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn no_order_of_records_leads_outside(
        tricks in vec(trick(), 1..25),
        planted in vec(("[abl]", 0..3usize), 0..3),
    ) {
        let mut host = Host::new();
        for (name, target) in planted {
            let target = ["../outside", "a", ".."][target];
            let _ = symlink(target, host.at(&name));
        }
        let mut waiting = Vec::new();
        for (kind, path, target, now) in tricks {
            match kind {
                0 => host.directory(&path),
                1 => host.link(&path, &target),
                _ => {
                    let object = host.file(&path, &target);
                    if now {
                        host.fill(object, &target);
                    } else {
                        waiting.push((object, target));
                    }
                }
            }
        }
        for (object, contents) in waiting {
            host.fill(object, &contents);
        }
        // This looks at the directory outside.
        host.end();
    }

    #[test]
    fn garbage_and_truncated_manifests_write_nothing_outside(
        garbage in vec(any::<u8>(), 0..200),
        keep in 0..200usize,
        cut in 1..50usize,
    ) {
        let mut host = Host::new();
        let mut bytes = Vec::new();
        let mut codec = RecordCodec::default();
        let file = Record::File { object: ObjectId(0), size: 4, metadata: META, path: b"a/f" };
        let hash = Record::Hash { object: ObjectId(0), hash: [7; 32] };
        for record in [Record::Directory { metadata: META, path: b"a" }, file, hash] {
            codec.encode(&record, &mut bytes);
        }
        bytes.truncate(keep);
        bytes.extend(garbage);
        for piece in bytes.chunks(cut) {
            if host.sink.records(piece).is_err() {
                break;
            }
        }
        let _ = host.sink.write(ObjectId(0), 0, b"four");
        let _ = host.sink.finish(ObjectId(0));
        while host.sink.work(1_000_000).unwrap() {}
        prop_assert!(!host.at("a/f").exists());
        outside_is_untouched(host.top.path());
    }
}
