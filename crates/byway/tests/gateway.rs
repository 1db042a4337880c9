//! Two gateways between hosts that know nothing of them: the kernel's TCP through real processes on emulated links.
//!
//! Needs root, `ip`, `nft` and `iperf3`; says *ignored* by name where they are missing. One test at a time, since they measure.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test says so when it cannot go on")]

use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const BYWAY: &str = env!("CARGO_BIN_EXE_byway");

fn main() {
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    let root = rustix::process::geteuid().is_root()
        && ["ip -V", "nft -v", "iperf3 -v", "unshare --net true"].into_iter().all(works)
        && Path::new("/dev/net/tun").exists();
    let test = |name: &str, test: fn() -> Result<(), Failed>| {
        Trial::test(name.to_owned(), test).with_ignored_flag(!root)
    };
    let tests = vec![
        test("a_kernels_flow_over_three_ways_by_two_gateways", three_ways),
        test("a_dead_gateway_leaves_its_flows_to_the_plain_route", fail_open),
    ];
    if !root {
        eprintln!("tests of gateways are ignored: they need root, /dev/net/tun, and ip, nft and iperf3");
    }
    libtest_mimic::run(&arguments, tests).exit();
}

fn works(command: &str) -> bool {
    let mut words = command.split(' ');
    let mut program = Command::new(words.next().unwrap());
    program.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    program.status().is_ok_and(|status| status.success())
}

/// A figure counts only if the lab itself says that the machine was not too busy.
const TRIES: usize = 3;

/// Alice behind a gateway, Bob behind another; between the gateways a direct line and two detours, 10 Mbit/s each.
const PLAN: &str = r#"
[[link]]
between = ["alice", "left"]
rate = "200 Mbit/s"
delay = "0.1 ms"
queue = "1000 packets"
[[link]]
between = ["right", "bob"]
rate = "200 Mbit/s"
delay = "0.1 ms"
queue = "1000 packets"
[[link]]
between = ["left", "right"]
rate = "10 Mbit/s"
delay = "10 ms"
queue = "50 packets"
[[link]]
between = ["left", "one"]
rate = "100 Mbit/s"
delay = "5 ms"
queue = "1000 packets"
[[link]]
between = ["one", "right"]
rate = "10 Mbit/s"
delay = "10 ms"
queue = "50 packets"
[[link]]
between = ["left", "two"]
rate = "100 Mbit/s"
delay = "5 ms"
queue = "1000 packets"
[[link]]
between = ["two", "right"]
rate = "10 Mbit/s"
delay = "15 ms"
queue = "50 packets"
"#;

/// The network, and what runs in it.
struct Site {
    directory: tempfile::TempDir,
    running: Vec<(String, Child)>,
}

impl Site {
    fn new() -> Self {
        let site = Self { directory: tempfile::tempdir().unwrap(), running: Vec::new() };
        let plan = site.path("site.toml");
        fs::write(&plan, PLAN).unwrap();
        site.must(site.byway(&["-q", "lab", "up", plan.to_str().unwrap(), "--seed", "7"]));
        site
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn byway(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(BYWAY);
        command.args(arguments).stdin(Stdio::null()).env("BYWAY_LABS", self.path("labs"));
        command
    }

    fn must(&self, mut command: Command) -> Output {
        let output = command.output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command:?}: {} {told}", String::from_utf8_lossy(&output.stdout));
        output
    }

    fn on(&self, host: &str, program: &[&str]) -> Command {
        self.byway(&[&["lab", "exec", host, "--"], program].concat())
    }

    fn says(&self, host: &str, program: &[&str]) -> String {
        String::from_utf8(self.must(self.on(host, program)).stdout).unwrap()
    }

    /// Runs a program on a host until it is killed; what it says goes to a file.
    fn start(&mut self, name: &str, host: &str, program: &[&str]) -> PathBuf {
        let said = self.path(&format!("{name}.out"));
        let mut command = self.on(host, program);
        command.stdout(fs::File::create(&said).unwrap());
        command.stderr(fs::File::create(self.path(&format!("{name}.err"))).unwrap());
        self.running.push((name.to_owned(), command.spawn().unwrap()));
        said
    }

    /// The IPv4 address of a host.
    fn address(&self, host: &str) -> String {
        let said = self.says(host, &["getent", "ahostsv4", host]);
        said.split_whitespace().next().unwrap().to_owned()
    }

    fn state(&self, host: &str) -> String {
        self.path(&format!("state-{host}")).to_str().unwrap().to_owned()
    }

    /// The public key of a gateway.
    fn key(&self, host: &str) -> String {
        let state = self.state(host);
        let said = self.must(self.byway(&["--state-dir", &state, "id"])).stdout;
        String::from_utf8(said).unwrap().trim().to_owned()
    }

    /// A relay's word.
    fn relay(&mut self, host: &str) -> String {
        let (state, listen) = (self.state(host), format!("{}:4748", self.address(host)));
        let arguments = [
            BYWAY,
            "--state-dir",
            &state,
            "relay",
            "--listen",
            &listen,
            "--allow-destination",
            "10.66.0.0/16",
        ];
        let said = self.start(host, host, &arguments);
        let word = || fs::read_to_string(&said).unwrap_or_default().lines().next().map(str::to_owned);
        self.wait(&format!("a word of {host}"), || word().is_some_and(|word| !word.is_empty()));
        word().unwrap()
    }

    fn gateway(&mut self, host: &str, serves: &str, other: &str, behind: &str, relays: &[String]) {
        let relays: Vec<String> = relays.iter().map(|word| format!("\"{word}\"")).collect();
        let config = format!(
            "[gateway]\nserves = [\"{}/32\"]\nlisten = [\"{}:4749\"]\nstatus = \"{host}.sock\"\n\
             [[peer]]\nname = \"{other}\"\nkey = \"{}\"\naddresses = [\"{}:4749\"]\nallowed = [\"{}/32\"]\nrelays = [{}]\n\
             [[rule]]\nname = \"backup\"\nto-ports = [\"5201\"]\n",
            self.address(serves),
            self.address(host),
            self.key(other),
            self.address(other),
            self.address(behind),
            relays.join(", "),
        );
        let file = self.path(&format!("{host}.toml"));
        fs::write(&file, config).unwrap();
        let state = self.state(host);
        self.start(
            host,
            host,
            &[BYWAY, "--state-dir", &state, "gateway", "--config", file.to_str().unwrap()],
        );
    }

    fn gateways(&mut self) {
        let relays = [self.relay("one"), self.relay("two")];
        self.gateway("left", "alice", "right", "bob", &relays);
        self.gateway("right", "bob", "left", "alice", &relays);
        for host in ["left", "right"] {
            self.wait(&format!("three paths of {host}"), || {
                let status = self.status(host);
                status["peers"][0]["up"] == true
                    && status["peers"][0]["paths"].as_array().is_some_and(|paths| paths.len() >= 3)
            });
        }
    }

    fn status(&self, host: &str) -> Value {
        let socket = self.path(&format!("{host}.sock"));
        let output =
            self.byway(&["--json", "gateway", "status", "--socket", socket.to_str().unwrap()]).output();
        let said = String::from_utf8(output.unwrap().stdout).unwrap();
        let event: Value = serde_json::from_str(said.lines().last().unwrap_or("null")).unwrap();
        event["gateway"].clone()
    }

    /// Whether the lab kept its links on time.
    fn is_accurate(&self) -> bool {
        let said = self.must(self.byway(&["--json", "lab", "status"])).stdout;
        let said = String::from_utf8(said).unwrap();
        let event: Value = serde_json::from_str(said.lines().last().unwrap_or("null")).unwrap();
        event["labs"][0]["status"]["accurate"] == true
    }

    fn wait(&self, what: &str, done: impl Fn() -> bool) {
        let begun = Instant::now();
        while !done() {
            if begun.elapsed() > Duration::from_secs(30) {
                for (name, _) in &self.running {
                    for kind in ["out", "err"] {
                        let file = self.path(&format!("{name}.{kind}"));
                        eprintln!("--- {name}.{kind}: {}", fs::read_to_string(file).unwrap_or_default());
                    }
                }
                panic!("waited in vain for {what}");
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Goodput of a transfer from Alice to Bob, Mbit/s.
    fn iperf(&self, congestion: &str, options: &[&str]) -> f64 {
        let arguments = [&["iperf3", "-J", "-4", "-c", "bob", "-C", congestion], options].concat();
        let said: Value = serde_json::from_str(&self.says("alice", &arguments)).unwrap();
        said["end"]["sum_received"]["bits_per_second"].as_f64().unwrap() / 1e6
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = self.byway(&["-q", "lab", "down", "--all"]).output();
        for (_, child) in &mut self.running {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn three_ways() -> Result<(), Failed> {
    for _ in 0..TRIES {
        let mut site = Site::new();
        site.says("bob", &["iperf3", "-s", "-D"]);
        let plain = site.iperf("cubic", &["-t", "4"]);
        site.gateways();
        let found = ["cubic", "reno"].map(|congestion| {
            let carried = site.iperf(congestion, &["-t", "10", "-O", "2"]);
            let (left, right) = (site.status("left"), site.status("right"));
            println!("{congestion}: {carried:.1} Mbit/s, {plain:.1} by the plain route; {left} {right}");
            assert_eq!(left["counters"]["too_large"], 0, "{left}");
            assert_eq!(left["counters"]["failed_open"], 0, "{left}");
            (congestion, carried, right["waited_under_20ms"].as_f64().unwrap())
        });
        if !site.is_accurate() {
            eprintln!("too busy to measure");
            continue;
        }
        for (congestion, carried, soon) in found {
            assert!(carried > 18.0, "{congestion}: {carried} Mbit/s over three ways of 10");
            assert!(soon > 0.9, "{soon} of packets wait less than 20 ms to be put in order");
        }
        return Ok(());
    }
    Ok(())
}

fn fail_open() -> Result<(), Failed> {
    let mut site = Site::new();
    site.says("bob", &["iperf3", "-s", "-D"]);
    site.gateways();
    let rules = |host: &str| site.says(host, &["sh", "-c", "ip rule; nft list tables"]);
    assert!(rules("left").contains("byway_gw"), "{}", rules("left"));
    // Killed in the middle of a flow.
    let load = site.on("alice", &["iperf3", "-J", "-4", "-c", "bob", "-C", "cubic", "-t", "12"]);
    let mut load = { load }.stdout(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_secs(3));
    site.says("left", &["sh", "-c", "kill -9 $(pidof byway | tr ' ' '\\n' | while read p; do grep -qa left.toml /proc/$p/cmdline && echo $p; done)"]);
    let begun = Instant::now();
    let said = {
        use std::io::Read as _;
        let mut text = String::new();
        load.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        load.wait().unwrap();
        text
    };
    let said: Value = serde_json::from_str(&said).unwrap();
    println!("over after {:?}: {}", begun.elapsed(), said["end"]["sum_received"]);
    // The last seconds went by the plain route.
    let intervals = said["intervals"].as_array().unwrap();
    let last = intervals[intervals.len() - 3]["sum"]["bits_per_second"].as_f64().unwrap() / 1e6;
    assert!(last > 5.0, "{last} Mbit/s in the end: {said}");
    Ok(())
}
