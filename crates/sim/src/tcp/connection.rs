//! One TCP connection: its handshake, its two directions and its timers.

use super::bundle::Bundle;
use super::flow_spec::{SubflowReport, SubflowState};
use super::options::{Recovery, TcpConfig};
use super::receive::{ReadPattern, Receive};
use super::rtt::Rtt;
use super::scoreboard::Scoreboard;
use super::segment::{Segment, SynFields, stamp};
use byway_wire::{Instant, Local, PathId};
use core::net::SocketAddr;

/// The index that means "no bundle" or "no entry".
pub(super) const NO_ENTRY: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TcpState {
    /// This side sent a SYN.
    SynSent,
    /// The peer sent a SYN, and was answered.
    SynReceived,
    Open,
    /// Both sides have ended. Repeated segments are still answered for some time.
    Lingering,
    /// Over: the slot is free.
    Closed,
}

#[derive(Debug)]
pub(super) struct Connection {
    pub port: u32,
    pub peer_port: u32,
    pub local: Local,
    pub remote: SocketAddr,
    pub state: TcpState,
    /// The index of the bundle that governs the sending direction.
    pub bundle: u32,
    pub path: PathId,
    /// The place among the candidates of the bundle.
    pub place: usize,
    /// The index of the entry in which the host counts received data.
    pub inbound: u32,
    /// The fields of this side's SYN, or of the peer's.
    pub opening: SynFields,
    pub opened: Instant,
    pub mss: u64,
    /// Whether the connection behaves like Linux ([`Recovery::Rack`]).
    pub linux: bool,
    pub scoreboard: Scoreboard,
    pub rtt: Rtt,
    pub peer_shift: u8,
    /// The peer takes nothing from here on.
    pub peer_edge: u64,
    pub receive: Receive,
    /// Bytes that the application has taken.
    pub received: u64,
    /// Segments that may leave before the first ACK.
    pub initial: u64,
    /// A SYN or SYN-ACK is to be sent.
    pub syn_due: bool,
    /// When the latest left, and how many have.
    pub syn_sent: Option<Instant>,
    pub syns: u32,
    /// Whether no new data are sent, and the end follows as soon as possible.
    pub closing: bool,
    pub fin_sent: bool,
    pub fin_acked: bool,
    /// Whether the end of the peer's data was handled.
    pub ended: bool,
    /// Whether unacknowledged data went to another path, and the peer has not confirmed that it
    /// knows.
    pub skip: bool,
    pub skip_due: bool,
    /// Whether a segment found lost is sent again whatever the window (RFC 6675, section 5, 4.3).
    pub must_resend: bool,
    /// Whether there are data, but the peer's window is closed.
    pub persist: bool,
    pub choked: bool,
    pub probe_due: bool,
    /// When the probe was sent that was not answered.
    pub probe_sent: Option<Instant>,
    pub retransmission_at: Instant,
    /// When silence is answered by a probe of the tail, and whether one is due.
    pub tail_at: Instant,
    pub tail_due: bool,
    /// When to check again for losses.
    pub judge_at: Instant,
    /// Whether the controller's last allowance had neither a window nor a rate.
    pub windowless: bool,
    /// When a paced sender may send next.
    pub next_send: Instant,
    pub pace_at: Instant,
    pub probe_at: Instant,
    pub linger_at: Instant,
    /// The connection's earliest timer that is in the queue.
    pub scheduled: Instant,
    /// Whether the connection is in the queue of connections that may have data to send.
    pub queued: bool,
    pub counters: ConnectionCounters,
}

/// The totals of a connection's sending direction.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ConnectionCounters {
    pub acked: u64,
    pub segments: u64,
    pub losses: u64,
    pub timeouts: u64,
    pub retransmits: u64,
}

impl Connection {
    pub(super) fn new(
        now: Instant,
        port: u32,
        (local, remote): (Local, SocketAddr),
        options: &TcpConfig,
        reading: ReadPattern,
    ) -> Self {
        let far = Instant::FAR_FUTURE;
        Self {
            port,
            peer_port: 0,
            local,
            remote,
            state: TcpState::SynSent,
            bundle: NO_ENTRY,
            path: PathId(0),
            place: 0,
            inbound: NO_ENTRY,
            opening: SynFields::default(),
            opened: now,
            mss: u64::from(options.mss.max(1)),
            linux: options.recovery == Recovery::Rack,
            scoreboard: Scoreboard::new(now, options),
            rtt: Rtt::new(options),
            peer_shift: 0,
            peer_edge: 0,
            receive: Receive::new(options, reading),
            received: 0,
            initial: options.initial_window.map_or(u64::MAX, |segments| u64::from(segments.max(1))),
            syn_due: true,
            syn_sent: None,
            syns: 0,
            closing: false,
            fin_sent: false,
            fin_acked: false,
            ended: false,
            skip: false,
            skip_due: false,
            must_resend: false,
            persist: false,
            choked: false,
            probe_due: false,
            probe_sent: None,
            retransmission_at: far,
            tail_at: far,
            tail_due: false,
            judge_at: far,
            windowless: false,
            next_send: now,
            pace_at: far,
            probe_at: far,
            linger_at: far,
            scheduled: far,
            queued: false,
            counters: ConnectionCounters::default(),
        }
    }

    /// When the connection's first timer is due.
    #[inline]
    pub(super) fn deadline(&self) -> Instant {
        self.retransmission_at
            .min(self.tail_at)
            .min(self.judge_at)
            .min(self.receive.ack_at)
            .min(self.pace_at)
            .min(self.probe_at)
            .min(self.linger_at)
            .min(self.receive.reads_at())
    }

    /// No ACK is waited for.
    pub(super) fn expect_nothing(&mut self) {
        let far = Instant::FAR_FUTURE;
        (self.retransmission_at, self.tail_at, self.judge_at) = (far, far, far);
    }

    /// A segment to the peer without data and options.
    pub(super) fn blank(&self, now: Instant, flags: u8) -> Segment {
        Segment {
            flags,
            to: self.peer_port,
            seq: self.scoreboard.next as u32,
            stamp: stamp(now),
            ..Segment::default()
        }
    }

    /// The peer's first ACK came: for Linux a round trip, unless the SYN-ACK was sent more than
    /// once.
    pub(super) fn on_handshake(&mut self, now: Instant) {
        if let (true, Some(sent_at)) = (self.linux, self.syn_sent.filter(|_| self.syns == 1)) {
            self.rtt.sample(now.since(sent_at));
        }
    }

    /// Whether the handshake is over, and the connection is open.
    pub(super) fn is_established(&self) -> bool {
        self.state == TcpState::Open
    }

    /// Whether both directions have ended.
    pub(super) fn is_over(&self) -> bool {
        self.fin_acked && self.receive.is_complete()
    }

    pub(super) fn report(&self, bundle: &Bundle) -> SubflowReport {
        let state = match self.state {
            TcpState::SynSent | TcpState::SynReceived => SubflowState::Opening,
            TcpState::Open if self.choked => SubflowState::Choked,
            TcpState::Open => SubflowState::Active,
            TcpState::Lingering | TcpState::Closed => SubflowState::Closed,
        };
        SubflowReport {
            place: self.place,
            state,
            acked: self.counters.acked,
            window: bundle.controller.allowance(self.path).window,
            in_flight: self.scoreboard.in_flight(),
            srtt: self.rtt.smoothed,
            min_rtt: self.rtt.min,
            segments: self.counters.segments,
            losses: self.counters.losses,
            timeouts: self.counters.timeouts,
            retransmits: self.counters.retransmits,
            opened: self.opened,
            closed: None,
        }
    }
}
