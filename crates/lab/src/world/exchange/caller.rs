//! The side that begins sessions: it connects, and connects again when a session is lost, until all
//! is done.

use super::conversation::Conversation;
use super::dialing::Dialing;
use super::dialing_endpoint::DialingEndpoint;
use super::disk::SharedState;
use super::relay_ticket::RelayTicket;
use crate::setup::ExchangeOptions;
use byway_control::{ControllerChoice, SenderKind};
use byway_engine::handshake::PublicKey;
use byway_engine::{Connect, Handle};
use byway_sim::Clock;
use byway_wire::relay::Word;
use byway_wire::{Duration, Instant};
use core::net::SocketAddr;
use std::collections::BTreeMap;

/// The least and the greatest time from a loss to the next attempt.
const RETRY_DELAY: Duration = Duration::from_secs(1);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(60);
/// Time that a receiver waits for the relays that its ticket is to name.
const TICKET_TIMEOUT: Duration = Duration::from_secs(20);
/// Time between two looks of a side that waits for something on a disk, or for relays.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// The receiver to reach, and the ways to it.
#[derive(Clone)]
pub(in crate::world) struct CallerTask {
    /// The public key of the receiver.
    pub(in crate::world) peer: PublicKey,
    /// The receiver's address. `None`: the direct route may not be used.
    pub(in crate::world) direct: Option<SocketAddr>,
    /// The relay words of the relays that the caller may use.
    pub(in crate::world) words: Vec<Word>,
    /// The receiver's ticket: how it is reached through relays.
    pub(in crate::world) ticket: RelayTicket,
    /// The controller of each session.
    pub(in crate::world) congestion: ControllerChoice,
    /// The seed of the congestion controllers.
    pub(in crate::world) seed: u64,
    /// The start of the exchange by the host's clock. `stop`: its latest end.
    pub(in crate::world) start: Instant,
    pub(in crate::world) stop: Option<Instant>,
    /// The host's clock.
    pub(in crate::world) clock: Clock,
}

/// The state of the caller's session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallStage {
    /// No session is tried for before this time.
    Away {
        until: Instant,
    },
    Trying(Handle),
    Connected(Handle),
    Over,
}

/// See the module.
pub(super) struct Caller {
    task: CallerTask,
    stage: CallStage,
    retry_delay: Duration,
    /// The version of the ticket whose entries the session knows.
    known: u32,
    dialing: Option<Dialing>,
    due: Option<Instant>,
}

impl Caller {
    /// `is_over`: all was done before.
    pub(super) fn new(task: &CallerTask, tcp: bool, is_over: bool) -> Self {
        let relays = task.words.iter().filter_map(|word| word.relays().first());
        let targets = task.direct.into_iter().chain(relays.copied());
        Self {
            stage: if is_over { CallStage::Over } else { CallStage::Away { until: task.start } },
            retry_delay: RETRY_DELAY,
            known: 0,
            dialing: tcp.then(|| Dialing::new(targets.collect())),
            due: Some(task.start),
            task: task.clone(),
        }
    }

    /// The session that is connected.
    pub(super) const fn connected(&self) -> Option<Handle> {
        match self.stage {
            CallStage::Connected(handle) => Some(handle),
            _ => None,
        }
    }

    /// When the caller must be woken next.
    pub(super) const fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Notes that a session was established. Returns whether it is the one that was tried for.
    pub(super) fn on_connected(&mut self, handle: Handle) -> bool {
        if self.stage != CallStage::Trying(handle) {
            return false;
        }
        self.stage = CallStage::Connected(handle);
        self.retry_delay = RETRY_DELAY;
        if let Some(dialing) = &mut self.dialing {
            dialing.on_connected();
        }
        true
    }

    /// Notes that a session or an attempt is lost. `paths`: how many paths it had.
    pub(super) fn on_lost(
        &mut self,
        now: Instant,
        handle: Handle,
        paths: usize,
        why: String,
        state: &SharedState,
    ) {
        let connected = match self.stage {
            CallStage::Trying(own) if own == handle => false,
            CallStage::Connected(own) if own == handle => true,
            _ => return,
        };
        state.lost(self.task.clock.world(now), connected, paths, why);
        self.stage = CallStage::Away { until: now + self.retry_delay };
        self.retry_delay = (self.retry_delay * 2).min(MAX_RETRY_DELAY);
    }

    /// Connects, dials and ends sessions when that is due.
    pub(super) fn look(
        &mut self,
        now: Instant,
        machine: &mut DialingEndpoint,
        options: &ExchangeOptions,
        state: &SharedState,
        conversations: &BTreeMap<Handle, Conversation>,
    ) {
        self.due = None;
        if self.stage != CallStage::Over && self.task.stop.is_some_and(|stop| stop <= now) {
            self.end(now, machine, state, None);
        }
        match self.stage {
            CallStage::Over => return,
            CallStage::Away { until } if now < until => {
                self.due = Some(until);
                return;
            }
            CallStage::Away { .. } => self.connect(now, machine, options, state),
            CallStage::Trying(handle) => self.offer_relays(now, machine, handle),
            CallStage::Connected(handle) => {
                self.offer_relays(now, machine, handle);
                if let (Some(talk), Some(connection)) =
                    (conversations.get(&handle), machine.endpoint().connection_mut(handle))
                    && talk.is_done(connection)
                {
                    // Its application waits for the peer's, which may be slow.
                    self.due = Some(now + LOOK_INTERVAL);
                    if state.is_complete(options) {
                        let finished = self.task.clock.world(now);
                        self.end(now, machine, state, Some(finished));
                        return;
                    }
                }
            }
        }
        if let Some(dialing) = &mut self.dialing {
            let handle = match self.stage {
                CallStage::Trying(handle) => Some((handle, false)),
                CallStage::Connected(handle) => Some((handle, true)),
                _ => None,
            };
            if let Some((handle, connected)) = handle {
                let next = dialing.look(now, machine, handle, connected);
                self.due = Some(self.due.map_or(next, |due| due.min(next)));
            }
        }
        if let Some(stop) = self.task.stop {
            self.due = Some(self.due.map_or(stop, |due| due.min(stop)));
        }
    }

    /// Whether the sender still waits for the ticket. A ticket with relays is handed over once the
    /// relays have answered the receiver, or a timeout has passed.
    fn waits_for_ticket(&self, now: Instant, options: &ExchangeOptions) -> bool {
        let answers = self.task.ticket.version() as usize;
        match self.task.direct {
            None => answers == 0,
            Some(_) => {
                options.ticket_names_relays
                    && answers < self.task.words.len()
                    && now < self.task.start + TICKET_TIMEOUT
            }
        }
    }

    fn connect(
        &mut self,
        now: Instant,
        machine: &mut DialingEndpoint,
        options: &ExchangeOptions,
        state: &SharedState,
    ) {
        if self.waits_for_ticket(now, options) {
            self.due = Some(now + LOOK_INTERVAL);
            return;
        }
        self.task.seed = self.task.seed.wrapping_add(1);
        let made = byway_control::controller(&self.task.congestion, SenderKind::Session, self.task.seed);
        // The plan's choice was made once before.
        let Ok(controller) = made else { return };
        let addresses = self.task.direct.into_iter().collect();
        let connect = Connect { peer: self.task.peer, addresses, application: Vec::new(), controller };
        match machine.endpoint().connect(now, connect) {
            Ok(handle) => {
                self.stage = CallStage::Trying(handle);
                if let Some(dialing) = &mut self.dialing {
                    dialing.begin(now);
                }
                self.known = 0;
                if self.task.direct.is_some() {
                    // Relays of which the ticket says nothing are offered over the direct way.
                    for word in &self.task.words {
                        let route = self.task.ticket.route(word);
                        machine.endpoint().add_relay(now, handle, word, route.as_ref());
                    }
                }
                self.offer_relays(now, machine, handle);
            }
            Err(error) => {
                state.lost(self.task.clock.world(now), false, 0, error.to_string());
                self.stage = CallStage::Away { until: now + self.retry_delay };
            }
        }
    }

    /// Adds the relays of the ticket to the session.
    fn offer_relays(&mut self, now: Instant, machine: &mut DialingEndpoint, handle: Handle) {
        if self.task.direct.is_some() {
            return;
        }
        let version = self.task.ticket.version();
        if self.known < version {
            self.known = version;
            for word in &self.task.words {
                if let Some(route) = self.task.ticket.route(word) {
                    machine.endpoint().add_relay(now, handle, word, Some(&route));
                }
            }
        }
        if (version as usize) < self.task.words.len() {
            self.due = Some(now + LOOK_INTERVAL);
        }
    }

    fn end(
        &mut self,
        now: Instant,
        machine: &mut DialingEndpoint,
        state: &SharedState,
        finished: Option<Instant>,
    ) {
        if let CallStage::Trying(handle) | CallStage::Connected(handle) = self.stage {
            machine.endpoint().close(now, handle, 0, "done");
        }
        state.stop(finished);
        self.stage = CallStage::Over;
        self.due = None;
    }
}
