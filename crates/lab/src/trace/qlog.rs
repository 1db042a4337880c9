//! A transfer of a run as a qlog file. A record has samples, not packets, so the file has the
//! figures and sums of each path by sample.

use crate::record::{PathRecord, Record, TransferRecord};
use byway_qlog::{
    CHOKED_STATE, Event, Metrics, PathSample, PathTotals, QlogWriter, ScenarioDetails, TraceHeader,
};
use std::io::{self, Write};

/// The state of a path that sends.
const ACTIVE_STATE: &str = "active";

/// The state of a path that sent before and does not now: it waits, or is closed.
const IDLE_STATE: &str = "idle";

/// The name of the file of a transfer: what stands in the plan, with a dash for what a file name
/// had better not have, and the transfer's place in the plan, counted from 1.
#[must_use]
pub fn file_name(record: &Record, index: usize) -> String {
    let name = record.transfers.get(index).map_or("", |transfer| &transfer.name);
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
    let name: String = name.chars().map(plain).collect();
    format!("seed-{}-{}-{name}{}", record.seed, index + 1, byway_qlog::FILE_SUFFIX)
}

/// Writes the events of `transfer`, one of `record`'s.
///
/// # Errors
/// If `out` cannot be written.
pub fn write(record: &Record, transfer: &TransferRecord, out: &mut dyn Write) -> io::Result<()> {
    let title = format!("{}, seed {}", transfer.name, record.seed);
    let header = TraceHeader { title: &title, vantage_point: "byway lab" };
    let mut file = QlogWriter::new(out, header)?;
    let details = ScenarioDetails {
        seed: record.seed,
        world: format!("{:016x}", record.trace),
        sample_ms: byway_qlog::millis(record.sample),
        axes: record.axes.iter().map(|(axis, label)| (axis.as_str(), label.as_str())).collect(),
    };
    file.event(0.0, &Event::Scenario { name: &transfer.name, details })?;
    let mut started = Some(transfer.started);
    let mut finished = transfer.finished;
    let mut told = vec![false; transfer.paths.len()];
    let mut now = 0.0;
    for (sample, received) in transfer.received.iter().enumerate() {
        now = sample as f64 * record.sample;
        if let Some(at) = started.take_if(|at| *at <= now) {
            file.started(at)?;
        }
        if let Some(at) = finished.take_if(|at| *at <= now) {
            file.closed(at, None)?;
        }
        file.received(now, *received)?;
        for (number, (path, told)) in transfer.paths.iter().zip(&mut told).enumerate() {
            let seen = path_sample(number as u32, path, sample);
            *told |= seen.state != IDLE_STATE;
            if *told {
                file.sample(now, &seen)?;
            }
        }
    }
    if let Some(at) = finished {
        file.closed(at, None)?;
    } else if let Some(why) = &transfer.failed {
        file.closed(now, Some(why))?;
    }
    // A buffer that is dropped does not tell of a full disk.
    file.finish()
}

fn path_sample(number: u32, path: &PathRecord, sample: usize) -> PathSample<'_> {
    let window = path.window_bytes.get(sample).copied().unwrap_or_default();
    let sends = window > 0;
    let is_choked = path.choked.get(sample).copied().unwrap_or_default();
    let state = match (sends, is_choked) {
        (false, _) => IDLE_STATE,
        (true, true) => CHOKED_STATE,
        (true, false) => ACTIVE_STATE,
    };
    PathSample {
        path: number,
        name: &path.name,
        state,
        metrics: Metrics {
            smoothed_rtt: path.rtt.get(sample).copied().filter(|_| sends),
            congestion_window: sends.then_some(window.into()),
            ..Metrics::default()
        },
        totals: PathTotals {
            acked_bytes: path.acked.get(sample).copied(),
            lost_packets: path.lost.get(sample).copied().map(u64::from),
            ..PathTotals::default()
        },
        ..PathSample::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn transfer() -> TransferRecord {
        let path = PathRecord {
            name: "r1".into(),
            acked: vec![0, 7, 7, 9],
            window: vec![0.0, 2.0, 2.0, 0.0],
            window_bytes: vec![0, 3000, 3000, 0],
            rtt: vec![0.0, 40.25, 41.5, 0.0],
            lost: vec![0, 0, 1, 1],
            choked: vec![false, false, true, false],
        };
        TransferRecord {
            name: "a/b".into(),
            started: 0.05,
            finished: Some(0.25),
            received: vec![0, 5, 5, 9],
            paths: vec![path],
            ..TransferRecord::default()
        }
    }

    fn events(transfer: &TransferRecord) -> Vec<(f64, String, Value)> {
        let record = Record { sample: 0.1, seed: 3, ..Record::default() };
        let mut out = Vec::new();
        write(&record, transfer, &mut out).expect("written");
        let text = String::from_utf8(out).expect("text");
        let event = |line: &str| {
            let event: Value = serde_json::from_str(line).expect("JSON");
            (
                event["time"].as_f64().expect("a time"),
                event["name"].as_str().expect("a name").into(),
                event["data"].clone(),
            )
        };
        text.split('\u{1e}').skip(2).map(event).collect()
    }

    #[test]
    fn what_a_path_did_is_told_by_sample() {
        let events = events(&transfer());
        let told: Vec<(f64, &str)> = events.iter().map(|(at, name, _)| (*at, name.as_str())).collect();
        assert_eq!(
            told,
            [
                (0.0, "simulation:scenario"),
                (0.0, "byway:session_totals_updated"),
                (50.0, "quic:connection_started"),
                (100.0, "byway:session_totals_updated"),
                (100.0, "quic:tuple_assigned"),
                (100.0, "byway:path_state_updated"),
                (100.0, "quic:recovery_metrics_updated"),
                (100.0, "byway:path_totals_updated"),
                (200.0, "byway:path_state_updated"),
                (200.0, "quic:congestion_state_updated"),
                (200.0, "quic:recovery_metrics_updated"),
                (200.0, "byway:path_totals_updated"),
                (250.0, "quic:connection_closed"),
                (300.0, "byway:session_totals_updated"),
                (300.0, "byway:path_state_updated"),
                (300.0, "quic:congestion_state_updated"),
                (300.0, "byway:path_totals_updated"),
            ]
        );
        assert_eq!(
            events[6].2,
            serde_json::json!({ "path_id": 0, "smoothed_rtt": 40.25, "congestion_window": 3000 })
        );
        assert_eq!(events[11].2, serde_json::json!({ "path_id": 0, "acked_bytes": 7, "lost_packets": 1 }));
        assert_eq!(events[14].2["new"], IDLE_STATE);
    }

    #[test]
    fn a_failed_transfer_says_why() {
        let failed = TransferRecord { finished: None, failed: Some("lost".into()), ..transfer() };
        let (at, name, data) = events(&failed).pop().expect("an event");
        assert_eq!((at, name.as_str()), (300.0, "quic:connection_closed"));
        assert_eq!(data, serde_json::json!({ "trigger": "error", "reason": "lost" }));
    }

    #[test]
    fn a_file_is_named_after_seed_place_and_transfer() {
        let record = Record { seed: 3, transfers: vec![transfer()], ..Record::default() };
        assert_eq!(file_name(&record, 0), "seed-3-1-a-b.sqlog");
    }
}
