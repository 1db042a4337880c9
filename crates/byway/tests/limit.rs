//! What a person may set about a transfer's speed, and what he is told of it.
#![allow(clippy::unwrap_used, reason = "a test ends where it fails")]

mod common;

use common::{Place, assert_same};

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
fn a_limit_that_makes_no_sense_is_refused_with_what_to_write() {
    let place = Place::new();
    for (limit, says) in [("0", "write `off` for no limit"), ("fast", "write for example 500, 64K, 10M")] {
        let refused = place.run("sender", &["send", "tree", "--bwlimit", limit]);
        assert_eq!(refused.code, Some(2));
        assert!(refused.stderr.contains(says), "{}", refused.stderr);
    }
}
