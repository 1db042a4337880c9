//! All constants of the law in one table: value, unit, meaning and reason.
//!
//! Times and packets follow from the line where they can: thresholds from the time of a packet and
//! from jitter, waits from the RTT. A constant in milliseconds stands here with its reason.
//! `docs/background.md` tells what each part is worth.

use byway_wire::Duration;

// Growth.

/// Growth in sqrt(bytes/s) per second. A level L grows by `GROW * sqrt(L)` bytes/s per second. At
/// 10 Mbit/s that is 4 % per second. From one decrease to the next a flow alone then takes 1.5 s;
/// twice the growth harms requests more, half is fair later.
pub(super) const GROW: f64 = 44.7;
/// Time without a queue after which growth is twice as fast; it goes by the square of that time. A
/// line that was freed is found in 3 s.
pub(super) const HASTE: Duration = Duration::from_millis(850);
/// The greatest growth per RTT, as a part of the level. What an RTT of delay lets pass unseen stays
/// near the threshold.
pub(super) const RETURN: f64 = 0.25;

// What counts as a queue.

/// The least wait that is a queue, and the least RTT that counts. Batches of ACKs and of GSO make
/// waits below it by themselves, and a queue of 20 packets at 100 Mbit/s is only 2.4 ms.
pub(super) const THRESHOLD: Duration = Duration::from_millis(1);
/// The least wait that is a queue, in packet times. Two flows that collide wait one packet for each
/// other, without a queue.
pub(super) const PACKETS: f64 = 1.5;
/// The greatest jitter that is believed. Requests on thin lines make queues of 10 ms and more,
/// which must not pass for it.
pub(super) const JITTER: Duration = Duration::from_millis(8);
/// The latest packets that are looked at for growth: what one sends in `LOOK` at 40 Mbit/s. What is
/// usual rises by a factor e in twice as many measurements, longer than a TCP's queue stands
/// between two of its decreases.
pub(super) const RING: usize = 32;

// Whose queue it is.

/// A burst of others makes the queue grow by so many packets at once. A request begins with ten
/// (RFC 6928).
pub(super) const JUMP: f64 = 3.0;
/// At once means within this time: the RTT of a near server, in which a request's first packets
/// arrive together.
pub(super) const LOOK: Duration = Duration::from_millis(10);
/// The number of packets in a row that must wait to be a queue of one's own. The tail of a request
/// is met by three. Half of it tells a burst.
pub(super) const OWN: u32 = 4;
/// The part of a measure that counts as nearly as much. It applies to a packet against a full one,
/// a jump against the threshold, and a level against the known one.
pub(super) const NEARLY: f64 = 0.75;

// What is answered.

/// What a queue of one's own, or a loss, leaves of the level. The sawtooth is the headroom for
/// others. An overload of one's own is at most the rest, so a queue of one's own grows by no more
/// than `1 - BETA` seconds per second.
pub(super) const BETA: f64 = 0.9;
/// A queue takes this many times the part of an RTT that it holds off the pace. It is empty within
/// half an RTT after that.
pub(super) const EMPTYING: f64 = 2.0;
/// The least part of the pace that a queue leaves: a pace of nothing does not hear that the queue
/// is empty.
pub(super) const KEEP: f64 = 0.3;
/// A queue stands after so many RTTs: the answer takes one, and a burst of slow start drains within
/// two more.
pub(super) const GRACE: f64 = 3.0;
/// A queue does not stand before this time: a request of 20 KB takes as long at 2 Mbit/s. A packet
/// speaks for no longer time.
pub(super) const PATIENCE: Duration = Duration::from_millis(100);
/// A queue that stands lowers the level by a factor e in this time: a hundredth is left beside a
/// TCP after 5 s. Delivery is averaged over the same time.
pub(super) const SLOW: Duration = Duration::from_millis(1000);
/// A level beyond so many times what was delivered is not believed. Requests take up to .4 of a
/// thin line, so 1.7 happens beside them.
pub(super) const BELIEVE: f64 = 2.0;

// Window, start, losses.

/// Bytes in flight over pace times least RTT: the round trip, the wait for an ACK, and a slack for
/// jitter.
pub(super) const CAP: f64 = 1.4;
/// ACKs come once in such a part of the RTT.
pub(super) const ACKS: f64 = 0.25;
/// The least rate in packets per second: a path at it costs 1.2 % of 1 Mbit/s.
pub(super) const FLOOR: f64 = 1.0;
/// The rate of the start in packets per second: 2.4 Mbit/s, the ten packets of RFC 6928 in 50 ms.
pub(super) const FIRST: f64 = 200.0;
/// The start sends faster than its level by this factor, so that the rate of delivery can follow
/// the level.
pub(super) const AHEAD: f64 = 1.2;
/// The part of lost packets beyond which losses are congestion and not chance: 2 %, twice what
/// radio links lose.
pub(super) const OFTEN: f64 = 0.02;
/// Packets over which that part is taken: ten losses at `OFTEN`.
pub(super) const MEMORY: f64 = 500.0;
