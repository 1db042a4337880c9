//! How one path of the class `background` sets its rate. The path's *level*, in bytes per second,
//! is its estimate of its own share of the line. Without a queue, the path sends at its level.
//!
//! ```text
//!          timeout        3 packets over 2 thresholds
//!      +----------> start ------------------------------+
//!      |                                                v
//!      |   own queue: level * 0.9, once         +---> queue: pace less, level stays;
//!    grows ------------------------------------>|       it stands: level falls by e per second
//!      ^   burst: level stays                   |       |
//!      +------------------------------------------------+
//!          a packet within the threshold
//! ```

mod choking;
mod loss_response;
mod vanished;

use super::constants::{
    ACK_INTERVAL_RTTS, BURST_PACKETS, DECREASE_FACTOR, DRAIN_GAIN, FULL_SHARE, GROWTH_DOUBLING_TIME,
    IN_FLIGHT_FACTOR, INITIAL_RATE_PACKETS, INITIAL_RELAY_PACKETS, LEVEL_GROWTH, MAX_GROWTH_PER_RTT,
    MIN_QUEUE_DELAY, MIN_RATE_PACKETS, MIN_RATE_SHARE, MIN_STANDING_QUEUE_TIME, OWN_QUEUE_PACKETS,
    RATE_RATIO_THRESHOLD, STANDING_QUEUE_DECAY_TIME, STANDING_QUEUE_RTTS, START_GAIN,
};
use super::load_aggregation::PathLoan;
use super::loss_cause::LossRate;
use super::queue_delay::{DelayReading, QueueDelay};
use crate::bundle::UndoState;
use crate::{Acked, Allowance, Delay, Opened};
use byway_wire::time::signed_nanos;
use byway_wire::{Duration, Instant};
use core::f64::consts::LN_2;

/// What a packet says of the path's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum QueueSignal {
    /// The path has no queue.
    Free,
    /// The packet waited. It is not known yet for whom.
    Waits,
    /// The queue came at once: somebody's burst.
    Burst,
    /// The queue crept up: one's own.
    Own,
    /// The queue is the one that was seen before.
    Stands,
    /// The start has filled the line.
    Filled,
}

/// A queue that was seen and is not gone yet.
#[derive(Clone, Copy, Debug)]
struct StandingQueue {
    since: Instant,
    burst: bool,
    /// The most that packets in a row waited in it, in nanoseconds.
    deepest: i64,
    before: BeforeQueue,
}

/// How the path grew before it saw a queue.
#[derive(Clone, Copy, Debug)]
struct BeforeQueue {
    level: SavedLevel,
    met: Instant,
    known: f64,
}

/// What to restore if the timeout or the loss turns out to be spurious.
#[derive(Clone, Copy, Debug)]
struct SavedLevel {
    level: f64,
    start: bool,
    start_until: f64,
}

/// One path of the bundle under the law.
#[derive(Clone, Debug)]
pub(super) struct BackgroundPath {
    /// Bytes of a full packet when the path opened.
    packet: f64,
    /// The rate that the path believes its own, in bytes per second.
    pub level: f64,
    /// The level doubles per RTT, up to `start_until`.
    pub start: bool,
    start_until: f64,
    queue_delay: QueueDelay,
    srtt: Duration,
    /// The least RTT of this route.
    min_rtt: Duration,
    /// All packets sent before this time have been answered by a decrease.
    recover: Instant,
    queue: Option<StandingQueue>,
    /// When a queue was seen last.
    met: Instant,
    /// The level at the latest queue of one's own.
    known: f64,
    /// Growth per second at the latest packet.
    growth: f64,
    /// Packets in a row that waited, and by how much their wait grew at once.
    above: u32,
    grown: i64,
    /// When the latest packet was sent that waited, and the latest that did not.
    waited_at: Instant,
    free_at: Instant,
    delivery_rate: Option<u64>,
    /// Bytes per second delivered, an average over the latest time, and when it was updated.
    delivered: f64,
    delivered_at: Instant,
    losses: LossRate,
    pub choked: bool,
    /// When the path was choked last.
    pub choked_at: Instant,
    pub proxied: bool,
    pub opened_at: Instant,
    /// Probes of the choked path come back.
    pub reached: bool,
    /// How many timeouts there were in a row.
    pub timeouts: u32,
    undo_state: Option<UndoState<SavedLevel>>,
    pub loan: PathLoan,
}

impl BackgroundPath {
    pub fn new(opened: &Opened) -> Self {
        let rtt = opened.rtt.unwrap_or(MIN_STANDING_QUEUE_TIME);
        let packet = f64::from(opened.packet_size.max(1));
        let relay_rtt = opened.rtt.filter(|_| opened.proxied);
        let most = relay_rtt.map_or(f64::INFINITY, |rtt| INITIAL_RELAY_PACKETS / seconds(rtt));
        Self {
            packet,
            level: INITIAL_RATE_PACKETS.min(most) * packet,
            start: true,
            choked_at: opened.now,
            proxied: opened.proxied,
            opened_at: opened.now,
            start_until: f64::INFINITY,
            queue_delay: QueueDelay::new(packet),
            srtt: rtt,
            min_rtt: rtt,
            recover: opened.now,
            queue: None,
            met: opened.now,
            known: 0.0,
            growth: 0.0,
            above: 0,
            grown: 0,
            waited_at: Instant::ZERO,
            free_at: Instant::ZERO,
            delivery_rate: None,
            delivered: 0.0,
            delivered_at: opened.now,
            losses: LossRate::default(),
            choked: false,
            reached: false,
            timeouts: 0,
            undo_state: None,
            loan: PathLoan::default(),
        }
    }

    /// What was learnt is void: the route is another one.
    pub fn start_over(&mut self, now: Instant) {
        let packet_size = self.packet as u32;
        *self = Self::new(&Opened { now, proxied: self.proxied, packet_size, rtt: Some(self.srtt) });
    }

    // First: a delay comes in.

    /// Returns whether an ACK showed a queue that the path itself built. `share`: the path's part,
    /// from 0 to 1, of all paths' rate.
    pub fn on_acked(&mut self, acked: &Acked<'_>, share: f64) -> bool {
        self.timeouts = 0;
        self.srtt = acked.srtt;
        self.on_delivered(acked);
        self.losses.on_acked(f64::from(acked.packets));
        // A sender that the application limits does not grow.
        let share = if acked.app_limited { 0.0 } else { share };
        let mut own = false;
        for delay in acked.delays {
            own |= self.on_delay(*delay, acked.now, false, share);
        }
        if let (true, Some(rtt)) = (acked.delays.is_empty(), acked.rtt) {
            let delay =
                Delay { sent_at: acked.sent_at, one_way: signed_nanos(rtt), bytes: self.packet as u32 };
            own |= self.on_delay(delay, acked.now, true, share);
        }
        if let Some(rtt) = acked.rtt {
            let new = self.queue_delay.has_risen();
            self.min_rtt = if new { rtt } else { self.min_rtt.min(rtt) };
        }
        if self.start && !acked.app_limited && self.queue.is_none() && acked.sent_at >= self.recover {
            let to = self.level + acked.bytes as f64 / seconds(self.min_rtt);
            self.start = to < self.start_until;
            self.set(to);
        }
        own
    }

    fn on_delivered(&mut self, acked: &Acked<'_>) {
        self.delivery_rate = acked.delivery_rate;
        if let Some(rate) = acked.delivery_rate {
            self.queue_delay.delivers(rate);
        }
        // The delivery rate is averaged over `STANDING_QUEUE_DECAY_TIME`, or over four RTTs if four
        // RTTs are longer.
        let over = seconds(STANDING_QUEUE_DECAY_TIME.max(acked.srtt.mul_f64(1.0 / MAX_GROWTH_PER_RTT)));
        let elapsed = acked.now.since(self.delivered_at).as_secs_f64();
        self.delivered_at = acked.now;
        self.delivered = self.delivered * libm::exp(-elapsed / over) + acked.bytes as f64 / over;
        if acked.app_limited {
            self.delivered = self.delivered.max(self.level);
        }
    }

    /// A packet met a delay: what is seen, and what follows from it.
    fn on_delay(&mut self, delay: Delay, now: Instant, round_trip: bool, share: f64) -> bool {
        let queued = self.queue.is_some();
        let Some(met) = self.queue_delay.sample(delay, now, self.srtt, round_trip, queued) else {
            return false;
        };
        self.take_back(&met, now);
        let answered = delay.sent_at < self.recover;
        // The time since the packet before counts up to `MIN_STANDING_QUEUE_TIME`, or up to a
        // longer least RTT.
        let time = met.speaks_for.min(self.min_rtt.max(MIN_STANDING_QUEUE_TIME)).as_secs_f64();
        let seen = self.see(&met, answered);
        let latest = if seen == QueueSignal::Free { &mut self.free_at } else { &mut self.waited_at };
        *latest = delay.sent_at;
        match seen {
            QueueSignal::Free => self.on_free(now, answered, time, share),
            QueueSignal::Waits => {}
            QueueSignal::Burst => self.meet(now, true, met.low),
            QueueSignal::Own => self.answer(now, met.low),
            QueueSignal::Stands => self.on_standing(now, &met, answered, time),
            QueueSignal::Filled => self.end_start(now, met.low),
        }
        seen == QueueSignal::Own
    }

    // Second: a queue is seen.

    fn see(&mut self, met: &DelayReading, answered: bool) -> QueueSignal {
        let threshold = self.queue_delay.threshold();
        // Twice the threshold ends the start: the start fills the queue itself, and waiting for a
        // whole row of packets would take longer.
        if met.waited <= if self.start { 2 * threshold } else { threshold } {
            self.above = 0;
            return QueueSignal::Free;
        }
        let grown = self.queue_delay.grown();
        self.grown = if self.above == 0 { grown.max(0) } else { self.grown.max(grown) };
        self.above += 1;
        let burst = OWN_QUEUE_PACKETS / 2;
        if self.start {
            return if !answered && self.above > burst { QueueSignal::Filled } else { QueueSignal::Waits };
        }
        if self.queue.is_some() {
            return QueueSignal::Stands;
        }
        let packets = BURST_PACKETS * signed_nanos(self.queue_delay.packet_time()) as f64;
        if self.above >= burst && self.grown as f64 >= packets.max(FULL_SHARE * threshold as f64) {
            QueueSignal::Burst
        } else if self.above >= OWN_QUEUE_PACKETS && !answered {
            QueueSignal::Own
        } else {
            QueueSignal::Waits
        }
    }

    /// Whether the path's latest packet waited while it is not known for whom, and was sent after
    /// `free_at`, when another path's packet found no queue. An older one met another queue.
    pub fn waits_since(&self, free_at: Instant) -> bool {
        self.above > 0 && self.waited_at >= free_at && !(self.is_out() || self.start || self.queue.is_some())
    }

    /// When the latest packet was sent that did not wait.
    pub const fn free_at(&self) -> Instant {
        self.free_at
    }

    // Third: the path reacts.

    fn set(&mut self, level: f64) {
        self.level = level.clamp(self.floor(), f64::from(u32::MAX));
    }

    fn lower(&mut self, now: Instant, to: f64) {
        self.set(to);
        self.start = false;
        self.recover = now;
    }

    fn meet(&mut self, now: Instant, burst: bool, deepest: i64) {
        let at_present = BeforeQueue { level: self.saved(), met: self.met, known: self.known };
        let before = self.queue.map_or(at_present, |queue| queue.before);
        self.met = now;
        self.queue = Some(StandingQueue { since: now, burst, deepest, before });
    }

    fn saved(&self) -> SavedLevel {
        SavedLevel { level: self.level, start: self.start, start_until: self.start_until }
    }

    /// The time after which a queue counts as standing.
    fn grace(&self) -> Duration {
        self.srtt.mul_f64(STANDING_QUEUE_RTTS).max(MIN_STANDING_QUEUE_TIME)
    }

    /// Handles a packet that met no queue: a queue seen before is over, and the level (sending
    /// rate) grows. `answered`: whether the packet was sent before the latest decrease of the
    /// level. Such a packet causes no growth.
    fn on_free(&mut self, now: Instant, answered: bool, time: f64, share: f64) {
        if let Some(queue) = self.queue {
            self.met = now;
            if queue.burst || !answered {
                self.queue = None;
            }
        }
        if !self.start && self.queue.is_none() && !answered {
            self.grow(now, time, share);
        }
    }

    /// Grows the level (sending rate). All paths together, at the rate `L`, grow by `LEVEL_GROWTH *
    /// sqrt(L)` bytes/s per second. The growth is faster after a longer time without a queue. The
    /// path gets the part `share` (0 to 1).
    fn grow(&mut self, now: Instant, time: f64, share: f64) {
        let quiet = now.since(self.met).as_secs_f64() / GROWTH_DOUBLING_TIME.as_secs_f64();
        let one = if share > 0.0 { LEVEL_GROWTH / libm::sqrt(self.level / share) } else { 0.0 };
        let most = MAX_GROWTH_PER_RTT / seconds(self.min_rtt);
        // Far below its value at the last queue that the path built, the level grows faster.
        let returns = quiet > 0.5 && self.level < FULL_SHARE * self.known;
        if returns {
            // The level starts from one packet in four RTTs.
            self.set(self.level.max((most * self.packet).min(FULL_SHARE * self.known)));
        }
        self.growth = if returns || self.level < self.loan.borrowed {
            most
        } else {
            (one * (1.0 + quiet * quiet)).min(most)
        };
        self.set(self.level * (1.0 + time * self.growth));
    }

    /// Answers a queue that one of the paths built, if packets of this path waited in it. Lowers
    /// the sending rate (`level`) to `DECREASE_FACTOR` times the delivery rate. The result is at
    /// least `DECREASE_FACTOR` times the sending rate of two RTTs ago.
    pub fn answer(&mut self, now: Instant, waited: i64) {
        self.loan.on_own_queue(now, self.srtt);
        self.meet(now, false, waited);
        // A wrong answer to noise says little of the line.
        self.known = self.level.max(DECREASE_FACTOR * self.known);
        let delivered = self.delivery_rate.map_or(self.level, |rate| rate as f64);
        let least = self.level / (1.0 + 2.0 * self.growth * self.srtt.as_secs_f64());
        self.lower(now, DECREASE_FACTOR * delivered.clamp(least, self.level));
    }

    /// Lowers the level (the path's sending rate) during a queue that has lasted for both
    /// `STANDING_QUEUE_RTTS` RTTs and `MIN_STANDING_QUEUE_TIME`. A level above
    /// `RATE_RATIO_THRESHOLD` times the delivery rate is too high, so it falls during any queue.
    fn on_standing(&mut self, now: Instant, met: &DelayReading, answered: bool, time: f64) {
        self.met = now;
        let grace = self.grace();
        let Some(queue) = &mut self.queue else { return };
        queue.deepest = queue.deepest.max(met.low);
        let stands = now.since(queue.since) >= grace || self.level > RATE_RATIO_THRESHOLD * self.delivered;
        if stands && !answered {
            self.set(self.level * libm::exp(-time / STANDING_QUEUE_DECAY_TIME.as_secs_f64()));
        }
    }

    /// Ends the path's slow start, because the path's packets waited in a queue. In slow start the
    /// level (sending rate, in bytes/s) doubles per RTT. The new level is the delivery rate, but at
    /// most the rate at which the waiting packets were sent.
    fn end_start(&mut self, now: Instant, waited: i64) {
        // The waiting packets were sent one RTT ago, at half of the present level times
        // `START_GAIN`.
        let most = START_GAIN / 2.0 * self.level;
        let queue = 2.0 * self.queue_delay.threshold() as f64 / 1e9;
        // The pace when the queue began: `q` seconds of queue grow in `sqrt(2q / (RTT ln 2))` RTTs.
        let least = most / (1.0 + libm::sqrt(2.0 * LN_2 * queue / seconds(self.srtt)));
        let delivered = self.delivery_rate.map_or(most, |rate| rate as f64);
        self.meet(now, false, waited);
        self.lower(now, delivered.clamp(least, most));
        self.delivered = self.level;
        self.known = self.level.max(DECREASE_FACTOR * self.known);
    }

    /// Packets in flight at its rate.
    pub fn window_packets(&self) -> f64 {
        self.level * self.srtt.as_secs_f64() / self.packet
    }

    fn floor(&self) -> f64 {
        MIN_RATE_PACKETS * self.packet
    }

    fn one_per_rtt(&self) -> f64 {
        self.packet / seconds(self.srtt)
    }

    // The answer.

    /// What the path may send: a pace in bytes per second, and a limit of bytes in flight. Outside
    /// slow start, the pace is the level: the path's estimate of its share of the line. During
    /// queues the pace is lower, so they drain.
    pub fn allowance(&self) -> Allowance {
        let delay_limit = self.queue_delay.limit(self.queue_delay.threshold());
        if self.is_out() {
            let spare = self.loan.lends;
            return Allowance { choked: true, spare, delay_limit, ..Allowance::default() };
        }
        let kept = match self.queue {
            Some(queue) if !self.start => {
                let part = queue.deepest as f64 / 1e9 / seconds(self.min_rtt);
                (1.0 - DRAIN_GAIN * part).max(MIN_RATE_SHARE)
            }
            _ => 1.0,
        };
        let rate = (self.level * kept).max(self.floor());
        let (cap, ahead) = if self.start { (2.0 * START_GAIN, START_GAIN) } else { (IN_FLIGHT_FACTOR, 1.0) };
        let rtt = seconds(self.min_rtt);
        // Jitter beyond the slack keeps packets in flight, half of it each way.
        let jitters = (1.0 + ACK_INTERVAL_RTTS) * rtt + self.queue_delay.jitter().as_secs_f64();
        let window = rate * jitters.max(cap * rtt);
        Allowance {
            window: (window as u64).max(1),
            rate: Some(((rate * ahead) as u64).max(1)),
            delay_limit,
            ..Allowance::default()
        }
    }
}

/// An RTT in seconds. A shorter one than the least wait that counts makes no difference.
fn seconds(rtt: Duration) -> f64 {
    rtt.max(MIN_QUEUE_DELAY).as_secs_f64()
}
