//! What is said of a receiver that does not answer.

use crate::common::{Ended, Place};
use byway_transfer::ticket::Ticket;
use byway_wire::relay::Consent;
use serde_json::{Value, json};
use std::fs;
use std::net::{SocketAddr, UdpSocket};

/// Of every way: its address, and what came back.
#[track_caller]
fn tried(ended: &Ended) -> Vec<(String, String)> {
    let result = ended.result();
    assert_eq!(result["exit"], 5, "{result}");
    let text = |way: &Value, name: &str| way[name].as_str().unwrap().to_owned();
    result["tried"].as_array().unwrap().iter().map(|way| (text(way, "address"), text(way, "heard"))).collect()
}

/// A place with a file to send, and the ticket of a receiver that is gone.
fn gone() -> (Place, Ticket) {
    let place = Place::new();
    fs::write(place.path("file"), "x").unwrap();
    let (receiver, ticket) = place.recv(&["in"]);
    receiver.interrupt();
    assert_eq!(receiver.end().code, Some(130));
    // Another test may take the port that the receiver had. Nobody takes this one.
    let ticket = Ticket { addresses: vec![([127, 0, 0, 1], 1).into()], ..ticket.parse().unwrap() };
    (place, ticket)
}

#[test]
fn where_nobody_listens_it_is_said_so_and_which_addresses_were_tried() {
    let (place, ticket) = gone();
    let [address] = ticket.addresses[..] else { panic!("{:?}", ticket.addresses) };
    let text = ticket.to_string();
    let ended = place.run("sender", &["send", "file", &text]);
    ended.failed(5, "the receiver is not running: every address of the ticket answers");
    let line = format!("\n  {address}: port unreachable: nothing listens there, or a firewall says so\n");
    assert!(ended.stderr.contains(&line), "{}", ended.stderr);
    for arguments in [&["send", "file", &text, "--json"][..], &["ping", &text, "--json"]] {
        let ended = place.run("sender", arguments);
        assert_eq!(tried(&ended), [(address.to_string(), "port_unreachable".to_owned())]);
        assert_eq!(ended.result()["tried"][0]["relay"], json!(false));
    }
}

/// One address says that nobody listens, from another nothing comes back: that may be a firewall.
#[test]
fn what_came_back_is_told_address_by_address() {
    let (place, ticket) = gone();
    let hole = UdpSocket::bind("127.0.0.1:0").unwrap();
    let silent = hole.local_addr().unwrap();
    let closed = ticket.addresses[0];
    let text = Ticket { addresses: vec![closed, silent], ..ticket }.to_string();
    let ended = place.run("sender", &["send", "file", &text]);
    ended.failed(5, "every address of the ticket is private");
    for words in [
        "the receiver has not answered yet\n",
        &format!("\n  {closed}: port unreachable: nothing listens there, or a firewall says so\n"),
        &format!("\n  {silent}: nothing came back\n"),
    ] {
        assert!(ended.stderr.contains(words), "{words:?}: {}", ended.stderr);
    }
}

#[test]
fn a_relay_that_does_not_forward_is_told_with_its_reason() {
    let place = Place::new();
    fs::write(place.path("file"), "x").unwrap();
    let (_relay, word) = place.relay(&[]);
    let (receiver, ticket) = place.recv(&["in", "--relay", &word]);
    receiver.interrupt();
    assert_eq!(receiver.end().code, Some(130));
    let mut ticket: Ticket = ticket.parse().unwrap();
    // The host at that address did not consent, and the relay knows no host of another permission.
    let port = ticket.addresses[0].port() ^ 1;
    let address = SocketAddr::new(ticket.addresses[0].ip(), port);
    ticket.relays[0].reach = Some((address, Consent { expiry: 0, tag: 0 }));
    let relay = ticket.relays[0].word.relays()[0].to_string();
    let ended = place.run("sender", &["send", "file", &ticket.to_string(), "--json"]);
    ended.failed(5, "refuses: the receiver did not consent to be reached through the relay");
    assert_eq!(tried(&ended)[1], (relay, "relay_refuses".into()));
}
