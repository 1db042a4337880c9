//! Forwards TCP connections of programs on this host to the receiver, which connects them to their
//! targets. Keeps a session with the receiver all the time.

use crate::close::goodbye;
use crate::error::{Error, NotConnected, TransferError};
use crate::event_loop::news_channel::{NewsSender, hung_up, news_channel};
use crate::event_loop::{EventLoop, Requests};
use crate::events::TransferEvent;
use crate::hello_preamble::{ConnectionPurpose, Preamble};
use crate::identity::Identity;
use crate::limits::receive_limit::ReceiveLimit;
use crate::limits::send_limit::SendLimit;
use crate::pipe_bridge::{PipeBridge, PipedConnection};
use crate::progress::limiting_factor::Circumstances;
use crate::progress::{ForwardCounters, ProgressCounter, TransferAmount, TransferProgress};
use crate::registry::FindPlan;
use crate::session::dialers::TcpUse;
use crate::session::keeper::{LostSession, SessionEvent, SessionKeeper, SessionPlan};
use crate::session::no_answer::NoAnswer;
use crate::session::uplinks::Uplinks;
use crate::ticket::Ticket;
use crate::units::RateLimits;
use byway_control::{Class, Controller};
use byway_engine::{Config, Endpoint};
use byway_forward::stream_request::Refusal;
use byway_forward_host::{ByteCounts, Entry, EntryEvent, Listening};
use byway_net::{Carrier, Clock, Control, LoopControl, Owner, Ready, Socket, Waker};
use byway_wire::relay::Word;
use byway_wire::{Duration, Input, Instant, Machine as _};

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Events that wait for the program.
const MAX_QUEUED_EVENTS: usize = 256;
/// Time to stay after the end, so that a lost CLOSE can be sent again.
const LINGER_TIME: Duration = Duration::from_millis(200);
/// The silence of the receiver after which the user is told.
const SILENCE_WARNING: Duration = Duration::from_secs(5);
/// Time for which an equal warning is not shown again.
const WARNING_REPEAT_INTERVAL: Duration = Duration::from_secs(10);
/// The most different warnings that are remembered.
const MAX_KEPT_WARNINGS: usize = 64;

/// The settings of a forwarder: its receiver, its ports and its options.
pub struct ForwardingPlan {
    /// The key pair of this host.
    pub identity: Identity,
    /// The receiver, at whose side targets are dialled.
    pub ticket: Ticket,
    /// Relays in addition to those that the ticket names.
    pub relays: Vec<Word>,
    /// A registry to ask for more.
    pub registry: Option<FindPlan>,
    /// The listening sockets for local programs.
    pub listening: Listening,
    /// A connection of this process itself. With it, the forward ends as soon as this connection
    /// is over, or as soon as the receiver is away.
    pub piped: Option<PipedConnection>,
    /// The most connections of programs at once.
    pub most: usize,
    /// The class in which the receiver is to send.
    pub class: Class,
    /// Whether TCP takes the place of UDP where that brings no answer, or far less.
    pub tcp: bool,
    /// Makes the congestion controller of a session from a seed.
    pub controller: Box<dyn Fn(u64) -> Box<dyn Controller> + Send>,
    /// Whether data wait for what this host itself sends by the same uplink. It takes a controller
    /// that yields.
    pub yields_to_host: bool,
    /// To send from: each adds paths.
    pub sockets: Vec<Socket>,
    /// To use addresses that this host gets later, too, where they may lead to one of these
    /// addresses. `None`: not to.
    pub follow: Option<Vec<IpAddr>>,
    /// The most bytes per second that this host takes from the receiver, over all paths and
    /// connections, until [`set_limits`](EventLoop::set_limits). [`Config::cap`] limits the other
    /// direction. [`receiving_window`](crate::receiving_window) fits the configuration.
    pub limit: Option<u64>,
    /// How sessions behave.
    pub config: Config,
}

/// Forwards that run.
pub type Forwarding = EventLoop<Forwarder>;

impl Forwarding {
    /// Starts the event loop in a thread of its own.
    ///
    /// # Errors
    /// The system gives no thread, or no way to watch the ports.
    pub fn start(plan: ForwardingPlan) -> Result<Self, Error> {
        let control = Control::new().map_err(Error::Descriptor)?;
        let (news, inbox) = news_channel(MAX_QUEUED_EVENTS);
        let locals: Vec<SocketAddr> = plan.sockets.iter().map(Socket::address).collect();
        let uplinks = plan.follow.map(|destinations| Uplinks::new(&locals, destinations));
        let limits = RateLimits { up: plan.config.cap, down: plan.limit };
        let endpoint = crate::endpoint::endpoint(&plan.identity, plan.config, None)?;
        let mut entry = Entry::new(plan.listening, plan.most, control.watch()).map_err(Error::Descriptor)?;
        let clock = Clock::new();
        let piped = plan.piped.map(|PipedConnection { target, input, output }| {
            let (program, bridge) =
                PipeBridge::begin(input, output, control.waker()).map_err(Error::Thread)?;
            entry.join(program, target, clock.now()).map_err(Error::Descriptor)?;
            Ok::<_, Error>(bridge)
        });
        let bridge = piped.transpose()?;
        let transfer = byway_net::seed()?;
        let preamble = |kind| Preamble { kind, permission: plan.ticket.permission.clone(), transfer };
        let hello = preamble(ConnectionPurpose::Forward(plan.class));
        let question = preamble(ConnectionPurpose::Ping);
        let session = SessionPlan {
            registry: plan.registry,
            tcp: if plan.tcp { TcpUse::BesideUdp } else { TcpUse::Never },
            restart_question: Some(question.to_bytes()),
            yields_to_host: plan.yields_to_host,
            seed: u64::from_be_bytes(byway_net::seed()?),
            ..SessionPlan::new(&plan.ticket, plan.relays, hello.to_bytes(), plan.controller)
        };
        let requests = Arc::new(Requests::new(limits));
        let owner = Forwarder {
            keeper: SessionKeeper::new(session, &locals, &control),
            entry,
            bridge,
            waker: control.waker().clone(),
            news,
            requests: Arc::clone(&requests),
            first_send_limit: SendLimit::new(limits.up),
            send_limit: SendLimit::new(limits.up),
            limit: None,
            locals,
            uplinks,
            said: BTreeMap::new(),
            is_away_told: false,
            arrival_counter: ProgressCounter::default(),
            counters: ForwardCounters::default(),
            moves: false,
            ending: None,
            leave_at: None,
        };
        let driver = byway_net::spawn_with(control, "byway forward", endpoint, owner, plan.sockets, clock)
            .map_err(Error::Thread)?;
        Ok(Self::new(driver, inbox, requests))
    }

    /// Waits for the end. Returns the counters, and an error if the forwarding ended without being
    /// asked to.
    ///
    /// # Errors
    /// The event loop broke.
    pub fn join(self) -> Result<(ForwardCounters, Result<(), TransferError>), Error> {
        let finished = self.finish()?;
        finished.outcome?;
        let mut owner = finished.owner;
        owner.look();
        Ok((owner.counters, owner.ending.unwrap_or(Ok(()))))
    }
}

/// The owner of an endpoint that serves programs.
pub struct Forwarder {
    keeper: SessionKeeper,
    entry: Entry,
    /// The connection of this process's own input and output, if there is one.
    bridge: Option<PipeBridge>,
    waker: Waker,
    news: NewsSender<TransferEvent>,
    requests: Arc<Requests>,
    /// The limit on bytes sent with which each session begins.
    first_send_limit: SendLimit,
    /// The limits on bytes sent and on bytes received.
    send_limit: SendLimit,
    limit: Option<ReceiveLimit>,
    locals: Vec<SocketAddr>,
    uplinks: Option<Uplinks>,
    /// The warnings that were shown, and when.
    said: BTreeMap<String, Instant>,
    /// Whether the user has been told that there is no session.
    is_away_told: bool,
    /// The counters of data from the receiver.
    arrival_counter: ProgressCounter,
    counters: ForwardCounters,
    /// Whether the counters had changed at the last look.
    moves: bool,
    ending: Option<Result<(), TransferError>>,
    leave_at: Option<Instant>,
}

impl Owner for Forwarder {
    type Machine = Endpoint;

    fn ready(&mut self, _: &mut Endpoint, ready: Ready, _: Instant) {
        if !self.keeper.ready(ready) {
            self.entry.ready(ready);
        }
    }

    fn turn(&mut self, endpoint: &mut Endpoint, now: Instant) -> LoopControl {
        if let Some(leave_at) = self.leave_at {
            let over = now >= leave_at || self.keeper.is_gone(endpoint);
            return if over { LoopControl::Stop } else { LoopControl::Continue };
        }
        for change in self.uplinks.iter_mut().filter(|it| it.is_due(now)).flat_map(|it| it.look(now)) {
            endpoint.handle(now, Input::Link(change));
        }
        self.keeper.turn(endpoint, &self.locals, now);
        if let Some(uplinks) = &mut self.uplinks {
            uplinks.lead_to(self.keeper.named_destinations());
        }
        while let Some(event) = self.keeper.next_event() {
            self.on_session_event(event, now);
        }
        self.heed_limits(endpoint, now);
        let given = self.entry.budget();
        if self.entry.turn(self.keeper.session(endpoint), now) {
            self.waker.wake();
        }
        if let (Some(limit), Some(given), Some(left)) = (&mut self.limit, given, self.entry.budget()) {
            limit.spend(given - left);
        }
        self.look_at_bridge();
        self.tell_events(now);
        if self.keeper.counter().is_due(now) {
            self.tell_progress(endpoint, now);
        }
        if self.ending.is_none() && self.requests.is_cancelled() {
            self.ending = Some(Ok(()));
        }
        let is_standing = self.keeper.is_connected() && self.entry.count().0 == 0 && !self.moves;
        self.news.set_busy(!is_standing || self.ending.is_some());
        if let Some(ending) = &self.ending {
            let (code, reason) = goodbye(ending);
            self.keeper.close(endpoint, code, &reason, now);
            self.entry.lose();
            self.leave_at = Some(now + LINGER_TIME);
            self.waker.wake();
        }
        LoopControl::Continue
    }

    fn deadline(&self) -> Option<Instant> {
        self.leave_at
    }

    fn ended(&mut self) {
        self.news = hung_up();
    }

    fn opened(&mut self) -> Vec<Carrier> {
        let opened = self.uplinks.as_mut().map(Uplinks::opened).unwrap_or_default();
        self.locals.extend(opened.iter().map(Socket::address));
        opened.into_iter().map(Carrier::from).chain(self.keeper.opened()).collect()
    }
}

impl Forwarder {
    /// Applies the limits that hold now.
    fn heed_limits(&mut self, endpoint: &mut Endpoint, now: Instant) {
        let limits = self.requests.limits();
        if self.send_limit.update(None, limits.up)
            && let Some(connection) = self.keeper.session(endpoint)
        {
            connection.set_cap(now, self.send_limit.bytes_per_second());
        }
        ReceiveLimit::change(&mut self.limit, limits.down);
        self.entry.allow(self.limit.as_mut().map(|limit| limit.room(now)));
    }

    fn on_session_event(&mut self, event: SessionEvent, now: Instant) {
        match event {
            SessionEvent::Connected => {
                self.send_limit = self.first_send_limit;
                self.entry.begin();
                self.is_away_told = false;
                self.arrival_counter = ProgressCounter::default();
                self.arrival_counter.begin(now);
                self.tell(TransferEvent::Begun);
            }
            SessionEvent::Lost(LostSession { error, .. }) => {
                self.entry.lose();
                if self.bridge.is_some() {
                    self.ending.get_or_insert(Err(error));
                    return;
                }
                if !std::mem::replace(&mut self.is_away_told, true) {
                    self.tell(TransferEvent::Away(error));
                }
            }
            SessionEvent::Refused(LostSession { error, .. }) => {
                self.ending.get_or_insert(Err(error));
            }
            SessionEvent::RelayTrouble(.., warning) => {
                warning.into_iter().for_each(|warning| self.warn(warning, now));
            }
            SessionEvent::Warning(sentence) => self.warn(sentence, now),
            SessionEvent::News(news) => self.tell(news),
        }
    }

    /// Sends the program an event with the progress of the session.
    fn tell_progress(&mut self, endpoint: &mut Endpoint, now: Instant) {
        if self.keeper.silence(now) >= SILENCE_WARNING {
            self.warn("nothing is heard from the receiver: connections wait for it".into(), now);
        }
        let ByteCounts { forth, back } = self.entry.moved();
        let amount = TransferAmount { bytes: forth + back, travelled: forth + back, total: None };
        let circumstances = Circumstances::default();
        let Some(tally) = self.keeper.progress(endpoint, &self.locals, circumstances, amount, now) else {
            return;
        };
        let arrivals = self.keeper.session(endpoint).map(|connection| {
            self.arrival_counter.look_at_arrivals(now, connection, &self.locals, amount).paths
        });
        let tally = TransferProgress { arrivals: arrivals.unwrap_or_default(), ..tally };
        let before = self.counters;
        self.look();
        // What has come to rest is told once more, so that its last rate does not stay on screen.
        let moves = self.counters != before;
        if moves || self.moves {
            self.tell(TransferEvent::Forwarded(self.counters));
            self.tell(TransferEvent::Progress(tally));
        }
        self.moves = moves;
    }

    /// Ends the forward once the connection of this process is over. Both directions have then
    /// ended, the receiver has all that was sent, and all that came is written.
    fn look_at_bridge(&mut self) {
        let Some(bridge) = &mut self.bridge else { return };
        if let Err(error) = bridge.look() {
            self.ending.get_or_insert(Err(error));
        }
        while let Some(event) = self.entry.next_event() {
            let error = match event {
                EntryEvent::Refused(target, refusal) => TransferError::TargetRefused { target, refusal },
                EntryEvent::NoPlace(target) => {
                    TransferError::TargetRefused { target, refusal: Refusal::Full }
                }
                EntryEvent::NoSession(_) => NotConnected::NoAnswer(NoAnswer::Silent).into(),
                EntryEvent::Reset(target) => TransferError::TargetReset(target),
                EntryEvent::NoDescriptors => continue,
            };
            self.ending.get_or_insert(Err(error));
        }
        if bridge.is_written() && self.entry.count().0 == 0 {
            self.ending.get_or_insert(Ok(()));
        }
    }

    fn tell_events(&mut self, now: Instant) {
        while let Some(event) = self.entry.next_event() {
            let sentence = match event {
                EntryEvent::Reset(_) => continue,
                EntryEvent::Refused(target, refusal) => format!("{target}: {refusal}"),
                EntryEvent::NoSession(target) => {
                    format!("{target}: a connection was refused, since the receiver is away")
                }
                EntryEvent::NoPlace(target) => {
                    format!("{target}: a connection was refused, since the receiver holds as many as it may")
                }
                EntryEvent::NoDescriptors => String::from(
                    "as many files are open as the system allows: new connections wait (`ulimit -n`)",
                ),
            };
            self.warn(sentence, now);
        }
    }

    /// Gives a warning, unless the same was given within `WARNING_REPEAT_INTERVAL`.
    fn warn(&mut self, sentence: String, now: Instant) {
        self.said.retain(|_, at| now.since(*at) < WARNING_REPEAT_INTERVAL);
        if self.said.len() < MAX_KEPT_WARNINGS && self.said.insert(sentence.clone(), now).is_none() {
            self.tell(TransferEvent::Warning(sentence));
        }
    }

    /// Reads the counts of connections and bytes.
    fn look(&mut self) {
        let (open, opened) = self.entry.count();
        let ByteCounts { forth, back } = self.entry.moved();
        self.counters = ForwardCounters { connected: self.keeper.is_connected(), open, opened, forth, back };
    }

    /// Sends an event to the program. If the program does not read its events, this one is lost.
    fn tell(&self, news: TransferEvent) {
        let _ = self.news.try_send(news);
    }
}
