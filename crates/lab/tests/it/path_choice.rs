//! Sessions whose paths are chosen by a rule of others.

use byway_lab::plan::{Mode, Overrides, Plan};
use byway_lab::record::Record;

/// A stream of `size` over 10 Mbit/s with an RTT of 20 ms, and 10 Mbit/s with 200 ms.
fn run(choice: &str, size: &str) -> Record {
    let source = format!(
        r#"
title = "A stream over two unequal paths"
duration = "20 s"
until_done = true

[[link]]
between = ["S", "D"]
rate = "10 Mbit/s"
delay = "10 ms"
queue = "20 ms"

[[link]]
between = ["R", "D"]
rate = "10 Mbit/s"
delay = "100 ms"
queue = "20 ms"

[[transfer]]
name = "bulk"
from = "S"
to = "D"
paths = ["direct"]
congestion = "cubic"
carrier = "exchange"

[transfer.exchange]
streams = [{{ bytes = "{size}" }}]
memory = "512 KiB"
path_choice = "{choice}"
uplinks = ["R"]
"#
    );
    let plan = Plan::read("plan.toml", &source, Mode::All, &Overrides::default());
    let setup = plan.expect("a plan").expect("for this mode").variants.remove(0);
    crate::world::go(&setup, 1)
}

/// The percentile of the waits for earlier bytes, in milliseconds.
fn wait(record: &Record, percent: u64) -> u64 {
    let waits = &record.transfers[0].order_waits;
    let all: u64 = waits.iter().map(|(_, frames)| frames).sum();
    let mut passed = 0;
    let reached = waits.iter().find(|(_, frames)| {
        passed += frames;
        passed * 100 >= all * percent
    });
    reached.expect("waits").0
}

#[test]
fn a_stream_arrives_whole_by_every_rule_and_each_decides_otherwise() {
    let mut traces = Vec::new();
    for choice in ["byway", "min-rtt", "blest", "ecf", "weighted"] {
        let record = run(choice, "3 MB");
        let bulk = &record.transfers[0];
        assert!(bulk.finished.is_some(), "{choice}: {bulk:?}");
        assert_eq!(bulk.exchange.as_ref().map(|exchange| exchange.mistakes.len()), Some(0), "{choice}");
        traces.push(record.trace);
    }
    traces.sort_unstable();
    traces.dedup();
    assert_eq!(traces.len(), 5);
}

#[test]
fn rules_that_leave_the_slow_path_idle_wait_less_for_earlier_bytes() {
    let [byway, blest] = ["byway", "blest"].map(|choice| wait(&run(choice, "100 MB"), 50));
    assert!(blest < byway, "{blest} ms with BLEST, {byway} ms by byway's choice");
}
