//! What a person may set about a transfer's speed, and what he is told of it.

use crate::common::{Place, Running, assert_same};

#[test]
fn a_limit_is_kept_and_told_as_the_reason() {
    let place = Place::new();
    byway_files::generate(&place.path("tree"), 1, 600_000).unwrap();
    let (receiver, ticket) = place.recv(&["in", "--once"]);
    let sent = place.run("sender", &["send", "tree", &ticket, "--bwlimit", "200K", "--json"]);
    sent.succeeded();
    receiver.end().succeeded();
    assert_same(&place.path("tree"), &place.path("in/tree"));
    let bits = sent.result()["goodput_bps"].as_f64().unwrap();
    assert!(bits <= 200.0 * 1024.0 * 8.0 * 1.02, "{bits} bit/s");
    let text = String::from_utf8(sent.stdout.clone()).unwrap();
    let events = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let reasons: Vec<_> =
        events.filter(|event| event["event"] == "progress").map(|event| event["pause"].clone()).collect();
    assert!(reasons.iter().any(|reason| reason == "bandwidth_limit"), "{reasons:?}");
}

#[test]
fn a_receivers_limit_is_kept_by_senders_who_are_told() {
    let place = Place::new();
    byway_files::generate(&place.path("tree"), 1, 1_500_000).unwrap();
    let (receiver, ticket) = place.recv(&["in", "--once", "--bwlimit", "off:300K"]);
    let sent = place.run("sender", &["send", "tree", &ticket, "--json"]);
    sent.succeeded();
    receiver.end().succeeded();
    assert_same(&place.path("tree"), &place.path("in/tree"));
    // What was on its way before it was told: one window.
    let seconds = sent.result()["seconds"].as_f64().unwrap();
    assert!(1_500_000.0 <= 300.0 * 1024.0 * (seconds + 1.1), "{seconds} s");
    let text = String::from_utf8(sent.stdout.clone()).unwrap();
    let events = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let reasons: Vec<_> =
        events.filter(|event| event["event"] == "progress").map(|event| event["pause"].clone()).collect();
    assert!(reasons.iter().any(|reason| reason == "receiver_bandwidth_limit"), "{reasons:?}");
}

#[test]
fn a_stream_is_taken_no_faster_than_the_limit() {
    let place = Place::new();
    let mut command =
        place.command("receiver", &["recv", "-", "--listen", "127.0.0.1:0", "--bwlimit", "300K"]);
    let errors = place.path("errors");
    command.stdout(std::fs::File::create(place.path("out")).unwrap());
    command.stderr(std::fs::File::create(&errors).unwrap());
    let mut receiver = command.spawn().unwrap();
    let ticket = crate::common::ticket_in(&errors);
    std::fs::write(place.path("stream"), vec![7; 1_500_000]).unwrap();
    let mut command = place.command("sender", &["send", "-", &ticket, "--json"]);
    command.stdin(std::fs::File::open(place.path("stream")).unwrap());
    let sent = Running::start(command).end();
    sent.succeeded();
    assert!(receiver.wait().unwrap().success());
    assert_eq!(std::fs::read(place.path("out")).unwrap(), vec![7; 1_500_000]);
    // Nobody told it: it is held by what it is credited.
    let seconds = sent.result()["seconds"].as_f64().unwrap();
    assert!(1_500_000.0 <= 300.0 * 1024.0 * (seconds + 1.1), "{seconds} s");
}

#[test]
fn a_limit_that_makes_no_sense_is_refused_with_what_to_write() {
    let place = Place::new();
    for (limit, says) in
        [("0", "write `off` for no limit"), ("fast", "write for example 10Mbit, or 2M for 2 MiB per second")]
    {
        let refused = place.run("sender", &["send", "tree", "--bwlimit", limit]);
        assert_eq!(refused.code, Some(2));
        assert!(refused.stderr.contains(says), "{}", refused.stderr);
    }
}

#[test]
fn a_signal_lifts_the_limit_and_sets_it_again() {
    let place = Place::new();
    std::fs::write(place.path("file"), vec![7; 20_000_000]).unwrap();
    let (receiver, ticket) = place.recv(&["in", "--bwlimit", "200K"]);
    let arguments = ["send", "file", &ticket, "--bwlimit", "50K", "--json"];
    let mut sender = Running::start(place.command("sender", &arguments));
    for (limit, holds) in [
        (None, "receiver_bandwidth_limit"),
        (Some(50 << 10), "bandwidth_limit"),
        (None, "receiver_bandwidth_limit"),
    ] {
        sender.event("progress");
        sender.signal("USR2");
        assert_eq!(sender.event("limit")["bytes_per_second"].as_u64(), limit);
        // What holds it now is the receiver's limit, or its own again.
        while sender.event("progress")["pause"] != holds {}
    }
    sender.interrupt();
    sender.end().failed(130, "to go on");
    drop(receiver);
}

#[test]
fn a_receivers_signal_lifts_its_limit_for_senders() {
    let place = Place::new();
    std::fs::write(place.path("file"), vec![7; 6_000_000]).unwrap();
    let mut receiver = Running::start(place.command(
        "receiver",
        &["recv", "in", "--listen", "127.0.0.1:0", "--once", "--bwlimit", "100K", "--json"],
    ));
    let ticket = receiver.event("ready")["ticket"].as_str().unwrap().to_owned();
    let sender = Running::start(place.command("sender", &["send", "file", &ticket, "--json"]));
    receiver.event("progress");
    receiver.signal("USR2");
    assert!(receiver.event("limit")["bytes_per_second"].is_null());
    let sent = sender.end();
    sent.succeeded();
    let seconds = sent.result()["seconds"].as_f64().unwrap();
    assert!(seconds < 50.0, "{seconds} s");
    receiver.end().succeeded();
}

#[test]
fn a_signal_without_a_limit_says_so() {
    let place = Place::new();
    let mut receiver =
        Running::start(place.command("receiver", &["recv", "in", "--listen", "127.0.0.1:0", "--json"]));
    receiver.event("ready");
    receiver.signal("USR2");
    let told = loop {
        let told = receiver.event("warning");
        if told["message"].as_str().unwrap().contains("no bandwidth limit") {
            break told;
        }
    };
    assert!(told["message"].as_str().unwrap().contains("--bwlimit RATE"), "{told}");
    receiver.signal("TERM");
    receiver.end().succeeded();
}
