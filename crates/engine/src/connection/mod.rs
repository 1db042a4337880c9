//! One session between two peers over many paths. A path carries packets in one direction, so each
//! side has paths of its own.
//!
//! | caller | uses |
//! |---|---|
//! | application | [`outgoing`](Connection::outgoing) to send |
//! | application | [`incoming`](Connection::incoming) to receive |
//! | application | [`next_event`](Connection::next_event), [`status`](Connection::status) |
//! | endpoint | `on_packet` to pass packets in, `transmit` to get datagrams to send |
//!
//! | module | what it does |
//! |---|---|
//! | `candidates` | tries routes that may become paths |
//! | `scheduling` | chooses the path that sends next |
//! | `packet_output`, `packet_input` | build and read packets |
//! | `acks` | decides when an ACK is sent, and by which path |

mod acks;
mod audit;
mod candidates;
mod carrier_choice;
mod closed_paths;
mod datagram_queues;
pub mod datagrams;
mod ended_path_counters;
pub(crate) mod full_sockets;
mod liveness;
mod loss_response;
mod packet_contents;
mod packet_input;
mod packet_output;
mod packet_purpose;
pub mod path;
#[cfg(feature = "studies")]
mod path_choosing;
mod path_control;
mod path_migration;
mod path_states;
mod paths;
mod peer_paths;
mod pending_datagrams;
mod pending_events;
mod rate_limit;
mod received_datagram;
mod relay_rtt_limit;
mod relay_states;
mod retired_path_ids;
mod scheduling;
mod snack_delay;
mod standstill;
pub mod status;
mod tcp_resting;
pub mod timers;
pub mod uplink_gate;
pub mod uplink_use;

use crate::config::{Config, Params};
use crate::data::{Incoming, Outgoing};
use crate::endpoint::steady_clock::SteadyClock;
use crate::handshake::{Established, PublicKey};
use crate::path::send::ACK_DELAY;
use crate::random::Random;
pub use crate::role::Role;
use crate::seal::{Opener, Sealer};
use acks::Acks;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use byway_control::Controller;
use byway_wire::{ConnectionId, Duration, Instant, Local, PathId};
use candidates::Candidates;
use carrier_choice::SILENT_TIMEOUTS;
use core::net::SocketAddr;
use liveness::{SessionState, SilenceAction};
use packet_contents::PacketContents;
use path_control::Governor;
use paths::Paths;
pub use peer_paths::PATH_LOOKAHEAD;
use peer_paths::PeerPaths;
pub use pending_events::Event;
use pending_events::PendingEvents;
pub(crate) use pending_events::{RelayEvent, RelayMessage};
pub(crate) use received_datagram::{Inbound, Rejected};
pub use relay_states::RelayState;
pub(crate) use relay_states::{RelayAttempt, RelayId};
use scheduling::Scheduler;
use timers::TimerOwner;

/// Codes of CLOSE that the session itself uses; the application's are below 2^16.
pub mod close {
    /// The code for a session that ended well.
    pub const DONE_CODE: u64 = 0;
    /// The code for a peer that was silent for too long. It is never sent.
    pub const IDLE_CODE: u64 = 0x1_0001;
    pub(crate) const SILENT_REASON: &str = "nothing was heard from the peer for too long";
    /// The reason beside [`IDLE_CODE`] where the peer was not even heard once.
    pub const UNANSWERED_REASON: &str = "nothing was heard from the peer since the handshake";
    /// The code for a packet that could not be understood.
    pub const MALFORMED_CODE: u64 = 0x1_0002;
    /// The code for an ACK of packets that were never sent, and for other violations of the
    /// protocol.
    pub const VIOLATION_CODE: u64 = 0x1_0003;
    /// The code for keys that are worn out.
    pub const WORN_OUT_CODE: u64 = 0x1_0004;
    /// The code for objects with bytes on one host and only a length on the other
    /// ([`Payload`](crate::config::Payload)).
    pub const PAYLOAD_CODE: u64 = 0x1_0005;
    pub(crate) const PAYLOAD_REASON: &str = "one side's objects are bytes, the other's only a length";
    /// The code of an endpoint without memory for more sessions.
    pub const BUSY_CODE: u64 = 0x1_0006;
    pub(crate) const BUSY_REASON: &str = "there are as many sessions as there is memory for";
    /// The code for data of which nothing arrives, although the peer answers.
    pub const STANDSTILL_CODE: u64 = 0x1_0007;
    pub(crate) const STANDSTILL_REASON: &str = "no data arrived for too long";
    /// The number that is added to the data layer's codes ([`crate::data::ProtocolError`]).
    pub const DATA_CODE_OFFSET: u64 = 0x1_0100;
}

/// The parts of a new connection.
pub(crate) struct ConnectionStart {
    /// The result of the handshake.
    pub established: Box<Established>,
    /// The application's data in the peer's handshake message.
    pub application: Vec<u8>,
    /// The peer's limits.
    pub params: Params,
    /// The congestion controller of the session.
    pub controller: Box<dyn Controller>,
    /// The generator of random choices.
    pub random: Random,
}

/// The peer: its key, its application's data, and the role of this side.
#[derive(Debug)]
struct PeerInfo {
    /// The role of this side: initiator or responder.
    role: Role,
    key: PublicKey,
    /// The application's data in the peer's handshake message.
    application: Vec<u8>,
    /// Whether the peer knows the frame ADDRESSES.
    takes_addresses: bool,
}

/// One session between two peers over many paths.
#[derive(Debug)]
pub struct Connection {
    config: Config,
    peer: PeerInfo,
    session: SessionState,
    sealer: Sealer,
    opener: Opener,
    random: Random,
    controller: Governor,
    candidates: Candidates,
    paths: Paths,
    peer_paths: PeerPaths,
    contents: PacketContents,
    acks: Acks,
    scheduler: Scheduler,
    pending_events: PendingEvents,
}

impl Connection {
    /// Makes a session after its handshake. An initiator [opens its first path](Self::open_first);
    /// a responder waits for the peer's first packet.
    pub(crate) fn new(now: Instant, role: Role, config: &Config, beginning: ConnectionStart) -> Self {
        let ConnectionStart { established, application, params, controller, random } = beginning;
        let max_datagram =
            config.max_datagram.min(usize::try_from(params.max_datagram).unwrap_or(usize::MAX));
        Self {
            config: Config { max_datagram, ..config.clone() },
            peer: PeerInfo {
                role,
                key: established.peer,
                application,
                takes_addresses: params.max_addresses > 0,
            },
            session: SessionState::new(now, config, role),
            sealer: established.sealer,
            opener: established.opener,
            random,
            controller: Governor::new(controller),
            candidates: Candidates::new(now, config.probe_interval, config.tau),
            paths: Paths::new(established.send_ids),
            peer_paths: PeerPaths::new(established.receive_ids),
            contents: PacketContents::new(config, &params, role),
            acks: Acks::new(config),
            scheduler: Scheduler::new(now, config),
            pending_events: PendingEvents::default(),
        }
    }

    /// The public key of the peer.
    #[must_use]
    pub const fn peer(&self) -> PublicKey {
        self.peer.key
    }

    /// The application's data in the peer's handshake message.
    #[must_use]
    pub fn application(&self) -> &[u8] {
        &self.peer.application
    }

    /// The sending side: streams and objects that go to the peer.
    pub const fn outgoing(&mut self) -> &mut Outgoing {
        self.contents.out()
    }

    /// The receiving side: streams and objects that come from the peer.
    pub const fn incoming(&mut self) -> &mut Incoming {
        self.contents.incoming()
    }

    /// How many frames of streams waited how long for bytes before them: whole milliseconds, and
    /// the number of frames.
    #[cfg(feature = "studies")]
    pub fn order_waits(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.contents.order_waits()
    }

    /// Sets the time that the endpoint's clock skipped. It corrects the driver's time in calls of
    /// the owner.
    pub(crate) const fn keep_time(&mut self, steady: SteadyClock) {
        self.session.keep_time(steady);
    }

    /// The next thing the owner should know.
    pub fn next_event(&mut self) -> Option<Event> {
        self.pending_events.next_event()
    }

    /// The next message of the peer about relays.
    pub(crate) fn next_relay_news(&mut self) -> Option<RelayEvent> {
        self.pending_events.next_relay_news()
    }

    /// Says something about a relay to the peer.
    pub(crate) fn answer(&mut self, answer: RelayMessage) {
        self.pending_events.answer(answer);
    }

    /// Whether datagrams or results wait that the owner was not told of.
    pub(crate) fn has_datagram_news(&mut self) -> bool {
        self.contents.datagrams().has_news()
    }

    /// Whether events of streams or objects wait for the owner.
    pub(crate) fn has_stream_news(&mut self) -> bool {
        self.incoming().has_news() || self.outgoing().has_news()
    }

    /// The next connection id of a peer's path that the endpoint does not know yet.
    pub(crate) fn next_receive_id(&mut self) -> Option<(ConnectionId, PathId)> {
        self.peer_paths.next_id()
    }

    /// Returns a connection id that is no longer used to receive, so that the endpoint can forget
    /// it.
    pub(crate) fn next_id_over(&mut self) -> Option<ConnectionId> {
        self.peer_paths.next_id_over()
    }

    /// Returns all connection ids that the endpoint knows, so that it can forget them.
    pub(crate) fn receive_ids(&self) -> impl Iterator<Item = ConnectionId> + '_ {
        self.peer_paths.ids()
    }

    /// Says that the application adds no more data. When nothing new is left to send, data that is
    /// still in flight may be sent once more. So the last bytes do not wait for the slowest path.
    pub const fn finishing(&mut self) {
        self.contents.finish();
    }

    /// Limits what is sent from now on, over all paths together, to `bytes_per_second` of UDP
    /// payload. `None`: no such limit. While the limit holds data back, no congestion window grows,
    /// because the path's capacity is unknown.
    pub fn set_cap(&mut self, now: Instant, bytes_per_second: Option<u64>) {
        let now = self.session.own_time(now);
        self.scheduler.set_cap(now, bytes_per_second);
        self.settle(now);
    }

    /// Returns the state of each relay that may lead to the peer. Too slow to call per packet.
    pub(crate) fn relays(&self, now: Instant) -> impl Iterator<Item = RelayAttempt> + '_ {
        self.candidates.relays(now)
    }

    /// Whether one of the peer's paths arrives through this relay and local socket.
    pub(crate) fn is_reached_by(&self, local: Local, relay: SocketAddr) -> bool {
        self.peer_paths.iter().any(|it| it.source.local == local && it.source.remote == relay)
    }

    /// Whether the peer knows the frame ADDRESSES.
    pub(crate) const fn takes_addresses(&self) -> bool {
        self.peer.takes_addresses
    }

    /// Whether more paths would help. A side that only answers needs one path.
    pub(super) fn needs_paths(&self) -> bool {
        self.peer.role == Role::Initiator
            || self.config.datagrams > 0
            || self.contents.has_any()
            || !self.has_answering()
    }

    /// Whether a path in use answers.
    pub(super) fn has_answering(&self) -> bool {
        self.paths.iter().any(|path| path.is_governed() && path.send.timeouts() < SILENT_TIMEOUTS)
    }

    /// Whether a direct path leads to the peer and answers.
    pub(crate) fn is_reached_directly(&self) -> bool {
        let mut direct = self.paths.iter().filter(|path| !path.route.is_proxied());
        direct.any(|path| path.send.is_proven() && path.send.timeouts() == 0)
    }

    /// Whether the connection is over, and needs to send nothing more.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        self.session.is_closed()
    }

    /// Whether the connection is ending or over.
    #[must_use]
    pub const fn is_closing(&self) -> bool {
        !self.session.is_open()
    }

    /// Whether the peer has proved that it has the keys.
    #[must_use]
    pub const fn is_confirmed(&self) -> bool {
        self.session.is_confirmed()
    }

    /// Whether the peer has acknowledged any packet.
    #[must_use]
    pub fn is_acknowledged(&self) -> bool {
        self.paths.iter().any(|path| path.send.totals.acked > 0)
    }

    /// Whether the endpoint refused the connection, so that the owner gets no event about it.
    pub(crate) const fn is_rejected(&self) -> bool {
        self.session.is_rejected()
    }

    /// Marks the owner as informed that the connection is over. Returns whether this is the first
    /// time.
    pub(crate) const fn tell_over(&mut self) -> bool {
        self.session.tell_over()
    }

    /// Ends the connection, and sends the peer a CLOSE. Data in flight are given up.
    pub fn close(&mut self, now: Instant, code: u64, reason: &str) {
        self.close_at(self.session.own_time(now), code, reason);
    }

    /// The same, by the endpoint's own time.
    pub(crate) fn close_at(&mut self, now: Instant, code: u64, reason: &str) {
        self.close_within(now, code, reason, self.slowest_timeout() * 3);
    }

    /// Ends the connection, and sends the peer one CLOSE.
    pub(crate) fn dismiss(&mut self, now: Instant, code: u64, reason: &str) {
        self.close_within(now, code, reason, Duration::ZERO);
    }

    fn close_within(&mut self, now: Instant, code: u64, reason: &str, linger: Duration) {
        if !self.session.is_open() {
            return;
        }
        self.session.close(now, code, reason, linger);
        self.pending_events.raise(Event::Closed { code, reason: String::from(reason), by_peer: false });
    }

    /// Ends a connection for which there is no room. The owner never learns of it.
    pub(crate) fn turn_away(&mut self, now: Instant, code: u64, reason: &str) {
        self.session.set_rejected();
        self.close_at(now, code, reason);
    }

    /// Refuses a peer that the owner does not admit. The peer gets a CLOSE as soon as it has proved
    /// that its HELLO is no replay.
    pub(crate) fn reject(&mut self, now: Instant, code: u64, reason: &str) {
        self.session.reject(now, code, reason);
    }

    /// Handles the peer's CLOSE, which may answer this side's.
    fn on_close(&mut self, now: Instant, code: u64, reason: &str) {
        if !self.session.is_open() {
            return self.session.end();
        }
        self.session.confirm_close(now, code, reason, self.slowest_timeout());
        self.pending_events.raise(Event::Closed { code, reason: String::from(reason), by_peer: true });
    }

    /// Ends the connection at once.
    fn end(&mut self, code: u64, reason: &str, by_peer: bool) {
        if self.session.is_open() {
            self.pending_events.raise(Event::Closed { code, reason: String::from(reason), by_peer });
        }
        self.session.end();
    }

    fn slowest_timeout(&self) -> Duration {
        let timeouts = self.paths.iter().map(|path| path.send.rtt.probe_timeout(ACK_DELAY));
        timeouts.max().unwrap_or(Duration::from_millis(300)).min(Duration::from_secs(2))
    }

    /// When the connection must be woken next.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        if self.session.is_open() { self.scheduler.deadline() } else { self.session.closing_deadline() }
    }

    /// Runs all timers that are due at `now`.
    pub(crate) fn wake(&mut self, now: Instant) {
        self.session.wake_closing(now);
        while self.session.is_open()
            && let Some((at, owner)) = self.scheduler.next_due(now)
        {
            match owner {
                TimerOwner::Whole => {
                    if self.scheduler.claim_whole(at) {
                        self.wake_whole(now);
                    }
                }
                TimerOwner::Send(id) => {
                    if self.paths.quietly(id).is_some_and(|path| timers::claim(&mut path.armed, at)) {
                        self.wake_path(now, id);
                    }
                }
                TimerOwner::Receive(id) => {
                    if let Some(receiving) = self.peer_paths.get_mut(id)
                        && timers::claim(&mut receiving.armed, at)
                    {
                        receiving.facts.wake(now);
                        self.acks.queue(now, receiving, &mut self.scheduler);
                    }
                }
            }
            self.settle(now);
        }
    }

    /// Runs the connection's own timer.
    fn wake_whole(&mut self, now: Instant) {
        let silence = self.session.silence(now);
        match silence {
            SilenceAction::Heard | SilenceAction::Ask => {}
            SilenceAction::NeverConfirmed => return self.session.end(),
            SilenceAction::Unanswered => return self.end(close::IDLE_CODE, close::UNANSWERED_REASON, false),
            SilenceAction::Lost => return self.end(close::IDLE_CODE, close::SILENT_REASON, false),
        }
        if self.scheduler.ticks(now) {
            self.scheduler.set_tick(self.controller.tick(now));
            self.paths.judge_all();
            self.scheduler.consult();
            self.settle(now);
        }
        self.acks.snacks().wake(now, &self.peer_paths, self.contents.incoming());
        if silence == SilenceAction::Ask {
            self.pending_events.want(RelayEvent::Silence);
            self.paths.edit_each(|path| {
                path.pending.ping = true;
                true
            });
        }
        self.try_candidate(now);
        self.scheduler.wake_limits(now);
        self.scheduler.reconsider();
    }

    /// Ends a connection whose peer answers, while no data arrive there. If the peer was silent for
    /// half of the idle timeout, that timeout ends the connection instead.
    fn end_standstill(&mut self, now: Instant) {
        let timeout = self.config.idle_timeout;
        if self.contents.standstill().is_longer_than(now, timeout)
            && self.session.is_heard_within(now, timeout / 2)
        {
            self.close_at(now, close::STANDSTILL_CODE, close::STANDSTILL_REASON);
        }
    }

    /// When the connection as a whole is due.
    fn own_deadline(&mut self, now: Instant) -> Option<Instant> {
        let Self { session, acks, peer_paths, contents, candidates, scheduler, .. } = self;
        let snack = acks.snacks().deadline(now, peer_paths, contents.incoming());
        let others = [snack, candidates.due_at(), scheduler.own_deadline()];
        others.into_iter().flatten().chain([session.deadline()]).min()
    }

    /// Starts the timers of a new session.
    pub(crate) fn begin(&mut self, now: Instant) {
        self.scheduler.reconsider();
        self.settle(now);
    }
}
