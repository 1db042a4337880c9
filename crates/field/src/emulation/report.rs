//! Programs' reports of a transfer, as steps and as samples.

use serde_json::Value;

/// The progress of a transfer: bytes at the receiver, by seconds since its beginning.
#[derive(Debug, Default, PartialEq)]
pub(super) struct TransferReport {
    pub(super) steps: Vec<(f64, u64)>,
    /// The progress of each path, by its name.
    pub(super) paths: Vec<(String, Vec<(f64, u64)>)>,
    pub(super) finished: Option<f64>,
    /// Number of packets that the sender found lost. `None`: the sender does not report losses.
    pub(super) lost: Option<u64>,
}

/// The report of iperf3: the receiver's counts, or the sender's if the receiver's are missing.
pub(super) fn of_iperf(said: &Value, sized: bool) -> TransferReport {
    let server = &said["server_output_json"];
    let intervals = server["intervals"].as_array().filter(|list| !list.is_empty());
    let mut total = 0;
    let steps: Vec<_> = intervals
        .or_else(|| said["intervals"].as_array())
        .into_iter()
        .flatten()
        .map(|interval| {
            total += interval["sum"]["bytes"].as_u64().unwrap_or(0);
            (interval["sum"]["end"].as_f64().unwrap_or(0.0), total)
        })
        .collect();
    let whole = sized && said["error"].is_null();
    let finished = steps.last().filter(|_| whole).map(|(at, _)| *at);
    // What its kernel sent again.
    let lost = said["end"]["sum_sent"]["retransmits"].as_u64();
    TransferReport { paths: vec![("direct".into(), steps.clone())], steps, finished, lost }
}

/// Adds an event of `byway send`, which came `at` seconds after the beginning.
pub(super) fn of_byway(event: &Value, at: f64, report: &mut TransferReport) {
    let bytes = event["bytes"].as_u64();
    match (event["event"].as_str(), bytes) {
        (Some("progress"), Some(bytes)) => {
            report.steps.push((at, bytes));
            if let Some(paths) = event["paths"].as_array() {
                paths.iter().for_each(|path| note_path(path, at, report));
                // A path that is no more is not told of any more either.
                let lost = paths.iter().filter_map(|path| path["lost"].as_u64()).sum();
                report.lost = report.lost.max(Some(lost));
            }
        }
        (Some("result"), Some(bytes)) if event["exit"] == 0 => {
            report.steps.push((at, bytes));
            report.finished = Some(at);
        }
        _ => {}
    }
}

fn note_path(path: &Value, at: f64, report: &mut TransferReport) {
    let (Some(name), Some(bytes)) = (path["name"].as_str(), path["bytes"].as_u64()) else { return };
    match report.paths.iter_mut().find(|(known, _)| known == name) {
        Some((_, steps)) => steps.push((at, bytes)),
        None => report.paths.push((name.to_owned(), vec![(at, bytes)])),
    }
}

/// Steps (seconds since `started`, cumulative) as `count` samples, straight lines between.
pub(super) fn sampled(steps: &[(f64, u64)], started: f64, sample: f64, count: usize) -> Vec<u64> {
    let mut before = (0.0, 0);
    let mut rest = steps.iter().copied().peekable();
    (0..count)
        .map(|number| {
            let at = number as f64 * sample - started;
            while let Some(step) = rest.next_if(|step| step.0 <= at) {
                before = step;
            }
            match rest.peek() {
                Some(next) if at > before.0 && next.0 > before.0 => {
                    let part = (at - before.0) / (next.0 - before.0);
                    before.1 + (part * next.1.saturating_sub(before.1) as f64) as u64
                }
                _ => before.1,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn reports_become_samples() {
        let steps = [(1.0, 100), (2.0, 300)];
        assert_eq!(sampled(&steps, 0.0, 0.5, 6), [0, 50, 100, 200, 300, 300]);
        assert_eq!(sampled(&steps, 1.0, 1.0, 5), [0, 0, 100, 300, 300]);
        assert_eq!(sampled(&[], 0.0, 1.0, 3), [0, 0, 0]);
    }

    #[test]
    fn iperf_is_understood() {
        let sum = |end: f64, bytes: u64| json!({ "sum": { "end": end, "bytes": bytes } });
        let mut said = json!({
            "intervals": [sum(1.0, 9)],
            "end": { "sum_sent": { "retransmits": 4 } },
            "server_output_json": { "intervals": [sum(1.0, 5), sum(1.5, 2)] },
        });
        let report = of_iperf(&said, true);
        assert_eq!((report.steps, report.finished), (vec![(1.0, 5), (1.5, 7)], Some(1.5)));
        assert_eq!(report.lost, Some(4));
        said["error"] = "interrupt - the client has terminated".into();
        assert_eq!(of_iperf(&said, true).finished, None);
        said["server_output_json"] = Value::Null;
        assert_eq!(of_iperf(&said, false).steps, [(1.0, 9)]);
    }

    #[test]
    fn events_of_byway_are_understood() {
        let mut report = TransferReport::default();
        let path = |bytes: u64| json!({ "name": "direct", "bytes": bytes, "lost": 3 });
        of_byway(&json!({ "event": "progress", "bytes": 10, "paths": [path(9)] }), 1.0, &mut report);
        of_byway(&json!({ "event": "path", "name": "direct" }), 1.5, &mut report);
        of_byway(&json!({ "event": "result", "exit": 0, "bytes": 30 }), 2.0, &mut report);
        assert_eq!(report.steps, [(1.0, 10), (2.0, 30)]);
        assert_eq!(report.paths, [("direct".to_owned(), vec![(1.0, 9)])]);
        assert_eq!((report.finished, report.lost), (Some(2.0), Some(3)));
    }
}
