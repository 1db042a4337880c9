//! Transfers whose processes are killed, and the same commands again.

use crate::common::{Ended, Place, Running, assert_same};
use byway_transfer::ticket::Ticket;
use serde_json::Value;
use std::fs;
use std::process::Child;
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;
/// What may be on its way, or in a chunk that is not complete, when a process is killed at the
/// rates used here.
const SLACK: u64 = 4 * MIB;

/// A file of which no two chunks are equal.
fn big(place: &Place, size: u64) {
    let contents: Vec<u8> = (0..size as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 11) as u8).collect();
    fs::write(place.path("big"), contents).unwrap();
}

fn send(place: &Place, what: &str, ticket: &str, rate: &str) -> Running {
    Running::start(place.command("sender", &["send", what, ticket, "--bwlimit", rate, "--json"]))
}

/// Reads events until at least `bytes` are there; how many.
fn until(sender: &mut Running, bytes: u64) -> u64 {
    loop {
        let event: Value = serde_json::from_str(&sender.line()).unwrap();
        assert_ne!(event["event"], "result", "it came to its end before it could be stopped");
        match event["bytes"].as_u64() {
            Some(there) if there >= bytes => return there,
            _ => {}
        }
    }
}

fn kept(ended: &Ended) -> u64 {
    ended.succeeded();
    ended.result()["kept_bytes"].as_u64().unwrap()
}

#[track_caller]
fn arrived(place: &Place) {
    assert!(fs::read(place.path("big")).unwrap() == fs::read(place.path("in/big")).unwrap());
}

/// Bytes that the paths carried, headers and repetitions included.
fn travelled(ended: &Ended) -> u64 {
    ended.result()["paths"].as_array().unwrap().iter().map(|path| path["bytes"].as_u64().unwrap()).sum()
}

/// That what was there did not travel again. A busy machine loses packets, so some of the rest may
/// travel twice.
#[track_caller]
fn only_the_rest(ended: &Ended, total: u64, there: u64) {
    let kept = kept(ended);
    assert!(kept <= total && kept + SLACK >= there, "{kept} of {there}");
    let most = total - kept / 2;
    assert!(travelled(ended) <= most, "{} travelled, {kept} of {total} were there", travelled(ended));
}

#[test]
fn a_receiver_that_was_killed_goes_on_with_the_same_ticket() {
    let place = Place::new();
    big(&place, 24 * MIB);
    let (receiver, ticket) = place.recv(&["in", "--once"]);
    let mut sender = send(&place, "big", &ticket, "8M");
    let there = until(&mut sender, 8 * MIB);
    drop(receiver); // kills it
    sender.interrupt();
    let stopped = sender.end();
    stopped.failed(130, "to go on: byway send big TICKET --bwlimit 8M --json");
    assert!(!place.path("in/big").exists());
    let (receiver, again) = place.recv(&["in", "--once"]);
    assert_eq!(again, ticket);
    let sent = send(&place, "big", &ticket, "off").end();
    only_the_rest(&sent, 24 * MIB, there);
    receiver.end().succeeded();
    arrived(&place);
    assert!(!place.path("in/.byway-partial").exists());
    // It was good for that transfer.
    let (_receiver, other) = place.recv(&["in", "--once"]);
    assert_ne!(other, ticket);
}

#[test]
fn a_sender_that_was_killed_is_not_waited_for() {
    for once in [&["in", "--once"][..], &["in"]] {
        let place = Place::new();
        big(&place, 24 * MIB);
        let (receiver, ticket) = place.recv(once);
        let mut sender = send(&place, "big", &ticket, "8M");
        let there = until(&mut sender, 8 * MIB);
        drop(sender);
        let sent = send(&place, "big", &ticket, "off").end();
        only_the_rest(&sent, 24 * MIB, there);
        arrived(&place);
        if once.len() == 1 {
            receiver.interrupt();
            assert_eq!(receiver.end().code, Some(130));
        } else {
            receiver.end().succeeded();
        }
        let kept = place.path("sender/.local/share/byway/sending");
        assert_eq!(fs::read_dir(kept).unwrap().count(), 0, "nothing is kept of what is complete");
    }
}

#[test]
fn a_transfer_into_a_directory_of_a_peer_goes_on_too() {
    let place = Place::new();
    big(&place, 24 * MIB);
    let key = String::from_utf8(place.run("sender", &["id"]).stdout).unwrap();
    let (_receiver, ticket) = place.recv(&["in", "--allow", &format!("{}=ann", key.trim())]);
    place.run("sender", &["peer", "add", "nas", &ticket]).succeeded();
    let mut sender = send(&place, "big", "nas:2026/", "8M");
    let there = until(&mut sender, 8 * MIB);
    drop(sender);
    // Into another directory it is another transfer, which leaves the first alone.
    assert_eq!(kept(&send(&place, "big", "nas:other/", "off").end()), 0);
    let sent = send(&place, "big", "nas:2026/", "off").end();
    only_the_rest(&sent, 24 * MIB, there);
    for name in ["2026", "other"] {
        assert_same(&place.path("big"), &place.path(&format!("in/ann/{name}/big")));
    }
    assert!(!place.path("in/ann/.byway-partial").exists() && !place.path("in/.byway-partial").exists());
}

#[test]
fn a_receiver_that_is_interrupted_writes_what_it_has_and_says_how_to_go_on() {
    let place = Place::new();
    big(&place, 24 * MIB);
    let (receiver, ticket) = place.recv(&["in"]);
    let mut sender = send(&place, "big", &ticket, "8M");
    let there = until(&mut sender, 8 * MIB);
    receiver.interrupt();
    let stopped = receiver.end();
    assert_eq!(stopped.code, Some(130));
    let says = "stopped; to go on, with the same ticket: byway recv --listen 127.0.0.1:0 in";
    assert!(stopped.stderr.contains(says), "{}", stopped.stderr);
    sender.end().failed(5, "the same command goes on from there");
    let (receiver, again) = place.recv(&["in"]);
    assert_eq!(again, ticket);
    let sent = send(&place, "big", &ticket, "off").end();
    only_the_rest(&sent, 24 * MIB, there);
    arrived(&place);
    drop(receiver);
}

#[test]
fn the_same_twice_at_once_is_refused() {
    let place = Place::new();
    big(&place, 24 * MIB);
    let (_receiver, ticket) = place.recv(&["in"]);
    let mut sender = send(&place, "big", &ticket, "8M");
    until(&mut sender, 1);
    place.run("sender", &["send", "big", &ticket]).failed(1, "another `byway send` is sending the same");
    drop(sender);
}

#[test]
fn killed_at_any_moment_a_tree_arrives_as_it_is() {
    let place = Place::new();
    byway_files::generate(&place.path("tree"), 5, 30_000_000).unwrap();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let mut tickets = Vec::new();
    let mut receiver = None;
    for round in 0..10 {
        let running = receiver.take().unwrap_or_else(|| {
            let (running, ticket) = place.recv(&["in"]);
            tickets.push(ticket);
            running
        });
        let mut sender = send(&place, "tree", &tickets[0], "4M");
        // The moment of the kill: any, or when so much is there. All rounds together are not enough
        // for the whole tree.
        if round % 2 == 0 {
            std::thread::sleep(Duration::from_millis(random(700)));
        } else {
            until(&mut sender, round * MIB);
        }
        match (round, random(3)) {
            // A receiver that lives sees its sender go.
            (_, 0) => receiver = Some(running),
            (_, 1) => {
                drop(running);
                sender.interrupt();
                sender.end();
                continue;
            }
            _ => drop(running),
        }
        drop(sender);
    }
    assert!(tickets.len() > 3 && tickets.iter().all(|ticket| *ticket == tickets[0]), "{}", tickets.len());
    let running = receiver.unwrap_or_else(|| {
        let (running, ticket) = place.recv(&["in"]);
        assert_eq!(ticket, tickets[0]);
        running
    });
    let sent = send(&place, "tree", &tickets[0], "off").end();
    assert!(kept(&sent) > 2_000_000, "{}", kept(&sent));
    assert_eq!(sent.result()["bytes"], 30_000_000);
    assert_same(&place.path("tree"), &place.path("in/tree"));
    assert!(!place.path("in/.byway-partial").exists());
    drop(running);
}

/// Reads events until the receiver is said not to answer.
fn until_silence(sender: &mut Running) {
    loop {
        let event: Value = serde_json::from_str(&sender.line()).unwrap();
        assert_ne!(event["event"], "result", "it did not wait for the receiver");
        if event["pause"] == "no_answer" {
            return;
        }
    }
}

#[test]
fn a_receiver_that_comes_back_is_sent_the_rest_by_the_sender_that_waits() {
    let place = Place::new();
    big(&place, 24 * MIB);
    let (receiver, ticket) = place.recv(&["in", "--once"]);
    let mut sender = send(&place, "big", &ticket, "8M");
    let there = until(&mut sender, 8 * MIB);
    drop(receiver); // kills it
    until_silence(&mut sender);
    let (receiver, again) = place.recv(&["in", "--once"]);
    assert_eq!(again, ticket);
    let sent = sender.end();
    let said = String::from_utf8_lossy(&sent.stdout).into_owned();
    assert!(said.contains("the receiver no longer knows this session"), "{said}{}", sent.stderr);
    assert!(kept(&sent) + SLACK >= there, "{} of {there}", kept(&sent));
    receiver.end().succeeded();
    arrived(&place);
}

/// At the first SIGINT the sender is told, and what is being written is waited for. At the second
/// nothing is waited for.
#[test]
fn sigint_twice_ends_at_once() {
    let place = Place::new();
    let mut command = place.command("receiver", &["recv", "-", "--listen", "127.0.0.1:0"]);
    let errors = place.path("errors");
    command.stderr(fs::File::create(&errors).unwrap());
    // Nobody reads its standard output: it cannot end until what it took is written.
    let mut receiver = command.spawn().unwrap();
    let ticket = crate::common::ticket_in(&errors);
    let mut command = place.command("sender", &["send", "-", &ticket, "--json"]);
    command.stdin(fs::File::open("/dev/zero").unwrap());
    let mut sender = Running::start(command);
    // More than a pipe holds; a reader that is as slow as this one has a small window.
    until(&mut sender, MIB / 4);
    let interrupt = |id: u32| {
        let done = std::process::Command::new("kill").args(["-INT", &id.to_string()]).status().unwrap();
        assert!(done.success());
    };
    interrupt(receiver.id());
    // Its end says that the first was heeded.
    sender.end().failed(5, "the other side was interrupted");
    assert!(receiver.try_wait().unwrap().is_none(), "it waits for what it writes");
    interrupt(receiver.id());
    assert_eq!(receiver.wait().unwrap().code(), Some(130));
    let says = fs::read_to_string(&errors).unwrap();
    assert!(!says.contains("stopped"), "it did not end by itself: {says}");
}

/// Sends a file as a stream.
fn pour(place: &Place, what: &str, ticket: &str, rate: &str) -> Running {
    let mut command = place.command("sender", &["send", "-", ticket, "--bwlimit", rate, "--json"]);
    command.stdin(fs::File::open(place.path(what)).unwrap());
    Running::start(command)
}

/// A repeat that waits for somebody's patience with the one before takes a minute more.
const SOON: Duration = Duration::from_secs(50);

#[test]
fn a_stream_whose_sender_was_killed_goes_on_down_the_pipe() {
    let place = Place::new();
    big(&place, 24 * MIB);
    let (mut receiver, ticket) = place.recv_pipe();
    let mut sender = pour(&place, "big", &ticket, "8M");
    until(&mut sender, 8 * MIB);
    pour(&place, "big", &ticket, "8M").end().failed(1, "another `byway send` is sending the same");
    drop(sender); // kills it
    let killed = Instant::now();
    pour(&place, "big", &ticket, "off").end().succeeded();
    assert_eq!(receiver.wait().unwrap().code(), Some(0));
    assert!(killed.elapsed() < SOON, "{:?}", killed.elapsed());
    assert!(fs::read(place.path("big")).unwrap() == fs::read(place.path("out")).unwrap());
    let kept = place.path("sender/.local/share/byway/sending");
    assert_eq!(fs::read_dir(kept).unwrap().count(), 0, "nothing is kept of what is complete");
}

#[test]
fn another_stream_never_goes_down_the_same_pipe() {
    let place = Place::new();
    big(&place, 24 * MIB);
    let big = fs::read(place.path("big")).unwrap();
    let changed = |at: usize| {
        let mut other = big.clone();
        other[at] ^= 1;
        other
    };
    for other in [changed(1), big[..MIB as usize].to_vec()] {
        fs::write(place.path("other"), other).unwrap();
        let (mut receiver, ticket) = place.recv_pipe();
        let mut sender = pour(&place, "big", &ticket, "8M");
        until(&mut sender, 8 * MIB);
        drop(sender);
        let killed = Instant::now();
        pour(&place, "other", &ticket, "off").end().failed(1, "begun again and is another one");
        assert_eq!(receiver.wait().unwrap().code(), Some(1));
        assert!(killed.elapsed() < SOON, "{:?}", killed.elapsed());
        let out = fs::read(place.path("out")).unwrap();
        assert!(out.len() > 4 * MIB as usize && big.starts_with(&out), "{} bytes", out.len());
    }
}

#[test]
fn a_stream_ends_when_its_receiver_was_started_anew() {
    let place = Place::new();
    big(&place, 24 * MIB);
    let (receiver, first) = place.recv_pipe();
    let port = first.parse::<Ticket>().unwrap().addresses[0].to_string();
    let mut sender = pour(&place, "big", &first, "1M");
    until(&mut sender, 1);
    end_pipe(receiver);
    let killed = Instant::now();
    let command = place.command("receiver", &["recv", "-", "--listen", &port]);
    let _again = Running::start(command);
    sender.end().failed(5, "the receiver no longer knows this session: send the stream again");
    assert!(killed.elapsed() < SOON, "{:?}", killed.elapsed());
}

/// Kills a receiver of a stream.
fn end_pipe(mut receiver: Child) {
    receiver.kill().unwrap();
    receiver.wait().unwrap();
}

#[test]
fn behind_a_relay_alone_either_side_may_be_killed() {
    let place = Place::new();
    big(&place, 24 * MIB);
    let (_relay, word) = place.relay(&[]);
    let relayed = |text: &str| Ticket { addresses: Vec::new(), ..text.parse::<Ticket>().unwrap() };
    let (receiver, text) = place.recv(&["in", "--once", "--relay", &word]);
    let ticket = relayed(&text).to_string();
    let mut sender = send(&place, "big", &ticket, "6M");
    until(&mut sender, 4 * MIB);
    drop(sender);
    let killed = Instant::now();
    let mut sender = send(&place, "big", &ticket, "6M");
    let there = until(&mut sender, 8 * MIB);
    assert!(killed.elapsed() < SOON, "{:?}", killed.elapsed());
    drop(receiver);
    let killed = Instant::now();
    let (receiver, again) = place.recv(&["in", "--once", "--relay", &word]);
    assert_eq!(relayed(&again).permission, relayed(&text).permission);
    let sent = sender.end();
    assert!(kept(&sent) + SLACK >= there, "{} of {there}", kept(&sent));
    assert!(killed.elapsed() < SOON, "{:?}", killed.elapsed());
    receiver.end().succeeded();
    arrived(&place);
}

/// The reason of the next event `away`.
fn away(sender: &mut Running) -> String {
    sender.event("away")["reason"].as_str().unwrap().to_owned()
}

#[test]
fn who_retries_waits_for_a_receiver_that_is_not_up_and_for_one_that_is_stopped() {
    let place = Place::new();
    big(&place, 24 * MIB);
    let (receiver, ticket) = place.recv(&["in"]);
    receiver.interrupt();
    assert_eq!(receiver.end().code, Some(130));
    let arguments = ["send", "big", &ticket, "--retry", "--bwlimit", "8M", "--json"];
    let mut sender = Running::start(place.command("sender", &arguments));
    assert!(away(&mut sender).starts_with("the receiver is not running"));
    let seconds = sender.event("away")["seconds"].as_f64().unwrap();
    assert!(seconds >= 0.5, "the second try follows half a second after the first, not {seconds}");
    let (receiver, again) = place.recv(&["in"]);
    assert_eq!(again, ticket);
    until(&mut sender, 8 * MIB);
    receiver.interrupt();
    assert_eq!(receiver.end().code, Some(130));
    assert_eq!(away(&mut sender), "it was stopped");
    let (_receiver, again) = place.recv(&["in"]);
    assert_eq!(again, ticket);
    let sent = sender.end();
    assert!(kept(&sent) + SLACK >= 8 * MIB, "{}", sent.result());
    arrived(&place);
}

#[test]
fn who_retries_ends_at_once_where_waiting_cannot_help() {
    let place = Place::new();
    big(&place, MIB);
    let (receiver, old) = place.recv(&["in"]);
    receiver.interrupt();
    assert_eq!(receiver.end().code, Some(130));
    let mut waiting = Running::start(place.command("sender", &["send", "big", &old, "--retry", "--json"]));
    away(&mut waiting);
    waiting.interrupt();
    assert_eq!(waiting.end().code, Some(130));
    let (_receiver, _) = place.recv(&["in", "--new-ticket"]);
    place.run("sender", &["send", "big", &old, "--retry"]).failed(6, "ticket");
    place.run("sender", &["send", "-", &old, "--retry"]).failed(2, "--retry is for files");
}
