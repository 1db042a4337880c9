//! `byway send --delete`: the receiver moves to its trash what the sender has not.

use crate::common::{Place, Running, assert_same};
use std::fs;
use std::path::PathBuf;

fn write(place: &Place, files: &[&str]) {
    for file in files {
        let path = place.path(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, file).unwrap();
    }
}

/// The one folder in the trash.
fn trash(place: &Place) -> PathBuf {
    let mut folders = fs::read_dir(place.path("in/.byway-trash")).unwrap();
    let folder = folders.next().unwrap().unwrap().path();
    assert!(folders.next().is_none());
    folder
}

#[test]
fn what_is_gone_here_is_in_the_trash_there_and_both_ends_say_where() {
    let place = Place::new();
    write(&place, &["tree/a", "tree/old/b", "tree/old/c", "in/other"]);
    let (receiver, ticket) = place.recv(&["in"]);
    place.run("sender", &["send", "tree", &ticket, "--delete"]).succeeded();
    fs::remove_dir_all(place.path("tree/old")).unwrap();
    write(&place, &["in/tree/added-here", "in/tree/cache/x"]);
    let kept = place.run("sender", &["send", "tree", &ticket]);
    kept.succeeded();
    assert!(place.path("in/tree/old/b").exists(), "it was not asked for");
    let sent = place.run("sender", &["send", "tree", &ticket, "--delete", "--exclude", "cache", "--json"]);
    sent.succeeded();
    let result = sent.result();
    let folder = format!(".byway-trash/{}", trash(&place).file_name().unwrap().to_str().unwrap());
    assert_eq!((&result["deleted_entries"], &result["trash"]), (&4.into(), &folder.as_str().into()));
    for file in ["old/b", "old/c", "added-here"] {
        assert!(trash(&place).join("tree").join(file).exists(), "{file}");
    }
    fs::remove_dir_all(place.path("in/tree/cache")).unwrap();
    assert_same(&place.path("tree"), &place.path("in/tree"));
    assert!(place.path("in/other").exists());
    receiver.interrupt();
    let said = receiver.end().stderr;
    assert!(said.contains(&format!("4 entries were moved to {folder} at the receiver")), "{said}");
}

#[test]
fn a_receiver_that_deletes_nothing_is_a_partial_end_at_both() {
    let place = Place::new();
    write(&place, &["tree/a", "in/tree/old"]);
    let (receiver, ticket) = place.recv(&["in", "--no-delete", "--once"]);
    let sent = place.run("sender", &["send", "tree", &ticket, "--delete", "--json"]);
    assert_eq!(sent.code, Some(4), "{}", sent.stderr);
    let result = sent.result();
    assert_eq!((&result["undeleted_entries"], &result["verified"]), (&1.into(), &true.into()), "{result}");
    assert!(result["failed_entries"].is_null() && result["deleted_entries"].is_null());
    let warned = String::from_utf8(sent.stdout).unwrap();
    assert!(warned.contains("the receiver runs with --no-delete"), "{warned}");
    assert_eq!(receiver.end().code, Some(4));
    assert!(place.path("in/tree/old").exists() && place.path("in/tree/a").exists());
}

#[test]
fn what_would_remove_what_was_not_meant_is_refused() {
    let place = Place::new();
    write(&place, &["tree/a", "tree/b"]);
    fs::write(place.path("list"), "a\n").unwrap();
    let (_receiver, ticket) = place.recv(&["in"]);
    let with_list = ["send", "tree", &ticket, "--delete", "--files-from", "list"];
    let refused = place.run("sender", &with_list);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("'--delete' cannot be used with '--files-from"), "{}", refused.stderr);
    place.run("sender", &["send", "-", &ticket, "--delete"]).failed(2, "of which all is sent");
    // A disk that is not mounted is an empty directory.
    place.run("sender", &["send", "tree", &ticket, "--delete"]).succeeded();
    ["tree/a", "tree/b"].iter().for_each(|file| fs::remove_file(place.path(file)).unwrap());
    let empty = place.run("sender", &["send", "tree", &ticket, "--delete"]);
    assert_eq!(empty.code, Some(4));
    assert!(empty.stderr.contains("tree: empty, so nothing is deleted"), "{}", empty.stderr);
    assert!(place.path("in/tree/a").exists());
}

/// Two senders of one tree, which deletes: neither takes away what the other brings.
#[test]
fn two_sends_of_one_tree_at_once_leave_it_whole() {
    let place = Place::new();
    byway_files::generate(&place.path("tree"), 4, 4_000_000).unwrap();
    let ids = ["one", "two"]
        .map(|host| String::from_utf8(place.run(host, &["id"]).stdout).unwrap().trim_end().to_owned());
    let (_receiver, ticket) = place.recv(&["in", "--allow", &ids[0], "--allow", &ids[1]]);
    write(&place, &["in/tree/old/x", "in/tree/old/y", "in/tree/gone"]);
    for _ in 0..3 {
        let start = |host: &str| Running::start(place.command(host, &["send", "tree", &ticket, "--delete"]));
        let senders = [start("one"), start("two")];
        senders.into_iter().for_each(|sender| sender.end().succeeded());
        assert_same(&place.path("tree"), &place.path("in/tree"));
    }
}
