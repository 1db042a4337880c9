//! An end host behind a router with NAT relays for other hosts. The router's kernel does the
//! address translation.
//!
//! ```text
//!   home 192.168.9.2 ─── router 10.79.1.1 ─── hub ─── registry 10.79.2.1, and 10.79.3.1 to probe from
//! ```
//!
//! Needs root and `ip`, `nft`; otherwise the tests are reported as ignored.

use crate::common::Running;
use crate::common::machine::{missing, test};
use crate::common::spaces::Spaces;
use libtest_mimic::{Failed, Trial};

const OUTSIDE: &str = "10.79.1.1";
const HOME: &str = "192.168.9.2";
const REGISTRY: &str = "10.79.2.1";
const PROBE: &str = "10.79.3.1";

pub fn tests() -> Vec<Trial> {
    let lacks = missing(Spaces::possible(&["nft -v"]), "it needs root and the programs ip and nft");
    vec![
        test("nat::a_host_behind_a_nat_is_listed_if_it_lets_others_in_and_is_told_if_not", lacks, listed),
        test("nat::a_sender_names_the_outside_address_of_a_port_that_is_forwarded", lacks, advertised),
    ]
}

/// The hosts, and what their programs keep.
struct Net {
    spaces: Spaces,
    directory: tempfile::TempDir,
}

impl Net {
    fn new(tag: &str) -> Self {
        let hosts = ["home", "router", "hub", "reg"];
        let spaces = Spaces::new(tag, &hosts);
        spaces.line([("home", "eth0", HOME), ("router", "eth1", "192.168.9.1")]);
        spaces.line([("router", "eth0", OUTSIDE), ("hub", "to-router", "10.79.1.254")]);
        spaces.line([("reg", "eth0", REGISTRY), ("hub", "to-reg", "10.79.2.254")]);
        spaces.line([("reg", "eth1", PROBE), ("hub", "to-probe", "10.79.3.254")]);
        for host in ["router", "hub"] {
            spaces.says(host, &["sysctl", "-qw", "net.ipv4.ip_forward=1"]);
        }
        for (host, by) in [("home", "192.168.9.1"), ("router", "10.79.1.254"), ("reg", "10.79.2.254")] {
            spaces.says(host, &["ip", "route", "add", "default", "via", by]);
        }
        for (host, device) in [("home", "eth0"), ("router", "eth0"), ("reg", "eth0"), ("reg", "eth1")] {
            spaces.wait(host, device);
        }
        let masquerade = "add table ip n; add chain ip n out { type nat hook postrouting priority 100; }; \
                          add rule ip n out oifname eth0 masquerade; \
                          add chain ip n in { type nat hook prerouting priority -100; }";
        spaces.says("router", &["nft", masquerade]);
        Self { spaces, directory: tempfile::tempdir().unwrap() }
    }

    /// The router forwards the relay's port to the host inside, or no more.
    fn forward(&self, port: u16) {
        let rule = format!("add rule ip n in iifname eth0 udp dport {port} dnat to {HOME}:4748");
        self.spaces.says("router", &["nft", &format!("flush chain ip n in; {rule}")]);
    }

    fn start(&self, host: &str, arguments: &[&str]) -> Running {
        self.spaces.byway(host, &self.directory.path().join(host), arguments)
    }

    /// A registry, and its word for joining.
    fn registry(&self, more: &[&str]) -> (Running, String) {
        let mut registry = self.start("reg", &[&["registry", "--listen", REGISTRY], more].concat());
        let join = registry.event("ready")["join"].as_str().unwrap().to_owned();
        (registry, join)
    }

    /// A host inside that relays for others.
    fn lends(&self, join: &str, more: &[&str]) -> Running {
        let into = self.directory.path().join("in").display().to_string();
        std::fs::create_dir_all(&into).unwrap();
        let lends = ["--also-relay", "1G/day", "--registry", join, "--allow-destination", "10.79.0.0/16"];
        self.start("home", &[&["recv", &into], &lends[..], more].concat())
    }
}

/// Waits until the host is told why it is not listed.
fn is_told(mut host: Running, why: &str) {
    loop {
        let warning = host.event("warning")["message"].as_str().unwrap().to_owned();
        if warning.starts_with("this host is not listed") {
            assert!(warning.contains(why), "{warning}");
            host.signal("TERM");
            host.end();
            return;
        }
    }
}

fn listed() -> Result<(), Failed> {
    let net = Net::new("t");
    // Each has a registry that just began: the router remembers for a while what it did with
    // packets of the one before.
    for (more, why) in [
        (&[][..], "no second address (--probe-from)"),
        (&["--probe-from", PROBE], "lets in nobody but the registry"),
    ] {
        let (registry, join) = net.registry(more);
        is_told(net.lends(&join, &[]), why);
        registry.signal("TERM");
        registry.end();
    }
    // The router lets everybody in: no word is needed of where that is.
    net.forward(4748);
    let (_registry, join) = net.registry(&["--probe-from", PROBE]);
    let mut host = net.lends(&join, &[]);
    assert_eq!(host.event("enrolled")["addresses"], serde_json::json!([format!("{OUTSIDE}:4748")]));
    Ok(())
}

fn advertised() -> Result<(), Failed> {
    let net = Net::new("u");
    let (_registry, join) = net.registry(&[]);
    net.forward(5000);
    let into = net.directory.path().join("in").display().to_string();
    let mut receiver = net.start("hub", &["recv", &into]);
    let ticket = receiver.event("ready")["ticket"].as_str().unwrap().to_owned();
    // It sends slowly, and relays meanwhile.
    let file = net.directory.path().join("file").display().to_string();
    std::fs::write(&file, vec![7; 1 << 20]).unwrap();
    let send = ["send", &file, &ticket, "--bwlimit", "1K", "--also-relay", "1G/day", "--registry", &join];
    let outside = format!("{OUTSIDE}:5000");
    let more = ["--advertise", &outside, "--allow-destination", "10.79.0.0/16"];
    let mut sender = net.start("home", &[&send[..], &more].concat());
    assert_eq!(sender.event("enrolled")["addresses"], serde_json::json!([outside]));
    Ok(())
}
