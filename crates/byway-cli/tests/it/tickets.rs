//! How long a ticket is good, and for whom.

use crate::common::{Ended, Place, Running};
use byway_transfer::ticket::Ticket;
use serde_json::Value;
use std::fs;

/// A place with a file that can be sent.
fn place() -> Place {
    let place = Place::new();
    fs::write(place.path("file"), "contents").unwrap();
    place
}

fn send(place: &Place, host: &str, ticket: &str) -> Ended {
    place.run(host, &["send", "file", ticket])
}

/// A receiver into `in`: its first event, its ticket, and the process.
fn recv(place: &Place, arguments: &[&str]) -> (Running, Value, String) {
    let (running, line) = place.recv(&[&["in", "--json"], arguments].concat());
    let ready: Value = serde_json::from_str(&line).unwrap();
    let ticket = ready["ticket"].as_str().unwrap().to_owned();
    (running, ready, ticket)
}

fn stop(receiver: Running) -> String {
    receiver.interrupt();
    let ended = receiver.end();
    assert_eq!(ended.code, Some(130), "{}", ended.stderr);
    String::from_utf8(ended.stdout).unwrap()
}

fn key(place: &Place, host: &str) -> String {
    String::from_utf8(place.run(host, &["id"]).stdout).unwrap().trim_end().to_owned()
}

const ANOTHERS: &str = "this ticket belongs to another sender";

#[test]
fn a_ticket_outlives_its_receiver_and_belongs_to_the_first_who_completed_a_transfer() {
    let place = place();
    let (receiver, ready, ticket) = recv(&place, &[]);
    assert_eq!(ready["sender"], Value::Null, "it is nobody's yet");
    send(&place, "friend", &ticket).succeeded();
    send(&place, "stranger", &ticket).failed(6, ANOTHERS);
    send(&place, "friend", &ticket).succeeded();
    let friend = key(&place, "friend");
    let events = stop(receiver);
    assert!(events.contains(&format!(r#""event":"bound","sender":"{friend}""#)), "{events}");
    let (receiver, ready, again) = recv(&place, &[]);
    assert_eq!(
        (&again, &ready["sender"]),
        (&ticket, &friend.as_str().into()),
        "also after a complete transfer"
    );
    send(&place, "stranger", &ticket).failed(6, ANOTHERS);
    send(&place, "friend", &ticket).succeeded();
    stop(receiver);
}

#[test]
fn who_is_named_may_send_whoever_was_first() {
    let place = place();
    let (receiver, _, ticket) = recv(&place, &[]);
    send(&place, "friend", &ticket).succeeded();
    stop(receiver);
    let (receiver, ready, again) = recv(&place, &["--allow", &key(&place, "another")]);
    assert_eq!((&again, &ready["sender"]), (&ticket, &Value::Null));
    send(&place, "another", &ticket).succeeded();
    send(&place, "friend", &ticket).failed(6, "yours is not among them");
    stop(receiver);
}

#[test]
fn a_new_ticket_makes_the_one_before_worthless() {
    let place = place();
    let (receiver, _, before) = recv(&place, &[]);
    send(&place, "friend", &before).succeeded();
    place
        .run("receiver", &["recv", "in", "--new-ticket"])
        .failed(1, "another `byway recv` uses the ticket of");
    stop(receiver);
    let (receiver, ready, ticket) = recv(&place, &["--new-ticket"]);
    assert_ne!(ticket, before);
    assert_eq!(ready["sender"], Value::Null);
    send(&place, "friend", &before).failed(6, "does not know this ticket");
    send(&place, "stranger", &ticket).succeeded();
    stop(receiver);
    let (receiver, _, again) = recv(&place, &[]);
    assert_eq!(again, ticket, "the flag is for one run");
    stop(receiver);
}

#[test]
fn a_single_transfer_has_a_ticket_of_its_own() {
    let place = place();
    let (receiver, _, lasting) = recv(&place, &[]);
    stop(receiver);
    let (receiver, _, single) = recv(&place, &["--once"]);
    assert_ne!(single, lasting);
    send(&place, "friend", &single).succeeded();
    receiver.end().succeeded();
    let (receiver, ready, again) = recv(&place, &[]);
    assert_eq!((again, &ready["sender"]), (lasting, &Value::Null));
    stop(receiver);
}

#[test]
fn a_receiver_says_what_to_do_on_the_other_host_and_who_can_send() {
    let place = place();
    let (receiver, ticket) = place.recv(&["in"]);
    let port = ticket.parse::<Ticket>().unwrap().addresses[0].port();
    receiver.interrupt();
    let ended = receiver.end();
    assert!(ended.stdout.is_empty(), "the ticket was all that standard output holds");
    for words in [
        "on the other host: byway send PATH TICKET\n",
        &format!("a firewall on the way must let in UDP port {port}\n"),
        "warning: only this host can send here",
    ] {
        assert!(ended.stderr.contains(words), "{words:?}: {}", ended.stderr);
    }
    assert!(!ended.stderr.contains(&ticket), "a log does not hold the ticket");
}

#[test]
fn what_is_advertised_is_in_the_ticket_and_in_the_event() {
    let place = place();
    let (receiver, ready, ticket) = recv(&place, &["--advertise", "198.51.100.7:80"]);
    let ticket: Ticket = ticket.parse().unwrap();
    assert_eq!(ticket.addresses[0], "198.51.100.7:80".parse().unwrap());
    let own = ticket.addresses[1].to_string();
    let direct = serde_json::json!({
        "addresses": ["198.51.100.7:80", own],
        "ports": [ticket.addresses[1].port()],
        "private": false,
        "command": "byway send PATH TICKET",
    });
    assert_eq!(ready["direct"], direct);
    assert!(!stop(receiver).contains("warning"));
    place.run("receiver", &["recv", "in", "--advertise", "0.0.0.0"]).failed(2, "--advertise 0.0.0.0");
}
