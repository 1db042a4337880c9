//! `byway lab harm`: what people's requests wait for beside bulk transfers, byway's and those of the kernel's TCP, over an
//! emulated link. Requests go the way of the bulk data; the same ones are made alone first.

mod figures;
mod world;

use super::emulation;
use crate::args::lab::LabHarm;
use crate::exit::{Exit, Failure};
use crate::output::{Align, Event, Harm, Outcome, Output, Table};
use anyhow::{Context as _, Result};
use byway_lab::Record;
use figures::{Bounds, Figures, figures};
use std::fs::{self, File};
use std::io::BufWriter;
use std::sync::atomic::AtomicBool;
use world::{Link, Rival};

const PASS: &str = "pass";
const FAIL: &str = "fail";
const INACCURATE: &str = "inaccurate";
/// Of those who are not judged.
const SHOWN: &str = "-";

/// A run that came to its end.
struct Run {
    record: Record,
    accurate: bool,
}

/// Measures one after the other: runs share the machine. Ends with 0 if byway's background class, itself or behind gateways, holds its bounds.
pub(super) fn run(arguments: &LabHarm, output: &mut Output) -> Result<Exit> {
    let mut rivals = Vec::new();
    for name in &arguments.against {
        let rival = Rival::named(name).map_err(|error| Failure::new(Exit::Usage, error.to_string()))?;
        if rival == Rival::Tcp("ledbat".to_owned()) && !arguments.simulated && !emulation::has_ledbat() {
            let message =
                "ledbat is left out: no python3 here has libtorrent (python3-libtorrent)".to_owned();
            output.emit(&Event::Warning { message });
        } else {
            rivals.push((name, rival));
        }
    }
    for &queue in arguments.queue.iter().filter(|_| !arguments.simulated) {
        // A program that is missing is told now, not after the runs before the one that needs it.
        let link = Link { mbit: arguments.rate, rtt_ms: arguments.rtt, queue };
        for (name, rival) in &rivals {
            let text = world::plan(link, arguments.requests, Some((rival, 1)));
            emulation::possible(&world::setup(name, &text)?)?;
        }
    }
    let (cancel, signals) = super::run::cancellation()?;
    output.heed(&signals);
    let per_queue = 1 + rivals.len() * arguments.bulk.len();
    let runs = arguments.queue.len() * per_queue;
    let minutes = (runs as u32 * (world::seconds(arguments.requests) + 2)).div_ceil(60);
    output.say_lines(&format!("{runs} runs, {minutes} minutes"));
    let mut all: Vec<Harm> = Vec::new();
    'queues: for &queue in &arguments.queue {
        let link = Link { mbit: arguments.rate, rtt_ms: arguments.rtt, queue };
        let Some(alone) = one(arguments, link, None, cancel, output)? else { break };
        let mut rows: Vec<Harm> = Vec::new();
        for (name, rival) in &rivals {
            for &bulk in &arguments.bulk {
                let Some(beside) = one(arguments, link, Some((name, rival, bulk)), cancel, output)? else {
                    break 'queues;
                };
                let found =
                    figures(&alone.record, &beside.record).context("no request came back, even alone")?;
                let row = row((name, rival), bulk, link, alone.accurate && beside.accurate, &found);
                output.emit(&Event::Harm(row.clone()));
                rows.push(row);
            }
        }
        tell(link, &rows, output)?;
        all.extend(rows);
    }
    let judged: Vec<_> = all.iter().filter(|row| row.verdict != SHOWN).collect();
    let count = |verdict| judged.iter().filter(|row| row.verdict == verdict).count();
    let outcome = Outcome::Harm {
        runs: all.len(),
        judged: judged.len(),
        passed: count(PASS),
        inaccurate: count(INACCURATE),
    };
    let held = judged.len() == count(PASS);
    let exit = signals.stop().unwrap_or(if held { Exit::Ok } else { Exit::Error });
    output.emit(&Event::result("lab", exit, outcome));
    Ok(exit)
}

/// One run; `None` if it was cancelled.
fn one(
    arguments: &LabHarm,
    link: Link,
    bulk: Option<(&str, &Rival, u32)>,
    cancel: &AtomicBool,
    output: &mut Output,
) -> Result<Option<Run>> {
    let called = match bulk {
        Some((name, _, count)) => format!("queue {}: beside {count} of {name}", link.queue),
        None => format!("queue {}: alone", link.queue),
    };
    output.say_lines(&called);
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("harm.toml");
    let text = world::plan(link, arguments.requests, bulk.map(|(_, rival, count)| (rival, count)));
    fs::write(&file, &text)?;
    let file = file.to_string_lossy();
    let setup = world::setup(&file, &text)?;
    let run = if arguments.simulated {
        let record = byway_lab::world::run(&setup, arguments.seed, cancel);
        emulation::Run { record: Some(record.with_context(|| called.clone())?), warning: None }
    } else {
        emulation::variant(&file, None, &setup, arguments.seed, cancel).with_context(|| called.clone())?
    };
    if let (Some(directory), Some(record)) = (&arguments.trace, &run.record) {
        fs::create_dir_all(directory)?;
        let name = format!("{}.jsonl", called.replace(|c: char| !c.is_ascii_alphanumeric(), "-"));
        let mut lines = BufWriter::new(File::create(directory.join(name))?);
        byway_lab::trace::jsonl::write(record, &mut lines)?;
    }
    for failed in run.record.iter().flat_map(|record| &record.transfers) {
        if let Some(why) = &failed.failed {
            output.emit(&Event::Warning { message: format!("{called}: {}: {why}", failed.name) });
        }
    }
    let accurate = run.warning.is_none();
    if let Some(warning) = run.warning {
        output.emit(&Event::Warning { message: format!("{called}: {warning}") });
    }
    Ok(run.record.map(|record| Run { record, accurate }))
}

fn row((name, rival): (&str, &Rival), bulk: u32, link: Link, accurate: bool, found: &Figures) -> Harm {
    let finite = |value: f64| Some(value).filter(|value| value.is_finite());
    let missed = found.missed(&Bounds::of(link.mbit, bulk));
    let verdict = match (rival.is_judged(), accurate, missed.is_empty()) {
        (false, ..) => SHOWN,
        (_, false, _) => INACCURATE,
        (_, _, true) => PASS,
        _ => FAIL,
    };
    Harm {
        against: name.to_owned(),
        bulk,
        queue: link.queue,
        rate_bps: u64::from(link.mbit) * 1_000_000,
        rtt_ms: link.rtt_ms,
        requests: found.requests,
        finished: found.finished,
        alone_median_seconds: found.alone[0],
        alone_p90_seconds: found.alone[1],
        median_seconds: finite(found.beside[0]),
        p90_seconds: finite(found.beside[1]),
        median: finite(found.ratio[0]),
        p90: finite(found.ratio[1]),
        share: found.share,
        regain_seconds: found.regain,
        accurate,
        verdict,
        missed,
    }
}

/// A table for one queue.
fn tell(link: Link, rows: &[Harm], output: &mut Output) -> Result<()> {
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
    let mut table = Table::new([
        ("beside", Align::Left),
        ("transfers", Align::Right),
        ("median", Align::Right),
        ("p90", Align::Right),
        ("of the rest", Align::Right),
        ("has it after", Align::Right),
        ("", Align::Left),
    ]);
    let shown = |value: Option<f64>, text: fn(f64) -> String| value.map_or_else(|| "never".to_owned(), text);
    for row in rows {
        let verdict = match (row.verdict, row.accurate) {
            (FAIL, _) => format!("FAIL: {}", row.missed.join(", ")),
            (SHOWN, false) => INACCURATE.to_owned(),
            (SHOWN, true) => String::new(),
            (verdict, _) => verdict.to_owned(),
        };
        table.row([
            row.against.clone(),
            row.bulk.to_string(),
            shown(row.median, |ratio| format!("{ratio:.2}x")),
            shown(row.p90, |ratio| format!("{ratio:.2}x")),
            shown(row.share, |share| format!("{:.0} %", 100.0 * share)),
            shown(row.regain_seconds, |seconds| format!("{seconds:.1} s")),
            verdict,
        ]);
    }
    output.answer_table(&table)?;
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
