//! `byway relay`: forwards packets that it cannot read, for every host that has one of its relay
//! words.

use super::relay_words;
use crate::args::Global;
use crate::args::verbs::{RELAY_PORT, Relay};
use crate::exit::{Exit, Failure};
use crate::messages;
use crate::output::{Event, Fields, LendingReport, Outcome, Output, Ready, RelayCounters};
use crate::signals::{Hangup, Signals};
use anyhow::Result;
use byway_net::Clock;
use byway_relay::{Dropped, Policy};
use byway_transfer::local_address::local_addresses;
use byway_transfer::reachability::Role;
use byway_transfer::registry::{EnrolEvent, Enrolling, EnrollingPlan};
use byway_transfer::secret_words::WordArgument;
use byway_transfer::{RelayRunEvent, RelaySummary, Relaying, RelayingPlan, listeners, sockets};
use byway_wire::Duration;
use byway_wire::relay::MAX_ADDRESSES;
use std::collections::BTreeSet;
use std::io::{self, IsTerminal as _};
use std::net::SocketAddr;

/// Time between two checks for events, while a registry lists the relay or `--json` is given.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Time between two looks otherwise.
const STANDING_POLL_INTERVAL: Duration = Duration::from_secs(60);
/// Time between two lines of counters for a program.
const STATISTICS_INTERVAL: Duration = Duration::from_secs(10);
/// Time without forwarded packets after which a relay counts as unused. Live sessions send more
/// often.
const IDLE_TIMEOUT: Duration = Duration::from_secs(5);

/// Descriptors that a relay may need, mostly for TCP connections.
const MAX_DESCRIPTORS: u64 = 16 << 10;

/// Relays until it is stopped.
pub(super) fn run(global: &Global, arguments: &Relay, output: &mut Output) -> Result<Exit> {
    if let Some(command) = &arguments.command {
        return relay_words::run(global, arguments, command, output);
    }
    #[cfg(not(feature = "view"))]
    if arguments.http.is_some() {
        return crate::exit::absent(messages::disabled_verbs::NO_RELAY_PAGES);
    }
    let state = global.state()?;
    let file = arguments.key_file.as_deref();
    let key = if arguments.roll_key { state.roll_relay_key(file)? } else { state.relay_key(file)? };
    let listen = local_addresses(&arguments.listen, RELAY_PORT)?;
    let sockets = sockets::answering(sockets::serving(&listen, RELAY_PORT)?);
    let listening: Vec<String> = sockets.iter().map(|socket| socket.address().to_string()).collect();
    let ports: BTreeSet<u16> = sockets.iter().map(|socket| socket.address().port()).collect();
    let (listeners, without_tcp) = if arguments.no_tcp {
        (Vec::new(), None)
    } else {
        match listeners(&sockets) {
            Ok(listeners) => (listeners, None),
            Err(error) => (Vec::new(), Some(messages::relay::no_tcp(error))),
        }
    };
    let serves_tcp = !listeners.is_empty();
    byway_net::allow_descriptors(MAX_DESCRIPTORS);
    if let Some(clipped) = sockets::clipped(&sockets) {
        output.say(&clipped);
    }
    let mut addresses: Vec<SocketAddr> = match arguments.advertise.as_slice() {
        [] => sockets::reachable_at(&sockets),
        told => told.iter().map(|endpoint| endpoint.or_port(RELAY_PORT)).collect(),
    };
    if arguments.advertise.len() > MAX_ADDRESSES {
        let sentence = messages::relay::too_many_addresses(MAX_ADDRESSES, arguments.advertise.len());
        return Err(Failure::new(Exit::Usage, sentence).into());
    }
    addresses.truncate(MAX_ADDRESSES);
    let role = Role::Relay { tcp: serves_tcp };
    // Who names an address knows who reaches it.
    let lonely = role.warning(&addresses).filter(|_| arguments.advertise.is_empty());
    let registry = arguments.registry.as_ref().map(WordArgument::value).transpose()?;
    let enrolling = registry.map(|word| EnrollingPlan {
        key: key.clone(),
        word,
        rate: arguments.rate,
        quota: arguments.quota,
        operator: arguments.operator.clone(),
        region: arguments.region.clone(),
        addresses: addresses.clone(),
        seen: arguments.advertise.is_empty(),
    });
    let relaying = Relaying::start(RelayingPlan {
        key,
        policy: policy(arguments),
        sockets,
        listeners,
        tcp_congestion: arguments.tcp_congestion.into(),
        tcp_buffer: arguments.tcp_buffer.map(usize::from),
        addresses,
        expires: arguments.expires,
        rate: arguments.rate,
        quota: arguments.quota,
        per_day: arguments.per_day,
        per_month: arguments.per_month,
        accounts: Some(usize::try_from(arguments.accounts).unwrap_or(usize::MAX)),
        keep: Some(state.relay_kept_path(file)),
        words: Some(state.relay_words_path(file)),
        lend: None,
        registries: enrolling.iter().map(|plan| plan.word.key.0).collect(),
    })?;
    #[cfg(feature = "view")]
    let serve_pages = |address| byway_relay_http::serve(address, relaying.counters_reader());
    #[cfg(feature = "view")]
    let pages = arguments.http.map(serve_pages).transpose()?;
    let signals = output.catch_signals(Hangup::Stop)?;
    output.publish("relay", None, &state);
    if let Some(board) = output.status() {
        board.refreshes(relaying.asker());
    }
    let word = relaying.word().reveal();
    let ready = Ready { word: Some(word.clone()), listen: listening, ..Ready::default() };
    #[cfg(feature = "view")]
    let ready = Ready { http: pages.as_ref().map(|pages| pages.address()), ..ready };
    output.emit(&Event::Ready(ready));
    output.answer(&word)?;
    let visible = if io::stderr().is_terminal() { word.as_str() } else { "WORD" };
    output.say(&messages::relay::at_the_receiver(visible));
    output.say(&role.firewall(&ports));
    if let Some(sentence) = without_tcp {
        output.say(&sentence);
    }
    if let Some(message) = lonely {
        output.emit(&Event::Warning { message });
    }
    output.detail(if serves_tcp { messages::relay::UDP_AND_TCP } else { messages::relay::UDP_ONLY });
    let mut enrolling = enrolling.map(|plan| Enrolling::start(&relaying, plan)).transpose()?;
    let stop = serve(&relaying, enrolling.as_mut(), &signals, output);
    if stop == Some(Exit::Terminated) {
        drain(&relaying, arguments.drain, output);
    }
    let shown = shown(&relaying.stop()?);
    output.say(&shown.to_string());
    let exit = stop.map_or(Exit::Error, Exit::of_service);
    output.emit(&Event::result("relay", exit, Outcome::Relay(shown)));
    Ok(exit)
}

/// Shows events until a signal comes, and returns its exit code. `None`: the relay ended by itself.
fn serve(
    relaying: &Relaying,
    mut enrolling: Option<&mut Enrolling>,
    signals: &Signals,
    output: &mut Output,
) -> Option<Exit> {
    let clock = Clock::new();
    let (mut told, mut is_asked) = (clock.now(), false);
    let interrupter = relaying.interrupter();
    signals.wake_by(move || interrupter.interrupt());
    let is_polled = enrolling.is_some() || output.is_json();
    let patience = if is_polled { POLL_INTERVAL } else { STANDING_POLL_INTERVAL };
    loop {
        tell(relaying, patience, &mut is_asked, output);
        if let Some(news) = enrolling.as_mut().and_then(|enrolling| enrolling.look(relaying)) {
            enrolled(news, output);
        }
        if signals.take_report() || output.is_json() && clock.now().since(told) >= STATISTICS_INTERVAL {
            (told, is_asked) = (clock.now(), true);
            relaying.ask();
        }
        if let Some(exit) = signals.stop() {
            return Some(exit);
        }
        if relaying.is_over() {
            return None;
        }
    }
}

/// Prints how far this relay's enrolment at a registry is: tested, listed or failed.
fn enrolled(news: EnrolEvent, output: &mut Output) {
    match news {
        EnrolEvent::Epoch { .. } => output.detail(messages::relay::BEING_TESTED),
        EnrolEvent::Enrolled { passed, failed, .. } => {
            let texts: Vec<String> = passed.iter().map(ToString::to_string).collect();
            output.say(&messages::relay::listed(&texts));
            for (address, why) in failed {
                output.say(&messages::relay::not_listed(address, why));
            }
            output.emit(&Event::Told { event: "enrolled", fields: Fields::one("addresses", &texts) });
        }
        EnrolEvent::Failed { error, again } => {
            let message = messages::relay::not_enrolled(error, again.as_secs());
            output.emit(&Event::Warning { message });
        }
    }
}

/// Prints the next event, if one comes. `is_asked`: whether to print counters. `byway status` asks
/// for counters too, which are then only noted.
fn tell(relaying: &Relaying, patience: Duration, is_asked: &mut bool, output: &mut Output) {
    match relaying.next(patience) {
        Some(RelayRunEvent::Relayed(relayed)) => {
            let event = Event::Counters(shown(&relayed));
            match std::mem::take(is_asked) {
                true => output.emit(&event),
                false => output.note(&event),
            }
        }
        Some(RelayRunEvent::Dropped(event)) => {
            let text =
                messages::relay::dropped_datagram(event.from, event.grant, event.dropped, event.left_out);
            output.detail(&text);
        }
        Some(RelayRunEvent::NotKept(error)) => {
            output.say(&messages::relay::counts_not_saved(error));
        }
        Some(RelayRunEvent::KeptAgain) => output.say(messages::relay::COUNTS_SAVED_AGAIN),
        Some(RelayRunEvent::WordsRead { good }) => {
            output.detail(&messages::relay::words_read(good));
            output.emit(&Event::Told { event: "words", fields: Fields::one("good", &good) });
        }
        Some(RelayRunEvent::WordsUnread(error)) => {
            let message = messages::relay::words_unread(&anyhow::Error::from(error));
            output.emit(&Event::Warning { message });
        }
        Some(RelayRunEvent::Lends(_)) | None => {}
    }
}

/// Waits until the relay has carried nothing for `IDLE_TIMEOUT` (5 seconds), but for `patience` at
/// most. Meanwhile the relay forwards only for senders that it forwarded for before. A second
/// SIGTERM or SIGINT ends the process at once.
fn drain(relaying: &Relaying, patience: Duration, output: &mut Output) {
    let clock = Clock::new();
    let begun = clock.now();
    relaying.drain();
    if relaying.idle() < IDLE_TIMEOUT {
        output.say(&messages::relay::draining(patience.as_secs()));
    }
    while relaying.idle() < IDLE_TIMEOUT && clock.now().since(begun) < patience && !relaying.is_over() {
        tell(relaying, POLL_INTERVAL, &mut false, output);
    }
}

/// Returns the policy for destinations: public addresses and those that the operator allows, never
/// this host's own addresses.
fn policy(arguments: &Relay) -> Policy {
    let policy = arguments.allow_destination.iter().copied().fold(Policy::public(), Policy::allow);
    sockets::own_addresses().into_iter().fold(policy, Policy::own)
}

pub(super) fn shown(relayed: &RelaySummary) -> RelayCounters {
    let counters = &relayed.counters;
    let dropped = Dropped::all().filter(|why| counters.dropped(*why) > 0);
    RelayCounters {
        forwarded_packets: counters.forwarded_packets,
        forwarded_bytes: counters.forwarded_bytes,
        returned_packets: counters.returned_packets,
        returned_bytes: counters.returned_bytes,
        greeted: counters.greeted,
        notices: counters.notices,
        send_errors: counters.send_errors,
        today_bytes: relayed.used.today,
        month_bytes: relayed.used.this_month,
        grants: relayed.load.grants,
        not_kept: relayed.not_kept,
        connections: relayed.connections,
        receivers: relayed.receivers,
        lends: relayed.lending.map(|lending| LendingReport {
            relays_bps: relayed.load.rate.saturating_mul(8),
            lends_bps: lending.up.min(lending.down).saturating_mul(8),
            own_up_bps: lending.own_up.saturating_mul(8),
            own_down_bps: lending.own_down.saturating_mul(8),
            lends_nothing: lending.trouble.map(|trouble| trouble.to_string()),
        }),
        dropped: dropped.map(|why| (why.to_string(), counters.dropped(why))).collect(),
    }
}
