//! `byway lane` between hosts: uploads of curl to a WebDAV server of rclone, whose address curl
//! names, and what others notice of an upload.
//!
//! Needs root, and rsync, restic and rclone, which the bench starts.

use crate::common::Running;
use crate::common::bench::BYWAY;
use crate::common::machine::{Measured, PATIENCE, measures, missing, must, test, wait_for, works};
use crate::common::spaces::Spaces;
use libtest_mimic::{Failed, Trial};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

pub fn tests() -> Vec<Trial> {
    let programs = ["rsync --version", "restic version", "rclone version", "python3 --version"];
    let possible = Spaces::possible(&["ss -V"]) && programs.into_iter().all(works);
    let lacks =
        missing(possible, "it needs root, and the programs ip, ss, rsync, restic, rclone and python3");
    let curl = Spaces::possible(&["ss -V"]) && ["curl --version", "rclone version"].into_iter().all(works);
    let lacks_curl = missing(curl, "it needs root, and the programs ip, ss, curl and rclone");
    vec![
        test("lane::a_program_names_its_target_by_socks_or_by_connect", lacks_curl, named),
        measures("lane::others_hardly_notice_an_upload", lacks, upload),
    ]
}

/// Bytes of an upload: many runs.
const UPLOAD_BYTES: usize = 3_000_000;

/// Uploads arrive whole by either dialog, and the lane counts them.
fn named() -> Result<(), Failed> {
    let spaces = Spaces::new("n", &["home", "store"]);
    spaces.line([("home", "d0", "10.77.0.1"), ("store", "d1", "10.77.0.2")]);
    spaces.wait("home", "d0");
    spaces.wait("store", "d1");
    let directory = tempfile::tempdir()?;
    let path = |name: &str| directory.path().join(name);
    fs::create_dir(path("there"))?;
    let bytes: Vec<u8> = (0..UPLOAD_BYTES).map(|at| (at ^ (at >> 9)) as u8).collect();
    fs::write(path("file"), &bytes)?;
    let mut server = spaces.on("store");
    server.args(["rclone", "serve", "webdav", "--addr", ":8080"]).arg(path("there"));
    server.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let _server = Running::start(server);
    let listens = || spaces.says("store", &["ss", "-Hltn"]).contains(":8080 ").then_some(());
    assert!(wait_for(PATIENCE, listens).is_some());
    let mut lane = spaces.byway("home", &path("state"), &["lane", "--socks", "0"]);
    let port = lane.event("ready")["listen"][0].as_str().unwrap().to_owned();
    let curl = |proxy: &[&str], name: &str| {
        let mut curl = spaces.on("home");
        curl.args(["curl", "--silent", "--show-error", "--fail", "--upload-file"]).arg(path("file"));
        must(curl.args(proxy).arg(format!("http://10.77.0.2:8080/{name}")));
        assert!(fs::read(path("there").join(name)).unwrap() == bytes, "{name} differs");
    };
    curl(&["--proxy", &format!("socks5h://{port}")], "by-socks");
    curl(&["--proxy", &format!("http://{port}"), "--proxytunnel"], "by-connect");
    lane.signal("TERM");
    let ended = lane.end();
    let mut events =
        ended.stdout.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
    let told = events.rfind(|event: &Value| event["event"] == "lane").unwrap();
    assert_eq!(told["connections"], 2, "{told}");
    assert!(told["sent_bytes"].as_u64() > Some(2 * UPLOAD_BYTES as u64), "{told}");
    Ok(())
}

/// Seconds of each run.
const RUN_SECONDS: &str = "15";
/// How much longer requests may take beside an upload through the lane: their median and their p90.
const MAX_WAITS: [f64; 2] = [1.1, 1.3];
/// How much longer their median takes at least beside the plain upload: the line is the bottleneck.
const MIN_PLAIN_WAIT: f64 = 1.4;
/// What the lane carries at least: of what a plain upload carries on the idle line, and of what
/// requests leave.
const MIN_SHARES: [f64; 2] = [0.93, 0.92];

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
