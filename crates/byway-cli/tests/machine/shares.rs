//! One tree from several hosts: each sends a list of `byway tasks`.
//!
//! ```text
//!   four senders 10.89.N.1, 40 Mbit/s each ─── hub ─── receiver 10.89.9.1
//! ```
//!
//! The senders share a home and a file system, as hosts of a cluster do. Needs root, `ip` and `tc`;
//! otherwise the test is reported as ignored.

use crate::common::assert_same;
use crate::common::machine::{Measured, measures, missing};
use crate::common::spaces::Spaces;
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

const SENDERS: [(&str, &str); 4] =
    [("s1", "10.89.1.1"), ("s2", "10.89.2.1"), ("s3", "10.89.3.1"), ("s4", "10.89.4.1")];
/// The rate of each sender's line, with headers.
const LINE_MBIT: f64 = 40.0;
const TREE_BYTES: u64 = 1_000_000_000;
/// How much of all lines the tree fills, at least.
const MIN_FILLED: f64 = 0.85;

pub fn tests() -> Vec<libtest_mimic::Trial> {
    let tbf = "tc qdisc add dev lo root tbf rate 40mbit burst 10kb limit 100kb";
    let lacks = missing(Spaces::possible(&[tbf]), "it needs root and the programs ip and tc");
    vec![measures("shares::four_hosts_send_a_tree_at_the_sum_of_their_rates", lacks, four_hosts)]
}

/// A list is killed twice, and its host sends it again each time.
fn four_hosts() -> Measured {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name).display().to_string();
    // A third of a generated tree is one file, which no list can share.
    let bytes: u64 = (0..4)
        .map(|part| {
            let below = at(&format!("tree/{part}"));
            fs::create_dir_all(&below).unwrap();
            byway_files::generate(below.as_ref(), 89 + part, TREE_BYTES / 4).unwrap().counts.bytes
        })
        .sum();
    let spaces = Spaces::star("s", &[&SENDERS[..], &[("receiver", "10.89.9.1")]].concat());
    for (host, _) in SENDERS {
        let shape = ["root", "tbf", "rate", "40mbit", "burst", "10kb", "limit", "100kb"];
        spaces.says(host, &[["tc", "qdisc", "add", "dev", "eth0"].as_slice(), &shape].concat());
    }
    let mut receiver = spaces.byway("receiver", at("nas").as_ref(), &["recv", &at("in")]);
    let ticket = receiver.event("ready")["ticket"].as_str().unwrap().to_owned();
    let tasks = Command::new(env!("CARGO_BIN_EXE_byway"))
        .args(["tasks", &at("tree"), &at("lists"), "--count", "4"])
        .status();
    assert!(tasks.unwrap().success());
    let begun = Instant::now();
    let send = |number: usize| {
        let list = at(&format!("lists/{:02}", number + 1));
        let words = ["send", "--files-from", &list, "--from", &at("tree"), &ticket];
        spaces.byway(SENDERS[number].0, at("home").as_ref(), &words)
    };
    let mut sending: Vec<_> = (0..SENDERS.len()).map(send).collect();
    for _ in 0..2 {
        std::thread::sleep(Duration::from_secs(12));
        sending[1].signal("KILL");
        sending[1] = send(1);
    }
    sending.into_iter().for_each(|sending| sending.end().succeeded());
    let took = begun.elapsed();
    assert_same(at("tree").as_ref(), at("in").as_ref());
    let mbit = bytes as f64 * 8.0 / 1e6 / took.as_secs_f64();
    let filled = mbit / (LINE_MBIT * SENDERS.len() as f64);
    println!("{} bytes in {:.1} s: {mbit:.1} Mbit/s, {filled:.3} of all lines", bytes, took.as_secs_f64());
    assert!(filled >= MIN_FILLED, "{filled:.3} of all lines");
    Ok(Some(()))
}
