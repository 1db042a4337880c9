//! `byway send --dry-run`: what a transfer would do, by the receiver's word. If it does not answer,
//! what there is to send.

use crate::exit::{Exit, Failure};
use crate::messages;
use crate::output::{Event, Found, Outcome, Output};
use crate::signals::{SIGNAL_POLL_INTERVAL, Signals};
use anyhow::Result;
use byway_files::{SourceOptions, Totals, TreeSelection};
use byway_transfer::{LookedAt, Printable, Sending, SendingPlan, TransferEvent};
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;

/// Asks the receiver what a transfer would do, and lists the reply. `None`: the receiver does not
/// answer.
pub(super) fn look(plan: SendingPlan, signals: &Signals, output: &mut Output) -> Result<Option<Found>> {
    let sending = Sending::start(plan)?;
    let (mut found, mut stop) = (Found::default(), None);
    loop {
        match sending.next(SIGNAL_POLL_INTERVAL) {
            Some(TransferEvent::Looked { what, amount, path }) => {
                found.add(what, amount);
                let (what, path) = (messages::send::looked_at(what), Printable(&path).to_string());
                output.answer(&format!("{what:11} {path}"))?;
                let unit =
                    if what == messages::send::looked_at(LookedAt::Deleted) { "entries" } else { "bytes" };
                output.emit(&Event::told("item", &json!({"what": what, "path": path, unit: amount})));
            }
            Some(TransferEvent::Warning(message)) => output.emit(&Event::Warning { message }),
            Some(_) => {}
            None if sending.is_over() => break,
            None => {}
        }
        if stop.is_none() {
            stop = signals.stop().inspect(|_| sending.cancel());
        }
    }
    match (sending.join()?.outcome, stop) {
        (Ok(()), _) => Ok(Some(found)),
        (Err(_), Some(exit)) => Err(Failure::new(exit, messages::recv::RECEIVER_STOPPED).into()),
        (Err(error), None) if Exit::of_transfer(&error) == Exit::Network => {
            output.say(&messages::send::counted_alone(&error));
            Ok(None)
        }
        (Err(error), None) => Err(error.into()),
    }
}

/// Prints what the sender has to send, and the totals of the receiver's reply.
pub(super) fn conclude(
    paths: &[PathBuf],
    (options, selection): (&SourceOptions, Arc<TreeSelection>),
    found: Option<Found>,
    output: &mut Output,
) -> Result<Exit> {
    let mut totals = Totals::new(paths, options, selection)?;
    while totals.step(4096) {}
    let (counts, excluded) = (totals.counts(), totals.excluded());
    let (files, directories, links) = (counts.files, counts.directories, counts.symlinks);
    let answer = messages::send::would_send(counts.bytes, files, directories, links);
    let by_receiver = found.map(|it| messages::send::found(it.counts(), it.travelling_bytes));
    output.answer(&(answer + &messages::send::excluded(excluded) + &by_receiver.unwrap_or_default()))?;
    let exit = if totals.unsent() > 0 {
        output.complain(&messages::send::cannot_read_entries(totals.unsent()));
        Exit::Partial
    } else if !options.expects_newer && found.is_some_and(|it| it.newer_files > 0) {
        output.complain(messages::send::NEWER_STAY);
        Exit::Partial
    } else {
        Exit::Ok
    };
    let (bytes, unreadable) = (counts.bytes, totals.unsent());
    let outcome = Outcome::Plan { bytes, files, directories, links, excluded, unreadable, found };
    output.emit(&Event::result("send", exit, outcome));
    Ok(exit)
}
