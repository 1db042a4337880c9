//! The round-trip time of a path, estimated as in RFC 6298, with a minimum over a window of time.
//! The estimate starts afresh when ACKs come back by another path, because a sample includes the
//! way back.

use byway_wire::{Duration, Instant, PathId};

/// The assumed RTT before the first sample. RFC 9002 (section 6.2.2) says 333 ms, but the handshake
/// usually gives a sample.
const INITIAL_RTT: Duration = Duration::from_millis(250);
/// Timer granularity (RFC 9002 section 6.1.2).
const TIMER_GRANULARITY: Duration = Duration::from_millis(1);
/// Time for which a minimum RTT is valid before it must be measured again.
const MIN_WINDOW: Duration = Duration::from_secs(30);

/// The estimate of a path's RTT.
#[derive(Clone, Debug)]
pub struct Rtt {
    sampled: bool,
    /// Whether the smoothed RTT goes back to a measurement, and is not assumed.
    is_measured: bool,
    smoothed: Duration,
    variation: Duration,
    latest: Duration,
    way: Option<PathId>,
    minimum: Duration,
    /// The smallest sample of the current half window, and since when: takes over when the minimum
    /// grows old.
    candidate: Duration,
    half_began: Instant,
}

impl Rtt {
    /// An estimate that begins with the RTT of the handshake or a probe. `None`: none was measured.
    #[must_use]
    pub fn new(first: Option<Duration>) -> Self {
        let assumed = first.unwrap_or(INITIAL_RTT);
        Self {
            sampled: false,
            is_measured: first.is_some(),
            smoothed: assumed,
            variation: assumed / 2,
            latest: assumed,
            way: None,
            minimum: assumed,
            candidate: assumed,
            half_began: Instant::ZERO,
        }
    }

    /// Adds a sample whose ACK came back by path `way`. Returns whether this path differs from the
    /// previous one.
    pub fn sample(&mut self, now: Instant, rtt: Duration, way: PathId) -> bool {
        let changed = self.way.is_some_and(|before| before != way);
        self.way = Some(way);
        self.latest = rtt;
        if !self.sampled || changed {
            (self.sampled, self.is_measured) = (true, true);
            (self.smoothed, self.variation) = (rtt, rtt / 2);
            (self.minimum, self.candidate, self.half_began) = (rtt, rtt, now);
            return changed;
        }
        let error = self.smoothed.abs_diff(rtt);
        self.variation = (self.variation * 3 + error) / 4;
        self.smoothed = (self.smoothed * 7 + rtt) / 8;
        self.minimum = self.minimum.min(rtt);
        self.candidate = self.candidate.min(rtt);
        if now.since(self.half_began) > MIN_WINDOW / 2 {
            self.minimum = self.candidate;
            (self.candidate, self.half_began) = (rtt, now);
        }
        false
    }

    /// Forgets everything: the route changed.
    pub fn reset(&mut self) {
        *self = Self { is_measured: self.is_measured, ..Self::new(Some(self.smoothed)) };
    }

    /// Whether a sample was taken.
    #[must_use]
    pub const fn is_sampled(&self) -> bool {
        self.sampled
    }

    /// Smoothed RTT.
    #[must_use]
    pub const fn smoothed(&self) -> Duration {
        self.smoothed
    }

    /// The mean deviation of the RTT (RFC 9002 section 5.3: `rttvar`).
    #[cfg(feature = "studies")]
    #[must_use]
    pub const fn variation(&self) -> Duration {
        self.variation
    }

    /// Smoothed RTT. `None`: none of the path was measured, by a handshake, a probe or
    /// an ACK.
    #[must_use]
    pub fn measured(&self) -> Option<Duration> {
        self.is_measured.then_some(self.smoothed)
    }

    /// The smallest RTT of about the last half minute.
    #[must_use]
    pub const fn minimum(&self) -> Duration {
        self.minimum
    }

    /// Returns the larger of the last sample and the smoothed RTT, for loss detection.
    #[must_use]
    pub fn conservative(&self) -> Duration {
        self.smoothed.max(self.latest)
    }

    /// Returns the time to wait for an ACK before a probe: RFC 9002 section 6.2.1, with the peer's
    /// longest delay of an ACK.
    #[must_use]
    pub fn probe_timeout(&self, ack_delay: Duration) -> Duration {
        self.smoothed + (self.variation * 4).max(TIMER_GRANULARITY) + ack_delay
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAY: PathId = PathId(0);

    #[test]
    fn smooths_like_rfc_6298() {
        let mut rtt = Rtt::new(None);
        assert_eq!(rtt.measured(), None, "what is assumed is not told");
        assert!(!rtt.sample(Instant::ZERO, Duration::from_millis(100), WAY));
        assert_eq!(rtt.smoothed(), Duration::from_millis(100));
        assert_eq!(rtt.probe_timeout(Duration::ZERO), Duration::from_millis(300));
        rtt.sample(Instant::from_millis(100), Duration::from_millis(180), WAY);
        assert_eq!(rtt.smoothed(), Duration::from_millis(110));
        assert_eq!(rtt.variation, Duration::from_micros(57_500));
    }

    #[test]
    fn another_way_back_starts_afresh() {
        let mut rtt = Rtt::new(None);
        rtt.sample(Instant::ZERO, Duration::from_millis(20), WAY);
        assert!(rtt.sample(Instant::from_millis(50), Duration::from_millis(90), PathId(1)));
        assert_eq!((rtt.smoothed(), rtt.minimum()), (Duration::from_millis(90), Duration::from_millis(90)));
    }

    #[test]
    fn an_old_minimum_is_given_up() {
        let mut rtt = Rtt::new(None);
        rtt.sample(Instant::ZERO, Duration::from_millis(20), WAY);
        for second in 1..50 {
            rtt.sample(Instant::from_millis(second * 1000), Duration::from_millis(60), WAY);
        }
        assert_eq!(rtt.minimum(), Duration::from_millis(60));
    }
}
