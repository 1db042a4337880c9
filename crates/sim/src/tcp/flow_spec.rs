//! The flows that a host is to send, and its reports of them.

use super::options::TcpConfig;
use byway_control::newreno::{NewReno, NewRenoOptions as Reno};
use byway_control::{Controller, Opened, UncoupledPaths};
use byway_wire::{Duration, Instant, Local};
use core::net::SocketAddr;

/// A flow of a host, numbered in the order of opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowId(pub u32);

/// The name of a flow at the receiving host, unique in a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowTag(pub u64);

/// One path of a flow. The world chooses its links from the local address and the remote one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subflow {
    /// The socket to send by.
    pub local: Local,
    /// The address on which the receiving host listens.
    pub remote: SocketAddr,
    /// Whether the controller is told that the path goes through a relay.
    pub proxied: bool,
}

impl Subflow {
    /// A direct path from the first socket.
    #[must_use]
    pub const fn direct(remote: SocketAddr) -> Self {
        Self { local: Local(0), remote, proxied: false }
    }

    /// A path over a relay.
    #[must_use]
    pub const fn proxied(local: Local, remote: SocketAddr) -> Self {
        Self { local, remote, proxied: true }
    }
}

/// The data that an application sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Demand {
    /// Endless data, sent as fast as possible.
    Bulk,
    /// A number of bytes, then the end.
    Size(u64),
    /// A changing rate, 0 at first. From time `t` of an entry `(t, r)` on, the application writes
    /// `r` bits of payload per second (`None`: as much as possible). Unless `no_delay` is set,
    /// segments are sent when full.
    Rate(Vec<(Instant, Option<u64>)>),
}

impl Demand {
    /// An even rate in bits of payload per second.
    #[must_use]
    pub fn paced(bits_per_second: u64) -> Self {
        Self::Rate(vec![(Instant::ZERO, Some(bits_per_second))])
    }
}

/// A flow to be opened: one application, one controller, one or more paths.
#[derive(Debug)]
pub struct Flow {
    /// The paths. The first [`opened`](Self::opened) are opened at the start, further ones in order
    /// when the controller wants them.
    pub subflows: Vec<Subflow>,
    /// Number of paths that are opened at the start.
    pub opened: usize,
    /// The congestion controller of all paths.
    pub controller: Box<dyn Controller>,
    /// The data that the application sends.
    pub demand: Demand,
    /// When the connections are opened.
    pub start: Instant,
    /// The time at which the application stops writing. The data written before are still
    /// delivered.
    pub stop: Option<Instant>,
    /// A limit on the unacknowledged bytes of each path, like a receive window that changes with
    /// time. An entry `(t, n)` means: at most `n` bytes from time `t` on. Entries are in order of
    /// time.
    pub window_steps: Vec<(Instant, u64)>,
    /// The options of this end.
    pub options: TcpConfig,
}

impl Flow {
    /// Makes a bulk flow over these paths, from the beginning of the world.
    #[must_use]
    pub fn new(subflows: Vec<Subflow>, controller: Box<dyn Controller>) -> Self {
        Self {
            opened: subflows.len(),
            subflows,
            controller,
            demand: Demand::Bulk,
            start: Instant::ZERO,
            stop: None,
            window_steps: Vec::new(),
            options: TcpConfig::default(),
        }
    }

    /// One path, governed by NewReno: an ordinary TCP connection.
    #[must_use]
    pub fn tcp(remote: SocketAddr) -> Self {
        Self::new(vec![Subflow::direct(remote)], newreno())
    }

    /// Sets how much the flow has to send.
    #[must_use]
    pub fn demand(mut self, demand: Demand) -> Self {
        self.demand = demand;
        self
    }

    /// Sets the time at which the flow begins.
    #[must_use]
    pub fn start(mut self, start: Instant) -> Self {
        self.start = start;
        self
    }

    /// Sets the options of the flow's TCP.
    #[must_use]
    pub fn options(mut self, options: TcpConfig) -> Self {
        self.options = options;
        self
    }
}

/// NewReno as in TCP on each path, without coupling.
#[must_use]
pub fn newreno() -> Box<dyn Controller> {
    Box::new(UncoupledPaths::new("newreno", |opened: &Opened| NewReno::with_options(opened, Reno::TCP)))
}

/// The state of a flow, from its sender's view.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct FlowReport {
    /// Bytes that the receiver has acknowledged. Each counts once, whatever path it took.
    pub delivered: u64,
    /// Bytes that the application has written: acknowledged, in flight or waiting. Unlimited ones
    /// count as they leave.
    pub written: u64,
    /// When the flow's first SYN was sent. `None`: not yet.
    pub started: Option<Instant>,
    /// When the last byte was acknowledged. `None`: not yet, or the flow has no end.
    pub finished: Option<Instant>,
    /// Every path ever opened, in order of opening.
    pub subflows: Vec<SubflowReport>,
}

/// The state of a path, from its sender's view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubflowReport {
    /// The place of the subflow in [`Flow::subflows`].
    pub place: usize,
    /// The state of the subflow.
    pub state: SubflowState,
    /// Bytes acknowledged.
    pub acked: u64,
    /// Congestion window in bytes.
    pub window: u64,
    /// Bytes in flight.
    pub in_flight: u64,
    /// Smoothed round-trip time; zero before the first sample.
    pub srtt: Duration,
    /// Smallest round-trip time; zero before the first sample.
    pub min_rtt: Duration,
    /// Segments with data that were sent, retransmissions included.
    pub segments: u64,
    /// Number of segments that were found lost.
    pub losses: u64,
    /// The number of retransmission timeouts.
    pub timeouts: u64,
    /// Number of segments that were sent again.
    pub retransmits: u64,
    /// When the subflow was opened.
    pub opened: Instant,
    /// The time at which the subflow was closed or dropped. `None`: it is open.
    pub closed: Option<Instant>,
}

/// The state of a path of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubflowState {
    /// The handshake is under way.
    Opening,
    /// The subflow carries data.
    Active,
    /// The controller allows probes only.
    Choked,
    /// The subflow has ended, was dropped, or never came to be.
    Closed,
}

/// The state of a flow, from its receiver's view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ReceiverReport {
    /// Bytes that arrived in order on their path and were read by the application.
    pub bytes: u64,
    /// When the first byte came.
    pub first: Option<Instant>,
    /// When the last byte so far was received in order. `None`: none was.
    pub last: Option<Instant>,
    /// When the sender's end (FIN) was reached on every path.
    pub finished: Option<Instant>,
}
