//! Small records made by hand.

use byway_lab::Record;
use byway_lab::record::{LinkRecord, PathRecord, RequestRecord, RequestsRecord, TransferRecord};

/// Seconds between samples of every record made here.
pub const SAMPLE: f64 = 0.5;

/// A run of 60 s that counts from second 10.
pub fn record(axes: &[(&str, &str)], seed: u64) -> Record {
    Record {
        axes: axes.iter().map(|&(axis, label)| (axis.to_owned(), label.to_owned())).collect(),
        seed,
        trace: seed * 1000 + axes.len() as u64,
        sample: SAMPLE,
        duration: 60.0,
        cut: 10.0,
        ..Record::default()
    }
}

/// Bytes by sample at so many Mbit/s until each second: `[(20.0, 8.0), (60.0, 4.0)]`.
pub fn bytes(steps: &[(f64, f64)]) -> Vec<u64> {
    let end = steps.last().expect("a step").0;
    let by = |second: f64| {
        let mut from = 0.0;
        let mut bytes = 0.0;
        for &(until, rate) in steps {
            bytes += (second.min(until) - from).max(0.0) * rate * 1e6 / 8.0;
            from = until;
        }
        bytes.round() as u64
    };
    (0..=(end / SAMPLE) as usize).map(|at| by(at as f64 * SAMPLE)).collect()
}

/// Values by sample: so much until each second.
pub fn values(steps: &[(f64, f32)]) -> Vec<f32> {
    let end = steps.last().expect("a step").0;
    let at =
        |second: f64| steps.iter().find(|(until, _)| second < *until).unwrap_or(&steps[steps.len() - 1]).1;
    (0..=(end / SAMPLE) as usize).map(|place| at(place as f64 * SAMPLE)).collect()
}

/// A transfer whose receiver gets what `steps` say.
pub fn transfer(name: &str, group: &str, steps: &[(f64, f64)]) -> TransferRecord {
    TransferRecord {
        name: name.into(),
        group: group.into(),
        received: bytes(steps),
        ..TransferRecord::default()
    }
}

/// A path that carries what `steps` say.
pub fn path(name: &str, steps: &[(f64, f64)]) -> PathRecord {
    PathRecord { name: name.into(), acked: bytes(steps), ..PathRecord::default() }
}

/// A run with one transfer `T` at a constant rate.
pub fn constant(axes: &[(&str, &str)], seed: u64, rate: f64) -> Record {
    Record { transfers: vec![transfer("T", "T", &[(60.0, rate)])], ..record(axes, seed) }
}

/// Requests: when each began, and how long it took.
pub fn requests(name: &str, list: &[(Option<f64>, Option<f64>)]) -> RequestsRecord {
    let list = list.iter().map(|&(began, took)| RequestRecord { size: 1000, began, took, given_up: false });
    RequestsRecord { name: name.into(), list: list.collect() }
}

/// A link of 10 Mbit/s.
pub fn link(from: &str, to: &str, steps: &[(f64, f64)]) -> LinkRecord {
    let sent = bytes(steps);
    let queue = (0..sent.len() as u32).map(|at| at % 5).collect();
    let dropped = (0..sent.len() as u32).map(|at| at * 2).collect();
    LinkRecord { from: from.into(), to: to.into(), rate: 10_000_000, sent, queue, dropped }
}
