//! `byway forward`: local ports, or standard input and output, lead to the receiver's side.

use super::forward_stdio;
use super::limit_control::LimitControl;
use super::send::{class_of, controllers};
use super::transfer_events::EventTranslator;
use crate::args::Global;
use crate::args::verbs::Forward;
use crate::exit::{Exit, Failure};
use crate::marking::dscp;
use crate::messages;
use crate::output::{Event, Outcome, Output, Ready};
use crate::signals::{Hangup, Signals};
use anyhow::Result;
use byway_engine::Config;
use byway_forward_host::Listening;
use byway_net::Clock;
use byway_transfer::local_address::local_addresses;
use byway_transfer::registry::FindPlan;
use byway_transfer::{
    ForwardCounters, Forwarding, ForwardingPlan, LimitedDirection, TransferEvent, looked_up_destinations,
    receiving_window, secret_words, sockets,
};
use byway_wire::Duration;
use byway_wire::relay::Word;
use serde::Serialize;

/// Time between two checks for events, while a message is still to be printed.
const TELLING_POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Time between two checks of the bandwidth limits, while nothing happens.
const STANDING_POLL_INTERVAL: Duration = Duration::from_secs(60);
/// Files that this process has open in addition to connections.
const OTHER_FILES: usize = 128;
/// Time between two events with the counters of forwarded connections.
const TALLY_INTERVAL: Duration = Duration::from_secs(1);
/// Time without an answer from the receiver after which the user is told.
const NO_ANSWER_DELAY: Duration = Duration::from_secs(3);

/// The counters of forwarded connections, as JSON.
#[derive(Serialize)]
struct Forwarded {
    /// The number of present connections.
    open: usize,
    /// Number of connections so far.
    connections: u64,
    /// Bytes from programs to targets.
    sent_bytes: u64,
    /// Bytes from targets to programs.
    received_bytes: u64,
}

/// An event: the receiver went away, or came back.
#[derive(Serialize)]
struct Presence {
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// Forwards connections until a signal stops it. With `--stdio`, it forwards one connection until
/// that ends.
pub(super) fn run(global: &Global, arguments: &Forward, output: &mut Output) -> Result<Exit> {
    if arguments.stdio.is_some() {
        output.stdout_is_data();
        if global.json {
            return Err(Failure::new(Exit::Usage, messages::forward::STDIO_WITH_JSON).into());
        }
    }
    let Some(ticket) = &arguments.ticket else {
        return Err(Failure::new(Exit::Usage, messages::forward::NO_TICKET).into());
    };
    let peer = global.config.peer_name(ticket);
    let ticket = global.config.ticket(ticket)?;
    let relays: Vec<Word> = secret_words::values(&arguments.relay, "--relay")?;
    let registry = arguments.registry.as_ref().map(secret_words::WordArgument::value).transpose()?;
    let state = global.state()?;
    if ticket.destinations(&relays).is_empty() {
        return Err(Failure::new(Exit::Network, messages::common::NO_ADDRESS_TO_SEND_TO).into());
    }
    let class = class_of(arguments.priority);
    let controller = controllers(arguments.priority, arguments.congestion.as_deref())?;
    let governs = controller(0).name();
    let files = super::recv::raise_file_limit();
    let asked = if arguments.stdio.is_some() { 1 } else { arguments.connections as usize };
    let most = asked.min(files.saturating_sub(OTHER_FILES)).max(1);
    let listening = Listening::begin(arguments.ports.clone(), &arguments.socks)?;
    let ports: Vec<String> = listening.listeners().map(|it| it.address.to_string()).collect();
    let shown: Vec<String> = listening
        .listeners()
        .map(|it| match &it.target {
            Some(target) => messages::forward::forwards(it.address, target),
            None => messages::forward::accepts_socks(it.address),
        })
        .collect();
    let destinations = looked_up_destinations(&ticket, &relays, registry.as_ref());
    let bind = local_addresses(&arguments.bind, 0)?;
    let limits = LimitControl::new(LimitedDirection::Both, &arguments.bwlimit)?;
    let cap = limits.limits().up;
    let mut config = Config { cap, dscp: dscp(arguments.dscp, governs), ..Config::default() };
    config.incoming.memory = receiving_window(limits.highest().down, config.incoming.memory);
    // One that is over here may live on at the other side for a while.
    config.incoming.streams = config.incoming.streams.max(2 * most);
    let signals = output.catch_signals(Hangup::Stop)?;
    output.publish("forward", peer, &state);
    let forwarding = Forwarding::start(ForwardingPlan {
        identity: state.identity()?,
        ticket,
        relays,
        registry: registry.map(|word| FindPlan::new(word, Some(state.registries()))),
        yields_to_host: true,
        listening,
        piped: arguments.stdio.clone().map(forward_stdio::take).transpose()?,
        most,
        class,
        tcp: !arguments.no_tcp,
        controller: Box::new(controller),
        sockets: sockets::sending(&bind, &destinations)?,
        follow: arguments.bind.is_empty().then_some(destinations),
        limit: limits.limits().down,
        config,
    })?;
    if let Some(target) = &arguments.stdio {
        return forward_stdio::follow(forwarding, target, &signals, limits, output);
    }
    output.emit(&Event::Ready(Ready { listen: ports, ..Ready::default() }));
    for line in shown {
        output.say(&line);
    }
    let stop = watch(&forwarding, &signals, limits, output);
    let (tally, outcome) = forwarding.join()?;
    outcome?;
    let exit = stop.unwrap_or(Exit::Error);
    output.say(&messages::forward::stopped(tally.opened, tally.forth, tally.back));
    output.emit(&Event::told("forwarded", &forwarded(tally)));
    output.emit(&Event::result("forward", exit.of_service(), Outcome::Nothing {}));
    Ok(exit.of_service())
}

/// Shows events until the forwarding ends. Returns the exit code of the signal that stopped it, if
/// one did.
fn watch(
    forwarding: &Forwarding,
    signals: &Signals,
    mut limits: LimitControl,
    output: &mut Output,
) -> Option<Exit> {
    let mut show = EventTranslator::new(output);
    let (mut stop, mut untold, mut told_at, mut met) = (None, None, None, false);
    let clock = Clock::new();
    let begun = clock.now();
    LimitControl::interrupt(signals, forwarding, output);
    loop {
        let is_told = met && untold.is_none();
        let patience = if is_told { STANDING_POLL_INTERVAL } else { TELLING_POLL_INTERVAL };
        let news = forwarding.next(limits.patience(patience));
        let idle = news.is_none();
        match news {
            Some(TransferEvent::Begun) => {
                output.emit(&Event::told("connected", &Presence { reason: None }));
                output.say(messages::forward::RECEIVER_ANSWERS);
                met = true;
            }
            Some(TransferEvent::Away(error)) => {
                met = true;
                let reason = super::transfer_events::absence_reason(&error);
                output.emit(&Event::told("away", &Presence { reason: Some(reason.clone()) }));
                output.say(&messages::forward::away(&reason));
            }
            Some(TransferEvent::Forwarded(tally)) => untold = Some(tally),
            Some(news) => show.news(news, output),
            None => {}
        }
        if let Some(tally) =
            untold.take_if(|_| told_at.is_none_or(|at| clock.now().since(at) >= TALLY_INTERVAL))
        {
            told_at = Some(clock.now());
            output.emit(&Event::told("forwarded", &forwarded(tally)));
        }
        if !met && clock.now().since(begun) >= NO_ANSWER_DELAY {
            met = true;
            output.say(messages::common::NOT_ANSWERED_YET);
        }
        limits.look(signals, forwarding, output);
        if limits.limits().down.is_some() {
            // What may be taken grows with time, and nothing else may happen meanwhile.
            forwarding.control().waker().wake();
        }
        if stop.is_none()
            && let Some(exit) = signals.stop()
        {
            stop = Some(exit);
            output.stopping();
            forwarding.cancel();
        }
        if idle && forwarding.is_over() {
            return stop;
        }
    }
}

const fn forwarded(tally: ForwardCounters) -> Forwarded {
    Forwarded {
        open: tally.open,
        connections: tally.opened,
        sent_bytes: tally.forth,
        received_bytes: tally.back,
    }
}
