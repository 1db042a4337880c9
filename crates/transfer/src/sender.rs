//! The sending end: an owner on the thread of the event loop, and the handle by which a program
//! runs it.

use crate::close::{CloseCode, code_of, error_of};
use crate::endpoint::endpoint;
use crate::error::{Error, TransferError};
use crate::event_loop::{EventLoop, Requests, hung_up};
use crate::events::TransferEvent;
use crate::file_reader::TreeDone;
use crate::hello_preamble::{ConnectionPurpose, Preamble};
use crate::identity::Identity;
use crate::marking::default_dscp;
use crate::outbound_transfer::Outbound;
use crate::pause_reason::Circumstances;
use crate::progress::{PathCounters, ProgressCounter};
use crate::registry::{FindPlan, Finder, goes_on_without};
use crate::send_limit::SendLimit;
use crate::sender_start::{Payload, start_outbound};
use crate::session::connect_attempts::{AttemptResult, ConnectAttempts};
use crate::session::dialers::Dialers;
use crate::session::path_changes::PathChanges;
use crate::session::relay_outcomes::{RelayLog, RelayOutcome};
use crate::session::restart_check::{RestartCheck, RestartQuestion};
use crate::session::unreached::not_connected;
use crate::session::uplinks::Uplinks;
use crate::sockets;
use crate::ticket::{GreetedRelay, Ticket};
use byway_control::{Class, Controller};
use byway_engine::connection::{Event, close};
use byway_engine::handshake::PublicKey;
use byway_engine::{Config, Connect, ConnectError, Endpoint, EndpointEvent, Handle, RelayRoute};
use byway_net::{Carrier, Clock, Control, LoopControl, Owner, Ready, Socket, TcpCongestion, TcpLimits};
use byway_wire::relay::{Reason, Word};
use byway_wire::{Duration, Input, Instant, Machine as _};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

/// Events that wait for the program.
const NEWS: usize = 256;
/// How long to stay after the end, so that a CLOSE that is lost can be said again.
const LINGER: Duration = Duration::from_millis(200);

/// What to send, whom to, and how.
pub struct SendingPlan {
    /// The key pair of this host.
    pub identity: Identity,
    /// The ticket of the receiver.
    pub ticket: Ticket,
    /// Relays besides those that the ticket names.
    pub relays: Vec<Word>,
    /// A registry to ask for more.
    pub registry: Option<FindPlan>,
    /// What to send.
    pub payload: Payload,
    /// Where to keep what another run needs in order to go on with a tree; `None`: nowhere.
    pub journals: Option<PathBuf>,
    /// The controller of all paths.
    pub controller: Box<dyn Controller>,
    /// To send from: each adds paths.
    pub sockets: Vec<Socket>,
    /// To send from addresses of this host that come meanwhile, too, where they may lead to one of
    /// these.
    pub follow: Option<Vec<IpAddr>>,
    /// Whether TCP takes the place of UDP where that brings no answer.
    pub tcp: bool,
    /// What the kernel controls the congestion of TCP connections with.
    pub tcp_congestion: TcpCongestion,
    /// How the session behaves.
    pub config: Config,
}

impl SendingPlan {
    /// A plan to send `payload` to the receiver that printed `ticket`, in the background class,
    /// from every address that reaches the receiver. A transfer that breaks off cannot be resumed,
    /// because the plan has no directory for `journals`.
    ///
    /// # Errors
    /// The system gives no socket or no randomness.
    pub fn new(identity: Identity, ticket: Ticket, payload: Payload) -> Result<Self, Error> {
        let destinations = ticket.destinations(&[]);
        let controller = Class::Background.controller(u64::from_be_bytes(byway_net::seed()?));
        Ok(Self {
            identity,
            relays: Vec::new(),
            registry: None,
            payload,
            journals: None,
            sockets: sockets::sending(&[], &destinations)?,
            follow: Some(destinations),
            tcp: true,
            tcp_congestion: TcpCongestion::Cubic,
            config: Config { dscp: default_dscp(controller.name()), ..Config::default() },
            controller,
            ticket,
        })
    }
}

/// How it ended.
#[derive(Debug)]
pub struct SentTransfer {
    /// `Ok`: the receiver has it all, except what is counted here.
    pub outcome: Result<(), TransferError>,
    /// Payload bytes that the receiver verified.
    pub bytes: u64,
    /// How many of them did not travel, since an earlier try had brought them.
    pub kept: u64,
    /// How many files, directories and links are in place.
    pub entries: u64,
    /// How many entries the receiver refused or found damaged.
    pub failed: u64,
    /// How many entries could not be read.
    pub unsent: u64,
    /// Whether a hash disagreed.
    pub damaged: bool,
    /// Seconds from the connection to the last that the receiver said.
    pub seconds: f64,
    /// Every path that there was.
    pub paths: Vec<PathCounters>,
    /// What became of each relay that was tried.
    pub relays: Vec<RelayOutcome>,
    /// Whether relays helped, and if not why, in a sentence for a person. `None`: there was no
    /// relay.
    pub verdict: Option<String>,
    /// If the receiver did not answer: what came back on each way.
    pub tried: Vec<AttemptResult>,
}

impl SentTransfer {
    /// Whether the receiver of a tree was started anew meanwhile: the same again goes on from
    /// there.
    #[must_use]
    pub const fn can_go_on(&self) -> bool {
        matches!(self.outcome, Err(TransferError::ReceiverRestarted))
    }
}

/// A transfer that runs.
pub type Sending = EventLoop<Sender>;

impl Sending {
    /// Starts.
    ///
    /// # Errors
    /// What is to be sent does not exist or cannot be read; the system gives no thread.
    pub fn start(plan: SendingPlan) -> Result<Self, Error> {
        let control = Control::new().map_err(Error::Descriptor)?;
        let (news, inbox) = sync_channel(NEWS);
        let journals = plan.journals.as_deref().map(|directory| (directory, &plan.ticket));
        let (outbound, kind, transfer, reader) =
            start_outbound(plan.payload, &plan.identity, journals, &control, &news)?;
        let locals: Vec<SocketAddr> = plan.sockets.iter().map(Socket::address).collect();
        let uplinks = plan.follow.map(|destinations| Uplinks::new(&locals, destinations));
        let cap = SendLimit::new(plan.config.cap);
        let endpoint = endpoint(&plan.identity, plan.config, None)?;
        let permission = plan.ticket.permission.clone();
        let preamble = Preamble { kind, permission: permission.clone(), transfer };
        let ping = Preamble { kind: ConnectionPurpose::Ping, permission, transfer };
        let reach = |relay: &GreetedRelay| RelayRoute {
            word: relay.word.clone(),
            destination: relay.address,
            consent: relay.consent,
        };
        let question = RestartQuestion {
            peer: PublicKey(plan.ticket.key.0),
            addresses: plan.ticket.addresses.clone(),
            relays: plan.ticket.relays.iter().map(reach).collect(),
            application: ping.to_bytes(),
        };
        let connect = Connect {
            peer: PublicKey(plan.ticket.key.0),
            addresses: plan.ticket.addresses.clone(),
            application: preamble.to_bytes(),
            controller: plan.controller,
        };
        let (finder, kept) = plan.registry.map(Finder::new).unzip();
        let told = question.relays.iter().map(|reach| (reach.word.clone(), Some(reach.clone())));
        let kept: Vec<Word> = kept.into_iter().flatten().collect();
        let serves_tcp = |word: &&Word| finder.as_ref().is_some_and(|finder| finder.serves_tcp(word));
        let over_tcp: Vec<Word> = kept.iter().filter(serves_tcp).cloned().collect();
        let named = plan.relays.iter().chain(question.relays.iter().map(|reach| &reach.word));
        let dialers = match plan.tcp {
            true => Dialers::new(control.watch(), 0, &question.addresses, named.chain(&over_tcp)),
            false => Dialers::never(control.watch()),
        };
        let relays: Vec<_> =
            told.chain(plan.relays.into_iter().chain(kept).map(|word| (word, None))).collect();
        let met = relays.iter().filter(|(_, reach)| reach.is_some()).map(|(word, _)| word.clone());
        let ways = ConnectAttempts::new(&question.addresses, met, &locals);
        let requests = Arc::new(Requests::default());
        let owner = Sender {
            beginning: Some(SendStart { connect, relays }),
            handle: None,
            connected: false,
            outbound,
            news,
            requests: Arc::clone(&requests),
            cap,
            counter: ProgressCounter::default(),
            paths: PathChanges::default(),
            relays: RelayLog::default(),
            locals,
            uplinks,
            dialers,
            tcp_congestion: plan.tcp_congestion,
            ending: None,
            restart: RestartCheck::new(question),
            ways,
            finder,
            reader,
        };
        let driver =
            byway_net::spawn_with(control, "byway send", endpoint, owner, plan.sockets, Clock::new())
                .map_err(Error::Thread)?;
        Ok(Self::new(driver, inbox, requests))
    }

    /// Waits for the end.
    ///
    /// # Errors
    /// The event loop broke.
    pub fn join(self) -> Result<SentTransfer, Error> {
        let finished = self.finish()?;
        let mut owner = finished.owner;
        finished.outcome?;
        // The journals are another run's once this one's thread has put them down.
        if let Some(reader) = owner.reader.take() {
            // Had it panicked, it was said.
            let _ = reader.join();
        }
        let ending = owner.ending.unwrap_or(SendEnd {
            outcome: Err(TransferError::Unfinished),
            done: TreeDone::default(),
            seconds: 0.0,
            tried: Vec::new(),
            leave_at: None,
        });
        let TreeDone { bytes, kept, entries, failed, unsent, damaged } = ending.done;
        let SendEnd { outcome, seconds, tried, .. } = ending;
        let paths = owner.counter.paths();
        let relays = owner.relays.tallies(&paths, &owner.locals);
        let verdict = owner.relays.verdict(&paths);
        Ok(SentTransfer {
            outcome,
            bytes,
            kept,
            entries,
            failed,
            unsent,
            damaged,
            seconds,
            paths,
            relays,
            verdict,
            tried,
        })
    }
}

/// What begins a transfer at its first turn.
struct SendStart {
    connect: Connect,
    /// Relays, and how those of the ticket lead to the receiver.
    relays: Vec<(Word, Option<RelayRoute>)>,
}

/// How a transfer ends.
struct SendEnd {
    outcome: Result<(), TransferError>,
    done: TreeDone,
    seconds: f64,
    /// If the receiver did not answer: what came back on each way.
    tried: Vec<AttemptResult>,
    /// When to leave, once the receiver was told.
    leave_at: Option<Instant>,
}

/// The owner of a sending endpoint.
pub struct Sender {
    beginning: Option<SendStart>,
    handle: Option<Handle>,
    connected: bool,
    outbound: Outbound,
    news: SyncSender<TransferEvent>,
    requests: Arc<Requests>,
    cap: SendLimit,
    counter: ProgressCounter,
    paths: PathChanges,
    relays: RelayLog,
    locals: Vec<SocketAddr>,
    uplinks: Option<Uplinks>,
    dialers: Dialers,
    tcp_congestion: TcpCongestion,
    ending: Option<SendEnd>,
    restart: RestartCheck,
    /// While the receiver has not answered yet.
    ways: ConnectAttempts,
    /// Asks a registry for relays.
    finder: Option<Finder>,
    reader: Option<JoinHandle<()>>,
}

impl Owner for Sender {
    type Machine = Endpoint;

    fn ready(&mut self, _: &mut Endpoint, ready: Ready, _: Instant) {
        self.dialers.ready(ready);
    }

    fn turn(&mut self, endpoint: &mut Endpoint, now: Instant) -> LoopControl {
        if let Some(beginning) = self.beginning.take() {
            self.begin(endpoint, now, beginning);
        }
        while let Some(event) = endpoint.next_event() {
            if self.restart.on_event(endpoint, &event) {
                continue;
            }
            if let EndpointEvent::Closed(handle) = event
                && Some(handle) != self.handle
            {
                endpoint.forget(handle);
            }
            self.on_event(event, now);
        }
        self.find_relays(endpoint, now);
        self.look_for_restart(endpoint, now);
        if !self.connected && self.ending.is_none() {
            self.ways.look(now);
            if self.ways.are_hopeless(now) {
                self.give_up(ConnectError::NoAnswer, now);
            }
        }
        for change in self.uplinks.iter_mut().filter(|it| it.is_due(now)).flat_map(|it| it.look(now)) {
            endpoint.handle(now, Input::Link(change));
        }
        if let Some(handle) = self.handle.filter(|_| self.ending.is_none()) {
            let silence = self.connected.then(|| self.counter.silence(now));
            self.dialers.look(endpoint, handle, silence, now);
        }
        if let (Some(handle), true) = (self.handle, self.connected) {
            let due = self.counter.is_due(now);
            self.drive(endpoint, handle, now);
            let ends = self.ending.as_ref().is_some_and(|ending| ending.leave_at.is_none());
            if due || ends {
                let relays = endpoint.relays(now, handle);
                self.finder.iter_mut().for_each(|finder| finder.on_relays(now, &relays));
                for news in self.relays.look(relays, &self.locals) {
                    self.tell(news);
                }
            }
        }
        if self.ending.is_none() && self.requests.is_cancelled() {
            self.fail(TransferError::Cancelled, now);
        }
        let Some(ending) = &mut self.ending else { return LoopControl::Continue };
        let leave_at = *ending.leave_at.get_or_insert_with(|| {
            let (code, reason) = match &ending.outcome {
                Ok(()) if ending.done.unsent > 0 => {
                    (CloseCode::Partial.number(), format!("{} entries could not be read", ending.done.unsent))
                }
                Ok(()) => (close::DONE, String::from("done")),
                Err(error) => (code_of(error).number(), error.to_string()),
            };
            if let Some(handle) = self.handle {
                endpoint.close(now, handle, code, &reason);
            }
            now + LINGER
        });
        let gone = self.handle.and_then(|handle| endpoint.connection(handle)).is_none_or(|it| it.is_closed());
        if gone || now >= leave_at { LoopControl::Stop } else { LoopControl::Continue }
    }

    fn depth(&self) -> TcpLimits {
        TcpLimits { congestion: self.tcp_congestion, ..TcpLimits::default() }
    }

    fn deadline(&self) -> Option<Instant> {
        self.ending.as_ref()?.leave_at
    }

    fn ended(&mut self) {
        self.outbound.hang_up();
        self.news = hung_up();
    }

    fn opened(&mut self) -> Vec<Carrier> {
        let opened = self.uplinks.as_mut().map(Uplinks::opened).unwrap_or_default();
        self.locals.extend(opened.iter().map(Socket::address));
        opened.into_iter().map(Carrier::from).chain(self.dialers.opened()).collect()
    }
}

impl Sender {
    fn begin(&mut self, endpoint: &mut Endpoint, now: Instant, beginning: SendStart) {
        match endpoint.connect(now, beginning.connect) {
            Ok(handle) => {
                self.handle = Some(handle);
                for (word, reach) in beginning.relays {
                    endpoint.add_relay(now, handle, &word, reach.as_ref());
                }
            }
            Err(error) => self.give_up(error, now),
        }
    }

    /// Finds out whether a receiver that fell silent was started anew.
    fn look_for_restart(&mut self, endpoint: &mut Endpoint, now: Instant) {
        let is_running = self.connected && self.ending.is_none();
        if is_running && self.restart.look(endpoint, now, self.counter.silence(now)) {
            // What standard input gave is gone: who made it must begin again.
            let error = match self.outbound {
                Outbound::Tree(_) => TransferError::ReceiverRestarted,
                Outbound::Pipe(_) => TransferError::StreamReceiverRestarted,
            };
            self.fail(error, now);
        }
    }

    /// Takes what the registry offers, if there is one.
    fn find_relays(&mut self, endpoint: &mut Endpoint, now: Instant) {
        let Some(finder) = self.finder.as_mut().filter(|_| self.ending.is_none()) else { return };
        let found = finder.look(endpoint, now);
        if let Some(handle) = self.handle {
            for word in &found.words {
                endpoint.add_relay(now, handle, word, None);
                if finder.serves_tcp(word) {
                    self.dialers.add(word);
                }
            }
        }
        if let Some(trouble) = found.trouble {
            self.tell(TransferEvent::Warning(goes_on_without(&trouble)));
        }
    }

    fn on_event(&mut self, event: EndpointEvent, now: Instant) {
        if self.finder.as_mut().is_some_and(|finder| finder.on_event(&event, now)) {
            return;
        }
        match event {
            EndpointEvent::Connected(handle)
            | EndpointEvent::Failed(handle, _)
            | EndpointEvent::RelayTrouble(handle, ..)
                if Some(handle) != self.handle => {}
            EndpointEvent::Connected(_) => {
                self.connected = true;
                self.counter.begin(now);
                self.tell(TransferEvent::Begun);
            }
            EndpointEvent::Failed(_, error) => {
                self.handle = None;
                self.give_up(error, now);
            }
            EndpointEvent::RelayTrouble(_, relay, trouble) => {
                self.ways.on_relay(relay, trouble);
                if let Some(warning) = self.relays.on_trouble(relay, trouble) {
                    self.tell(TransferEvent::Warning(warning));
                }
            }
            EndpointEvent::Accepted(_)
            | EndpointEvent::Closed(_)
            | EndpointEvent::Reachable { .. }
            | EndpointEvent::StandingTrouble(..) => {}
        }
    }

    fn drive(&mut self, endpoint: &mut Endpoint, handle: Handle, now: Instant) {
        let Some(connection) = endpoint.connection_mut(handle) else { return };
        while let Some(event) = connection.next_event() {
            match (&event, &mut self.finder) {
                (Event::RelaysUsedUp, Some(finder)) => finder.ask_for_more(),
                (Event::Notice { reason: Reason::EpochOver, .. }, Some(finder)) => finder.on_epoch_over(now),
                _ => {}
            }
            if let Event::Closed { code, reason, by_peer } = event {
                self.fail(self.paths.explain(error_of(code, &reason, by_peer)), now);
            } else if let Some(news) = self.paths.on_event(event, connection, &self.locals) {
                self.tell(news);
            }
        }
        if self.ending.is_some() || connection.is_closing() {
            return;
        }
        self.outbound.drive(connection.outgoing(), now);
        self.outbound.take(connection.incoming());
        if self.cap.update(self.outbound.take_limit(), self.requests.is_lifted()) {
            connection.set_cap(now, self.cap.bytes_per_second());
        }
        if self.outbound.is_sent() {
            connection.finishing();
        }
        let ending = self.outbound.ending();
        if ending.is_some() || self.counter.is_due(now) {
            let amount = self.outbound.progress(connection.outgoing());
            let circumstances = Circumstances {
                used_up: self.paths.is_quota_used_up(),
                receivers_limit: self.cap.is_receivers(),
                sent: self.outbound.is_sent() && amount.total == Some(amount.bytes),
                ..Circumstances::default()
            };
            let tally = self.counter.look(now, connection, &self.locals, circumstances, amount);
            self.tell(TransferEvent::Progress(tally));
        }
        match ending {
            Some(Ok(done)) => self.end(Ok(()), done, Vec::new(), now),
            Some(Err(error)) => self.fail(error, now),
            None => {}
        }
    }

    /// The receiver does not answer.
    fn give_up(&mut self, error: ConnectError, now: Instant) {
        self.ways.on_tcp(self.dialers.accepted());
        let tried = self.ways.tried();
        let error = not_connected(error, &tried).into();
        self.end(Err(error), self.done_so_far(), tried, now);
    }

    fn fail(&mut self, error: TransferError, now: Instant) {
        self.end(Err(error), self.done_so_far(), Vec::new(), now);
    }

    fn done_so_far(&self) -> TreeDone {
        TreeDone { bytes: self.counter.bytes(), ..TreeDone::default() }
    }

    /// Ends, unless it has ended before.
    fn end(
        &mut self,
        outcome: Result<(), TransferError>,
        done: TreeDone,
        tried: Vec<AttemptResult>,
        now: Instant,
    ) {
        let seconds = self.counter.seconds(now);
        self.ending.get_or_insert(SendEnd { outcome, done, seconds, tried, leave_at: None });
    }

    /// Progress that nobody takes is not worth waiting for, and warnings neither.
    fn tell(&self, news: TransferEvent) {
        let _ = self.news.try_send(news);
    }
}
