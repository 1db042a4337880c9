//! The contract between a path, a controller, and the pacer and scheduler. The path reports events,
//! the controller decides, and the pacer and scheduler act on its decisions.

use byway_wire::{Duration, Instant, PathId};
use core::fmt::Debug;

/// A congestion controller: governs all paths of one connection.
pub trait Controller: Debug + Send {
    /// The name with which `--congestion` selects the controller.
    fn name(&self) -> &'static str;

    /// Whether the controller yields to other traffic as soon as packets queue, instead of taking a
    /// fair share like TCP.
    fn yields(&self) -> bool {
        false
    }

    /// The rate that a yielding controller believes its own on all paths together, in bytes per
    /// second. It falls at once when the controller sees a queue of its own. `None`: the controller
    /// has no such rate.
    fn own_rate(&self) -> Option<u64> {
        None
    }

    /// Whether the controller also governs paths over TCP, on top of the kernel's congestion
    /// control. By default only a yielding controller does, because the kernel already takes a fair
    /// share of the line.
    fn governs_connections(&self) -> bool {
        self.yields()
    }

    /// Whether the session asks for more relays once it has probed all that it knows (mPath,
    /// section 2.1). By default it asks once it wishes for a path and no known relay can become
    /// one.
    fn asks_once_probed(&self) -> bool {
        false
    }

    /// A path may now carry data.
    fn open(&mut self, path: PathId, opened: &Opened);

    /// The path will carry nothing more.
    fn close(&mut self, path: PathId);

    /// A packet that counts as in flight was sent.
    fn on_sent(&mut self, path: PathId, sent: &Sent);

    /// Packets were acknowledged: once per path and ACK.
    fn on_acked(&mut self, path: PathId, acked: &Acked<'_>);

    /// The network signalled congestion. One ACK makes at most one call per path and `Trigger`. But
    /// several ACKs, or several triggers, may report one congestion event. The send times in
    /// `congested` tell the controller whether it has already reacted.
    fn on_congested(&mut self, path: PathId, congested: &Congested);

    /// A loss reported before was spurious: the packet was only late.
    fn on_undo(&mut self, path: PathId, undo: &Undo);

    /// An empty time-stamped probe of a choked path came back, or did not.
    fn on_probe(&mut self, path: PathId, probe: &ProbeResult);

    /// Handles a change of the path's route, because the address was rebound or the uplink changed.
    /// Knowledge about the old route is void.
    fn on_route_change(&mut self, path: PathId, now: Instant);

    /// Path MTU discovery found another packet size: from now on a full packet of the path has
    /// `bytes` bytes of UDP payload. What the controller counts in packets stays the same in bytes,
    /// and the next packet by which it grows is one of the new size.
    fn on_packet_size(&mut self, path: PathId, bytes: u32);

    /// Runs the work due at `now`, for controllers with a timer of their own. Returns the time of
    /// the next call.
    fn tick(&mut self, now: Instant) -> Option<Instant> {
        let _ = now;
        None
    }

    /// Returns the amount that the path may send now.
    fn allowance(&self, path: PathId) -> Allowance;

    /// The changes that the controller wants in the set of paths. The session asks after each batch
    /// of events. A request is repeated until it is met.
    fn wants(&self) -> PathDemand<'_>;
}

/// The facts about a path when it opens.
#[derive(Clone, Copy, Debug)]
pub struct Opened {
    /// When the path was opened.
    pub now: Instant,
    /// Whether the path goes through a relay. mPath treats the direct path differently.
    pub proxied: bool,
    /// Bytes of a full packet (UDP payload): the unit that papers call a packet.
    pub packet_size: u32,
    /// RTT from the handshake or from probing.
    pub rtt: Option<Duration>,
}

/// A packet was sent.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// When the packet was sent.
    pub now: Instant,
    /// Bytes of the packet (UDP payload).
    pub bytes: u32,
    /// Bytes in flight on the path, this packet included.
    pub in_flight: u64,
    /// Whether the application, and not the window, limits the amount sent.
    pub app_limited: bool,
}

/// Packets of a path were acknowledged.
#[derive(Clone, Copy, Debug)]
pub struct Acked<'a> {
    /// When the ACK arrived.
    pub now: Instant,
    /// Bytes newly acknowledged.
    pub bytes: u64,
    /// Packets newly acknowledged.
    pub packets: u32,
    /// The sending time of the latest of these packets.
    pub sent_at: Instant,
    /// The RTT of the latest of these packets. `None`: there is no valid sample.
    pub rtt: Option<Duration>,
    /// Smoothed RTT of the path.
    pub srtt: Duration,
    /// Smallest RTT of the path.
    pub min_rtt: Duration,
    /// One-way delays of the acknowledged packets, in the order of sending. May be empty.
    pub delays: &'a [Delay],
    /// Bytes in flight after this ACK.
    pub in_flight: u64,
    /// Whether the latest of these packets was sent while the application, not the window, limited
    /// sending.
    pub app_limited: bool,
    /// Delivery rate over the last RTT, bytes per second, if known.
    pub delivery_rate: Option<u64>,
    /// Number of these packets that arrived with a CE mark.
    pub ce: u32,
}

/// A one-way delay sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay {
    /// When the packet was sent.
    pub sent_at: Instant,
    /// Receiver's clock minus sender's clock in nanoseconds, without skew. It contains an unknown
    /// constant and may be negative, so only differences have a meaning.
    pub one_way: i64,
    /// Bytes of the packet, as [`Acked::bytes`] counts them. A short packet arrives sooner on the
    /// same line.
    pub bytes: u32,
}

/// The kind of a congestion signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// Packets of the path were lost.
    Loss,
    /// A packet was marked Congestion Experienced (RFC 3168).
    Ce,
    /// Nothing was acknowledged for a whole retransmission timeout.
    Timeout,
}

/// A congestion signal: losses or ECN marks.
#[derive(Clone, Copy, Debug)]
pub struct Congested {
    /// The event that showed the congestion.
    pub trigger: Trigger,
    /// When the earliest packet concerned was sent: start of mPath's loss interval.
    pub first_sent_at: Instant,
    /// When the latest packet concerned was sent.
    pub sent_at: Instant,
    /// When the congestion was detected: the end of the loss interval.
    pub now: Instant,
    /// Bytes lost (or marked).
    pub bytes: u64,
    /// Bytes in flight before the loss was taken off. If an ACK showed the loss: before that ACK.
    pub in_flight: u64,
}

/// A loss that was none.
#[derive(Clone, Copy, Debug)]
pub struct Undo {
    /// When the mistake was detected.
    pub now: Instant,
    /// When the packet that was falsely taken for lost was sent.
    pub sent_at: Instant,
}

/// The result of a probe on a choked path.
#[derive(Clone, Copy, Debug)]
pub struct ProbeResult {
    /// When the result was known.
    pub now: Instant,
    /// The one-way delay of the probe. `None`: the probe was not answered in time.
    pub delay: Option<Delay>,
    /// The RTT of the probe. `None`: the probe was not answered.
    pub rtt: Option<Duration>,
}

/// The amount that a path may send, as its controller decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Allowance {
    /// Congestion window in bytes: the most bytes that may be in flight. If the window is smaller
    /// than one packet, the path sends one packet at a time, at [`rate`](Self::rate).
    pub window: u64,
    /// Pacing rate in bytes per second. `None`: the path paces by window and RTT.
    pub rate: Option<u64>,
    /// Choked: no data, only empty time-stamped probes.
    pub choked: bool,
    /// Choked because another path leads through the same bottleneck and fills it alone.
    pub spare: bool,
    /// The one-way delay (on the scale of [`Delay::one_way`]) above which the controller wants to
    /// know at once. `None`: no such limit.
    pub delay_limit: Option<i64>,
}

/// The changes that a controller wants in the set of paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct PathDemand<'a> {
    /// Number of further available paths to open. `usize::MAX`: all.
    pub open: usize,
    /// Paths to drop for now. They may be opened again later, as new paths.
    pub drop: &'a [PathId],
    /// Paths to drop because they share the direct path's bottleneck, and so add no throughput.
    pub shares: &'a [PathId],
    /// Paths to drop for good.
    pub forget: &'a [PathId],
}
