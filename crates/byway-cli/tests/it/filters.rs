//! `byway send` with --exclude, --include and --files-from.

use crate::common::{Place, Running, assert_same};
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

/// The paths of all files below a directory, sorted.
fn files(top: &Path) -> Vec<String> {
    let (mut found, mut directories) = (Vec::new(), vec![top.to_owned()]);
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else {
                found.push(path.strip_prefix(top).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    found.sort();
    found
}

fn tree(place: &Place) {
    for file in ["work/a.o", "work/a.c", "work/keep.o", "work/cache/x", "work/sub/cache/y", "work/sub/b.o"] {
        let path = place.path(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, file).unwrap();
    }
}

#[test]
fn what_is_excluded_stays_and_is_counted() {
    let place = Place::new();
    tree(&place);
    let (_receiver, ticket) = place.recv(&["in"]);
    let patterns = ["--exclude", "*.o", "--include", "keep.o", "--exclude", "/cache/"];
    let plan = place.run("sender", &[&["send", "-n", "work", &ticket, "--json"], &patterns[..]].concat());
    let plan = plan.result();
    assert_eq!((&plan["files"], &plan["excluded_entries"]), (&3.into(), &3.into()), "{plan}");
    let sent = place.run("sender", &[&["send", "work", &ticket, "--json"], &patterns[..]].concat());
    sent.succeeded();
    assert_eq!(sent.result()["excluded_entries"], 3);
    assert_eq!(files(&place.path("in")), ["work/a.c", "work/keep.o", "work/sub/cache/y"]);
    let again = place.run("sender", &["send", "work", &ticket, "--exclude", "*"]);
    again.succeeded();
    assert!(again.stderr.contains("; 5 entries are excluded"), "{}", again.stderr);
}

#[test]
fn a_list_says_what_is_sent_and_what_it_misses_is_named() {
    let place = Place::new();
    tree(&place);
    let (_receiver, ticket) = place.recv(&["in"]);
    let list = place.path("list");
    fs::write(&list, "./sub\na.c\n").unwrap();
    place.run("sender", &["send", "work", &ticket, "--files-from", "list"]).succeeded();
    assert_eq!(files(&place.path("in")), ["work/a.c", "work/sub/b.o", "work/sub/cache/y"]);
    let mut command = place.command("sender", &["send", "work", &ticket, "--files-from", "-"]);
    command.stdin(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"cache/x\ngone\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(4));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("work/gone: not sent, cannot be read (No such file"), "{said}");
    assert!(place.path("in/work/cache/x").exists());
}

/// Three hosts of a cluster, which share a home, send a list each. One is killed and sends again.
#[test]
fn lists_of_a_tree_are_sent_by_several_hosts() {
    let place = Place::new();
    let top = place.path("survey");
    fs::create_dir(&top).unwrap();
    byway_files::generate(&top, 5, 3_000_000).unwrap();
    fs::create_dir(top.join("empty")).unwrap();
    let tasks = place.run("here", &["tasks", "survey", "lists", "--count", "3", "--json"]);
    tasks.succeeded();
    let told = tasks.result();
    assert_eq!(told["lists"], 3, "{told}");
    let (bytes, largest) = (told["bytes"].as_u64().unwrap(), told["largest_bytes"].as_u64().unwrap());
    assert!(3 * largest <= bytes + bytes / 2, "{told}");
    let lists: Vec<String> = files(&place.path("lists"));
    assert_eq!(lists, ["01", "02", "03"]);
    let (_receiver, ticket) = place.recv(&["in"]);
    let send = |list: &str| {
        let list = format!("lists/{list}");
        place.command("cluster", &["send", "--files-from", &list, "--from", "survey", &ticket])
    };
    let sending: Vec<Running> = lists.iter().map(|list| Running::start(send(list))).collect();
    sending[0].signal("KILL");
    for (number, running) in sending.into_iter().enumerate() {
        let ended = running.end();
        assert!(number == 0 || ended.code == Some(0), "{}", ended.stderr);
    }
    // What is there is not sent again.
    for list in &lists {
        Running::start(send(list)).end().succeeded();
    }
    assert_same(&top, &place.path("in"));
    let both =
        place.run("here", &["send", "survey", &ticket, "--files-from", "lists/01", "--from", "survey"]);
    both.failed(2, "name no other path");
    place.run("here", &["send", "--files-from", "lists/01", "--from", "survey"]).failed(2, "has no ticket");
    place.run("here", &["tasks", "nowhere", "lists", "--count", "3"]).failed(3, "nowhere");
}

#[test]
fn what_cannot_be_meant_is_refused_before_anything_is_sent() {
    let place = Place::new();
    tree(&place);
    fs::write(place.path("up"), "../x\n").unwrap();
    let (_receiver, ticket) = place.recv(&["in"]);
    for (more, code, sentence) in [
        (&["work", &ticket, "--exclude", "[a"][..], 2, "the pattern `[a` matches nothing"),
        (&["work", &ticket, "--include", "a"], 2, "stands before every --exclude"),
        (&["-", &ticket, "--exclude", "a"], 2, "of which all is sent"),
        (&["work/a.c", &ticket, "--files-from", "list"], 2, "--files-from lists paths in one directory"),
        (&["work", &ticket, "--files-from", "nowhere"], 3, "the list nowhere cannot be used (No such file"),
        (&["work", &ticket, "--files-from", "up"], 2, "lead to something in the tree"),
    ] {
        place.run("sender", &[&["send"], more].concat()).failed(code, sentence);
    }
    assert_eq!(files(&place.path("in")), [""; 0]);
    let stars = "*a".repeat(500);
    let all = Running::start(place.command("sender", &["send", "work", &ticket, "--exclude", &stars]));
    all.end().succeeded();
}
