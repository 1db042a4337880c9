//! Which changes of the RTT are noise. A change counts if it passes the error of its own
//! regression, or if the last intervals show a trend that is unusual. Rules and constants are those
//! of `pcc_utility_manager.cpp`.

use super::regression::Regression;

/// Intervals of which the trend is taken (`kRttHistoryLen`).
const TREND_INTERVALS: usize = 6;
/// Weight of a new value in an average (`kAlpha`).
const AVERAGE_GAIN: f64 = 0.1;
/// A trend this many times smaller than the smallest so far begins the averages again (`kBeta`).
const RESET_FACTOR: f64 = 100.0;
/// Deviations from the usual trend at which a trend counts (`kInflationToleranceGain`).
const TREND_DEVIATIONS: f64 = 2.0;
/// Deviations from the usual deviation of RTTs at which one counts.
const SPREAD_DEVIATIONS: f64 = 4.0;
/// The least deviation of RTTs that counts as unusual, in microseconds.
const MIN_SPREAD_MICROS: f64 = 1_000.0;
/// The averages of the deviation begin again if this share of the intervals had unusual ones
/// (`kTrendingResetIntervalRatio`).
const MAX_UNUSUAL_SHARE: f64 = 0.95;
/// Below this a trend or a deviation counts as none, in microseconds.
const MIN_TREND_MICROS: f64 = 1e-6;

/// The trend of an interval's RTTs, without noise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RttSignal {
    /// Seconds by which the RTT grows in a second.
    pub(super) gradient: f64,
    /// The standard deviation of the RTTs in seconds.
    pub(super) deviation: f64,
}

/// The usual trends on the path. Times are in microseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Noise {
    means: [f64; TREND_INTERVALS],
    count: usize,
    /// The trend: its average, its usual change, the last one and the smallest.
    trend: f64,
    trend_change: f64,
    last_trend: f64,
    min_trend: f64,
    /// The deviation of RTTs: its average, and how far it usually is from that.
    spread: f64,
    spread_change: f64,
    unusual_share: f64,
}

fn averaged(average: f64, value: f64) -> f64 {
    average + AVERAGE_GAIN * (value - average)
}

impl Noise {
    /// Takes in the RTTs of an interval, in microseconds by seconds.
    pub(super) fn signal(&mut self, rtts: &Regression) -> RttSignal {
        let (slope, spread) = (rtts.slope() / 1e6, rtts.deviation());
        let counts = rtts.error() / rtts.mean().max(1.0) < slope.abs();
        let (mut gradient_counts, mut deviation_counts) = (counts, counts);
        if rtts.count() >= 2 {
            self.means[self.count % TREND_INTERVALS] = rtts.mean();
            self.count += 1;
            if self.count >= TREND_INTERVALS {
                let trend = self.latest_trend();
                let is_unusual = self.is_unusual_trend(trend);
                gradient_counts |= is_unusual && trend > 0.0;
                deviation_counts |= is_unusual;
                deviation_counts |= self.is_unusual_spread(spread);
            }
        }
        RttSignal {
            gradient: if gradient_counts { slope.max(0.0) } else { 0.0 },
            deviation: if deviation_counts { spread / 1e6 } else { 0.0 },
        }
    }

    /// Returns the growth of the mean RTT from interval to interval.
    fn latest_trend(&self) -> f64 {
        let mut line = Regression::default();
        for (place, at) in (self.count..self.count + TREND_INTERVALS).enumerate() {
            line.add(place as f64, self.means[at % TREND_INTERVALS]);
        }
        line.slope()
    }

    fn is_unusual_trend(&mut self, trend: f64) -> bool {
        if self.min_trend < MIN_TREND_MICROS || trend.abs() < self.min_trend / RESET_FACTOR {
            (self.trend, self.trend_change) = (0.0, trend.abs());
            (self.last_trend, self.min_trend) = (trend, trend.abs());
            return false;
        }
        self.min_trend = self.min_trend.min(trend.abs());
        if (trend - self.trend).abs() > TREND_DEVIATIONS * self.trend_change {
            return true;
        }
        self.trend_change = averaged(self.trend_change, (trend - self.last_trend).abs());
        self.trend = averaged(self.trend, trend);
        self.last_trend = trend;
        false
    }

    fn is_unusual_spread(&mut self, spread: f64) -> bool {
        self.unusual_share *= 1.0 - AVERAGE_GAIN;
        let mut is_unusual = false;
        if self.spread < MIN_TREND_MICROS {
            (self.spread, self.spread_change) = (spread, spread / 2.0);
        } else if spread > self.spread + SPREAD_DEVIATIONS * self.spread_change && spread > MIN_SPREAD_MICROS
        {
            is_unusual = true;
            self.unusual_share += AVERAGE_GAIN;
        } else {
            self.spread_change = averaged(self.spread_change, (spread - self.spread).abs());
            self.spread = averaged(self.spread, spread);
        }
        if self.unusual_share > MAX_UNUSUAL_SHARE {
            (self.spread, self.spread_change, self.unusual_share) = (0.0, 0.0, 0.0);
        }
        is_unusual
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RTTs from `from` to `to` microseconds over 40 ms, each `noise` above or below the line.
    fn rtts(from: f64, to: f64, noise: f64) -> Regression {
        let mut rtts = Regression::default();
        for place in 0..40_u32 {
            let part = f64::from(place) / 40.0;
            let beside = if place % 2 == 0 { noise } else { -noise };
            rtts.add(part * 0.04, from + part * (to - from) + beside);
        }
        rtts
    }

    #[test]
    fn a_slope_counts_where_it_passes_its_error() {
        let clear = Noise::default().signal(&rtts(40_000.0, 44_000.0, 100.0));
        assert!((clear.gradient - 0.1).abs() < 0.01 && clear.deviation > 0.001, "{clear:?}");
        // .01 of a slope, and .0125 of an error.
        let noisy = Noise::default().signal(&rtts(40_000.0, 40_400.0, 500.0));
        assert_eq!(noisy, RttSignal { gradient: 0.0, deviation: 0.0 });
        let falls = Noise::default().signal(&rtts(44_000.0, 40_000.0, 100.0));
        assert!(falls.gradient <= 0.0 && falls.deviation > 0.001, "{falls:?}");
    }

    #[test]
    fn a_trend_of_six_intervals_counts_though_each_is_noisy() {
        let mut noise = Noise::default();
        let usual = |count: u32| rtts(40_000.0 + f64::from(count % 3) * 10.0, 40_000.0, 800.0);
        for count in 0..40 {
            let signal = noise.signal(&usual(count));
            assert_eq!(signal, RttSignal { gradient: 0.0, deviation: 0.0 }, "{count}");
        }
        let from = |count: u32| 40_000.0 + 300.0 * f64::from(count);
        let rising = (1..=6).map(|count| noise.signal(&rtts(from(count), from(count) + 300.0, 800.0)));
        assert!(rising.last().is_some_and(|signal| signal.gradient > 0.004 && signal.deviation > 0.0008));
    }

    #[test]
    fn an_unusual_spread_counts_and_becomes_usual() {
        let mut noise = Noise::default();
        for _ in 0..40 {
            noise.signal(&rtts(40_000.0, 40_000.0, 300.0));
        }
        let wide = |noise: &mut Noise| noise.signal(&rtts(40_000.0, 40_000.0, 3_000.0)).deviation;
        assert!((wide(&mut noise) - 0.003).abs() < 1e-6);
        for _ in 0..40 {
            wide(&mut noise);
        }
        assert!(wide(&mut noise) <= 0.0);
    }
}
