//! Measures the transfer of ten thousand files of 10 kB, and of one file of the same total size,
//! between two processes over loopback. For comparison, the bench also copies and creates the
//! files, followed by `syncfs`.
//!
//! ```text
//! TMPDIR=DIRECTORY cargo bench -p byway-cli --bench small [-- --rate 12M]
//! ```
#![allow(clippy::unwrap_used, reason = "a bench ends where it fails")]

#[path = "../tests/common/mod.rs"]
mod common;

use common::Place;
use common::processor::children;
use std::fs;
use std::path::Path;
use std::time::Instant;

const FILES: usize = 10_000;
const SIZE: usize = 10_000;
const ROUNDS: usize = 5;

fn main() {
    let place = Place::new();
    let contents: Vec<u8> =
        (0..FILES * SIZE).map(|at| ((at as u32).wrapping_mul(2_654_435_761) >> 11) as u8).collect();
    fs::write(place.path("one"), &contents).unwrap();
    for (index, piece) in contents.chunks(SIZE).enumerate() {
        let directory = place.path("many").join((index / 100).to_string());
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join(index.to_string()), piece).unwrap();
    }
    println!("{FILES} files of {SIZE} bytes; one of as many; medians of {ROUNDS} rounds");
    // The sender's limit in bytes per second: 12M is about 10^8 bit/s, and 119M about 10^9 bit/s.
    let rate = std::env::args().skip_while(|argument| argument != "--rate").nth(1);
    let rate = rate.as_deref().unwrap_or("off");
    let mut rounds: Vec<[[f64; 4]; 2]> = Vec::new();
    // Each round runs every case, so other load on the host affects all cases alike.
    for round in 0..ROUNDS {
        rounds.push(["many", "one"].map(|what| {
            let to = |name: &str| format!("{name}-{what}-{round}");
            let (sent, processor) = send(&place, what, &to("in"), rate);
            let (copied, made) = (place.path(&to("copy")), place.path(&to("made")));
            let seconds = [sent, processor, copy(&place.path(what), &copied), make(&made, &contents, what)];
            if what == "one" {
                // The small files (2 GB of all rounds) stay until the end: after many deletions,
                // ext4 creates files up to ten times as slowly.
                fs::remove_file(copied).unwrap();
                for name in ["in", "made"] {
                    fs::remove_dir_all(place.path(&to(name))).unwrap();
                }
            }
            seconds
        }));
    }
    let median = |pick: &dyn Fn(&[[f64; 4]; 2]) -> f64| {
        let mut all: Vec<f64> = rounds.iter().map(pick).collect();
        all.sort_by(f64::total_cmp);
        all[ROUNDS / 2]
    };
    for (index, name) in
        ["sent", "sent, processor", "copied and synced", "made and synced"].iter().enumerate()
    {
        let (many, one) = (median(&|round| round[0][index]), median(&|round| round[1][index]));
        let ratio = median(&|round| round[0][index] / round[1][index]);
        println!("{name:>18}: many {many:.3} s, one {one:.3} s, many/one {ratio:.2}");
    }
}

/// Seconds, and seconds of processor of both sides.
fn send(place: &Place, what: &str, to: &str, rate: &str) -> (f64, f64) {
    let before = children();
    let (receiver, ticket) = place.recv(&[to, "--once"]);
    let arguments = ["send", what, &ticket, "--priority", "normal", "--json", "--bwlimit", rate];
    let sent = place.run("sender", &arguments);
    sent.succeeded();
    receiver.end().succeeded();
    (sent.result()["seconds"].as_f64().unwrap(), children() - before)
}

/// The least that making the files takes.
fn make(top: &Path, contents: &[u8], what: &str) -> f64 {
    fs::create_dir(top).unwrap();
    let size = if what == "one" { contents.len() } else { SIZE };
    let directories: Vec<_> = (0..FILES.div_ceil(100)).map(|index| top.join(index.to_string())).collect();
    directories.iter().for_each(|directory| fs::create_dir(directory).unwrap());
    let begun = Instant::now();
    for (index, piece) in contents.chunks(size).enumerate() {
        fs::write(directories[index / 100].join(index.to_string()), piece).unwrap();
    }
    rustix::fs::syncfs(fs::File::open(top).unwrap()).unwrap();
    begun.elapsed().as_secs_f64()
}

/// As a receiver leaves it: on stable storage.
fn copy(from: &Path, to: &Path) -> f64 {
    let begun = Instant::now();
    copy_all(from, to);
    rustix::fs::syncfs(fs::File::open(to).unwrap()).unwrap();
    begun.elapsed().as_secs_f64()
}

fn copy_all(from: &Path, to: &Path) {
    if from.is_dir() {
        fs::create_dir(to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let name = entry.unwrap().file_name();
            copy_all(&from.join(&name), &to.join(&name));
        }
    } else {
        fs::copy(from, to).unwrap();
    }
}
