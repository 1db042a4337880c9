//! `byway status`: all that runs on this host, and what ran in the last 30 days.

use crate::args::Global;
use crate::args::status::Status;
use crate::exit::Exit;
use crate::messages;
use crate::output::{Event, Outcome, Output, Progress, printable, short_key, transfer_lines};
use crate::signals::Hangup;
use anyhow::{Context as _, Result};
use byway_net::unix_seconds;
use byway_transfer::host_status::{
    Answer, History, HistoryEntry, ProcessStatus, Request, RuntimeDirectory, ask_all,
};
use serde_json::{Value, json};
use std::thread;
use std::time::{Duration, Instant};

/// Time that all processes together have to answer.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);
/// Time between two reports with `--watch`, and between two checks for signals.
const WATCH_INTERVAL: Duration = Duration::from_secs(1);
const SIGNAL_POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Transfers that ended of which a person reads.
const SHOWN_ENTRIES: usize = 10;

/// The answers of processes, and the ended transfers, at one time.
struct Found {
    now: u64,
    answers: Vec<Answer>,
    history: Vec<HistoryEntry>,
}

/// Shows the state of this host's byway processes, once or until a signal.
pub(super) fn run(global: &Global, arguments: &Status, output: &mut Output) -> Result<Exit> {
    let history = History::at(global.state()?.history_path());
    warn_if_untold(output);
    let look = || -> Result<Found> {
        let now = unix_seconds();
        let answers = ask_all(&directories(), &Request::Status, ANSWER_TIMEOUT);
        Ok(Found { now, answers, history: history.read(now).context(messages::common::CANNOT_READ_HISTORY)? })
    };
    if !arguments.watch {
        let found = look()?;
        tell(&found, output);
        output.answer(&lines(&found, output.answer_columns()).join("\n"))?;
        output.emit(&Event::result("status", Exit::Ok, Outcome::Nothing {}));
        return Ok(Exit::Ok);
    }
    let signals = output.catch_signals(Hangup::Stop)?;
    let mut known = 0;
    loop {
        let mut found = look()?;
        // A program hears of each transfer once.
        let all = found.history.len();
        let lines = lines(&found, output.answer_columns());
        found.history.drain(..known.min(all));
        known = all;
        tell(&found, output);
        output.redraw(&lines)?;
        let next = Instant::now() + WATCH_INTERVAL;
        while Instant::now() < next {
            if let Some(exit) = signals.stop() {
                output.emit(&Event::result("status", exit.of_service(), Outcome::Nothing {}));
                return Ok(exit.of_service());
            }
            thread::sleep(SIGNAL_POLL_INTERVAL);
        }
    }
}

/// Returns the directories with the sockets of processes that this user may query.
pub(super) fn directories() -> Vec<RuntimeDirectory> {
    RuntimeDirectory::visible(rustix::process::geteuid().as_raw(), |name| std::env::var_os(name))
}

/// Warns if processes of this user cannot be queried.
pub(super) fn warn_if_untold(output: &mut Output) {
    if let Some(Err(error)) = directories().first().map(RuntimeDirectory::check) {
        output.emit(&Event::Warning { message: messages::status::untold(error) });
    }
}

/// Emits an event for each process, and one for each transfer that ended.
fn tell(found: &Found, output: &mut Output) {
    if !output.is_json() {
        return;
    }
    for answer in &found.answers {
        let unanswered = || json!({ "socket": answer.name, "error": "no answer" });
        let told = answer.reply.clone().unwrap_or_else(|_| unanswered());
        output.emit(&Event::told("process", &told));
    }
    for entry in &found.history {
        output.emit(&Event::told("history", entry));
    }
}

/// Returns the status as lines for a person.
fn lines(found: &Found, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> =
        found.answers.iter().flat_map(|it| process(it, found.now, columns)).collect();
    if lines.is_empty() {
        lines.push(messages::status::NOTHING_RUNS.into());
    }
    if !found.history.is_empty() {
        let bytes = found.history.iter().map(|entry| number(&entry.result, "bytes"));
        let bytes = bytes.fold(0, u64::saturating_add);
        let failed = found.history.iter().filter(|entry| has_failed(entry)).count();
        lines.extend([String::new(), messages::status::history(found.history.len(), bytes, failed)]);
        lines.extend(found.history.iter().rev().take(SHOWN_ENTRIES).map(|entry| ended(entry, found.now)));
    }
    // What processes of other users and file names say is shown as it is spelled.
    lines.iter().map(|line| printable(line)).collect()
}

/// Whether a transfer failed, rather than being ended by a limit or by a signal.
pub(super) fn has_failed(entry: &HistoryEntry) -> bool {
    let ended = [Exit::Ok, Exit::LimitReached, Exit::HungUp, Exit::Interrupted, Exit::Terminated];
    let exit = number(&entry.result, "exit");
    ended.into_iter().all(|ended| exit != ended as u64)
}

fn process(answer: &Answer, now: u64, columns: usize) -> Vec<String> {
    let status = answer.reply.clone().ok().and_then(|it| serde_json::from_value::<ProcessStatus>(it).ok());
    let Some(status) = status else {
        return vec![answer.name.clone(), messages::status::NO_ANSWER.into()];
    };
    let seconds = now.saturating_sub(status.since) as f64;
    let mut lines =
        vec![messages::status::process(&status.verb, status.peer.as_deref(), seconds, status.pid)];
    let away = status.told.get("away").and_then(|told| told.get("reason")?.as_str());
    lines.extend(away.map(messages::status::away));
    if let Some(told) = status.told.get("forwarded") {
        let [open, sent, received] = ["open", "sent_bytes", "received_bytes"].map(|name| number(told, name));
        lines.push(messages::status::forwarded(open, sent, received));
    }
    if let Some(told) = status.told.get("counters") {
        let [forth, back, today, grants] =
            ["forwarded_bytes", "returned_bytes", "today_bytes", "grants"].map(|name| number(told, name));
        lines.push(messages::status::relayed(forth.saturating_add(back), today, grants));
    }
    let transfers = status.transfers.into_iter().filter_map(|it| serde_json::from_value::<Progress>(it).ok());
    for progress in transfers {
        let moving = transfer_lines(&progress, columns.saturating_sub(2));
        lines.extend(moving.into_iter().map(|line| format!("  {line}")));
        let cost = progress.yielded_seconds.zip(progress.added_delay_ms);
        lines.extend(cost.map(|(yielded, added)| messages::status::cost(yielded, added)));
    }
    if lines.len() == 1 {
        let line = match status.verb.as_str() {
            "gateway" => messages::status::GATEWAY_TELLS_MORE,
            "registry" => messages::status::REGISTRY_TELLS_MORE,
            _ => messages::status::NOTHING_MOVES,
        };
        lines.push(line.into());
    }
    lines
}

fn ended(entry: &HistoryEntry, now: u64) -> String {
    let result = &entry.result;
    let from = result.get("from").and_then(Value::as_str).map(short_key);
    let peer = entry.peer.clone().or(from).unwrap_or_default();
    let float = |name: &str| result.get(name).and_then(Value::as_f64).unwrap_or_default();
    let outcome = match result.get("error").and_then(Value::as_str) {
        Some(error) => error.to_owned(),
        None => messages::status::moved(number(result, "bytes"), float("seconds"), float("goodput_bps")),
    };
    messages::status::ended(now.saturating_sub(entry.at).max(1) as f64, &entry.verb, &peer, &outcome)
}

fn number(object: &Value, name: &str) -> u64 {
    object.get(name).and_then(Value::as_u64).unwrap_or_default()
}
