//! `byway sink`: prints a ticket and writes the records of live sources.

use super::directory_use;
use crate::args::Global;
use crate::args::sources::Sink as Arguments;
use crate::exit::{Exit, Failure};
use crate::messages;
use crate::output::{Align, Event, Fields, Outcome, Output, Reach, Ready, Table};
use crate::signals::{Hangup, Signals};
use crate::units::{Bytes, Rate};
use anyhow::{Context as _, Result};
use byway_net::{Clock, Socket};
use byway_sources::{FileChange, Sink, SinkEvent, SinkPlan, SourceReport, prepare};
use byway_transfer::local_address::local_addresses;
use byway_transfer::reachability::Role;
use byway_transfer::receiver_addresses::DirectAddresses;
use byway_transfer::state_directory::TicketState;
use byway_transfer::ticket::{GreetedRelay, MAX_ENTRIES};
use byway_transfer::{GreetedRelays, UselessRelay, receiving_config, secret_words, sockets};
use byway_wire::Duration;
use byway_wire::relay::Word;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, IsTerminal as _};
use std::net::SocketAddr;

/// Time between two checks for signals.
const SIGNAL_POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Time to wait for relays before the ticket is printed. A relay that does not answer is given up
/// after some 5 seconds.
const RELAY_GREETING_TIMEOUT: Duration = Duration::from_secs(6);
/// Time between two reports to a person of how sources do.
const REPORT_INTERVAL: Duration = Duration::from_secs(10);

/// The memory for all, divided by the memory for records. The rest is for data in packets.
const RECORD_SHARE: u64 = 4;

/// The figures of one source.
#[derive(Serialize)]
struct SourceFigures<'a> {
    name: &'a str,
    rate_bps: f64,
    demand_bps: f64,
    lag_records: u64,
    lag_seconds: f64,
    lost_records: u64,
    records: u64,
    paths: BTreeMap<&'a str, u64>,
}

/// Receives records until it is stopped.
pub(super) fn run(global: &Global, arguments: &Arguments, output: &mut Output) -> Result<Exit> {
    let directory = &arguments.directory;
    prepare(directory).with_context(|| messages::sink::cannot_write_into(directory))?;
    let _lock = directory_use::by_sink(directory)?;
    let words: Vec<Word> = secret_words::values(&arguments.relay, "--relay")?;
    if words.len() > MAX_ENTRIES {
        let message = messages::sink::too_many_relays(MAX_ENTRIES, words.len());
        return Err(Failure::new(Exit::Usage, message).into());
    }
    super::recv::raise_file_limit();
    let state = global.state()?;
    let identity = state.identity()?;
    let mut standing = state.receiving(directory, false)?;
    if standing.is_passing() {
        return Err(Failure::new(Exit::Error, messages::common::directory_in_use(directory, None)).into());
    }
    if arguments.new_ticket {
        standing.renew().context(messages::common::CANNOT_REPLACE_TICKET)?;
    }
    let listen = local_addresses(&arguments.listen, 0)?;
    let sockets = sockets::answering(sockets::listening(&listen, standing.port())?);
    let listeners = sockets::listeners(&sockets);
    let bound: Vec<SocketAddr> = sockets.iter().map(Socket::address).collect();
    if listeners.len() < bound.len() {
        let addresses: Vec<String> = bound.iter().map(SocketAddr::to_string).collect();
        return Err(Failure::new(Exit::Error, messages::sink::cannot_listen_on_tcp(&addresses)).into());
    }
    let trouble = keep(&mut standing, &bound);
    let direct = DirectAddresses::new(&bound, sockets::reachable_at(&sockets), &arguments.advertise)?;
    let mut ticket = direct.ticket(identity.public(), standing.permission().clone());
    let record_memory = arguments.memory / RECORD_SHARE;
    let sink = Sink::start(SinkPlan {
        identity,
        permission: ticket.permission.clone(),
        allow: arguments.allow.clone(),
        directory: directory.clone(),
        sync: arguments.fsync,
        relays: words.clone(),
        sockets,
        listeners,
        config: receiving_config(None, Some(arguments.memory - record_memory)),
        record_memory: usize::try_from(record_memory).unwrap_or(usize::MAX),
    })?;
    let signals = output.catch_signals(Hangup::Stop)?;
    output.publish("sink", None, &state);
    ticket.relays = greet(&sink, &words, output);
    let text = ticket.to_string();
    output.emit(&Event::Ready(Ready {
        ticket: Some(text.clone()),
        listen: bound.iter().map(SocketAddr::to_string).collect(),
        direct: Some(Reach::new(&direct, messages::sink::source_command("TICKET"))),
        ..Ready::default()
    }));
    output.answer(&text)?;
    let shown = if io::stderr().is_terminal() { text.as_str() } else { "TICKET" };
    output.say(&messages::common::command_elsewhere(&messages::sink::source_command(shown)));
    output.say(&Role::Sink.firewall(&direct.ports));
    let lonely = direct.warning(Role::Sink).filter(|_| ticket.relays.is_empty());
    for message in trouble.into_iter().chain(lonely) {
        output.emit(&Event::Warning { message });
    }
    let exit = serve(&sink, &signals, output);
    sink.join()?;
    output.emit(&Event::result("sink", exit, Outcome::Told(Fields::default())));
    Ok(exit)
}

/// Saves the ticket for the next run. Returns a warning if that fails or the ticket's port was not
/// used.
fn keep(standing: &mut TicketState, bound: &[SocketAddr]) -> Option<String> {
    let before = standing.port().filter(|_| standing.is_kept());
    let port = bound.first()?.port();
    if let Err(error) = standing.keep(port) {
        return Some(messages::common::ticket_not_saved(error));
    }
    let before = before.filter(|before| !bound.iter().any(|address| address.port() == *before))?;
    Some(messages::sink::port_not_used(before))
}

/// Waits for the relays to answer. Returns the relays that did.
fn greet(sink: &Sink, words: &[Word], output: &mut Output) -> Vec<GreetedRelay> {
    let mut found = GreetedRelays::default();
    let clock = Clock::new();
    let begun = clock.now();
    while !found.is_complete(words) && clock.now().since(begun) < RELAY_GREETING_TIMEOUT && !sink.is_over() {
        match sink.next(SIGNAL_POLL_INTERVAL) {
            Some(SinkEvent::Reachable(relay)) => found.on_reachable(relay),
            Some(SinkEvent::UselessRelay(relay)) => found.on_useless(relay),
            Some(SinkEvent::Warning(message)) => found.troubles.push(message),
            _ => {}
        }
    }
    found.end(words);
    for message in found.troubles {
        output.emit(&Event::Warning { message });
    }
    found.greeted
}

/// Shows the sink's events until a signal comes or the sink ends, and returns the exit code.
fn serve(sink: &Sink, signals: &Signals, output: &mut Output) -> Exit {
    let clock = Clock::new();
    let mut shown = clock.now();
    let mut stop = None;
    loop {
        let news = sink.next(SIGNAL_POLL_INTERVAL);
        let idle = news.is_none();
        match news {
            Some(SinkEvent::Came(name)) => {
                output.say(&messages::sink::source_came(name.as_str()));
                output.emit(&Event::told("source_came", &Named { name: name.as_str(), reason: None }));
            }
            Some(SinkEvent::Gone(name, why)) => {
                output.say(&messages::sink::source_gone(name.as_str(), &why));
                output.emit(&Event::told("source_gone", &Named { name: name.as_str(), reason: Some(&why) }));
            }
            Some(SinkEvent::NewFile(name, change)) => tell_new_file(name.as_str(), change, output),
            Some(SinkEvent::Warning(message) | SinkEvent::UselessRelay(UselessRelay { message, .. })) => {
                output.emit(&Event::Warning { message });
            }
            Some(SinkEvent::Report(reports)) => {
                for report in &reports {
                    output.emit(&Event::told("source", &told(report)));
                }
                let is_due = clock.now().since(shown) >= REPORT_INTERVAL || signals.take_report();
                if is_due && !reports.is_empty() && !output.is_json() {
                    shown = clock.now();
                    output.say(table(&reports).to_string().trim_end());
                }
            }
            Some(SinkEvent::Reachable(_)) | None => {}
        }
        if stop.is_none()
            && let Some(exit) = signals.stop()
        {
            stop = Some(exit);
            sink.cancel();
        }
        if idle && sink.is_over() {
            // By itself it ends only if the data plane broke: `join` says how.
            return stop.map_or(Exit::Error, Exit::of_service);
        }
    }
}

/// A source has a new file. Where records may be gone, that is a warning.
fn tell_new_file(name: &str, change: FileChange, output: &mut Output) {
    let message = messages::sink::new_file(name, change);
    let reason = match change {
        FileChange::Moved => "moved",
        FileChange::Deleted => "deleted",
        FileChange::Emptied => "emptied",
        FileChange::Missing => "missing",
    };
    output.emit(&Event::told("new_file", &Named { name, reason: Some(reason) }));
    match change {
        FileChange::Moved | FileChange::Missing => output.say(&message),
        FileChange::Deleted | FileChange::Emptied => output.emit(&Event::Warning { message }),
    }
}

#[derive(Serialize)]
struct Named<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

fn told(report: &SourceReport) -> SourceFigures<'_> {
    SourceFigures {
        name: report.name.as_str(),
        rate_bps: report.rate * 8.0,
        demand_bps: report.demand as f64 * 8.0,
        lag_records: report.lag,
        lag_seconds: report.lag_seconds,
        lost_records: report.lost,
        records: report.written,
        paths: report.paths.iter().map(|(name, bytes)| (name.as_str(), *bytes)).collect(),
    }
}

fn table(reports: &[SourceReport]) -> Table {
    let right = Align::Right;
    let mut table = Table::new([
        ("source", Align::Left),
        ("rate", right),
        ("demand", right),
        ("behind", right),
        ("lost", right),
        ("records", right),
        ("over", Align::Left),
    ]);
    for report in reports {
        let paths = report.paths.iter().map(|(name, bytes)| format!("{name} {}", Bytes(*bytes)));
        table.row([
            report.name.to_string(),
            Rate(report.rate * 8.0).to_string(),
            Rate(report.demand as f64 * 8.0).to_string(),
            format!("{} ({:.1} s)", report.lag, report.lag_seconds),
            report.lost.to_string(),
            report.written.to_string(),
            paths.collect::<Vec<_>>().join(", "),
        ]);
    }
    table
}
