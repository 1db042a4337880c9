//! The receiving end: an owner that serves any number of senders, and the handle by which a program runs it.

use super::gate::{Gate, Taken, TicketOwner};
use super::limit::Limit;
use super::preamble::{Kind, Preamble};
use super::running::{Levers, Running};
use super::taking::{Taking, Which};
use super::tally::PathTally;
use super::writer::Poured;
use super::{News, code_of, failure_of};
use crate::exit::{Exit, Failure};
use crate::identity::Identity;
use crate::output::Origin;
use anyhow::{Context as _, Result};
use byway_engine::connection::{Event, close};
use byway_engine::handshake::{self, PublicKey};
use byway_engine::{Config, Connection, Endpoint, EndpointConfig, EndpointEvent, Handle};
use byway_files::Modes;
use byway_net::{Clock, Control, Flow, Owner, Socket, Waker};
use byway_wire::relay::Word;
use byway_wire::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};

/// Events that wait for the program.
const NEWS: usize = 1024;
/// How long to stay after the end, so that a CLOSE that is lost can be said again.
const LINGER: Duration = Duration::from_millis(200);
/// How long to wait for a sender to say goodbye that has been told everything.
const GOODBYE: Duration = Duration::from_secs(3);
/// How long to wait for what has arrived to be written.
const SAVING: Duration = Duration::from_secs(10);
/// Relays that work or of which was said that they do not, before no more is said of what senders offer.
const OFFERS: usize = 128;
/// Transfers taken at once.
const MOST: usize = 64;

/// Where to put what is received.
#[derive(Clone, Debug)]
pub enum Destination {
    /// A directory, made if it is missing; and which bits of modes are set there.
    Directory(PathBuf, Modes),
    /// Standard output: one stream, and no more.
    Stdout,
}

/// How to receive.
pub struct ReceivingPlan {
    /// This host.
    pub identity: Identity,
    /// Who may send. Its `kind` must fit the destination.
    pub gate: Gate,
    /// Where to put it.
    pub destination: Destination,
    /// End after one complete transfer.
    pub once: bool,
    /// Bytes per second that are taken at most, of all senders together; see also [`window`](super::window).
    pub limit: Option<u64>,
    /// Relays to stand at.
    pub relays: Vec<Word>,
    /// To listen on.
    pub sockets: Vec<Socket>,
    /// How sessions behave.
    pub config: Config,
}

/// How one transfer ended.
#[derive(Debug)]
pub struct Received {
    /// `Ok`: complete, but for what failed.
    pub outcome: Result<(), Failure>,
    /// Whether the sender knows that it is complete.
    pub confirmed: bool,
    /// Who sent it.
    pub peer: crate::identity::PublicKey,
    /// Which it was.
    pub origin: Origin,
    /// Payload bytes in place.
    pub bytes: u64,
    /// How many of them did not travel, since an earlier try had brought them.
    pub kept: u64,
    /// Files, directories and links in place.
    pub entries: u64,
    /// Entries that are not in place.
    pub failed: u64,
    /// From the first contact to the end.
    pub seconds: f64,
    /// What there is of a tree that did not come to its end.
    pub broken_off: Option<BrokenOff>,
    /// Every path that it came over.
    pub paths: Vec<PathTally>,
}

/// What there is of a tree that did not come to its end, in payload bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrokenOff {
    /// Here, and kept for another try.
    pub arrived: u64,
    /// Brought by this try.
    pub travelled: u64,
    /// In all, if the sender said so.
    pub total: Option<u64>,
}

/// A receiver that runs.
pub type Receiving = Running<Server>;

impl Receiving {
    /// Starts. [`News::Reachable`] tells of each relay that could be greeted.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(plan: ReceivingPlan) -> Result<Self> {
        let control = Control::new().context("cannot make an event descriptor")?;
        let (news, inbox) = sync_channel(NEWS);
        let (taken, ticket) = (plan.gate.taken.clone(), plan.gate.owner.clone());
        let endpoint = Endpoint::new(EndpointConfig {
            identity: handshake::Identity::from_secret(*plan.identity.secret().expose()),
            suites: super::sender::suites(),
            seed: byway_net::seed()?,
            connection: plan.config,
            admission: Some(Box::new(plan.gate)),
            greeting: Vec::new(),
        });
        let levers = Arc::new(Levers::default());
        let owner = Server {
            relays: plan.relays,
            destination: plan.destination,
            once: plan.once,
            limit: plan.limit.map(Limit::new),
            taken,
            ticket,
            news,
            waker: control.waker().clone(),
            levers: Arc::clone(&levers),
            lifted: false,
            begun: 0,
            untold: VecDeque::new(),
            taking: BTreeMap::new(),
            leaving: Vec::new(),
            complete: 0,
            leave_at: None,
            relays_known: BTreeSet::new(),
            locals: plan.sockets.iter().map(Socket::address).collect(),
        };
        let driver =
            byway_net::spawn_with(control, "byway recv", endpoint, owner, plan.sockets, Clock::new())
                .context("cannot start a thread")?;
        Ok(Self::new(driver, inbox, levers))
    }

    /// Waits for the end.
    ///
    /// # Errors
    /// The data plane broke.
    pub fn join(self) -> Result<()> {
        Ok(self.finish()?.outcome?)
    }
}

/// The owner of a receiving endpoint.
pub struct Server {
    relays: Vec<Word>,
    destination: Destination,
    once: bool,
    limit: Option<Limit>,
    taken: Taken,
    ticket: TicketOwner,
    news: SyncSender<News>,
    waker: Waker,
    levers: Arc<Levers>,
    /// Whether the limit does not hold for now.
    lifted: bool,
    /// Transfers begun so far.
    begun: u32,
    /// How transfers ended of which the program takes no news for now.
    untold: VecDeque<News>,
    taking: BTreeMap<Handle, Taking>,
    /// Writers of transfers that ended early, which still write what had arrived.
    leaving: Vec<Receiver<Poured>>,
    /// Transfers that are over and were complete.
    complete: u64,
    leave_at: Option<Instant>,
    /// Relays that work, or of which it was said that they do not.
    relays_known: BTreeSet<SocketAddr>,
    locals: Vec<SocketAddr>,
}

impl Owner for Server {
    type Machine = Endpoint;

    fn turn(&mut self, endpoint: &mut Endpoint, now: Instant) -> Flow {
        for word in std::mem::take(&mut self.relays) {
            if let Err(trouble) = endpoint.stand_at(now, &word) {
                let relay = word.relays().first().map(ToString::to_string).unwrap_or_default();
                self.tell(News::Warning(format!("relay {relay}: {trouble}; nobody will come through it")));
            }
        }
        while let Some(event) = endpoint.next_event() {
            self.on_event(endpoint, event, now);
        }
        while let Some(news) = self.untold.pop_front() {
            if let Err(TrySendError::Full(news)) = self.news.try_send(news) {
                self.untold.push_front(news);
                break;
            }
        }
        if std::mem::replace(&mut self.lifted, self.levers.is_lifted()) != self.lifted {
            self.share();
        }
        let handles: Vec<Handle> = self.taking.keys().copied().collect();
        for handle in handles {
            self.drive(endpoint, handle, now);
        }
        self.leaving.retain(|ended| matches!(ended.try_recv(), Err(TryRecvError::Empty)));
        let stop = self.levers.is_cancelled();
        if stop || self.complete > 0 && self.is_single() && self.taking.is_empty() {
            let leave_at = *self.leave_at.get_or_insert_with(|| {
                for handle in endpoint.handles().collect::<Vec<_>>() {
                    if let Some(taking) = self.taking.remove(&handle) {
                        let incoming = endpoint.connection_mut(handle).map(Connection::incoming);
                        self.leaving.push(taking.leave(incoming));
                    }
                    endpoint.close(now, handle, code_of(Exit::Interrupted), "the receiver was stopped");
                }
                now + LINGER
            });
            let gone = endpoint.handles().next().is_none() || now >= leave_at;
            if gone && (self.leaving.is_empty() || now >= leave_at + SAVING) {
                return Flow::Stop;
            }
        }
        Flow::Continue
    }
}

impl Server {
    /// Whether it takes one transfer and no more.
    const fn is_single(&self) -> bool {
        self.once || matches!(self.destination, Destination::Stdout)
    }

    fn on_event(&mut self, endpoint: &mut Endpoint, event: EndpointEvent, now: Instant) {
        match event {
            EndpointEvent::Accepted(handle) => self.accept(endpoint, handle, now),
            EndpointEvent::Closed(handle) => {
                self.drive(endpoint, handle, now);
                endpoint.forget(handle);
            }
            EndpointEvent::Reachable { relay, address, consent } => {
                self.relays_known.insert(relay);
                self.tell(News::Reachable { relay, address, consent });
            }
            // Of several local sockets one is enough.
            EndpointEvent::StandingTrouble(relay, trouble) if self.relays_known.insert(relay) => {
                self.tell(News::Warning(format!("relay {relay}: {trouble}; nobody will come through it")));
            }
            // What a sender offers is said a few times: it could go on forever.
            EndpointEvent::RelayTrouble(_, relay, trouble)
                if self.relays_known.len() < OFFERS && self.relays_known.insert(relay) =>
            {
                self.tell(News::Warning(format!("a sender offers the relay {relay}: {trouble}")));
            }
            EndpointEvent::StandingTrouble(..)
            | EndpointEvent::Connected(_)
            | EndpointEvent::Failed(..)
            | EndpointEvent::RelayTrouble(..) => {}
        }
    }

    /// Whether the stream that this receiver is for has gone down the pipe, to its end: whatever comes under its name is another.
    fn is_written(&self, before: Option<Handle>) -> bool {
        let done =
            before.and_then(|before| self.taking.get(&before)).is_some_and(|it| it.done_at().is_some());
        matches!(self.destination, Destination::Stdout) && (done || self.complete > 0)
    }

    fn accept(&mut self, endpoint: &mut Endpoint, handle: Handle, now: Instant) {
        let Some(connection) = endpoint.connection(handle) else { return };
        // The gate read it before.
        let Ok(preamble) = Preamble::read(connection.application()) else { return };
        let PublicKey(peer) = connection.peer();
        let peer = crate::identity::PublicKey(peer);
        // Another try of a transfer ends the one before: its sender was killed, or has given up.
        let before = self.taking.iter().find(|(_, taking)| taking.is(peer, preamble.transfer));
        let before = before.map(|(handle, _)| *handle);
        let refused = match preamble.kind {
            Kind::Ping => return,
            _ if self.taken.shuts_out(PublicKey(peer.0), preamble.transfer) || self.is_written(before) => {
                Some("the receiver takes one transfer only, and has it")
            }
            _ if self.taking.len() + self.untold.len() >= MOST && before.is_none() => {
                Some("the receiver has as many transfers as it takes: try again later")
            }
            _ => None,
        };
        if let Some(reason) = refused {
            endpoint.close(now, handle, code_of(Exit::Error), reason);
            return;
        }
        let again = before.is_some();
        let number = before.and_then(|old| self.taking.get(&old)).map_or(self.begun + 1, Taking::number);
        let before = before.and_then(|old| {
            let taking = self.taking.remove(&old)?;
            let ended = taking.leave(endpoint.connection_mut(old).map(Connection::incoming));
            endpoint.close(now, old, code_of(Exit::Error), "the same transfer was begun again by its sender");
            Some(ended)
        });
        let transfer = preamble.transfer;
        let which = Which { number, peer, transfer };
        let started = Taking::start(&self.destination, which, before, now, &self.news, &self.waker);
        match started {
            Ok(taking) => {
                self.begun = self.begun.max(number);
                self.taking.insert(handle, taking);
                self.share();
                self.taken.set(self.is_single().then_some((PublicKey(peer.0), transfer)));
                if !again {
                    self.tell(News::Begun);
                }
            }
            Err(error) => endpoint.close(now, handle, code_of(Exit::Error), &error.to_string()),
        }
    }

    fn drive(&mut self, endpoint: &mut Endpoint, handle: Handle, now: Instant) {
        let Some(taking) = self.taking.get_mut(&handle) else { return };
        let Some(connection) = endpoint.connection_mut(handle) else { return };
        let mut closed = None;
        while let Some(event) = connection.next_event() {
            if let Event::Closed { code, reason, by_peer } = event {
                closed = Some((code, reason, by_peer));
            }
        }
        if closed.is_none() {
            taking.drive(connection, now, self.limit.as_mut().filter(|_| !self.lifted));
        }
        if taking.done_at().is_some() {
            // Before the sender can know: whoever comes after that finds the ticket bound.
            self.ticket.bind(taking.peer());
        }
        if let Some(tally) = taking.look(connection, &self.locals, now) {
            let _ = self.news.try_send(News::Progress(tally));
        }
        let arrived = connection.incoming().received();
        let confirmed = matches!(closed, Some((close::DONE, _, true)));
        let outcome = match (taking.done_at(), closed, taking.failure()) {
            // All is in place: however the sender left, or if it does not, nothing is missing.
            (Some(_), Some(_), _) => Ok(()),
            (Some(at), None, _) if now.since(at) >= GOODBYE => Ok(()),
            (None, _, Some(failure)) => Err(failure),
            (None, Some((code, reason, by_peer)), None) => Err(failure_of(code, &reason, by_peer)),
            _ => return,
        };
        let (code, reason) = match &outcome {
            Ok(()) => (close::DONE, String::from("done")),
            Err(failure) => (code_of(failure.exit()), failure.to_string()),
        };
        if let Some(taking) = self.taking.remove(&handle) {
            self.share();
            let received = taking.end(outcome, confirmed, arrived, now);
            self.leaving.push(taking.leave(endpoint.connection_mut(handle).map(Connection::incoming)));
            endpoint.close(now, handle, code, &reason);
            // A pipe that broke cannot be taken up again: its beginning is gone down the pipe.
            let counts = received.outcome.is_ok() || matches!(self.destination, Destination::Stdout);
            self.complete += u64::from(counts);
            if !counts {
                self.taken.set(None);
            }
            // Told in any case, and in their order.
            self.untold.push_back(News::Received(received));
            self.waker.wake();
        }
    }

    /// Tells every sender its share of what is taken.
    fn share(&mut self) {
        let Some(limit) = &self.limit else { return };
        let share = match self.lifted {
            true => 0,
            false => (limit.rate() / (self.taking.len() as u64).max(1)).max(1),
        };
        self.taking.values_mut().for_each(|taking| taking.limit_to(share));
    }

    /// News that nobody takes are not worth waiting for.
    fn tell(&self, news: News) {
        let _ = self.news.try_send(news);
    }
}
