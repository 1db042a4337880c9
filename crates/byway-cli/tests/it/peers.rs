//! Receivers with names, and the file that a person and byway both write.

use crate::common::{Ended, Place, Running, assert_same};
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

/// Where the sender's file is.
const FILE: &str = "sender/.config/byway/config.toml";

fn place() -> Place {
    let place = Place::new();
    fs::write(place.path("file"), vec![7; 10_000]).unwrap();
    place
}

fn byway(place: &Place, arguments: &[&str]) -> Ended {
    place.run("sender", arguments)
}

/// Writes the sender's file, for its owner alone.
fn write(place: &Place, text: &str) -> PathBuf {
    let path = place.path(FILE);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    mode(&path, 0o600);
    path
}

fn mode(path: &PathBuf, bits: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(bits)).unwrap();
}

/// A receiver into `in`, and a file with its ticket.
fn receiver(place: &Place, more: &[&str]) -> Running {
    let (receiver, ticket) = place.recv(&[&["in"], more].concat());
    fs::write(place.path("ticket.txt"), ticket).unwrap();
    receiver
}

#[test]
fn a_name_stands_for_a_ticket_until_it_is_removed() {
    let place = place();
    let receiver = receiver(&place, &["--allow-forward", "localhost:9"]);
    byway(&place, &["peer", "add", "nas", "@ticket.txt"]).succeeded();
    assert_eq!(fs::metadata(place.path(FILE)).unwrap().permissions().mode() & 0o777, 0o600);
    byway(&place, &["send", "file", "nas:"]).succeeded();
    assert_same(&place.path("file"), &place.path("in/file"));
    for name in ["nas", "nas:"] {
        byway(&place, &["ping", name, "--count", "1"]).succeeded();
    }
    let mut forward =
        Running::start(place.command("sender", &["forward", "0:localhost:9", "--to", "nas", "--json"]));
    forward.event("connected");
    drop(forward);
    let mut by_variable = place.command("sender", &["forward", "0:localhost:9", "--json"]);
    by_variable.env("BYWAY_TICKET", "nas");
    Running::start(by_variable).event("connected");
    let listed = byway(&place, &["peer", "list"]);
    listed.succeeded();
    let text = String::from_utf8(listed.stdout).unwrap();
    assert!(text.contains("nas") && text.contains("byway-key-") && !text.contains("byway1-"), "{text}");
    byway(&place, &["peer", "rename", "nas", "cellar"]).succeeded();
    byway(&place, &["send", "file", "cellar:"]).succeeded();
    let peers = byway(&place, &["peer", "list", "--json"]).result()["peers"].clone();
    assert_eq!((&peers[0]["name"], peers.as_array().unwrap().len()), (&json!("cellar"), 1));
    let mut command = place.command("sender", &["send", "file"]);
    command.env("BYWAY_TICKET", "cellar:");
    Running::start(command).end().succeeded();
    byway(&place, &["peer", "remove", "cellar"]).succeeded();
    byway(&place, &["send", "file", "cellar:"]).failed(2, "no peer is called `cellar`");
    byway(&place, &["peer", "remove", "cellar"]).failed(2, "no peer is called `cellar`");
    drop(receiver);
}

#[test]
fn a_name_gets_another_ticket_if_that_is_asked_for() {
    let place = place();
    let (gone, old) = place.recv(&["old"]);
    drop(gone);
    let receiver = receiver(&place, &["--new-ticket"]);
    write(
        &place,
        &format!("# mine\n[peer.nas] # in the cellar\nticket = '{old}' # of May\n[send]\nretry = true\n"),
    );
    byway(&place, &["peer", "add", "nas", "@ticket.txt"]).failed(2, "by `byway peer add --replace`");
    byway(&place, &["peer", "add", "--replace", "nas", "@ticket.txt"]).succeeded();
    let ticket = fs::read_to_string(place.path("ticket.txt")).unwrap();
    let expected =
        format!("# mine\n[peer.nas] # in the cellar\nticket = \"{ticket}\" # of May\n[send]\nretry = true\n");
    assert_eq!(fs::read_to_string(place.path(FILE)).unwrap(), expected);
    byway(&place, &["send", "file", "nas:"]).succeeded();
    byway(&place, &["peer", "add", "--replace", "lab", "@ticket.txt"]).succeeded();
    byway(&place, &["send", "file", "lab:"]).succeeded();
    drop(receiver);
}

#[test]
fn a_source_sends_to_a_peer() {
    let place = place();
    let mut sink = Running::start(place.command("receiver", &["sink", "in", "--listen", "127.0.0.1:0"]));
    byway(&place, &["peer", "add", "mast", &sink.line()]).succeeded();
    fs::write(place.path("records"), "a record\n").unwrap();
    let mut source = place.command("sender", &["source", "--to", "mast", "--name", "m", "--demand", "1M"]);
    source.stdin(fs::File::open(place.path("records")).unwrap());
    Running::start(source).end().succeeded();
}

#[test]
fn what_may_be_a_path_or_a_peer_is_not_guessed() {
    let place = place();
    let receiver = receiver(&place, &[]);
    byway(&place, &["peer", "add", "nas", "@ticket.txt"]).succeeded();
    fs::write(place.path("nas:"), "a file").unwrap();
    byway(&place, &["send", "file", "nas:"]).failed(2, "write `./nas:` for the path");
    byway(&place, &["send", "./nas:", "file", "@ticket.txt"]).succeeded();
    fs::remove_file(place.path("nas:")).unwrap();
    byway(&place, &["send", "file", "nas"]).failed(2, "write `nas:` to send to it");
    byway(&place, &["send", "file", "nsa:"]).failed(2, "no peer is called `nsa`: `nas` is meant, perhaps");
    byway(&place, &["ping", "nsa"]).failed(2, "`nas` is meant, perhaps");
    for arguments in [&["ping", "office"][..], &["send", "file", "TICKET"]] {
        let ended = byway(&place, arguments);
        ended.failed(2, "it is no ticket: `byway recv` prints one, which begins with byway1- or byway2-");
        ended.failed(2, "`byway peer list` shows the names");
    }
    byway(&place, &["send", "file", "office:"]).failed(2, "no peer is called `office`: `byway peer list`");
    byway(&place, &["send", "file", "nas:", "--no-config"]).failed(2, "no peer is called `nas`");
    drop(receiver);
}

#[test]
fn names_and_tickets_are_checked_before_they_are_kept() {
    let place = place();
    let receiver = receiver(&place, &[]);
    for (name, part) in
        [("-n", "unexpected argument"), ("byway2-x", "does not begin with `byway`"), ("a/b", "letters")]
    {
        let ended = byway(&place, &["peer", "add", name, "@ticket.txt"]);
        assert!(ended.code == Some(2) && ended.stderr.contains(part), "{name}: {}", ended.stderr);
    }
    let ended = byway(&place, &["peer", "add", "--", "-n", "@ticket.txt"]);
    assert!(
        ended.code == Some(2) && ended.stderr.contains("begins with a letter or a digit"),
        "{}",
        ended.stderr
    );
    byway(&place, &["peer", "add", "nas", "nonsense"]).failed(2, "ticket");
    byway(&place, &["peer", "add", "nas", "@nowhere"]).failed(3, "nowhere");
    assert!(!place.path(FILE).exists());
    byway(&place, &["peer", "add", "nas", "@ticket.txt"]).succeeded();
    byway(&place, &["peer", "add", "nas", "@ticket.txt"]).failed(2, "already");
    drop(receiver);
}

#[test]
fn a_file_that_others_write_or_that_cannot_be_read_is_not_heeded() {
    let place = place();
    let path = write(&place, "# mine\n");
    mode(&path, 0o620);
    for verb in [&["id"][..], &["peer", "list"], &["ping", "nas"]] {
        byway(&place, verb).failed(2, "run `chmod go-w ");
    }
    assert_eq!(byway(&place, &["config", "check"]).code, Some(2));
    byway(&place, &["id", "--no-config"]).succeeded();
    mode(&path, 0o600);
    byway(&place, &["id"]).succeeded();
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    byway(&place, &["id"]).failed(2, "it is no file");
    if !rustix::process::geteuid().is_root() {
        fs::remove_dir(&path).unwrap();
        write(&place, "");
        mode(&path, 0o000);
        byway(&place, &["id"]).failed(1, "cannot read it");
    }
}

#[test]
fn an_edit_keeps_comments_and_order_and_tightens_the_mode() {
    let place = place();
    let receiver = receiver(&place, &[]);
    let ticket = fs::read_to_string(place.path("ticket.txt")).unwrap();
    let text =
        format!("# the first line\n\n[peer.old]   # in the cellar\nticket = '{ticket}'\n\n# the last line\n");
    let path = write(&place, &text);
    mode(&path, 0o644);
    let checked = byway(&place, &["config", "check"]);
    checked.succeeded();
    assert!(String::from_utf8(checked.stdout).unwrap().contains("others can read it (mode 644)"));
    byway(&place, &["peer", "rename", "old", "new"]).succeeded();
    byway(&place, &["peer", "add", "nas", "@ticket.txt"]).succeeded();
    byway(&place, &["peer", "remove", "nas"]).succeeded();
    assert_eq!(fs::read_to_string(&path).unwrap(), text.replace("peer.old", "peer.new"));
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    drop(receiver);
}

#[test]
fn of_two_who_add_at_once_both_are_kept() {
    let place = place();
    let receiver = receiver(&place, &[]);
    let names = ["a", "b", "c", "d", "e", "f"];
    let adding =
        names.map(|name| Running::start(place.command("sender", &["peer", "add", name, "@ticket.txt"])));
    adding.into_iter().for_each(|one| one.end().succeeded());
    let peers = byway(&place, &["peer", "list", "--json"]).result()["peers"].clone();
    let listed: Vec<_> =
        peers.as_array().unwrap().iter().map(|peer| peer["name"].as_str().unwrap()).collect();
    assert_eq!(listed, names);
    drop(receiver);
}

#[test]
fn a_check_names_each_mistake_with_its_line() {
    let place = place();
    let none = byway(&place, &["config", "check"]);
    none.succeeded();
    assert_eq!(String::from_utf8(none.stdout).unwrap(), "no mistake was found\n");
    let text = "progres = true\n[send]\nretry = \"yes\"\n[peer.nas]\nticket = \"byway1-x\"\n";
    let path = write(&place, text).display().to_string();
    let checked = byway(&place, &["config", "check"]);
    assert_eq!(checked.code, Some(2));
    let told = String::from_utf8(checked.stdout).unwrap();
    for expected in [
        format!("{path}:1: there is no key `progres`: `progress` is meant, perhaps"),
        format!("{path}:3: `retry` is a text, and must be true or false"),
        format!("{path}:5: "),
    ] {
        assert!(told.contains(&expected), "{expected}: {told}");
    }
    let result = byway(&place, &["config", "check", "--json"]).result();
    assert_eq!((&result["verb"], &result["exit"]), (&json!("config"), &json!(2)));
    let findings = result["findings"].as_array().unwrap();
    let lines: Vec<_> = findings.iter().map(|it| (it["line"].clone(), it["warning"].clone())).collect();
    assert_eq!(lines, [1, 3, 5].map(|line| (json!(line), json!(false))));
    byway(&place, &["id"]).failed(2, "config.toml:1: there is no key `progres`");
    let mut other = place.command("sender", &["config", "check"]);
    fs::write(place.path("other.toml"), "# nothing\n").unwrap();
    mode(&place.path("other.toml"), 0o600);
    Running::start({
        other.env("BYWAY_CONFIG", place.path("other.toml"));
        other
    })
    .end()
    .succeeded();
}

#[test]
fn a_mistyped_ticket_is_not_quoted_whole() {
    let place = place();
    let (_receiver, ticket) = place.recv(&["in"]);
    let mistyped = ticket.replacen("byway", "bway", 1);
    let part = &mistyped[..50];
    for arguments in [
        &["send", "file", part][..],
        &["send", "file", &format!("{part}:")],
        &["send", &mistyped],
        &["ping", part],
        &["peer", "remove", part],
        &["peer", "add", &ticket, "nas"],
        &["send", "file", "--bind", &ticket],
        &["send", "file", "--bind", &ticket, "--json"],
    ] {
        let ended = byway(&place, arguments);
        let said = ended.stderr + &String::from_utf8_lossy(&ended.stdout);
        assert_eq!(ended.code, Some(2), "{arguments:?}: {said}");
        let quoted = said.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-');
        let longest =
            quoted.filter(|word| word.contains("way1-") || word.contains("way2-")).map(str::len).max();
        assert!(longest.is_none_or(|longest| longest <= 24), "{arguments:?}: {said}");
    }
    byway(&place, &["ping", part]).failed(2, &format!("no peer is called `{}…`", &part[..12]));
}

/// What a verb refuses, a check finds, and in the same words.
#[test]
fn a_check_finds_what_a_verb_would_refuse() {
    let place = place();
    let ann = key(&place, &[], None).trim().to_owned();
    for (settings, words) in [
        (format!("allow = [\"{ann}=a,b\"]"), "a comma parts two values"),
        (format!("allow = [\"{ann}=a\", \"{ann}=b\"]"), "is named twice, with two directories"),
        ("advertise = [\"a\", \"b\", \"c\", \"d\", \"e\"]".into(), "a ticket holds 4 at most"),
        ("advertise = \"nas.example.org:0\"".into(), "nas.example.org:0 leads to no host"),
        ("advertise = \"224.0.0.1\"".into(), "leads to no host"),
        ("advertise = \"1.2.3\"".into(), "write an IP address or a host name"),
        ("relay = \"@/none/there\"".into(), "cannot read /none/there: No such file"),
    ] {
        write(&place, &format!("[recv]\n{settings}\n"));
        let checked = byway(&place, &["config", "check"]);
        let told = String::from_utf8(checked.stdout).unwrap();
        assert!(checked.code == Some(2) && told.contains("config.toml:2: "), "{settings}: {told}");
        assert!(told.contains(words), "{settings}: {told}");
        let refused = byway(&place, &["recv", "other"]);
        assert!(refused.code != Some(0) && refused.stderr.contains(words), "{settings}: {}", refused.stderr);
    }
}

/// The key that `byway id` prints with these arguments and variables.
fn key(place: &Place, arguments: &[&str], state: Option<&str>) -> String {
    let mut command = place.command("sender", &[&["id"], arguments].concat());
    command.envs(state.map(|state| ("BYWAY_STATE_DIR", place.path(state))));
    let ended = Running::start(command).end();
    ended.succeeded();
    String::from_utf8(ended.stdout).unwrap()
}

#[test]
fn the_command_line_wins_over_the_environment_and_that_over_the_file() {
    let place = place();
    let at = |name: &str| place.path(name).display().to_string();
    let keys = ["flag", "environment", "kept"].map(|state| key(&place, &["--state-dir", &at(state)], None));
    write(&place, &format!("state-dir = \"{}\"\nprogress = true\n", at("kept")));
    let flag = at("flag");
    assert_eq!(key(&place, &[], None), keys[2]);
    assert_eq!(key(&place, &[], Some("environment")), keys[1]);
    assert_eq!(key(&place, &["--state-dir", &flag], Some("environment")), keys[0]);
    let first = Running::start(place.command("sender", &["--state-dir", &flag, "id"])).end();
    assert_eq!(String::from_utf8(first.stdout).unwrap(), keys[0], "also before the verb");
    assert!(!keys.contains(&key(&place, &["--no-config"], None)));
    // What the file sets raises no conflict.
    assert_eq!(key(&place, &["--quiet"], None), keys[2]);
    assert_eq!(key(&place, &["--verbose"], None), keys[2]);
}

#[test]
fn the_file_has_defaults_for_sending_and_receiving() {
    let place = place();
    let free = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let friend = key(&place, &[], None);
    let path = place.path("receiver/.config/byway/config.toml");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let recv =
        format!("[recv]\nlisten = \"{free}\"\nallow = [\"{}\"]\nadvertise = \"localhost\"\n", friend.trim());
    fs::write(&path, recv).unwrap();
    mode(&path, 0o600);
    let mut receiver = Running::start(place.command("receiver", &["recv", "in"]));
    let ticket = receiver.line();
    let read: byway_transfer::ticket::Ticket = ticket.parse().unwrap();
    assert_eq!((read.addresses.as_slice(), read.names.len()), (&[free][..], 1));
    byway(&place, &["send", "file", &ticket]).succeeded();
    place.run("stranger", &["send", "file", &ticket]).failed(6, "yours is not among them");
    // A priority that does not exist would be refused before anything is sent.
    write(&place, "[send]\nretry = true\npriority = \"normal\"\nbwlimit = \"1M\"\n");
    byway(&place, &["send", "file", &ticket]).succeeded();
    drop(receiver);
    let ended = byway(&place, &["send", "file", &ticket, "--no-retry"]);
    assert_eq!(ended.code, Some(5), "it does not wait: {}", ended.stderr);
    let (mut piped, stream) = place.recv_pipe();
    let mut send = place.command("sender", &["send", "-", &stream]);
    send.stdin(fs::File::open(place.path("file")).unwrap());
    Running::start(send).end().succeeded();
    assert!(piped.wait().unwrap().success(), "a stream is not retried, whatever the file says");
    let explicit = byway(&place, &["send", "-", "--retry", &stream]);
    explicit.failed(2, "--retry is for files");
}

#[test]
fn each_friend_has_a_directory() {
    let place = place();
    fs::create_dir_all(place.path("outside")).unwrap();
    fs::create_dir_all(place.path("in")).unwrap();
    std::os::unix::fs::symlink("../outside", place.path("in/planted")).unwrap();
    let id = |host: &str| String::from_utf8(place.run(host, &["id"]).stdout).unwrap().trim().to_owned();
    let (ann, bob, eve) = (id("ann"), id("bob"), id("eve"));
    fs::write(place.path("friends"), format!("# by name\n{ann}=friends/ann\n{eve}=planted/x\n")).unwrap();
    let receiver = receiver(&place, &["--allow", "@friends", "--allow", &bob]);
    for host in ["ann", "bob", "ann"] {
        place.run(host, &["send", "file", "@ticket.txt"]).succeeded();
    }
    assert_same(&place.path("file"), &place.path("in/friends/ann/file"));
    assert_same(&place.path("file"), &place.path("in/file"));
    assert_eq!(fs::read_dir(place.path("in/friends/ann")).unwrap().count(), 1, "nothing is left beside it");
    let refused = place.run("eve", &["send", "file", "@ticket.txt"]);
    assert!(refused.code != Some(0), "{}", refused.stderr);
    assert_eq!(fs::read_dir(place.path("outside")).unwrap().count(), 0, "no link leads out");
    drop(receiver);
    for (allowed, part) in [
        (format!("{ann}=../outside"), "dot component"),
        (format!("{ann}=/etc"), "empty component"),
        (format!("{ann}=a,{ann}=b"), "named twice"),
        ("bob".into(), "no peer is called `bob`"),
        ("bob/".into(), "printed by `byway id`"),
    ] {
        place.run("receiver", &["recv", "in", "--allow", &allowed]).failed(2, part);
    }
    let piped = place.run("receiver", &["recv", "-", "--allow", &format!("{ann}=a")]);
    piped.failed(2, "leave out the directory");
}

#[test]
fn a_tree_lands_in_the_directory_that_the_sender_names() {
    let place = place();
    let receiver = receiver(&place, &[]);
    byway(&place, &["peer", "add", "nas", "@ticket.txt"]).succeeded();
    fs::create_dir_all(place.path("photos/empty")).unwrap();
    fs::write(place.path("photos/large"), vec![1; 3_000_000]).unwrap();
    std::os::unix::fs::symlink("large", place.path("photos/link")).unwrap();
    for target in ["nas:2026/", "nas:2026", "nas:a/b/"] {
        byway(&place, &["send", "photos", target]).succeeded();
    }
    for below in ["2026", "a/b"] {
        assert_same(&place.path("photos"), &place.path(&format!("in/{below}/photos")));
    }
    let existing = place.path("in/2026");
    mode(&existing, 0o750);
    byway(&place, &["send", "file", "nas:2026/"]).succeeded();
    assert_same(&place.path("file"), &place.path("in/2026/file"));
    assert_eq!(fs::metadata(&existing).unwrap().permissions().mode() & 0o777, 0o750, "it stays as it was");
    fs::create_dir(place.path("outside")).unwrap();
    std::os::unix::fs::symlink("../outside", place.path("in/planted")).unwrap();
    byway(&place, &["send", "file", "nas:planted/"]).failed(4, "not everything");
    assert_eq!(fs::read_dir(place.path("outside")).unwrap().count(), 0);
    for target in ["nas:../x", "nas:/etc", "nas:a/../..", "nas:.byway-partial/x"] {
        byway(&place, &["send", "file", target]).failed(2, "write a path below the receiver's directory");
    }
    let mut stream = place.command("sender", &["send", "-", "nas:2026/"]);
    stream.stdin(fs::File::open(place.path("file")).unwrap());
    Running::start(stream).end().failed(2, "lands in no directory");
    drop(receiver);
}
