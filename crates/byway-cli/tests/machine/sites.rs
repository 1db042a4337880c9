//! TCP flows between hosts of two sites, carried by a gateway at each site. A relay or a gateway is
//! killed. Each flow must arrive intact.
//!
//! ```text
//!                          40 Mbit/s each
//!   alice ── left ───────────────────────── right ── bob
//!             ├──────────── one ───────────────┤
//!             ├──────────── two ───────────────┤
//!             │    carol ────┘                 └── dave
//! ```
//!
//! Needs root, `ip`, `nft` and `iperf3`, and some tests `python3`.

mod flows;
pub mod pour;

use crate::common::machine::{Measured, measures, missing, test, works};
use crate::common::sites::Sites;
use libtest_mimic::{Failed, Trial};
use serde_json::Value;
use std::fs;
use std::time::{Duration, Instant};

pub fn tests() -> Vec<Trial> {
    let lacks = Sites::missing();
    let python = lacks.or_else(|| missing(works("python3 -V"), "it needs python3"));
    vec![
        test("sites::flows_arrive_whole_whatever_dies_on_the_way", lacks, whole),
        measures("sites::flows_yield_to_who_needs_the_line_and_open_soon", lacks, soon),
        test("sites::gateways_among_the_hosts_they_serve_make_no_loop", lacks, no_loop),
        test("sites::paths_that_become_narrower_stop_no_flow", lacks, narrower),
        test("sites::what_a_router_cut_into_fragments_goes_the_plain_route", lacks, fragments),
        test("sites::flows_are_carried_as_the_rules_say_with_all_that_tcp_has", lacks, flows::classified),
        test("sites::each_flow_has_a_bundle_of_its_own_if_asked_for", lacks, flows::bundled),
        test("sites::observing_shows_what_would_be_carried", python, flows::observed),
        test("sites::with_fail_closed_nothing_takes_the_plain_route", python, flows::closed),
        test("sites::of_a_file_read_again_the_rules_count", lacks, flows::reread),
    ]
}

/// What flows carry while relays and gateways are killed.
#[derive(Clone, Copy)]
struct Scale {
    /// Bytes of each flow.
    bytes: u64,
    /// Seconds for which another host needs the line of a relay.
    load_seconds: &'static str,
}

/// Enough for each flow to be under way at each event.
const SMALL: Scale = Scale { bytes: 24_000_000, load_seconds: "2" };
/// Enough for rates to be measured.
const FULL: Scale = Scale { bytes: 50_000_000, load_seconds: "6" };
/// The first port of the flows, each of which has its own, and all of them.
const PORT: u16 = 5201;
const PORTS: &str = "5201-5209";
/// The time within which flows go on by the plain route.
const FAIL_OPEN: Duration = Duration::from_secs(3);

const PLAN: &str = r#"
[[link]]
between = ["alice", "left"]
rate = "400 Mbit/s"
delay = "0.1 ms"
queue = "1000 packets"
[[link]]
between = ["right", "bob"]
rate = "400 Mbit/s"
delay = "0.1 ms"
queue = "1000 packets"
[[link]]
between = ["left", "right"]
rate = "40 Mbit/s"
delay = "10 ms"
queue = "100 packets"
[[link]]
between = ["left", "one"]
rate = "400 Mbit/s"
delay = "5 ms"
queue = "1000 packets"
[[link]]
between = ["one", "right"]
rate = "40 Mbit/s"
delay = "10 ms"
queue = "100 packets"
[[link]]
between = ["left", "two"]
rate = "400 Mbit/s"
delay = "5 ms"
queue = "1000 packets"
loss = "0.2 %"
duplication = "1 %"
reordering = { share = "2 %", delay = "3 ms" }
[[link]]
between = ["two", "right"]
rate = "40 Mbit/s"
delay = "12 ms"
queue = "100 packets"
[[link]]
between = ["carol", "one"]
rate = "400 Mbit/s"
delay = "0.1 ms"
queue = "1000 packets"
[[link]]
between = ["right", "dave"]
rate = "400 Mbit/s"
delay = "0.1 ms"
queue = "1000 packets"
"#;

/// A flow that is under way: a program at either end.
struct Flow {
    name: String,
    sink: String,
    bytes: u64,
}

impl Flow {
    /// Lets a host send so much to another one's port, by a congestion control of the kernel.
    fn start(sites: &mut Sites, congestion: &str, [from, to]: [&str; 2], port: u16, bytes: u64) -> Self {
        Self::between(sites, congestion, from, (to, to), port, bytes)
    }

    /// The same, to a host by a name or an address of it.
    fn between(
        sites: &mut Sites,
        congestion: &str,
        from: &str,
        (at, to): (&str, &str),
        port: u16,
        bytes: u64,
    ) -> Self {
        let flow = Self { name: format!("{congestion}-{port}"), sink: format!("sink-{port}"), bytes };
        let sink = pour::sink_words(to.starts_with('['), port);
        sites.bench.start(&flow.sink, at, &sink.each_ref().map(String::as_str));
        sites.bench.line(&flow.sink);
        let pour = pour::pour_words(&format!("{to}:{port}"), congestion, bytes);
        sites.bench.start(&flow.name, from, &pour.each_ref().map(String::as_str));
        flow
    }

    /// Bytes that have arrived.
    fn arrived(&self, sites: &Sites) -> u64 {
        let said = sites.bench.said(&self.sink);
        said.lines().filter_map(|line| line.parse().ok()).next_back().unwrap_or(0)
    }

    /// Waits for its end. What came is what was sent.
    #[track_caller]
    fn end(&self, sites: &mut Sites) {
        let (sent, came) = (sites.bench.end(&self.name), sites.bench.end(&self.sink));
        assert!(sent.success() && came.success(), "{}: {}", self.name, sites.bench.complained(&self.name));
        let (sent, came) = (sites.bench.line(&self.name), sites.bench.said(&self.sink));
        assert_eq!(came.lines().rev().take(2).collect::<Vec<_>>(), [&sent, &self.bytes.to_string()]);
    }
}

/// A flow from Alice to Bob for each congestion control that the kernel has, on the ports from
/// [`PORT`] on.
struct Flows {
    flows: Vec<Flow>,
    /// Of each flow.
    bytes: u64,
    begun: Instant,
}

impl Flows {
    fn start(sites: &mut Sites, bytes: u64) -> Self {
        let known = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
        let has = |name: &&str| known.split_whitespace().any(|known| known == *name);
        let (names, missing): (Vec<_>, Vec<_>) = ["reno", "cubic", "bbr"].into_iter().partition(has);
        for name in missing {
            eprintln!("a flow of {name} is skipped: this kernel does not have it");
        }
        let start = |(name, port)| Flow::start(sites, name, ["alice", "bob"], port, bytes);
        Self { flows: names.into_iter().zip(PORT..).map(start).collect(), bytes, begun: Instant::now() }
    }

    /// Bytes of each that have arrived.
    fn arrived(&self, sites: &Sites) -> Vec<u64> {
        self.flows.iter().map(|flow| flow.arrived(sites)).collect()
    }

    /// Waits until so much of each has arrived.
    fn wait(&self, sites: &Sites, bytes: &[u64]) {
        sites.bench.wait(&format!("{bytes:?} bytes"), || {
            let arrived = self.arrived(sites);
            arrived.iter().zip(bytes).all(|(arrived, bytes)| arrived >= bytes).then_some(())
        });
    }

    /// Waits until so many percent of each have arrived, and says what comes then.
    fn wait_percent(&self, sites: &Sites, percent: u64, what: &str) {
        self.wait(sites, &vec![self.bytes / 100 * percent; self.flows.len()]);
        self.tell(sites, what);
    }

    fn tell(&self, sites: &Sites, what: &str) {
        let arrived: Vec<u64> = self.arrived(sites).iter().map(|bytes| bytes / 1_000_000).collect();
        let plain = ["failed_open", "too_large"].map(|counter| sites.count("left", counter));
        println!(
            "{:6.1} s: {what}; {arrived:?} MB have arrived; by the plain route for want of a session {}, of room {} packets",
            self.begun.elapsed().as_secs_f64(),
            plain[0],
            plain[1]
        );
    }
}

/// What is seen while two sites lose relays and gateways.
struct Survived {
    /// The flows went the plain route so long after the gateway at the exit was killed.
    opened: Duration,
    /// Goodput of a flow that needs the line of a relay, in Mbit/s.
    had: f64,
    /// A path that yielded to it.
    yielded: Option<Value>,
    /// Whether the lab kept its links on time.
    accurate: bool,
}

fn whole() -> Result<(), Failed> {
    survive(SMALL).map(drop)
}

fn soon() -> Measured {
    let Survived { opened, had, yielded, accurate } = survive(FULL)?;
    if !accurate {
        return Ok(None);
    }
    assert!(opened < FAIL_OPEN, "open after {opened:?} only");
    assert!(had > 24.0, "{had} of 40 Mbit/s for those who need it");
    assert!(yielded.is_some(), "no path was given up to others");
    Ok(Some(()))
}

fn survive(Scale { bytes, load_seconds }: Scale) -> Result<Survived, Failed> {
    let mut sites = Sites::new(PLAN);
    sites.bench.serve("dave");
    let relays = [sites.relay("one"), sites.relay("two")];
    sites.configure(PORTS, "", &relays);
    sites.start_both(3);
    let whole = sites.installed("right");
    assert_eq!(whole.len(), 3, "a rule of routing, a table, and a device: {whole:?}");
    let flows = Flows::start(&mut sites, bytes);

    flows.wait_percent(&sites, 5, "left reads its rules again");
    sites.bench.signal("left", "HUP");
    sites.bench.wait("left to do so", || sites.bench.complained("left").contains("read again").then_some(()));

    flows.wait_percent(&sites, 10, "the relay two is killed");
    sites.bench.stop("two", "KILL");

    flows.wait_percent(&sites, 25, "others need the way by one");
    let load = ["iperf3", "-J", "-4", "-c", "dave", "-C", "cubic", "-t", load_seconds, "-O", "1"];
    sites.bench.start("load", "carol", &load);
    let mut yielded = None;
    while !sites.bench.is_over("load") {
        yielded = yielded.or_else(|| choked(&sites.status("left")));
        std::thread::sleep(Duration::from_millis(50));
    }
    let load: Value = serde_json::from_str(&sites.bench.said("load"))?;
    let had = load["end"]["sum_received"]["bits_per_second"].as_f64().unwrap() / 1e6;
    flows.tell(&sites, &format!("others had {had:.1} of 40 Mbit/s; {}", yielded.clone().unwrap_or_default()));

    flows.wait_percent(&sites, 50, "the gateway right is killed");
    let killed = Instant::now();
    sites.bench.stop("right", "KILL");
    let left = sites.installed("right");
    assert_eq!(left.len(), 2, "the device goes with its process, the rest is left over: {left:?}");
    sites.bench.wait("left to open", || (sites.count("left", "failed_open") > 0).then_some(()));
    let opened = killed.elapsed();
    let further: Vec<u64> =
        flows.arrived(&sites).iter().map(|arrived| (arrived + 4_000_000).min(bytes)).collect();
    flows.wait(&sites, &further);
    flows.tell(&sites, &format!("open after {:.2} s; right is started anew", opened.as_secs_f64()));
    sites.start("right");
    sites.wait_paths("left", 2);
    sites.bench.wait("what was left over to be replaced", || {
        (sites.installed("right").len() == whole.len()).then_some(())
    });
    flows.tell(&sites, "there is a session again");
    // On a busy machine the others may be over by now.
    Flow::start(&mut sites, "cubic", ["alice", "bob"], PORT + 8, 10_000_000).end(&mut sites);
    sites.bench.wait("flows to be carried again", || {
        (sites.count("right", "delivered_bytes") > 5_000_000).then_some(())
    });
    flows.tell(&sites, "flows are carried again");

    for flow in &flows.flows {
        flow.end(&mut sites);
        flows.tell(&sites, &format!("{} is over", flow.name));
    }
    let accurate = sites.bench.is_accurate();
    println!("{}\n{}", sites.status("left"), sites.status("right"));
    for host in ["left", "right"] {
        assert_eq!(sites.bench.stop(host, "TERM").code(), Some(0), "{}", sites.bench.complained(host));
        assert_eq!(sites.installed(host), Vec::<String>::new(), "{host}");
    }
    Ok(Survived { opened, had, yielded, accurate })
}

/// A path of a gateway that yields.
fn choked(status: &Value) -> Option<Value> {
    status["peers"][0]["paths"].as_array()?.iter().find(|path| path["state"] == "choked").cloned()
}

fn no_loop() -> Result<(), Failed> {
    let mut sites = Sites::new(PLAN);
    let relays = [sites.relay("one"), sites.relay("two")];
    sites.configure(PORTS, "", &relays);
    // Each gateway serves itself, and everybody else, and all TCP is background: the tunnel's own
    // packets among them, if any were.
    let [alice, left, right, bob] = ["alice", "left", "right", "bob"].map(|host| sites.bench.address(host));
    for (host, [own, behind, other, there]) in
        [("left", [&left, &alice, &right, &bob]), ("right", [&right, &bob, &left, &alice])]
    {
        sites.rewrite(host, &format!("[\"{behind}/32\"]"), &format!("[\"{behind}/32\", \"{own}/32\"]"));
        sites.rewrite(host, &format!("[\"{there}/32\"]"), &format!("[\"{there}/32\", \"{other}/32\"]"));
        sites.rewrite(host, &format!("to-ports = [\"{PORTS}\"]"), "");
    }
    sites.start_both(3);
    const MUCH: u64 = 5_000_000;
    Flow::start(&mut sites, "cubic", ["alice", "bob"], PORT, MUCH).end(&mut sites);
    // A gateway's own TCP is its own affair.
    Flow::start(&mut sites, "cubic", ["left", "bob"], PORT + 1, MUCH).end(&mut sites);
    let (left, right) = (sites.status("left"), sites.status("right"));
    let carried = left["peers"][0]["carried_bytes"].as_u64().unwrap();
    assert!((MUCH..MUCH * 12 / 10).contains(&carried), "{left}");
    for status in [left, right] {
        sites.assert_none(&status, &["lost_sessions"]);
    }
    Ok(())
}

/// The plan with lines so slow that a flow of 12 MB is still under way when they become narrow.
fn slow_lines() -> String {
    PLAN.replace("\"40 Mbit/s\"", "\"10 Mbit/s\"")
}

fn narrower() -> Result<(), Failed> {
    let mut sites = Sites::new(&slow_lines());
    let relays = [sites.relay("one"), sites.relay("two")];
    sites.configure(PORTS, "", &relays);
    sites.start_both(3);
    sites.know_packet_sizes(3);
    const MUCH: u64 = 12_000_000;
    let flow = Flow::start(&mut sites, "cubic", ["alice", "bob"], PORT, MUCH);
    sites.bench.wait("the flow", || (flow.arrived(&sites) > MUCH / 4).then_some(()));
    // Now routers say that packets are too big, to the gateway and to the host.
    for device in ["right", "one", "two"] {
        sites.bench.says("left", &["ip", "link", "set", device, "mtu", "1300"]);
    }
    flow.end(&mut sites);
    let left = sites.status("left");
    sites.assert_none(&left, &["lost_sessions"]);
    assert!(left["counters"]["too_large"].as_u64() > Some(0), "{left}");
    Ok(())
}

fn fragments() -> Result<(), Failed> {
    let hall = "between = [\"alice\", \"hall\"]\n[[link]]\nbetween = [\"hall\", \"left\"]";
    let mut sites = Sites::new(&PLAN.replacen("between = [\"alice\", \"left\"]", hall, 1));
    // A router before the gateway has a line for less than hosts send, and may cut what they send:
    // they do not forbid it.
    sites.bench.says("hall", &["ip", "link", "set", "left", "mtu", "1000"]);
    sites.bench.says("alice", &["sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_no_pmtu_disc"]);
    sites.configure(PORTS, "", &[]);
    sites.start_both(1);
    let flow = Flow::start(&mut sites, "cubic", ["alice", "bob"], PORT, 4_000_000);
    flow.end(&mut sites);
    let left = sites.status("left");
    assert!(left["passed"]["fragment"].as_u64() > Some(1_000), "{left}");
    assert!(left["counters"]["flows"].as_u64() > Some(0), "it was never a flow: {left}");
    Ok(())
}
