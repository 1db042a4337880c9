//! What is told of a transfer while it runs and when it breaks off.

use super::common::{Place, Running};
use serde_json::Value;

const SIZE: u64 = 3_000_000;

/// A receiver and a sender that both tell events; the second sends `tree` slowly.
fn slow(place: &Place, limit: &str) -> (Running, Running) {
    let arguments = ["recv", "in", "--listen", "127.0.0.1:0", "--json"];
    let mut receiver = Running::start(place.command("receiver", &arguments));
    let ticket = receiver.event("ready")["ticket"].as_str().unwrap().to_owned();
    let arguments = ["send", "tree", &ticket, "--bwlimit", limit, "--json"];
    (receiver, Running::start(place.command("sender", &arguments)))
}

/// The next event of progress of which this holds.
fn until(running: &mut Running, holds: impl Fn(&Value) -> bool) -> Value {
    loop {
        let event = running.event("progress");
        if holds(&event) {
            return event;
        }
    }
}

#[test]
fn a_receiver_tells_what_comes_from_whom_and_over_what() {
    let place = Place::new();
    byway_files::generate(&place.path("tree"), 1, SIZE).unwrap();
    let key = String::from_utf8(place.run("sender", &["id"]).stdout).unwrap();
    let (mut receiver, mut sender) = slow(&place, "200K");
    let told = until(&mut receiver, |event| event["bytes"].as_u64().unwrap() > SIZE / 20);
    assert_eq!((&told["name"], &told["transfer"], &told["total"]), (&"tree".into(), &1.into(), &SIZE.into()));
    assert_eq!(told["from"], key.trim());
    let path = &told["paths"][0];
    assert_eq!(path["name"], "direct", "{told}");
    assert!(path["bytes"].as_u64().unwrap() >= told["bytes"].as_u64().unwrap(), "{told}");
    // What arrived when it breaks off is told, and kept.
    let before = told["bytes"].as_u64().unwrap();
    sender.event("progress");
    sender.interrupt();
    sender.end().failed(130, "to go on");
    let broken = receiver.event("result");
    let arrived = broken["arrived_bytes"].as_u64().unwrap();
    assert!(arrived >= before && arrived < SIZE, "{broken}");
    assert_eq!(
        (&broken["exit"], &broken["total_bytes"], &broken["name"]),
        (&5.into(), &SIZE.into(), &"tree".into())
    );
    receiver.signal("TERM");
    let ended = receiver.end();
    ended.succeeded();
    // Another try begins where this one ended, and that is no speed.
    let (mut receiver, mut sender) = slow(&place, "50K");
    let told = until(&mut receiver, |event| event["bytes"].as_u64().unwrap() >= arrived / 2);
    assert!(told["rate_bps"].as_f64().unwrap() < 4e6, "{told}");
    let told = until(&mut sender, |event| event["bytes"].as_u64().unwrap() >= arrived / 2);
    assert!(told["rate_bps"].as_f64().unwrap() < 4e6, "{told}");
    receiver.signal("TERM");
    receiver.end().succeeded();
}

#[test]
fn one_entry_that_is_refused_makes_no_other_unverified() {
    let place = Place::new();
    std::fs::create_dir_all(place.path("tree")).unwrap();
    for name in ["good", "refused"] {
        std::fs::write(place.path("tree").join(name), name).unwrap();
    }
    // A directory stands where the second is to go.
    std::fs::create_dir_all(place.path("in/tree/refused/x")).unwrap();
    let (receiver, ticket) = place.recv(&["in", "--once"]);
    let sent = place.run("sender", &["send", "tree", &ticket]);
    let received = receiver.end();
    assert_eq!((sent.code, received.code), (Some(4), Some(4)), "{}{}", sent.stderr, received.stderr);
    for told in [&sent.stderr, &received.stderr] {
        assert!(told.contains("4 B in 2 entries") && told.contains("verified; 1 entry is missing"), "{told}");
        assert!(!told.contains("NOT verified"), "{told}");
    }
    assert!(received.stderr.contains("tree from byway-key-"), "{}", received.stderr);
}

#[test]
fn a_name_that_hides_something_is_spelled_out() {
    let place = Place::new();
    std::fs::create_dir_all(place.path("tree")).unwrap();
    let name = "photo\u{202e}gpj\u{200b}\n.exe";
    std::fs::write(place.path("tree").join(name), "x").unwrap();
    std::fs::create_dir_all(place.path("in/tree").join(name).join("x")).unwrap();
    let (receiver, ticket) = place.recv(&["in", "--once"]);
    let sent = place.run("sender", &["send", "tree", &ticket]);
    let received = receiver.end();
    for told in [&sent.stderr, &received.stderr] {
        assert!(told.contains("photo\\u{202e}gpj\\u{200b}\\n.exe: a directory"), "{told}");
        assert!(!told.contains('\u{202e}') && !told.contains('\u{200b}'), "{told}");
    }
}

#[test]
fn a_qlog_file_has_the_figures_of_the_events() {
    let place = Place::new();
    byway_files::generate(&place.path("tree"), 1, SIZE).unwrap();
    let (receiver, ticket) = place.recv(&["in", "--once"]);
    let sent =
        place.run("sender", &["send", "tree", &ticket, "--bwlimit", "1M", "--json", "--qlog", "tree.sqlog"]);
    receiver.end().succeeded();
    sent.succeeded();
    let told = String::from_utf8(sent.stdout).unwrap();
    let told: Vec<Value> = told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let text = std::fs::read_to_string(place.path("tree.sqlog")).unwrap();
    let records: Vec<Value> =
        text.split('\u{1e}').skip(1).map(|record| serde_json::from_str(record).unwrap()).collect();
    assert_eq!(records[0]["file_schema"], "urn:ietf:params:qlog:file:sequential");
    assert_eq!(records[1]["data"]["controller"], "background");
    // What the file says of a field at a time of the session, in milliseconds.
    let at = |time: f64, path: Option<u64>, field: &str| {
        let known = records.iter().filter(|record| record["time"].as_f64().is_some_and(|at| at <= time));
        let of_path = known.filter(|record| record["data"]["path_id"].as_u64() == path);
        of_path.filter_map(|record| record["data"][field].as_f64()).next_back()
    };
    let mut compared = 0;
    for event in told.iter().filter(|event| event["event"] == "progress") {
        let time = (event["seconds"].as_f64().unwrap() * 1e6).round() / 1e3;
        assert_eq!(at(time, None, "received_bytes"), event["bytes"].as_f64(), "{event}");
        for path in event["paths"].as_array().unwrap() {
            let number = path["path"].as_u64();
            assert_eq!(at(time, number, "sent_bytes"), path["bytes"].as_f64(), "{event}");
            assert_eq!(at(time, number, "lost_packets"), path["lost"].as_f64(), "{event}");
            assert!(at(time, number, "congestion_window") > Some(0.0), "{event}");
            if let Some(rtt) = path["rtt_ms"].as_f64() {
                let found = at(time, number, "smoothed_rtt").unwrap();
                assert!((found - rtt).abs() < rtt * 1e-6 + 1e-3, "{found} beside {event}");
                compared += 1;
            }
        }
    }
    assert!(compared > 0, "{told:?}");
    let result = told.last().unwrap();
    assert_eq!(at(f64::INFINITY, None, "received_bytes"), result["bytes"].as_f64());
    let last = records.last().unwrap();
    assert_eq!(
        (&last["name"], &last["data"]["trigger"]),
        (&"quic:connection_closed".into(), &"application".into())
    );
}

#[test]
fn a_qlog_file_that_cannot_be_made_is_told_before_anything_is_sent() {
    let place = Place::new();
    std::fs::write(place.path("one"), "x").unwrap();
    let (receiver, ticket) = place.recv(&["in", "--once"]);
    let sent = place.run("sender", &["send", "one", &ticket, "--qlog", "nowhere/one.sqlog"]);
    sent.failed(3, "nowhere/one.sqlog: No such file");
    receiver.signal("TERM");
    assert_eq!(receiver.end().code, Some(143));
    assert!(!place.path("in/one").exists());
}
