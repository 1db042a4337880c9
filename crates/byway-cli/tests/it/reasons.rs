//! The reasons that the program prints when a transfer is slow or cannot begin, and the list of
//! files that a dry run would send.

use crate::common::{Ended, Place, Running};
use byway_demo::lines::PathSpec;
use byway_demo::network;
use byway_transfer::ticket::Ticket;
use serde_json::Value;
use std::fs::{self, File};
use std::io::Write;
use std::net::UdpSocket;
use std::process::{Command, Stdio};
use std::time::Duration;

const MIB: usize = 1 << 20;

/// Reads events until progress gives this reason.
fn until_told(sender: &mut Running, pause: &str) -> Value {
    loop {
        let event: Value = serde_json::from_str(&sender.line()).unwrap();
        assert_ne!(event["event"], "result", "it ended and never said {pause}");
        if event["pause"] == pause {
            return event;
        }
    }
}

/// Reads events until so many bytes are there.
fn until_there(sender: &mut Running, bytes: u64) {
    while serde_json::from_str::<Value>(&sender.line()).unwrap()["bytes"].as_u64() < Some(bytes) {}
}

fn events(ended: &Ended) -> Vec<Value> {
    let text = std::str::from_utf8(&ended.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The ticket without its direct addresses.
fn relayed(ticket: &str) -> String {
    Ticket { addresses: Vec::new(), ..ticket.parse::<Ticket>().unwrap() }.to_string()
}

#[test]
fn a_stream_that_stands_still_waits_for_data() {
    let place = Place::new();
    let (mut receiver, ticket) = place.recv_pipe();
    let (read, mut write) = std::io::pipe().unwrap();
    let mut command = place.command("sender", &["send", "-", &ticket, "--json"]);
    command.stdin(read);
    let mut sender = Running::start(command);
    write.write_all(&vec![7; 100_000]).unwrap();
    until_told(&mut sender, "application_limited");
    drop(write);
    sender.end().succeeded();
    assert!(receiver.wait().unwrap().success());
}

#[test]
fn a_receiver_whose_reader_stands_still_is_waited_for() {
    let place = Place::new();
    let errors = place.path("errors");
    let mut command = place.command("receiver", &["recv", "-", "--listen", "127.0.0.1:0"]);
    command.stderr(File::create(&errors).unwrap());
    // Its standard output is a pipe that nobody reads yet.
    let mut receiver = command.spawn().unwrap();
    let ticket = crate::common::ticket_in(&errors);
    fs::write(place.path("stream"), vec![7; 64 * MIB]).unwrap();
    let mut command = place.command("sender", &["send", "-", &ticket, "--json"]);
    command.stdin(File::open(place.path("stream")).unwrap());
    let mut sender = Running::start(command);
    until_told(&mut sender, "receiver_limited");
    let mut out = receiver.stdout.take().unwrap();
    let read = std::io::copy(&mut out, &mut std::io::sink()).unwrap();
    assert_eq!(read, 64 * MIB as u64);
    sender.end().succeeded();
    assert!(receiver.wait().unwrap().success());
}

/// A relay that carries no more than this word's quota, beside a direct line and alone.
#[test]
fn a_quota_that_is_used_up_is_the_reason() {
    let place = Place::new();
    fs::write(place.path("file"), vec![7; 12 * MIB]).unwrap();
    let (_relay, word) = place.relay(&["--quota", "1M"]);
    let (receiver, ticket) = place.recv(&["in", "--once"]);
    let direct = ticket.parse::<Ticket>().unwrap();
    let slow = PathSpec { name: "direct", rate: 20_000_000, rtt: Duration::from_millis(10), queue: 50 };
    let line = network::direct(&slow, direct.addresses[0]).unwrap();
    let ticket = Ticket { addresses: vec![line.front], ..direct }.to_string();
    let arguments = ["send", "file", &ticket, "--relay", &word, "--priority", "normal", "--json"];
    let sent = place.run("sender", &arguments);
    sent.succeeded();
    receiver.end().succeeded();
    let events = events(&sent);
    let told = |event: &&Value| event["event"] == "progress" && event["pause"] == "relay_quota";
    assert!(events.iter().any(|event| told(&event)), "{events:?}");
    let says = |event: &Value| event["message"].as_str().is_some_and(|text| text.contains("quota for today"));
    assert_eq!(events.iter().filter(|event| says(event)).count(), 1, "it is said once: {events:?}");

    fs::write(place.path("other"), vec![8; 4 * MIB]).unwrap();
    let (_relay, word) = place.relay(&["--quota", "1M"]);
    let (_receiver, ticket) = place.recv(&["in", "--relay", &word]);
    let mut sender = Running::start(place.command("sender", &["send", "other", &relayed(&ticket), "--json"]));
    until_told(&mut sender, "relay_quota");
    sender.interrupt();
    sender.end().failed(130, "to go on: byway send other TICKET");
}

/// Sender and receiver meet through a relay, and a direct path opens: the relay is not missed.
#[test]
fn a_relay_that_was_killed_is_not_missed_where_a_direct_path_has_opened() {
    let place = Place::new();
    fs::write(place.path("file"), vec![7; 24 * MIB]).unwrap();
    let (relay, text) = place.relay(&[]);
    let (receiver, ticket) = place.recv(&["in", "--once", "--relay", &text]);
    let arguments = ["send", "file", &relayed(&ticket), "--bwlimit", "8M", "--json"];
    let mut sender = Running::start(place.command("sender", &arguments));
    until_there(&mut sender, 12 * MIB as u64);
    drop(relay); // kills it
    let sent = sender.end();
    sent.succeeded();
    assert_eq!(sent.result()["kept_bytes"], 0, "it was another try");
    receiver.end().succeeded();
    assert!(fs::read(place.path("file")).unwrap() == fs::read(place.path("in/file")).unwrap());
}

/// Where UDP is swallowed on its way: said soon, and at the end with what to try.
#[test]
fn a_dry_run_says_what_would_be_sent_and_sends_nothing() {
    let place = Place::new();
    let (_receiver, ticket) = place.recv(&["in"]);
    fs::create_dir_all(place.path("tree/below")).unwrap();
    fs::write(place.path("tree/a"), vec![7; 3_000]).unwrap();
    fs::write(place.path("tree/below/b"), vec![7; 72]).unwrap();
    std::os::unix::fs::symlink("a", place.path("tree/c")).unwrap();
    for arguments in [&["send", "-n", "tree", &ticket][..], &["send", "--dry-run", "tree", &ticket, "--json"]]
    {
        let ended = place.run("sender", arguments);
        ended.succeeded();
        let said = String::from_utf8(ended.stdout.clone()).unwrap();
        if arguments.contains(&"--json") {
            let plan = ended.result();
            let found =
                ["bytes", "files", "directories", "links", "unreadable"].map(|name| plan[name].clone());
            assert_eq!(found, [3_072, 2, 2, 1, 0].map(Value::from), "{plan}");
        } else {
            let end = "3.00 KiB in 2 files, 2 directories and 1 symbolic links; of these 3.00 KiB would travel at most: 3 new\n";
            assert!(said.ends_with(end), "{said}");
        }
    }
    assert_eq!(fs::read_dir(place.path("in")).unwrap().count(), 0, "something was sent");
    place.run("sender", &["send", "-n", "nothing", &ticket]).failed(3, "nothing does not exist");
}

#[test]
fn sigterm_stops_as_sigint_does_and_has_a_code_of_its_own() {
    let place = Place::new();
    fs::write(place.path("file"), vec![7; 24 * MIB]).unwrap();
    let (_receiver, ticket) = place.recv(&["in"]);
    let mut command = place.command("sender", &["send", "file", &ticket, "--bwlimit", "4M", "--json"]);
    command.stdin(Stdio::null());
    let mut sender = Running::start(command);
    until_there(&mut sender, MIB as u64);
    let done = Command::new("kill").args(["-TERM", &sender.id().to_string()]).status().unwrap();
    assert!(done.success());
    sender.end().failed(143, "to go on: byway send file TICKET --bwlimit 4M --json");
}

/// A ticket is kept for one receiver at a time of a directory, and says so when it leads elsewhere.
#[test]
fn a_second_receiver_has_a_ticket_of_its_own_and_a_port_that_is_taken_is_told() {
    let place = Place::new();
    let (first, ticket) = place.recv(&["in"]);
    let (second, other) = place.recv(&["in"]);
    assert_ne!(ticket, other);
    drop((first, second)); // kills them
    let (again, kept) = place.recv(&["in"]);
    assert_eq!(kept, ticket);
    drop(again);
    let taken = UdpSocket::bind(ticket.parse::<Ticket>().unwrap().addresses[0]).unwrap();
    let (elsewhere, moved) = place.recv(&["in"]);
    let [before, now] = [&ticket, &moved].map(|text| text.parse::<Ticket>().unwrap());
    assert!(
        before.permission == now.permission && before.key == now.key && before.addresses != now.addresses
    );
    elsewhere.interrupt();
    let said = elsewhere.end().stderr;
    let port = taken.local_addr().unwrap().port();
    assert!(
        said.contains(&format!("port {port} is in use by another program: the ticket printed before")),
        "{said}"
    );
}
