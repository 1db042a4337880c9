//! Somebody else's LEDBAT, and what requests wait for beside byway and the kernel.

use crate::common::bench::{Bench, TRIES, is_empty};
use crate::common::machine::Measured;
use serde_json::Value;
use std::fs;
use std::process::Output;

/// Without claims a plan has columns of its own, in a file.
pub(super) fn torrent() -> Measured {
    let bench = Bench::new();
    let (plan, csv) = (bench.path("torrent.toml"), bench.path("out.csv"));
    let text = "
title = \"a file by somebody else's LEDBAT\"
duration = \"10 s\"
seeds = 1
[[link]]
between = [\"S\", \"R\"]
rate = \"10 Mbit/s\"
delay = \"10 ms\"
[[transfer]]
name = \"bulk\"
from = \"S\"
to = \"R\"
carrier = \"tcp\"
congestion = \"ledbat\"
paths = [\"direct\"]
start = \"3 s\"
size = \"2 MB\"
";
    fs::write(&plan, text)?;
    let [plan, csv] = [&plan, &csv].map(|path| path.to_str().unwrap());
    let out = bench.path("out");
    bench.json(&["run", plan, "--emulate", "--csv", csv, "--out", out.to_str().unwrap()]);
    let table = fs::read_to_string(csv)?;
    let row = table.lines().find(|line| line.contains(",bulk in,")).unwrap_or_default();
    let seconds = row.split(',').next_back().and_then(|cell| cell.parse::<f64>().ok());
    // Two megabytes take 1.6 s; when somebody looks, half a second later at most, it is over.
    assert!(seconds.is_some_and(|took| (1.6..6.0).contains(&took)), "{table}");
    Ok(Some(()))
}

/// Requests of a run.
const REQUESTS: u32 = 40;

/// What `byway lab harm` told of one rival.
struct Told {
    events: Vec<Value>,
    /// Its row.
    row: Value,
    output: Output,
}

/// Measures beside CUBIC and beside byway at once, each in a network of its own.
pub(super) fn beside() -> Measured {
    for _ in 0..TRIES {
        let (cubic, byway) = std::thread::scope(|scope| {
            let cubic = scope.spawn(|| beside_one("cubic"));
            let byway = beside_one("byway");
            (cubic.join().unwrap(), byway)
        });
        let rows = [&cubic.row, &byway.row];
        if rows.iter().all(|row| row["accurate"] == true) {
            for (told, judged) in [(&cubic, 0), (&byway, 1)] {
                let result = told.events.last().unwrap();
                assert_eq!(told.row["requests"], REQUESTS);
                assert_eq!((&result["runs"], &result["judged"]), (&1.into(), &judged.into()), "{result}");
            }
            assert!(cubic.output.status.success(), "{:?}", cubic.events);
            // Its exit code tells whether byway's bounds hold, which are closer than what a busy
            // machine can be held to.
            assert_eq!(byway.output.status.success(), byway.row["verdict"] == "pass", "{:?}", byway.events);
            // What the test can be sure of although others use the machine; the bounds themselves
            // are the verb's.
            let [waits, yields] = rows.map(|row| row["median"].as_f64().unwrap());
            eprintln!("requests take {waits} times as long beside cubic, {yields} beside byway");
            if waits < 1.5 || yields > 1.4 {
                return Err(format!("{waits} times as long beside cubic, {yields} beside byway").into());
            }
            for row in rows {
                assert!(row["share"].as_f64().unwrap() > 0.3, "it carries next to nothing: {row}");
                assert!(row["regain_seconds"].as_f64().is_some(), "it never has the link again: {row}");
            }
            return Ok(Some(()));
        }
        for Told { events, row, .. } in [&cubic, &byway] {
            eprintln!("too busy to measure: {events:?}");
            let warned = |told: &Value| {
                told["event"] == "warning" && told["message"].as_str().unwrap().contains("too busy")
            };
            assert!(row["accurate"] == true || events.iter().any(warned), "{events:?}");
        }
        if byway.row["accurate"] == false {
            let verdict = byway.row["verdict"].as_str();
            assert_eq!((verdict, byway.output.status.code()), (Some("inaccurate"), Some(1)));
        }
    }
    Ok(None)
}

/// Measures beside one transfer of a rival.
fn beside_one(rival: &str) -> Told {
    let bench = Bench::new();
    let requests = REQUESTS.to_string();
    let words = ["--json", "lab", "harm", "--requests", &requests, "--bulk", "1", "--against", rival];
    let output = bench.run(&words);
    assert!(is_empty(&bench.path("labs")), "the labs are gone");
    let told = str::from_utf8(&output.stdout).unwrap();
    let events: Vec<Value> = told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let rows: Vec<&Value> = events.iter().filter(|told| told["event"] == "harm").collect();
    let [row] = rows[..] else {
        panic!("not one row: {told} {}", String::from_utf8_lossy(&output.stderr));
    };
    assert_eq!(row["against"], rival);
    let row = row.clone();
    Told { events, row, output }
}
