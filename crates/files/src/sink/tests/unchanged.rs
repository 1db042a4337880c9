//! Files that the receiver has already: what the receiver reports of them, and what it does with
//! them.

use super::*;
use crate::receiver_report::ObjectRange;

/// The sender believes size and time.
const PLAN: ComparePlan = ComparePlan {
    resumes: false,
    contents: false,
    replaces_newer: false,
    deletes: false,
    expects_newer: false,
};

/// Makes a receiver with these files, which compares them by `plan`.
fn having(files: &[(&str, &[u8], i64)], plan: ComparePlan) -> Host {
    let mut host = Host::new();
    for (name, contents, seconds) in files {
        fs::write(host.at(name), contents).unwrap();
        let modified =
            std::time::UNIX_EPOCH + std::time::Duration::new(seconds.unsigned_abs(), META.mtime.nanoseconds);
        fs::File::options().write(true).open(host.at(name)).unwrap().set_modified(modified).unwrap();
        fs::set_permissions(host.at(name), fs::Permissions::from_mode(0o644)).unwrap();
    }
    host.say(&Record::Compare(plan)).unwrap();
    host
}

impl Host {
    fn answers(&mut self) -> Vec<Report> {
        while self.sink.work(1).unwrap() {}
        Reports::new().feed(&self.sink.reports()).unwrap()
    }
}

fn range(first: u32, count: u32) -> ObjectRange {
    ObjectRange { first: ObjectId(first), count }
}

#[test]
fn what_has_the_same_size_and_time_is_not_sent_and_the_rest_is() {
    let same = META.mtime.seconds;
    let mut host =
        having(&[("a", b"1", same), ("b", b"22", same), ("c", b"", same), ("d", b"old", same - 1)], PLAN);
    for (path, contents) in
        [(b"a", &b"1"[..]), (b"b", b"xx"), (b"c", b""), (b"d", b"new"), (b"e", b"5"), (b"f", b"")]
    {
        host.file(path, contents);
    }
    assert_eq!(host.answers(), [Report::Same(range(0, 3)), Report::Wanted(range(3, 3))]);
    for (object, contents) in [(3, &b"new"[..]), (4, b"5")] {
        assert_eq!(host.fill(ObjectId(object), contents), Finish::Verified);
    }
    assert_eq!(host.fill(ObjectId(5), b""), Finish::Settled, "its hash was enough");
    let summary = host.sink.summary();
    assert_eq!((summary.files, summary.unchanged, summary.kept, summary.skipped), (6, 3, 3, 3));
    assert_eq!(fs::read(host.at("b")).unwrap(), b"22", "nobody looked into it");
    let (failed, top) = host.end();
    assert_eq!((failed, fs::read(top.path().join("sink/d")).unwrap()), (vec![], b"new".to_vec()));
}

#[test]
fn only_the_mode_of_an_unchanged_file_follows_the_sender() {
    let mut host = having(&[("a", b"1", META.mtime.seconds)], PLAN);
    fs::set_permissions(host.at("a"), fs::Permissions::from_mode(0o600)).unwrap();
    host.file(b"a", b"1");
    assert_eq!(host.answers(), [Report::Same(range(0, 1))]);
    assert_eq!(fs::metadata(host.at("a")).unwrap().permissions().mode() & 0o777, 0o644);
}

#[test]
fn a_newer_file_is_kept_unless_the_sender_replaces_it() {
    let newer = [("a", &b"mine"[..], META.mtime.seconds + 1)];
    let mut host = having(&newer, PLAN);
    host.file(b"a", b"1");
    assert!(matches!(host.answers().as_slice(), [Report::Failed { reason: Reason::Newer, .. }]));
    host.say(&Record::Withdrawn { object: ObjectId(0), why: Withdrawal::Unreadable }).unwrap();
    assert_eq!(fs::read(host.at("a")).unwrap(), b"mine");
    let mut host = having(&newer, ComparePlan { replaces_newer: true, ..PLAN });
    let object = host.file(b"a", b"1");
    assert_eq!(host.answers(), [Report::Wanted(range(0, 1))]);
    host.fill(object, b"1");
    assert_eq!(fs::read(host.at("a")).unwrap(), b"1");
}

#[test]
fn contents_are_compared_where_the_sender_wants_it() {
    let files = [("a", &b"1"[..], META.mtime.seconds), ("b", b"", META.mtime.seconds), ("c", b"22", 0)];
    let mut host = having(&files, ComparePlan { contents: true, ..PLAN });
    for (path, contents) in [(b"a", &b"1"[..]), (b"b", b""), (b"c", b"333"), (b"d", b"4")] {
        host.file(path, contents);
    }
    let answers = host.answers();
    let [Report::Same(same), Report::Have { object, placed: true, .. }, Report::Wanted(wanted)] =
        answers.as_slice()
    else {
        panic!("{answers:?}")
    };
    assert_eq!((*same, *wanted, object.0), (range(1, 1), range(2, 2), 0));
}

#[test]
fn what_is_no_regular_file_is_nobodys_copy() {
    let mut host = having(&[], PLAN);
    fs::create_dir(host.at("a")).unwrap();
    symlink(host.top.path().join("outside/treasure"), host.at("b")).unwrap();
    for path in [b"a", b"b"] {
        host.file(path, b"gold");
    }
    assert_eq!(host.answers(), [Report::Wanted(range(0, 2))]);
}

#[test]
fn below_a_directory_that_is_new_everything_is_wanted_and_beside_it_not() {
    let mut host = having(&[("ab", b"1", META.mtime.seconds)], PLAN);
    host.directory(b"a");
    for path in [&b"a/1"[..], b"ab", b"a/2"] {
        host.file(path, b"1");
    }
    assert_eq!(
        host.answers(),
        [Report::Wanted(range(0, 1)), Report::Same(range(1, 1)), Report::Wanted(range(2, 1))]
    );
}
