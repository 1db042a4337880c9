//! All constants of the law in one table: value, unit, meaning and reason.
//!
//! Times and packet counts follow from the line where they can. Thresholds follow from jitter and
//! from the time that the line takes to send one packet. Waits follow from the RTT. Each constant
//! in milliseconds has its reason here. `docs/background.md` tells what each part of the law is
//! worth.

use byway_wire::Duration;

// Growth.

/// Growth of the level, in sqrt(bytes/s) per second. A level of `L` bytes/s grows by
/// `GROW * sqrt(L)` bytes/s in each second, 4 % at 10 Mbit/s. A flow alone on such a line then has
/// 1.5 s from one decrease to the next. Twice the growth harms requests more; half of it makes
/// flows fair later.
pub(super) const GROW: f64 = 44.7;
/// Time without a queue after which growth is twice as fast. The increase goes by the square of the
/// time without a queue. So a path uses a line that others have left again after 3 s.
pub(super) const HASTE: Duration = Duration::from_millis(850);
/// The greatest growth per RTT, as a part of the level. An RTT passes before the path hears of a
/// queue. The queue that this growth makes meanwhile stays near the threshold.
pub(super) const RETURN: f64 = 0.25;

// What counts as a queue.

/// The shortest wait that counts as a queue, and the shortest RTT that the law computes with. ACKs
/// and packets that are sent in batches (GSO) cause waits below 1 ms without a queue. A true queue
/// may be short too: 20 packets at 100 Mbit/s are only 2.4 ms.
pub(super) const THRESHOLD: Duration = Duration::from_millis(1);
/// The shortest wait that counts as a queue, in packet times. Packets of two flows that collide
/// wait one packet time without a queue.
pub(super) const PACKETS: f64 = 1.5;
/// The greatest value that jitter may have. Requests on thin lines make queues of 10 ms and more,
/// which must not count as jitter.
pub(super) const JITTER: Duration = Duration::from_millis(8);
/// Number of latest packets that are compared to see whether the queue grew. One flow sends as many
/// in `LOOK` at 40 Mbit/s. The estimate of the usual wait rises by a factor e in `2 * RING`
/// measurements, about 2.6 s. That is longer than a TCP's queue lasts between two of the TCP's
/// decreases.
pub(super) const RING: usize = 32;

// Whose queue it is.

/// Growth of the queue within `LOOK`, in packets, that shows a burst of another flow. A request
/// begins with ten packets (RFC 6928).
pub(super) const JUMP: f64 = 3.0;
/// The time in which the growth of a queue counts as a burst. It is the RTT of a near server, and
/// the first packets of a request arrive within one RTT.
pub(super) const LOOK: Duration = Duration::from_millis(10);
/// Number of packets in a row that must wait before the queue is taken for the path's own. The tail
/// of a request delays up to three packets in a row. Half of this number is enough for a burst.
pub(super) const OWN: u32 = 4;
/// The part of a measure that counts as nearly all of it. It compares the bytes of a packet with
/// those of a full packet, the growth of a queue with the threshold, and a level with the last
/// known one.
pub(super) const NEARLY: f64 = 0.75;

// What is answered.

/// The part of the level that is kept after a queue of the path's own or a loss. What the decrease
/// frees is the headroom for others. The level exceeds the line by a tenth at most. So a queue of
/// the path's own grows by at most `1 - BETA` seconds per second.
pub(super) const BETA: f64 = 0.9;
/// How strongly a queue lowers the pace. If packets wait `w`, the pace falls by
/// `EMPTYING * w / RTT` of the level. So the queue is empty after half an RTT.
pub(super) const EMPTYING: f64 = 2.0;
/// The least part of the level that remains as pace during a queue. A path that sends nothing would
/// not hear that the queue is empty.
pub(super) const KEEP: f64 = 0.3;
/// Number of RTTs after which a queue counts as standing. The answer to it takes one RTT, and a
/// burst of slow start drains within two more.
pub(super) const GRACE: f64 = 3.0;
/// The least time after which a queue counts as standing. A request of 20 KB occupies a line of 2
/// Mbit/s for about as long. It also limits the time before its sending for which one packet's
/// delay counts; that limit is the least RTT, if the RTT is longer.
pub(super) const PATIENCE: Duration = Duration::from_millis(100);
/// The time in which a standing queue lowers the level by a factor e. Beside a TCP a hundredth of
/// the level is left after 5 s. The rate of delivery is averaged over this time too, or over four
/// RTTs if they are longer.
pub(super) const SLOW: Duration = Duration::from_millis(1000);
/// A level of more than this many times the delivered rate counts as wrong, and falls during any
/// queue. Requests take up to 0.4 of a thin line, so beside them a right level is up to 1.7 times
/// the delivered rate.
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
