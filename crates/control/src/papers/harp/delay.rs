//! When the delays of a path signal congestion (Harp, III.D). A delay counts if it exceeds the
//! limit `Delta_i = dmin_i + (dmax_i - dmin_i) * delta`; dmin_i and dmax_i are the smallest and the
//! largest delay of the path.

use super::hir::{MIN_AVERAGED_PACKETS, Mean};
use super::options::DelayRule;
use crate::Acked;
use crate::detector::{ConsecutiveDelays, DelayedShare, Extremes};
use byway_wire::time::signed_nanos;
use byway_wire::{Duration, Instant};

/// The cap on the window, in packets, that is given to `ConsecutiveDelays` if only RTTs are
/// measured. A quarter of this window must be delayed samples in a row for a congestion signal. An
/// ACK for many packets is only one sample, so two must suffice.
const RTT_WINDOW_CAP_PACKETS: f64 = 8.0;

/// The delays of one path, and their extremes.
#[derive(Clone, Debug)]
pub(super) struct Delays {
    delta: f64,
    least_range: Duration,
    range: Option<Duration>,
    /// `dmin_i` and `dmax_i` in nanoseconds. HIR uses means, Harp single delays. `None`: there are
    /// no delays yet.
    extremes: Option<Extremes>,
    rule: DelaySignal,
    run: ConsecutiveDelays,
    /// Whether the samples are RTTs, because one-way delays are missing. Both are never mixed.
    round_trips: Option<bool>,
}

#[derive(Clone, Debug)]
enum DelaySignal {
    Harp(DelayedShare),
    Hir(Mean),
}

impl Delays {
    pub fn new(rule: DelayRule) -> Self {
        let (delta, least_range, range, rule) = match rule {
            DelayRule::Relative { delta, fraction, least_range, range } => {
                (delta, least_range, range, DelaySignal::Harp(DelayedShare::new(fraction)))
            }
            DelayRule::Averaged { delta, packets, capped, exponential, least_range } => {
                (delta, least_range, None, DelaySignal::Hir(Mean::new(packets, capped, exponential)))
            }
        };
        Self {
            delta,
            least_range,
            range,
            extremes: None,
            rule,
            run: ConsecutiveDelays::default(),
            round_trips: None,
        }
    }

    /// `Delta_i`. `None`: there are too few delays.
    fn limit(&self) -> Option<i64> {
        let Extremes { min, max } = self.extremes?;
        let range = self.range.map_or(max.saturating_sub(min), signed_nanos);
        (range >= signed_nanos(self.least_range))
            .then(|| min.saturating_add((range as f64 * self.delta) as i64))
    }

    /// `Delta_i` on the scale of one-way delays, for the receiver. `None`: the samples are RTTs.
    pub fn one_way_limit(&self) -> Option<i64> {
        if self.round_trips == Some(false) { self.limit() } else { None }
    }

    /// Whether the delays in an ACK signal congestion; `window` is the path's window in packets.
    /// Packets sent before `recover`, the time of the latest decrease, cause no signal: the window
    /// has already been decreased for their delays.
    pub fn on_acked(&mut self, acked: &Acked<'_>, window: f64, recover: Instant) -> bool {
        let mut signal = false;
        for delay in acked.delays {
            self.one_way();
            let above = self.is_above(delay.one_way, window);
            if delay.sent_at < recover {
                self.run.reset();
                continue;
            }
            signal |= match &mut self.rule {
                DelaySignal::Harp(share) => share.count(above, delay.sent_at, acked.now, window),
                DelaySignal::Hir(_) => above,
            };
        }
        if let (true, Some(rtt)) = (acked.delays.is_empty(), acked.rtt) {
            signal |= self.on_round_trip(rtt, acked.sent_at, window, recover);
        }
        signal
    }

    /// Whether the RTT of an ACK signals congestion, on a path without one-way delays. Two RTTs in
    /// a row above the delay limit are a signal. `window`: the path's window in packets. `recover`:
    /// packets sent before this time cause no signal.
    fn on_round_trip(&mut self, rtt: Duration, sent_at: Instant, window: f64, recover: Instant) -> bool {
        if *self.round_trips.get_or_insert(true) {
            let above = self.is_above(signed_nanos(rtt), window);
            if sent_at >= recover {
                return self.run.count(above, window.min(RTT_WINDOW_CAP_PACKETS));
            }
            self.run.reset();
        }
        false
    }

    /// Takes the delay of a probe, in nanoseconds, into account; a choked path sends only probes.
    /// Returns whether the path is free again: the probe "does not perceive delay greater than
    /// Delta_i" (Harp, III.E), the limit above which a delay signals congestion.
    pub fn probe(&mut self, delay: i64) -> bool {
        self.one_way();
        self.is_above(delay, MIN_AVERAGED_PACKETS);
        // In HIR too the single delay is compared, because a mean would include older delays.
        self.limit().is_none_or(|limit| delay <= limit)
    }

    /// Takes a delay into account. Returns whether it exceeds the limit; in HIR, whether the mean
    /// does.
    fn is_above(&mut self, delay: i64, window: f64) -> bool {
        let counts = match &mut self.rule {
            DelaySignal::Harp(_) => delay,
            DelaySignal::Hir(mean) => match mean.sample(delay, window) {
                Some(mean) => mean,
                None => return false,
            },
        };
        Extremes::sample(&mut self.extremes, counts);
        self.limit().is_some_and(|limit| counts > limit)
    }

    /// At the first one-way delay, discards the RTTs, which have another scale.
    fn one_way(&mut self) {
        if self.round_trips != Some(false) {
            self.round_trips = Some(false);
            self.extremes = None;
            if let DelaySignal::Hir(mean) = &mut self.rule {
                mean.clear();
            }
        }
    }
}
