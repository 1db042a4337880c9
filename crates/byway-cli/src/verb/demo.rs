//! `byway demo`: the main job on one machine, first over the direct path only, then over all three.

use super::transfer_events::EventTranslator;
use crate::args::verbs::Demo;
use crate::exit::{Exit, Failure};
use crate::messages;
use crate::output::{Align, DemoPath, Event, Outcome, Output, Table};
use crate::signals::Hangup;
use crate::units::{Bytes, Rate, Span};
use anyhow::{Context as _, Result};
use byway_demo::lines::{DEFAULT_BYTES, PathSpec, lines};
use byway_demo::{DemoNetwork, transfer};
use byway_files::{SourceOptions, Totals, compare, generate};
use byway_transfer::{SentTransfer, TransferEvent};
use std::path::{Path, PathBuf};

/// The seed of the generated tree.
const TREE_SEED: u64 = 1;

/// Runs both rounds of the demo, and shows their results.
pub(super) fn run(arguments: &Demo, output: &mut Output) -> Result<Exit> {
    let scratch = tempfile::tempdir().context(messages::demo::CANNOT_MAKE_DIRECTORY)?;
    let (source, bytes) = source(arguments, scratch.path())?;
    let lines = lines(bytes);
    announce(&source, arguments.path.is_none(), bytes, &lines, output);
    let signals = output.catch_signals(Hangup::Stop)?;
    let network = DemoNetwork::new(&lines)?;
    let round = |name: &str, detours: bool, output: &mut Output| {
        output.say(&messages::demo::sending_over(name));
        let sink = scratch.path().join(if detours { "over all" } else { "over one" });
        let mut show = EventTranslator::new(output);
        let sent = transfer(&network, &source, &sink, detours, |news| {
            show.news(named(news, &network), output);
            signals.stop().is_none()
        })?;
        let stopped =
            || Failure::new(signals.stop().unwrap_or(Exit::Interrupted), messages::demo::DEMO_STOPPED);
        let sent = sent.ok_or_else(stopped)?;
        let arrived = source.file_name().map_or_else(|| sink.clone(), |name| sink.join(name));
        let same = compare(&source, &arrived).context(messages::demo::CANNOT_COMPARE)?.is_empty();
        anyhow::Ok((sent, same))
    };
    let (single, single_same) = round(messages::demo::DIRECT_PATH, false, output)?;
    let (multi, multi_same) = round(messages::demo::ALL_PATHS, true, output)?;
    let paths = shares(&multi, &network);
    let table = table(bytes, &single, &multi, &paths);
    let verified = single_same && multi_same;
    output.emit(&Event::result(
        "demo",
        if verified { Exit::Ok } else { Exit::Integrity },
        Outcome::Demo {
            bytes,
            verified,
            single_path_seconds: single.seconds,
            multipath_seconds: multi.seconds,
            speedup: single.seconds / multi.seconds.max(f64::MIN_POSITIVE),
            paths,
        },
    ));
    // After the event, which takes the bars away.
    output.answer(&table)?;
    if verified {
        Ok(Exit::Ok)
    } else {
        Err(Failure::new(Exit::Integrity, messages::demo::CONTENTS_DIFFER).into())
    }
}

/// Returns the files to send, and their size in bytes. Without a path, it makes them below
/// `scratch`.
fn source(arguments: &Demo, scratch: &Path) -> Result<(PathBuf, u64)> {
    match &arguments.path {
        Some(path) => {
            let paths = std::slice::from_ref(path);
            let mut totals = Totals::new(paths, &SourceOptions::DEFAULT, std::sync::Arc::default())?;
            while totals.step(4096) {}
            let counts = totals.counts();
            if counts.files + counts.directories + counts.symlinks == 0 {
                return Err(Failure::new(Exit::Usage, messages::demo::nothing_to_send(path)).into());
            }
            // By its full name, so that it has a last part even if it is `.`.
            let path = path.canonicalize().with_context(|| messages::demo::cannot_find(path))?;
            Ok((path, counts.bytes))
        }
        None => {
            let path = scratch.join("photos");
            let made = generate(&path, TREE_SEED, DEFAULT_BYTES).context(messages::demo::CANNOT_GENERATE)?;
            Ok((path, made.counts.bytes))
        }
    }
}

fn announce(source: &Path, generated: bool, bytes: u64, lines: &[PathSpec; 3], output: &mut Output) {
    let what = if generated { messages::demo::GENERATED_TREE.into() } else { source.display().to_string() };
    output.say(&messages::demo::sends(bytes, &what));
    for line in lines {
        output.say(&messages::demo::line(line.name, line.rate, line.rtt.as_millis()));
    }
}

/// The news with the demo's names for paths.
fn named(news: TransferEvent, network: &DemoNetwork) -> TransferEvent {
    match news {
        TransferEvent::Progress(mut tally) => {
            for path in &mut tally.paths {
                path.name = network.name(path.route.remote).into();
            }
            TransferEvent::Progress(tally)
        }
        other => other,
    }
}

/// The bytes that each line carried. A line may have had several paths.
fn shares(sent: &SentTransfer, network: &DemoNetwork) -> Vec<DemoPath> {
    let mut shares: Vec<DemoPath> = Vec::new();
    for path in &sent.paths {
        let name = network.name(path.route.remote);
        match shares.iter_mut().find(|share| share.name == name) {
            Some(share) => share.bytes += path.bytes,
            None => shares.push(DemoPath { name: name.into(), bytes: path.bytes, rate_bps: 0.0 }),
        }
    }
    for share in &mut shares {
        share.rate_bps = share.bytes as f64 * 8.0 / sent.seconds.max(f64::MIN_POSITIVE);
    }
    shares
}

fn table(bytes: u64, single: &SentTransfer, multi: &SentTransfer, paths: &[DemoPath]) -> String {
    let mut rounds = Table::new([("", Align::Left), ("time", Align::Right), ("goodput", Align::Right)]);
    for (name, sent) in [("direct path only", single), ("all three paths", multi)] {
        let goodput = Rate(bytes as f64 * 8.0 / sent.seconds.max(f64::MIN_POSITIVE));
        rounds.row([name.into(), Span(sent.seconds).to_string(), goodput.to_string()]);
    }
    let carried: u64 = paths.iter().map(|path| path.bytes).sum();
    let mut shares = Table::new([
        ("path", Align::Left),
        ("carried", Align::Right),
        ("share", Align::Right),
        ("rate", Align::Right),
    ]);
    for path in paths {
        let percent = path.bytes as f64 * 100.0 / carried.max(1) as f64;
        let rate = Rate(path.rate_bps).to_string();
        shares.row([path.name.clone(), Bytes(path.bytes).to_string(), format!("{percent:.0} %"), rate]);
    }
    let speedup = single.seconds / multi.seconds.max(f64::MIN_POSITIVE);
    format!("\n{rounds}\n\n{shares}\n\n{}", messages::demo::speedup(speedup))
}
