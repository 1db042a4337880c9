//! `byway status`: what runs, and what ran.

use crate::common::machine::{PATIENCE, wait_for};
use crate::common::{Ended, Place, Running};
use serde_json::Value;
use std::fs::{self, DirBuilder};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::net::UnixListener;

/// A receiver, and a sender that is held to 50 KiB/s, which names the receiver.
fn running(place: &Place) -> (Running, Running) {
    fs::write(place.path("file"), vec![7; 20_000_000]).unwrap();
    let (receiver, ticket) = place.recv(&["in"]);
    place.run("sender", &["peer", "add", "nas", &ticket]).succeeded();
    let arguments = ["send", "file", "nas:", "--bwlimit", "50K", "--json"];
    let mut sender = Running::start(place.command("sender", &arguments));
    while sender.event("progress")["rate_bps"].as_f64() == Some(0.0) {}
    (receiver, sender)
}

/// The events of `byway status --json`.
fn status(place: &Place, host: &str) -> Vec<Value> {
    let told = place.run(host, &["status", "--json"]);
    told.succeeded();
    String::from_utf8(told.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn all_that_runs_is_shown_with_its_paths_and_why_it_is_slow() {
    let place = Place::new();
    let (receiver, sender) = running(&place);
    // The receiver looks four times a second.
    let told = wait_for(PATIENCE, || {
        let told = status(&place, "sender");
        told.iter().any(|it| it["verb"] == "recv" && it["transfers"][0]["name"] == "file").then_some(told)
    });
    let told = told.unwrap();
    let of = |verb: &str| told.iter().find(|it| it["verb"] == verb && it["event"] == "process").unwrap();
    let (sends, receives) = (&of("send")["transfers"][0], &of("recv")["transfers"][0]);
    assert_eq!((&of("send")["peer"], &of("send")["pid"]), (&"nas".into(), &sender.id().into()));
    assert_eq!((&sends["pause"], &sends["total"]), (&"bandwidth_limit".into(), &20_000_000.into()));
    let path = &sends["paths"][0];
    assert!(path["carrier"] == "udp" && path["rtt_ms"].as_f64() > Some(0.0), "{path}");
    assert!(
        path["remote"].as_str().unwrap().starts_with("127.0.0.1:") && path["local"] == "127.0.0.1",
        "{path}"
    );
    assert!(path["packets"].as_u64() > Some(0) && receives["paths"][0]["packets"].is_null(), "{path}");
    assert_eq!((&receives["name"], &receives["transfer"]), (&"file".into(), &1.into()));
    assert!(of("recv")["listen"][0].as_str().unwrap().starts_with("127.0.0.1:"));
    // No secret is told.
    let text = serde_json::to_string(&told).unwrap();
    assert!(!text.contains("byway1-") && !text.contains("byway2-"), "{text}");
    let shown = place.run("sender", &["status"]);
    shown.succeeded();
    let text = String::from_utf8(shown.stdout).unwrap();
    assert!(text.contains("send nas, for ") && text.contains("capped by --bwlimit"), "{text}");
    drop((receiver, sender));
    // Both were killed.
    assert!(status(&place, "sender").iter().all(|it| it["event"] != "process"));
    assert_eq!(fs::read_dir(place.path("run")).unwrap().count(), 0);
}

#[test]
fn what_ended_is_remembered_and_so_is_what_failed() {
    let place = Place::new();
    byway_files::generate(&place.path("tree"), 1, 100_000).unwrap();
    let (receiver, ticket) = place.recv(&["in"]);
    place.run("sender", &["peer", "add", "nas", &ticket]).succeeded();
    place.run("sender", &["send", "tree", "nas:"]).succeeded();
    place.run("sender", &["send", "absent", "nas:"]).failed(3, "absent");
    // A look is no transfer.
    place.run("sender", &["send", "tree", "nas:", "-n"]).succeeded();
    let told = status(&place, "sender");
    let ended: Vec<&Value> = told.iter().filter(|it| it["event"] == "history").collect();
    assert_eq!(ended.len(), 2, "{ended:?}");
    assert!(ended.iter().all(|it| it["verb"] == "send" && it["peer"] == "nas"), "{ended:?}");
    assert!(ended[0]["result"]["bytes"].as_u64() >= Some(100_000), "{}", ended[0]);
    assert_eq!(ended[1]["result"]["exit"], 3);
    drop(receiver);
    let at_receiver = status(&place, "receiver");
    let received: Vec<&Value> = at_receiver.iter().filter(|it| it["event"] == "history").collect();
    assert_eq!(received.len(), 1, "{received:?}");
    let text = String::from_utf8(place.run("sender", &["status"]).stdout).unwrap();
    assert!(text.starts_with("no byway runs here\n\nlast 30 days: "), "{text}");
}

#[test]
fn what_was_stopped_is_remembered_with_what_it_moved() {
    let place = Place::new();
    let (receiver, sender) = running(&place);
    sender.interrupt();
    sender.end().failed(130, "to go on");
    let told = status(&place, "sender");
    let ended = told.iter().find(|it| it["event"] == "history").unwrap();
    assert!(ended["result"]["exit"] == 130 && ended["result"]["bytes"].as_u64() > Some(0), "{ended}");
    drop(receiver);
}

#[test]
fn a_sender_that_waits_for_its_receiver_says_so() {
    let place = Place::new();
    let (receiver, ticket) = place.recv(&["in"]);
    place.run("sender", &["peer", "add", "nas", &ticket]).succeeded();
    drop(receiver);
    fs::write(place.path("file"), "x").unwrap();
    let sender = Running::start(place.command("sender", &["send", "file", "nas:", "--retry"]));
    let shown = wait_for(PATIENCE, || {
        let shown = String::from_utf8(place.run("sender", &["status"]).stdout).unwrap();
        shown.contains("  the peer does not answer: ").then_some(shown)
    });
    assert!(shown.is_some_and(|shown| !shown.contains("no transfer now")));
    drop(sender);
}

#[test]
fn a_process_runs_where_nothing_can_be_told() {
    let place = Place::new();
    byway_files::generate(&place.path("tree"), 1, 1_000).unwrap();
    // A file is in the directory's place, and the history is a directory.
    fs::write(place.path("run"), "").unwrap();
    fs::create_dir_all(place.path("sender/.local/share/byway/history.jsonl")).unwrap();
    let (receiver, ticket) = place.recv(&["in", "--once"]);
    let sent = place.run("sender", &["send", "tree", &ticket, "-v"]);
    sent.succeeded();
    assert!(sent.stderr.contains("`byway status` does not show this process: "), "{}", sent.stderr);
    receiver.end().succeeded();
    // Who asks hears why there is no answer.
    let asked = |verb: &[&str]| place.run("sender", verb).stderr;
    assert!(asked(&["limit", "off"]).contains("what runs here cannot be asked: "));
    fs::remove_file(place.path("run")).unwrap();
    assert!(!asked(&["limit", "off"]).contains("cannot be asked"), "nothing ran there yet");
    fs::create_dir(place.path("run")).unwrap();
    let stderr = asked(&["status"]);
    assert!(stderr.contains("run is not a directory of one user alone (mode 0700)"), "{stderr}");
}

#[test]
fn limits_change_while_it_runs() {
    let place = Place::new();
    let (receiver, mut sender) = running(&place);
    let limit = |words: &[&str]| place.run("sender", &[&["limit"], words, &["--json"]].concat());
    let told = |limited: &Ended| -> Vec<Value> {
        let text = String::from_utf8(limited.stdout.clone()).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    // The receiver obeys too.
    let limited = limit(&["150K"]);
    limited.succeeded();
    let verbs: Vec<Value> = told(&limited).into_iter().map(|it| it["verb"].clone()).collect();
    assert_eq!(verbs, ["recv", "send", "limit"]);
    assert_eq!(sender.event("limit")["bytes_per_second"], 150 << 10);
    // Only what goes to this peer.
    let limited = limit(&["nas", "off"]);
    limited.succeeded();
    assert_eq!(told(&limited)[0]["peer"], "nas");
    assert_eq!(sender.event("limit")["bytes_per_second"], Value::Null);
    while sender.event("progress")["pause"] != "receiver_bandwidth_limit" {}
    limit(&["nas", "own"]).succeeded();
    assert_eq!(sender.event("limit")["bytes_per_second"], 50 << 10);
    limit(&["radar", "off"]).failed(3, "nothing that answers here has such a limit");
    limit(&["fast"]).failed(2, "10Mbit");
    limit(&["off"]).succeeded();
    sender.end().succeeded();
    drop(receiver);
    limit(&["off"]).failed(3, "nothing that answers here has such a limit");
}

#[test]
fn a_relays_figures_are_those_of_the_moment() {
    let place = Place::new();
    byway_files::generate(&place.path("tree"), 1, 200_000).unwrap();
    let (relay, word) = place.relay(&[]);
    let counters = || {
        let told = status(&place, "sender");
        told.into_iter().find(|it| it["verb"] == "relay").map(|it| it["told"]["counters"].clone()).unwrap()
    };
    let carried = || counters()["forwarded_bytes"].as_u64();
    // A busy machine may answer late. Then the figures are there the next time.
    assert_eq!(wait_for(PATIENCE, carried), Some(0));
    let (receiver, ticket) = place.recv(&["in", "--relay", &word]);
    place.run("sender", &["send", "tree", &ticket, "--relay", &word]).succeeded();
    assert!(wait_for(PATIENCE, || carried().filter(|bytes| *bytes > 0)).is_some());
    let text = String::from_utf8(place.run("sender", &["status"]).stdout).unwrap();
    assert!(text.contains("relay, for ") && text.contains("  relayed "), "{text}");
    drop(receiver);
    relay.interrupt();
    let ended = relay.end();
    // Whoever runs the relay did not ask.
    assert_eq!(ended.stderr.matches("forwarded").count(), 1, "{}", ended.stderr);
}

#[test]
fn a_registry_is_shown_and_who_tells_more_of_it() {
    let place = Place::new();
    let mut registry = Running::start(place.command("registry", &["registry", "--listen", "127.0.0.1:0"]));
    registry.line();
    let shown = String::from_utf8(place.run("registry", &["status"]).stdout).unwrap();
    assert!(shown.starts_with("registry, for "), "{shown}");
    assert!(shown.contains("\n  `byway registry list` tells its relays and words\n"), "{shown}");
}

#[test]
fn what_another_process_answers_moves_no_cursor() {
    let place = Place::new();
    let run = place.path("run");
    DirBuilder::new().mode(0o700).create(&run).unwrap();
    let listener = UnixListener::bind(run.join("send-1.socket")).unwrap();
    let forged =
        r#"{"verb":"send\u001b[2J","pid":1,"since":0,"peer":"nas\nforged","transfers":[],"limited":true}"#;
    let answering = std::thread::spawn(move || {
        for client in listener.incoming().take(2) {
            let mut client = client.unwrap();
            BufReader::new(&client).read_line(&mut String::new()).unwrap();
            writeln!(client, "{forged}").unwrap();
        }
    });
    for arguments in [&["status"][..], &["limit", "1M"]] {
        let shown = place.run("sender", arguments);
        shown.succeeded();
        let text = String::from_utf8(shown.stdout).unwrap();
        assert!(text.contains(r"send\u{1b}[2J nas\nforged") && !text.contains('\u{1b}'), "{text}");
    }
    answering.join().unwrap();
}
