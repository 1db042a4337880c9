//! When one path's delays make a signal (Harp, III.D; HIR, 7.1).

use super::options::DelayRule;
use crate::Acked;
use crate::detector::{Average, Extremes, Run, Share};
use byway_wire::time::nanos;
use byway_wire::{Duration, Instant};

/// Delays in a mean, at least: fewer are none.
const LEAST_AVERAGED: f64 = 4.0;

/// The delays of one path.
#[derive(Clone, Debug)]
pub(super) struct Delays {
    rule: DelayRule,
    /// Of delays, or of means where means count.
    extremes: Option<Extremes>,
    average: Average,
    share: Share,
    run: Run,
    /// Whether the samples are round trips, for want of one-way delays. The scales do not mix.
    round_trips: Option<bool>,
}

impl Delays {
    pub fn new(rule: DelayRule) -> Self {
        let (fraction, packets) = match rule {
            DelayRule::Relative { fraction, .. } => (fraction, 1),
            DelayRule::Averaged { packets, .. } => (0.0, packets),
        };
        Self {
            rule,
            extremes: None,
            average: Average::new(packets),
            share: Share::new(fraction),
            run: Run::default(),
            round_trips: None,
        }
    }

    /// `Delta_i = dmin_i + (dmax_i - dmin_i) * delta` (III.D); `None` as long as there is nothing to compare with.
    fn limit(&self) -> Option<i64> {
        let (delta, least_range, given) = match self.rule {
            DelayRule::Relative { delta, least_range, range, .. } => (delta, least_range, range),
            DelayRule::Averaged { delta, least_range, .. } => (delta, least_range, None),
        };
        let Extremes { min, max } = self.extremes?;
        let range = given.map_or(max.saturating_sub(min), as_i64);
        (range >= as_i64(least_range)).then(|| min.saturating_add((range as f64 * delta) as i64))
    }

    /// The limit on the scale of one-way delays, for the receiver.
    pub fn one_way_limit(&self) -> Option<i64> {
        if self.round_trips == Some(false) { self.limit() } else { None }
    }

    /// Whether the delays of an ACK make a signal, under a window of `window` packets. Packets sent before `recover` are of an RTT that
    /// has been answered.
    pub fn on_acked(&mut self, acked: &Acked<'_>, window: f64, recover: Instant) -> bool {
        let mut signal = false;
        for delay in acked.delays {
            self.one_way();
            let above = self.is_above(delay.one_way, window);
            if delay.sent_at < recover {
                self.run.reset();
                continue;
            }
            signal |= match self.rule {
                DelayRule::Relative { .. } => self.share.count(above, delay.sent_at, acked.now, window),
                DelayRule::Averaged { .. } => above,
            };
        }
        if let (true, Some(rtt)) = (acked.delays.is_empty(), acked.rtt) {
            signal |= self.on_round_trip(rtt, acked.sent_at, window, recover);
        }
        signal
    }

    /// There is nothing but an RTT to go by. It stands for a whole ACK, so the rules for packets do not fit: two in a row.
    fn on_round_trip(&mut self, rtt: Duration, sent_at: Instant, window: f64, recover: Instant) -> bool {
        if *self.round_trips.get_or_insert(true) {
            let above = self.is_above(as_i64(rtt), window);
            if sent_at >= recover {
                return self.run.count(above, window.min(8.0));
            }
            self.run.reset();
        }
        false
    }

    /// A probe met `delay`. Whether the path is free: the probe tells it, not a mean of what was before it.
    pub fn probe(&mut self, delay: i64) -> bool {
        self.one_way();
        self.is_above(delay, LEAST_AVERAGED);
        self.limit().is_none_or(|limit| delay <= limit)
    }

    /// Takes a delay into account. Whether it, or the mean where means count, exceeds the limit.
    fn is_above(&mut self, delay: i64, window: f64) -> bool {
        let counts = match self.rule {
            DelayRule::Relative { .. } => Some(delay),
            DelayRule::Averaged { packets, capped, .. } => {
                self.average.sample(delay);
                let fits = if capped { window.max(LEAST_AVERAGED) as usize } else { usize::MAX };
                self.average.mean(fits.min(packets as usize))
            }
        };
        if let Some(counts) = counts {
            Extremes::sample(&mut self.extremes, counts);
        }
        self.limit().zip(counts).is_some_and(|(limit, counts)| counts > limit)
    }

    fn one_way(&mut self) {
        if self.round_trips != Some(false) {
            self.round_trips = Some(false);
            self.extremes = None;
            self.average.clear();
        }
    }
}

fn as_i64(duration: Duration) -> i64 {
    i64::try_from(nanos(duration)).unwrap_or(i64::MAX)
}
