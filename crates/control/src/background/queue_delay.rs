//! What one path's delays tell: how long packets waited, and how fast that grew.

use super::constants::{
    DECREASE_FACTOR, DELAY_WINDOW_PACKETS, FULL_SHARE, MAX_BURST_TIME, MIN_QUEUE_DELAY, MIN_QUEUE_PACKETS,
    OWN_QUEUE_PACKETS,
};
use super::jitter::Jitter;
use super::loss_cause::LossDepth;
use crate::Delay;
use crate::detector::{BaseDelay, DelayNoise, RouteChange, Spacing};
use byway_wire::time::signed_nanos;
use byway_wire::{Duration, Instant};

/// How one packet fared.
#[derive(Clone, Copy, Debug)]
pub(super) struct DelayReading {
    /// How long the packet waited in queues, in nanoseconds.
    pub waited: i64,
    /// The shortest wait of this packet and the packets before it, as many as show a burst, in
    /// nanoseconds.
    pub low: i64,
    /// The time from the sending of the packet before to the sending of this packet. The level
    /// grows or falls for this time.
    pub speaks_for: Duration,
    /// By how much the delay fell in a row of packets that arrived together, in nanoseconds.
    pub fell: i64,
    /// Whether the path has jitter for sure.
    pub jitters: bool,
}

/// What the delays of one path tell: waits in queues, growth of a queue, and the jitter. Fast and
/// slow flows on one line get nearly equal results, so that they agree whether there is a queue.
#[derive(Clone, Debug)]
pub(super) struct QueueDelay {
    /// Bytes of the largest packets. Each shorter packet lowers it by 1/256.
    full: f64,
    base: BaseDelay,
    route_change: RouteChange,
    /// The base was set or has risen since somebody asked: the route is new, or got longer.
    risen: bool,
    spacing: Spacing,
    /// The shortest time in which a full packet's worth was delivered, over an RTT.
    delivery: Duration,
    /// When the latest packet was sent, and its delay.
    latest: Option<(Instant, i64)>,
    /// When the latest packets were sent and what they waited, the latest first.
    recent: [(Instant, i64); DELAY_WINDOW_PACKETS],
    jitter: Jitter,
    loss_depth: LossDepth,
    /// The delays are round trips, for want of one-way delays.
    round_trips: bool,
}

impl QueueDelay {
    /// Nothing is known of a path whose full packets have `full` bytes.
    pub fn new(full: f64) -> Self {
        Self {
            full,
            base: BaseDelay::new(MIN_QUEUE_DELAY),
            route_change: RouteChange::default(),
            risen: true,
            spacing: Spacing::default(),
            delivery: Duration::ZERO,
            latest: None,
            recent: [(Instant::ZERO, 0); DELAY_WINDOW_PACKETS],
            jitter: Jitter::new(),
            loss_depth: LossDepth::default(),
            round_trips: true,
        }
    }

    /// Packets were delivered at `rate` bytes per second, over an RTT.
    pub fn delivers(&mut self, rate: u64) {
        let time = Duration::from_secs_f64((self.full / rate.max(1) as f64).min(1.0));
        if self.delivery.is_zero() || time < self.delivery {
            self.delivery = time;
        }
    }

    /// The time that a full packet takes on the line, as far as known.
    pub fn packet_time(&self) -> Duration {
        self.spacing.packet().map_or(self.delivery, |apart| self.delivery.min(apart))
    }

    /// See [`Jitter::bound`].
    pub fn jitter(&self) -> Duration {
        self.jitter.bound()
    }

    /// Nanoseconds of waiting that are a queue. A queue that jitter hides is known by what is lost:
    /// half of the way to its depth counts as one.
    pub fn threshold(&self) -> i64 {
        let least = signed_nanos(self.packet_time().mul_f64(MIN_QUEUE_PACKETS).max(MIN_QUEUE_DELAY));
        let most = signed_nanos(MIN_QUEUE_DELAY + self.jitter());
        if !self.jitter.closing_up.is_proven() {
            return least.max(most);
        }
        least.max(self.loss_depth.limit(self.jitter.spread()).map_or(most, |limit| most.min(limit)))
    }

    /// A packet was lost. The latest packets stand for those around it.
    pub fn on_lost(&mut self) {
        let near = self.recent.iter().take(OWN_QUEUE_PACKETS as usize);
        self.loss_depth.on_lost(near.map(|(_, waited)| waited / i64::from(OWN_QUEUE_PACKETS)).sum());
    }

    /// Whether the route is new or got longer since this was last asked.
    pub fn has_risen(&mut self) -> bool {
        core::mem::take(&mut self.risen)
    }

    /// The threshold on the scale of one-way delays, for the receiver.
    pub fn limit(&self, threshold: i64) -> Option<i64> {
        if self.round_trips {
            return None;
        }
        Some(self.base.floor()?.saturating_add(threshold))
    }

    /// Takes a one-way delay into account, or an RTT if `round_trip` is set. `None` for a short
    /// packet, since the line sends it faster. `queued`: whether the path has a queue. If so, the
    /// delay is not jitter.
    pub fn sample(
        &mut self,
        met: Delay,
        now: Instant,
        rtt: Duration,
        round_trip: bool,
        queued: bool,
    ) -> Option<DelayReading> {
        if round_trip != self.round_trips {
            *self = Self { delivery: self.delivery, round_trips: round_trip, ..Self::new(self.full) };
        }
        if !self.is_full(met.bytes) {
            return None;
        }
        let floor = self.base.floor();
        self.look_for_leap(met, now, rtt);
        let waited = self.base.sample(met.one_way, now, rtt);
        if floor.is_some() && self.base.floor() > floor {
            self.risen = true;
            self.jitter.forget();
        }
        let before = self.latest.replace((met.sent_at, met.one_way)).filter(|(at, _)| *at <= met.sent_at);
        let speaks_for = before.map_or(Duration::ZERO, |(at, _)| met.sent_at.since(at));
        if let Some((_, delay_before)) = before {
            let gap = signed_nanos(speaks_for);
            let apart = gap.saturating_add(met.one_way.saturating_sub(delay_before));
            self.spacing.sample(apart);
            self.jitter.closing_up.sample(met.sent_at, gap, apart, self.packet_time());
        }
        self.recent.rotate_right(1);
        self.recent[0] = (met.sent_at, waited);
        self.loss_depth.sample(waited);
        if !queued && self.jitter.sample(met.sent_at, met.one_way, self.base.floor()) {
            self.base.set_spread(signed_nanos(self.jitter()));
        }
        let row = self.recent.iter().take(OWN_QUEUE_PACKETS as usize / 2);
        let low = row.map(|(_, waited)| *waited).min().unwrap_or(waited);
        let closing_up = &self.jitter.closing_up;
        let (fell, jitters) = (closing_up.fall(), closing_up.is_proven());
        Some(DelayReading { waited, low, speaks_for, fell, jitters })
    }

    /// The time within which a queue's growth counts as a burst: [`MAX_BURST_TIME`], or some packet
    /// times if they are longer.
    fn look(&self) -> Duration {
        MAX_BURST_TIME.max(self.packet_time().saturating_mul(OWN_QUEUE_PACKETS))
    }

    /// Detects that the route got longer, in 500 ms, or in eight RTTs if they are longer. The base
    /// delay alone would rise only after 15 s. Until then, the path would take the difference for a
    /// queue.
    fn look_for_leap(&mut self, met: Delay, now: Instant, rtt: Duration) {
        let Some(floor) = self.base.floor() else { return };
        let pause = self.look();
        let line = DelayNoise {
            floor,
            tolerance: signed_nanos(MIN_QUEUE_DELAY),
            spread: signed_nanos(self.jitter()),
            pause,
        };
        if let Some(floor) = self.route_change.sample(met.one_way, met.sent_at, now, rtt, line) {
            self.base.adopt(floor, now);
        }
    }

    /// How long an empty probe of a choked path waited, in ns. A probe is short, so it never lowers
    /// the base.
    pub fn waits(&mut self, probe: Delay, now: Instant, rtt: Duration) -> i64 {
        self.look_for_leap(probe, now, rtt);
        let delay = self.base.floor().map_or(probe.one_way, |floor| floor.max(probe.one_way));
        self.base.sample(delay, now, rtt)
    }

    /// Whether a packet has at least 75 % (`FULL_SHARE`) of the bytes of the largest packets
    /// (`full`). Each shorter packet lowers `full` by 1/256, so a path that sends only short
    /// packets counts them as full after a while.
    fn is_full(&mut self, bytes: u32) -> bool {
        let bytes = f64::from(bytes);
        if bytes < FULL_SHARE * self.full {
            self.full -= self.full / (8 * DELAY_WINDOW_PACKETS) as f64;
            return false;
        }
        self.full = self.full.max(bytes);
        true
    }

    /// How much the queue has grown, in nanoseconds, within the last 10 ms ([`MAX_BURST_TIME`]), or
    /// within four packet times if longer. Growth of 0.1 s per second is subtracted: a path that
    /// sends 10 % faster than the line builds such a queue itself.
    pub fn grown(&self) -> i64 {
        let [(sent_at, waited), earlier @ ..] = &self.recent;
        let look = self.look();
        let within = |at: &Instant| sent_at.since(*at) <= look;
        let earlier = earlier.iter().enumerate().take_while(|(place, (at, _))| *place == 0 || within(at));
        let grown = earlier.map(|(_, (at, before))| {
            let own = signed_nanos(sent_at.since(*at)) as f64 * (1.0 - DECREASE_FACTOR);
            waited.saturating_sub(*before).saturating_sub(own as i64)
        });
        grown.max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::constants::MAX_JITTER;
    use super::*;
    use crate::seeded_random::Random;

    const MS: i64 = 1_000_000;
    const FULL: u32 = 1_500;

    struct Line {
        queue_delay: QueueDelay,
        at: Instant,
    }

    impl Line {
        fn new() -> Self {
            Self { queue_delay: QueueDelay::new(f64::from(FULL)), at: Instant::from_millis(1) }
        }

        /// A packet of so many bytes, 2 ms after the one before, with `delay` in nanoseconds.
        fn send(&mut self, bytes: u32, delay: i64) -> Option<DelayReading> {
            self.send_after(Duration::from_millis(2), bytes, delay)
        }

        fn send_after(&mut self, gap: Duration, bytes: u32, delay: i64) -> Option<DelayReading> {
            self.at += gap;
            let met = Delay { sent_at: self.at, one_way: delay, bytes };
            self.queue_delay.sample(met, self.at, Duration::from_millis(20), false, false)
        }
    }

    #[test]
    fn a_short_packet_sets_no_base_and_no_queue() {
        let mut line = Line::new();
        assert!(line.send(60, 0).is_none());
        assert_eq!(line.send(FULL, 10 * MS).expect("a full packet").waited, 0);
        assert!(line.send(60, 30 * MS).is_none());
        assert_eq!(line.send(FULL, 10 * MS).expect("a full packet").waited, 0);
    }

    #[test]
    fn short_packets_count_where_there_are_no_others() {
        let mut line = Line::new();
        let first = (0..10_000).position(|_| line.send(60, 0).is_some());
        assert!(first.is_some_and(|first| first > DELAY_WINDOW_PACKETS), "{first:?}");
    }

    #[test]
    fn jitter_is_measured_alike_at_any_rate_and_a_queue_that_comes_and_goes_is_none() {
        for gap in [250, 2_000, 12_000] {
            let (mut random, mut arrived) = (Random::new(1), 0);
            let mut line = Line::new();
            for _ in 0..20_000 {
                let at = line.at + Duration::from_micros(gap);
                // Each is late by up to 8 ms, and none overtakes another.
                arrived = arrived.max(signed_nanos(at.since(Instant::ZERO)) + (random.unit() * 8e6) as i64);
                let delay = arrived - signed_nanos(at.since(Instant::ZERO));
                line.send_after(Duration::from_micros(gap), FULL, delay);
            }
            let jitter = line.queue_delay.jitter();
            assert!((Duration::from_millis(2)..=MAX_JITTER).contains(&jitter), "{gap} µs: {jitter:?}");
        }
        let mut line = Line::new();
        for packet in 0..20_000 {
            line.send(FULL, if packet % 32 < 21 { 0 } else { 10 * MS });
        }
        assert!(line.queue_delay.jitter() < Duration::from_millis(1), "{:?}", line.queue_delay.jitter());
    }

    #[test]
    fn what_packets_wait_in_a_queue_is_no_jitter() {
        let mut line = Line::new();
        for packet in 0..10_000 {
            line.at += Duration::from_millis(2);
            let met =
                Delay { sent_at: line.at, one_way: if packet < 100 { 0 } else { 20 * MS }, bytes: FULL };
            let (rtt, queued) = (Duration::from_millis(20), packet > 150);
            line.queue_delay.sample(met, line.at, rtt, false, queued);
        }
        assert!(line.queue_delay.jitter() < Duration::from_millis(3), "{:?}", line.queue_delay.jitter());
    }

    #[test]
    fn growth_counts_beyond_an_overload_of_ones_own() {
        let mut line = Line::new();
        for _ in 0..100 {
            line.send(FULL, 0);
        }
        // A tenth of overload: 200 µs of queue in 2 ms.
        for packet in 1..30 {
            line.send(FULL, packet * MS / 5).expect("a full packet");
            assert!(line.queue_delay.grown() < MS / 1000, "{}", line.queue_delay.grown());
        }
        line.send(FULL, 12 * MS).expect("a full packet");
        assert!(line.queue_delay.grown() > 5 * MS, "{}", line.queue_delay.grown());
    }
}
