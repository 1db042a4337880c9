//! Attacks of a hostile sender on the receiver's trash.

use super::*;
use crate::Report;

const MIRROR: ComparePlan = ComparePlan {
    resumes: false,
    contents: false,
    replaces_newer: true,
    deletes: true,
    expects_newer: false,
};

/// A receiver with a tree `d`, and a sender that deletes.
fn host(options: SinkOptions) -> Host {
    let top = tempfile::tempdir().unwrap();
    for directory in ["outside", "sink/d/e", "sink/other"] {
        fs::create_dir_all(top.path().join(directory)).unwrap();
    }
    for file in ["sink/d/a", "sink/d/e/b", "sink/d/z", "sink/other/c", "sink/f"] {
        fs::write(top.path().join(file), "mine").unwrap();
    }
    fs::write(top.path().join("outside/treasure"), "gold").unwrap();
    let sink = Sink::open(&top.path().join("sink"), options).unwrap();
    let mut host = Host { top, sink, codec: RecordCodec::default(), counts: Counts::default() };
    host.say(&Record::Start { version: MANIFEST_VERSION }).unwrap();
    host.say(&Record::Compare(MIRROR)).unwrap();
    host
}

/// Returns the receiver's files that are still in their places.
fn left(top: &Path) -> Vec<&'static str> {
    let all = ["d/a", "d/e/b", "d/z", "other/c", "f"];
    all.into_iter().filter(|file| top.join("sink").join(file).exists()).collect()
}

fn is_refused(told: Result<(), SinkError>) -> bool {
    matches!(told, Err(SinkError::Manifest(_) | SinkError::TooMany(_)))
}

const ALL: [&str; 5] = ["d/a", "d/e/b", "d/z", "other/c", "f"];

/// Waits until the clock of the file system has ticked.
fn tick(top: &Path) {
    let made = || {
        fs::write(top.join("tick"), "").unwrap();
        let metadata = fs::metadata(top.join("tick")).unwrap();
        fs::remove_file(top.join("tick")).unwrap();
        (metadata.ctime(), metadata.ctime_nsec())
    };
    let first = made();
    while made() == first {}
}

#[test]
fn an_empty_manifest_deletes_nothing() {
    let (reasons, top) = host(SinkOptions::default()).end();
    assert_eq!((reasons, left(top.path())), (vec![], ALL.to_vec()));
    let mut without_directories = host(SinkOptions::default());
    without_directories.say(&Record::Root { path: b"d" }).unwrap();
    without_directories.say(&Record::Keep { path: b"d/x" }).unwrap();
    assert_eq!(left(without_directories.end().1.path()), ALL);
}

#[test]
fn a_tree_that_lies_in_another_is_refused_and_so_is_a_directory_that_comes_twice() {
    let overlapping: [[&[u8]; 2]; 5] =
        [[b"d", b"d"], [b"d", b"d/e"], [b"d/e", b"d"], [b"d", b""], [b"", b"d"]];
    for [first, second] in overlapping {
        let mut host = host(SinkOptions::default());
        host.say(&Record::Root { path: first }).unwrap();
        assert!(is_refused(host.say(&Record::Root { path: second })), "{first:?} {second:?}");
    }
    let mut beside = host(SinkOptions::default());
    for path in [&b"d/e"[..], b"d-e", b"d/f"] {
        beside.say(&Record::Root { path }).unwrap();
    }
    for root in [&b""[..], b"d"] {
        let mut host = host(SinkOptions::default());
        host.say(&Record::Root { path: root }).unwrap();
        host.directory(b"d");
        assert!(is_refused(host.say(&Record::Directory { metadata: META, path: b"d" })));
    }
}

#[test]
fn where_the_sender_could_not_send_all_nothing_goes() {
    let mut host = host(SinkOptions::default());
    host.say(&Record::Root { path: b"d" }).unwrap();
    host.directory(b"d");
    host.say(&Record::Keep { path: b"" }).unwrap();
    host.say(&Record::End(host.counts)).unwrap();
    while host.sink.work(1).unwrap() {}
    assert!(host.sink.is_complete() && host.sink.summary().undeleted == 1);
    assert_eq!(left(host.top.path()), ALL);
}

#[test]
fn a_directory_that_no_root_leads_to_is_not_mirrored() {
    let mut rootless = host(SinkOptions::default());
    rootless.directory(b"d");
    assert_eq!(left(rootless.end().1.path()), ALL);
    let mut beside = host(SinkOptions::default());
    beside.say(&Record::Root { path: b"d/e" }).unwrap();
    beside.directory(b"d");
    beside.directory(b"other");
    assert_eq!(left(beside.end().1.path()), ALL);
    let mut below = host(SinkOptions::default());
    below.say(&Record::Root { path: b"d/e" }).unwrap();
    below.directory(b"d/e");
    assert_eq!(left(below.end().1.path()), ["d/a", "d/z", "other/c", "f"]);
}

#[test]
fn nothing_goes_before_the_manifest_has_come_to_its_end() {
    let mut host = host(SinkOptions::default());
    host.say(&Record::Root { path: b"d" }).unwrap();
    host.directory(b"d");
    host.directory(b"d/e");
    let object = host.file(b"d/new", b"contents");
    while host.sink.work(1 << 20).unwrap() {}
    assert_eq!(left(host.top.path()), ALL);
    let wrong = Counts { files: 9, ..host.counts };
    assert!(host.say(&Record::End(wrong)).is_err(), "the counts are those of another tree");
    assert_eq!(left(host.top.path()), ALL);
    let mut host = self::host(SinkOptions::default());
    host.say(&Record::Root { path: b"d" }).unwrap();
    host.directory(b"d");
    host.file(b"d/new", b"contents");
    host.say(&Record::Hash { object, hash: *blake3::hash(b"contents").as_bytes() }).unwrap();
    host.say(&Record::End(host.counts)).unwrap();
    while host.sink.work(1 << 20).unwrap() {}
    assert_eq!(left(host.top.path()), ALL, "a file is still on its way");
    host.sink.write(object, 0, b"contents").unwrap();
    host.sink.finish(object).unwrap();
    while host.sink.work(1).unwrap() {}
    assert!(host.sink.is_complete());
    assert_eq!(left(host.top.path()), ["other/c", "f"]);
    assert_eq!(host.sink.summary().deleted, 4);
}

#[test]
fn what_is_kept_must_have_a_name_and_be_asked_for_in_order() {
    for path in [&b"../outside"[..], b"/etc", b"d//e", b".byway-trash/x"] {
        assert!(is_refused(host(SinkOptions::default()).say(&Record::Keep { path })));
        assert!(is_refused(host(SinkOptions::default()).say(&Record::Root { path })));
    }
    let mut late = host(SinkOptions::default());
    late.directory(b"d");
    assert!(is_refused(late.say(&Record::Filter { excludes: true, pattern: b"*" })));
    let mut unordered = host(SinkOptions::default());
    unordered.say(&Record::Root { path: b"d" }).unwrap();
    unordered.directory(b"d");
    unordered.say(&Record::Keep { path: b"d/e" }).unwrap();
    assert!(is_refused(unordered.say(&Record::Keep { path: b"d/a" })));
    for record in [Record::Root { path: b"d" }, Record::Keep { path: b"d" }, Record::Keep { path: b"" }] {
        let mut unasked = Host::new();
        assert!(is_refused(unasked.say(&record)));
    }
}

#[test]
fn patterns_are_bounded() {
    let mut host = host(SinkOptions::default());
    let pattern = "*a".repeat(512);
    let filter = Record::Filter { excludes: true, pattern: pattern.as_bytes() };
    let told = (0..100).map(|_| host.say(&filter)).position(is_refused);
    assert_eq!(told, Some(16));
    let mut bytes = Vec::new();
    let stars = vec![b'*'; 5_000];
    RecordCodec::default().encode(&Record::Filter { excludes: true, pattern: &stars }, &mut bytes);
    assert!(is_refused(self::host(SinkOptions::default()).sink.records(&bytes)));
}

#[test]
fn links_in_the_receivers_tree_lead_nowhere() {
    let mut host = host(SinkOptions::default());
    let outside = host.top.path().join("outside");
    tick(host.top.path());
    symlink(&outside, host.at("d/link")).unwrap();
    fs::remove_file(host.at("d/e/b")).unwrap();
    fs::remove_dir(host.at("d/e")).unwrap();
    symlink(&outside, host.at("d/e")).unwrap();
    symlink(&outside, host.at("l")).unwrap();
    host.say(&Record::Root { path: b"l" }).unwrap();
    host.counts.directories += 1;
    host.say(&Record::Directory { metadata: META, path: b"l" }).unwrap();
    host.say(&Record::Root { path: b"d" }).unwrap();
    host.directory(b"d");
    host.say(&Record::Keep { path: b"d/z" }).unwrap();
    host.say(&Record::End(host.counts)).unwrap();
    while host.sink.work(1).unwrap() {}
    outside_is_untouched(host.top.path());
    // The links were made after the transfer began, so they stay, too.
    assert!(host.at("l").is_symlink() && host.at("d/link").is_symlink() && host.at("d/e").is_symlink());
    // A directory could not be made, so nothing is known to be gone.
    assert_eq!(host.sink.summary().deleted, 0);
    assert!(host.at("d/z").exists() && host.at("d/a").exists());
}

#[test]
fn a_receiver_that_deletes_nothing_says_so_once() {
    let mut host = host(SinkOptions { deletes: false, ..SinkOptions::default() });
    host.say(&Record::Filter { excludes: true, pattern: b"*" }).unwrap();
    host.say(&Record::Root { path: b"d" }).unwrap();
    host.directory(b"d");
    host.say(&Record::Keep { path: b"d/x" }).unwrap();
    host.say(&Record::End(host.counts)).unwrap();
    while host.sink.work(1).unwrap() {}
    let reports = Reports::new().feed(&host.sink.reports()).unwrap();
    let refused = |report: &&Report| matches!(report, Report::Refused { reason: Reason::DeletesNothing, .. });
    assert_eq!(reports.iter().filter(refused).count(), 1);
    assert_eq!(left(host.top.path()), ALL);
    assert_eq!((host.sink.summary().failed, host.sink.summary().undeleted), (0, 1));
}

/// A directory that a user replaces by a link between listing and deleting is not followed.
#[test]
fn a_link_that_takes_a_directorys_place_meanwhile_is_not_followed() {
    let mut host = host(SinkOptions::default());
    host.say(&Record::Root { path: b"d" }).unwrap();
    host.directory(b"d");
    host.directory(b"d/e");
    let outside = host.top.path().join("outside");
    fs::write(outside.join("b"), "not to be touched").unwrap();
    fs::rename(host.at("d/e"), host.at("d-e")).unwrap();
    symlink(&outside, host.at("d/e")).unwrap();
    host.say(&Record::End(host.counts)).unwrap();
    while host.sink.work(1).unwrap() {}
    assert!(outside.join("b").exists() && outside.join("treasure").exists());
    assert!(host.at("d-e/b").exists());
}
