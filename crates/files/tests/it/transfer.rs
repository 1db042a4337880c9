//! Whole transfers without a network. They have a source, its objects cut into pieces and shuffled,
//! a sink, and reports back.

use crate::common::{Cut, PLAIN, same, transfer, untouched};
use byway_files::{
    Modes, ObjectRange, Reason, Sink, SinkOptions, Source, SourceOptions, WarningKind, compare, generate,
};
use byway_wire::ObjectId;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use std::ffi::OsStr;
use std::fs::{self, File, FileTimes, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

#[test]
fn a_mixed_tree_arrives_whole_whatever_the_order_of_its_pieces() {
    let from = tempfile::tempdir().unwrap();
    let made = generate(from.path(), 42, 6_000_000).unwrap();
    let cuts = [
        PLAIN,
        Cut { batch: 100, objects: 1, ..PLAIN },
        Cut { batch: 900, objects: 40, piece: 10_000, window: 500, seed: 7, ..PLAIN },
    ];
    for cut in cuts {
        let into = tempfile::tempdir().unwrap();
        let outcome = transfer(&[from.path().join(".")], into.path(), cut, &mut untouched);
        same(from.path(), into.path());
        assert_eq!(outcome.done, Some((made.counts.files, 6_000_000, 0)));
        assert_eq!(outcome.verified as u64, made.counts.files);
        assert!(outcome.failed.is_empty() && outcome.warnings.is_empty());
    }
}

#[test]
fn five_thousand_small_files_arrive() {
    let from = tempfile::tempdir().unwrap();
    for index in 0..5_000 {
        let directory = from.path().join(format!("{:02}", index % 50));
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join(index.to_string()), index.to_string()).unwrap();
    }
    let into = tempfile::tempdir().unwrap();
    let outcome = transfer(&[from.path().join(".")], into.path(), PLAIN, &mut untouched);
    same(from.path(), into.path());
    assert_eq!(outcome.verified, 5_000);
}

#[test]
fn a_second_transfer_replaces_what_changed_and_leaves_other_files_alone() {
    let from = tempfile::tempdir().unwrap();
    let into = tempfile::tempdir().unwrap();
    generate(&from.path().join("tree"), 1, 50_000).unwrap();
    fs::write(into.path().join("mine"), "untouched").unwrap();
    transfer(&[from.path().join("tree")], into.path(), PLAIN, &mut untouched);
    same(&from.path().join("tree"), &into.path().join("tree"));
    fs::write(from.path().join("tree/program"), "new").unwrap();
    fs::remove_file(from.path().join("tree/link-to-file")).unwrap();
    symlink("elsewhere", from.path().join("tree/link-to-file")).unwrap();
    transfer(&[from.path().join("tree")], into.path(), PLAIN, &mut untouched);
    same(&from.path().join("tree"), &into.path().join("tree"));
    assert_eq!(fs::read(into.path().join("mine")).unwrap(), b"untouched");
}

#[test]
fn one_corrupt_byte_fails_that_file_alone() {
    let from = tempfile::tempdir().unwrap();
    let into = tempfile::tempdir().unwrap();
    fs::write(into.path().join("b"), "the old version").unwrap();
    for name in ["a", "b", "c"] {
        fs::write(from.path().join(name), vec![b'x'; 300_000]).unwrap();
    }
    let outcome = transfer(&[from.path().join(".")], into.path(), PLAIN, &mut |object, offset, bytes| {
        if object == ObjectId(1) && offset > 100_000 {
            bytes[0] ^= 1;
        }
    });
    assert_eq!(outcome.failed, [(ObjectId(1), Reason::Integrity)]);
    assert_eq!(outcome.done, Some((2, 600_000, 1)));
    assert_eq!(fs::read(into.path().join("b")).unwrap(), b"the old version");
    assert_eq!(fs::read_dir(into.path()).unwrap().count(), 3);
}

#[test]
fn a_file_that_shrinks_grows_or_goes_while_it_is_read_is_withdrawn() {
    type Change = fn(&Path);
    let changes: [(Change, bool); 3] = [
        (|path| File::options().write(true).open(path).unwrap().set_len(70_000).unwrap(), true),
        (|path| fs::write(path, vec![b'y'; 400_000]).unwrap(), true),
        // A file replaced under its name is still read whole, through the descriptor that is open.
        (|path| fs::rename(path, path.with_extension("moved")).unwrap(), false),
    ];
    for (change, withdrawn) in changes {
        let from = tempfile::tempdir().unwrap();
        let into = tempfile::tempdir().unwrap();
        let path = from.path().join("log");
        fs::write(&path, vec![b'x'; 300_000]).unwrap();
        let mut changed = false;
        let outcome = transfer(std::slice::from_ref(&path), into.path(), PLAIN, &mut |_, _, _| {
            if !std::mem::replace(&mut changed, true) {
                change(&path);
            }
        });
        assert_eq!(into.path().join("log").exists(), !withdrawn);
        assert_eq!(outcome.unsent, u64::from(withdrawn));
        if withdrawn {
            assert_eq!(outcome.failed, [(ObjectId(0), Reason::Withdrawn)]);
            assert_eq!(outcome.warnings, [WarningKind::Changed]);
            assert_eq!(outcome.done, Some((0, 0, 1)));
        }
    }
}

#[test]
fn the_hash_comes_from_the_one_reading_unless_that_left_a_hole() {
    let from = tempfile::tempdir().unwrap();
    let path = from.path().join("f");
    let contents: Vec<u8> = (0..3_000_000u32).map(|index| (index % 251) as u8).collect();
    fs::write(&path, &contents).unwrap();
    for offsets in [vec![0, 1_000_000, 2_000_000], vec![2_000_000, 0], vec![2_000_000]] {
        let mut source = Source::open(std::slice::from_ref(&path), SourceOptions::default()).unwrap();
        assert!(source.next_records(4_096, 1).objects.is_empty(), "the receiver must want it");
        source.wanted(ObjectRange::one(ObjectId(0))).unwrap();
        let wanted = source.next_records(4_096, 1);
        assert_eq!(wanted.objects.len(), 1);
        let told = wanted.bytes;
        assert!(told.len() < 32, "how much there is, and no hash before the last byte: {told:?}");
        assert!(source.next_records(4_096, 1).bytes.is_empty());
        for offset in &offsets {
            let read = source.read(ObjectId(0), *offset, 1_000_000).unwrap();
            assert_eq!(read, contents[*offset as usize..][..1_000_000]);
        }
        let mut said = Vec::new();
        for _ in 0..5 {
            said.extend(source.next_records(4_096, 1).bytes);
        }
        let hash = blake3::hash(&contents);
        assert!(said.windows(32).any(|window| window == hash.as_bytes()), "{offsets:?}");
        assert!(source.is_finished());
        assert_eq!(source.read(ObjectId(0), 2_999_999, 10).unwrap(), contents[2_999_999..]);
        source.release(ObjectId(0));
        assert!(source.read(ObjectId(0), 0, 10).is_err());
    }
}

/// Bytes that this thread has read by system calls so far, if the system counts them.
fn bytes_read() -> Option<u64> {
    let text = fs::read_to_string("/proc/thread-self/io").ok()?;
    text.lines().find_map(|line| line.strip_prefix("rchar: "))?.parse().ok()
}

#[test]
fn holes_are_not_read() {
    const SIZE: u64 = 128 << 20;
    let from = tempfile::tempdir().unwrap();
    let path = from.path().join("disk");
    let file = fs::File::create(&path).unwrap();
    file.set_len(SIZE).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, b"something", SIZE / 2).unwrap();
    let mut source = Source::open(std::slice::from_ref(&path), SourceOptions::default()).unwrap();
    let before = bytes_read();
    source.next_records(4_096, 1);
    source.wanted(ObjectRange::one(ObjectId(0))).unwrap();
    let size = source.next_records(4_096, 1).objects[0].size;
    assert!(size < 1 << 20, "{size} bytes would travel");
    source.read(ObjectId(0), 0, size as usize).unwrap();
    while !source.is_finished() {
        source.next_records(4_096, 1);
    }
    if let (Some(before), Some(after)) = (before, bytes_read()) {
        assert!(after - before < 8 << 20, "{} bytes were read", after - before);
    }
    let into = tempfile::tempdir().unwrap();
    assert_eq!(transfer(std::slice::from_ref(&path), into.path(), PLAIN, &mut untouched).verified, 1);
    assert!(fs::read(into.path().join("disk")).unwrap() == fs::read(&path).unwrap());
}

#[test]
fn special_files_are_skipped_and_nobody_waits_for_a_fifo() {
    let from = tempfile::tempdir().unwrap();
    let into = tempfile::tempdir().unwrap();
    fs::write(from.path().join("z"), "z").unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(from.path().join("socket")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, from.path().join("fifo"), rustix::fs::Mode::RUSR).unwrap();
    let outcome = transfer(&[from.path().join(".")], into.path(), PLAIN, &mut untouched);
    assert_eq!(outcome.warnings, [WarningKind::Special, WarningKind::Special]);
    assert_eq!((outcome.unsent, outcome.verified), (0, 1));
    // What was named itself is missed.
    let both = ["fifo", "z"].map(|name| from.path().join(name));
    let outcome = transfer(&both, into.path(), PLAIN, &mut untouched);
    assert_eq!(outcome.warnings, [WarningKind::NamedSpecial]);
    assert_eq!((outcome.unsent, outcome.unchanged), (1, 1));
}

#[test]
fn rights_that_a_mode_gives_away_travel_only_if_both_sides_ask() {
    let from = tempfile::tempdir().unwrap();
    fs::write(from.path().join("tool"), "").unwrap();
    fs::set_permissions(from.path().join("tool"), Permissions::from_mode(0o4755)).unwrap();
    for (sender, receiver) in [(false, false), (true, false), (false, true), (true, true)] {
        let into = tempfile::tempdir().unwrap();
        let options = SourceOptions { special_modes: sender, ..SourceOptions::default() };
        let mut source = Source::open(&[from.path().join("tool")], options).unwrap();
        let options = SinkOptions {
            modes: if receiver { Modes::Kept } else { Modes::Masked(0) },
            ..SinkOptions::default()
        };
        let mut sink = Sink::open(into.path(), options).unwrap();
        sink.records(&source.next_records(4_096, 9).bytes).unwrap();
        source.wanted(ObjectRange::one(ObjectId(0))).unwrap();
        sink.records(&source.next_records(4_096, 9).bytes).unwrap();
        while sink.work(1).unwrap() {}
        assert!(sink.is_complete());
        let mode = into.path().join("tool").metadata().unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode, if sender && receiver { 0o4755 } else { 0o755 });
    }
}

/// Whatever a receiver takes away, nobody may remove what others made in a directory where that was
/// forbidden.
#[test]
fn a_directory_for_all_never_becomes_one_where_all_may_remove() {
    let from = tempfile::tempdir().unwrap();
    fs::create_dir(from.path().join("tmp")).unwrap();
    fs::write(from.path().join("tmp/file"), "").unwrap();
    fs::set_permissions(from.path().join("tmp"), Permissions::from_mode(0o1777)).unwrap();
    fs::set_permissions(from.path().join("tmp/file"), Permissions::from_mode(0o666)).unwrap();
    for (modes, directory, file) in [
        (SinkOptions::default().modes, 0o1755, 0o644),
        (Modes::Masked(0o002), 0o1775, 0o664),
        (Modes::Masked(0), 0o1777, 0o666),
        (Modes::Kept, 0o1777, 0o666),
    ] {
        let into = tempfile::tempdir().unwrap();
        let mut source = Source::open(&[from.path().join("tmp")], SourceOptions::default()).unwrap();
        let mut sink = Sink::open(into.path(), SinkOptions { modes, ..SinkOptions::default() }).unwrap();
        sink.records(&source.next_records(4_096, 9).bytes).unwrap();
        source.wanted(ObjectRange::one(ObjectId(0))).unwrap();
        sink.records(&source.next_records(4_096, 9).bytes).unwrap();
        while sink.work(1).unwrap() {}
        assert!(sink.is_complete());
        let mode = |name: &str| into.path().join(name).metadata().unwrap().permissions().mode() & 0o7777;
        assert_eq!((mode("tmp"), mode("tmp/file")), (directory, file), "{modes:?}");
    }
}

/// An entry of a random tree.
#[derive(Clone, Debug)]
enum Node {
    File(Vec<u8>, u32, i64),
    Link(Vec<u8>),
    Directory(std::collections::BTreeMap<Vec<u8>, Node>, u32, i64),
}

fn name() -> impl Strategy<Value = Vec<u8>> {
    let byte = any::<u8>().prop_filter("not in a name", |byte| *byte != 0 && *byte != b'/');
    vec(byte, 1..20).prop_filter("dots", |name| !matches!(name.as_slice(), b"." | b".."))
}

fn tree() -> impl Strategy<Value = Node> {
    let when = -1_000_000_000..4_000_000_000i64;
    let file = (vec(any::<u8>(), 0..5_000), 0..0o1000u32, when.clone())
        .prop_map(|(contents, mode, time)| Node::File(contents, mode | 0o400, time));
    let link = vec(1..=255u8, 1..60).prop_map(Node::Link);
    let leaf = prop_oneof![4 => file, 1 => link];
    let directory = leaf.prop_recursive(4, 40, 8, move |inner| {
        (btree_map(name(), inner, 0..8), 0..0o1000u32, when.clone())
            .prop_map(|(entries, mode, time)| Node::Directory(entries, mode | 0o500, time))
    });
    btree_map(name(), directory, 0..6).prop_map(|entries| Node::Directory(entries, 0o700, 0))
}

fn plant(node: &Node, path: &Path) {
    match node {
        Node::Link(target) => symlink(OsStr::from_bytes(target), path).unwrap(),
        Node::File(contents, ..) => fs::write(path, contents).unwrap(),
        Node::Directory(entries, ..) => {
            fs::create_dir(path).unwrap();
            entries.iter().for_each(|(name, entry)| plant(entry, &path.join(OsStr::from_bytes(name))));
        }
    }
    if let Node::File(_, mode, time) | Node::Directory(_, mode, time) = node {
        let offset = Duration::new(time.unsigned_abs(), 123_456_789);
        let time = if *time < 0 { UNIX_EPOCH - offset } else { UNIX_EPOCH + offset };
        File::open(path).unwrap().set_times(FileTimes::new().set_modified(time)).unwrap();
        fs::set_permissions(path, Permissions::from_mode(*mode)).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn any_tree_arrives_as_it_is(
        tree in tree(),
        batch in 60..3_000usize,
        objects in 1..10usize,
        piece in 1..3_000usize,
        window in 1..50usize,
        seed: u64,
    ) {
        let top = tempfile::tempdir().unwrap();
        plant(&tree, &top.path().join("tree"));
        let cut = Cut { batch, objects, piece: piece.max(50), window, seed, ..PLAIN };
        let outcome = transfer(&[top.path().join("tree")], &top.path().join("a/b"), cut, &mut untouched);
        prop_assert_eq!(compare(&top.path().join("tree"), &top.path().join("a/b/tree")).unwrap(), []);
        prop_assert!(outcome.failed.is_empty());
    }
}
