//! Which local addresses byway sends from and puts into tickets, on hosts whose addresses are on
//! loopback, lead nowhere or are behind a router.
//!
//! Needs root and `ip`.

use crate::common::bench::BYWAY;
use crate::common::machine::{missing, test};
use crate::common::spaces::Spaces;
use crate::common::{Ended, Place, Running};
use byway_transfer::ticket::Ticket;
use libtest_mimic::{Failed, Trial};
use serde_json::Value;
use std::fs;
use std::net::IpAddr;
use std::process::Stdio;

pub fn tests() -> Vec<Trial> {
    let lacks = missing(Spaces::possible(&[]), "it needs root and the program ip");
    let forwards = missing(
        Spaces::possible(&["nft list tables"]),
        "it needs root, the programs ip and nft, and a kernel with NAT",
    );
    vec![
        test("sources::an_address_on_loopback_is_sent_from_beside_another", lacks, unnumbered_sender),
        test("sources::a_ticket_names_the_address_on_loopback_first", lacks, unnumbered_receiver),
        test("sources::an_address_without_a_way_out_is_no_second_path", lacks, no_way_out),
        test("sources::a_line_that_is_too_narrow_is_told_and_tcp_goes_over_it", lacks, narrow_line),
        test(
            "sources::a_port_that_a_router_forwards_is_reached_by_what_is_advertised",
            forwards,
            forwarded_port,
        ),
    ]
}

/// A sender, a receiver, and a line between them: `e0`, 10.88.0.1, and `e1`, 10.88.0.2.
pub(super) struct Hosts {
    pub(super) spaces: Spaces,
    pub(super) place: Place,
}

impl Hosts {
    pub(super) fn new(tag: &str) -> Self {
        let spaces = Spaces::new(tag, &["snd", "rcv"]);
        spaces.line([("snd", "e0", "10.88.0.1"), ("rcv", "e1", "10.88.0.2")]);
        spaces.wait("snd", "e0");
        spaces.wait("rcv", "e1");
        let place = Place::new();
        fs::write(place.path("file"), vec![7; 3 << 20]).unwrap();
        Self { spaces, place }
    }

    /// A network behind an interface that leads nowhere, as containers have.
    fn docker(&self, host: &str, address: &str) {
        self.ip(host, "link add docker0 type veth peer name container");
        self.ip(host, &format!("address add {address}/24 dev docker0"));
        self.ip(host, "link set container up");
        self.ip(host, "link set docker0 up");
        self.spaces.wait(host, "docker0");
    }

    pub(super) fn ip(&self, host: &str, words: &str) {
        let words: Vec<&str> = words.split(' ').collect();
        self.spaces.says(host, &[&["ip"], words.as_slice()].concat());
    }

    pub(super) fn start(&self, host: &str, arguments: &[&str]) -> Running {
        let mut command = self.spaces.on(host);
        command.arg(BYWAY).args(arguments).env("BYWAY_STATE_DIR", self.place.path(host));
        command.current_dir(self.place.path(""));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Running::start(command)
    }

    fn recv(&self) -> (Running, Ticket) {
        let mut receiver = self.start("rcv", &["recv", "in"]);
        let ticket = receiver.line().parse().unwrap();
        (receiver, ticket)
    }

    /// Sends for longer than it takes to look at the host's addresses again.
    fn send(&self, ticket: &Ticket) -> Ended {
        self.send_with(ticket, &["--bwlimit", "800K"])
    }

    fn send_with(&self, ticket: &Ticket, more: &[&str]) -> Ended {
        let ticket = ticket.to_string();
        self.start("snd", &[&["send", "file", &ticket, "--json"], more].concat()).end()
    }
}

/// The paths that a transfer had.
#[track_caller]
fn paths(sent: &Ended) -> Vec<String> {
    sent.succeeded();
    let result = sent.result();
    let route = |path: &Value| path["route"].as_str().unwrap().to_owned();
    result["paths"].as_array().unwrap().iter().map(route).collect()
}

fn unnumbered_sender() -> Result<(), Failed> {
    let hosts = Hosts::new("u");
    hosts.ip("snd", "address flush dev e0");
    hosts.ip("snd", "address add 192.168.1.10/32 dev lo");
    hosts.ip("snd", "route add 10.88.0.0/24 dev e0 src 192.168.1.10");
    hosts.ip("rcv", "route add 192.168.1.10/32 dev e1");
    hosts.docker("snd", "172.17.0.1");
    let (_receiver, ticket) = hosts.recv();
    assert_eq!(paths(&hosts.send(&ticket)), ["direct"]);
    Ok(())
}

fn unnumbered_receiver() -> Result<(), Failed> {
    let hosts = Hosts::new("v");
    hosts.ip("rcv", "address flush dev e1");
    hosts.ip("rcv", "address add 192.168.2.10/32 dev lo");
    hosts.ip("rcv", "route add default dev e1 src 192.168.2.10");
    hosts.ip("snd", "route add 192.168.2.10/32 dev e0");
    hosts.docker("rcv", "172.17.0.1");
    let (_receiver, ticket) = hosts.recv();
    let named: Vec<IpAddr> = ticket.addresses.iter().map(std::net::SocketAddr::ip).collect();
    assert_eq!(named[..2], ["192.168.2.10".parse::<IpAddr>()?, "172.17.0.1".parse()?], "{named:?}");
    hosts.send(&ticket).succeeded();
    Ok(())
}

fn no_way_out() -> Result<(), Failed> {
    let hosts = Hosts::new("w");
    hosts.docker("snd", "10.9.9.9");
    // Or else nothing would come back to that address, and there would be no path anyway.
    hosts.ip("rcv", "route add 10.9.9.0/24 via 10.88.0.1");
    let (_receiver, ticket) = hosts.recv();
    assert_eq!(paths(&hosts.send(&ticket)), ["direct"]);
    // It has one as soon as a route says so.
    hosts.ip("snd", "rule add from 10.9.9.9 table 77");
    hosts.ip("snd", "route add 10.88.0.0/24 dev docker0 table 77");
    let sent = hosts.start("snd", &["send", "file", &ticket.to_string(), "--json", "-v"]).end();
    assert!(paths(&sent).iter().any(|path| path.ends_with("from 10.88.0.1")), "{:?}", paths(&sent));
    Ok(())
}

/// A receiver behind a router, whose outside address is all that the sender's network knows.
fn forwarded_port() -> Result<(), Failed> {
    let hosts = Hosts::new("f");
    let nat = "table ip nat {
        chain pre { type nat hook prerouting priority -100; iifname e1 udp dport 4747 dnat to 192.168.2.10; }
    }";
    hosts.spaces.says("rcv", &["nft", nat]);
    hosts.spaces.says("rcv", &["sysctl", "-qw", "net.ipv4.ip_forward=1"]);
    let inside = Spaces::new("fi", &["nas"]);
    let nas = inside.name("nas");
    hosts.ip("rcv", &format!("link add i1 type veth peer name i0 netns {nas}"));
    hosts.ip("rcv", "address add 192.168.2.1/24 dev i1");
    hosts.ip("rcv", "link set i1 up");
    for words in ["address add 192.168.2.10/24 dev i0", "link set i0 up", "route add default via 192.168.2.1"]
    {
        let words: Vec<&str> = words.split(' ').collect();
        inside.says("nas", &[&["ip"], words.as_slice()].concat());
    }
    inside.wait("nas", "i0");
    let mut command = inside.on("nas");
    command.arg(BYWAY).args(["recv", "in", "--listen", "0.0.0.0:4747", "--advertise", "10.88.0.2"]);
    command.env("BYWAY_STATE_DIR", hosts.place.path("nas")).current_dir(hosts.place.path(""));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut receiver = Running::start(command);
    let ticket: Ticket = receiver.line().parse()?;
    let expected = ["10.88.0.2:4747".parse()?, "192.168.2.10:4747".parse()?];
    assert_eq!(ticket.addresses, expected);
    hosts.send(&ticket).succeeded();
    let own = Ticket { addresses: vec![ticket.addresses[1]], ..ticket };
    hosts.send(&own).failed(5, "every address of the ticket is private");
    Ok(())
}

fn narrow_line() -> Result<(), Failed> {
    let hosts = Hosts::new("n");
    let (_receiver, ticket) = hosts.recv();
    hosts.ip("snd", "link set e0 mtu 1000");
    let sent = hosts.send_with(&ticket, &["--no-tcp"]);
    sent.failed(5, "the way to 10.88.0.2:");
    sent.failed(5, "is too narrow: byway needs packets of 1228 bytes (it takes 1000)");
    let tried = &sent.result()["tried"];
    assert!(tried.as_array().unwrap().iter().any(|way| way["heard"] == "too_narrow"), "{tried}");
    // TCP makes its segments as short as the line asks.
    assert!(paths(&hosts.send(&ticket)).iter().any(|path| path == "direct over TCP"));
    Ok(())
}
