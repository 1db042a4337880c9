//! Converts the events of a transfer to the program's events.

use crate::exit::Exit;
use crate::messages;
use crate::output::{
    Event, LendingReport, Origin, Outcome, Output, PathChange, PathProgress, PathTotal, Progress,
    RelayChange, RelayTotal, ResultEvent, TriedAddress,
};
use byway_files::TRASH_DIRECTORY;
use byway_transfer::{
    AttemptReply, AttemptResult, HostName, NameStep, NotConnected, PathCounters, RelayOutcome, SessionLog,
    TransferError, TransferEvent, TransferProgress, TrashName, UselessRelay, carrier,
};
use byway_wire::Duration;
use serde::Serialize;

/// Seconds between two events of progress.
const PROGRESS_INTERVAL_SECONDS: f64 = 1.0;

/// Returns why the receiver is away, for a command that retries by itself. The advice in errors is
/// left out.
pub(super) fn absence_reason(error: &TransferError) -> String {
    String::from(match error {
        TransferError::SessionForgotten => messages::transfer::SESSION_FORGOTTEN,
        TransferError::PeerInterrupted | TransferError::PeerLeft => messages::transfer::RECEIVER_STOPPED,
        TransferError::ConnectionLost => messages::transfer::RECEIVER_SILENT,
        TransferError::Standstill => messages::transfer::NOTHING_ARRIVES,
        TransferError::QuotaUsedUp(reason) => return messages::transfer::silent_and_used_up(reason),
        TransferError::NotConnected(NotConnected::NoAnswer(why)) => return why.to_string(),
        other => return other.to_string(),
    })
}

/// Turns news into events.
pub(super) struct EventTranslator {
    /// The time of the last progress event, in seconds of the transfer.
    last: Option<f64>,
    json: bool,
    /// A sender's sessions as qlog.
    pub log: SessionLog,
    /// The rate that this host relays for others during the transfer.
    pub lends: Option<LendingReport>,
}

impl EventTranslator {
    pub fn new(output: &Output) -> Self {
        Self { last: None, json: output.is_json(), log: SessionLog::default(), lends: None }
    }

    /// Shows one event of a transfer.
    pub fn news(&mut self, news: TransferEvent, output: &mut Output) {
        self.log.note(&news);
        match news {
            TransferEvent::Progress(tally) => {
                // Bars are redrawn as often as there is something new; a program reads once a
                // second.
                let due = self.last.is_none_or(|last| {
                    tally.seconds < last || tally.seconds >= last + PROGRESS_INTERVAL_SECONDS
                });
                if due || !self.json {
                    self.last = Some(tally.seconds);
                    output.emit(&Event::Progress(Progress { lends: self.lends.clone(), ..progress(tally) }));
                }
            }
            TransferEvent::Warning(message) | TransferEvent::UselessRelay(UselessRelay { message, .. }) => {
                output.emit(&Event::Warning { message })
            }
            TransferEvent::Path { path, name, state, reason } => {
                output.emit(&Event::Path(PathChange { path, name, state: state.into(), reason }));
            }
            TransferEvent::Relay { name, standing, reason } => {
                output.emit(&Event::Relay(RelayChange { name, standing, reason }));
            }
            TransferEvent::Name(step) => looked_up(step, output),
            TransferEvent::Looked { .. }
            | TransferEvent::Begun
            | TransferEvent::Reachable(_)
            | TransferEvent::Received(_)
            | TransferEvent::Forwarded(_)
            | TransferEvent::Away(_) => {}
        }
    }
}

/// The event of a step in the lookup of a host name.
#[derive(Serialize)]
struct ToldName {
    name: String,
    standing: &'static str,
    addresses: Vec<String>,
    reason: Option<String>,
}

/// Shows a step in the lookup of a host name.
pub(super) fn looked_up(step: NameStep, output: &mut Output) {
    output.detail(&messages::transfer::looked_up(&step));
    let told = |name: HostName, standing| ToldName {
        name: name.to_string(),
        standing,
        addresses: Vec::new(),
        reason: None,
    };
    let told = match step {
        NameStep::Asked(name) => told(name, "asked"),
        NameStep::Found(name, found) => {
            let addresses = found.iter().map(ToString::to_string).collect();
            ToldName { addresses, ..told(name, "found") }
        }
        NameStep::NotFound(name, why) => {
            ToldName { reason: Some(why.to_string()), ..told(name, "not_found") }
        }
    };
    output.emit(&Event::told("name", &told));
}

/// Converts a time to milliseconds for an event.
pub(super) fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn progress(tally: TransferProgress) -> Progress {
    let sends = tally.origin.is_none();
    Progress {
        seconds: tally.seconds,
        bytes: tally.bytes,
        origin: tally.origin.map(origin),
        total: tally.total,
        rate_bps: tally.rate_bps,
        pause: tally.pause,
        yielded_seconds: sends.then_some(tally.cost.yielded.as_secs_f64()),
        added_delay_ms: tally.cost.added_delay().map(millis),
        lends: None,
        paths: tally.paths.into_iter().map(path).collect(),
        arrivals: tally.arrivals.into_iter().map(path).collect(),
    }
}

fn path(path: PathCounters) -> PathProgress {
    PathProgress {
        path: path.path,
        carrier: carrier(&path.route).into(),
        local: path.local,
        remote: Some(path.route.remote),
        name: path.name,
        state: path.state.into(),
        bytes: path.bytes,
        rate_bps: path.rate_bps,
        rtt_ms: path.rtt.map(millis),
        base_rtt_ms: path.base_rtt.map(millis),
        queue_ms: path.queueing.map(millis),
        packets: path.packets,
        lost: path.lost,
        pause: path.pause,
    }
}

/// Returns a transfer's sender, number and name, for events of a receiver.
pub(super) fn origin(origin: byway_transfer::TransferId) -> Origin {
    Origin { transfer: origin.transfer, from: origin.from.to_string(), name: origin.name }
}

/// Returns the path of deleted entries, from the receiver's directory.
pub(super) fn trash(folder: TrashName) -> String {
    format!("{TRASH_DIRECTORY}/{folder}")
}

/// Returns the bytes and losses of each path.
pub(super) fn totals(paths: &[PathCounters]) -> Vec<PathTotal> {
    let total = |path: &PathCounters| PathTotal {
        route: path.name.clone(),
        carrier: carrier(&path.route),
        bytes: path.bytes,
        lost: path.lost,
    };
    paths.iter().map(total).collect()
}

/// Returns the final state of each relay.
pub(super) fn relays(relays: &[RelayOutcome]) -> Vec<RelayTotal> {
    let total = |relay: &RelayOutcome| RelayTotal {
        name: relay.name.clone(),
        standing: relay.standing,
        reason: relay.reason.clone(),
        rtt_ms: relay.rtt.map(millis),
        bytes: relay.bytes,
    };
    relays.iter().map(total).collect()
}

/// Reports that a receiver does not answer, with the reply from each address tried. Returns the
/// exit code.
pub(super) fn unreached(
    verb: &'static str,
    error: &TransferError,
    tried: &[AttemptResult],
    output: &mut Output,
) -> Exit {
    let exit = Exit::of_transfer(error);
    let ways = tried.iter().map(|way| TriedAddress {
        address: way.place.to_string(),
        relay: matches!(way.heard, AttemptReply::Relay(_)),
        heard: way.heard.code(),
        reason: way.heard.to_string(),
    });
    output.emit(&Event::Result(ResultEvent {
        verb,
        exit: exit as u8,
        error: Some(error.to_string()),
        outcome: Outcome::Unreached { tried: ways.collect() },
    }));
    output.complain(&error.to_string());
    for way in tried {
        output.say(&messages::transfer::tried(way));
    }
    exit
}
