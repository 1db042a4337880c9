//! What one path's delays tell Harp.

use super::options::{DelayRule, Options};
use crate::Delay;
use crate::detector::{
    Average, Base, Burst, Extremes, Leap, Line, Run, Share, Short, Smoothed, Spacing, Tremble,
};
use byway_wire::time::nanos;
use byway_wire::{Duration, Instant};

/// So many packets of its own a path may always have in the queue.
const IN_QUEUE: u32 = 3;
/// But none for longer than this: a loss-based TCP keeps queues of 20 ms and more.
const LONGEST: Duration = Duration::from_millis(20);
/// How long a packet may wait in the company of those who ask for little, and behind how many half packets.
const IN_COMPANY: Duration = Duration::from_millis(2);
const HALVES_IN_COMPANY: u32 = 5;
/// A line that trembles by less, in nanoseconds, is steady enough to tell bursts.
const STEADY: i64 = 4_000_000;
/// A packet that is a smaller part of a full one tells nothing of the time that a full one takes: for it the distance to the one before is
/// all jitter.
const TELLING: f64 = 0.25;
/// Packets are at most so many times as large as the usual.
const LARGEST_SIZE: f64 = 8.0;
/// Delays in a mean, at least: fewer are none.
const LEAST_AVERAGED: f64 = 4.0;

/// The delay side of one path: whether a queue stands, and how long.
#[derive(Clone, Debug)]
pub(super) struct Sense {
    rule: DelayRule,
    tolerance: Duration,
    /// Bytes of a full packet.
    full: f64,
    base: Base,
    short: Short,
    leap: Leap,
    /// The base has leapt since somebody asked.
    leapt: bool,
    tremble: Tremble,
    /// The time that one packet takes on the line, as far as known by the rate of delivery.
    serialisation: Duration,
    spacing: Spacing,
    /// `None` where nobody makes way for them.
    bursts: Option<Burst>,
    /// A burst was seen since somebody asked.
    burst: bool,
    /// Whether others come and go who ask for little.
    company: bool,
    /// How many times as large as the usual packets are.
    size: f64,
    /// When the latest packet was sent, and the delay that it met.
    latest: Option<(Instant, i64)>,
    extremes: Option<Extremes>,
    average: Average,
    share: Share,
    run: Run,
    waiting: Smoothed,
    /// Packets of this round, and those that waited more than half of what they may.
    packets: u32,
    waited: u32,
    /// Whether the latest packet was within the limit, and within half of it.
    calm: bool,
    free: bool,
    /// Whether the samples are round trips, for want of one-way delays. The scales do not mix.
    round_trips: Option<bool>,
}

impl Sense {
    /// Nothing is known of a path whose full packets have `full` bytes.
    pub(super) fn new(options: &Options, full: f64) -> Self {
        let fraction = match options.delay {
            DelayRule::Relative { fraction, .. } => fraction,
            DelayRule::Absolute { .. } | DelayRule::Averaged { .. } => 0.0,
        };
        let averaged = match options.delay {
            DelayRule::Averaged { packets, .. } => packets,
            DelayRule::Absolute { .. } | DelayRule::Relative { .. } => 1,
        };
        Self {
            rule: options.delay,
            tolerance: options.tolerance(),
            full: full.max(1.0),
            base: Base::new(options.tolerance()),
            short: Short::default(),
            leap: Leap::default(),
            leapt: false,
            tremble: Tremble::default(),
            serialisation: Duration::ZERO,
            spacing: Spacing::default(),
            bursts: options.company.then(Burst::default),
            burst: false,
            company: false,
            size: 1.0,
            latest: None,
            extremes: None,
            average: Average::new(averaged),
            share: Share::new(fraction),
            run: Run::default(),
            waiting: Smoothed::default(),
            packets: 0,
            waited: 0,
            calm: true,
            free: true,
            round_trips: None,
        }
    }

    /// The delay beyond which a packet counts as delayed; `None` as long as there is nothing to compare with.
    pub(super) fn limit(&self) -> Option<i64> {
        match self.rule {
            DelayRule::Absolute { threshold } => {
                let late = as_i64(self.threshold(threshold)).saturating_add(self.tremble.spread());
                Some(self.base.floor()?.saturating_add(late))
            }
            DelayRule::Relative { delta, least_range, range, .. } => self.within(delta, least_range, range),
            DelayRule::Averaged { delta, least_range, .. } => self.within(delta, least_range, None),
        }
    }

    /// `Delta_i = dmin_i + (dmax_i - dmin_i) * delta` (Harp, III.D).
    fn within(&self, delta: f64, least_range: Duration, range: Option<Duration>) -> Option<i64> {
        let Extremes { min, max } = self.extremes?;
        let range = range.map_or(max.saturating_sub(min), as_i64);
        (range >= as_i64(least_range)).then(|| min.saturating_add((range as f64 * delta) as i64))
    }

    /// How long a packet may wait in a queue: `least`, but no less than some packets take to be sent, or a queue of one
    /// packet would be one too many.
    pub(super) fn threshold(&self, least: Duration) -> Duration {
        let (least, halves) =
            if self.company { (least.min(IN_COMPANY), HALVES_IN_COMPANY) } else { (least, 2 * IN_QUEUE) };
        least.max((self.packet_time().saturating_mul(halves) / 2).min(LONGEST))
    }

    /// The time that a packet takes on the line, as far as known. Where delays tremble by themselves, the distance of two
    /// packets says nothing of the line.
    fn packet_time(&self) -> Duration {
        let steady = self.tremble.spread() <= as_i64(self.tolerance).saturating_mul(2);
        match self.spacing.packet() {
            Some(apart) if steady => self.serialisation.min(apart),
            _ => self.serialisation,
        }
    }

    /// A packet met `delay` and `waited` beyond the base: how it lies to those before. Returns by how much more it may have waited than
    /// that without any jitter: what two packets take on the line; or, since others fill the queue meanwhile, a quarter of the
    /// time between them. It may be all of that time, but jitter must be learnt while the window is small, too.
    fn follow(&mut self, delay: Delay, waited: i64) -> i64 {
        let Delay { sent_at, one_way, .. } = delay;
        let before = self.latest.replace((sent_at, one_way)).filter(|(at, _)| *at <= sent_at);
        let gap = before.map_or(0, |(at, _)| as_i64(sent_at.since(at)));
        if let Some((_, delay_before)) = before {
            let part = f64::from(delay.bytes) / self.full;
            if part >= TELLING {
                let apart = gap.saturating_add(one_way.saturating_sub(delay_before));
                self.spacing.sample((apart as f64 / part) as i64);
            }
        }
        let packet = self.packet_time();
        if let Some(bursts) = &mut self.bursts {
            // Where delays tremble, the distance of two packets is as uncertain; of a quarter `Burst` takes care.
            let uncertain = (packet * 3 / 4 + Duration::from_nanos(self.tremble.spread().unsigned_abs()))
                .clamp(packet, self.serialisation.max(packet));
            let work = as_i64(uncertain.mul_f64(self.size));
            self.burst |= bursts.sample(waited, sent_at, work, self.tremble.spread());
        }
        as_i64(packet.saturating_mul(2)).max(gap / 4)
    }

    /// Packets were delivered at `rate` bytes per second. The greatest rate is the line's, as far as it can be
    /// known from the share that one has of it.
    pub(super) fn delivers(&mut self, rate: u64) {
        let time = Duration::from_secs_f64((self.full / rate.max(1) as f64).min(1.0));
        if self.serialisation.is_zero() || time < self.serialisation {
            self.serialisation = time;
        }
    }

    /// The limit on the scale of one-way delays, for the receiver.
    pub(super) fn one_way_limit(&self) -> Option<i64> {
        if self.round_trips == Some(false) { self.limit() } else { None }
    }

    /// Takes a delay into account, under a window of `window` packets. Whether it, or the mean where means count, exceeds the
    /// limit.
    fn above(&mut self, met: Delay, now: Instant, rtt: Duration, window: f64) -> bool {
        let mut delay = met.one_way;
        let mut counts = Some(delay);
        match self.rule {
            DelayRule::Absolute { threshold } => {
                let lacks = self.lacks(met.bytes);
                delay = self.fill(delay, lacks);
                counts = Some(delay);
                self.look_for_leap(delay, met.sent_at, now, rtt);
                let floor = self.base.floor();
                let waited = self.base.sample(delay, now, rtt);
                if self.base.floor() != floor {
                    self.short.set_base(lacks);
                }
                let step = self.follow(met, waited);
                self.tremble.sample(waited, self.base.tolerance(), step, now, rtt);
                self.base.set_spread(self.tremble.spread());
                // What the line's own trembling explains is no wait in a queue.
                let queued = waited.saturating_sub(self.tremble.spread()).max(0);
                self.waiting.sample(queued);
                self.packets += 1;
                self.free = queued <= as_i64(self.threshold(threshold) / 2);
                self.waited += u32::from(!self.free);
            }
            DelayRule::Relative { .. } => {
                let Extremes { min, .. } = Extremes::sample(&mut self.extremes, delay);
                self.waiting.sample(delay.saturating_sub(min));
            }
            DelayRule::Averaged { packets, capped, .. } => {
                self.average.sample(delay);
                let fits = if capped { window.max(LEAST_AVERAGED) as usize } else { usize::MAX };
                counts = self.average.mean(fits.min(packets as usize));
                if let Some(mean) = counts {
                    let Extremes { min, .. } = Extremes::sample(&mut self.extremes, mean);
                    self.waiting.sample(mean.saturating_sub(min));
                }
            }
        }
        let above = self.limit().zip(counts).is_some_and(|(limit, counts)| counts > limit);
        self.calm = !above;
        above
    }

    /// What a packet lacks of a full one, as a share of it.
    fn lacks(&self, bytes: u32) -> f64 {
        (1.0 - f64::from(bytes) / self.full).max(0.0)
    }

    /// The delay that a full packet would have met. As long as too few packets were seen close to each other, it is not known what the line
    /// takes for one: the rate of delivery is no more than who sends little sends.
    fn fill(&mut self, delay: i64, lacks: f64) -> i64 {
        let time = self.spacing.settled().map_or(0, |apart| as_i64(self.serialisation.min(apart)));
        self.base.shift(self.short.learn(time));
        self.short.filled(delay, lacks)
    }

    fn look_for_leap(&mut self, delay: i64, sent_at: Instant, now: Instant, rtt: Duration) {
        let Some(floor) = self.base.floor() else { return };
        let line = Line { floor, tolerance: self.base.tolerance(), spread: self.tremble.spread() };
        if let Some(floor) = self.leap.sample(delay, sent_at, now, rtt, line) {
            self.base.adopt(floor, now);
            self.waiting = Smoothed::default();
            self.run.reset();
            self.leapt = true;
        }
    }

    /// Whether delays have leapt and it is not known yet whether the base has.
    pub(super) fn doubts(&self) -> bool {
        self.leap.is_open()
    }

    /// Whether the base has leapt since this was last asked.
    pub(super) fn has_leapt(&mut self) -> bool {
        core::mem::take(&mut self.leapt)
    }

    /// A round is over. Whether it was quiet: no more than a quarter of its packets waited noticeably.
    pub(super) fn end_round(&mut self) -> bool {
        let quiet = self.packets > 0 && self.waited <= self.packets / 4;
        (self.packets, self.waited) = (0, 0);
        quiet
    }

    /// Whether the latest packet was within the limit.
    pub(super) fn calm(&self) -> bool {
        self.calm
    }

    /// Whether the line hardly trembles, as far as known for sure: where it does, bursts and trembling look alike.
    pub(super) fn is_steady(&self) -> bool {
        self.tremble.is_below(STEADY)
    }

    /// Whether the latest packet waited no more than half of what it may.
    pub(super) fn free(&self) -> bool {
        self.free
    }

    /// Whether somebody's burst was seen since this was last asked.
    pub(super) fn has_met_burst(&mut self) -> bool {
        core::mem::take(&mut self.burst)
    }

    /// What follows is in the company of those who ask for little, or not; and of packets that are `size` times as large as the
    /// usual.
    pub(super) fn expect(&mut self, company: bool, size: f64) {
        self.company = company;
        self.size = size.clamp(0.0, LARGEST_SIZE);
    }

    /// A packet met `delay`. Whether this makes a signal of congestion, given a window of `window` packets; packets
    /// sent before `recover` are of an RTT that has been answered.
    pub(super) fn sample(
        &mut self,
        delay: Delay,
        now: Instant,
        rtt: Duration,
        window: f64,
        recover: Instant,
    ) -> bool {
        if self.round_trips != Some(false) {
            self.reset_scale(false);
        }
        let above = self.above(delay, now, rtt, window);
        if delay.sent_at < recover {
            self.run.reset();
            return false;
        }
        match self.rule {
            // In company one packet is enough: the queue of a burst is gone before the next one where a window has few.
            DelayRule::Absolute { .. } if self.company => self.run.count_from(1.0, above, window),
            DelayRule::Absolute { .. } => self.run.count(above, window),
            DelayRule::Relative { .. } => self.share.count(above, delay.sent_at, now, window),
            DelayRule::Averaged { .. } => above,
        }
    }

    /// There is nothing but an RTT to go by: a packet sent at `sent_at` was acknowledged after `rtt`.
    pub(super) fn round_trip(
        &mut self,
        rtt: Duration,
        sent_at: Instant,
        now: Instant,
        window: f64,
        recover: Instant,
    ) -> bool {
        match self.round_trips {
            Some(false) => return false,
            None => self.round_trips = Some(true),
            Some(true) => {}
        }
        let met = Delay { sent_at, one_way: as_i64(rtt), bytes: self.full as u32 };
        let above = self.above(met, now, rtt, window);
        // One sample stands for a whole ACK, so the rules for packets do not fit: two in a row.
        if sent_at < recover {
            self.run.reset();
            return false;
        }
        self.run.count(above, window.min(8.0))
    }

    /// A probe met `delay`. Whether the path is free: the probe tells it, not a mean of what was before it.
    pub(super) fn probe(&mut self, delay: Delay, now: Instant, rtt: Duration) -> bool {
        if self.round_trips != Some(false) {
            self.reset_scale(false);
        }
        self.above(delay, now, rtt, LEAST_AVERAGED);
        let met = self.short.filled(delay.one_way, self.lacks(delay.bytes));
        self.limit().is_none_or(|limit| met <= limit)
    }

    /// Whether a round trip of `rtt` shows no queue on a path whose smallest was `least`. Never by a relative threshold,
    /// which is one of one-way delays.
    pub(super) fn is_prompt(&self, rtt: Duration, least: Duration) -> bool {
        match self.rule {
            DelayRule::Absolute { threshold } => {
                let trembling = Duration::from_nanos(self.tremble.spread().unsigned_abs());
                rtt <= least.saturating_add(self.threshold(threshold)).saturating_add(trembling)
            }
            DelayRule::Relative { .. } | DelayRule::Averaged { .. } => false,
        }
    }

    /// How long packets have lately queued beyond the base.
    pub(super) fn waiting(&self) -> Duration {
        Duration::from_nanos(u64::try_from(self.waiting.value()).unwrap_or(0))
    }

    /// Since when nothing near the base has been seen.
    pub(super) fn unconfirmed(&self, now: Instant) -> Duration {
        if self.base.floor().is_some() { self.base.unconfirmed(now) } else { Duration::ZERO }
    }

    fn reset_scale(&mut self, round_trips: bool) {
        self.round_trips = Some(round_trips);
        self.base = Base::new(self.tolerance);
        self.short = Short::default();
        self.leap = Leap::default();
        self.tremble = Tremble::default();
        self.latest = None;
        self.extremes = None;
        self.average.clear();
        self.waiting = Smoothed::default();
    }
}

fn as_i64(duration: Duration) -> i64 {
    i64::try_from(nanos(duration)).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
