//! Options that take addresses of this host take its network interfaces, too.

use crate::common::{Place, Running, assert_same};
use std::fs;

const NO_INTERFACE: &str = "this host has no network interface `eth99`: it has ";

#[test]
fn an_interface_stands_for_its_addresses() {
    let place = Place::new();
    fs::write(place.path("file"), [7; 1000]).unwrap();
    let receive = ["recv", "in", "--listen", "lo", "--once", "--json"];
    let mut receiver = Running::start(place.command("receiver", &receive));
    let ready = receiver.event("ready");
    let listens = ready["listen"][0].as_str().unwrap();
    assert!(listens.starts_with("127.0.0.1:"), "{ready}");
    let ticket = ready["ticket"].as_str().unwrap();
    place.run("sender", &["send", "file", ticket, "--bind", "lo", "--no-tcp"]).succeeded();
    receiver.end().succeeded();
    assert_same(&place.path("file"), &place.path("in/file"));
}

#[test]
fn an_interface_that_is_not_there_is_named_by_every_verb() {
    let place = Place::new();
    let (_receiver, ticket) = place.recv(&["in"]);
    fs::write(place.path("file"), "").unwrap();
    for arguments in [
        &["send", "file", &ticket, "--bind", "eth99"][..],
        &["forward", "0:localhost:1", "--to", &ticket, "--bind", "eth99"],
        &["source", "--name", "m", "--demand", "1M", "--to", &ticket, "--bind", "eth99"],
        &["recv", "other", "--listen", "eth99:4747"],
        &["sink", "records", "--listen", "eth99"],
        &["relay", "--listen", "eth99"],
    ] {
        place.run("sender", arguments).failed(2, NO_INTERFACE);
    }
    let mistyped = place.run("sender", &["source", "--bind", "eth0:1"]);
    assert!(mistyped.stderr.contains("without a port"), "{}", mistyped.stderr);
}
