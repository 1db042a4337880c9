//! `byway send`: sends files or a stream to the host that printed the ticket.

use super::dry_run;
use super::lending::LendingStatus;
use super::limit_control::LimitControl;
use super::retry::Retry;
use super::transfer_events::EventTranslator;
use crate::args::Global;
use crate::args::verbs::{Priority, Send};
use crate::exit::{Exit, Failure};
use crate::marking::dscp;
use crate::messages;
use crate::output::{Event, Outcome, Output, ResultEvent, Transferred};
use crate::signals::{Hangup, SIGNAL_POLL_INTERVAL, Signals};
use crate::units::Rate;
use anyhow::Result;
use byway_control::{Class, Controller, ControllerChoice, SenderKind};
use byway_engine::Config;
use byway_files::{SourceOptions, names_contents};
use byway_net::Clock;
use byway_registry::word as registry;
use byway_transfer::limits::local_clock::LocalAlarm;
use byway_transfer::local_address::local_addresses;
use byway_transfer::registry::FindPlan;
use byway_transfer::ticket::Ticket;
use byway_transfer::{
    LimitedDirection, Payload, Sending, SendingPlan, SentTransfer, SessionLog, TransferError, TransferEvent,
    looked_up_destinations, secret_words, sockets,
};
use byway_wire::Duration;
use byway_wire::relay::Word;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Time without an answer from the receiver after which the user is told.
const NO_ANSWER_DELAY: Duration = Duration::from_secs(3);

/// Sends files or a stream, and shows the progress.
pub(super) fn run(global: &Global, arguments: &Send, output: &mut Output) -> Result<Exit> {
    let environment = std::env::var("BYWAY_TICKET").ok();
    let (paths, ticket) = arguments.split(environment.as_deref(), &global.config)?;
    let peer = global.config.peer_name(&ticket);
    let (ticket, below) = global.config.recipient(&ticket)?;
    let relays = relays(arguments)?;
    let registries =
        arguments.registry.iter().map(secret_words::WordArgument::value).collect::<Result<Vec<_>, _>>()?;
    let lends = arguments.lending.also_relay.is_some();
    let asks = |word: &&registry::RegistryWord| {
        !(arguments.no_relay || lends && word.kind == registry::WordKind::Join)
    };
    let registry = registries.iter().find(asks).cloned();
    let paths: Vec<PathBuf> = paths.into_iter().map(Path::to_owned).collect();
    let piped = paths.iter().any(|path| path.as_os_str() == "-");
    if piped && paths.len() > 1 {
        return Err(Failure::new(Exit::Usage, messages::send::STREAM_WITH_FILES).into());
    }
    if piped && arguments.retry {
        return Err(Failure::new(Exit::Usage, messages::send::STREAM_WITH_RETRY).into());
    }
    if piped && below.is_some() {
        return Err(Failure::new(Exit::Usage, messages::send::STREAM_WITH_DIRECTORY).into());
    }
    if piped && (arguments.selection.is_given() || arguments.delete) {
        return Err(Failure::new(Exit::Usage, messages::send::STREAM_WITH_SELECTION).into());
    }
    let has_contents = arguments.sends_contents() || paths.iter().any(|path| names_contents(path));
    if arguments.delete && has_contents && paths.len() > 1 {
        return Err(Failure::new(Exit::Usage, messages::send::CONTENTS_WITH_DELETE).into());
    }
    let selection = arguments.selection.read(&paths)?;
    if arguments.dry_run && piped {
        output.answer(messages::send::STREAM_TO_ITS_END)?;
        return Ok(Exit::Ok);
    }
    // It is known before anything is begun if there is none of that name.
    let governor = controller(arguments)?.name();
    let mut limits = LimitControl::new(LimitedDirection::Up, &arguments.bwlimit)?;
    let alarm = arguments.stop_at.map(LocalAlarm::new).transpose()?;
    let state = global.state()?;
    let ticket = if arguments.no_relay { Ticket { relays: Vec::new(), ..ticket } } else { ticket };
    let registry = registry.map(|word| FindPlan::new(word, Some(state.registries())));
    if ticket.destinations(&relays).is_empty() {
        return Err(Failure::new(Exit::Network, messages::common::NO_ADDRESS_TO_SEND_TO).into());
    }
    let plan = |cap: Option<u64>, byte_limit: Option<u64>| -> Result<SendingPlan> {
        let payload = match piped {
            true => Payload::Pipe(Box::new(io::stdin())),
            false => Payload::Tree {
                paths: paths.clone(),
                options: source_options(arguments),
                selection: Arc::clone(&selection),
            },
        };
        let asked = registry.as_ref().map(|plan| &plan.word);
        let destinations = looked_up_destinations(&ticket, &relays, asked);
        let bind = local_addresses(&arguments.bind, 0)?;
        let controller = controller(arguments)?;
        let dscp = dscp(arguments.dscp, controller.name());
        Ok(SendingPlan {
            identity: state.identity()?,
            journals: (!arguments.dry_run).then(|| state.sending()),
            sockets: sockets::sending(&bind, &destinations)?,
            follow: arguments.bind.is_empty().then_some(destinations),
            tcp: !arguments.no_tcp,
            tcp_congestion: arguments.tcp_congestion.into(),
            ticket: ticket.clone(),
            relays: relays.clone(),
            registry: registry.clone(),
            yields_to_host: true,
            payload,
            below: below.clone(),
            controller,
            byte_limit,
            config: Config { cap, dscp, ..Config::default() },
        })
    };
    let signals = output.catch_signals(Hangup::Stop)?;
    if arguments.dry_run {
        let found = dry_run::look(plan(limits.limits().up, None)?, &signals, output)?;
        return dry_run::conclude(&paths, (&source_options(arguments), selection), found, output);
    }
    output.publish("send", peer, &state);
    let mut lent =
        LendingStatus::start(global, &arguments.lending, &registries, &arguments.advertise, output)?;
    let (mut show, mut retry) = (EventTranslator::new(output), Retry::default());
    show.log = SessionLog::create(arguments.qlog.as_deref(), governor)?;
    let mut stops = Stops { signals, alarm };
    let mut bytes_left = arguments.max_transfer;
    loop {
        let sending = Sending::start(plan(limits.limits().up, bytes_left)?)?;
        let (sent, mut stop) = watch(sending, &mut stops, &mut show, &mut limits, &mut lent, output)?;
        if !show.log.end(&sent) {
            output.emit(&Event::Warning { message: messages::send::QLOG_NOT_WRITTEN.into() });
        }
        bytes_left = bytes_left.map(|left| left.saturating_sub(sent.taken));
        let waits = arguments.retry && stop.is_none();
        if let (true, Err(error)) = (waits, &sent.outcome)
            && Exit::of_transfer(error) == Exit::Network
        {
            let reason = super::transfer_events::absence_reason(error);
            stop = retry.wait(&reason, sent.seconds > 0.0, || stops.stop(), output);
            if stop.is_none() {
                continue;
            }
        }
        if !sent.can_go_on() || stop.is_some() {
            let lent = lent.stop(output);
            return conclude(sent, stop, piped, lent, output);
        }
        output.emit(&Event::Warning { message: messages::send::SESSION_FORGOTTEN.into() });
    }
}

/// The signals and the clock that may stop a transfer.
struct Stops {
    signals: Signals,
    alarm: Option<LocalAlarm>,
}

impl Stops {
    /// Returns the exit code, once a signal or the clock stops the transfer.
    fn stop(&mut self) -> Option<Exit> {
        let by_clock = self.alarm.as_mut().is_some_and(LocalAlarm::has_rung);
        self.signals.stop().or_else(|| by_clock.then_some(Exit::LimitReached))
    }
}

/// Shows the progress until the transfer ends. Returns the exit code of the stop, if there was one.
fn watch(
    sending: Sending,
    stops: &mut Stops,
    show: &mut EventTranslator,
    limits: &mut LimitControl,
    lent: &mut LendingStatus,
    output: &mut Output,
) -> Result<(SentTransfer, Option<Exit>)> {
    let mut stop = None;
    let clock = Clock::new();
    let (begun, mut silent) = (clock.now(), true);
    loop {
        if silent && clock.now().since(begun) >= NO_ANSWER_DELAY {
            silent = false;
            output.say(messages::common::NOT_ANSWERED_YET);
        }
        while let Some(news) = sending.next(SIGNAL_POLL_INTERVAL) {
            silent &= !matches!(news, TransferEvent::Begun);
            show.news(news, output);
            if stop.is_none() && stops.stop().is_some() {
                break;
            }
        }
        limits.look(&stops.signals, &sending, output);
        lent.look(true, &stops.signals, output);
        show.lends = lent.lends();
        if stop.is_none()
            && let Some(exit) = stops.stop()
        {
            stop = Some(exit);
            output.stopping();
            sending.cancel();
        }
        if sending.is_over() {
            break;
        }
    }
    while let Some(news) = sending.next(Duration::ZERO) {
        show.news(news, output);
    }
    Ok((sending.join()?, stop))
}

/// Reports how the transfer ended, and returns the exit code.
fn conclude(
    sent: SentTransfer,
    stop: Option<Exit>,
    piped: bool,
    lent: Option<u64>,
    output: &mut Output,
) -> Result<Exit> {
    let (bytes, seconds) = (sent.bytes, sent.seconds);
    let by_bytes = matches!(sent.outcome, Err(TransferError::ByteLimit)).then_some(Exit::LimitReached);
    if let (Err(_), Some(exit)) = (&sent.outcome, by_bytes.or(stop)) {
        let stopped = match exit {
            Exit::LimitReached if by_bytes.is_some() => messages::send::STOPPED_BY_BYTES,
            Exit::LimitReached => messages::send::STOPPED_BY_CLOCK,
            _ => messages::send::STOPPED_BY_HAND,
        };
        let sentence = match piped {
            true => messages::send::stopped_stream(stopped, bytes),
            false => messages::send::stopped_tree(stopped, bytes, &super::resume_command::command()),
        };
        return Err(Failure::new(exit, sentence).into());
    }
    if let (Err(error), false) = (&sent.outcome, sent.tried.is_empty()) {
        return Ok(super::transfer_events::unreached("send", error, &sent.tried, output));
    }
    sent.outcome?;
    let (exit, error) = if sent.damaged {
        (Exit::Integrity, Some(messages::send::CONTENTS_DIFFER))
    } else if sent.failed + sent.unsent > 0 {
        (Exit::Partial, Some(messages::send::PARTIAL_TRANSFER))
    } else if sent.undeleted > 0 {
        (Exit::Partial, Some(messages::send::NOT_ALL_DELETED))
    } else {
        (Exit::Ok, None)
    };
    let outcome = Outcome::Transfer(Box::new(Transferred {
        bytes,
        kept: sent.kept,
        unchanged: sent.unchanged,
        newer: sent.newer,
        not_copied: sent.not_copied,
        excluded: sent.excluded,
        deleted: sent.deleted,
        undeleted: sent.undeleted,
        trash: sent.trash.map(super::transfer_events::trash),
        entries: sent.entries,
        seconds,
        goodput_bps: Rate::of(bytes.saturating_sub(sent.kept), seconds).0,
        verified: !sent.damaged && sent.failed == 0,
        yielded_seconds: Some(sent.cost.yielded.as_secs_f64()),
        added_delay_ms: sent.cost.added_delay().map(super::transfer_events::millis),
        paths: super::transfer_events::totals(&sent.paths),
        relays: super::transfer_events::relays(&sent.relays),
        relays_verdict: sent.verdict,
        lent,
        failed: sent.failed + sent.unsent,
        ..Transferred::default()
    }));
    output.emit(&Event::Result(ResultEvent {
        verb: "send",
        exit: exit as u8,
        error: error.map(String::from),
        outcome,
    }));
    if let Some(sentence) = error {
        output.complain(sentence);
    }
    Ok(exit)
}

const fn source_options(arguments: &Send) -> SourceOptions {
    SourceOptions {
        special_modes: arguments.keep_modes,
        compares_contents: arguments.checksum,
        replaces_newer: arguments.replace_newer,
        into_root: arguments.sends_contents(),
        hard_links: arguments.hard_links,
        expects_newer: arguments.update,
        deletes: arguments.delete,
        looks: arguments.dry_run,
        ..SourceOptions::DEFAULT
    }
}

fn relays(arguments: &Send) -> Result<Vec<Word>> {
    if arguments.no_relay {
        return Ok(Vec::new());
    }
    Ok(secret_words::values(&arguments.relay, "--relay")?)
}

fn controller(arguments: &Send) -> Result<Box<dyn Controller>> {
    let seed = u64::from_be_bytes(byway_net::seed()?);
    Ok(controllers(arguments.priority, arguments.congestion.as_deref())?(seed))
}

/// Returns a function that makes a session's congestion controller from a seed: the controller
/// named by `chosen`, or else the one of `priority`.
pub(super) fn controllers(
    priority: Priority,
    chosen: Option<&str>,
) -> Result<impl Fn(u64) -> Box<dyn Controller> + std::marker::Send + use<>> {
    let usage = |error: String| Failure::new(Exit::Usage, error);
    let choice =
        chosen.map(|text| text.parse::<ControllerChoice>().map_err(|error| usage(error.to_string())));
    let choice = choice.transpose()?;
    let make = move |seed| match &choice {
        Some(choice) => byway_control::controller(choice, SenderKind::Session, seed),
        None => Ok(class_of(priority).controller(seed)),
    };
    make(0).map_err(|error| usage(error.to_string()))?;
    // What can be made once can be made again.
    Ok(move |seed| make(seed).unwrap_or_else(|_| class_of(priority).controller(seed)))
}

pub(super) const fn class_of(priority: Priority) -> Class {
    match priority {
        Priority::Background => Class::Background,
        Priority::Normal => Class::Normal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent() -> SentTransfer {
        let (bytes, entries, seconds) = (10, 2, 1.0);
        SentTransfer {
            outcome: Ok(()),
            bytes,
            taken: 0,
            kept: 0,
            unchanged: 0,
            newer: 0,
            entries,
            failed: 0,
            unsent: 0,
            excluded: 0,
            deleted: 0,
            undeleted: 0,
            trash: None,
            damaged: false,
            not_copied: byway_transfer::NotCopied::default(),
            seconds,
            cost: byway_transfer::CostToOthers::default(),
            paths: Vec::new(),
            relays: Vec::new(),
            verdict: None,
            tried: Vec::new(),
        }
    }

    fn exit(sent: SentTransfer, stop: Option<Exit>) -> Exit {
        let global = Global { quiet: true, ..Global::default() };
        let mut output = Output::to(Box::new(io::sink()), Box::new(io::sink()), global.style());
        conclude(sent, stop, false, None, &mut output).unwrap_or_else(|error| Exit::of(&error))
    }

    #[test]
    fn each_end_has_its_code() {
        assert_eq!(exit(sent(), None), Exit::Ok);
        assert_eq!(exit(SentTransfer { unsent: 1, ..sent() }, None), Exit::Partial);
        assert_eq!(exit(SentTransfer { failed: 1, ..sent() }, None), Exit::Partial);
        assert_eq!(exit(SentTransfer { undeleted: 1, ..sent() }, None), Exit::Partial);
        assert_eq!(exit(SentTransfer { failed: 1, damaged: true, ..sent() }, None), Exit::Integrity);
        let lost = || Err(TransferError::ConnectionLost);
        assert_eq!(exit(SentTransfer { outcome: lost(), ..sent() }, None), Exit::Network);
        // A signal that came too late to stop anything changes nothing.
        assert_eq!(exit(sent(), Some(Exit::Interrupted)), Exit::Ok);
        assert_eq!(
            exit(SentTransfer { outcome: lost(), ..sent() }, Some(Exit::Terminated)),
            Exit::Terminated
        );
        assert_eq!(
            exit(SentTransfer { outcome: lost(), ..sent() }, Some(Exit::LimitReached)),
            Exit::LimitReached
        );
        let full = || Err(TransferError::ByteLimit);
        assert_eq!(exit(SentTransfer { outcome: full(), ..sent() }, None), Exit::LimitReached);
    }
}
