//! What a gateway installs in a kernel, in network namespaces: which TCP it captures, that flows go on when its device is gone, that
//! leftovers are replaced, and that nothing stays.
//!
//! ```text
//!   alice 10.91.1.2 ─── 10.91.1.1 gateway 10.91.2.1 ─── 10.91.2.2 bob
//! ```
//!
//! The device has no reader: what is captured goes nowhere, so whoever gets through was not captured. Needs root and `ip`, `nft`;
//! says *ignored* by name where they are missing.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test says so when it cannot go on")]

use byway::gateway::config::GatewayConfig;
use byway::gateway::plumbing::{self, Found, Plan, system};
use libtest_mimic::{Arguments, Failed, Trial};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// The port that the rule calls background, and another one.
const BACKGROUND: u16 = 873;
const OTHER: u16 = 80;
/// How long nothing answers before a flow is taken for captured.
const SILENCE: Duration = Duration::from_millis(500);
/// How long a flow may take to get through.
const PATIENCE: Duration = Duration::from_secs(20);

fn main() {
    let arguments = Arguments::from_args();
    let possible = rustix::process::geteuid().is_root() && Hosts::possible();
    let test = |name: &str, test: fn() -> Result<(), Failed>| {
        Trial::test(name.to_owned(), test).with_ignored_flag(!possible)
    };
    let tests = vec![
        test("background_flows_are_captured_and_go_on_without_the_device", fails_open),
        test("with_fail_closed_they_do_not_go_on", fails_closed),
        test("leftovers_are_replaced_and_nothing_of_others_is_touched", replaces_leftovers),
        test("a_routing_table_of_others_is_left_alone", leaves_tables_of_others),
    ];
    if !possible {
        eprintln!("tests of what gateways install are ignored: they need root and the programs ip and nft");
    }
    libtest_mimic::run(&arguments, tests).exit();
}

fn plan(more: &str) -> Plan {
    let text = format!(
        "[gateway]\nserves = [\"10.91.1.0/24\", \"fd91:1::/64\"]\n{more}\n[[peer]]\nname = \"b\"\n\
         key = \"byway-key-mfrggzdfmztwq2lknnwg23tpobyxe43uov3ho6dzpiydcmrtgq2qpgjcuu\"\n\
         allowed = [\"10.91.2.0/24\", \"fd91:2::/64\"]\n[[rule]]\nto-ports = [{BACKGROUND}]\n"
    );
    Plan::new(&GatewayConfig::parse(Path::new("gw.toml"), &text).unwrap())
}

fn fails_open() -> Result<(), Failed> {
    let hosts = Hosts::new("o");
    let plan = plan("");
    let _bob = hosts.listeners();
    assert!(hosts.connects(BACKGROUND, PATIENCE), "without a gateway");
    hosts.device();
    hosts.at("gw", || plumbing::install(&plan)).unwrap();
    hosts.at("gw", || system::loosen(&plan.tun)).unwrap();
    assert!(!hosts.connects(BACKGROUND, SILENCE), "captured, and nobody reads the device");
    assert!(hosts.captured() > 0);
    assert!(hosts.connects(OTHER, PATIENCE), "other ports are not captured");
    let (get, marked) = (["ip", "route", "get", "10.91.2.2"], ["mark", "0x6277"]);
    assert!(hosts.says("gw", &[&get[..], &marked].concat()).contains("dev byway0"));
    assert!(!hosts.says("gw", &get).contains("dev byway0"));
    // All that the kernel does when the gateway's process dies.
    hosts.must("gw", &["ip", "tuntap", "del", "byway0", "mode", "tun"]);
    assert!(hosts.connects(BACKGROUND, PATIENCE), "the plain route, with marks and rules still there");
    let before = hosts.at("gw", || plumbing::installed(&plan)).unwrap();
    hosts.at("gw", || plumbing::reload(&plan)).unwrap();
    assert_eq!(hosts.at("gw", || plumbing::installed(&plan)).unwrap(), before);
    assert!(hosts.at("gw", || plumbing::installed(&plan)).unwrap().table);
    hosts.at("gw", || plumbing::remove(&plan)).unwrap();
    assert!(hosts.at("gw", || plumbing::installed(&plan)).unwrap().is_empty());
    hosts.at("gw", || plumbing::remove(&plan)).unwrap();
    assert!(!hosts.says("gw", &["nft", "list", "ruleset"]).contains("byway"));
    Ok(())
}

fn fails_closed() -> Result<(), Failed> {
    let hosts = Hosts::new("c");
    let plan = plan("fail-closed = true");
    let _bob = hosts.listeners();
    hosts.device();
    hosts.at("gw", || plumbing::install(&plan)).unwrap();
    hosts.must("gw", &["ip", "tuntap", "del", "byway0", "mode", "tun"]);
    assert!(!hosts.connects(BACKGROUND, SILENCE), "unreachable");
    assert!(hosts.connects(OTHER, PATIENCE));
    hosts.at("gw", || plumbing::remove(&plan)).unwrap();
    assert!(hosts.connects(BACKGROUND, PATIENCE));
    assert!(hosts.at("gw", || plumbing::installed(&plan)).unwrap().is_empty());
    Ok(())
}

fn replaces_leftovers() -> Result<(), Failed> {
    let hosts = Hosts::new("l");
    let others = [
        &["ip", "rule", "add", "fwmark", "0x5", "lookup", "100", "priority", "25207"][..],
        &["nft", "add", "table", "inet", "other"],
    ];
    others.iter().for_each(|command| hosts.must("gw", command));
    let found = |plan: &Plan| hosts.at("gw", || plumbing::installed(plan)).unwrap();
    let plan = plan("fail-closed = true");
    hosts.device();
    hosts.at("gw", || plumbing::install(&plan)).unwrap();
    let whole = found(&plan);
    assert!(whole.table && whole.rules.iter().all(|(_, count)| *count == 1), "{whole:?}");
    assert!(whole.routes.iter().all(|(_, count)| *count == 2), "{whole:?}");
    // Killed, and begun anew: with the device of before, and with another one.
    hosts.at("gw", || plumbing::install(&plan)).unwrap();
    assert_eq!(found(&plan), whole);
    hosts.must("gw", &["ip", "tuntap", "del", "byway0", "mode", "tun"]);
    assert!(found(&plan).routes.iter().all(|(_, count)| *count == 1), "the device's routes went with it");
    // What cannot be installed leaves nothing behind.
    assert!(hosts.at("gw", || plumbing::install(&plan)).is_err());
    assert_eq!(found(&plan), Found { table: false, ..found(&plan) });
    assert!(found(&plan).is_empty());
    hosts.device();
    hosts.at("gw", || plumbing::install(&plan)).unwrap();
    assert_eq!(found(&plan), whole);
    hosts.at("gw", || plumbing::remove(&plan)).unwrap();
    assert!(found(&plan).is_empty());
    assert!(hosts.says("gw", &["ip", "rule"]).contains("fwmark 0x5 lookup 100"));
    assert!(hosts.says("gw", &["nft", "list", "tables"]).contains("inet other"));
    Ok(())
}

fn leaves_tables_of_others() -> Result<(), Failed> {
    let hosts = Hosts::new("t");
    hosts.device();
    hosts.must("gw", &["ip", "route", "add", "10.99.0.0/16", "dev", "east", "table", "25207"]);
    let error = hosts.at("gw", || plumbing::install(&plan(""))).unwrap_err().to_string();
    assert!(error.contains("routing table 25207 is used by somebody else"), "{error}");
    assert!(error.contains("10.99.0.0/16") && error.contains("`mark`"), "{error}");
    assert!(hosts.says("gw", &["ip", "route", "show", "table", "25207"]).contains("10.99.0.0/16"));
    hosts.at("gw", || plumbing::install(&plan("mark = 25208"))).unwrap();
    Ok(())
}

/// Three hosts in a row; gone when dropped.
struct Hosts {
    prefix: String,
}

impl Hosts {
    fn possible() -> bool {
        let name = format!("bwp{}probe", std::process::id());
        let made = run(&["ip", "netns", "add", &name]);
        let nft = made && run(&["ip", "netns", "exec", &name, "nft", "list", "tables"]);
        let tun = nft && run(&["ip", "-n", &name, "tuntap", "add", "byway0", "mode", "tun"]);
        let _ = run(&["ip", "netns", "del", &name]);
        tun
    }

    fn new(tag: &str) -> Self {
        let hosts = Self { prefix: format!("bwp{}{tag}", std::process::id()) };
        for host in ["alice", "gw", "bob"] {
            must(&["ip", "netns", "add", &hosts.name(host)]);
            hosts.must(host, &["ip", "link", "set", "lo", "up"]);
        }
        for (host, device, net) in [("alice", "west", 1), ("bob", "east", 2)] {
            let (own, gateway) = (hosts.name(host), hosts.name("gw"));
            must(&[
                "ip", "-n", &gateway, "link", "add", device, "type", "veth", "peer", "eth0", "netns", &own,
            ]);
            for (host, device, last) in [("gw", device, 1), (host, "eth0", 2)] {
                hosts.must(host, &["ip", "address", "add", &format!("10.91.{net}.{last}/24"), "dev", device]);
                hosts.must(host, &["ip", "link", "set", device, "up"]);
            }
            hosts.must(host, &["ip", "route", "add", "default", "via", &format!("10.91.{net}.1")]);
        }
        hosts.must("gw", &["sysctl", "-qw", "net.ipv4.ip_forward=1"]);
        hosts
    }

    fn name(&self, host: &str) -> String {
        format!("{}{host}", self.prefix)
    }

    fn must(&self, host: &str, command: &[&str]) {
        must(&[&["ip", "netns", "exec", &self.name(host)], command].concat());
    }

    fn says(&self, host: &str, command: &[&str]) -> String {
        let name = self.name(host);
        let output = Command::new("ip").args(["netns", "exec", &name]).args(command).output().unwrap();
        assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Does something on a host: in a thread that is there.
    fn at<T: Send>(&self, host: &str, work: impl FnOnce() -> T + Send) -> T {
        let space = File::open(Path::new("/run/netns").join(self.name(host))).unwrap();
        let there = || {
            move_into_link_name_space(space.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
            work()
        };
        std::thread::scope(|scope| scope.spawn(there).join().unwrap())
    }

    /// The gateway's device, without a reader.
    fn device(&self) {
        self.must("gw", &["ip", "tuntap", "add", "byway0", "mode", "tun"]);
        self.must("gw", &["ip", "link", "set", "byway0", "up"]);
    }

    /// What bob answers at.
    fn listeners(&self) -> [TcpListener; 2] {
        self.at("bob", || [BACKGROUND, OTHER].map(|port| TcpListener::bind(("10.91.2.2", port)).unwrap()))
    }

    /// Whether alice reaches bob.
    fn connects(&self, port: u16, patience: Duration) -> bool {
        let bob = SocketAddr::from(([10, 91, 2, 2], port));
        self.at("alice", || TcpStream::connect_timeout(&bob, patience)).is_ok()
    }

    /// Packets that were marked.
    fn captured(&self) -> u64 {
        let chain = self.says("gw", &["nft", "-j", "list", "chain", "inet", "byway_gw", "take"]);
        let chain: serde_json::Value = serde_json::from_str(&chain).unwrap();
        let rule =
            chain["nftables"].as_array().unwrap().iter().find(|entry| entry["rule"].is_object()).unwrap();
        rule["rule"]["expr"][0]["counter"]["packets"].as_u64().unwrap()
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for host in ["alice", "gw", "bob"] {
            let _ = run(&["ip", "netns", "del", &self.name(host)]);
        }
    }
}

fn run(command: &[&str]) -> bool {
    let (program, arguments) = command.split_first().unwrap();
    Command::new(program).args(arguments).output().is_ok_and(|output| output.status.success())
}

fn must(command: &[&str]) {
    let (program, arguments) = command.split_first().unwrap();
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
