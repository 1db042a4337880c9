//! The receiving end: an owner that serves any number of senders, and the handle by which a program
//! runs it.

pub(crate) mod access;
pub(crate) mod received_output;
pub(crate) mod relays;

use crate::allowed_sender::AllowedSender;
use crate::close::{CloseCode, code_of, error_of};
use crate::disk::file_writer::PipeTotal;
use crate::endpoint::endpoint;
use crate::error::Error;
use crate::event_loop::news_channel::{NewsSender, hung_up, news_channel};
use crate::event_loop::{EventLoop, Requests};
use crate::events::TransferEvent;
use crate::expired_leftovers::expire_beside;
use crate::forward_exit::Exits;
use crate::hello_preamble::{ConnectionPurpose, Preamble};
use crate::identity::{Identity, PublicKey};
use crate::inbound_relays::StandingRelays;
use crate::inbound_transfer::{Inbound, InboundId};
use crate::limits::memory_limit::receiving_config;
use crate::limits::receive_limit::ReceiveLimit;
use crate::receiver::received_output::{Destination, ReceivedTransfer, ReceivingDirectory};
use crate::secret::Secret;
use crate::session::dialers::ANSWER_TIMEOUT;
use crate::session::tcp_dialer::TcpDialer;
use crate::session_seats::{SeatDecision, network_of, seat};
use crate::sockets;
use crate::tcp_entrance::Entrance;
use crate::ticket::Ticket;
use crate::units::RateLimits;
use access::{AccessControl, Refusal, SingleTransfer, TicketOwner};
use byway_engine::connection::{Event, close};
use byway_engine::handshake;
use byway_engine::{Config, Connection, Endpoint, EndpointEvent, Handle};
use byway_files::Modes;
use byway_forward::allow_rules::Allow;
use byway_net::{Carrier, Clock, Control, Listener, LoopControl, Owner, Ready, Socket, Waker};
use byway_wire::fair_share::may_take;
use byway_wire::relay::Word;
use byway_wire::{Duration, Instant, NetworkPrefix};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, TrySendError};

/// Events that wait for the program.
const MAX_QUEUED_EVENTS: usize = 1024;
/// Time to stay after the end, so that a lost CLOSE can be sent again.
const LINGER_TIME: Duration = Duration::from_millis(200);
/// Time that a receiver waits for the sender's CLOSE after its last report.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);
/// Time that the end waits until received data are written.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// Relays that are known to work, or of which a warning was given. Beyond this number no warnings
/// are given of relays that senders offer.
const MAX_KNOWN_RELAYS: usize = 128;
/// The most forwarded connections at once by default.
const DEFAULT_MAX_FORWARDS: usize = 1024;
/// Transfers taken at once.
const MAX_TRANSFERS: usize = 64;

/// How to receive.
pub struct ReceivingPlan {
    /// The key pair of this host.
    pub identity: Identity,
    /// The secret in the ticket, which a sender must present.
    pub permission: Secret<[u8; 16]>,
    /// The only keys admitted; empty: the one that `owner` holds, or any as long as it holds none.
    pub allow: Vec<AllowedSender>,
    /// The owner of the ticket.
    pub owner: TicketOwner,
    /// The place for received data.
    pub destination: Destination,
    /// The targets to which senders' programs may be connected.
    pub forwards: Allow,
    /// The most connections at once to targets of [`forwards`](Self::forwards).
    pub most_forwards: usize,
    /// Whether the receiver ends after one complete transfer.
    pub once: bool,
    /// The most bytes per second that are received from all senders together, until
    /// [`set_limits`](EventLoop::set_limits). `config` must fit, see [`receiving_config`].
    pub limit: Option<u64>,
    /// The relay words of relays at which this host registers, so that senders reach it through
    /// them.
    pub relays: Vec<Word>,
    /// The sockets to listen on.
    pub sockets: Vec<Socket>,
    /// To listen on for senders whose networks drop UDP.
    pub listeners: Vec<Listener>,
    /// How sessions behave.
    pub config: Config,
}

impl ReceivingPlan {
    /// Makes a plan to receive into `directory` from senders with its [`ticket`](Self::ticket), at
    /// every address of this host.
    ///
    /// # Errors
    /// The system gives no socket or no randomness.
    pub fn new(identity: Identity, directory: PathBuf) -> Result<Self, Error> {
        let sockets = sockets::answering(sockets::listening(&[], None)?);
        Ok(Self {
            identity,
            permission: Secret::new(byway_net::seed()?),
            allow: Vec::new(),
            owner: TicketOwner::default(),
            destination: Destination::Directory(ReceivingDirectory {
                path: directory,
                modes: Modes::Kept,
                deletes: true,
            }),
            forwards: Allow::default(),
            most_forwards: DEFAULT_MAX_FORWARDS,
            once: false,
            limit: None,
            relays: Vec::new(),
            listeners: sockets::listeners(&sockets),
            sockets,
            config: receiving_config(None, None),
        })
    }

    /// The ticket for senders that reach this receiver directly.
    #[must_use]
    pub fn ticket(&self) -> Ticket {
        Ticket {
            key: self.identity.public(),
            permission: self.permission.clone(),
            addresses: sockets::reachable_at(&self.sockets),
            relays: Vec::new(),
            names: Vec::new(),
        }
    }
}

/// A receiver that runs.
pub type Receiving = EventLoop<Server>;

impl Receiving {
    /// Starts the event loop in a thread of its own. [`TransferEvent::Reachable`] reports each
    /// relay that works.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(plan: ReceivingPlan) -> Result<Self, Error> {
        let control = Control::new().map_err(Error::Descriptor)?;
        let (news, inbox) = news_channel(MAX_QUEUED_EVENTS);
        let (taken, ticket) = (SingleTransfer::default(), plan.owner.clone());
        let permission = plan.permission.clone();
        let gate = AccessControl {
            permission: plan.permission,
            allow: plan.allow.iter().map(|sender| sender.key).collect(),
            owner: plan.owner,
            kind: plan.destination.kind(),
            forwards: !plan.forwards.is_empty(),
            single_transfer: taken.clone(),
            seed: u64::from_be_bytes(byway_net::seed()?),
        };
        let endpoint = endpoint(&plan.identity, plan.config, Some(Box::new(gate)))?;
        let limits = RateLimits { up: None, down: plan.limit };
        let requests = Arc::new(Requests::new(limits));
        // Who listens on no TCP uses none.
        let dialled = plan.relays.iter().filter(|_| !plan.listeners.is_empty());
        let owner = Server {
            relay_dialer: TcpDialer::of_relays(control.watch(), dialled),
            begun_at: None,
            relays: plan.relays,
            destination: plan.destination,
            allow: plan.allow,
            once: plan.once,
            limit: None,
            single_transfer: taken,
            ticket,
            news,
            waker: control.waker().clone(),
            requests: Arc::clone(&requests),
            begun: 0,
            untold: VecDeque::new(),
            inbound: BTreeMap::new(),
            leaving: Vec::new(),
            complete: 0,
            exits: Exits::new(plan.forwards, plan.most_forwards, &control),
            leave_at: None,
            entrance: Entrance::new(control.watch(), plan.listeners).map_err(Error::Descriptor)?,
            standing: StandingRelays::new(permission),
            relays_known: BTreeSet::new(),
            locals: plan.sockets.iter().map(Socket::address).collect(),
        };
        if let Destination::Directory(directory) = &owner.destination {
            expire_beside(directory.path.clone(), &owner.allow);
        }
        let driver =
            byway_net::spawn_with(control, "byway recv", endpoint, owner, plan.sockets, Clock::new())
                .map_err(Error::Thread)?;
        Ok(Self::new(driver, inbox, requests))
    }

    /// Waits for the end.
    ///
    /// # Errors
    /// The event loop broke.
    pub fn join(self) -> Result<(), Error> {
        Ok(self.finish()?.outcome?)
    }
}

/// The owner of a receiving endpoint.
pub struct Server {
    relay_dialer: TcpDialer,
    begun_at: Option<Instant>,
    relays: Vec<Word>,
    destination: Destination,
    /// The admitted senders, of which some have a directory of their own.
    allow: Vec<AllowedSender>,
    once: bool,
    limit: Option<ReceiveLimit>,
    single_transfer: SingleTransfer,
    ticket: TicketOwner,
    news: NewsSender<TransferEvent>,
    waker: Waker,
    requests: Arc<Requests>,
    /// The number of transfers begun so far.
    begun: u32,
    /// Results of transfers that wait because the program does not read events now.
    untold: VecDeque<TransferEvent>,
    inbound: BTreeMap<Handle, Inbound>,
    /// Writers of transfers that ended early, which still write the data that arrived.
    leaving: Vec<Receiver<PipeTotal>>,
    /// Transfers that are over and were complete.
    complete: u64,
    /// Connections of programs.
    exits: Exits,
    leave_at: Option<Instant>,
    /// The listener for TCP connections.
    entrance: Entrance,
    /// The relays through which the receiver can be reached.
    standing: StandingRelays,
    /// Relays about which the user was told: that they work, or that a sender's relay does not.
    relays_known: BTreeSet<SocketAddr>,
    locals: Vec<SocketAddr>,
}

impl Owner for Server {
    type Machine = Endpoint;

    fn ready(&mut self, _: &mut Endpoint, ready: Ready, _: Instant) {
        if !self.entrance.ready(ready) && !self.relay_dialer.ready(ready) {
            self.exits.ready(ready);
        }
    }

    fn opened(&mut self) -> Vec<Carrier> {
        self.entrance.opened().chain(self.relay_dialer.opened()).collect()
    }

    fn deadline(&self) -> Option<Instant> {
        self.entrance.deadline()
    }

    fn ended(&mut self) {
        self.inbound.clear();
        self.news = hung_up();
    }

    fn turn(&mut self, endpoint: &mut Endpoint, now: Instant) -> LoopControl {
        if self.entrance.turn(now) {
            self.waker.wake();
        }
        for word in std::mem::take(&mut self.relays) {
            if let Some(useless) = self.standing.stand(endpoint, now, word) {
                self.tell(TransferEvent::UselessRelay(useless));
            }
        }
        let begun = *self.begun_at.get_or_insert(now);
        let served = |relay| endpoint.leads_to(relay) || endpoint.stands_at(relay);
        self.relay_dialer.look_at_relays(now, now.since(begun) >= ANSWER_TIMEOUT, served);
        while let Some(event) = endpoint.next_event() {
            self.on_event(endpoint, event, now);
        }
        while let Some(news) = self.untold.pop_front() {
            if let Err(TrySendError::Full(news)) = self.news.try_send(news) {
                self.untold.push_front(news);
                break;
            }
        }
        if ReceiveLimit::change(&mut self.limit, self.requests.limits().down) {
            self.share();
        }
        let handles: Vec<Handle> = self.inbound.keys().copied().collect();
        for handle in handles {
            self.drive(endpoint, handle, now);
        }
        self.exits.turn(endpoint, now);
        if let Some(sender) = self.exits.take_served() {
            self.ticket.bind(sender);
        }
        self.leaving.retain(|ended| matches!(ended.try_recv(), Err(TryRecvError::Empty)));
        let stop = self.requests.is_cancelled();
        let is_idle = self.inbound.is_empty() && self.exits.is_idle() && self.leaving.is_empty();
        self.news.set_busy(stop || !is_idle || !self.untold.is_empty());
        if stop || self.complete > 0 && self.is_single() && self.inbound.is_empty() {
            let leave_at = *self.leave_at.get_or_insert_with(|| {
                for handle in endpoint.handles().collect::<Vec<_>>() {
                    if let Some(inbound) = self.inbound.remove(&handle) {
                        let incoming = endpoint.connection_mut(handle).map(Connection::incoming);
                        self.leaving.push(inbound.leave(incoming));
                    }
                    endpoint.close(now, handle, CloseCode::Interrupted.number(), "the receiver was stopped");
                }
                now + LINGER_TIME
            });
            let told = endpoint.handles().next().is_none() && self.untold.is_empty();
            let gone = told || now >= leave_at;
            if gone && (self.leaving.is_empty() || now >= leave_at + WRITE_TIMEOUT) {
                return LoopControl::Stop;
            }
        }
        LoopControl::Continue
    }
}

impl Server {
    /// Whether the receiver takes only one transfer.
    const fn is_single(&self) -> bool {
        self.once || matches!(self.destination, Destination::Pipe(_))
    }

    fn on_event(&mut self, endpoint: &mut Endpoint, event: EndpointEvent, now: Instant) {
        match event {
            EndpointEvent::Accepted(handle) => self.accept(endpoint, handle, now),
            EndpointEvent::Closed(handle) => {
                self.drive(endpoint, handle, now);
                self.exits.leave(endpoint, handle, now);
                endpoint.forget(handle);
            }
            EndpointEvent::Reachable(reachable) => {
                let relay = reachable.relay;
                if self.relays_known.insert(relay) && endpoint.leads_to(relay) {
                    self.tell(TransferEvent::Warning(format!(
                        "relay {relay} is reached over TCP: UDP brings no answer"
                    )));
                }
                if let Some(relay) = self.standing.on_reachable(&reachable) {
                    self.tell(TransferEvent::Reachable(relay));
                }
            }
            EndpointEvent::StandingTrouble(relay, grant, trouble) => {
                if let Some(useless) = self.standing.on_trouble(relay, grant, trouble) {
                    self.tell(TransferEvent::UselessRelay(useless));
                }
            }
            // What a sender offers is said a few times: it could go on forever.
            EndpointEvent::RelayTrouble(_, relay, trouble)
                if self.relays_known.len() < MAX_KNOWN_RELAYS && self.relays_known.insert(relay) =>
            {
                self.tell(TransferEvent::Warning(format!("a sender offers the relay {relay}: {trouble}")));
            }
            EndpointEvent::Connected(_) | EndpointEvent::Failed(..) | EndpointEvent::RelayTrouble(..) => {}
        }
    }

    /// Whether the receiver's one stream is completely written. Whatever comes under its name now
    /// is another stream.
    fn is_written(&self, before: Option<Handle>) -> bool {
        let done =
            before.and_then(|before| self.inbound.get(&before)).is_some_and(|it| it.done_at().is_some());
        matches!(self.destination, Destination::Pipe(_)) && (done || self.complete > 0)
    }

    /// Whether a sender may begin another transfer: one sender has half of all places at most. For
    /// its first one, a silent transfer may make place.
    fn may_begin(&self, sender: PublicKey) -> bool {
        let own = self.inbound.values().filter(|inbound| inbound.is_of(sender)).count();
        own == 0 || may_take(own, MAX_TRANSFERS.saturating_sub(self.inbound.len() + self.untold.len()))
    }

    fn accept(&mut self, endpoint: &mut Endpoint, handle: Handle, now: Instant) {
        let Some(connection) = endpoint.connection(handle) else { return };
        // The gate read it before.
        let Ok(preamble) = Preamble::read(connection.application()) else { return };
        let (peer, network) = (PublicKey(connection.peer().0), network_of(endpoint, handle));
        // Another try of a transfer ends the one before: its sender was killed, or has given up.
        let before = self.inbound.iter().find(|(_, inbound)| inbound.is(peer, preamble.transfer));
        let before = before.map(|(handle, _)| *handle);
        let refused = match preamble.kind {
            ConnectionPurpose::Ping => {
                if let Some(name) = preamble.question() {
                    let is_known = before.is_some() || self.exits.knows(&(peer, name));
                    let (code, reason) = match is_known {
                        true => (CloseCode::SessionKnown, "the session is known"),
                        false => (CloseCode::SessionUnknown, "the session is not known"),
                    };
                    endpoint.close(now, handle, code.number(), reason);
                }
                return;
            }
            ConnectionPurpose::Forward(_) => {
                return self.exits.accept(endpoint, handle, (peer, preamble.transfer), now);
            }
            _ if self.single_transfer.shuts_out(handshake::PublicKey(peer.0), preamble.transfer)
                || self.is_written(before) =>
            {
                Some(Refusal::Taken)
            }
            _ if before.is_none() && !self.may_begin(peer) => Some(Refusal::TooMany),
            _ if before.is_none() => self.take_seat(endpoint, network, now).err(),
            _ => None,
        };
        if let Some(refusal) = refused {
            endpoint.close(now, handle, refusal.code().number(), &refusal.to_string());
            return;
        }
        let again = before.is_some();
        let number = before.and_then(|old| self.inbound.get(&old)).map_or(self.begun + 1, Inbound::number);
        let before = before.and_then(|old| {
            let inbound = self.inbound.remove(&old)?;
            let ended = inbound.leave(endpoint.connection_mut(old).map(Connection::incoming));
            endpoint.close(
                now,
                old,
                CloseCode::Failed.number(),
                "the same transfer was begun again by its sender",
            );
            Some(ended)
        });
        let transfer = preamble.transfer;
        let which = InboundId { number, peer, transfer };
        let sender = self.allow.iter().find(|sender| sender.key == peer);
        let place = (&self.destination, sender.and_then(|sender| sender.below.as_ref()));
        let is_look = preamble.kind == ConnectionPurpose::Look;
        let started = Inbound::start(place, (which, network, is_look), before, now, &self.news, &self.waker);
        match started {
            Ok(inbound) => {
                self.inbound.insert(handle, inbound);
                self.share();
                if is_look {
                    return;
                }
                self.begun = self.begun.max(number);
                self.single_transfer
                    .set(self.is_single().then_some((handshake::PublicKey(peer.0), transfer)));
                if !again {
                    self.tell(TransferEvent::Begun);
                }
            }
            Err(error) => endpoint.close(now, handle, CloseCode::Failed.number(), &error.to_string()),
        }
    }

    /// Makes place for a transfer from `network`, if that can be.
    fn take_seat(
        &mut self,
        endpoint: &mut Endpoint,
        network: Option<NetworkPrefix>,
        now: Instant,
    ) -> Result<(), Refusal> {
        let seats: Vec<_> = self.inbound.iter().map(|(handle, inbound)| inbound.seat(*handle, now)).collect();
        match seat(&seats, network, MAX_TRANSFERS.saturating_sub(self.untold.len())) {
            SeatDecision::Free => {}
            SeatDecision::InPlaceOf(silent) => {
                let (code, reason) =
                    (Refusal::TooMany.code().number(), "its place is another transfer's now");
                endpoint.close(now, silent, code, reason);
                self.drive(endpoint, silent, now);
            }
            SeatDecision::Full => return Err(Refusal::TooMany),
        }
        Ok(())
    }

    fn drive(&mut self, endpoint: &mut Endpoint, handle: Handle, now: Instant) {
        let Some(inbound) = self.inbound.get_mut(&handle) else { return };
        let Some(connection) = endpoint.connection_mut(handle) else { return };
        let mut closed = None;
        while let Some(event) = connection.next_event() {
            if let Event::Closed { code, reason, by_peer } = event {
                closed = Some((code, reason, by_peer));
            }
        }
        if closed.is_none() {
            inbound.drive(connection, now, self.limit.as_mut());
        }
        let is_look = inbound.is_look();
        if inbound.done_at().is_some() && !is_look {
            // Before the sender can know: whoever comes after that finds the ticket bound.
            self.ticket.bind(inbound.peer());
        }
        if let Some(tally) = inbound.look(connection, &self.locals, now).filter(|_| !is_look) {
            let _ = self.news.try_send(TransferEvent::Progress(tally));
        }
        let arrived = connection.incoming().received();
        let goodbye = closed.as_ref().filter(|(.., by_peer)| *by_peer).map(|(code, ..)| *code);
        let is_partial = goodbye == Some(CloseCode::Partial.number());
        let confirmed = is_partial || goodbye == Some(close::DONE_CODE);
        let outcome = match (inbound.done_at(), closed, inbound.failure()) {
            // All is in place: however the sender left, or if it does not, nothing is missing.
            (Some(_), Some(_), _) => Ok(()),
            (Some(at), None, _) if now.since(at) >= CLOSE_TIMEOUT => Ok(()),
            (None, _, Some(error)) => Err(error),
            (None, Some((code, reason, by_peer)), None) => Err(error_of(code, &reason, by_peer)),
            _ => return,
        };
        let (code, reason) = match &outcome {
            Ok(()) => (close::DONE_CODE, String::from("done")),
            Err(error) => (code_of(error).number(), error.to_string()),
        };
        inbound.settle(connection, &self.locals, now);
        if let Some(inbound) = self.inbound.remove(&handle) {
            self.share();
            let received = ReceivedTransfer { is_partial, ..inbound.end(outcome, confirmed, arrived, now) };
            self.leaving.push(inbound.leave(endpoint.connection_mut(handle).map(Connection::incoming)));
            endpoint.close(now, handle, code, &reason);
            if is_look {
                return;
            }
            // A pipe that broke cannot be taken up again: its beginning is gone down the pipe.
            let counts = received.outcome.is_ok() || matches!(self.destination, Destination::Pipe(_));
            self.complete += u64::from(counts);
            if !counts {
                self.single_transfer.set(None);
            }
            // Told in any case, and in their order.
            self.untold.push_back(TransferEvent::Received(received));
            self.waker.wake();
        }
    }

    /// Sends every sender its share of the receiver's rate limit.
    fn share(&mut self) {
        let transfers = (self.inbound.len() as u64).max(1);
        let share = self.limit.map_or(0, |limit| (limit.rate() / transfers).max(1));
        self.inbound.values_mut().for_each(|inbound| inbound.limit_to(share));
    }

    /// Sends an event to the program. If the program does not read its events, this one is lost.
    fn tell(&self, news: TransferEvent) {
        let _ = self.news.try_send(news);
    }
}
