//! Files with several names, and what else a copy keeps or counts.

use crate::common::{Cut, PLAIN, same, tick, transfer, untouched};
use byway_files::{NotCopied, Reason};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

const LINKED: Cut = Cut { hard_links: true, ..PLAIN };

fn inode(path: &Path) -> u64 {
    path.metadata().unwrap().ino()
}

/// A tree in which one file has three names, and another two.
fn write_tree(tree: &Path) {
    fs::create_dir_all(tree.join("b/c")).unwrap();
    fs::write(tree.join("a"), "one").unwrap();
    fs::write(tree.join("b/lone"), "lone").unwrap();
    fs::write(tree.join("b/two"), vec![7; 300_000]).unwrap();
    fs::hard_link(tree.join("a"), tree.join("b/a")).unwrap();
    fs::hard_link(tree.join("a"), tree.join("b/c/z")).unwrap();
    fs::hard_link(tree.join("b/two"), tree.join("two")).unwrap();
}

#[test]
fn further_names_of_a_file_are_names_of_one_file() {
    let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (tree, copy) = (from.path().join("tree"), into.path().join("tree"));
    write_tree(&tree);
    for cut in [LINKED, Cut { batch: 50, objects: 1, seed: 9, window: 5, ..LINKED }] {
        let first = transfer(std::slice::from_ref(&tree), into.path(), cut, &mut untouched);
        assert_eq!((first.travelled, first.done), (300_007, Some((6, 300_007, 0))));
        assert_eq!(first.not_copied, NotCopied::default());
        same(&tree, &copy);
        assert_eq!([inode(&copy.join("b/a")), inode(&copy.join("b/c/z"))], [inode(&copy.join("a")); 2]);
        assert_eq!(inode(&copy.join("two")), inode(&copy.join("b/two")));
        assert_ne!(inode(&copy.join("a")), inode(&copy.join("two")));
        let links = inode(&copy.join("b/c/z"));
        let again = transfer(std::slice::from_ref(&tree), into.path(), cut, &mut untouched);
        assert_eq!((again.travelled, again.unchanged, again.done), (0, 3, Some((6, 300_007, 0))));
        assert_eq!(inode(&copy.join("b/c/z")), links);
        // One that is written again takes its names along.
        fs::write(tree.join("b/c/z"), "other").unwrap();
        transfer(std::slice::from_ref(&tree), into.path(), cut, &mut untouched);
        same(&tree, &copy);
        assert_eq!([inode(&copy.join("b/a")), inode(&copy.join("b/c/z"))], [inode(&copy.join("a")); 2]);
        fs::remove_dir_all(into.path()).unwrap();
        fs::write(tree.join("a"), "one").unwrap();
    }
}

#[test]
fn separate_copies_become_one_file_and_the_reverse() {
    let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (tree, copy) = (from.path().join("tree"), into.path().join("tree"));
    write_tree(&tree);
    let apart = transfer(std::slice::from_ref(&tree), into.path(), PLAIN, &mut untouched);
    assert_eq!(apart.not_copied, NotCopied { hard_links: 5, ..NotCopied::default() });
    assert_ne!(inode(&copy.join("a")), inode(&copy.join("b/a")));
    let linked = transfer(std::slice::from_ref(&tree), into.path(), LINKED, &mut untouched);
    assert_eq!((linked.travelled, linked.refused.len()), (0, 0));
    assert_eq!(inode(&copy.join("a")), inode(&copy.join("b/a")));
    // A name that becomes a file of its own does not change the others.
    fs::remove_file(tree.join("b/a")).unwrap();
    fs::write(tree.join("b/a"), "own").unwrap();
    transfer(std::slice::from_ref(&tree), into.path(), LINKED, &mut untouched);
    same(&tree, &copy);
    assert_eq!(inode(&copy.join("a")), inode(&copy.join("b/c/z")));
}

#[test]
fn a_name_that_became_another_is_deleted_and_the_file_stays() {
    let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (tree, copy) = (from.path().join("tree"), into.path().join("tree"));
    write_tree(&tree);
    let cut = Cut { deletes: true, ..LINKED };
    transfer(std::slice::from_ref(&tree), into.path(), cut, &mut untouched);
    // The name of a file with three; and a file with two, whose other name is written anew.
    fs::rename(tree.join("b/a"), tree.join("b/new")).unwrap();
    fs::remove_file(tree.join("two")).unwrap();
    fs::write(tree.join("b/two"), "other").unwrap();
    let outcome = transfer(std::slice::from_ref(&tree), into.path(), cut, &mut untouched);
    assert_eq!((outcome.deleted, outcome.stayed), (2, Vec::new()));
    same(&tree, &copy);
    assert_eq!([inode(&copy.join("b/new")), inode(&copy.join("b/c/z"))], [inode(&copy.join("a")); 2]);
    // A directory here that is a further name there makes room for it.
    fs::remove_file(copy.join("b/c/z")).unwrap();
    fs::create_dir(copy.join("b/c/z")).unwrap();
    let outcome = transfer(std::slice::from_ref(&tree), into.path(), cut, &mut untouched);
    assert_eq!((outcome.deleted, outcome.stayed, outcome.refused), (1, Vec::new(), Vec::new()));
    same(&tree, &copy);
}

#[test]
fn a_name_is_not_made_of_another_file_nor_in_place_of_a_newer_one() {
    let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (tree, copy) = (from.path().join("tree"), into.path().join("tree"));
    write_tree(&tree);
    fs::create_dir_all(copy.join("b/c")).unwrap();
    fs::create_dir(copy.join("two")).unwrap();
    let future =
        tree.join("a").metadata().unwrap().modified().unwrap() + std::time::Duration::from_secs(1_000);
    for name in ["a", "b/c/z"] {
        fs::write(copy.join(name), "mine").unwrap();
        fs::File::options().write(true).open(copy.join(name)).unwrap().set_modified(future).unwrap();
    }
    let outcome = transfer(std::slice::from_ref(&tree), into.path(), LINKED, &mut untouched);
    assert_eq!(outcome.failed.len(), 1, "the newer file is kept");
    let reasons = |refused: &[(Vec<u8>, Reason)]| -> Vec<_> {
        refused.iter().map(|(path, reason)| (String::from_utf8_lossy(path).into_owned(), *reason)).collect()
    };
    let expected = [
        ("tree/b/a".to_owned(), Reason::Newer),
        ("tree/b/c/z".to_owned(), Reason::Newer),
        ("tree/two".to_owned(), Reason::IsDirectory),
    ];
    assert_eq!(reasons(&outcome.refused), expected);
    assert_eq!(fs::read(copy.join("b/c/z")).unwrap(), b"mine");
    assert_eq!(inode(&copy.join("a")), inode(&copy.join("b/a")), "a name of the file that is kept");
    fs::remove_file(copy.join("a")).unwrap();
    fs::remove_file(copy.join("b/a")).unwrap();
    let outcome = transfer(std::slice::from_ref(&tree), into.path(), LINKED, &mut untouched);
    assert_eq!(reasons(&outcome.refused), expected[1..]);
    assert_eq!(inode(&copy.join("a")), inode(&copy.join("b/a")));
}

#[test]
fn a_mode_of_one_name_is_not_given_to_another() {
    let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (tree, copy) = (from.path().join("tree"), into.path().join("tree"));
    write_tree(&tree);
    transfer(std::slice::from_ref(&tree), into.path(), LINKED, &mut untouched);
    let time = tree.join("a").metadata().unwrap().modified().unwrap();
    fs::remove_file(tree.join("a")).unwrap();
    fs::write(tree.join("a"), "one").unwrap();
    fs::File::options().write(true).open(tree.join("a")).unwrap().set_modified(time).unwrap();
    fs::set_permissions(tree.join("a"), fs::Permissions::from_mode(0o600)).unwrap();
    transfer(std::slice::from_ref(&tree), into.path(), LINKED, &mut untouched);
    same(&tree, &copy);
}

#[test]
fn all_names_of_a_file_that_is_gone_go_at_once() {
    let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (tree, copy) = (from.path().join("tree"), into.path().join("tree"));
    write_tree(&tree);
    let cut = Cut { deletes: true, ..LINKED };
    transfer(std::slice::from_ref(&tree), into.path(), cut, &mut untouched);
    for name in ["a", "b/a", "b/c/z"] {
        fs::remove_file(tree.join(name)).unwrap();
    }
    tick(into.path());
    let outcome = transfer(std::slice::from_ref(&tree), into.path(), cut, &mut untouched);
    assert_eq!((outcome.deleted, outcome.stayed), (3, Vec::new()));
    same(&tree, &copy);
}

#[test]
fn what_a_copy_does_not_keep_is_counted() {
    let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let tree = from.path().join("tree");
    fs::create_dir(&tree).unwrap();
    fs::write(tree.join("plain"), "x").unwrap();
    fs::write(tree.join("special"), "x").unwrap();
    fs::set_permissions(tree.join("special"), fs::Permissions::from_mode(0o4755)).unwrap();
    let file = fs::File::open(tree.join("plain")).unwrap();
    let has_attributes =
        rustix::fs::fsetxattr(&file, "user.byway", b"1", rustix::fs::XattrFlags::empty()).is_ok();
    let other_owner = std::os::unix::fs::chown(tree.join("plain"), Some(1_234), None).is_ok();
    let outcome = transfer(std::slice::from_ref(&tree), into.path(), PLAIN, &mut untouched);
    let expected = NotCopied {
        owners: u64::from(other_owner),
        special_modes: 1,
        xattrs: u64::from(has_attributes),
        ..NotCopied::default()
    };
    assert_eq!(outcome.not_copied, expected);
    assert_eq!(outcome.not_copied.sum(), 1 + u64::from(other_owner) + u64::from(has_attributes));
}
