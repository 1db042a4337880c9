//! One session between two peers over many paths.
//!
//! The owner talks to the data layer through [`outgoing`](Connection::outgoing) and [`incoming`](Connection::incoming), takes
//! [events](Connection::next_event), and looks at the [`status`](Connection::status). The endpoint hands packets in
//! (`on_packet`), wakes, and asks for datagrams (`transmit`).
//!
//! Rooms: `datagrams` is for owners who choose each packet's path; `input` takes packets apart, `output` puts them together, `life` leads paths
//! through theirs, `probing` tries routes, `ways` finds the ways back.

mod cap;
pub mod datagrams;
mod fate;
mod input;
mod life;
mod output;
pub mod path;
mod probing;
mod settled;
pub mod status;
mod table;
mod tau;
pub mod timers;
mod ways;

use crate::config::{Config, Params};
use crate::data::{Incoming, Outgoing};
use crate::handshake::{Established, PublicKey};
use crate::path::receive::ReceivePath;
use crate::random::Random;
use crate::route::Source;
use crate::seal::{Opener, ReplayWindow, Sealer};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;
use byway_control::{Controller, Delay};
use byway_wire::frame::{RelayConsent, RelayOffer};
use byway_wire::relay::Reason;
use byway_wire::{Duration, Instant, PathId};
use cap::Cap;
use core::net::SocketAddr;
use datagrams::Datagrams;
use fate::{arrived, lost};
pub(crate) use input::{Inbound, Rejected};
use path::Path;
use probing::{Candidate, Farewells};
use settled::Settled;
use table::Table;
use timers::{Armed, Owner, Timers};

/// How far above the highest path id that it has seen a receiver expects new ones.
pub const PATH_LOOKAHEAD: u32 = 64;
/// The most paths that live at once, of either side.
const MOST_PATHS: usize = 1024;
/// A responder keeps a connection this long for a peer that never shows that it has the keys.
const UNCONFIRMED: Duration = Duration::from_secs(30);
/// Events that wait for the owner at most; an owner that never looks loses the oldest.
const MOST_EVENTS: usize = 1024;

/// Who began the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// This side sent the HELLO.
    Initiator,
    /// This side answered it.
    Responder,
}

/// What the owner should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The peer is there and authentic: what the handshake allowed may be spent.
    Confirmed,
    /// A path may carry data.
    PathUp(PathId),
    /// A path is given up.
    PathDown {
        /// Its id, never used again.
        path: PathId,
        /// Why, for people.
        reason: &'static str,
    },
    /// A relay says why it does not forward what is sent on a path.
    Notice {
        /// The path.
        path: PathId,
        /// What the relay says.
        reason: Reason,
        /// Whether it is certain that the relay says so.
        proven: bool,
    },
    /// The connection is over.
    Closed {
        /// Zero: all is well.
        code: u64,
        /// For people.
        reason: String,
        /// Whether the peer closed it.
        by_peer: bool,
    },
}

/// What the peer said about relays: the endpoint's business.
#[derive(Clone, Debug)]
pub(crate) enum RelayNews {
    /// It would like to reach this side through a relay.
    Offered(RelayOffer),
    /// Its consent to be reached through a relay that was offered.
    Consented { offer: u32, address: SocketAddr, consent: Vec<u8> },
    /// It could not greet a relay that was offered.
    Refused(u32),
}

/// Codes of CLOSE that the session itself uses; the application's are below 2^16.
pub mod close {
    /// All is well.
    pub const DONE: u64 = 0;
    /// Nothing was heard for too long. Never sent.
    pub const IDLE: u64 = 0x1_0001;
    /// A packet could not be understood.
    pub const MALFORMED: u64 = 0x1_0002;
    /// An ACK of what was never sent, and other lies.
    pub const VIOLATION: u64 = 0x1_0003;
    /// Keys are worn out.
    pub const WORN_OUT: u64 = 0x1_0004;
    /// One side's objects are bytes, the other's only a length ([`Payload`](crate::config::Payload)).
    pub const PAYLOAD: u64 = 0x1_0005;
    pub(crate) const OTHER_PAYLOAD: &str = "one side's objects are bytes, the other's only a length";
    /// There are as many sessions as there is memory for.
    pub const BUSY: u64 = 0x1_0006;
    pub(crate) const TOO_MANY: &str = "there are as many sessions as there is memory for";
    /// Added to the data layer's codes ([`crate::data::ProtocolError`]).
    pub const DATA: u64 = 0x1_0100;
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    /// CLOSE is told at once, a few times more until `until` since one may be lost, and once per packet that still comes.
    Closing {
        code: u64,
        reason: String,
        until: Instant,
        again_at: Instant,
        tell: bool,
    },
    Closed,
}

/// A path that the peer sends on, as this side keeps it.
#[derive(Debug)]
struct Receiving {
    facts: ReceivePath,
    replay: ReplayWindow,
    /// Where its newest packet came from, and the path of ours that leads there.
    source: Source,
    way: Option<PathId>,
    /// What [`Connection::routes`] was when a packet from there last had nothing to change about that path.
    settled: Option<u64>,
    queued: bool,
    armed: Armed,
}

/// What a connection begins with.
pub(crate) struct Beginning {
    /// What the handshake yielded.
    pub established: Box<Established>,
    /// What the peer's application said in it.
    pub application: Vec<u8>,
    /// The peer's limits.
    pub params: Params,
    /// Governs what is sent.
    pub controller: Box<dyn Controller>,
    /// To choose with.
    pub random: Random,
}

/// One session between two peers over many paths.
#[derive(Debug)]
pub struct Connection {
    role: Role,
    config: Config,
    peer: PublicKey,
    application: Vec<u8>,
    max_datagram: usize,
    sealer: Sealer,
    opener: Opener,
    send_ids: [u8; 32],
    receive_ids: [u8; 32],
    random: Random,
    controller: Box<dyn Controller>,
    out: Outgoing,
    incoming: Incoming,
    datagrams: Datagrams,
    paths: Table<Path>,
    receive: Table<Receiving>,
    /// How often a route, a way back or a relay's ticket changed: as long as none does, packets that come from where those before
    /// came from need not be held against the path that leads there.
    routes: u64,
    /// Which of the peer's paths are over: their numbers must not begin again.
    settled: Settled,
    /// Those of them whose connection ids the endpoint still knows.
    over: VecDeque<PathId>,
    /// What the peer knows of our path ids.
    farewells: Farewells,
    receive_ids_wanted: u32,
    candidates: Vec<Candidate>,
    next_probe_at: Instant,
    ready: VecDeque<PathId>,
    urgent: VecDeque<PathId>,
    ack_queue: VecDeque<PathId>,
    /// The peer's path by which something came last that is not acknowledged yet, nor due to be.
    ack_soon: Option<PathId>,
    ack_way: Option<PathId>,
    ack_way_until: Instant,
    snack_due: bool,
    /// τ, and until when it need not be worked out anew.
    tau: (Duration, Instant),
    /// Whether a path may have become available since the controller was last offered one.
    may_open: bool,
    /// What may be sent at most.
    cap: Cap,
    /// What is left of a run of which datagrams leave one by one.
    rest: Option<output::Rest>,
    /// A path of the peer's whose ACK goes by another way as well.
    echo: Option<PathId>,
    /// Whether data came since the way of the ACKs was last doubted.
    data_came: bool,
    timers: Timers<Owner>,
    armed: Armed,
    tick_at: Option<Instant>,
    last_heard: Instant,
    last_keep_alive: Instant,
    born: Instant,
    confirmed: bool,
    phase: Phase,
    answers: VecDeque<Answer>,
    relay_news: VecDeque<RelayNews>,
    events: VecDeque<Event>,
    /// Whether the owner has nothing more to add.
    finishing: bool,
    /// Whether the endpoint told its owner that this is over.
    pub(crate) farewell: bool,
    /// Whether the owner did not want it, and so was never told of it.
    pub(crate) rejected: bool,
    /// Scratch space, kept so that no packet allocates.
    delays: Vec<Delay>,
    runs: Vec<(u64, u32)>,
    missing: Vec<(u64, u64)>,
}

/// What this side says about relays, until it is sent.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Offer(RelayOffer),
    Consent { offer: u32, address: SocketAddr, consent: Vec<u8> },
    Refuse(u32),
}

impl Answer {
    fn frame(&self) -> byway_wire::frame::Frame<'_> {
        use byway_wire::frame::Frame;
        match self {
            Self::Offer(offer) => Frame::RelayOffer(*offer),
            Self::Consent { offer, address, consent } => {
                Frame::RelayConsent(RelayConsent { offer: *offer, address: *address, consent })
            }
            Self::Refuse(offer) => Frame::RelayRefused(*offer),
        }
    }
}

impl Connection {
    /// A session as the handshake left it. An initiator [opens its first path](Self::open_first); a responder waits for
    /// the peer's first packet.
    pub(crate) fn new(now: Instant, role: Role, config: &Config, beginning: Beginning) -> Self {
        let Beginning { established, application, params, controller, random } = beginning;
        let mut out = Outgoing::new(config.outgoing).made_of(config.payload);
        out.on_max_data(params.max_data);
        out.set_initial_stream_limit(params.max_stream_data);
        let mut incoming = Incoming::new(config.incoming).made_of(config.payload);
        if let Some(least) = config.least_window() {
            incoming = incoming.sharing(least);
        }
        let max_datagram =
            config.max_datagram.min(usize::try_from(params.max_datagram).unwrap_or(usize::MAX));
        Self {
            role,
            config: config.clone(),
            peer: established.peer,
            application,
            max_datagram,
            sealer: established.sealer,
            opener: established.opener,
            send_ids: established.send_ids,
            receive_ids: established.receive_ids,
            random,
            controller,
            out,
            incoming,
            datagrams: Datagrams::new(config),
            rest: None,
            paths: Table::default(),
            receive: Table::default(),
            routes: 0,
            settled: Settled::default(),
            over: VecDeque::new(),
            farewells: Farewells::default(),
            receive_ids_wanted: 0,
            candidates: Vec::new(),
            next_probe_at: now,
            ready: VecDeque::new(),
            urgent: VecDeque::new(),
            ack_queue: VecDeque::new(),
            ack_soon: None,
            ack_way: None,
            ack_way_until: Instant::ZERO,
            snack_due: false,
            tau: (Duration::ZERO, Instant::ZERO),
            may_open: true,
            cap: Cap::new(now, config.cap),
            echo: None,
            data_came: false,
            timers: Timers::default(),
            armed: Armed::default(),
            tick_at: None,
            last_heard: now,
            last_keep_alive: now,
            born: now,
            confirmed: role == Role::Initiator,
            phase: Phase::Open,
            answers: VecDeque::new(),
            relay_news: VecDeque::new(),
            events: VecDeque::new(),
            finishing: false,
            farewell: false,
            rejected: false,
            delays: Vec::new(),
            runs: Vec::new(),
            missing: Vec::new(),
        }
    }

    /// Who is at the other end.
    #[must_use]
    pub const fn peer(&self) -> PublicKey {
        self.peer
    }

    /// What the peer's application said in the handshake.
    #[must_use]
    pub fn application(&self) -> &[u8] {
        &self.application
    }

    /// What this side sends.
    pub const fn outgoing(&mut self) -> &mut Outgoing {
        &mut self.out
    }

    /// What this side receives.
    pub const fn incoming(&mut self) -> &mut Incoming {
        &mut self.incoming
    }

    /// The next thing the owner should know.
    pub fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Whether the connection is over and everything about it was said.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.phase == Phase::Closed
    }

    /// The owner has nothing more to add: what is in flight at the end may be sent twice, so that the last bytes do not
    /// wait for the slowest path.
    pub const fn finishing(&mut self) {
        self.finishing = true;
    }

    /// Whether the connection is ending or over.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        self.phase != Phase::Open
    }

    /// Whether the peer proved that it holds the keys.
    #[must_use]
    pub const fn is_confirmed(&self) -> bool {
        self.confirmed
    }

    /// Whether the peer has acknowledged anything: it takes part, and did not answer only to say that it does not want to.
    #[must_use]
    pub fn is_acknowledged(&self) -> bool {
        self.paths.iter().any(|path| path.send.totals.acked > 0)
    }

    /// Ends the connection: the peer is told, and what is in flight is forgotten.
    pub fn close(&mut self, now: Instant, code: u64, reason: &str) {
        if self.phase != Phase::Open {
            return;
        }
        let linger = self.slowest_timeout() * 3;
        let (until, again_at) = (now + linger, now + linger / 3);
        self.phase = Phase::Closing { code, reason: String::from(reason), until, again_at, tell: true };
        self.raise(Event::Closed { code, reason: String::from(reason), by_peer: false });
        self.arm_whole(now);
    }

    /// Refuses a peer that the owner does not want: it is told as soon as it shows that it is no replay.
    pub(crate) fn reject(&mut self, now: Instant, code: u64, reason: &str) {
        self.rejected = true;
        let until = now + UNCONFIRMED;
        self.phase =
            Phase::Closing { code, reason: String::from(reason), until, again_at: until, tell: false };
    }

    fn slowest_timeout(&self) -> Duration {
        let timeouts =
            self.paths.iter().map(|path| path.send.rtt.probe_timeout(crate::path::send::ACK_DELAY));
        timeouts.max().unwrap_or(Duration::from_millis(300)).min(Duration::from_secs(2))
    }

    fn raise(&mut self, event: Event) {
        if self.events.len() == MOST_EVENTS {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }

    fn tell(&mut self, news: RelayNews) {
        if self.relay_news.len() < MOST_EVENTS {
            self.relay_news.push_back(news);
        }
    }

    /// What the peer said about relays.
    pub(crate) fn next_relay_news(&mut self) -> Option<RelayNews> {
        self.relay_news.pop_front()
    }

    fn finish(&mut self, code: u64, reason: &str, by_peer: bool) {
        if self.phase == Phase::Open {
            self.raise(Event::Closed { code, reason: String::from(reason), by_peer });
        }
        self.phase = Phase::Closed;
    }

    /// Says something about a relay to the peer.
    pub(crate) fn answer(&mut self, answer: Answer) {
        if self.answers.len() < MOST_EVENTS {
            self.answers.push_back(answer);
        }
    }

    /// When [`wake`](Self::wake) is due.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        match &self.phase {
            Phase::Open => self.timers.next(),
            Phase::Closing { until, again_at, .. } => Some((*until).min(*again_at)),
            Phase::Closed => None,
        }
    }

    /// Runs what is due.
    pub fn wake(&mut self, now: Instant) {
        if let Phase::Closing { until, again_at, tell, .. } = &mut self.phase {
            if *until <= now {
                self.phase = Phase::Closed;
            } else if *again_at <= now {
                *again_at = *again_at + (until.since(*again_at) / 2).max(Duration::from_millis(1));
                *tell = true;
            }
            return;
        }
        while self.phase == Phase::Open
            && let Some((at, owner)) = self.timers.pop(now)
        {
            match owner {
                Owner::Whole if timers::claim(&mut self.armed, at) => self.wake_whole(now),
                Owner::Send(id) => {
                    if self.paths.get_mut(id).is_some_and(|path| timers::claim(&mut path.armed, at)) {
                        self.wake_path(now, id);
                    }
                }
                Owner::Receive(id) => {
                    if let Some(receiving) = self.receive.get_mut(id)
                        && timers::claim(&mut receiving.armed, at)
                    {
                        receiving.facts.wake(now);
                        self.queue_ack(now, id);
                    }
                }
                Owner::Whole => {}
            }
        }
    }

    fn wake_whole(&mut self, now: Instant) {
        if !self.confirmed && self.born + UNCONFIRMED <= now {
            self.phase = Phase::Closed; // a replay, or a peer that went away
            return;
        }
        if self.last_heard + self.config.idle_timeout <= now {
            self.finish(close::IDLE, "nothing was heard from the peer for too long", false);
            return;
        }
        if self.tick_at.is_some_and(|at| at <= now) {
            self.tick_at = self.controller.tick(now);
            self.refresh_all(now, None);
            self.consult(now);
        }
        let tau = self.tau(now);
        if self.incoming.snack_deadline(tau).is_some_and(|at| at <= now) {
            self.snack_due = true;
        }
        self.keep_alive(now);
        self.probe_candidates(now);
        self.cap.wake(now);
        self.arm_whole(now);
    }

    pub(crate) fn arm_whole(&mut self, now: Instant) {
        let idle = self.last_heard + self.config.idle_timeout;
        let snack = self.snack_at(now);
        let keep_alive = self.keep_alive_at();
        let probe = self.next_candidate_at().map(|at| at.max(self.next_probe_at));
        let unconfirmed = (!self.confirmed).then(|| self.born + UNCONFIRMED);
        let next = [Some(idle), unconfirmed, snack, Some(keep_alive), probe, self.tick_at, self.cap.until]
            .into_iter()
            .flatten()
            .min();
        self.arm_whole_at(now, next);
    }

    /// What is due already is looked at in a moment, never in a loop that cannot end.
    fn arm_whole_at(&mut self, now: Instant, at: Option<Instant>) {
        let at = at.map(|at| at.max(now + Duration::from_micros(100)));
        self.timers.arm(Owner::Whole, &mut self.armed, at);
    }

    fn arm_path(&mut self, id: PathId) {
        if let Some(path) = self.paths.get_mut(id) {
            let at = path.deadline();
            self.timers.arm(Owner::Send(id), &mut path.armed, at);
        }
    }

    /// Puts a path's ACK in the queue if it is due, else wakes for it.
    fn queue_ack(&mut self, now: Instant, id: PathId) {
        let Some(receiving) = self.receive.get_mut(id) else { return };
        if receiving.facts.ack_due(now) {
            if !receiving.queued {
                receiving.queued = true;
                self.ack_queue.push_back(id);
            }
        } else {
            let at = receiving.facts.deadline();
            self.timers.arm(Owner::Receive(id), &mut receiving.armed, at);
            self.ack_soon = Some(id);
        }
    }

    fn make_urgent(&mut self, id: PathId) {
        if let Some(path) = self.paths.get_mut(id)
            && !path.urgent
            && path.pending.any()
        {
            path.urgent = true;
            self.urgent.push_back(id);
        }
    }

    fn make_ready(&mut self, id: PathId) {
        if let Some(path) = self.paths.get_mut(id)
            && !path.ready
            && path.state == path::State::Active
        {
            path.ready = true;
            path.paced = false;
            self.ready.push_back(id);
        }
    }
}
