//! A host of an exchange: its endpoint, and what it asks its operating system for.

use super::caller::Caller;
use super::conversation::{Conversation, RateLimit};
use super::dialing_endpoint::DialingEndpoint;
use super::disk::SharedState;
use super::relay_ticket::RelayTicket;
use crate::setup::{EndChoice, ExchangeOptions};
use byway_control::by_name;
use byway_engine::connection::Event;
use byway_engine::handshake::{Identity, PublicKey};
use byway_engine::seal::{Suite, Suites};
use byway_engine::{
    Admission, Admit, Config, Connection, Endpoint, EndpointConfig, EndpointEvent, Handle, Reachable,
};
use byway_sim::{Node, Random};
use byway_wire::relay::Word;
use byway_wire::{Instant, Machine};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Admits every peer, under the congestion controller with this name.
struct AcceptAll(&'static str);

impl Admission for AcceptAll {
    fn admit(&mut self, _: PublicKey, _: &[u8]) -> Admit {
        match by_name(self.0, 1) {
            Some(controller) => Admit::Accept(controller),
            None => Admit::Reject { code: 1, reason: "no controller".to_owned() },
        }
    }
}

/// Returns why the session was closed since the last call. `None`: it was not closed.
fn closed(connection: &mut Connection) -> Option<String> {
    let mut why = None;
    while let Some(event) = connection.next_event() {
        if let Event::Closed { code, reason, .. } = event {
            why = Some(format!("closed with code {code}: {reason}"));
        }
    }
    why
}

/// The initial state of a host's new process.
#[derive(Clone)]
pub(super) struct HostSetup {
    options: Rc<ExchangeOptions>,
    state: SharedState,
    side: EndChoice,
    /// The host's secret key, stored on its disk.
    secret: [u8; 32],
    config: Config,
    /// Relays through which a receiver is to be reached.
    standing: Vec<Word>,
    ticket: RelayTicket,
}

impl HostSetup {
    pub(super) const fn new(
        options: Rc<ExchangeOptions>,
        state: SharedState,
        side: EndChoice,
        secret: [u8; 32],
        config: Config,
        standing: Vec<Word>,
        ticket: RelayTicket,
    ) -> Self {
        Self { options, state, side, secret, config, standing, ticket }
    }

    /// The options of the exchange.
    pub(super) fn options(&self) -> &ExchangeOptions {
        &self.options
    }

    /// Returns the state on the host's disk, which outlives its processes.
    pub(super) const fn state(&self) -> &SharedState {
        &self.state
    }
}

/// A running process on a host of an exchange.
pub(super) struct ExchangeHost {
    machine: DialingEndpoint,
    setup: HostSetup,
    /// The side that begins sessions.
    caller: Option<Caller>,
    conversations: BTreeMap<Handle, Conversation>,
    writing: RateLimit,
    reading: RateLimit,
    reads: bool,
    stands: bool,
    /// When the application has something to do.
    due: Option<Instant>,
}

impl ExchangeHost {
    pub(super) fn new(setup: &HostSetup, caller: Option<Caller>, reads: bool, random: &mut Random) -> Self {
        let mut seed = [0; 32];
        random.fill(&mut seed);
        let admission: Option<Box<dyn Admission>> =
            caller.is_none().then(|| Box::new(AcceptAll("newreno")) as Box<dyn Admission>);
        let endpoint = Endpoint::new(EndpointConfig {
            identity: Identity::from_secret(setup.secret),
            suites: Suites::only(Suite::Aes256Gcm),
            seed,
            connection: setup.config.clone(),
            admission,
            greeting: Vec::new(),
        });
        let options = &setup.options;
        let is_receiver = setup.side == EndChoice::Receiver;
        Self {
            machine: DialingEndpoint::new(endpoint),
            caller,
            conversations: BTreeMap::new(),
            writing: RateLimit::new(options.writes),
            reading: RateLimit::new(options.reads.filter(|_| is_receiver)),
            reads,
            stands: false,
            due: Some(Instant::ZERO),
            setup: setup.clone(),
        }
    }

    /// The application reads, or takes nothing.
    pub(super) fn set_reads(&mut self, reads: bool) {
        self.reads = reads;
    }

    /// The session that the side that begins sessions uses now.
    pub(super) fn session(&self) -> Option<&Connection> {
        let handle = self.caller.as_ref()?.connected()?;
        self.machine.connection(handle)
    }

    /// How long frames of streams waited for bytes before them, in the sessions that live.
    pub(super) fn order_waits(&self) -> Vec<(u64, u64)> {
        let mut counts = BTreeMap::new();
        for handle in self.conversations.keys() {
            let Some(connection) = self.machine.connection(*handle) else { continue };
            for (millis, frames) in connection.order_waits() {
                *counts.entry(millis).or_default() += frames;
            }
        }
        counts.into_iter().collect()
    }

    fn on_event(&mut self, now: Instant, event: EndpointEvent) {
        let Self { machine, setup, caller, conversations, .. } = self;
        match event {
            EndpointEvent::Connected(handle) => {
                if caller.as_mut().is_some_and(|caller| caller.on_connected(handle)) {
                    setup.state.note(|notes| notes.sessions += 1);
                    let talk = Conversation::new(&setup.options, &setup.state, setup.side);
                    conversations.insert(handle, talk);
                }
            }
            EndpointEvent::Accepted(handle) => {
                conversations.insert(handle, Conversation::new(&setup.options, &setup.state, setup.side));
            }
            EndpointEvent::Failed(handle, error) => {
                if let Some(caller) = caller {
                    caller.on_lost(now, handle, 0, error.to_string(), &setup.state);
                }
            }
            EndpointEvent::Closed(handle) => {
                conversations.remove(&handle);
                if let Some(caller) = caller {
                    let connection = machine.endpoint().connection_mut(handle);
                    let paths = connection.as_ref().map_or(0, |connection| connection.status().paths.len());
                    let why = connection.and_then(closed);
                    caller.on_lost(now, handle, paths, why.unwrap_or_default(), &setup.state);
                }
                machine.endpoint().forget(handle);
            }
            EndpointEvent::Reachable(Reachable { relay, address, consent, .. }) => {
                setup.ticket.reach(relay, address, consent);
            }
            EndpointEvent::RelayTrouble(..) | EndpointEvent::StandingTrouble(..) => {}
        }
    }

    fn drive(&mut self, now: Instant) {
        let Self { machine, setup, caller, conversations, writing, reading, reads, .. } = self;
        let mut over = Vec::new();
        for (handle, talk) in conversations.iter_mut() {
            let Some(connection) = machine.endpoint().connection_mut(*handle) else {
                over.push((*handle, 0, "it is gone".to_owned()));
                continue;
            };
            if let Some(why) = closed(connection) {
                over.push((*handle, connection.status().paths.len(), why));
            }
            if !connection.is_closing() {
                talk.drive(now, connection, writing, reading, *reads);
            }
        }
        for (handle, paths, why) in over {
            conversations.remove(&handle);
            if let Some(caller) = caller {
                caller.on_lost(now, handle, paths, why, &setup.state);
            }
        }
        if let Some(caller) = caller {
            caller.look(now, machine, &setup.options, &setup.state, conversations);
        }
    }
}

impl Node for ExchangeHost {
    fn machine(&mut self) -> &mut dyn Machine {
        &mut self.machine
    }

    fn turn(&mut self, now: Instant) {
        if !core::mem::replace(&mut self.stands, true) {
            for word in &self.setup.standing {
                // It has a socket of the relay's family, so it can.
                let _ = self.machine.endpoint().stand_at(now, word);
            }
        }
        while let Some(event) = self.machine.endpoint().next_event() {
            self.on_event(now, event);
        }
        self.drive(now);
        let talks = self.conversations.values().filter_map(|talk| talk.due(now));
        self.due = talks.chain(self.caller.as_ref().and_then(Caller::due)).min();
    }

    fn alarm(&self) -> Option<Instant> {
        self.due
    }
}
