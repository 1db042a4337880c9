//! Hosts with several addresses answer from the one that was asked.
//!
//! ```text
//!   sender 10.83.1.1 ─── hub ─── receiver 10.83.2.1, 10.83.9.7 and fd83:2::1, fd83:9::7
//!                         └───── relay 10.83.3.1, 10.83.9.8
//! ```
//!
//! The hub lets packets in to the sender and to the receiver only if they answer others. Only the
//! second addresses are open from outside. Needs root and `ip`, `nft`; otherwise the tests are
//! reported as ignored.

use crate::common::Running;
use crate::common::machine::{missing, test};
use crate::common::parcel::Parcel;
use crate::common::spaces::Spaces;
use byway_transfer::ticket::Ticket;
use libtest_mimic::{Failed, Trial};
use serde_json::json;
use std::net::SocketAddr;

const SENDER: &str = "10.83.1.1";
const RECEIVER: &str = "10.83.2.1";
const RELAY: &str = "10.83.3.1";
/// Addresses that are routed to the receiver and to the relay.
const SECOND: &str = "10.83.9.7";
const RELAYS_SECOND: &str = "10.83.9.8";
const SECOND_V6: &str = "fd83:9::7";

pub fn tests() -> Vec<Trial> {
    let lacks = missing(Spaces::possible(&["nft -v"]), "it needs root and the programs ip and nft");
    vec![
        test("addresses::a_receiver_answers_from_its_second_address", lacks, receiver),
        test("addresses::an_address_that_comes_while_it_runs_answers_too", lacks, later),
        test("addresses::a_receiver_answers_from_its_second_ipv6_address", lacks, over_v6),
        test("addresses::a_relay_sends_from_its_second_address_to_both_sides", lacks, relay),
        test("addresses::an_interface_stands_for_its_addresses", lacks, interfaces),
    ]
}

struct Net {
    spaces: Spaces,
    parcel: Parcel,
}

impl Net {
    fn new(tag: &str) -> Self {
        let hosts = [("from", SENDER), ("to", RECEIVER), ("relay", RELAY)];
        let spaces = Spaces::star(tag, &hosts);
        for (second, first) in [(SECOND, RECEIVER), (RELAYS_SECOND, RELAY)] {
            spaces.says("hub", &["ip", "route", "add", second, "via", first]);
        }
        let table = format!(
            "add table inet n; add chain inet n pass {{ type filter hook forward priority 0; }}; \
             add rule inet n pass oifname to-from ct state new drop; \
             add rule inet n pass oifname to-to ct state new iifname != to-from drop; \
             add rule inet n pass ip daddr {{ {RECEIVER}, {RELAY} }} ct state new drop"
        );
        spaces.says("hub", &["nft", &table]);
        Self { spaces, parcel: Parcel::new(1 << 20) }
    }

    fn second(&self, host: &str, address: &str) {
        self.spaces.says(host, &["ip", "address", "add", address, "dev", "eth0"]);
    }

    fn start(&self, host: &str, arguments: &[&str]) -> Running {
        self.spaces.byway(host, &self.parcel.state(host), arguments)
    }

    fn receiver(&self, more: &[&str]) -> (Running, Ticket) {
        let into = self.parcel.destination().display().to_string();
        let mut receiver = self.start("to", &[&["recv", &into, "--no-tcp"], more].concat());
        let ticket = receiver.event("ready")["ticket"].as_str().unwrap().parse().unwrap();
        (receiver, ticket)
    }

    /// Sends the file to this address of the receiver, and nowhere else.
    fn arrives(&self, ticket: Ticket, address: Option<&str>) {
        let port = ticket.addresses.first().map_or(0, SocketAddr::port);
        let addresses = address.map(|ip| SocketAddr::new(ip.parse().unwrap(), port));
        let ticket = Ticket { addresses: addresses.into_iter().collect(), ..ticket }.to_string();
        let result = self.start("from", &["send", &self.parcel.file(), &ticket, "--no-tcp"]).event("result");
        assert_eq!(result["exit"], 0, "{result}");
        self.parcel.arrived();
    }
}

fn receiver() -> Result<(), Failed> {
    let net = Net::new("a");
    net.second("to", &format!("{SECOND}/32"));
    let (_receiver, ticket) = net.receiver(&["--listen", "0.0.0.0:4747"]);
    net.arrives(ticket, Some(SECOND));
    Ok(())
}

fn later() -> Result<(), Failed> {
    let net = Net::new("b");
    let (_receiver, ticket) = net.receiver(&[]);
    net.second("to", &format!("{SECOND}/32"));
    net.arrives(ticket, Some(SECOND));
    Ok(())
}

fn over_v6() -> Result<(), Failed> {
    let net = Net::new("c");
    for (host, own, hub) in [("from", "fd83:1::1", "fd83:1::fe"), ("to", "fd83:2::1", "fd83:2::fe")] {
        net.spaces.says("hub", &["sysctl", "-qw", "net.ipv6.conf.all.forwarding=1"]);
        let device = format!("to-{host}");
        net.spaces.says("hub", &["ip", "address", "add", &format!("{hub}/64"), "dev", &device, "nodad"]);
        net.spaces.says(host, &["ip", "address", "add", &format!("{own}/64"), "dev", "eth0", "nodad"]);
        net.spaces.says(host, &["ip", "-6", "route", "add", "default", "via", hub]);
    }
    net.spaces.says("to", &["ip", "address", "add", &format!("{SECOND_V6}/128"), "dev", "eth0", "nodad"]);
    net.spaces.says("hub", &["ip", "-6", "route", "add", SECOND_V6, "via", "fd83:2::1"]);
    let (_receiver, ticket) = net.receiver(&[]);
    net.arrives(ticket, Some(SECOND_V6));
    Ok(())
}

fn relay() -> Result<(), Failed> {
    let net = Net::new("d");
    net.second("relay", &format!("{RELAYS_SECOND}/32"));
    let arguments =
        ["relay", "--advertise", RELAYS_SECOND, "--no-tcp", "--allow-destination", "10.83.0.0/16"];
    let mut relay = net.start("relay", &arguments);
    let word = relay.event("ready")["word"].as_str().unwrap().to_owned();
    let (_receiver, ticket) = net.receiver(&["--relay", &word]);
    assert_eq!(ticket.relays.len(), 1, "the relay answers the receiver");
    net.arrives(ticket, None);
    Ok(())
}

/// An interface may have an IPv6 link-local address alone, which stands for nothing.
fn interfaces() -> Result<(), Failed> {
    let net = Net::new("e");
    net.second("to", &format!("{SECOND}/32"));
    let into = net.parcel.destination().display().to_string();
    let ready = net.start("to", &["recv", &into, "--listen", "eth0:4747"]).event("ready");
    assert_eq!(ready["listen"], json!([format!("{RECEIVER}:4747"), format!("{SECOND}:4747")]));
    let (_receiver, ticket) = net.receiver(&["--listen", "eth0"]);
    let text = ticket.to_string();
    let bound = |device: &str| {
        let arguments = ["send", &net.parcel.file(), &text, "--no-tcp", "--bind", device];
        net.start("from", &arguments).event("result")
    };
    net.spaces.says("from", &["ip", "link", "add", "eth1", "type", "veth", "peer", "eth2"]);
    for device in ["eth1", "eth2"] {
        net.spaces.says("from", &["ip", "link", "set", device, "up"]);
    }
    let refused = bound("eth1");
    let sentence = "the network interface `eth1` has no address yet: connect it, or name another";
    assert_eq!((&refused["exit"], &refused["error"]), (&json!(5), &json!(sentence)));
    let sent = bound("eth0");
    assert_eq!(sent["exit"], 0, "{sent}");
    net.parcel.arrived();
    Ok(())
}
