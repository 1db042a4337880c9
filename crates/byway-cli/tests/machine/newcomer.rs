//! A new user's first backup and first file. The hosts have empty home directories, and run only
//! commands from README.md and docs/reach.md. The backup goes from a home to a NAS in one network,
//! and the file goes this way:
//!
//! ```text
//!   sender ── router ──┐                  ┌── router ── receiver
//!   192.168.1.10   NAT └── the Internet ──┘ NAT         192.168.2.10
//!                               │
//!                             relay
//! ```
//!
//! Both routers do NAT, and drop packets that answer no packet from inside. Needs root and `ip`,
//! `nft`.

use crate::backup::homes::{self, HOME, Homes, NAS};
use crate::common::machine::{missing, test, works};
use crate::common::spaces::Spaces;
use crate::common::{Running, assert_same};
use libtest_mimic::{Failed, Trial};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const README: &str = include_str!("../../../../README.md");
const REACH: &str = include_str!("../../../../docs/reach.md");

pub fn tests() -> Vec<Trial> {
    let lacks = missing(Spaces::possible(&["nft -v"]), "it needs root and the programs ip and nft");
    let ssh = Spaces::possible(&["ss -V"]) && ["restic version", "ssh -V"].into_iter().all(works);
    let tools = missing(
        ssh && Path::new("/usr/sbin/sshd").exists(),
        "it needs root and the programs ip, ss, restic, ssh and sshd",
    );
    vec![
        test("newcomer::the_first_screen_protects_a_home", tools, first_backup),
        test("newcomer::the_first_file_arrives_through_a_relay", lacks, through_a_relay),
        test("newcomer::the_first_file_arrives_by_a_forwarded_port", lacks, by_a_forwarded_port),
    ]
}

/// What the first screen says, on two hosts of which one may log in to the other.
fn first_backup() -> Result<(), Failed> {
    let spaces = homes::hosts("nb");
    let mut homes = Homes::new(&spaces);
    let lines = section(README, "A backup that yields");
    let (on_the_nas, here) = lines.split_first().unwrap();
    homes.types(NAS, on_the_nas);
    // The ticket's name, what ssh is told of it, and two of restic.
    assert_eq!(here.len(), 4, "{here:?}");
    for line in here {
        homes.types(HOME, line);
    }
    homes.types(HOME, "restic -r sftp:nas:backup restore latest --target restored");
    homes.same("photos", homes.home(HOME).join("restored/root/photos"));
    assert!(homes.home(NAS).join("backup/config").exists());
    Ok(())
}

/// Both hosts are behind NAT, so the section about relays has to do.
fn through_a_relay() -> Result<(), Failed> {
    let world = World::new("nr", "45.2.0.2");
    let lines = section(README, "With a relay");
    let [relay, recv, send] = lines.as_slice() else { panic!("other lines than expected: {lines:?}") };
    let (relay, word) = world.starts("rly", relay);
    let (receiver, ticket) = world.starts("rcv", &recv.replace("WORD", &word));
    world.types("snd", &send.replace("TICKET", &ticket));
    assert_same(&world.home("snd").join("photos"), &world.home("rcv").join("in/photos"));
    for running in [receiver, relay] {
        running.interrupt();
        assert_eq!(running.end().code, Some(130));
    }
    Ok(())
}

/// The receiver's firewall drops what it does not know, and its router forwards a port.
fn by_a_forwarded_port() -> Result<(), Failed> {
    let world = World::new("nf", "203.0.113.7");
    let open = "add table inet filter; \
                add chain inet filter input { type filter hook input priority 0; policy drop; }; \
                add rule inet filter input ct state established,related accept";
    world.hosts.says("rcv", &["nft", open]);
    let forward = "add chain ip nat pre { type nat hook prerouting priority -100; }; \
                   add rule ip nat pre iifname wan udp dport 4747 dnat to 192.168.2.10; \
                   insert rule ip nat inside iifname wan udp dport 4747 accept";
    world.hosts.says("nat2", &["nft", forward]);
    let firewall = section(REACH, "If the receiver has a firewall");
    let nft = firewall.iter().find_map(|line| line.strip_prefix("sudo nft ")).expect("a line for nftables");
    world.types("rcv", &format!("nft {nft}"));
    let router = section(REACH, "If the receiver is behind a router");
    let (receiver, ticket) = world.starts("rcv", &router[0]);
    let first = section(README, "Sixty seconds to the first file");
    world.types("snd", &first[1].replace("TICKET", &ticket));
    assert_same(&world.home("snd").join("photos"), &world.home("rcv").join("in/photos"));
    receiver.interrupt();
    assert_eq!(receiver.end().code, Some(130));
    Ok(())
}

/// The lines to type of a page's section with this heading, without those of the sections after it.
fn section(page: &str, heading: &str) -> Vec<String> {
    let from = page.lines().skip_while(|line| line.trim_start_matches('#').trim() != heading);
    let mut typed = false;
    let mut lines = Vec::new();
    for line in from.skip(1) {
        match line {
            "```sh" => typed = true,
            "```" => typed = false,
            line if typed => lines.push(line.to_owned()),
            line if line.starts_with('#') => break,
            _ => {}
        }
    }
    assert!(!lines.is_empty(), "no section {heading:?} with lines to type");
    lines
}

struct World {
    hosts: Spaces,
    homes: tempfile::TempDir,
}

impl World {
    /// The router of the receiver has the address `public` outside.
    fn new(tag: &str, public: &str) -> Self {
        let hosts = Spaces::new(tag, &["net", "snd", "nat1", "rcv", "nat2", "rly"]);
        let gate = format!("{}.1", public.rsplit_once('.').unwrap().0);
        hosts.line([("snd", "eth0", "192.168.1.10"), ("nat1", "lan", "192.168.1.1")]);
        hosts.line([("rcv", "eth0", "192.168.2.10"), ("nat2", "lan", "192.168.2.1")]);
        hosts.line([("nat1", "wan", "45.1.0.2"), ("net", "n1", "45.1.0.1")]);
        hosts.line([("nat2", "wan", public), ("net", "n2", &gate)]);
        hosts.line([("rly", "eth0", "45.3.0.2"), ("net", "r", "45.3.0.1")]);
        let ways = [
            ("snd", "192.168.1.1"),
            ("rcv", "192.168.2.1"),
            ("nat1", "45.1.0.1"),
            ("nat2", &gate),
            ("rly", "45.3.0.1"),
        ];
        for (host, way) in ways {
            hosts.says(host, &["ip", "route", "add", "default", "via", way]);
        }
        for router in ["net", "nat1", "nat2"] {
            hosts.at(router, || fs::write("/proc/sys/net/ipv4/ip_forward", "1")).unwrap();
        }
        let nat = "add table ip nat; \
                   add chain ip nat post { type nat hook postrouting priority 100; }; \
                   add rule ip nat post oifname wan masquerade; \
                   add chain ip nat inside { type filter hook forward priority 0; }; \
                   add rule ip nat inside iifname wan ct state established,related accept; \
                   add rule ip nat inside iifname wan drop";
        for router in ["nat1", "nat2"] {
            hosts.says(router, &["nft", nat]);
        }
        for host in ["snd", "rcv", "rly"] {
            hosts.wait(host, "eth0");
        }
        for router in ["nat1", "nat2"] {
            hosts.wait(router, "wan");
        }
        let world = Self { hosts, homes: tempfile::tempdir().unwrap() };
        for host in ["snd", "rcv", "rly"] {
            fs::create_dir(world.home(host)).unwrap();
        }
        byway_files::generate(&world.home("snd").join("photos"), 1, 2_000_000).unwrap();
        world
    }

    fn home(&self, host: &str) -> PathBuf {
        self.homes.path().join(host)
    }

    /// A line in the shell of somebody who has just logged in on a host.
    fn typed(&self, host: &str, line: &str) -> Command {
        let program = Path::new(env!("CARGO_BIN_EXE_byway")).parent().unwrap();
        let mut command = self.hosts.on(host);
        command.args(["sh", "-c", &format!("cd && exec {line}")]).env_clear();
        command
            .env("HOME", self.home(host))
            .env("PATH", format!("{}:/usr/sbin:/usr/bin:/sbin:/bin", program.display()));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Types a line that ends by itself.
    #[track_caller]
    fn types(&self, host: &str, line: &str) {
        Running::start(self.typed(host, line)).end().succeeded();
    }

    /// Types a line that goes on, and the word that it prints.
    fn starts(&self, host: &str, line: &str) -> (Running, String) {
        let mut running = Running::start(self.typed(host, line));
        let word = running.line();
        (running, word)
    }
}
