//! `byway lab harm`: what people's requests wait for beside bulk transfers, byway's and those of
//! the kernel's TCP.

use super::run::printable;
use super::stop_flag::cancellation;
use crate::args::lab::LabHarm;
use crate::exit::Exit;
use crate::output::{Event, Fields, Outcome, Output};
use anyhow::{Context as _, Result};
use byway_field::harm::{self, AccessLink, Bounds, HarmEvent, HarmOptions, HarmRow, HarmVerdict};
use byway_field::harm_table;
use serde::Serialize;
use std::io;

/// The counts of verdicts, as JSON.
#[derive(Serialize)]
struct HarmReport {
    /// Number of runs with transfers.
    runs: usize,
    /// Number of runs of byway's background class, which are judged.
    judged: usize,
    /// Number of judged runs that stayed within every bound.
    passed: usize,
    /// Number of judged runs that are inaccurate, because the machine was too busy.
    inaccurate: usize,
}

/// Measures the transfers one after the other. Ends with exit code 0 if byway's background class
/// holds its bounds, by itself and behind gateways.
pub(super) fn run(arguments: &LabHarm, output: &mut Output) -> Result<Exit> {
    let program = std::env::current_exe().context("where this program is")?;
    let prepared = harm::prepare(asked(arguments), |news| tell(news, output))?;
    let (cancel, signals) = cancellation(output)?;
    let all = prepared.run(&program, cancel, |news| tell(news, output))?;
    let judged: Vec<_> = all.iter().filter(|row| row.verdict != HarmVerdict::Shown).collect();
    let count = |verdict| judged.iter().filter(|row| row.verdict == verdict).count();
    let passed = count(HarmVerdict::Pass);
    let told = HarmReport {
        runs: all.len(),
        judged: judged.len(),
        passed,
        inaccurate: count(HarmVerdict::Inaccurate),
    };
    let exit = signals.stop().unwrap_or(if judged.len() == passed { Exit::Ok } else { Exit::Error });
    output.emit(&Event::result("lab", exit, Outcome::Told(Fields::of(&told))));
    Ok(exit)
}

fn asked(arguments: &LabHarm) -> HarmOptions {
    HarmOptions {
        against: arguments.against.clone(),
        bulk: arguments.bulk.clone(),
        requests: arguments.requests,
        queue: arguments.queue.clone(),
        rate: arguments.rate,
        rtt: arguments.rtt,
        seed: arguments.seed,
        simulated: arguments.simulated,
        trace: arguments.trace.clone(),
    }
}

fn tell(news: HarmEvent<'_>, output: &mut Output) -> io::Result<()> {
    match news {
        HarmEvent::Begins { runs, minutes } => output.say_lines(&format!("{runs} runs, {minutes} minutes")),
        HarmEvent::Run(called) => output.say_lines(called),
        HarmEvent::Warning(message) => output.emit(&Event::Warning { message: message.to_owned() }),
        HarmEvent::Row(row) => output.emit(&Event::told("harm", row)),
        HarmEvent::Rows(link, rows) => show(link, rows, output)?,
    }
    Ok(())
}

/// Prints a table of the runs with one queue limit.
fn show(link: AccessLink, rows: &[HarmRow], output: &mut Output) -> io::Result<()> {
    let Some(first) = rows.first() else { return Ok(()) };
    output.answer_lines(&format!(
        "{} requests over {} Mbit/s, {} ms, {} packets of queue; alone {:.0} ms in the median, {:.0} ms at p90",
        first.requests,
        link.mbit,
        link.rtt_ms,
        link.queue,
        first.alone_median_seconds * 1e3,
        first.alone_p90_seconds * 1e3,
    ))?;
    output.answer_table(&printable(&harm_table::table(rows)))?;
    let mut told = Vec::new();
    for bulk in rows.iter().map(|row| row.bulk) {
        if told.contains(&bulk) {
            continue;
        }
        told.push(bulk);
        let Bounds { median, p90, share, regain } = Bounds::of(link.mbit, bulk);
        let share = 100.0 * share;
        output.answer_lines(&format!(
            "bounds of byway, {bulk} at once: {median:.2}x, {p90:.2}x, {share:.0} %, {regain:.0} s"
        ))?;
    }
    Ok(())
}
