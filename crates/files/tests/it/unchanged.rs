//! A tree that is sent again: only what changed travels.

use crate::common::{Cut, PLAIN, same, transfer, untouched};
use byway_files::{ObjectRange, Reason, Source, SourceOptions, generate};
use byway_wire::ObjectId;
use std::fs;
use std::time::Duration;

#[test]
fn of_a_tree_that_was_sent_before_only_what_changed_travels() {
    let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let tree = from.path().join("tree");
    let made = generate(&tree, 5, 4_000_000).unwrap();
    for cut in [PLAIN, Cut { batch: 100, objects: 1, ..PLAIN }] {
        transfer(std::slice::from_ref(&tree), into.path(), cut, &mut untouched);
        let again = transfer(std::slice::from_ref(&tree), into.path(), cut, &mut untouched);
        assert_eq!((again.travelled, again.verified, again.unchanged), (0, 0, made.counts.files));
        assert_eq!(again.done, Some((made.counts.files, 4_000_000, 0)));
        assert_eq!(again.kept, 4_000_000);
        fs::write(tree.join("program"), format!("new {}", cut.objects)).unwrap();
        fs::write(tree.join(format!("fresh {}", cut.objects)), "").unwrap();
        let more = transfer(std::slice::from_ref(&tree), into.path(), cut, &mut untouched);
        assert_eq!(more.verified, 2);
        same(&tree, &into.path().join("tree"));
        fs::remove_dir_all(&tree).unwrap();
        fs::remove_dir_all(into.path().join("tree")).unwrap();
        generate(&tree, 5, 4_000_000).unwrap();
    }
}

#[test]
fn a_newer_file_of_the_receiver_is_kept_and_named() {
    let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for (name, text) in [("a", "theirs"), ("b", "other")] {
        fs::write(from.path().join(name), text).unwrap();
    }
    fs::write(into.path().join("a"), "mine").unwrap();
    let theirs = from.path().join("a").metadata().unwrap().modified().unwrap();
    let mine = fs::File::options().write(true).open(into.path().join("a")).unwrap();
    mine.set_modified(theirs + Duration::from_millis(1)).unwrap();
    let outcome = transfer(&[from.path().join(".")], into.path(), PLAIN, &mut untouched);
    assert_eq!(outcome.failed, [(ObjectId(0), Reason::Newer)]);
    assert_eq!(fs::read(into.path().join("a")).unwrap(), b"mine");
    assert_eq!(fs::read(into.path().join("b")).unwrap(), b"other");
}

#[test]
fn times_far_from_today_are_times_as_others() {
    let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    // 1906, the nanosecond before 1970, and 2110.
    for (name, seconds, nanoseconds) in
        [("a", -2_000_000_000, 1), ("b", -1, 999_999_999), ("c", 4_420_000_000, 5)]
    {
        let file = fs::File::create(from.path().join(name)).unwrap();
        let time = rustix::fs::Timespec { tv_sec: seconds, tv_nsec: nanoseconds };
        let times = rustix::fs::Timestamps { last_access: time, last_modification: time };
        rustix::fs::futimens(&file, &times).unwrap();
    }
    let tree = [from.path().join(".")];
    let first = transfer(&tree, into.path(), PLAIN, &mut untouched);
    assert_eq!((first.verified, first.unchanged), (3, 0));
    same(from.path(), into.path());
    let again = transfer(&tree, into.path(), PLAIN, &mut untouched);
    assert_eq!((again.verified, again.unchanged), (0, 3));
}

/// What a receiver may not say of objects.
#[test]
fn answers_that_overlap_or_are_about_nothing_are_refused() {
    let from = tempfile::tempdir().unwrap();
    (0..5).for_each(|number| fs::write(from.path().join(number.to_string()), "x").unwrap());
    let range = |first, count| ObjectRange { first: ObjectId(first), count };
    let source = || {
        let mut source = Source::open(&[from.path().join(".")], SourceOptions::default()).unwrap();
        assert!(source.next_records(100_000, 100).objects.is_empty(), "nothing travels unasked");
        source
    };
    for (first, second) in [((0, 3), (2, 1)), ((0, 6), (0, 0)), ((5, 1), (0, 0)), ((1, 2), (0, 1))] {
        let mut source = source();
        let said =
            source.same(range(first.0, first.1)).and_then(|()| source.wanted(range(second.0, second.1)));
        assert!(said.is_err(), "{first:?} {second:?}");
    }
    let mut all = source();
    all.same(range(0, 5)).unwrap();
    all.next_records(100_000, 100);
    assert!(all.is_finished() && all.unchanged() == 5, "a receiver may say so of all: its word counts");
}
