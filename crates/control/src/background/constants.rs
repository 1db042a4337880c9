//! All constants of the control law of the class `background`, each with its unit, meaning and
//! reason. `docs/background.md` tells how much each part of the law contributes.
//!
//! A path's *level* is its sending rate without a queue, in bytes per second.

use byway_wire::Duration;

// Growth.

/// Growth of the level (a path's sending rate), in sqrt(bytes/s) per second: in each second, a
/// level of `L` bytes/s grows by `GROW * sqrt(L)` bytes/s: by 4 % at 10 Mbit/s. Twice the growth
/// would delay the requests of other flows more. With half of the growth, flows would take longer
/// to reach equal rates.
pub(super) const GROW: f64 = 44.7;
/// After this time without a queue, the level (a path's sending rate) grows twice as fast as by
/// `GROW` alone. After a time `t` without a queue, it grows `1 + (t / HASTE)^2` times as fast: 13
/// times after 3 s.
pub(super) const HASTE: Duration = Duration::from_millis(850);
/// The greatest growth of the level (a path's sending rate) per RTT: 25 %. News of a queue reaches
/// the sender one RTT late, so faster growth would build a longer queue.
pub(super) const RETURN: f64 = 0.25;

// What counts as a queue.

/// The shortest wait that counts as a queue, and the shortest RTT that the law computes with.
/// Sending packets and ACKs in batches (GSO) delays them by up to 1 ms, even on an idle line. A
/// larger value would hide true queues: 20 packets at 100 Mbit/s wait only 2.4 ms.
pub(super) const THRESHOLD: Duration = Duration::from_millis(1);
/// The shortest wait that counts as a queue, in packet times. Packets of two flows that collide
/// wait one packet time without a queue.
pub(super) const PACKETS: f64 = 1.5;
/// The greatest value that jitter may have. Requests on thin lines make queues of 10 ms and more,
/// which must not count as jitter.
pub(super) const JITTER: Duration = Duration::from_millis(8);
/// Number of latest packets among which the law looks for growth of the queue: as many as a flow of
/// 40 Mbit/s sends in 10 ms (`LOOK`).
///
/// The jitter is smoothed over `2 * RING` measurements, one per 40 ms: about 2.6 s. Most queues of
/// TCP flows fill and drain faster, so they do not count as jitter.
pub(super) const RING: usize = 32;

// Whose queue it is.

/// Growth of the queue within `LOOK`, in packets, that shows a burst of another flow. A request
/// begins with ten packets (RFC 6928).
pub(super) const JUMP: f64 = 3.0;
/// If the queue grows by `JUMP` packets within this time, another flow has sent a burst. The first
/// packets of a burst arrive within one RTT of their sender, about 10 ms for a near server.
pub(super) const LOOK: Duration = Duration::from_millis(10);
/// Number of packets in a row that must wait before the path concludes that it has built a queue
/// itself. Three would be too few, because the end of another flow's burst delays up to three
/// packets in a row. To detect a burst, half of this number must wait.
pub(super) const OWN: u32 = 4;
/// 75 %, the part that counts as nearly all in three places. A packet counts as full from this part
/// of the full size. A queue can be a burst if it grew by this part of the shortest wait that
/// counts as a queue. A level below this part of its value at the last queue that the path built
/// grows at the fastest pace (`RETURN`).
pub(super) const NEARLY: f64 = 0.75;

// What is answered.

/// The part of the level (a path's sending rate) that is kept after a loss, or after a queue that
/// the path built. The freed tenth is headroom for other flows.
///
/// The level exceeds the line's rate by a tenth at most, so the path's own queue grows by at most
/// 0.1 seconds (`1 - BETA`) per second. Faster growth counts as another flow's burst.
pub(super) const BETA: f64 = 0.9;
/// How strongly a queue slows a path down. If packets wait `w` seconds, the path sends at
/// `1 - EMPTYING * w / RTT` times its level. If the level equals the line's rate, the queue drains
/// within half an RTT.
pub(super) const EMPTYING: f64 = 2.0;
/// The least part of its level at which a path sends during a queue. A path that sends nothing gets
/// no ACKs, so it would not learn that the queue is empty.
pub(super) const KEEP: f64 = 0.3;
/// Number of RTTs after which a queue counts as standing, so that the level falls. The sender sees
/// the effect of its slower sending after one RTT. A burst of another flow's slow start drains
/// within two more RTTs.
pub(super) const GRACE: f64 = 3.0;
/// The least time after which a queue counts as standing. A request of 20 KB occupies a line of 2
/// Mbit/s for nearly as long, 80 ms.
///
/// Each packet's delay makes the level grow or decay for the time since the packet before. This
/// time counts up to `PATIENCE`, or up to the least RTT if the least RTT is longer.
pub(super) const PATIENCE: Duration = Duration::from_millis(100);
/// The time in which a standing queue lowers the level (the path's sending rate) by a factor e.
/// Beside a TCP, a hundredth of the level is left after 5 s. The delivery rate is averaged over
/// this time too, or over four RTTs if four RTTs are longer.
pub(super) const SLOW: Duration = Duration::from_millis(1000);
/// A level (a path's sending rate) of more than this many times the delivery rate falls during any
/// queue, even a short one. Requests of other flows take at most 0.4 of a thin line. So a path with
/// a correct level delivers at least 0.6 of the level: the level is at most 1.7 times the delivery
/// rate.
pub(super) const BELIEVE: f64 = 2.0;

// Window, start, losses.

/// The limit of the bytes in flight, over pace times least RTT. It covers the RTT, the wait for an
/// ACK, and some jitter.
pub(super) const CAP: f64 = 1.4;
/// ACKs come once in such a part of the RTT.
pub(super) const ACKS: f64 = 0.25;
/// The least rate in packets per second: a path at it costs 1.2 % of 1 Mbit/s.
pub(super) const FLOOR: f64 = 1.0;
/// The rate of the start in packets per second: 2.4 Mbit/s, the ten packets of RFC 6928 in 50 ms.
pub(super) const FIRST: f64 = 200.0;
/// The factor by which the start sends faster than its level, so that the delivered rate can reach
/// the level.
pub(super) const AHEAD: f64 = 1.2;
/// The share of lost packets above which losses count as congestion. It is 2 %, twice what radio
/// links lose by chance.
pub(super) const OFTEN: f64 = 0.02;
/// Packets over which that part is taken: ten losses at `OFTEN`.
pub(super) const MEMORY: f64 = 500.0;
