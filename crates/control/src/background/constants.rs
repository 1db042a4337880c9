//! All constants of the control law of the class `background`. `docs/background.md` tells how much
//! each part of the law contributes.
//!
//! A path's *level* is its sending rate without a queue, in bytes per second.

use byway_wire::Duration;

// Growth.

/// Growth of the level (a path's sending rate), in sqrt(bytes/s) per second: a level of `L` bytes/s
/// grows by `LEVEL_GROWTH * sqrt(L)` bytes/s each second. Faster growth delays other flows'
/// requests more. With slower growth, flows take longer to reach equal rates.
pub(super) const LEVEL_GROWTH: f64 = 44.7;
/// After a time `t` without a queue, the level (a path's sending rate) grows `1 + (t /
/// GROWTH_DOUBLING_TIME)^2` times as fast as by `LEVEL_GROWTH` alone: twice as fast after 850 ms.
pub(super) const GROWTH_DOUBLING_TIME: Duration = Duration::from_millis(850);
/// The greatest growth of the level (a path's sending rate) per RTT: 25 %. News of a queue reaches
/// the sender one RTT late, so faster growth would build a longer queue.
pub(super) const MAX_GROWTH_PER_RTT: f64 = 0.25;

// What counts as a queue.

/// The shortest queueing delay that counts as a queue. Batches of packets and ACKs (GSO) delay
/// packets by up to 1 ms, even on an idle line. In calculations, an RTT below this value counts as
/// this value.
pub(super) const MIN_QUEUE_DELAY: Duration = Duration::from_millis(1);
/// The shortest wait that counts as a queue, in packet times. Packets of two flows that collide
/// wait one packet time without a queue.
pub(super) const MIN_QUEUE_PACKETS: f64 = 1.5;
/// The greatest value that jitter may have. Requests on thin lines make queues of 10 ms and more,
/// which must not count as jitter.
pub(super) const MAX_JITTER: Duration = Duration::from_millis(8);
/// The greatest value that jitter may have where packets that close up prove it. Delays on Wi-Fi
/// and in radio cells jump by 5 to 30 ms.
pub(super) const MAX_PROVEN_JITTER: Duration = Duration::from_millis(30);
/// Packets arrive together if they arrive at less than an eighth of the distance at which they were
/// sent. A flow that sends a fourth of what the line carries keeps a fourth of it at least, if a
/// queue drains.
pub(super) const CLOSING_FACTOR: i64 = 8;
/// Only packets that were sent within this many packet times of each other can prove jitter: their
/// flow sends a fourth of what the line carries.
pub(super) const MAX_TELLING_GAP_PACKETS: u32 = 4;
/// The part of the sending time from which on jitter is proven, if its packets arrive together.
pub(super) const MIN_CLOSING_SHARE: f64 = 0.1;
/// In this time packets that arrive together change their share by a factor e. Flows of one line
/// must learn of jitter at nearly the same time, or the first takes the line.
pub(super) const CLOSING_LEARN_TIME: Duration = Duration::from_millis(30);
/// In this time packets that do not arrive together change that share by a factor e.
pub(super) const CLOSING_FORGET_TIME: Duration = Duration::from_millis(4500);
/// Proven jitter is the usual wait and this many mean distances. With fewer, jitter passes for a
/// queue. With more, a CUBIC's queue passes for jitter.
pub(super) const JITTER_SPREADS: f64 = 4.0;
/// Proven jitter is at least this many times the greatest fall of the delay in two seconds.
pub(super) const FALL_MARGIN: f64 = 1.3;
/// Measurements over which a rise of proven jitter beyond `MAX_JITTER` is smoothed: one second at
/// one per 40 ms.
pub(super) const PROVEN_RISE_MEASUREMENTS: f64 = 24.0;
/// This number has two uses:
/// - growth of the queue is sought in the 32 latest packets (10 ms at 40 Mbit/s);
/// - a rise of the measured jitter is smoothed over twice as many measurements (2.6 s at one per 40
///   ms).
pub(super) const DELAY_WINDOW_PACKETS: usize = 32;

// Whose queue it is.

/// Growth of the queue within `MAX_BURST_TIME`, in packets, that shows a burst of another flow. A
/// request begins with ten packets (RFC 6928).
pub(super) const BURST_PACKETS: f64 = 3.0;
/// The greatest duration of a burst. If the queue grows by three packets (`BURST_PACKETS`) within
/// this time, another flow has sent a burst. A burst is a flow's first window, sent within one RTT:
/// about 10 ms for a near server.
pub(super) const MAX_BURST_TIME: Duration = Duration::from_millis(10);
/// Number of packets in a row that must wait before the path concludes that it has built a queue
/// itself. The end of another flow's burst delays up to three packets in a row.
pub(super) const OWN_QUEUE_PACKETS: u32 = 4;
/// 75 %, the part that counts as nearly all:
///
/// | 75 % of | from this value on |
/// |---|---|
/// | the full packet size | a packet counts as full |
/// | the shortest wait that counts as a queue | growth of a queue can be a burst |
/// | the level at the last queue that the path built | the level grows below its maximum |
pub(super) const FULL_SHARE: f64 = 0.75;

// What is answered.

/// After congestion losses, or after it built a queue itself, a path lowers its level (sending
/// rate) by this factor. The other 10 % become headroom for other flows. In slow start, congestion
/// losses halve the level.
pub(super) const DECREASE_FACTOR: f64 = 0.9;
/// If packets wait `w` seconds in a queue, the path sends at `1 - DRAIN_GAIN * w / RTT` times its
/// level (rate without a queue). With a level equal to the line's rate, the queue then shrinks by
/// `2 w` per RTT. So it is empty after half an RTT.
pub(super) const DRAIN_GAIN: f64 = 2.0;
/// The least sending rate of a path during a queue, as a fraction of its rate without a queue. A
/// path that sends nothing gets no ACKs, so it would not learn that the queue is empty.
pub(super) const MIN_RATE_SHARE: f64 = 0.3;
/// Number of RTTs after which a queue counts as standing, so that the path lowers its level (its
/// sending rate). The sender sees the effect of slower sending after one RTT. A queue from another
/// flow's slow start drains within two more RTTs.
pub(super) const STANDING_QUEUE_RTTS: f64 = 3.0;
/// The least time after which a queue counts as standing: a request of 20 KB occupies a line of 2
/// Mbit/s for nearly as long, 80 ms.
pub(super) const MIN_STANDING_QUEUE_TIME: Duration = Duration::from_millis(100);
/// The time in which a standing queue lowers the level (the path's sending rate) by a factor e.
/// Beside a TCP, a hundredth of the level is left after 5 s.
pub(super) const STANDING_QUEUE_DECAY_TIME: Duration = Duration::from_millis(1000);
/// The ratio of sending rate to delivery rate above which every queue lowers the path's sending
/// rate. Below it, only a lasting queue does. If the sending rate is correct, short requests of
/// other flows raise the ratio to 1.7 at most.
pub(super) const RATE_RATIO_THRESHOLD: f64 = 2.0;

// Window, start, losses.

/// The limit of the bytes in flight, over pace times least RTT. It covers the RTT, the wait for an
/// ACK, and some jitter.
pub(super) const IN_FLIGHT_FACTOR: f64 = 1.4;
/// Interval between ACKs, in RTTs.
pub(super) const ACK_INTERVAL_RTTS: f64 = 0.25;
/// The least rate in packets per second: a path at it costs 1.2 % of 1 Mbit/s.
pub(super) const MIN_RATE_PACKETS: f64 = 1.0;
/// The rate of the start in packets per second: 2.4 Mbit/s, the ten packets of RFC 6928 in 50 ms.
pub(super) const INITIAL_RATE_PACKETS: f64 = 200.0;
/// The packets per RTT with which a relay's start begins at most (RFC 6928). A bundle opens eight
/// relays at once, whose lines may be narrow, and hears nothing of them for an RTT.
pub(super) const INITIAL_RELAY_PACKETS: f64 = 10.0;
/// The factor by which the start sends faster than its level, so that the delivered rate can reach
/// the level.
pub(super) const START_GAIN: f64 = 1.2;
/// The share of lost packets above which losses count as congestion. It is 2 %, twice what radio
/// links lose by chance.
pub(super) const CONGESTION_LOSS_SHARE: f64 = 0.02;
/// Packets over which the share of lost packets is taken: ten losses at `CONGESTION_LOSS_SHARE`.
pub(super) const LOSS_MEMORY_PACKETS: f64 = 500.0;
/// Losses come of a full queue if the packets around them wait longer than others by this many
/// spreads.
pub(super) const LOSS_DEPTH_SPREADS: f64 = 2.0;
/// The part of such a queue's depth that already counts as a queue.
pub(super) const LOSS_DEPTH_SHARE: f64 = 0.5;
/// The part of a queue's depth that must vanish at once, if it was none.
pub(super) const VANISHED_SHARE: f64 = 0.5;
