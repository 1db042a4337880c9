//! Sender and receiver are both at home, behind routers that let in only what answers. They meet
//! through a relay, and then send to each other directly.
//!
//! ```text
//!   sender 192.168.8.2 ─── router 10.87.1.1 ─── hub ─── router 10.87.2.1 ─── receiver 192.168.9.2
//!                                                │
//!                                           relay 10.87.3.1
//! ```
//!
//! Needs root and `ip`, `nft`; otherwise the tests are reported as ignored.

use crate::common::Running;
use crate::common::machine::{missing, test};
use crate::common::parcel::Parcel;
use crate::common::spaces::Spaces;
use libtest_mimic::{Failed, Trial};
use serde_json::json;
use std::process::Stdio;

const RELAY: &str = "10.87.3.1";
/// Bytes of the file: five seconds at `RATE`.
const FILE_LEN: u64 = 20 << 20;
const RATE: &str = "32Mbit";

pub fn tests() -> Vec<Trial> {
    let lacks = || missing(Spaces::possible(&["nft -v"]), "it needs root and the programs ip and nft");
    vec![
        test("opened::a_direct_path_opens_between_two_homes", lacks(), || carries(&[false, false])),
        test("opened::behind_symmetric_nats_the_relay_carries_all", lacks(), || carries(&[true, true])),
        test("opened::two_homes_pair_by_a_code_and_meet_directly", lacks(), pairs_by_a_code),
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
        let parcel = Parcel::new(FILE_LEN as usize);
        let (relay, word) = relay(&spaces, &parcel);
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

    fn send(&self) -> Running {
        let file = self.parcel.file();
        let send = ["send", &file, &self.ticket, "--bwlimit", RATE, "--no-tcp"];
        self.spaces.byway("sender", &self.parcel.state("sender"), &send)
    }
}

/// Starts the relay; with its word.
fn relay(spaces: &Spaces, parcel: &Parcel) -> (Running, String) {
    let listen = format!("{RELAY}:4748");
    let relay = ["relay", "--listen", &listen, "--allow-destination", "10.87.0.0/16"];
    let mut relay = spaces.byway("relay", &parcel.state("relay"), &relay);
    let word = relay.event("ready")["word"].as_str().unwrap().to_owned();
    (relay, word)
}

fn carries(symmetric: &[bool; 2]) -> Result<(), Failed> {
    let mut homes = Homes::new(symmetric);
    let result = homes.send().event("result");
    assert_eq!(result["exit"], 0, "{result}");
    homes.parcel.arrived();
    homes.relay.signal("TERM");
    let carried = homes.relay.event("result")["forwarded_bytes"].as_u64().unwrap();
    let share = carried as f64 / FILE_LEN as f64;
    println!("symmetric {symmetric:?}: the relay carried {share:.3} of the bytes");
    match symmetric {
        [false, false] => assert!(share < 0.5, "{share}"),
        _ => assert!(share > 1.0, "{share}"),
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
    let send = ["send", &file, "nas:", "--bwlimit", RATE, "--no-tcp"];
    let result = homes.configured("sender", &send).event("result");
    assert_eq!(result["exit"], 0, "{result}");
    homes.parcel.arrived();
    homes.relay.signal("TERM");
    let carried = homes.relay.event("result")["forwarded_bytes"].as_u64().unwrap();
    assert!(carried < FILE_LEN / 2, "the relay carried {carried} bytes");
    Ok(())
}

/// A relay that is killed and started again, with the same key, takes the transfer up where it was.
fn outlives_a_kill() -> Result<(), Failed> {
    let mut homes = Homes::new(&[true, true]);
    let mut sender = homes.send();
    while sender.event("progress")["bytes"].as_u64() < Some(FILE_LEN / 4) {}
    homes.relay.signal("KILL");
    while sender.event("progress")["pause"] != "no_answer" {}
    (homes.relay, _) = relay(&homes.spaces, &homes.parcel);
    let result = sender.event("result");
    assert_eq!((&result["exit"], &result["kept_bytes"]), (&json!(0), &json!(0)), "{result}");
    homes.parcel.arrived();
    Ok(())
}
