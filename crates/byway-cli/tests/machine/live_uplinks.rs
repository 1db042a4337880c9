//! A live source on a host with two uplinks, without relays (multihoming).
//!
//! ```text
//!          ┌─ up1, 100 kbit/s ─┐
//!   source ┤                   ├ sink
//!          └─ up2, 200 kbit/s ─┘
//! ```
//!
//! The sink has one address. Which uplink a connection takes follows from its local address, by a
//! routing rule. Needs root and the programs `ip` and `tc`. Without them, the test is reported as
//! ignored.

use crate::common::machine::{Measured, PATIENCE, measures, missing, wait_for};
use crate::common::spaces::Spaces;
use crate::common::{Place, Running};
use libtest_mimic::Trial;
use std::fs;
use std::io::Write as _;
use std::process::Stdio;
use std::time::Instant;

/// The uplinks: the device, the addresses of source and sink, and the rate in kbit/s.
const UPLINKS: [(&str, &str, &str, u32); 2] =
    [("up1", "10.84.1.1", "10.84.1.2", 100), ("up2", "10.84.2.1", "10.84.2.2", 200)];
/// The address of the sink. No route leads there but by the rules.
const SINK: &str = "10.84.9.9";
/// The least part of the capacity of both uplinks that records must take. One uplink alone is at
/// most .67 of it.
const PART: f64 = 0.8;

pub fn tests() -> Vec<Trial> {
    let lacks = missing(Spaces::possible(&["tc -V"]), "it needs root and the programs ip and tc");
    vec![measures("live_uplinks::a_source_fills_two_uplinks", lacks, a_source_fills_two_uplinks)]
}

fn a_source_fills_two_uplinks() -> Measured {
    let spaces = Spaces::new("m", &["source", "sink"]);
    spaces.says("sink", &["ip", "addr", "add", SINK, "dev", "lo"]);
    for ((device, here, there, rate), number) in UPLINKS.iter().zip(101..) {
        spaces.line([("source", device, here), ("sink", device, there)]);
        spaces.wait("source", device);
        let table = number.to_string();
        spaces.says("source", &["ip", "route", "add", SINK, "via", there, "table", &table]);
        spaces.says("source", &["ip", "rule", "add", "from", here, "table", &table]);
        let rate = format!("{rate}kbit");
        let shape = ["tc", "qdisc", "add", "dev", device, "root", "tbf", "rate", &rate];
        spaces.says("source", &[&shape[..], &["burst", "1600", "limit", "12000"]].concat());
    }
    let place = Place::new();
    let out = place.path("out");
    let listen = format!("{SINK}:4760");
    let mut sink =
        spaces.byway("sink", &place.path("sink"), &["sink", &out.display().to_string(), "--listen", &listen]);
    let ticket = sink.event("ready")["ticket"].as_str().unwrap().to_owned();

    let capacity = UPLINKS.iter().map(|uplink| f64::from(uplink.3)).sum::<f64>() * 1e3 / 8.0;
    let demand = capacity.to_string();
    let mut command = spaces.on("source");
    command.arg(env!("CARGO_BIN_EXE_byway"));
    command.args(["source", "--name", "s", "--to", &ticket, "--demand", &demand, "--keep", "64K", "--json"]);
    command.args(UPLINKS.iter().flat_map(|uplink| ["--bind", uplink.1]));
    command.env("BYWAY_STATE_DIR", place.path("source"));
    let (reader, mut writer) = std::io::pipe().unwrap();
    command.stdin(reader).stdout(Stdio::piped()).stderr(Stdio::piped());
    std::thread::spawn(
        move || while writer.write_all(format!("{}\n", "x".repeat(955)).as_bytes()).is_ok() {},
    );
    let mut source = Running::start(command);

    let bytes = || fs::metadata(out.join("s")).map_or(0, |file| file.len());
    assert!(wait_for(PATIENCE, || (bytes() > 0).then_some(())).is_some(), "no record came");
    // An event comes every second.
    let after =
        |source: &mut Running, seconds: usize| (0..seconds).map(|_| source.event("source")).last().unwrap();
    after(&mut source, 20);
    let (before, at) = (bytes(), Instant::now());
    let standing = after(&mut source, 20);
    let part = (bytes() - before) as f64 / at.elapsed().as_secs_f64() / capacity;
    eprintln!("records take {part:.3} of both uplinks");
    assert_eq!(standing["paths"].as_array().map_or(0, Vec::len), UPLINKS.len(), "{standing}");
    assert!(part >= PART, "records take {part:.3} of both uplinks");
    Ok(Some(()))
}
