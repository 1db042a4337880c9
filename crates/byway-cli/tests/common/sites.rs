//! Two sites in a lab: Alice behind the gateway `left`, Bob behind the gateway `right`, relays
//! elsewhere.

use super::bench::{BYWAY, Bench, TRIES, last_event};
use super::machine::{Lateness, Missing, is_root, missing, must, wait_for, works};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// A lab with gateways; which hosts and links there are besides, its plan says.
pub struct Sites {
    pub bench: Bench,
    lateness: Lateness,
}

/// What is the same at both ends: `(gateway, the host that it serves)`.
const ENDS: [(&str, &str); 2] = [("left", "alice"), ("right", "bob")];

/// What sites need of the machine.
const NEEDS: &str = "it needs root, /dev/net/tun and the programs ip, nft, iperf3 and unshare";

impl Sites {
    /// What the machine lacks of what they need.
    pub fn missing() -> Missing {
        let programs = ["ip -V", "nft -v", "iperf3 -v", "unshare --net true"];
        let possible = is_root() && programs.into_iter().all(works) && Path::new("/dev/net/tun").exists();
        missing(possible, NEEDS)
    }

    /// A lab after `plan`. No gateway runs there yet.
    pub fn new(plan: &str) -> Self {
        let bench = Bench::new();
        bench.up("site", plan);
        Self { bench, lateness: Lateness::watch() }
    }

    /// Nothing that these counters of a gateway count may have happened. What comes of a peer that
    /// is silent for too long is not asked where the machine kept processes waiting.
    #[track_caller]
    pub fn assert_none(&self, status: &Value, counters: &[&str]) {
        if self.lateness.is_too_late() {
            return println!("the machine kept processes waiting: {counters:?} are not looked at");
        }
        for counter in counters {
            assert_eq!(status["counters"][counter], 0, "{counter}: {status}");
        }
    }

    fn state(&self, host: &str) -> String {
        self.bench.word(&format!("state-{host}"))
    }

    /// Starts a relay; its word.
    pub fn relay(&mut self, host: &str) -> String {
        let (state, listen) = (self.state(host), format!("{}:4748", self.bench.address(host)));
        let fixed = ["--allow-destination", "10.66.0.0/16"];
        let program = [&[BYWAY, "--state-dir", &state, "relay", "--listen", &listen], &fixed[..]].concat();
        self.bench.start(host, host, &program);
        self.bench.line(host)
    }

    /// Writes the configuration of both gateways: flows to `ports` are background; `more` stands in
    /// the table `[gateway]`.
    pub fn configure(&self, ports: &str, more: &str, relays: &[String]) {
        let relays: Vec<String> = relays.iter().map(|word| format!("\"{word}\"")).collect();
        for [(host, served), (other, behind)] in [ENDS, [ENDS[1], ENDS[0]]] {
            let state = self.state(other);
            let key = must(&mut self.bench.byway(&["--state-dir", &state, "id"]));
            let [served, own, there, behind] =
                [served, host, other, behind].map(|host| self.bench.address(host));
            let text = format!(
                "[gateway]\nserves = [\"{served}/32\"]\nlisten = [\"{own}:4749\"]\nstatus = \"{host}.sock\"\n{more}\n\
                 [[peer]]\nname = \"{other}\"\nkey = \"{}\"\naddresses = [\"{there}:4749\"]\nallowed = [\"{behind}/32\"]\n\
                 relays = [{}]\n[[rule]]\nname = \"backup\"\nto-ports = [\"{ports}\"]\n",
                key.trim(),
                relays.join(", "),
            );
            fs::write(self.bench.path(&format!("{host}.toml")), text).unwrap();
        }
    }

    /// Changes what is written in the configuration of a gateway.
    #[track_caller]
    pub fn rewrite(&self, host: &str, from: &str, to: &str) {
        let file = self.bench.path(&format!("{host}.toml"));
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains(from), "{text}");
        fs::write(file, text.replace(from, to)).unwrap();
    }

    /// Starts the gateway of a host, as it is configured.
    pub fn start(&mut self, host: &str) {
        let (state, file) = (self.state(host), self.bench.word(&format!("{host}.toml")));
        self.bench.start(host, host, &[BYWAY, "--state-dir", &state, "gateway", "--config", &file]);
    }

    /// Starts both gateways and waits until each has `paths` to the other.
    pub fn start_both(&mut self, paths: usize) {
        for (host, _) in ENDS {
            self.start(host);
        }
        for (host, _) in ENDS {
            self.wait_paths(host, paths);
        }
    }

    /// Waits until a gateway has a session, and as many paths to the other.
    #[track_caller]
    pub fn wait_paths(&self, host: &str, paths: usize) {
        self.bench.wait(&format!("{paths} paths of {host}"), || {
            let status = self.status(host);
            let peer = &status["peers"][0];
            let there = peer["paths"].as_array().is_some_and(|known| known.len() >= paths);
            let known = peer["serves"].as_array().is_some_and(|served| !served.is_empty());
            (peer["up"] == true && there && known).then_some(())
        });
    }

    /// Waits until both gateways know that each path carries datagrams of more than 1,400 bytes: a
    /// TCP connection opened earlier would keep a smaller segment size. Restarts gateways after
    /// `SEARCH`, because a gateway repeats failed probes only after ten minutes.
    #[track_caller]
    pub fn know_packet_sizes(&mut self, paths: usize) {
        const SEARCH: Duration = Duration::from_secs(10);
        for _ in 0..TRIES {
            let known = |(host, _): &(&str, _)| {
                let is_large = |path: &Value| path["datagram"].as_u64() > Some(1_400);
                let all =
                    || self.status(host)["peers"][0]["paths"].as_array()?.iter().all(is_large).then_some(());
                wait_for(SEARCH, all).is_some()
            };
            if ENDS.iter().all(known) {
                return;
            }
            for (host, _) in ENDS {
                self.bench.stop(host, "TERM");
            }
            self.start_both(paths);
        }
    }

    /// What a gateway says of itself; null if none answers.
    pub fn status(&self, host: &str) -> Value {
        let socket = self.bench.word(&format!("{host}.sock"));
        let output = self.bench.run(&["--json", "gateway", "status", "--socket", &socket]);
        last_event(&String::from_utf8(output.stdout).unwrap())["gateway"].clone()
    }

    /// A counter of a gateway.
    pub fn count(&self, host: &str, counter: &str) -> u64 {
        self.status(host)["counters"][counter].as_u64().unwrap_or_default()
    }

    /// What a gateway has in the kernel: rules of routing and tables of nftables, a line each, and
    /// devices.
    pub fn installed(&self, host: &str) -> Vec<String> {
        let script = "ip -4 rule; ip -6 rule; nft list tables; ip -o link show type tun";
        let said = self.bench.says(host, &["sh", "-c", script]);
        let ours = |line: &&str| ["0x6277", "byway_gw", "byway0"].iter().any(|name| line.contains(name));
        said.lines().filter(ours).map(str::to_owned).collect()
    }
}
