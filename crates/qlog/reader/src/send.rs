//! The file of `byway send --qlog` beside the events of `--json`.

use crate::replay::{Replay, expect};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Holds `file` against the events in `events`. Returns how many figures are the same.
pub fn check(file: &Path, events: &Path) -> Result<usize, String> {
    let text = fs::read_to_string(events).map_err(|error| format!("{}: {error}", events.display()))?;
    let mut replay = Replay::open(file)?;
    let (mut checked, mut result) = (0, Value::Null);
    for line in text.lines() {
        let event: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        match event["event"].as_str() {
            Some("progress") => progress(&mut replay, &event, &mut checked)?,
            Some("result") => result = event,
            _ => {}
        }
    }
    replay.until(f64::INFINITY)?;
    let closed = replay.closed.ok_or("the session never ends")?;
    if replay.started.is_none() || replay.controller.is_none() || checked == 0 {
        return Err("a beginning, a controller or progress is missing".to_owned());
    }
    expect(&format!("{:?}", replay.received), &format!("{:?}", result["bytes"].as_u64()))?;
    let seconds = result["seconds"].as_f64().ok_or("the result has no time")?;
    expect(&closed.to_string(), &((seconds * 1e6).round() / 1e3).to_string())?;
    if let Some(path) = replay.paths.values().find(|path| path.has_tuple != (path.state != "closed")) {
        return Err(format!("the tuple of a path is not as its state: {path:?}"));
    }
    Ok(checked + 2)
}

/// A look at the transfer, which both have.
fn progress(replay: &mut Replay, event: &Value, checked: &mut usize) -> Result<(), String> {
    let seconds = event["seconds"].as_f64().ok_or("progress has no time")?;
    replay.until((seconds * 1e6).round() / 1e3)?;
    expect(&format!("{:?}", replay.received), &format!("{:?}", event["bytes"].as_u64()))?;
    for path in event["paths"].as_array().into_iter().flatten() {
        let number = path["path"].as_u64().ok_or("a path has no number")?;
        let found = replay.paths.get(&number).ok_or_else(|| format!("path {number} is not told of"))?;
        expect(&found.name, path["name"].as_str().unwrap_or_default())?;
        expect(&found.state, path["state"].as_str().unwrap_or_default())?;
        for (total, field) in [("sent_bytes", "bytes"), ("sent_packets", "packets"), ("lost_packets", "lost")]
        {
            let wanted = path[field].as_u64();
            expect(&format!("{:?}", found.totals.get(total).copied()), &format!("{wanted:?}"))?;
            *checked += 1;
        }
        for (found, field) in [(found.smoothed_rtt, "rtt_ms"), (found.min_rtt, "base_rtt_ms")] {
            let Some(wanted) = path[field].as_f64() else { continue };
            // `--json` has microseconds.
            if found.is_none_or(|found| (f64::from(found) - wanted).abs() > wanted * 1e-6 + 1e-3) {
                return Err(format!("{field} of path {number} is {found:?} and not {wanted}"));
            }
            *checked += 1;
        }
        if found.state == "active" && found.congestion_window.is_none() {
            return Err(format!("path {number} has no window"));
        }
    }
    *checked += 1;
    Ok(())
}
