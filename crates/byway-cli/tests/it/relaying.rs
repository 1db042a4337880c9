//! What a relay carries in all, over restarts and disks that take nothing; and how it ends.

use crate::common::{Place, Running};
use byway_transfer::SavedState;
use byway_transfer::ticket::Ticket;
use byway_wire::relay::{Caveat, Word};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{ChildStderr, Stdio};

/// What has a relay be there over IPv6, too.
const OVER_IPV6: [&str; 4] = ["--listen", "[::1]:0", "--allow-destination", "::1"];

/// A relay that may reach this host, over either version, and its word.
pub fn relay(place: &Place, arguments: &[&str]) -> (Running, String) {
    let (relay, ready) = ready_relay(place, arguments);
    (relay, ready["word"].as_str().unwrap().to_owned())
}

/// A relay that may reach this host, over either version, and what it tells when it is ready.
pub fn ready_relay(place: &Place, arguments: &[&str]) -> (Running, Value) {
    let (mut relay, first) = place.relay(&[&["--json"], &OVER_IPV6[..], arguments].concat());
    let event: Value = serde_json::from_str(&first).unwrap();
    let ready = if event["event"] == "ready" { event } else { relay.event("ready") };
    (relay, ready)
}

/// Sends a file by the relay alone: the sender has only IPv6 and the receiver only IPv4, so that
/// they cannot meet, however slow the machine is.
pub fn send(place: &Place, word: &str, file: &str, arguments: &[&str]) -> (Running, Running) {
    let (receiver, ticket) = place.recv(&["in", "--once", "--relay", word]);
    let ticket = Ticket { addresses: Vec::new(), ..ticket.parse::<Ticket>().unwrap() }.to_string();
    let arguments =
        [&["send", file, &ticket, "--json", "--bind", "[::1]:0", "--relay", word], arguments].concat();
    (receiver, Running::start(place.command("sender", &arguments)))
}

fn kept_in(place: &Place) -> PathBuf {
    place.path("relay/.local/share/byway/relay-kept")
}

fn kept(place: &Place) -> SavedState {
    fs::read_to_string(kept_in(place)).unwrap().parse().unwrap()
}

#[test]
fn a_relay_counts_on_where_it_was_stopped_or_killed() {
    let place = Place::new();
    fs::write(place.path("file"), vec![7; 300_000]).unwrap();
    let (running, word) = relay(&place, &[]);
    let (receiver, sender) = send(&place, &word, "file", &[]);
    sender.end().succeeded();
    receiver.end().succeeded();
    running.signal("TERM");
    let ended = running.end();
    ended.succeeded();
    let first = ended.result()["today_bytes"].as_u64().unwrap();
    assert!(first > 300_000, "{first}");
    assert_eq!(kept(&place).used.today, first);

    let (mut running, word) = relay(&place, &[]);
    running.signal("USR1");
    assert_eq!(running.event("counters")["today_bytes"], first);
    fs::write(place.path("file"), vec![8; 300_000]).unwrap();
    let (receiver, sender) = send(&place, &word, "file", &[]);
    sender.end().succeeded();
    receiver.end().succeeded();
    running.signal("USR1");
    let second = running.event("counters")["today_bytes"].as_u64().unwrap();
    assert!(second > first + 300_000);
    // Within seconds it is on the disk, however the relay ends.
    while kept(&place).used.today < second {
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    running.signal("KILL");
    assert_eq!(running.end().code, None);
    let (mut running, _) = relay(&place, &[]);
    running.signal("USR1");
    assert!(running.event("counters")["today_bytes"].as_u64().unwrap() >= second);
}

#[test]
fn no_more_than_the_relays_quota_of_a_day_whatever_its_words_allow() {
    no_more_than_the_relays_quota("--per-day");
}

#[test]
fn no_more_than_the_relays_quota_of_a_month_whatever_its_words_allow() {
    no_more_than_the_relays_quota("--per-month");
}

/// The quota of half a megabyte holds for a relay that ends and one that is started after it.
fn no_more_than_the_relays_quota(option: &str) {
    let place = Place::new();
    fs::write(place.path("file"), vec![7; 2_000_000]).unwrap();
    let mut left = 500 << 10;
    for first in [true, false] {
        let (running, word) = relay(&place, &[option, "500K"]);
        let (_receiver, mut sender) = send(&place, &word, "file", &[]);
        if first {
            while sender.event("progress")["pause"] != "relay_quota" {}
        } else {
            sender.end().failed(5, "the relay carried as much as its operator lets it");
        }
        running.signal("INT");
        let result = running.end().result();
        let carried = ["forwarded_bytes", "returned_bytes"].map(|name| result[name].as_u64().unwrap());
        assert!(carried.iter().sum::<u64>() <= left, "{result}");
        assert!(result["dropped"]["the relay carried as much as its operator lets it"].as_u64() > Some(0));
        assert!(result["today_bytes"].as_u64() <= Some(500 << 10));
        left -= carried.iter().sum::<u64>();
    }
    assert!(left < 10_000, "{left}");
}

#[test]
fn a_relay_that_is_killed_while_it_carries_gives_its_quota_once() {
    const QUOTA: u64 = 2 << 20;
    let place = Place::new();
    fs::write(place.path("file"), vec![7; 3_000_000]).unwrap();
    let mut carried = 0;
    for _ in 0..4 {
        let (mut running, word) = relay(&place, &["--per-day", "2M"]);
        let (_receiver, _sender) = send(&place, &word, "file", &[]);
        carried += loop {
            running.signal("USR1");
            let counters = running.event("counters");
            let so_far = ["forwarded_bytes", "returned_bytes"].map(|name| counters[name].as_u64().unwrap());
            let used_up = counters["dropped"]["the relay carried as much as its operator lets it"].as_u64();
            if so_far.iter().sum::<u64>() > 700_000 || used_up > Some(0) {
                break so_far.iter().sum::<u64>();
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        };
        running.signal("KILL");
        running.end();
    }
    assert!((QUOTA / 2..=QUOTA).contains(&carried), "{carried} of {QUOTA}");
}

fn says(lines: &mut impl Iterator<Item = std::io::Result<String>>, words: &str) {
    assert!(lines.any(|line| line.unwrap().contains(words)), "it never said: {words}");
}

#[test]
fn a_disk_that_takes_nothing_stops_no_relay() {
    let place = Place::new();
    fs::write(place.path("file"), vec![7; 300_000]).unwrap();
    let fixed = ["relay", "--listen", "127.0.0.1:0", "--allow-destination", "127.0.0.0/8"];
    let arguments = [&fixed[..], &OVER_IPV6].concat();
    let mut child = place.command("relay", &arguments).stderr(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap()).lines();
    let word = out.next().unwrap().unwrap();
    let mut told = BufReader::<ChildStderr>::new(child.stderr.take().unwrap()).lines();
    // Something that no file can be put in place of.
    fs::remove_file(kept_in(&place)).unwrap();
    fs::create_dir_all(kept_in(&place).join("in the way")).unwrap();
    let (receiver, sender) = send(&place, &word, "file", &[]);
    sender.end().succeeded();
    receiver.end().succeeded();
    says(&mut told, "cannot save the count of carried bytes");
    fs::remove_dir_all(kept_in(&place)).unwrap();
    says(&mut told, "the count of carried bytes is saved again");
    assert!(kept(&place).used.today > 300_000);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_relay_that_is_stopped_carries_on_what_it_carries_and_nothing_new() {
    let place = Place::new();
    fs::write(place.path("file"), vec![7; 3_000_000]).unwrap();
    let (running, word) = relay(&place, &[]);
    let (receiver, mut sender) = send(&place, &word, "file", &["--bwlimit", "1M"]);
    while sender.event("progress")["bytes"].as_u64() < Some(500_000) {}
    running.signal("TERM");
    // Its own word is in use. One that its holder narrows is another, each time until the relay has
    // heard the signal.
    let word: Word = word.parse().unwrap();
    let refused = (1..10).any(|branch| {
        let narrow = word.narrow(Caveat { branch, terms: *word.terms() }).unwrap().reveal();
        let (_receiver, ticket) = place.recv(&["other", "--once"]);
        let pinged = place.run("other", &["ping", &ticket, "--relay", &narrow, "-c", "1", "--json"]);
        pinged.result()["paths"].as_array().unwrap().len() == 1
    });
    assert!(refused);
    let sent = sender.end();
    sent.succeeded();
    receiver.end().succeeded();
    assert!(fs::read(place.path("file")).unwrap() == fs::read(place.path("in/file")).unwrap());
    let ended = running.end();
    ended.succeeded();
    let result = ended.result();
    assert!(result["dropped"]["the relay ends soon and takes no new words"].as_u64() > Some(0), "{result}");
}

#[test]
fn a_relay_ends_while_it_is_in_use_once_it_went_on_for_long_enough() {
    let place = Place::new();
    fs::write(place.path("file"), vec![7; 30_000_000]).unwrap();
    let (running, word) = relay(&place, &["--drain", "1s"]);
    let (_receiver, mut sender) = send(&place, &word, "file", &["--bwlimit", "1M"]);
    while sender.event("progress")["bytes"].as_u64() < Some(500_000) {}
    running.signal("TERM");
    running.end().succeeded();
    sender.interrupt();
    assert_eq!(sender.end().code, Some(130));
}
