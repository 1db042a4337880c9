//! Measures the transfer of one large file between two processes over loopback: goodput, processor
//! seconds of both processes per 10^9 bytes, and peak memory of each.
//!
//! ```text
//! TMPDIR=DIRECTORY cargo bench -p byway-cli --bench large -- [GIGABYTES]
//! ```
//!
//! With a tmpfs as DIRECTORY, the disk does not limit the result.
#![allow(clippy::unwrap_used, reason = "a bench ends where it fails")]

#[path = "../tests/common/mod.rs"]
mod common;

use common::peak::peak_memory;
use common::processor::children;
use common::{Place, Running};
use std::fs::{self, File};
use std::io::Write;

fn main() {
    let gigabytes: u64 = std::env::args().skip(1).find_map(|word| word.parse().ok()).unwrap_or(2);
    let place = Place::new();
    let mut file = File::create(place.path("large")).unwrap();
    let piece: Vec<u8> = (0..1_000_000).map(|at: u32| (at.wrapping_mul(2_654_435_761) >> 11) as u8).collect();
    for _ in 0..gigabytes * 1_000 {
        file.write_all(&piece).unwrap();
    }
    for priority in ["normal", "background", "normal", "background"] {
        let before = children();
        let (receiver, ticket) = place.recv(&["in", "--once"]);
        let there = peak_memory(receiver.id());
        let sender = Running::start(
            place.command("sender", &["send", "large", &ticket, "--priority", priority, "--json"]),
        );
        let here = peak_memory(sender.id());
        let sent = sender.end();
        sent.succeeded();
        receiver.end().succeeded();
        println!(
            "{priority:>10}: {:.2} Gbit/s, {:.2} s of processor per GB, at most {:.1} and {:.1} MiB",
            sent.result()["goodput_bps"].as_f64().unwrap() / 1e9,
            (children() - before) / gigabytes as f64,
            here.join().unwrap() as f64 / f64::from(1 << 20),
            there.join().unwrap() as f64 / f64::from(1 << 20),
        );
        fs::remove_file(place.path("in/large")).unwrap();
    }
}
