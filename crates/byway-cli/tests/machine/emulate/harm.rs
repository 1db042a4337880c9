//! Somebody else's LEDBAT, and what requests wait for beside byway and the kernel.

use crate::common::bench::{Bench, TRIES, is_empty};
use crate::common::machine::Measured;
use serde_json::Value;
use std::fs;

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

pub(super) fn beside() -> Measured {
    for _ in 0..TRIES {
        let bench = Bench::new();
        // Its exit code tells whether byway's bounds hold, which are closer than what a busy
        // machine can be held to.
        let output = bench.run(&[
            "--json",
            "lab",
            "harm",
            "--requests",
            "60",
            "--bulk",
            "1",
            "--against",
            "cubic,byway",
        ]);
        let told = String::from_utf8(output.stdout)?;
        let events: Vec<Value> = told.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
        assert!(is_empty(&bench.path("labs")), "the labs are gone");
        let of = |event: &'static str| events.iter().filter(move |told| told["event"] == event);
        let rows: Vec<_> = of("harm").collect();
        let [cubic, byway] = rows.as_slice() else {
            return Err(format!(
                "two rivals, and not two rows: {told} {}",
                String::from_utf8_lossy(&output.stderr)
            )
            .into());
        };
        let result = events.last().unwrap();
        if cubic["accurate"] == true && byway["accurate"] == true {
            assert_eq!((&cubic["against"], &byway["against"]), (&"cubic".into(), &"byway".into()));
            assert_eq!((&cubic["requests"], &byway["requests"]), (&60.into(), &60.into()));
            assert_eq!((&result["runs"], &result["judged"]), (&2.into(), &1.into()), "{result}");
            assert_eq!(output.status.success(), byway["verdict"] == "pass", "{told}");
            // What the test can be sure of although others use the machine; the bounds themselves
            // are the verb's.
            let (waits, yields) = (cubic["median"].as_f64().unwrap(), byway["median"].as_f64().unwrap());
            if waits < 1.5 || yields > 1.4 {
                return Err(format!("{waits} times as long beside cubic, {yields} beside byway").into());
            }
            for row in rows {
                assert!(row["share"].as_f64().unwrap() > 0.3, "it carries next to nothing: {row}");
                assert!(row["regain_seconds"].as_f64().is_some(), "it never has the link again: {row}");
            }
            return Ok(Some(()));
        }
        eprintln!("too busy to measure: {told}");
        assert!(of("warning").any(|told| told["message"].as_str().unwrap().contains("too busy")), "{told}");
        if byway["accurate"] == false {
            assert_eq!((byway["verdict"].as_str(), output.status.code()), (Some("inaccurate"), Some(1)));
        }
    }
    Ok(None)
}
