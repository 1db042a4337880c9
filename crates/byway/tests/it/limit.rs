//! What a person may set about a transfer's speed, and what he is told of it.

use crate::common::{Place, assert_same};

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
    assert!(reasons.iter().any(|reason| reason == "bandwidth_limit"), "{reasons:?}");
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
    let sent = crate::common::Running::start(command).end();
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
    for (limit, says) in [("0", "write `off` for no limit"), ("fast", "write for example 500, 64K, 10M")] {
        let refused = place.run("sender", &["send", "tree", "--bwlimit", limit]);
        assert_eq!(refused.code, Some(2));
        assert!(refused.stderr.contains(says), "{}", refused.stderr);
    }
}
