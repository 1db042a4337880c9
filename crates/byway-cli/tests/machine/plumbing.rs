//! The kernel state that a gateway installs: which TCP packets are routed into its TUN device, and
//! that no state stays behind.
//!
//! ```text
//!   alice 10.91.1.2 ─── 10.91.1.1 gateway 10.91.2.1 ─── 10.91.2.2 bob
//! ```
//!
//! Nothing reads the device: a connection that succeeds took the ordinary route. Needs root and
//! `ip`, `nft`.

use crate::common::machine::{missing, test};
use crate::common::spaces::Spaces;
use byway_cli::gateway::config_file::GatewayConfig;
use byway_cli::gateway::plumbing::{self, KernelState, system};
use byway_gateway::kernel::KernelPlan;
use libtest_mimic::{Failed, Trial};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;

/// The port that the rule calls background, and another one.
const BACKGROUND: u16 = 873;
const OTHER: u16 = 80;
/// How long nothing answers before a flow is taken for captured.
const SILENCE: Duration = Duration::from_millis(500);
/// How long a flow may take to get through.
const PATIENCE: Duration = Duration::from_secs(60);

pub fn tests() -> Vec<Trial> {
    let possible = Spaces::possible(&["nft list tables", "ip tuntap add byway0 mode tun"]);
    let lacks = missing(possible, "it needs root, /dev/net/tun and the programs ip and nft");
    vec![
        test("plumbing::background_flows_are_captured_and_go_on_without_the_device", lacks, fails_open),
        test("plumbing::with_fail_closed_they_do_not_go_on", lacks, fails_closed),
        test("plumbing::leftovers_are_replaced_and_nothing_of_others_is_touched", lacks, replaces_leftovers),
        test("plumbing::a_routing_table_of_others_is_left_alone", lacks, leaves_tables_of_others),
    ]
}

fn plan(more: &str) -> KernelPlan {
    let text = format!(
        "[gateway]\nserves = [\"10.91.1.0/24\", \"fd91:1::/64\"]\n{more}\n[[peer]]\nname = \"b\"\n\
         key = \"byway-key-mfrggzdfmztwq2lknnwg23tpobyxe43uov3ho6dzpiydcmrtgq2qpgjcuu\"\n\
         allowed = [\"10.91.2.0/24\", \"fd91:2::/64\"]\n[[rule]]\nto-ports = [{BACKGROUND}]\n"
    );
    GatewayConfig::parse(Path::new("gw.toml"), &text).unwrap().plan()
}

fn fails_open() -> Result<(), Failed> {
    let hosts = Row::new("o");
    let plan = plan("");
    let _bob = hosts.listeners();
    assert!(hosts.connects(BACKGROUND, PATIENCE), "without a gateway");
    hosts.device();
    hosts.at(|| plumbing::install(&plan)).unwrap();
    hosts.at(|| system::loosen(&plan.tun)).unwrap();
    assert!(!hosts.connects(BACKGROUND, SILENCE), "captured, and nobody reads the device");
    assert!(hosts.captured() > 0);
    assert!(hosts.connects(OTHER, PATIENCE), "other ports are not captured");
    let (get, marked) = (["ip", "route", "get", "10.91.2.2"], ["mark", "0x6277"]);
    assert!(hosts.says(&[&get[..], &marked].concat()).contains("dev byway0"));
    assert!(!hosts.says(&get).contains("dev byway0"));
    // All that the kernel does when the gateway's process dies.
    hosts.says(&["ip", "tuntap", "del", "byway0", "mode", "tun"]);
    assert!(hosts.connects(BACKGROUND, PATIENCE), "the plain route, with marks and rules still there");
    let before = hosts.at(|| plumbing::installed(&plan)).unwrap();
    hosts.at(|| plumbing::reload(&plan)).unwrap();
    assert_eq!(hosts.at(|| plumbing::installed(&plan)).unwrap(), before);
    assert!(hosts.at(|| plumbing::installed(&plan)).unwrap().table);
    hosts.at(|| plumbing::remove(&plan)).unwrap();
    assert!(hosts.at(|| plumbing::installed(&plan)).unwrap().is_empty());
    hosts.at(|| plumbing::remove(&plan)).unwrap();
    assert!(!hosts.says(&["nft", "list", "ruleset"]).contains("byway"));
    Ok(())
}

fn fails_closed() -> Result<(), Failed> {
    let hosts = Row::new("c");
    let plan = plan("fail-closed = true");
    let _bob = hosts.listeners();
    hosts.device();
    hosts.at(|| plumbing::install(&plan)).unwrap();
    hosts.says(&["ip", "tuntap", "del", "byway0", "mode", "tun"]);
    assert!(!hosts.connects(BACKGROUND, SILENCE), "unreachable");
    assert!(hosts.connects(OTHER, PATIENCE));
    hosts.at(|| plumbing::remove(&plan)).unwrap();
    assert!(hosts.connects(BACKGROUND, PATIENCE));
    assert!(hosts.at(|| plumbing::installed(&plan)).unwrap().is_empty());
    Ok(())
}

fn replaces_leftovers() -> Result<(), Failed> {
    let hosts = Row::new("l");
    let others = [
        &["ip", "rule", "add", "fwmark", "0x5", "lookup", "100", "priority", "25207"][..],
        &["nft", "add", "table", "inet", "other"],
    ];
    for command in others {
        hosts.says(command);
    }
    let found = |plan: &KernelPlan| hosts.at(|| plumbing::installed(plan)).unwrap();
    let plan = plan("fail-closed = true");
    hosts.device();
    hosts.at(|| plumbing::install(&plan)).unwrap();
    let whole = found(&plan);
    assert!(whole.table && whole.rules.iter().all(|(_, count)| *count == 1), "{whole:?}");
    assert!(whole.routes.iter().all(|(_, count)| *count == 2), "{whole:?}");
    // Killed, and begun anew: with the device of before, and with another one.
    hosts.at(|| plumbing::install(&plan)).unwrap();
    assert_eq!(found(&plan), whole);
    hosts.says(&["ip", "tuntap", "del", "byway0", "mode", "tun"]);
    assert!(found(&plan).routes.iter().all(|(_, count)| *count == 1), "the device's routes went with it");
    // What cannot be installed leaves nothing behind.
    assert!(hosts.at(|| plumbing::install(&plan)).is_err());
    assert_eq!(found(&plan), KernelState { table: false, ..found(&plan) });
    assert!(found(&plan).is_empty());
    hosts.device();
    hosts.at(|| plumbing::install(&plan)).unwrap();
    assert_eq!(found(&plan), whole);
    hosts.at(|| plumbing::remove(&plan)).unwrap();
    assert!(found(&plan).is_empty());
    assert!(hosts.says(&["ip", "rule"]).contains("fwmark 0x5 lookup 100"));
    assert!(hosts.says(&["nft", "list", "tables"]).contains("inet other"));
    Ok(())
}

fn leaves_tables_of_others() -> Result<(), Failed> {
    let hosts = Row::new("t");
    hosts.device();
    hosts.says(&["ip", "route", "add", "10.99.0.0/16", "dev", "east", "table", "25207"]);
    let error = hosts.at(|| plumbing::install(&plan(""))).unwrap_err().to_string();
    assert!(error.contains("another program uses the routing table 25207"), "{error}");
    assert!(error.contains("10.99.0.0/16") && error.contains("`mark`"), "{error}");
    assert!(hosts.says(&["ip", "route", "show", "table", "25207"]).contains("10.99.0.0/16"));
    hosts.at(|| plumbing::install(&plan("mark = 25208"))).unwrap();
    Ok(())
}

/// Three hosts in a row.
struct Row(Spaces);

impl Row {
    fn new(tag: &str) -> Self {
        let hosts = Spaces::new(tag, &["alice", "gw", "bob"]);
        for (host, device, net) in [("alice", "west", 1), ("bob", "east", 2)] {
            let [gateway, own] = [1, 2].map(|last| format!("10.91.{net}.{last}"));
            hosts.line([("gw", device, &gateway), (host, "eth0", &own)]);
            hosts.says(host, &["ip", "route", "add", "default", "via", &gateway]);
        }
        hosts.says("gw", &["sysctl", "-qw", "net.ipv4.ip_forward=1"]);
        Self(hosts)
    }

    /// What a command says on the gateway, which must do well.
    #[track_caller]
    fn says(&self, command: &[&str]) -> String {
        self.0.says("gw", command)
    }

    /// Does something on the gateway.
    fn at<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.0.at("gw", work)
    }

    /// The gateway's device, without a reader.
    fn device(&self) {
        self.says(&["ip", "tuntap", "add", "byway0", "mode", "tun"]);
        self.says(&["ip", "link", "set", "byway0", "up"]);
    }

    /// What bob answers at.
    fn listeners(&self) -> [TcpListener; 2] {
        self.0.at("bob", || [BACKGROUND, OTHER].map(|port| TcpListener::bind(("10.91.2.2", port)).unwrap()))
    }

    /// Whether alice reaches bob.
    fn connects(&self, port: u16, patience: Duration) -> bool {
        let bob = SocketAddr::from(([10, 91, 2, 2], port));
        self.0.at("alice", || TcpStream::connect_timeout(&bob, patience)).is_ok()
    }

    /// Packets that were marked.
    fn captured(&self) -> u64 {
        let chain = self.says(&["nft", "-j", "list", "chain", "inet", "byway_gw", "take"]);
        let chain: serde_json::Value = serde_json::from_str(&chain).unwrap();
        let rule =
            chain["nftables"].as_array().unwrap().iter().find(|entry| entry["rule"].is_object()).unwrap();
        rule["rule"]["expr"][0]["counter"]["packets"].as_u64().unwrap()
    }
}
