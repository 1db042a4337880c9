//! Ten thousand small files beside one of the same size, over loopback, two processes: seconds of the transfer, and beside them what
//! the file system takes for a copy of each, which no receiver can do without.
//!
//! `cargo bench -p byway --bench small`; `TMPDIR` chooses the disk.
#![allow(clippy::unwrap_used, reason = "a bench ends where it fails")]

#[path = "../tests/common/mod.rs"]
mod common;

use common::Place;
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
    let figures = ["many", "one"].map(|what| {
        let (sent, copied) = (median(|| send(&place, what)), median(|| copy(&place, what)));
        println!("{what:>5}: sent in {sent:.3} s, copied in {copied:.3} s");
        (sent, copied)
    });
    let [(many, many_copied), (one, one_copied)] = figures;
    println!("many/one: sent {:.2}, copied {:.2}", many / one, many_copied / one_copied);
}

fn median(measure: impl Fn() -> f64) -> f64 {
    let mut all: Vec<f64> = (0..ROUNDS).map(|_| measure()).collect();
    all.sort_by(f64::total_cmp);
    all[ROUNDS / 2]
}

fn send(place: &Place, what: &str) -> f64 {
    let (receiver, ticket) = place.recv(&["in", "--once"]);
    let sent = place.run("sender", &["send", what, &ticket, "--priority", "normal", "--json"]);
    sent.succeeded();
    receiver.end().succeeded();
    fs::remove_dir_all(place.path("in")).unwrap();
    sent.result()["seconds"].as_f64().unwrap()
}

/// As a receiver leaves it: on stable storage.
fn copy(place: &Place, what: &str) -> f64 {
    let begun = Instant::now();
    copy_all(&place.path(what), &place.path("copy"));
    rustix::fs::syncfs(fs::File::open(place.path("copy")).unwrap()).unwrap();
    let seconds = begun.elapsed().as_secs_f64();
    let copy = place.path("copy");
    if copy.is_dir() { fs::remove_dir_all(copy) } else { fs::remove_file(copy) }.unwrap();
    seconds
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
