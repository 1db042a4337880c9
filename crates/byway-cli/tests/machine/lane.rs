//! What others notice of an upload through `byway lane`, to a host without byway.
//!
//! Needs root, and rsync, restic and rclone, which the bench starts.

use crate::common::bench::BYWAY;
use crate::common::machine::{Measured, measures, missing, must, works};
use crate::common::spaces::Spaces;
use libtest_mimic::Trial;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

pub fn tests() -> Vec<Trial> {
    let programs = ["rsync --version", "restic version", "rclone version", "python3 --version"];
    let possible = Spaces::possible(&["ss -V"]) && programs.into_iter().all(works);
    let lacks =
        missing(possible, "it needs root, and the programs ip, ss, rsync, restic, rclone and python3");
    vec![measures("lane::others_hardly_notice_an_upload", lacks, upload)]
}

/// Seconds of each run.
const RUN_SECONDS: &str = "15";
/// How much longer requests may take beside an upload through the lane: their median and their p90.
const MAX_WAITS: [f64; 2] = [1.3, 2.0];
/// How much longer their median takes at least beside the plain upload: the line is the bottleneck.
const MIN_PLAIN_WAIT: f64 = 1.4;
/// What the lane carries at least: of what a plain upload carries on the idle line, and of what
/// requests leave.
const MIN_SHARES: [f64; 2] = [0.93, 0.80];

/// One row of the bench: 10 Mbit/s, 20 ms and 50 packets of queue.
fn upload() -> Measured {
    let bench = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/lane.py");
    for last in [false, true] {
        let mut bench = Command::new(&bench);
        bench.args([BYWAY, "--quick", "--json", "--seconds", RUN_SECONDS]);
        let told: Value = serde_json::from_str(&must(&mut bench))?;
        let result = &told["result"];
        if result.is_null() {
            return Ok(None);
        }
        let figure = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{told}"));
        let waits = [0, 1].map(|at| figure(&result["waits lane"][at]));
        let plain = figure(&result["waits plain"][0]);
        let shares = ["idle share", "rest share"].map(|name| figure(&result[name]));
        println!(
            "requests take {waits:.2?} times as long, {plain:.2} beside plain; the lane has {shares:.2?}"
        );
        let waits_little = waits.iter().zip(MAX_WAITS).all(|(wait, most)| *wait <= most);
        let carries = shares.iter().zip(MIN_SHARES).all(|(share, least)| *share >= least);
        if waits_little && carries && plain >= MIN_PLAIN_WAIT {
            return Ok(Some(()));
        }
        assert!(!last, "{told}");
    }
    Ok(None)
}
