//! `byway recv`: prints a ticket and receives the data that are sent to it.

use super::directory_use;
use super::lending::LendingStatus;
use super::limit_control::LimitControl;
use super::transfer_events::EventTranslator;
use crate::args::Global;
use crate::args::verbs::Recv;
use crate::exit::{Exit, Failure};
use crate::messages;
use crate::output::{Event, Outcome, Output, Reach, Ready, ResultEvent, Transferred};
use crate::signals::{Hangup, Signals};
use crate::units::Rate;
use anyhow::{Context as _, Result};
use byway_files::{Modes, Sink, SinkOptions};
use byway_forward::allow_rules::Allow;
use byway_net::Socket;
use byway_transfer::local_address::local_addresses;
use byway_transfer::reachability::{self, Role};
use byway_transfer::receiver_addresses::{self, DirectAddresses};
use byway_transfer::state_directory::{StateDir, StateError, TicketState};
use byway_transfer::ticket::MAX_ENTRIES;
use byway_transfer::{
    Destination, GreetedRelays, LimitedDirection, ReceivedTransfer, Receiving, ReceivingDirectory,
    ReceivingPlan, TicketOwner, TransferEvent, greet_relays, receiving_config, secret_words, sockets,
};
use byway_wire::Duration;
use byway_wire::relay::Word;
use rustix::fs::Mode;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit, umask};
use std::fs;
use std::io::{self, IsTerminal as _};
use std::net::SocketAddr;

/// Time between two checks for events, while this host relays for others.
const LENDING_POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Time between two checks of the bandwidth limits, while nothing happens.
const STANDING_POLL_INTERVAL: Duration = Duration::from_secs(60);
/// Time to wait for relays before the ticket is printed. A relay that does not answer is given up
/// after some 5 seconds.
const RELAY_GREETING_TIMEOUT: Duration = Duration::from_secs(6);
/// The most forwarded connections of programs at once. The process needs a third more open files.
const MAX_FORWARDS: usize = 16 << 10;

/// Receives transfers, and shows their progress.
pub(super) fn run(global: &Global, arguments: &Recv, output: &mut Output) -> Result<Exit> {
    let piped = arguments.directory.as_os_str() == "-";
    let _lock = if piped {
        if global.json {
            return Err(Failure::new(Exit::Usage, messages::recv::STREAM_WITH_JSON).into());
        }
        output.stdout_is_data();
        None
    } else {
        // Whoever cannot write should know before anybody sends.
        drop(Sink::open(
            &arguments.directory,
            SinkOptions { transfer: byway_net::seed()?, ..SinkOptions::default() },
        )?);
        Some(directory_use::by_receiver(&arguments.directory)?)
    };
    let allow = global.config.allowed_senders(&arguments.allow, "--allow")?;
    if piped && allow.iter().any(|sender| sender.below.is_some()) {
        return Err(Failure::new(Exit::Usage, messages::recv::STREAM_WITH_DIRECTORY).into());
    }
    let words: Vec<Word> = secret_words::values(&arguments.relay, "--relay")?;
    if words.len() > MAX_ENTRIES {
        let message = messages::recv::too_many_relays(MAX_ENTRIES, words.len());
        output.emit(&Event::Warning { message });
    }
    let files = raise_file_limit();
    let state = global.state()?;
    let identity = state.identity()?;
    let mut standing = standing(&state, arguments, piped)?;
    let listen = local_addresses(&arguments.listen, 0)?;
    let sockets = sockets::answering(sockets::listening(&listen, standing.port())?);
    let mut troubles = hold(&mut standing, &sockets, &listen);
    if let Some(clipped) = sockets::clipped(&sockets) {
        output.say(&clipped);
    }
    let bound: Vec<SocketAddr> = sockets.iter().map(Socket::address).collect();
    let direct = DirectAddresses::new(&bound, sockets::reachable_at(&sockets), &arguments.advertise)?;
    let mut ticket = direct.ticket(identity.public(), standing.permission().clone());
    let owner = TicketOwner::new(standing.sender());
    let limits = LimitControl::new(LimitedDirection::Down, &arguments.bwlimit)?;
    let mut config = receiving_config(limits.highest().down, arguments.memory);
    let most_forwards = (files - files / 4).min(MAX_FORWARDS);
    if !arguments.allow_forward.is_empty() {
        // One that is over here may live on at the other side for a while.
        config.incoming.streams = config.incoming.streams.max(2 * most_forwards);
    }
    let receiving = Receiving::start(ReceivingPlan {
        identity,
        permission: ticket.permission.clone(),
        allow,
        owner: owner.clone(),
        destination: if piped {
            Destination::Pipe(|| Box::new(io::stdout()))
        } else {
            let modes = if arguments.keep_modes { Modes::Kept } else { Modes::Masked(own_umask()) };
            let (path, deletes) = (arguments.directory.clone(), !arguments.no_delete);
            Destination::Directory(ReceivingDirectory { path, modes, deletes })
        },
        forwards: Allow::new(arguments.allow_forward.clone()),
        most_forwards,
        once: arguments.once,
        limit: limits.limits().down,
        relays: words.clone(),
        listeners: if arguments.no_tcp { Vec::new() } else { sockets::listeners(&sockets) },
        sockets,
        config,
    })?;
    let signals = output.catch_signals(Hangup::Stop)?;
    output.publish("recv", None, &state);
    let GreetedRelays { greeted, troubles: unreachable, .. } =
        greet_relays(&receiving, &words, RELAY_GREETING_TIMEOUT);
    troubles.extend(unreachable);
    troubles.extend(direct.warning(Role::Receiver).filter(|_| greeted.is_empty()));
    let firewall = match greeted.is_empty() {
        true => Role::Receiver.firewall(&direct.ports),
        false => reachability::firewall_beside_relays(&direct.ports),
    };
    ticket.relays = greeted;
    let text = ticket.to_string();
    if !piped && !arguments.once {
        // `byway pair` hands it over.
        state.keep_last_ticket(&ticket)?;
    }
    // Where keys are named, these decide, whoever was first.
    let sender = standing.sender().filter(|_| arguments.allow.is_empty()).map(|key| key.to_string());
    output.emit(&Event::Ready(Ready {
        ticket: Some(text.clone()),
        listen: bound.iter().map(SocketAddr::to_string).collect(),
        sender: sender.clone(),
        direct: Some(Reach::new(&direct, receiver_addresses::command(piped, "TICKET"))),
        ..Ready::default()
    }));
    output.answer(&text)?;
    // Where a person sees the ticket anyway, the line is to be copied as it is; a log need not hold
    // it.
    let shown = if io::stderr().is_terminal() { text.as_str() } else { "TICKET" };
    output.say(&messages::common::command_elsewhere(&receiver_addresses::command(piped, shown)));
    output.say(&firewall);
    if let Some(sender) = sender {
        output.say(&messages::recv::ticket_has_owner(&sender));
    }
    for message in troubles {
        output.emit(&Event::Warning { message });
    }
    let registry =
        arguments.registry.iter().map(secret_words::WordArgument::value).collect::<Result<Vec<_>, _>>()?;
    // The ports of these are the receiver's own.
    let outside = receiver_addresses::outside_addresses(&arguments.advertise);
    let mut lent = LendingStatus::start(global, &arguments.lending, &registry, &outside, output)?;
    let once = arguments.once || piped;
    let mut held = HeldTicket { state: standing, owner, told: !arguments.allow.is_empty() };
    let exit = serve(&receiving, &signals, once, limits, &mut held, &mut lent, output)?;
    lent.stop(output);
    receiving.join()?;
    Ok(exit)
}

/// Returns the umask of the process. Reading it replaces it, so a umask that denies access to
/// others is in force for a moment.
fn own_umask() -> u16 {
    let mask = umask(Mode::RWXG | Mode::RWXO);
    umask(mask);
    (mask.bits() & 0o777) as u16
}

/// Raises the limit of open files to the most that this process may request, because many transfers
/// or connections at once need many files. Returns the new limit.
pub(super) fn raise_file_limit() -> usize {
    let limit = getrlimit(Resource::Nofile);
    // Where that is not granted, fewer at once get along.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    getrlimit(Resource::Nofile).current.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX)
}

/// Loads the ticket that an earlier run saved, or makes a new one if none is saved or
/// `--new-ticket` is given.
fn standing(state: &StateDir, arguments: &Recv, piped: bool) -> Result<TicketState> {
    if piped {
        return Ok(TicketState::passing()?);
    }
    let open = || state.receiving(&arguments.directory, arguments.once);
    let mut standing = match open() {
        // Whoever wants a new ticket need not mend the old one.
        Err(StateError::Damaged { path, .. } | StateError::Exposed { path, .. }) if arguments.new_ticket => {
            fs::remove_file(&path).context(messages::common::CANNOT_REPLACE_TICKET)?;
            open()?
        }
        opened => opened?,
    };
    if arguments.new_ticket {
        if standing.is_passing() {
            let sentence = messages::recv::ticket_in_use(&arguments.directory);
            return Err(Failure::new(Exit::Error, sentence).into());
        }
        standing.renew().context(messages::common::CANNOT_REPLACE_TICKET)?;
    }
    Ok(standing)
}

/// Saves the ticket for the next run. Returns warnings, as that the ticket's port was taken.
fn hold(standing: &mut TicketState, sockets: &[Socket], asked: &[SocketAddr]) -> Vec<String> {
    let before = standing.port().filter(|_| standing.is_kept());
    let mut ports = sockets.iter().map(|socket| socket.address().port());
    let mut troubles = Vec::new();
    if let Some(before) = before
        && !ports.clone().any(|port| port == before)
    {
        let was_tried = asked.is_empty() || asked.iter().any(|address| address.port() == 0);
        troubles.push(match was_tried {
            true => messages::recv::port_taken(before),
            false => messages::recv::port_not_asked_for(before),
        });
    }
    if let Some(port) = ports.next()
        && let Err(error) = standing.keep(port)
    {
        troubles.push(messages::common::ticket_not_saved(error));
    }
    troubles
}

/// The ticket in use, and its owner.
struct HeldTicket {
    state: TicketState,
    owner: TicketOwner,
    /// Whether the user already knows who owns the ticket.
    told: bool,
}

impl HeldTicket {
    /// Saves the ticket's owner as soon as a first transfer is complete, and announces it once.
    fn look(&mut self, output: &mut Output) {
        let Some(sender) = self.owner.key().filter(|_| self.state.sender().is_none()) else { return };
        let kept = self.state.bind(sender);
        if std::mem::replace(&mut self.told, true) {
            return;
        }
        output.emit(&Event::Bound { sender: sender.to_string() });
        if let Err(error) = kept {
            output.emit(&Event::Warning { message: messages::recv::owner_not_saved(error) });
        }
    }
}

/// Receives until a signal comes, or with `once` until one transfer is complete. Returns the exit
/// code.
fn serve(
    receiving: &Receiving,
    signals: &Signals,
    once: bool,
    mut limits: LimitControl,
    held: &mut HeldTicket,
    lent: &mut LendingStatus,
    output: &mut Output,
) -> Result<Exit> {
    let mut show = EventTranslator::new(output);
    let mut running = 0u32;
    let mut stop = None;
    let mut last = Exit::Ok;
    LimitControl::interrupt(signals, receiving, output);
    loop {
        let patience = if lent.is_lending() { LENDING_POLL_INTERVAL } else { STANDING_POLL_INTERVAL };
        let news = receiving.next(limits.patience(patience));
        let idle = news.is_none();
        if !once {
            // Before the result of the transfer that bound it.
            held.look(output);
        }
        match news {
            Some(TransferEvent::Received(received)) => {
                running = running.saturating_sub(1);
                // Its sender would need the ticket again, if it does not know that all is there.
                let is_whole = received.failed + received.undeleted == 0 && !received.is_partial;
                let is_done = received.outcome.is_ok() && is_whole && received.confirmed;
                if once && is_done && running == 0 {
                    held.state.forget();
                }
                last = conclude(received, output);
            }
            Some(news) => {
                running += u32::from(matches!(news, TransferEvent::Begun));
                show.news(news, output);
            }
            None => {}
        }
        limits.look(signals, receiving, output);
        lent.look(running > 0, signals, output);
        show.lends = lent.lends();
        if stop.is_none()
            && let Some(exit) = signals.stop()
        {
            stop = Some(exit);
            output.stopping();
            receiving.cancel();
        }
        if idle && receiving.is_over() {
            break;
        }
    }
    match stop {
        Some(exit) => {
            output.say(&match held.state.is_kept() {
                true => messages::recv::stopped_with_ticket(&super::resume_command::command()),
                false => messages::recv::RECEIVER_STOPPED.into(),
            });
            Ok(if once { exit } else { exit.of_service() })
        }
        None if once => Ok(last),
        // The data plane broke: `join` says how.
        None => Ok(Exit::Error),
    }
}

/// Reports how one transfer ended, and returns its exit code.
fn conclude(received: ReceivedTransfer, output: &mut Output) -> Exit {
    let (bytes, seconds) = (received.bytes, received.seconds);
    let travelled =
        received.broken_off.map_or(bytes.saturating_sub(received.kept), |broken| broken.travelled);
    let (exit, error) = match &received.outcome {
        Ok(()) if received.failed == 0 && !received.is_partial => match received.undeleted {
            0 => (Exit::Ok, None),
            _ => (Exit::Partial, Some(messages::recv::NOT_ALL_DELETED.to_owned())),
        },
        Ok(()) if received.failed == 0 => {
            (Exit::Partial, Some(messages::recv::SENDER_COULD_NOT_READ.to_owned()))
        }
        Ok(()) => (Exit::Partial, Some(messages::recv::PARTIAL_ARRIVAL.to_owned())),
        Err(error) => (Exit::of_transfer(error), Some(error.to_string())),
    };
    let outcome = Outcome::Transfer(Box::new(Transferred {
        bytes,
        kept: received.kept,
        unchanged: received.unchanged,
        deleted: received.deleted,
        undeleted: received.undeleted,
        trash: received.trash.map(super::transfer_events::trash),
        entries: received.entries,
        seconds,
        goodput_bps: Rate::of(travelled, seconds).0,
        verified: received.outcome.is_ok() && received.failed == 0 && !received.is_partial,
        paths: super::transfer_events::totals(&received.paths),
        failed: if received.broken_off.is_none() { received.failed } else { 0 },
        arrived: received.broken_off.map(|broken| broken.arrived),
        total: received.broken_off.and_then(|broken| broken.total),
        origin: Some(super::transfer_events::origin(received.origin)),
        ..Transferred::default()
    }));
    output.emit(&Event::Result(ResultEvent {
        verb: "recv",
        exit: exit as u8,
        error: error.clone(),
        outcome,
    }));
    if let Some(sentence) = error {
        output.complain(&sentence);
    }
    exit
}
