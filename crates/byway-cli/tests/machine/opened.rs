//! Sender and receiver are both at home, behind routers that let in only what answers. They meet
//! through a relay, and then send to each other directly.
//!
//! ```text
//!   sender 192.168.8.2 ─── router 10.87.1.1 ─── hub ─── router 10.87.2.1 ─── receiver 192.168.9.2
//!                                                │
//!                                           relay 10.87.3.1
//! ```
//!
//! Needs root and `ip`, `tc`, `nft`; otherwise the tests are reported as ignored.

use crate::common::Running;
use crate::common::machine::{missing, slow, test};
use crate::common::parcel::Parcel;
use crate::common::spaces::Spaces;
use libtest_mimic::{Failed, Trial};
use serde_json::{Value, json};
use std::process::Stdio;
use std::time::Duration;

const RELAY: &str = "10.87.3.1";
/// Bytes of the file: five seconds at the rate of `SLOWLY`.
const FILE_LEN: u64 = 20 << 20;
/// A limit with which a transfer lasts long enough for what happens in it.
const SLOWLY: [&str; 2] = ["--bwlimit", "32Mbit"];
/// How long both hosts say nothing to each other: longer than their NATs remember.
const NAT_SILENCE: Duration = Duration::from_secs(45);

pub fn tests() -> Vec<Trial> {
    let lacks =
        || missing(Spaces::possible(&["nft -v", "tc -V"]), "it needs root and the programs ip, tc and nft");
    vec![
        test("opened::a_direct_path_opens_between_two_homes", lacks(), || carries(&[false, false])),
        test("opened::behind_symmetric_nats_the_relay_carries_all", lacks(), || carries(&[true, true])),
        test("opened::two_homes_pair_by_a_code_and_meet_directly", lacks(), pairs_by_a_code),
        test("opened::behind_a_senders_symmetric_nat_the_relay_carries_all", lacks(), || {
            carries(&[true, false])
        }),
        test("opened::behind_a_receivers_symmetric_nat_the_relay_carries_all", lacks(), || {
            carries(&[false, true])
        }),
        test("opened::a_direct_path_opens_between_two_ipv6_firewalls", lacks(), firewalls),
        test("opened::behind_one_router_both_ends_use_their_private_addresses", lacks(), hairpin),
        slow("opened::a_nat_that_forgets_within_20_seconds_is_kept_open", lacks(), forgets),
        test("opened::a_relay_that_was_killed_carries_the_transfer_on", lacks(), outlives_a_kill),
    ]
}

/// A home: a host, and its router with NAT. A symmetric NAT gives each destination a port at
/// random.
fn home(spaces: &Spaces, host: &str, router: &str, number: u8, is_symmetric: bool) {
    let (inside, outside) = (format!("192.168.{}", 7 + number), format!("10.87.{number}"));
    spaces.line([
        (router, "eth0", &format!("{outside}.1")),
        ("hub", &format!("to-{router}"), &format!("{outside}.254")),
    ]);
    spaces.line([(host, "eth0", &format!("{inside}.2")), (router, "eth1", &format!("{inside}.1"))]);
    spaces.says(router, &["sysctl", "-qw", "net.ipv4.ip_forward=1"]);
    spaces.says(router, &["ip", "route", "add", "default", "via", &format!("{outside}.254")]);
    spaces.says(host, &["ip", "route", "add", "default", "via", &format!("{inside}.1")]);
    let ports = if is_symmetric { "masquerade fully-random" } else { "masquerade" };
    let nat = format!(
        "add table ip n; add chain ip n out {{ type nat hook postrouting priority 100; }}; \
         add rule ip n out oifname eth0 {ports}; \
         add chain ip n own {{ type filter hook input priority 0; }}; \
         add rule ip n own iifname eth0 ct state new drop; \
         add chain ip n pass {{ type filter hook forward priority 0; }}; \
         add rule ip n pass iifname eth0 ct state new drop"
    );
    spaces.says(router, &["nft", &nat]);
    spaces.wait(host, "eth0");
    spaces.wait(router, "eth0");
}

/// Two homes, the programs that run, and a ticket that names the relay alone.
struct Homes {
    spaces: Spaces,
    parcel: Parcel,
    relay: Running,
    _receiver: Running,
    ticket: String,
}

impl Homes {
    fn new(symmetric: &[bool; 2]) -> Self {
        let spaces = Spaces::new("o", &["sender", "near", "hub", "far", "receiver", "relay"]);
        spaces.says("hub", &["sysctl", "-qw", "net.ipv4.ip_forward=1"]);
        home(&spaces, "sender", "near", 1, symmetric[0]);
        home(&spaces, "receiver", "far", 2, symmetric[1]);
        spaces.line([("relay", "eth0", RELAY), ("hub", "to-relay", "10.87.3.254")]);
        spaces.says("relay", &["ip", "route", "add", "default", "via", "10.87.3.254"]);
        spaces.wait("relay", "eth0");
        Self::with(spaces, &format!("{RELAY}:4748"), "10.87.0.0/16")
    }

    /// Starts the programs on these hosts. `relay_at`: where the relay listens. `inside`: the
    /// network to which it may forward.
    fn with(spaces: Spaces, relay_at: &str, inside: &str) -> Self {
        let parcel = Parcel::new(FILE_LEN as usize);
        let (relay, word) = relay(&spaces, &parcel, relay_at, inside);
        let into = parcel.destination().display().to_string();
        let receive = ["recv", &into, "--relay", &word];
        let mut receiver = spaces.byway("receiver", &parcel.state("receiver"), &receive);
        let ticket = receiver.event("ready")["ticket"].as_str().unwrap().to_owned();
        Self { spaces, parcel, relay, _receiver: receiver, ticket }
    }

    /// A program with a configuration file of its own.
    fn configured(&self, host: &str, arguments: &[&str]) -> Running {
        let mut command = self.spaces.on(host);
        let state = self.parcel.state(host);
        command.arg(env!("CARGO_BIN_EXE_byway")).args(arguments).arg("--json");
        command.env("XDG_CONFIG_HOME", &state).env("BYWAY_STATE_DIR", &state);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Running::start(command)
    }

    fn send(&self, more: &[&str]) -> Running {
        let file = self.parcel.file();
        let send = [&["send", &file, &self.ticket, "--no-tcp"], more].concat();
        self.spaces.byway("sender", &self.parcel.state("sender"), &send)
    }
}

/// Starts the relay; with its word.
fn relay(spaces: &Spaces, parcel: &Parcel, at: &str, inside: &str) -> (Running, String) {
    let relay = ["relay", "--listen", at, "--allow-destination", inside];
    let mut relay = spaces.byway("relay", &parcel.state("relay"), &relay);
    let word = relay.event("ready")["word"].as_str().unwrap().to_owned();
    (relay, word)
}

/// All events of a sender, to its result.
fn events(mut sender: Running) -> Vec<Value> {
    let mut events = Vec::new();
    loop {
        let event: Value = serde_json::from_str(&sender.line()).unwrap();
        let is_last = event["event"] == "result";
        events.push(event);
        if is_last {
            return events;
        }
    }
}

/// The part of the file that a relay carried, once all has arrived, and what the sender told.
fn share_of_relay(homes: &mut Homes, more: &[&str]) -> (f64, Vec<Value>) {
    let events = events(homes.send(more));
    let result = events.last().unwrap();
    assert_eq!(result["exit"], 0, "{result}");
    homes.parcel.arrived();
    homes.relay.signal("TERM");
    let carried = homes.relay.event("result")["forwarded_bytes"].as_u64().unwrap();
    (carried as f64 / FILE_LEN as f64, events)
}
fn carries(symmetric: &[bool; 2]) -> Result<(), Failed> {
    let mut homes = Homes::new(symmetric);
    let (share, events) = share_of_relay(&mut homes, &SLOWLY);
    println!("symmetric {symmetric:?}: the relay carried {share:.3} of the bytes");
    let is_why = |event: &&Value| event["reason"] == "a NAT or firewall on the way does not let it in";
    let why = events.iter().filter(is_why).count();
    match symmetric {
        [false, false] => assert!(share < 0.5 && why == 0, "{share}, {why}"),
        _ => assert!(share > 1.0 && why == 1, "{share}, {why}"),
    }
    Ok(())
}

/// The sender has nothing but the code, which names the relay's address.
fn pairs_by_a_code() -> Result<(), Failed> {
    let mut homes = Homes::new(&[false, false]);
    let mut opener = homes.configured("receiver", &["pair"]);
    let command = opener.event("code")["command"].as_str().unwrap().to_owned();
    let typed = command.strip_prefix("byway pair ").unwrap();
    let paired = homes.configured("sender", &["pair", typed, "nas"]).event("result");
    assert_eq!((&paired["exit"], &paired["ticket"]), (&json!(0), &json!(true)), "{paired}");
    assert_eq!(opener.event("result")["exit"], 0);
    let file = homes.parcel.file();
    let send = [&["send", &file, "nas:", "--no-tcp"], &SLOWLY[..]].concat();
    let result = homes.configured("sender", &send).event("result");
    assert_eq!(result["exit"], 0, "{result}");
    homes.parcel.arrived();
    homes.relay.signal("TERM");
    let carried = homes.relay.event("result")["forwarded_bytes"].as_u64().unwrap();
    assert!(carried < FILE_LEN / 2, "the relay carried {carried} bytes");
    Ok(())
}

/// Hosts with IPv6 alone, behind firewalls that let in only what answers.
fn firewalls() -> Result<(), Failed> {
    let spaces = Spaces::new("f", &["sender", "near", "hub", "far", "receiver", "relay"]);
    for host in ["sender", "near", "hub", "far", "receiver", "relay"] {
        for setting in ["conf.default.accept_dad=0", "conf.all.accept_dad=0", "conf.all.forwarding=1"] {
            spaces.says(host, &["sysctl", "-qw", &format!("net.ipv6.{setting}")]);
        }
    }
    // Networks are told apart by the first 24 bits.
    for (host, router, number) in [("sender", "near", 1), ("receiver", "far", 2)] {
        let (inside, outside) = (format!("fd8{number}:ee00"), format!("fd8{number}:dd00"));
        spaces.line([
            (router, "eth0", &format!("{outside}::1")),
            ("hub", &format!("to-{router}"), &format!("{outside}::fe")),
        ]);
        spaces.line([(host, "eth0", &format!("{inside}::2")), (router, "eth1", &format!("{inside}::1"))]);
        for (from, to, via) in [
            (router, "default", format!("{outside}::fe")),
            (host, "default", format!("{inside}::1")),
            ("hub", &format!("{inside}::/24"), format!("{outside}::1")),
        ] {
            spaces.says(from, &["ip", "-6", "route", "add", to, "via", &via]);
        }
        let firewall = "add table inet n; add chain inet n pass { type filter hook forward priority 0; }; \
                        add rule inet n pass iifname eth0 ct state established,related accept; \
                        add rule inet n pass iifname eth0 drop";
        spaces.says(router, &["nft", firewall]);
        spaces.wait(host, "eth0");
        spaces.wait(router, "eth0");
    }
    spaces.line([("relay", "eth0", "fd83:dd00::1"), ("hub", "to-relay", "fd83:dd00::fe")]);
    spaces.says("relay", &["ip", "-6", "route", "add", "default", "via", "fd83:dd00::fe"]);
    spaces.wait("relay", "eth0");
    let mut homes = Homes::with(spaces, "[fd83:dd00::1]:4748", "fd80::/9");
    let (share, _) = share_of_relay(&mut homes, &SLOWLY);
    println!("between IPv6 firewalls: the relay carried {share:.3} of the bytes");
    assert!(share < 0.5, "{share}");
    Ok(())
}

/// Both ends are in one network, and its router sends nothing back into it.
fn hairpin() -> Result<(), Failed> {
    let spaces = Spaces::new("p", &["sender", "receiver", "router", "hub", "relay"]);
    for host in ["router", "hub"] {
        spaces.says(host, &["sysctl", "-qw", "net.ipv4.ip_forward=1"]);
    }
    spaces.line([("router", "eth0", "10.87.1.1"), ("hub", "to-router", "10.87.1.254")]);
    spaces.line([("relay", "eth0", RELAY), ("hub", "to-relay", "10.87.3.254")]);
    let router = |arguments: &[&str]| drop(spaces.says("router", arguments));
    router(&["ip", "link", "add", "lan", "type", "bridge"]);
    router(&["ip", "address", "add", "192.168.9.1/24", "dev", "lan"]);
    router(&["ip", "link", "set", "lan", "up"]);
    for (host, port, address) in
        [("sender", "port1", "192.168.9.2/24"), ("receiver", "port2", "192.168.9.3/24")]
    {
        let there = spaces.name("router");
        let on_host = |arguments: &[&str]| drop(spaces.says(host, &[&["ip"], arguments].concat()));
        on_host(&["link", "add", "eth0", "type", "veth", "peer", port, "netns", &there]);
        on_host(&["address", "add", address, "dev", "eth0"]);
        on_host(&["link", "set", "eth0", "up"]);
        on_host(&["route", "add", "default", "via", "192.168.9.1"]);
        router(&["ip", "link", "set", port, "master", "lan", "up"]);
    }
    router(&["ip", "route", "add", "default", "via", "10.87.1.254"]);
    spaces.says("relay", &["ip", "route", "add", "default", "via", "10.87.3.254"]);
    router(&[
        "nft",
        "add table ip n; add chain ip n out { type nat hook postrouting priority 100; }; \
         add rule ip n out oifname eth0 masquerade; \
         add chain ip n own { type filter hook input priority 0; }; \
         add rule ip n own ip daddr 10.87.1.1 ct state new drop; \
         add chain ip n pass { type filter hook forward priority 0; }; \
         add rule ip n pass iifname eth0 ct state new drop",
    ]);
    for host in ["sender", "receiver", "router", "relay"] {
        spaces.wait(host, "eth0");
    }
    // What went by the relay would take twenty seconds.
    let line = [
        "tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", "8mbit", "burst", "5kb", "latency",
        "50ms",
    ];
    spaces.says("relay", &line);
    let mut homes = Homes::with(spaces, &format!("{RELAY}:4748"), "10.87.0.0/16");
    let (share, events) = share_of_relay(&mut homes, &[]);
    let seconds = &events.last().unwrap()["seconds"];
    println!("behind one router: the relay carried {share:.3} of the bytes, {seconds} s in all");
    assert!(share < 0.1, "{share}");
    Ok(())
}

/// The NATs forget who was silent for 20 seconds, and both hosts are silent for longer.
fn forgets() -> Result<(), Failed> {
    let mut homes = Homes::new(&[false, false]);
    for router in ["near", "far"] {
        for setting in ["udp_timeout=20", "udp_timeout_stream=20"] {
            homes.spaces.says(router, &["sysctl", "-qw", &format!("net.netfilter.nf_conntrack_{setting}")]);
        }
    }
    std::thread::sleep(NAT_SILENCE);
    let (share, _) = share_of_relay(&mut homes, &SLOWLY);
    println!("NATs that forget: the relay carried {share:.3} of the bytes");
    assert!(share < 0.5, "{share}");
    Ok(())
}

/// A relay that is killed and started again, with the same key, takes the transfer up where it was.
fn outlives_a_kill() -> Result<(), Failed> {
    let mut homes = Homes::new(&[true, true]);
    let mut sender = homes.send(&SLOWLY);
    while sender.event("progress")["bytes"].as_u64() < Some(FILE_LEN / 4) {}
    homes.relay.signal("KILL");
    while sender.event("progress")["pause"] != "no_answer" {}
    (homes.relay, _) = relay(&homes.spaces, &homes.parcel, &format!("{RELAY}:4748"), "10.87.0.0/16");
    let result = sender.event("result");
    assert_eq!((&result["exit"], &result["kept_bytes"]), (&json!(0), &json!(0)), "{result}");
    homes.parcel.arrived();
    Ok(())
}
