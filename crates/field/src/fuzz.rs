//! Random worlds, random faults, and laws that must hold.

use crate::error::Result;
use byway_lab::fuzz::{Finding, judge};
use rayon::prelude::*;
use std::io;
use std::time::Instant;

/// How many worlds run between two looks at whether to go on.
const BATCH: u64 = 50;

/// What happens while worlds are run.
#[derive(Debug)]
pub enum FuzzEvent {
    /// A world broke a law.
    Found(Finding),
    /// How many worlds were run so far, and what they had.
    Progress(FuzzCounts),
}

/// What was run and found.
#[derive(Clone, Copy, Debug, Default)]
pub struct FuzzCounts {
    /// Worlds that were run.
    pub worlds: u64,
    /// How many packets the worlds had.
    pub packets: u64,
    /// How many broke a law.
    pub found: u64,
    /// Seconds of real time that the worlds took.
    pub seconds: f64,
}

/// Runs `count` worlds by seed from `first` on, on all cores, while `stop` says no.
///
/// # Errors
/// Nobody could be told.
pub fn run(
    first: u64,
    count: u64,
    stop: impl Fn() -> bool,
    mut tell: impl FnMut(FuzzEvent) -> io::Result<()>,
) -> Result<FuzzCounts> {
    // A law that breaks is told once, by its seed, and not by each thread that meets it.
    std::panic::set_hook(Box::new(|_| {}));
    let begun = Instant::now();
    let end = first.saturating_add(count);
    let (mut from, mut tally) = (first, FuzzCounts::default());
    while from < end && !stop() {
        let until = end.min(from.saturating_add(BATCH));
        let seeds: Vec<u64> = (from..until).collect();
        let judged: Vec<_> = seeds.into_par_iter().with_max_len(1).map(judge).collect();
        for result in judged {
            match result {
                Ok(record) => tally.packets += record.packets,
                Err(finding) => {
                    tally.found += 1;
                    tell(FuzzEvent::Found(finding))?;
                }
            }
        }
        from = until;
        tally.worlds = from - first;
        tell(FuzzEvent::Progress(tally))?;
    }
    let _ = std::panic::take_hook();
    tally.seconds = begun.elapsed().as_secs_f64();
    Ok(tally)
}
