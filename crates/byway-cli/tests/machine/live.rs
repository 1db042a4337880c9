//! `byway source` sends records to `byway sink` over TCP relays between network namespaces. The
//! network is the testbed of Wang et al., section V (`byway_control::wang` names the paper), with
//! real processes.
//!
//! ```text
//!   s1 ─┬─ hub ─┬─ r1 ── 256 kbit/s ─┐
//!   s2 ─┘       ├─ r2 ── 256 kbit/s ─┼─ sink
//!               └─ r3 ──  56 kbit/s ─┘
//! ```
//!
//! The sources reach the sink only through relays. Needs root and `ip`, `tc`, `nft`; otherwise the
//! tests are reported as ignored.

use crate::common::machine::{Measured, PATIENCE, measures, missing, test, wait_for};
use crate::common::spaces::Spaces;
use crate::common::{Place, Running};
use libtest_mimic::{Failed, Trial};
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// The relays, their addresses, and what each carries to the sink.
const RELAYS: [(&str, &str, &str); 3] =
    [("r1", "10.82.11.1", "256kbit"), ("r2", "10.82.12.1", "256kbit"), ("r3", "10.82.13.1", "56kbit")];
/// The sources, their relays, and their demands in bytes per second: 250 and 300 kbit/s with the
/// paper's headers.
const SOURCES: [(&str, [usize; 2], u64); 2] = [("s1", [0, 1], 29_640), ("s2", [1, 2], 35_560)];
/// Bytes of a record: the paper's packets have 1008, of which 52 are headers.
const RECORD: usize = 956;

pub fn tests() -> Vec<Trial> {
    let possible = Spaces::possible(&["nft -v", "tc -V"]);
    let lacks = missing(possible, "it needs root and the programs ip, tc and nft");
    vec![
        test("live::a_relay_is_killed_and_no_record_is_missing_or_twice", lacks, a_relay_is_killed),
        test("live::a_relay_falls_silent_and_no_record_is_missing_or_twice", lacks, a_relay_falls_silent),
        test("live::with_all_relays_gone_a_source_waits_and_goes_on", lacks, all_relays_gone),
        test("live::a_demand_above_the_uplink_gets_what_there_is", lacks, more_than_the_uplink),
        measures("live::two_sources_share_three_relays", lacks, two_sources_share_three_relays),
        measures("live::what_a_killed_relay_leaves_is_used", lacks, what_a_killed_relay_leaves_is_used),
    ]
}

struct Net {
    spaces: Spaces,
    place: Place,
    relays: Vec<(Running, String)>,
    _sink: Running,
    ticket: String,
}

impl Net {
    fn new(tag: &str) -> Self {
        let hosts = [("s1", "10.82.1.1"), ("s2", "10.82.2.1"), ("sink", "10.82.9.1")];
        let relays = RELAYS.map(|(name, address, _)| (name, address));
        let spaces = Spaces::star(tag, &[&hosts[..], &relays].concat());
        for ((name, address, rate), number) in RELAYS.iter().zip(1..) {
            let (here, there) = (format!("10.83.{number}.1"), format!("10.83.{number}.2"));
            let device = format!("from-{name}");
            spaces.line([(name, "onward", &here), ("sink", &device, &there)]);
            spaces.wait("sink", &device);
            spaces.says("sink", &["ip", "route", "add", address, "via", &here]);
            // The paper's lines are serial ports: they carry no headers of Ethernet.
            let shape = ["tc", "qdisc", "add", "dev", "onward", "root", "stab", "overhead", "-14"];
            let rated = ["tbf", "rate", rate, "burst", "1600", "limit", "12000"];
            spaces.says(name, &[&shape[..], &rated].concat());
        }
        let drop = "add table ip n; add chain ip n pass { type filter hook forward priority 0; }; \
                    add rule ip n pass ip daddr 10.82.9.1 drop";
        spaces.says("hub", &["nft", drop]);
        let place = Place::new();
        let relays = RELAYS.map(|(name, address, _)| relay(&spaces, &place, name, address)).into();
        Self::with(spaces, place, relays)
    }

    fn with(spaces: Spaces, place: Place, relays: Vec<(Running, String)>) -> Self {
        let start = |host: &str, arguments: &[&str]| spaces.byway(host, &place.path(host), arguments);
        let out = place.path("out").display().to_string();
        let words = relays.iter().flat_map(|(_, word)| ["--relay", word.as_str()]);
        let arguments = ["sink", &out, "--listen", "0.0.0.0:4760"].into_iter().chain(words);
        let mut sink = start("sink", &arguments.collect::<Vec<_>>());
        let ready = sink.event("ready");
        let ticket = ready["ticket"].as_str().unwrap().to_owned();
        Self { spaces, place, relays, _sink: sink, ticket }
    }

    /// A source that gives records as fast as they are taken; so many of them, if that is said.
    fn source(&self, number: usize, most: Option<usize>) -> Running {
        self.source_of(number, most, SOURCES[number].2, "64K")
    }

    /// The same with another demand, and another size of what is kept.
    fn source_of(&self, number: usize, most: Option<usize>, demand: u64, keep: &str) -> Running {
        let (name, relays, _) = SOURCES[number];
        let demand = demand.to_string();
        let words = relays.iter().flat_map(|relay| ["--relay", self.relays[*relay].1.as_str()]);
        let fixed = ["source", "--name", name, "--to", &self.ticket, "--demand", &demand, "--keep", keep];
        let (reader, mut writer) = std::io::pipe().unwrap();
        let mut command = self.spaces.on(name);
        command.arg(env!("CARGO_BIN_EXE_byway")).args(fixed).args(words).arg("--json");
        command.env("BYWAY_STATE_DIR", self.place.path(name));
        command.stdin(reader).stdout(Stdio::piped()).stderr(Stdio::piped());
        std::thread::spawn(move || {
            (0..most.unwrap_or(usize::MAX)).all(|number| writer.write_all(record(number).as_bytes()).is_ok())
        });
        Running::start(command)
    }

    /// The source ends well, and the sink has all of its records, each once and in order.
    #[track_caller]
    fn has_all(&self, mut source: Running, number: usize, records: usize) {
        let result = source.event("result");
        assert_eq!((&result["exit"], &result["written_records"][0]), (&0.into(), &records.into()));
        let expected: String = (0..records).map(record).collect();
        assert!(fs::read_to_string(self.file(number)).unwrap() == expected, "the records differ");
    }

    fn file(&self, source: usize) -> PathBuf {
        self.place.path("out").join(SOURCES[source].0)
    }

    fn bytes(&self, source: usize) -> u64 {
        fs::metadata(self.file(source)).map_or(0, |file| file.len())
    }

    /// Bytes per second over `span`: the records of each source that are written, and all that the
    /// three lines carry.
    fn rates(&self, span: Duration) -> ([f64; 2], f64) {
        let count = || ([0, 1].map(|source| self.bytes(source)), self.line_bytes());
        let ((records, lines), at) = (count(), Instant::now());
        std::thread::sleep(span);
        let (now, seconds) = (count(), at.elapsed().as_secs_f64());
        let rate = |now: u64, before: u64| (now - before) as f64 / seconds;
        ([0, 1].map(|source| rate(now.0[source], records[source])), rate(now.1, lines))
    }

    /// Bytes that the lines of all relays have carried so far.
    fn line_bytes(&self) -> u64 {
        let sent = |(name, ..): &(&str, &str, &str)| {
            let told = self.spaces.says(name, &["tc", "-s", "-j", "qdisc", "show", "dev", "onward", "root"]);
            let told: serde_json::Value = serde_json::from_str(&told).unwrap();
            told[0]["bytes"].as_u64().unwrap()
        };
        RELAYS.iter().map(sent).sum()
    }

    /// Waits until so many bytes of a source are written.
    #[track_caller]
    fn wait_for(&self, source: usize, bytes: u64) {
        let come = wait_for(PATIENCE, || (self.bytes(source) >= bytes).then_some(()));
        assert!(come.is_some(), "{} of {bytes} bytes came", self.bytes(source));
    }
}

/// A relay, and its word.
fn relay(spaces: &Spaces, place: &Place, name: &str, address: &str) -> (Running, String) {
    let arguments = ["relay", "--listen", address, "--allow-destination", "10.0.0.0/8"];
    let mut relay = spaces.byway(name, &place.path(name), &arguments);
    let word = relay.event("ready")["word"].as_str().unwrap().to_owned();
    (relay, word)
}

fn record(number: usize) -> String {
    format!("{number:09} {}\n", "x".repeat(RECORD - 11))
}

fn a_relay_is_killed() -> Result<(), Failed> {
    let net = Net::new("k");
    let records = 260;
    let source = net.source(0, Some(records));
    net.wait_for(0, 20_000);
    net.relays[0].0.signal("KILL");
    net.has_all(source, 0, records);
    Ok(())
}

/// The relay's host drops all packets, so no connection is reset.
fn a_relay_falls_silent() -> Result<(), Failed> {
    let net = Net::new("b");
    let records = 260;
    let source = net.source(0, Some(records));
    net.wait_for(0, 20_000);
    let drop = "add table ip silent; add chain ip silent heard { type filter hook input priority 0; policy drop; }; \
                add chain ip silent said { type filter hook output priority 0; policy drop; }";
    net.spaces.says(RELAYS[0].0, &["nft", drop]);
    net.has_all(source, 0, records);
    Ok(())
}

fn all_relays_gone() -> Result<(), Failed> {
    let mut net = Net::new("g");
    let records = 260;
    let mut source = net.source(0, Some(records));
    net.wait_for(0, 20_000);
    for number in SOURCES[0].1 {
        net.relays[number].0.signal("KILL");
    }
    let told = wait_for(PATIENCE, || (!source.event("source")["slow_because"].is_null()).then_some(()));
    assert!(told.is_some());
    for number in SOURCES[0].1 {
        let (name, address, _) = RELAYS[number];
        // The words of the run before are as good as its own.
        net.relays[number].0 = relay(&net.spaces, &net.place, name, address).0;
    }
    net.has_all(source, 0, records);
    Ok(())
}

fn more_than_the_uplink() -> Result<(), Failed> {
    let net = Net::new("u");
    let records = 520;
    // All is kept at once, and waits longer than a source calls quick.
    let mut source = net.source_of(0, Some(records), 1 << 20, "1M");
    let told = wait_for(PATIENCE, || {
        let event = source.event("source");
        let why = event["slow_because"].as_str().unwrap_or_default();
        // It says so of the paths, and not of the input.
        (!why.is_empty() && !why.contains("--demand") && event["connected"] == true).then_some(())
    });
    assert!(told.is_some());
    net.has_all(source, 0, records);
    Ok(())
}

/// The least part of its demand that each source must carry in the median of all runs, from 20
/// seconds after the second source began. The paper's bound is .93. The second source reaches .925
/// to .938, so a busy machine may bring it below .93.
const PART: f64 = 0.9;
/// Runs, of which the median counts. Together they measure for 400 s.
const RUNS: usize = 16;

fn two_sources_share_three_relays() -> Measured {
    let run = || -> [f64; 2] {
        let net = Net::new("w");
        let _first = net.source(0, None);
        net.wait_for(0, 5 * SOURCES[0].2);
        let _second = net.source(1, None);
        net.wait_for(1, 1);
        std::thread::sleep(Duration::from_secs(20));
        let (rates, line_rate) = net.rates(Duration::from_secs(25));
        eprintln!("a byte of records takes {:.3} bytes of the lines", line_rate / rates.iter().sum::<f64>());
        std::array::from_fn(|number| rates[number] / SOURCES[number].2 as f64)
    };
    let runs = at_once(run);
    for (number, (name, ..)) in SOURCES.iter().enumerate() {
        let (median, parts) = median(runs.iter().map(|parts| parts[number]).collect());
        eprintln!("{name}: {median:.3} of its demand in the median of {RUNS} runs: {parts:.3?}");
        assert!(median >= PART, "{name} has {median:.3} of its demand");
    }
    Ok(Some(()))
}

/// The least part of the line that records take after a relay was killed, from second 10 on: in the
/// median of all runs (`LEFT`), and in each run (`LEAST`).
const LEFT: f64 = 0.8;
const LEAST: f64 = 0.7;

fn what_a_killed_relay_leaves_is_used() -> Measured {
    let run = || {
        let net = Net::new("l");
        let _source = net.source(0, None);
        net.wait_for(0, 10 * SOURCES[0].2);
        net.relays[1].0.signal("KILL");
        std::thread::sleep(Duration::from_secs(10));
        let ([rate, _], _) = net.rates(Duration::from_secs(20));
        rate * 8.0 / 256e3
    };
    let (median, parts) = median(at_once(run));
    eprintln!("records take {median:.3} of the line in the median of {RUNS} runs: {parts:.3?}");
    assert!(
        median >= LEFT && parts[0] >= LEAST,
        "records take {median:.3} of the line, {:.3} at worst",
        parts[0]
    );
    Ok(Some(()))
}

/// Does the same `RUNS` times, all at once. Its lines are so slow that the runs do not disturb each
/// other.
fn at_once<T: Send>(run: impl Fn() -> T + Sync) -> Vec<T> {
    std::thread::scope(|scope| {
        let runs: Vec<_> = (0..RUNS).map(|_| scope.spawn(&run)).collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    })
}

/// The median of all runs, and what each has, in ascending order.
fn median(mut parts: Vec<f64>) -> (f64, Vec<f64>) {
    parts.sort_by(f64::total_cmp);
    ((parts[RUNS / 2 - 1] + parts[RUNS / 2]) / 2.0, parts)
}
