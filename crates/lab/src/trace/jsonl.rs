//! A record as JSON lines: one for each path, link and sample, one for each request. Times are
//! seconds.

use crate::record::Record;
use serde::Serialize;
use std::io::{self, Write};

#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum JsonLine<'a> {
    /// The run to which the lines below belong.
    Run {
        axes: &'a [(String, String)],
        seed: u64,
        trace: String,
    },
    Path {
        at: f64,
        transfer: &'a str,
        path: &'a str,
        /// Bytes acknowledged so far.
        acked: u64,
        window_packets: f32,
        /// The window in bytes. `None`: not known.
        window_bytes: Option<u32>,
        rtt_ms: f32,
        lost: u32,
        choked: bool,
    },
    Received {
        at: f64,
        transfer: &'a str,
        bytes: u64,
    },
    Link {
        at: f64,
        from: &'a str,
        to: &'a str,
        sent: u64,
        queue: u32,
        dropped: u32,
    },
    Request {
        requests: &'a str,
        index: usize,
        size: u64,
        began: Option<f64>,
        took: Option<f64>,
    },
}

/// Writes `record`.
///
/// # Errors
/// If `out` cannot be written.
pub fn write(record: &Record, out: &mut dyn Write) -> io::Result<()> {
    let mut put = |line: &JsonLine<'_>| -> io::Result<()> {
        serde_json::to_writer(&mut *out, line)?;
        out.write_all(b"\n")
    };
    put(&JsonLine::Run { axes: &record.axes, seed: record.seed, trace: format!("{:016x}", record.trace) })?;
    let at = |sample: usize| sample as f64 * record.sample;
    for transfer in &record.transfers {
        for (sample, bytes) in transfer.received.iter().enumerate() {
            put(&JsonLine::Received { at: at(sample), transfer: &transfer.name, bytes: *bytes })?;
        }
        for path in &transfer.paths {
            for (sample, acked) in path.acked.iter().enumerate() {
                put(&JsonLine::Path {
                    at: at(sample),
                    transfer: &transfer.name,
                    path: &path.name,
                    acked: *acked,
                    window_packets: path.window.get(sample).copied().unwrap_or_default(),
                    window_bytes: path.window_bytes.get(sample).copied(),
                    rtt_ms: path.rtt.get(sample).copied().unwrap_or_default(),
                    lost: path.lost.get(sample).copied().unwrap_or_default(),
                    choked: path.choked.get(sample).copied().unwrap_or_default(),
                })?;
            }
        }
    }
    for link in &record.links {
        for (sample, sent) in link.sent.iter().enumerate() {
            put(&JsonLine::Link {
                at: at(sample),
                from: &link.from,
                to: &link.to,
                sent: *sent,
                queue: link.queue.get(sample).copied().unwrap_or_default(),
                dropped: link.dropped.get(sample).copied().unwrap_or_default(),
            })?;
        }
    }
    for requests in &record.requests {
        for (index, request) in requests.list.iter().enumerate() {
            let (size, began, took) = (request.size, request.began, request.took);
            put(&JsonLine::Request { requests: &requests.name, index, size, began, took })?;
        }
    }
    // A buffer that is dropped does not tell of a full disk.
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{PathRecord, TransferRecord};

    #[test]
    fn every_line_is_json_of_its_own() {
        let path = PathRecord {
            name: "direct".into(),
            acked: vec![0, 7],
            window: vec![1.5, 2.0],
            ..PathRecord::default()
        };
        let transfer = TransferRecord {
            name: "t".into(),
            received: vec![0, 5],
            paths: vec![path],
            ..TransferRecord::default()
        };
        let record = Record { sample: 0.5, seed: 3, transfers: vec![transfer], ..Record::default() };
        let mut out = Vec::new();
        write(&record, &mut out).expect("written");
        let lines: Vec<serde_json::Value> = String::from_utf8(out)
            .expect("text")
            .lines()
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect();
        assert_eq!(lines.len(), 5);
        assert_eq!(lines[0]["seed"], 3);
        let last = &lines[4];
        assert_eq!(
            (last["event"].as_str(), last["at"].as_f64(), last["acked"].as_u64()),
            (Some("path"), Some(0.5), Some(7))
        );
        assert_eq!(last["window_packets"].as_f64(), Some(2.0));
    }
}
