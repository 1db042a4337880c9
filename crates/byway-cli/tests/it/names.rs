//! Tickets with names, which senders look up.

use crate::common::{Place, Running, assert_same};
use byway_transfer::ticket::Ticket;
use serde_json::json;
use std::fs::{self, File};
use std::net::UdpSocket;

/// A name that no resolver knows (RFC 6761, section 6.4).
const NOWHERE: &str = "nowhere.invalid";

fn place() -> Place {
    let place = Place::new();
    fs::write(place.path("file"), vec![7; 100_000]).unwrap();
    place
}

/// A receiver on a port of loopback that advertises a name, and its ticket.
fn receiver(place: &Place, name: &str) -> (Running, Ticket) {
    let free = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let arguments = ["recv", "in", "--listen", &free, "--advertise", name, "--once"];
    let mut receiver = Running::start(place.command("receiver", &arguments));
    let text = receiver.line();
    assert!(text.starts_with("byway2-"), "{text}");
    let ticket: Ticket = text.parse().unwrap();
    assert_eq!(ticket.addresses, [free.parse().unwrap()]);
    assert_eq!(ticket.names[0].port, ticket.addresses[0].port());
    (receiver, ticket)
}

fn arrives(place: &Place, receiver: Running, ticket: &Ticket, more: &[&str]) -> String {
    let text = ticket.to_string();
    let sent = place.run("sender", &[&["send", "file", &text], more].concat());
    sent.succeeded();
    receiver.end().succeeded();
    assert_same(&place.path("file"), &place.path("in/file"));
    sent.stderr
}

#[test]
fn a_ticket_with_a_name_alone_leads_to_the_receiver() {
    let place = place();
    let (receiver, ticket) = receiver(&place, "LOCALHOST");
    assert_eq!(ticket.names[0].name.as_str(), "localhost");
    let named = Ticket { addresses: Vec::new(), ..ticket };
    let pinged = place.run("sender", &["ping", &named.to_string(), "--count", "1"]);
    pinged.succeeded();
    arrives(&place, receiver, &named, &[]);
}

#[test]
fn a_person_who_wants_to_know_is_told_of_names() {
    let place = place();
    let (_receiver, ticket) = receiver(&place, "localhost");
    let named = Ticket { addresses: Vec::new(), ..ticket }.to_string();
    for arguments in [&["send", "file", &named][..], &["ping", &named, "--count", "1"]] {
        let ended = place.run("sender", &[arguments, &["-v"]].concat());
        let said: Vec<&str> = ended.stderr.lines().filter(|line| line.contains("localhost")).collect();
        assert_eq!(
            said[..2],
            ["looking up localhost", "localhost leads to ::1, 127.0.0.1"],
            "{}",
            ended.stderr
        );
    }
    let (_receiver, ticket) = self::receiver(&place, NOWHERE);
    let named = Ticket { addresses: Vec::new(), ..ticket }.to_string();
    let ended = place.run("sender", &["send", "file", &named, "-v"]);
    assert!(
        ended.stderr.contains("looking up nowhere.invalid\nnowhere.invalid: no address: "),
        "{}",
        ended.stderr
    );
    let ended = place.run("sender", &["send", "file", &named, "--json"]);
    let events = String::from_utf8(ended.stdout).unwrap();
    let events = events.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let steps: Vec<_> = events.filter(|event| event["event"] == "name").collect();
    let standings: Vec<_> = steps.iter().map(|step| step["standing"].as_str().unwrap()).collect();
    assert_eq!((&standings[..], &steps[1]["name"]), (&["asked", "not_found"][..], &json!(NOWHERE)));
}

#[test]
fn a_source_finds_its_sink_by_name() {
    let place = place();
    let sink = ["sink", "in", "--listen", "127.0.0.1:0", "--advertise", "localhost"];
    let mut sink = Running::start(place.command("receiver", &sink));
    let ticket: Ticket = sink.line().parse().unwrap();
    let ticket = Ticket { addresses: Vec::new(), ..ticket }.to_string();
    fs::write(place.path("records"), "a record\n").unwrap();
    let mut source = place.command("sender", &["source", "--to", &ticket, "--name", "m", "--demand", "1M"]);
    source.stdin(File::open(place.path("records")).unwrap());
    Running::start(source).end().succeeded();
    sink.interrupt();
    sink.end();
    let written = fs::read_dir(place.path("in")).unwrap().map(|entry| entry.unwrap().path());
    let holds =
        |path: std::path::PathBuf| fs::read_to_string(path).is_ok_and(|text| text.contains("a record"));
    assert!(written.into_iter().any(holds));
}

#[test]
fn a_name_without_an_address_is_a_warning_where_an_address_works() {
    let place = place();
    let (receiver, ticket) = receiver(&place, NOWHERE);
    let said = arrives(&place, receiver, &ticket, &[]);
    // A short transfer may be over before the resolver answers.
    assert!(!said.contains("warning") || said.contains("nowhere.invalid: no address: "), "{said}");
}

#[test]
fn a_name_that_leads_nowhere_is_named_in_the_error() {
    let place = place();
    let (receiver, ticket) = receiver(&place, NOWHERE);
    let port = ticket.names[0].port;
    let text = Ticket { addresses: Vec::new(), ..ticket }.to_string();
    for arguments in [&["send", "file", &text][..], &["ping", &text]] {
        place.run("sender", arguments).failed(5, "nowhere.invalid: no address: ");
    }
    let ended = place.run("sender", &["send", "file", &text, "--json"]);
    ended.failed(5, "the ticket has no other way to the receiver");
    let tried = &ended.result()["tried"];
    assert_eq!(tried.as_array().unwrap().len(), 1, "{tried}");
    assert_eq!(tried[0]["address"], json!(format!("nowhere.invalid:{port}")));
    assert_eq!((&tried[0]["heard"], &tried[0]["relay"]), (&json!("name_without_address"), &json!(false)));
    drop(receiver);
}

#[test]
fn what_is_advertised_by_name_is_in_the_event_and_is_checked() {
    let place = place();
    let listen = ["recv", "in", "--listen", "127.0.0.1:0", "--json"];
    let names = ["--advertise", "nas.example.org:80", "--advertise", "localhost"];
    let mut receiver = Running::start(place.command("receiver", &[&listen[..], &names].concat()));
    let direct = receiver.event("ready")["direct"].clone();
    let port = &direct["ports"][0];
    assert_eq!(direct["names"], json!(["nas.example.org:80", format!("localhost:{port}")]));
    assert_eq!(direct["private"], json!(false));
    receiver.interrupt();
    assert!(!receiver.end().stderr.contains("warning"));
    let five = ["a", "b", "c", "d", "e"].map(|name| ["--advertise", name]).concat();
    let refused = |more: &[&str]| place.run("receiver", &[&["recv", "in"], more].concat());
    refused(&five).failed(2, "--advertise gives 5 names, and a ticket holds 4 at most");
    refused(&["--advertise", "nas:0"]).failed(2, "--advertise nas:0 leads to no host");
    let mistyped = refused(&["--advertise", "1.2.3"]);
    assert!(mistyped.code == Some(2) && mistyped.stderr.contains("write an IP address or a host name"));
    let relay = ["relay", "--listen", "127.0.0.1:0", "--advertise", "nas.example.org"];
    let mistyped = place.run("relay", &relay);
    assert!(mistyped.code == Some(2) && mistyped.stderr.contains("a host name cannot stand here"));
}
