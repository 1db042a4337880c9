//! `byway source`: sends the records of standard input to sinks, all the time and at a rate.

use super::source_relays::RegistryRelays;
use super::transfer_events::looked_up;
use crate::args::Global;
use crate::args::sources::{LongLinesArgument, Source as Arguments, parse_demand};
use crate::exit::{Exit, Failure, sentence};
use crate::messages;
use crate::output::{Event, Fields, Outcome, Output, ResultEvent};
use crate::signals::{Hangup, Signals};
use anyhow::{Context as _, Result};
use byway_net::Clock;
use byway_sources::record_framing::{Framing, LongLines};
use byway_sources::{
    ControllerReading, Input, MAX_RECORD_LEN, OverflowPolicy, PathStanding, RateRule, Source, SourceError,
    SourceEvent, SourcePlan, SourceStatus, read,
};
use byway_transfer::local_address::local_addresses;
use byway_transfer::{Ticket, secret_words};
use byway_wire::relay::Word;
use byway_wire::{Duration, Instant};
use serde::Serialize;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};

/// Time between two checks for signals, for each sink.
const SIGNAL_POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Time between two reads of the file with the demand.
const DEMAND_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// The most renewals of relay words that may wait for a source.
const MAX_QUEUED_RENEWALS: usize = 4;
/// Time between two reports to a person.
const REPORT_INTERVAL: Duration = Duration::from_secs(10);

/// The figures of the connection to one sink.
#[derive(Serialize)]
struct SinkFigures<'a> {
    sink: &'a str,
    connected: bool,
    rate_bps: f64,
    demand_bps: f64,
    lag_records: u64,
    lag_seconds: f64,
    given_up_records: u64,
    long_lines: u64,
    written_records: u64,
    repeated_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    slow_because: Option<&'a str>,
    paths: Vec<PathFigures<'a>>,
}

#[derive(Serialize)]
struct PathFigures<'a> {
    name: &'a str,
    offered_bps: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    received_bps: Option<f64>,
    failed_raises: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    rtt_ms: Option<f64>,
    timeouts: u32,
}

/// A sink, and the source that sends to it.
struct SinkTarget {
    /// The beginning of the sink's key.
    key: String,
    running: Option<Source>,
    renew: SyncSender<Vec<Word>>,
    outcome: Option<(u64, Result<(), SourceError>)>,
    shown: Instant,
    away: bool,
    /// Number of lines that were too long, as shown last.
    long_lines: u64,
}

/// Sends until the input ends or a signal says stop.
pub(super) fn run(global: &Global, arguments: &Arguments, output: &mut Output) -> Result<Exit> {
    let usage = |sentence: String| Failure::new(Exit::Usage, sentence);
    let framing = match (arguments.prefixed, arguments.record) {
        (true, _) => Framing::Prefixed,
        (false, None) => Framing::Lines,
        (false, Some(size)) => match usize::try_from(size) {
            Ok(size) if (1..=MAX_RECORD_LEN).contains(&size) => Framing::Fixed(size),
            _ => {
                return Err(usage(messages::source::record_size(MAX_RECORD_LEN, size)).into());
            }
        },
    };
    let long_lines = match arguments.long_lines {
        LongLinesArgument::Cut => LongLines::Cut,
        LongLinesArgument::Skip => LongLines::Skipped,
    };
    let tickets: Vec<Ticket> = global.config.tickets(&arguments.to, "--to")?;
    let mut relays: Vec<Word> = secret_words::values(&arguments.relay, "--relay")?;
    let file = arguments.demand_file.as_deref();
    let first = match file {
        Some(file) => demand_in(file)?,
        None => arguments.demand.unwrap_or(1),
    };
    let demand = Arc::new(AtomicU64::new(first));
    let bind: Vec<IpAddr> = local_addresses(&arguments.bind, 0)?.iter().map(SocketAddr::ip).collect();
    let state = global.state()?;
    let identity = state.identity()?;
    let mut registry = None;
    if let Some(word) = &arguments.registry {
        let (asked, words) = RegistryRelays::find(&identity, &state, word.value()?, output)?;
        registry = Some(asked);
        relays.extend(words);
    }
    let (feeds, wakers) = read(io::stdin(), Input { framing, long_lines }, tickets.len())
        .context(messages::source::CANNOT_START_THREAD)?;
    let clock = Clock::new();
    let mut sinks = Vec::new();
    for (ticket, feed) in tickets.into_iter().zip(feeds) {
        let key = ticket.key.to_string().chars().take(20).collect();
        let (renew, renewed) = sync_channel(MAX_QUEUED_RENEWALS);
        let running = Source::start(SourcePlan {
            name: arguments.name.clone(),
            identity: identity.clone(),
            ticket,
            relays: relays.clone(),
            renewed,
            paths: Some(arguments.paths.into()),
            bind: bind.clone(),
            rule: RateRule {
                reading: if arguments.literal {
                    ControllerReading::Literal
                } else {
                    ControllerReading::Recommended
                },
                beta: arguments.beta,
            },
            demand: Arc::clone(&demand),
            held: if arguments.give_up_oldest { OverflowPolicy::GivenUp } else { OverflowPolicy::Back },
            keep: arguments.keep.map(|keep| usize::try_from(keep).unwrap_or(usize::MAX)),
            replay: arguments.replay,
            feed,
        })?;
        wakers.add(running.waker().clone());
        sinks.push(SinkTarget {
            key,
            running: Some(running),
            renew,
            outcome: None,
            shown: clock.now(),
            away: false,
            long_lines: 0,
        });
    }
    let signals = output.catch_signals(Hangup::Stop)?;
    output.publish("source", None, &state);
    output.emit(&Event::told(
        "ready",
        &Begun { name: arguments.name.as_str(), demand_bps: first as f64 * 8.0 },
    ));
    let name = arguments.name.as_str();
    let stop = serve(name, &mut sinks, registry.as_ref(), (file, &demand), &signals, output)?;
    Ok(conclude(&sinks, stop, output))
}

#[derive(Serialize)]
struct Begun<'a> {
    name: &'a str,
    demand_bps: f64,
}

/// The demand that a file holds.
fn demand_in(file: &Path) -> Result<u64> {
    let text = std::fs::read_to_string(file).with_context(|| messages::source::cannot_read(file))?;
    let demand = parse_demand(text.trim());
    demand.map_err(|error| Failure::new(Exit::Usage, messages::source::demand_in_file(file, error)).into())
}

/// Follows all sinks until each has ended. Returns the exit code of the signal that stopped them,
/// if one came.
fn serve(
    name: &str,
    sinks: &mut [SinkTarget],
    registry: Option<&RegistryRelays>,
    (file, demand): (Option<&Path>, &AtomicU64),
    signals: &Signals,
    output: &mut Output,
) -> Result<Option<Exit>> {
    let clock = Clock::new();
    let (mut look_at, mut trouble) = (clock.now() + DEMAND_POLL_INTERVAL, None);
    let mut stop = None;
    while sinks.iter().any(|sink| sink.running.is_some()) {
        for sink in &mut *sinks {
            sink.follow(name, &clock, output)?;
        }
        if let Some(words) = registry.and_then(|registry| registry.renewed(output)) {
            // A source that has yet to take the renewals before misses this one.
            sinks.iter().for_each(|sink| drop(sink.renew.try_send(words.clone())));
        }
        if stop.is_none()
            && let Some(exit) = signals.stop()
        {
            stop = Some(exit);
            sinks.iter().filter_map(|sink| sink.running.as_ref()).for_each(|source| source.cancel());
        }
        if let Some(file) = file
            && clock.now() >= look_at
        {
            look_at = clock.now() + DEMAND_POLL_INTERVAL;
            match demand_in(file) {
                Ok(new) => {
                    trouble = None;
                    if demand.swap(new, Ordering::Relaxed) != new {
                        output.say(&messages::source::new_demand(new));
                    }
                }
                Err(error) => {
                    let message = messages::source::demand_stays(sentence(&error));
                    if trouble.as_ref() != Some(&message) {
                        output.emit(&Event::Warning { message: message.clone() });
                        trouble = Some(message);
                    }
                }
            }
        }
    }
    Ok(stop)
}

impl SinkTarget {
    fn follow(&mut self, name: &str, clock: &Clock, output: &mut Output) -> Result<()> {
        let Some(running) = &self.running else { return Ok(()) };
        let news = running.next(SIGNAL_POLL_INTERVAL);
        if news.is_none() && running.is_over() {
            if let Some(running) = self.running.take() {
                self.outcome = Some(running.finish()?);
            }
            return Ok(());
        }
        match news {
            Some(SourceEvent::Connected(written)) => {
                self.away = false;
                output.say(&messages::source::connected(&self.key, written));
            }
            Some(SourceEvent::ForeignRecords(records)) => {
                let message = messages::source::foreign_records(&self.key, name, records);
                output.emit(&Event::Warning { message });
            }
            Some(SourceEvent::Away(why)) => {
                // Once, until there is a connection again.
                let told = std::mem::replace(&mut self.away, true);
                (!told).then(|| output.say(&messages::source::away(&self.key, why)));
            }
            Some(SourceEvent::Warning(message)) => output.emit(&Event::Warning { message }),
            Some(SourceEvent::Name(step)) => looked_up(step, output),
            Some(SourceEvent::Report(standing)) => {
                if std::mem::replace(&mut self.long_lines, standing.long_lines) == 0
                    && standing.long_lines > 0
                {
                    output.emit(&Event::Warning { message: messages::source::long_lines(MAX_RECORD_LEN) });
                }
                output.emit(&Event::told("source", &self.told(&standing)));
                if clock.now().since(self.shown) >= REPORT_INTERVAL && !output.is_json() {
                    self.shown = clock.now();
                    output.say(&line(&standing));
                }
            }
            None => {}
        }
        Ok(())
    }

    fn told<'a>(&'a self, standing: &'a SourceStatus) -> SinkFigures<'a> {
        let path = |path: &'a PathStanding| PathFigures {
            name: &path.name,
            offered_bps: path.view.rate * 8.0,
            received_bps: path.view.received.map(|rate| rate * 8.0),
            failed_raises: path.view.failures,
            rtt_ms: path.rtt.map(|rtt| rtt * 1e3),
            timeouts: path.timeouts,
        };
        SinkFigures {
            sink: &self.key,
            connected: standing.connected,
            rate_bps: standing.rate * 8.0,
            demand_bps: standing.demand as f64 * 8.0,
            lag_records: standing.lag,
            lag_seconds: standing.lag_seconds,
            given_up_records: standing.given_up,
            long_lines: standing.long_lines,
            written_records: standing.written,
            repeated_bytes: standing.repeated,
            slow_because: standing.why.as_deref(),
            paths: standing.paths.iter().map(path).collect(),
        }
    }
}

fn line(standing: &SourceStatus) -> String {
    let rates_bps = (standing.rate * 8.0, standing.demand as f64 * 8.0);
    let lag = (standing.lag, standing.lag_seconds);
    let left_out = (standing.given_up, standing.long_lines);
    messages::source::progress(rates_bps, lag, left_out, standing.why.as_deref())
}

/// Reports how each sink ended. Returns the exit code of the first failure, or else of the signal.
fn conclude(sinks: &[SinkTarget], stop: Option<Exit>, output: &mut Output) -> Exit {
    let mut exit = stop.unwrap_or(Exit::Ok);
    let mut error = None;
    for (sink, outcome) in sinks.iter().filter_map(|sink| Some((sink, sink.outcome.as_ref()?))) {
        if let Err(failure) = &outcome.1 {
            let sentence = match sinks.len() {
                0 | 1 => failure.to_string(),
                _ => messages::source::about_sink(&sink.key, failure),
            };
            output.complain(&sentence);
            if error.is_none() {
                error = Some(sentence);
                exit = match failure {
                    SourceError::Refused(_) | SourceError::OtherKey => Exit::NotAuthorised,
                    SourceError::Stopped(_) => stop.unwrap_or(Exit::Interrupted),
                    SourceError::Input(_)
                    | SourceError::NameTaken(_)
                    | SourceError::OtherVersion
                    | SourceError::OtherRecords { .. }
                    | SourceError::InputTooShort { .. } => Exit::Error,
                };
            }
        }
    }
    let written: Vec<u64> =
        sinks.iter().filter_map(|sink| sink.outcome.as_ref().map(|(written, _)| *written)).collect();
    output.emit(&Event::Result(ResultEvent {
        verb: "source",
        exit: exit as u8,
        error,
        outcome: Outcome::Told(Fields::one("written_records", &written)),
    }));
    exit
}
