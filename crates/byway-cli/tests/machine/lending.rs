//! An end host behind a slow uplink relays for others. Meanwhile its own upload must keep at least
//! 95% of the rate that it has alone, and relayed bytes must stay within the quota.
//!
//! Needs root, `ip`, `iperf3`, `unshare`.

use crate::common::bench::{Bench, TRIES};
use crate::common::machine::{Measured, is_root, measures, missing, works};
use libtest_mimic::Trial;
use serde_json::Value;
use std::fs;
use std::time::Duration;

pub fn tests() -> Vec<Trial> {
    let root = is_root() && ["ip -V", "iperf3 -v", "unshare --net true"].into_iter().all(works);
    let lacks = missing(root, "it needs root and the programs ip, iperf3 and unshare");
    let mut tests = vec![
        measures("lending::its_own_upload_keeps_the_line_beside_a_strangers_transfer", lacks, || {
            upload(&USUAL)
        }),
        measures("lending::a_quota_is_kept", lacks, quota),
    ];
    if std::env::var_os(ALL_LINES).is_some() {
        tests.extend([
            measures("lending::its_own_upload_keeps_a_line_of_2_mbits", lacks, || upload(&THIN)),
            measures("lending::its_own_upload_keeps_a_line_of_30_mbits", lacks, || upload(&FAST)),
            measures("lending::its_own_upload_keeps_a_line_of_100_ms", lacks, || upload(&LONG)),
            measures("lending::its_own_upload_keeps_a_line_that_queues_in_the_host", lacks, || upload(&OWN)),
        ]);
    }
    tests
}

/// If this is set, other lines than the usual one are tried, too. A fast one takes most of two
/// processors.
const ALL_LINES: &str = "BYWAY_ALL_LINES";

/// A line of the host that lends, in Mbit/s and ms each way, and what it is told to lend.
struct Line {
    up: u32,
    down: u32,
    delay: u32,
    /// Seconds that the climb has before the stranger's rate is looked at, if no rate is told.
    climb_seconds: u64,
    lends: &'static [&'static [&'static str]],
    /// Whether the uplink's queue is at the host's own interface, as with PPPoE or LTE.
    queues_in_host: bool,
}

const USUAL: Line = Line {
    up: 8,
    down: 40,
    delay: 5,
    climb_seconds: 20,
    lends: &[&["--lend", "1M"], &["--lend", "5M"], &[]],
    queues_in_host: false,
};
const THIN: Line = Line { up: 2, down: 10, lends: &[&["--lend", "1M"], &[]], ..USUAL };
const FAST: Line = Line { up: 30, down: 100, climb_seconds: 80, lends: &[&["--lend", "8M"], &[]], ..USUAL };
const LONG: Line = Line { delay: 40, lends: &[&["--lend", "5M"], &[]], ..USUAL };
const OWN: Line = Line { queues_in_host: true, ..USUAL };

/// A sender whose direct way to the receiver is thin, a host that lends its line, and a registry.
const PLAN: &str = r#"
[[link]]
between = ["sender", "thin"]
rate = "400 kbit/s"
delay = "1 ms"
queue = "20 packets"
[[link]]
between = ["thin", "receiver"]
delay = "1 ms"
[[link]]
between = ["sender", "hub"]
rate = "100 Mbit/s"
delay = "10 ms"
[[link]]
between = ["lender", "hub"]
one_way = true
rate = "UP Mbit/s"
delay = "DELAY ms"
queue = "100 ms"
[[link]]
between = ["hub", "lender"]
one_way = true
rate = "DOWN Mbit/s"
delay = "DELAY ms"
queue = "100 ms"
[[link]]
between = ["hub", "receiver"]
rate = "100 Mbit/s"
delay = "10 ms"
[[link]]
between = ["hub", "registry"]
rate = "100 Mbit/s"
delay = "5 ms"
"#;

/// The programs of one run.
struct Site {
    bench: Bench,
}

impl Site {
    /// The lender is listed, and the stranger's transfer is to begin.
    fn new(line: &Line, quota: &str, lend: &[&str]) -> Self {
        let mut site = Self { bench: Bench::new() };
        let lab_up = if line.queues_in_host { 100 } else { line.up };
        let words = [("UP", lab_up), ("DOWN", line.down), ("DELAY", line.delay)];
        let plan = words.iter().fold(PLAN.to_owned(), |plan, (word, is)| plan.replace(word, &is.to_string()));
        site.bench.up("site", &plan);
        if line.queues_in_host {
            let route = site.bench.says("lender", &["ip", "-4", "route", "get", &site.bench.address("hub")]);
            let device = route.split_whitespace().skip_while(|word| *word != "dev").nth(1).unwrap();
            let rate = format!("{}mbit", line.up);
            let shape = ["root", "tbf", "rate", &rate, "burst", "6kb", "latency", "100ms"];
            site.bench.says("lender", &[&["tc", "qdisc", "replace", "dev", device], &shape[..]].concat());
        }
        site.start("registry", "registry", &["registry", "--listen", "0.0.0.0:4750"]);
        let join = site.word("registry", "join");
        for (host, more) in [("receiver", &[][..]), ("lender", lend)] {
            let into = site.bench.word(&format!("{host}-in"));
            fs::create_dir(&into).unwrap();
            let mut arguments = vec!["recv", into.as_str()];
            if host == "lender" {
                let lends = ["--also-relay", quota, "--registry", &join, "--allow-destination", "10.0.0.0/8"];
                arguments.extend(lends);
            }
            arguments.extend(more);
            site.start(host, host, &arguments);
        }
        site.wait("lender", "enrolled", |event| Some(event.clone()));
        site
    }

    fn start(&mut self, name: &str, host: &str, arguments: &[&str]) {
        let state = self.bench.word(&format!("{name}-state"));
        let fixed = [crate::common::bench::BYWAY, "--json", "--state-dir", &state];
        self.bench.start(name, host, &[&fixed, arguments].concat());
    }

    /// The stranger begins.
    fn send(&mut self) {
        let file = self.bench.word("file");
        fs::write(&file, vec![7; 200 << 20]).unwrap();
        let (ticket, ask) = (self.word("receiver", "ticket"), self.word("registry", "use"));
        self.start("sender", "sender", &["send", &file, &ticket, "--registry", &ask, "--priority", "normal"]);
    }

    /// A field of a program's first event.
    fn word(&self, name: &str, field: &str) -> String {
        self.wait(name, "ready", |event| event[field].as_str().map(str::to_owned))
    }

    /// Looks for an event of a program.
    fn wait<T>(&self, name: &str, event: &str, look: impl Fn(&Value) -> Option<T>) -> T {
        self.bench.wait(&format!("{event} of {name}"), || self.last(name, event).as_ref().and_then(&look))
    }

    /// The last event of this kind.
    fn last(&self, name: &str, event: &str) -> Option<Value> {
        let said = self.bench.said(name);
        let mut events = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        events.rfind(|found| found["event"] == event)
    }

    /// Bytes that the lender relayed so far, by its own account.
    fn relayed(&self) -> u64 {
        let before = self.bench.said("lender").lines().count();
        self.bench.signal("lender", "USR1");
        self.bench.wait("counters", || (self.bench.said("lender").lines().count() > before).then_some(()));
        self.last("lender", "counters").map_or(0, |event| event["month_bytes"].as_u64().unwrap())
    }

    /// The host's own upload by the kernel's CUBIC, in Mbit/s.
    fn own(&self, seconds: &str) -> f64 {
        let said = self.bench.iperf("lender", &["-c", "receiver", "-C", "cubic", "-t", seconds]);
        said["end"]["sum_received"]["bits_per_second"].as_f64().unwrap() / 1e6
    }
}

/// The stranger's rate through the lender in Mbit/s, over some seconds in which the host itself is
/// idle.
fn idle(site: &Site, seconds: u64) -> f64 {
    let before = site.relayed();
    std::thread::sleep(Duration::from_secs(seconds));
    (site.relayed() - before) as f64 * 8.0 / 1e6 / seconds as f64
}

/// Part of the line's upload that the stranger must have while the host is idle.
const IDLE_PART: f64 = 5.0 / 8.0;

/// [`idle`] over 10 s, at most three times: a loss just before such a span may halve the
/// stranger's rate in it, and a climb may still go on. Ends as soon as the rate is enough.
fn idle_best(site: &Site, line: &Line) -> f64 {
    let mut best: f64 = 0.0;
    for _ in 0..3 {
        best = best.max(idle(site, 10));
        if best >= IDLE_PART * f64::from(line.up) {
            break;
        }
    }
    best
}

/// Rates of one line with one `--lend`, in Mbit/s.
struct Upload {
    /// The host's own upload before there is a stranger.
    alone: f64,
    /// The stranger's through the host while the host is idle.
    relayed: f64,
    /// The host's own upload beside the stranger.
    beside: f64,
}

/// All that a line may lend is tried at once, each in a network of its own.
fn upload(line: &Line) -> Measured {
    let all = std::thread::scope(|scope| {
        let runs: Vec<_> =
            line.lends.iter().map(|lend| scope.spawn(|| measured_upload(line, lend))).collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect::<Vec<_>>()
    });
    let mut is_measured = true;
    for (lend, found) in line.lends.iter().zip(all) {
        let Some(Upload { alone, relayed, beside }) = found else {
            is_measured = false;
            continue;
        };
        let figures = format!(
            "{} Mbit/s, {lend:?}: {alone:.2} Mbit/s alone, {beside:.2} ({:.3}) beside a stranger, who has {relayed:.2} while the host is idle",
            line.up,
            beside / alone
        );
        eprintln!("{figures}");
        if beside < 0.95 * alone || relayed < IDLE_PART * f64::from(line.up) {
            return Err(figures.into());
        }
    }
    Ok(is_measured.then_some(()))
}

/// The rates in a network of their own; `None` if the lab was too late in every try.
fn measured_upload(line: &Line, lend: &[&str]) -> Option<Upload> {
    (0..TRIES).find_map(|_| {
        let mut site = Site::new(line, "10G/month", lend);
        site.bench.serve("receiver");
        let alone = site.own("10");
        // What was the host's own in the last second is not lent, and a relay that answers no probe
        // is not tried again.
        std::thread::sleep(Duration::from_secs(3));
        site.send();
        site.bench.wait("the relay in use", || (site.relayed() > 1 << 20).then_some(()));
        // Without --lend the rate is found by a climb.
        std::thread::sleep(Duration::from_secs(if lend.is_empty() { line.climb_seconds } else { 5 }));
        let relayed = idle_best(&site, line);
        let beside = site.own("10");
        site.bench.is_accurate().then_some(Upload { alone, relayed, beside })
    })
}

fn quota() -> Measured {
    let mut site = Site::new(&USUAL, "30M/day", &["--lend", "1M"]);
    site.send();
    let most = 30 << 20;
    // The stranger wants 200 MiB. When nothing more passes it is spent, or as good as.
    let mut before = 0;
    site.bench.wait("the quota spent", || {
        std::thread::sleep(Duration::from_secs(3));
        let now = site.relayed();
        let is_spent = now > most / 2 && now == before;
        before = now;
        is_spent.then_some(())
    });
    let by_link = site.bench.link("lender>hub")["bytes"].as_u64().unwrap();
    eprintln!("relayed {before} of {most} bytes, {by_link} on the line");
    assert!((most * 9 / 10..=most).contains(&before), "{before} of {most}");
    assert!((most * 9 / 10..=most * 11 / 10).contains(&by_link), "{by_link} of {most} on the line");
    Ok(Some(()))
}
