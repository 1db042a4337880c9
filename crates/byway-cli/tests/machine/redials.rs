//! One ticket, printed once, and what happens to a receiver at home: its router gets another
//! address, it is killed, its relay is started anew.
//!
//! ```text
//!   sender 10.86.1.1 ─── hub ─── router 10.86.2.1, later .77 and .78 ─── receiver 192.168.9.2
//!                         │
//!                    relay 10.86.3.1
//! ```
//!
//! The router lets in only what answers. Needs root and `ip`, `nft`; otherwise the tests are
//! reported as ignored.

use crate::common::Running;
use crate::common::machine::{PATIENCE, missing, slow, test, wait_for};
use crate::common::parcel::Parcel;
use crate::common::spaces::Spaces;
use libtest_mimic::{Failed, Trial};
use std::fs;
use std::path::Path;

const SENDER: &str = "10.86.1.1";
const ROUTER: &str = "10.86.2.1";
const HUB: &str = "10.86.2.254";
const RELAY: &str = "10.86.3.1";
const HOME: &str = "192.168.9.2";
/// Bytes of the file: five seconds at `RATE`.
const FILE_LEN: usize = 5 << 20;
const RATE: &str = "8Mbit";

pub fn tests() -> Vec<Trial> {
    let lacks = || missing(Spaces::possible(&["nft -v"]), "it needs root and the programs ip and nft");
    vec![
        test("redials::a_transfer_follows_a_receiver_whose_router_redials", lacks(), redials_midway),
        slow(
            "redials::one_ticket_outlives_redials_kills_and_a_relay_that_starts_anew",
            lacks(),
            five_of_five,
        ),
    ]
}

/// The hosts, the programs that run on them, and the one ticket.
struct Home {
    spaces: Spaces,
    parcel: Parcel,
    relay: Running,
    word: String,
    receiver: Running,
    ticket: String,
}

impl Home {
    fn new() -> Self {
        let spaces = Spaces::new("r", &["sender", "hub", "router", "relay", "home"]);
        spaces.line([("sender", "eth0", SENDER), ("hub", "to-sender", "10.86.1.254")]);
        spaces.line([("router", "eth0", ROUTER), ("hub", "to-router", HUB)]);
        spaces.line([("relay", "eth0", RELAY), ("hub", "to-relay", "10.86.3.254")]);
        spaces.line([("home", "eth0", HOME), ("router", "eth1", "192.168.9.1")]);
        for host in ["hub", "router"] {
            spaces.says(host, &["sysctl", "-qw", "net.ipv4.ip_forward=1"]);
        }
        let ways =
            [("sender", "10.86.1.254"), ("router", HUB), ("relay", "10.86.3.254"), ("home", "192.168.9.1")];
        for (host, by) in ways {
            spaces.says(host, &["ip", "route", "add", "default", "via", by]);
            spaces.wait(host, "eth0");
        }
        let nat = "add table ip n; add chain ip n out { type nat hook postrouting priority 100; }; \
                   add rule ip n out oifname eth0 masquerade; \
                   add chain ip n pass { type filter hook forward priority 0; }; \
                   add rule ip n pass iifname eth0 ct state new drop";
        spaces.says("router", &["nft", nat]);
        let parcel = Parcel::new(FILE_LEN);
        let (relay, word) = relay(&spaces, &parcel.state("relay"));
        let (receiver, ticket) = receive(&spaces, &parcel, &word);
        assert!(ticket.starts_with("byway2-"), "the relay remembers the receiver: {ticket}");
        Self { spaces, parcel, relay, word, receiver, ticket }
    }

    /// The router gets another address from its provider.
    fn redial(&self, fresh: &str) {
        let on_router = |arguments: &[&str]| drop(self.spaces.says("router", &[&["ip"], arguments].concat()));
        on_router(&["address", "flush", "dev", "eth0"]);
        on_router(&["address", "add", &format!("{fresh}/24"), "dev", "eth0"]);
        on_router(&["route", "replace", "default", "via", HUB]);
    }

    fn send(&self, state: &str) -> Running {
        let file = self.parcel.file();
        let send = ["send", &file, &self.ticket, "--bwlimit", RATE, "--retry"];
        self.spaces.byway("sender", &self.parcel.state(state), &send)
    }

    fn arrives(&self, mut sender: Running) {
        let result = sender.event("result");
        assert_eq!(result["exit"], 0, "{result}");
        self.parcel.arrived();
        fs::remove_file(self.parcel.destination().join("file")).unwrap();
    }

    /// A transfer during which something happens.
    fn arrives_despite(&mut self, happens: impl FnOnce(&mut Self)) {
        let mut sender = self.send("sender");
        let begun = wait_for(PATIENCE, || {
            (sender.event("progress")["bytes"].as_u64().unwrap_or_default() > 0).then_some(())
        });
        assert!(begun.is_some(), "nothing arrives");
        happens(self);
        self.arrives(sender);
    }
}

fn relay(spaces: &Spaces, state: &Path) -> (Running, String) {
    let listen = format!("{RELAY}:4748");
    let mut relay = spaces.byway(
        "relay",
        state,
        &["relay", "--listen", &listen, "--allow-destination", "10.86.0.0/16", "--expires", "60d"],
    );
    let word = relay.event("ready")["word"].as_str().unwrap().to_owned();
    (relay, word)
}

fn receive(spaces: &Spaces, parcel: &Parcel, word: &str) -> (Running, String) {
    let into = parcel.destination().display().to_string();
    let mut receiver = spaces.byway("home", &parcel.state("home"), &["recv", &into, "--relay", word]);
    let ticket = receiver.event("ready")["ticket"].as_str().unwrap().to_owned();
    (receiver, ticket)
}

fn redials_midway() -> Result<(), Failed> {
    let mut home = Home::new();
    home.arrives_despite(|home| home.redial("10.86.2.77"));
    Ok(())
}

fn five_of_five() -> Result<(), Failed> {
    let mut home = Home::new();
    home.arrives(home.send("sender"));
    // While nobody is there.
    home.redial("10.86.2.77");
    home.arrives(home.send("sender"));
    home.arrives_despite(|home| home.redial("10.86.2.78"));
    home.arrives_despite(|home| {
        home.receiver.signal("KILL");
        let (receiver, ticket) = receive(&home.spaces, &home.parcel, &home.word);
        assert_eq!(ticket, home.ticket, "one ticket for all runs");
        home.receiver = receiver;
    });
    home.relay.signal("KILL");
    // It prints a new word, and knows the old one.
    (home.relay, _) = relay(&home.spaces, &home.parcel.state("relay"));
    home.arrives(home.send("sender"));
    let refused = home.send("stranger").event("result");
    assert_eq!(refused["exit"], 6, "a key that the ticket does not admit: {refused}");
    Ok(())
}
