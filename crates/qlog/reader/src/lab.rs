//! Files of `byway lab run --qlog` beside the samples of `--trace`.

use crate::replay::Replay;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The samples of one transfer, by time in milliseconds.
#[derive(Default)]
struct Samples {
    paths: BTreeMap<String, Vec<(f64, Value)>>,
    received: Vec<(f64, u64)>,
}

/// Holds the files in `directory` against its `trace.jsonl`. Returns how many figures are the same.
pub fn check(directory: &Path) -> Result<usize, String> {
    let samples = samples(&directory.join("trace.jsonl"))?;
    let files = fs::read_dir(directory.join("qlog")).map_err(|error| error.to_string())?;
    let mut checked = (0, 0);
    for file in files {
        let file = file.map_err(|error| error.to_string())?.path();
        let named = |error: String| format!("{}: {error}", file.display());
        checked = (checked.0 + 1, checked.1 + transfer(&file, &samples).map_err(named)?);
    }
    if checked.0 != samples.len() || checked.1 == 0 {
        return Err(format!("{} files for {} transfers", checked.0, samples.len()));
    }
    Ok(checked.1)
}

/// The transfers of the first variant, by seed and name.
fn samples(file: &Path) -> Result<BTreeMap<(u64, String), Samples>, String> {
    let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let mut all: BTreeMap<(u64, String), Samples> = BTreeMap::new();
    let (mut first, mut seed, mut counts) = (None, 0, false);
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        if line["event"] == "run" {
            seed = line["seed"].as_u64().unwrap_or_default();
            counts = *first.get_or_insert_with(|| line["axes"].clone()) == line["axes"];
        }
        let (Some(name), true) = (line["transfer"].as_str(), counts) else { continue };
        let transfer = all.entry((seed, name.to_owned())).or_default();
        let at = (line["at"].as_f64().unwrap_or_default() * 1e6).round() / 1e3;
        if line["event"] == "received" {
            transfer.received.push((at, line["bytes"].as_u64().unwrap_or_default()));
        } else {
            let path = line["path"].as_str().unwrap_or_default().to_owned();
            transfer.paths.entry(path).or_default().push((at, line));
        }
    }
    Ok(all)
}

fn transfer(file: &Path, samples: &BTreeMap<(u64, String), Samples>) -> Result<usize, String> {
    let mut replay = Replay::open(file)?;
    replay.until(0.0)?;
    let scenario = replay.scenario.clone().ok_or("no scenario")?;
    let seed = scenario["details"]["seed"].as_u64().ok_or("no seed")?;
    let name = scenario["name"].as_str().ok_or("no name")?;
    let samples = samples.get(&(seed, name.to_owned())).ok_or("no such transfer in trace.jsonl")?;
    let mut checked = 0;
    for (index, (at, received)) in samples.received.iter().enumerate() {
        replay.until(*at)?;
        same("received", *at, replay.received, Some(*received), &mut checked)?;
        for (name, lines) in &samples.paths {
            let (time, line) = lines.get(index).ok_or("a path has fewer samples")?;
            same("time", *at, Some(*time), Some(*at), &mut checked)?;
            path(&replay, name, *at, line, &mut checked)?;
        }
    }
    if replay.started.is_none() {
        return Err("the session never begins".to_owned());
    }
    Ok(checked)
}

fn path(replay: &Replay, name: &str, at: f64, line: &Value, checked: &mut usize) -> Result<(), String> {
    let window = line["window_bytes"].as_u64().ok_or("no window")?;
    let found = replay.paths.values().find(|path| path.name == name);
    let total = |name: &str| found.map_or(Some(0), |path| path.totals.get(name).copied());
    same("acked", at, total("acked_bytes"), line["acked"].as_u64(), checked)?;
    same("lost", at, total("lost_packets"), line["lost"].as_u64(), checked)?;
    if window == 0 {
        let state = found.map_or("idle", |path| path.state.as_str());
        return same("state", at, Some(state), Some("idle"), checked);
    }
    let found = found.ok_or_else(|| format!("{name} sends at {at} ms, and is not told of"))?;
    let rtt = line["rtt_ms"].as_f64().map(|rtt| rtt as f32);
    same("window", at, found.congestion_window, Some(window), checked)?;
    same("rtt", at, found.smoothed_rtt, rtt, checked)?;
    same("choke", at, Some(found.is_choked), line["choked"].as_bool(), checked)?;
    same("tuple", at, Some(found.has_tuple), Some(true), checked)
}

fn same<T: PartialEq + std::fmt::Debug>(
    what: &str,
    at: f64,
    found: Option<T>,
    wanted: Option<T>,
    checked: &mut usize,
) -> Result<(), String> {
    if found != wanted || found.is_none() {
        return Err(format!("{what} at {at} ms is {found:?} and not {wanted:?}"));
    }
    *checked += 1;
    Ok(())
}
