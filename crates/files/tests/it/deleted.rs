//! A tree that is sent with --delete: the receiver moves to its trash what the sender has not.

use crate::common::{Cut, MIRROR, PLAIN, attempt, same, tick, transfer, untouched};
use byway_files::{Reason, WarningKind, generate};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// A sender with a directory `tree`, and a receiver.
struct Pair {
    from: tempfile::TempDir,
    into: tempfile::TempDir,
}

impl Pair {
    fn new(files: &[&str]) -> Self {
        let pair = Self { from: tempfile::tempdir().unwrap(), into: tempfile::tempdir().unwrap() };
        files.iter().for_each(|file| write(&pair.tree(), file));
        pair
    }

    fn tree(&self) -> PathBuf {
        self.from.path().join("tree")
    }

    fn copy(&self) -> PathBuf {
        self.into.path().join("tree")
    }

    fn send(&self, cut: Cut) -> crate::common::Outcome {
        transfer(&[self.tree()], self.into.path(), cut, &mut untouched)
    }

    /// The files in the trash, without the folder of their transfer.
    fn trash(&self) -> Vec<String> {
        let trash = self.into.path().join(".byway-trash");
        let mut found = Vec::new();
        for folder in fs::read_dir(trash).into_iter().flatten() {
            found.extend(files(&folder.unwrap().path()));
        }
        found.sort();
        found
    }
}

fn write(top: &Path, name: &str) {
    let path = top.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, name).unwrap();
}

/// The paths of all below a directory that is no directory itself, sorted.
fn files(top: &Path) -> Vec<String> {
    let (mut found, mut directories) = (Vec::new(), vec![top.to_owned()]);
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.symlink_metadata().unwrap().is_dir() {
                directories.push(path);
            } else {
                found.push(path.strip_prefix(top).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    found.sort();
    found
}

#[test]
fn what_the_sender_no_longer_has_is_in_the_trash_under_its_path() {
    for cut in [MIRROR, Cut { batch: 60, objects: 1, ..MIRROR }] {
        let pair = Pair::new(&["a", "d/b", "d/e/c", "gone/x/y", "gone/z", "last"]);
        assert_eq!(pair.send(cut).deleted, 0);
        assert!(!pair.into.path().join(".byway-trash").exists(), "nothing was deleted");
        symlink("nowhere", pair.copy().join("d/link")).unwrap();
        for file in ["a", "d/e/c", "last"] {
            fs::remove_file(pair.tree().join(file)).unwrap();
        }
        fs::remove_dir_all(pair.tree().join("gone")).unwrap();
        let outcome = pair.send(cut);
        // Two directories and two files of `gone`.
        assert_eq!((outcome.deleted, outcome.failed.len(), outcome.stayed.len()), (8, 0, 0));
        same(&pair.tree(), &pair.copy());
        assert_eq!(
            pair.trash(),
            ["a", "d/e/c", "d/link", "gone/x/y", "gone/z", "last"].map(|it| format!("tree/{it}"))
        );
        let again = pair.send(cut);
        assert_eq!((again.deleted, again.travelled), (0, 0));
    }
}

#[test]
fn without_being_asked_nothing_is_deleted() {
    let pair = Pair::new(&["a", "b"]);
    pair.send(PLAIN);
    fs::remove_file(pair.tree().join("a")).unwrap();
    assert_eq!(pair.send(PLAIN).deleted, 0);
    assert_eq!(files(pair.into.path()), ["tree/a", "tree/b"]);
}

/// Of what was not named, at the top of the receiver, and of byway's own directories nothing goes.
#[test]
fn what_lies_beside_the_tree_stays() {
    let pair = Pair::new(&["a", "d/b"]);
    pair.send(PLAIN);
    for other in
        ["other/file", "file", "tree2/x", "tree/.byway-partial/x/y", "tree/d/.byway-trash/old", "tree.d/x"]
    {
        write(pair.into.path(), other);
    }
    write(pair.into.path(), "tree/.byway-notes");
    write(pair.into.path(), "tree/gone/.byway-partial/z");
    write(pair.into.path(), "tree/gone/x");
    let before = files(pair.into.path()).len();
    let outcome = pair.send(MIRROR);
    assert_eq!((outcome.deleted, outcome.stayed.len()), (1, 0));
    assert_eq!(pair.trash(), ["tree/gone/x"]);
    assert_eq!(files(pair.into.path()).len(), before);
    assert!(pair.copy().join("gone/.byway-partial/z").exists());
    // A file that was named takes nothing with it, nor does all that a directory holds at the top.
    let named = transfer(&[pair.tree().join("a")], pair.into.path(), MIRROR, &mut untouched);
    assert_eq!(named.deleted, 0);
    let contents = transfer(&[pair.tree().join(".")], pair.into.path(), MIRROR, &mut untouched);
    assert_eq!(contents.deleted, 0);
    write(pair.into.path(), "d/more");
    let contents = transfer(&[pair.tree().join(".")], pair.into.path(), MIRROR, &mut untouched);
    assert_eq!(contents.deleted, 1, "below a directory at the top");
    assert!(pair.into.path().join("other/file").exists());
}

#[test]
fn what_patterns_exclude_stays_on_both_sides() {
    let pair = Pair::new(&["a.c", "sub/b.c"]);
    pair.send(PLAIN);
    for file in ["a.o", "sub/b.o", "cache/x", "old/c.c", "old/c.o", "old/keep/d.o", "older/c.c", "sub/top"] {
        write(&pair.copy(), file);
    }
    // The sender's has another type than the receiver's.
    write(&pair.tree(), "top");
    write(&pair.copy(), "top/x");
    let excluded = &["*.o", "cache/", "/top"];
    let outcome = pair.send(Cut { excluded, ..MIRROR });
    assert_eq!((outcome.deleted, outcome.stayed.len()), (4, 0));
    assert_eq!(pair.trash(), ["tree/old/c.c", "tree/older/c.c", "tree/sub/top"]);
    let left = ["a.c", "a.o", "cache/x", "old/c.o", "old/keep/d.o", "sub/b.c", "sub/b.o", "top/x"];
    assert_eq!(files(&pair.copy()), left);
}

/// A pattern of a directory relates to the tree, not to the receiver's directory.
#[test]
fn patterns_relate_to_the_tree_also_where_its_name_is_left_out() {
    let pair = Pair::new(&["d/a"]);
    let contents = || {
        transfer(
            &[pair.tree().join(".")],
            pair.into.path(),
            Cut { excluded: &["/d/log"], ..MIRROR },
            &mut untouched,
        )
    };
    contents();
    for file in ["d/log", "d/d/log"] {
        write(pair.into.path(), file);
    }
    assert_eq!(contents().deleted, 2);
    assert!(pair.into.path().join("d/log").exists());
}

#[test]
fn what_the_sender_has_and_does_not_send_stays() {
    let pair = Pair::new(&["a"]);
    let _socket = std::os::unix::net::UnixListener::bind(pair.tree().join("sock")).unwrap();
    for file in ["sock", "other"] {
        write(&pair.copy(), file);
    }
    let outcome = pair.send(MIRROR);
    assert_eq!(outcome.warnings, [WarningKind::Special]);
    assert_eq!(files(&pair.copy()), ["a", "sock"]);
    assert_eq!(pair.trash(), ["tree/other"]);
}

/// What patterns exclude does not make a tree of something else.
#[test]
fn a_tree_of_which_nothing_is_sent_counts_as_empty() {
    let pair = Pair::new(&["a", "d/b"]);
    pair.send(PLAIN);
    fs::remove_dir_all(pair.tree()).unwrap();
    write(&pair.tree(), "junk.o");
    write(&pair.tree(), ".byway-partial/x");
    let outcome = pair.send(Cut { excluded: &["*.o", ".byway-partial"], ..MIRROR });
    assert_eq!((outcome.warnings, outcome.deleted), (vec![WarningKind::EmptyTree], 0));
    assert_eq!(files(&pair.copy()), ["a", "d/b"]);
}

/// A symbolic link does not take the place of a file that is newer.
#[test]
fn a_newer_file_is_kept_where_the_sender_has_a_link() {
    let pair = Pair::new(&["a", "b"]);
    pair.send(PLAIN);
    fs::remove_file(pair.tree().join("a")).unwrap();
    symlink("b", pair.tree().join("a")).unwrap();
    let newer = pair.tree().join("a").symlink_metadata().unwrap().modified().unwrap()
        + std::time::Duration::from_secs(1);
    fs::write(pair.copy().join("a"), "precious").unwrap();
    fs::File::options().write(true).open(pair.copy().join("a")).unwrap().set_modified(newer).unwrap();
    let outcome = pair.send(Cut { hard_links: true, ..PLAIN });
    assert_eq!(outcome.refused, [(b"tree/a".to_vec(), Reason::Newer)]);
    assert_eq!(fs::read(pair.copy().join("a")).unwrap(), b"precious");
}

/// A disk that is not mounted is an empty directory.
#[test]
fn an_empty_tree_deletes_nothing_and_is_named() {
    let pair = Pair::new(&["a", "d/b"]);
    pair.send(PLAIN);
    fs::remove_dir_all(pair.tree()).unwrap();
    fs::create_dir(pair.tree()).unwrap();
    let outcome = pair.send(MIRROR);
    assert_eq!((outcome.warnings, outcome.unsent, outcome.deleted), (vec![WarningKind::EmptyTree], 1, 0));
    assert_eq!(files(&pair.copy()), ["a", "d/b"]);
    fs::create_dir(pair.tree().join("d")).unwrap();
    assert_eq!(pair.send(MIRROR).deleted, 2, "a directory below may be empty");
}

#[test]
fn one_type_takes_the_place_of_another() {
    let pair = Pair::new(&["file", "dir/x", "link-to-dir", "dir-to-link/y"]);
    pair.send(PLAIN);
    let at = |name: &str| pair.tree().join(name);
    fs::remove_file(at("file")).unwrap();
    write(&pair.tree(), "file/now/a/dir");
    fs::remove_dir_all(at("dir")).unwrap();
    write(&pair.tree(), "dir");
    fs::remove_file(at("link-to-dir")).unwrap();
    fs::create_dir(at("link-to-dir")).unwrap();
    fs::remove_dir_all(at("dir-to-link")).unwrap();
    symlink("dir", at("dir-to-link")).unwrap();
    // A link of the receiver in the place of a directory, to what must stay as it is.
    let outside = tempfile::tempdir().unwrap();
    write(outside.path(), "treasure");
    fs::remove_file(pair.copy().join("link-to-dir")).unwrap();
    symlink(outside.path(), pair.copy().join("link-to-dir")).unwrap();
    let outcome = pair.send(MIRROR);
    assert_eq!((outcome.failed.len(), outcome.stayed.len(), outcome.deleted), (0, 0, 6));
    same(&pair.tree(), &pair.copy());
    assert_eq!(
        pair.trash(),
        ["dir-to-link/y", "dir/x", "file", "link-to-dir"].map(|it| format!("tree/{it}"))
    );
    assert_eq!(files(outside.path()), ["treasure"]);
}

/// What is protected in a directory keeps it, and the file that has its name is refused.
#[test]
fn a_file_does_not_take_the_place_of_a_directory_that_holds_what_is_protected() {
    let pair = Pair::new(&["dir/x.o", "dir/x.c"]);
    pair.send(PLAIN);
    fs::remove_dir_all(pair.tree().join("dir")).unwrap();
    write(&pair.tree(), "dir");
    let outcome = pair.send(Cut { excluded: &["*.o"], ..MIRROR });
    assert_eq!(outcome.failed.len(), 1);
    assert_eq!(outcome.failed[0].1, Reason::IsDirectory);
    assert_eq!(files(&pair.copy()), ["dir/x.c", "dir/x.o"]);
    assert_eq!(pair.trash(), Vec::<String>::new());
}

#[test]
fn a_transfer_that_breaks_off_deletes_nothing() {
    let pair = Pair::new(&[]);
    generate(&pair.tree(), 3, 3_000_000).unwrap();
    pair.send(PLAIN);
    write(&pair.copy(), "0-first");
    write(&pair.copy(), "zz-last");
    write(&pair.tree(), "zz-new");
    fs::write(pair.tree().join("zz-new"), vec![7; 500_000]).unwrap();
    attempt(&[pair.tree()], pair.into.path(), MIRROR, None, 100_000, &mut untouched);
    assert_eq!(pair.trash(), [""; 0]);
    assert_eq!(pair.send(MIRROR).deleted, 2);
    same(&pair.tree(), &pair.copy());
}

/// Whoever writes at the receiver while it receives loses nothing.
#[test]
fn what_somebody_makes_or_changes_meanwhile_stays_and_is_named() {
    let pair = Pair::new(&["a", "z"]);
    pair.send(PLAIN);
    for file in ["old", "changed", "dir/old", "dir/changed"] {
        write(&pair.copy(), file);
    }
    fs::write(pair.tree().join("a"), "other contents").unwrap();
    tick(pair.from.path());
    let (copy, from) = (pair.copy(), pair.from.path());
    let outcome = transfer(&[pair.tree()], pair.into.path(), MIRROR, &mut |_, _, _| {
        tick(from);
        for file in ["changed", "dir/changed", "dir/new"] {
            write(&copy, file);
        }
    });
    let mut stayed: Vec<_> = outcome.stayed.iter().map(|(path, reason)| (path.as_str(), *reason)).collect();
    stayed.sort_unstable();
    let named = ["tree/changed", "tree/dir/changed", "tree/dir/new"];
    assert_eq!(stayed, named.map(|path| (path, Reason::ChangedMeanwhile)));
    assert_eq!(pair.trash(), ["tree/dir/old", "tree/old"]);
    assert_eq!(files(&pair.copy()), ["a", "changed", "dir/changed", "dir/new", "z"]);
}
