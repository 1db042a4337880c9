//! Hosts as network namespaces with names, and lines between them, made by `ip`.

use super::Running;
use super::machine::{PATIENCE, must, run, wait_for};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// What all names of hosts begin with.
pub const PREFIX: &str = "bw";

/// Hosts; gone when dropped.
pub struct Spaces {
    prefix: String,
    hosts: Vec<String>,
}

impl Spaces {
    /// Whether hosts can be made here, on which all of `commands` do well.
    pub fn possible(commands: &[&str]) -> bool {
        if !super::machine::is_root() {
            return false;
        }
        let name = format!("{PREFIX}{}probe", std::process::id());
        let on = |command: &&str| {
            run(&[&["ip", "netns", "exec", &name], command.split(' ').collect::<Vec<_>>().as_slice()]
                .concat())
        };
        let possible = run(&["ip", "netns", "add", &name]) && commands.iter().all(on);
        let _ = run(&["ip", "netns", "del", &name]);
        possible
    }

    /// Hosts without lines. `tag` tells those of one test from those of another.
    pub fn new(tag: &str, hosts: &[&str]) -> Self {
        static TESTS: AtomicU32 = AtomicU32::new(0);
        let number = TESTS.fetch_add(1, Ordering::Relaxed);
        let prefix = format!("{PREFIX}{}{tag}{number}", std::process::id());
        let spaces = Self { prefix, hosts: hosts.iter().map(ToString::to_string).collect() };
        for host in hosts {
            must(Command::new("ip").args(["netns", "add", &spaces.name(host)]));
            spaces.says(host, &["ip", "link", "set", "lo", "up"]);
        }
        spaces
    }

    pub fn name(&self, host: &str) -> String {
        format!("{}{host}", self.prefix)
    }

    /// A program on a host.
    pub fn on(&self, host: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name(host)]);
        command
    }

    /// Starts byway on a host, with its events as JSON, and with its state in a directory of its
    /// own.
    pub fn byway(&self, host: &str, state: &Path, arguments: &[&str]) -> Running {
        let mut command = self.on(host);
        command.arg(env!("CARGO_BIN_EXE_byway")).args(arguments).arg("--json").env("BYWAY_STATE_DIR", state);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Running::start(command)
    }

    /// What a command says on a host, which must do well.
    #[track_caller]
    pub fn says(&self, host: &str, command: &[&str]) -> String {
        must(self.on(host).args(command))
    }

    /// A line. Each end is a host, the device's name there, and its address in a network of 256.
    pub fn line(&self, ends: [(&str, &str, &str); 2]) {
        let [(a, left, _), (b, right, _)] = ends;
        let peer = self.name(b);
        self.says(a, &["ip", "link", "add", left, "type", "veth", "peer", right, "netns", &peer]);
        for (host, device, address) in ends {
            self.says(host, &["ip", "address", "add", &format!("{address}/24"), "dev", device]);
            self.says(host, &["ip", "link", "set", device, "up"]);
        }
    }

    /// Hosts around a host named `hub` that forwards between them. Each host has an address that
    /// ends in `.1`, in a network of its own. The hub is `.254` in each of these networks.
    pub fn star(tag: &str, hosts: &[(&str, &str)]) -> Self {
        let names: Vec<&str> = hosts.iter().map(|(name, _)| *name).chain(["hub"]).collect();
        let spaces = Self::new(tag, &names);
        spaces.says("hub", &["sysctl", "-qw", "net.ipv4.ip_forward=1"]);
        for (name, here) in hosts {
            let there = format!("{}.254", here.strip_suffix(".1").unwrap());
            let device = format!("to-{name}");
            spaces.line([(name, "eth0", here), ("hub", &device, &there)]);
            spaces.says(name, &["ip", "route", "add", "default", "via", &there]);
            spaces.wait(name, "eth0");
            spaces.wait("hub", &device);
        }
        spaces
    }

    /// Waits until the kernel says that a line works, which takes up to a second: byway uses none
    /// that does not.
    pub fn wait(&self, host: &str, device: &str) {
        let up = wait_for(PATIENCE, || {
            self.says(host, &["ip", "-o", "link", "show", "dev", device]).contains("state UP").then_some(())
        });
        assert!(up.is_some(), "{device} of {host} does not come up");
    }

    /// Does something on a host: in a thread that is there.
    pub fn at<T: Send>(&self, host: &str, work: impl FnOnce() -> T + Send) -> T {
        let space = File::open(Path::new("/run/netns").join(self.name(host))).unwrap();
        let there = || {
            move_into_link_name_space(space.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
            work()
        };
        std::thread::scope(|scope| scope.spawn(there).join().unwrap())
    }
}

impl Drop for Spaces {
    fn drop(&mut self) {
        for host in &self.hosts {
            let _ = run(&["ip", "netns", "del", &self.name(host)]);
        }
    }
}
