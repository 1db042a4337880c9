//! `byway send -n`: what a transfer would do, by the receiver's word, and nothing is changed there.

use crate::common::{Place, Running};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

fn write(place: &Place, files: &[&str]) {
    for file in files {
        let path = place.path(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, file).unwrap();
    }
}

fn date(place: &Place, file: &str, seconds: u64) {
    let file = fs::File::options().write(true).open(place.path(file)).unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
}

/// Everything below a directory, with what tells of any change.
fn state(top: &Path) -> Vec<(String, i64, i64, u64)> {
    let (mut found, mut directories) = (Vec::new(), vec![top.to_owned()]);
    while let Some(directory) = directories.pop() {
        let of = |path: &Path| {
            let stat = path.symlink_metadata().unwrap();
            (path.display().to_string(), stat.ctime(), stat.ctime_nsec(), stat.size())
        };
        found.push(of(&directory));
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.symlink_metadata().unwrap().is_dir() {
                directories.push(path);
            } else {
                found.push(of(&path));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn each_entry_is_named_with_what_would_become_of_it() {
    let place = Place::new();
    write(&place, &["tree/new", "tree/replaced", "tree/newer", "tree/same", "tree/d/deep", "tree/x.o"]);
    write(&place, &["in/tree/replaced", "in/tree/newer", "in/tree/same", "in/tree/gone/a", "in/tree/y.o"]);
    for (file, seconds) in [("same", 5), ("replaced", 5), ("newer", 5)] {
        date(&place, &format!("tree/{file}"), seconds);
        fs::copy(place.path(&format!("tree/{file}")), place.path(&format!("in/tree/{file}"))).unwrap();
    }
    for (file, seconds) in [("same", 5), ("replaced", 4), ("newer", 6)] {
        date(&place, &format!("in/tree/{file}"), seconds);
    }
    let (receiver, ticket) = place.recv(&["in", "--once"]);
    let before = state(&place.path("in"));
    let asked = ["send", "-n", "tree", &ticket, "--delete", "--exclude", "*.o"];
    let looked = place.run("sender", &asked);
    // As the transfer would end.
    assert_eq!(looked.code, Some(4));
    assert!(looked.stderr.contains("files that are newer at the receiver would stay"), "{}", looked.stderr);
    let said = String::from_utf8(looked.stdout).unwrap();
    let lines: Vec<&str> = said.lines().collect();
    let items = [
        "new         tree/d/deep",
        "new         tree/new",
        "newer there tree/newer",
        "replaced    tree/replaced",
        "deleted     tree/gone",
    ];
    assert_eq!(lines[..5], items, "{said}");
    assert!(lines[5].contains("1 entry is excluded; of these"), "{said}");
    assert!(lines[5].ends_with("2 new, 1 replaced, 1 newer there, 2 deleted"), "{said}");
    assert_eq!(lines.len(), 6);
    let told = place.run("sender", &[&asked[..], &["--json", "--update"]].concat());
    told.succeeded();
    let result = told.result();
    let counts = ["new_entries", "replaced_entries", "newer_files", "deleted_entries", "files"];
    assert_eq!(counts.map(|name| result[name].clone()), [2, 1, 1, 2, 5].map(Value::from), "{result}");
    let text = String::from_utf8(told.stdout).unwrap();
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let items: Vec<&Value> = events.iter().filter(|event| event["event"] == "item").collect();
    assert_eq!(items.len(), 5);
    assert_eq!((&items[4]["what"], &items[4]["entries"]), (&"deleted".into(), &2.into()));
    assert_eq!(state(&place.path("in")), before, "nothing was changed");
    // Neither was the ticket used up.
    place.run("sender", &["send", "tree", &ticket, "--replace-newer"]).succeeded();
    receiver.end().succeeded();
}

#[test]
fn nothing_is_made_below_a_directory_that_is_missing() {
    let place = Place::new();
    write(&place, &["tree/a"]);
    let key = String::from_utf8(place.run("sender", &["id"]).stdout).unwrap().trim_end().to_owned();
    let (_receiver, ticket) = place.recv(&["in", "--allow", &format!("{key}=friends/ann")]);
    let looked = place.run("sender", &["send", "-n", "tree", &ticket]);
    looked.succeeded();
    assert!(String::from_utf8(looked.stdout).unwrap().starts_with("new         tree/a\n"));
    assert_eq!(fs::read_dir(place.path("in")).unwrap().count(), 0);
}

#[test]
fn a_look_does_not_end_a_transfer_that_runs() {
    let place = Place::new();
    fs::write(place.path("file"), vec![7; 3 << 20]).unwrap();
    let (_receiver, ticket) = place.recv(&["in"]);
    let slow = ["send", "file", &ticket, "--bwlimit", "1M", "--json"];
    let mut sender = Running::start(place.command("sender", &slow));
    sender.event("progress");
    place.run("sender", &["send", "-n", "file", &ticket]).succeeded();
    sender.end().succeeded();
}

#[test]
fn without_a_receiver_all_is_counted_and_it_says_so() {
    let place = Place::new();
    write(&place, &["tree/a"]);
    let (receiver, ticket) = place.recv(&["in"]);
    receiver.interrupt();
    receiver.end();
    let looked = place.run("sender", &["send", "-n", "tree", &ticket]);
    looked.succeeded();
    assert!(
        looked.stderr.contains("this is all there is here, whatever it has already"),
        "{}",
        looked.stderr
    );
    assert_eq!(looked.stdout, b"6 B in 1 files, 1 directories and 0 symbolic links\n");
}
