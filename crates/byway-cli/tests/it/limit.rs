//! What a person may set about a transfer's speed, and what he is told of it.

use crate::common::{Place, Running, assert_same};
use std::time::{SystemTime, UNIX_EPOCH};

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

/// The seconds since 1970 on the clock of this host, in UTC.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// The value of `TZ` for a zone whose clocks show `hour` o'clock in `seconds` seconds.
fn zone_before(hour: u64, seconds: u64) -> String {
    let ahead = (hour * 3_600 + 2 * 86_400 - (now() + seconds) % 86_400) % 86_400;
    format!("<LMT>-{:02}:{:02}:{:02}", ahead / 3_600, ahead / 60 % 60, ahead % 60)
}

/// A timetable whose limits change each minute.
fn each_minute(even: &str, odd: &str) -> String {
    let entry = |minute: u32| {
        let limit = if minute.is_multiple_of(2) { even } else { odd };
        format!("{:02}:{:02},{limit}", minute / 60, minute % 60)
    };
    (0..1440).map(entry).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_timetable_changes_the_limits_of_both_sides_as_the_clock_passes_its_entries() {
    let place = Place::new();
    std::fs::write(place.path("file"), vec![7; 60_000_000]).unwrap();
    // If the machine is busy for these few seconds, the next minute changes them back.
    let zone = zone_before(8, 4);
    let listen = ["recv", "in", "--listen", "127.0.0.1:0", "--json", "--bwlimit"];
    let timetable = each_minute("off:40K", "off:30K");
    let mut command = place.command("receiver", &[&listen[..], &[&timetable]].concat());
    let mut receiver = Running::start({
        command.env("TZ", &zone);
        command
    });
    let ticket = receiver.event("ready")["ticket"].as_str().unwrap().to_owned();
    let timetable = each_minute("20K:off", "off");
    let mut command = place.command("sender", &["send", "file", &ticket, "--json", "--bwlimit", &timetable]);
    command.env("TZ", &zone);
    let mut sender = Running::start(command);
    let limit = |event: serde_json::Value| event["bytes_per_second"].as_u64().map(|limit| limit >> 10);
    let (own, theirs) = (limit(sender.event("limit")), limit(receiver.event("limit")));
    assert!([None, Some(20)].contains(&own), "{own:?}");
    assert!([Some(30), Some(40)].contains(&theirs), "{theirs:?}");
    // In even minutes its own limit is the lower one, and else the receiver's.
    let holds = if own.is_some() { "bandwidth_limit" } else { "receiver_bandwidth_limit" };
    while sender.event("progress")["pause"] != holds {}
    sender.interrupt();
    sender.end().failed(130, "to go on");
    receiver.signal("TERM");
    receiver.end().succeeded();
}

#[test]
fn an_idle_forward_follows_its_timetable_and_tells_both_limits() {
    let place = Place::new();
    let (_receiver, ticket) = place.recv(&["in", "--allow-forward", "127.0.0.1:9"]);
    let timetable = each_minute("40K:off", "20K:30K");
    let forward = ["forward", "0:127.0.0.1:9", "--to", &ticket, "--json", "--bwlimit", &timetable];
    // A machine that is too busy to begin before the change waits for the next one.
    let (mut forwarder, change) = [4, 20, 50]
        .into_iter()
        .find_map(|lead| {
            let change = now() + lead;
            let mut command = place.command("forwarder", &forward);
            command.env("TZ", zone_before(8, lead));
            let mut forwarder = Running::start(command);
            forwarder.event("connected");
            (now() < change).then_some((forwarder, change))
        })
        .unwrap();
    let limits = forwarder.event("limit")["directions"].clone();
    assert!(now() < change + 55, "it slept over the change");
    let shown = (limits["up"].as_u64().unwrap() >> 10, limits["down"].as_u64().map(|limit| limit >> 10));
    assert!([(40, None), (20, Some(30))].contains(&shown), "{limits}");
    forwarder.signal("TERM");
    forwarder.end().succeeded();
}

#[test]
fn a_timetable_that_is_none_is_refused_with_what_to_write() {
    let place = Place::new();
    for (limit, says) in [
        ("24:00,1M", "write 00:00 to 23:59"),
        ("08:00,1M 08:00,2M", "has 08:00 twice"),
        ("512K 23:00,off", "`512K` has no time"),
        ("", "the limit is empty"),
    ] {
        for verb in [&["send", "tree"][..], &["recv", "in"], &["forward", "0:h:1", "--to", "x"]] {
            let refused = place.run("sender", &[verb, &["--bwlimit", limit]].concat());
            assert_eq!(refused.code, Some(2), "{verb:?}: {}", refused.stderr);
            assert!(refused.stderr.contains(says), "{}", refused.stderr);
        }
    }
    let mut command = place.command("host", &["recv", "in", "--bwlimit", "08:00,1M 09:00,off"]);
    command.env("TZ", "Nowhere/Atall");
    Running::start(command).end().failed(2, "TZ names no time zone of this host");
    // Where no clock is looked at, its zone does not matter.
    let mut command = place.command("host", &["send", "none", "byway1-x", "--bwlimit", "08:00,1M"]);
    command.env("TZ", "Nowhere/Atall");
    assert!(!Running::start(command).end().stderr.contains("TZ"));
}

#[test]
fn a_transfer_stops_at_a_time_and_goes_on_later() {
    let place = Place::new();
    byway_files::generate(&place.path("tree"), 1, 3_000_000).unwrap();
    let (receiver, ticket) = place.recv(&["in"]);
    let slowly = ["send", "tree", &ticket, "--retry", "--json", "--bwlimit", "100K", "--stop-at", "07:00"];
    // A machine that is too busy to begin before the time shows it a day later.
    let stopped = [4, 20, 100].into_iter().find_map(|lead| {
        let mut command = place.command("sender", &slowly);
        command.env("TZ", zone_before(7, lead));
        let (mut sender, begun) = (Running::start(command), now());
        sender.event("progress");
        if now() < begun + lead - 1 {
            return Some(sender.end());
        }
        sender.interrupt();
        sender.end();
        None
    });
    let stopped = stopped.unwrap();
    stopped.failed(8, "stopped by --stop-at with ");
    assert_eq!(stopped.result()["exit"], 8);
    assert!(stopped.stderr.contains("to go on: byway send tree TICKET"), "{}", stopped.stderr);
    place.run("sender", &["send", "tree", &ticket]).succeeded();
    assert_same(&place.path("tree"), &place.path("in/tree"));
    drop(receiver);
}

#[test]
fn a_time_stops_the_wait_for_a_receiver_too() {
    let place = Place::new();
    std::fs::write(place.path("file"), "x").unwrap();
    let (receiver, ticket) = place.recv(&["in"]);
    receiver.signal("TERM");
    receiver.end().succeeded();
    let waits = ["send", "file", &ticket, "--retry", "--json", "--stop-at", "07:00"];
    let mut command = place.command("sender", &waits);
    command.env("TZ", zone_before(7, 15));
    Running::start(command).end().failed(8, "stopped by --stop-at with 0 B sent; to go on: ");
}

#[test]
fn so_many_bytes_travel_at_most_in_each_run() {
    let place = Place::new();
    byway_files::generate(&place.path("tree"), 1, 12_000_000).unwrap();
    let (receiver, ticket) = place.recv(&["in"]);
    let part = ["send", "tree", &ticket, "--retry", "--json", "--max-transfer", "4M"];
    let mut runs = 0;
    let last = loop {
        let ended = place.run("sender", &part);
        runs += 1;
        if ended.code != Some(8) {
            break ended;
        }
        assert_eq!(ended.result()["exit"], 8);
        ended.failed(8, "stopped by --max-transfer with ");
        assert!(runs < 10, "{}", ended.stderr);
    };
    last.succeeded();
    // The third may have to bring the rest of pieces again.
    assert!((3..=4).contains(&runs), "{runs}");
    let travelled = last.result()["bytes"].as_u64().unwrap() - last.result()["kept_bytes"].as_u64().unwrap();
    assert!(travelled <= 5 << 20, "{travelled}");
    assert_same(&place.path("tree"), &place.path("in/tree"));
    // All of it is there: nothing is held back.
    let nothing = place.run("sender", &["send", "tree", &ticket, "--max-transfer", "1"]);
    nothing.succeeded();
    drop(receiver);
}

#[test]
fn a_stream_ends_after_so_many_bytes() {
    let place = Place::new();
    let (mut receiver, ticket) = place.recv_pipe();
    std::fs::write(place.path("stream"), vec![7; 3_000_000]).unwrap();
    let mut command = place.command("sender", &["send", "-", &ticket, "--max-transfer", "1M"]);
    command.stdin(std::fs::File::open(place.path("stream")).unwrap());
    Running::start(command).end().failed(8, "a stream cannot be resumed");
    assert_eq!(receiver.wait().unwrap().code(), Some(5));
    let arrived = std::fs::read(place.path("out")).unwrap();
    assert!((1 << 20..2 << 20).contains(&arrived.len()), "{}", arrived.len());
    // What is not more than that is whole.
    let (mut receiver, ticket) = place.recv_pipe();
    let mut command = place.command("sender", &["send", "-", &ticket, "--max-transfer", "3000000"]);
    command.stdin(std::fs::File::open(place.path("stream")).unwrap());
    Running::start(command).end().succeeded();
    assert!(receiver.wait().unwrap().success());
    assert_eq!(std::fs::read(place.path("out")).unwrap(), vec![7; 3_000_000]);
}
