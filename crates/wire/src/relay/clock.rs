//! A host's copy of a relay's clock. Each packet to a relay carries the time of the relay's clock,
//! so the host's own clock need not be right. A host learns the relay's time from the answer to a
//! greeting.

use crate::time::Instant;

/// An estimate of a relay's clock from the local clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelayClock {
    unix_millis: u64,
    at: Instant,
}

impl RelayClock {
    /// The relay's clock shows `unix_millis` (ms of Unix time) at `at`.
    #[must_use]
    pub const fn new(unix_millis: u64, at: Instant) -> Self {
        Self { unix_millis, at }
    }

    /// Learns the relay's clock from a greeting that was sent at `sent` and answered at `received`
    /// with `unix_millis`. The relay is assumed to write its time half a round trip before
    /// `received`. The error is at most this half round trip.
    #[must_use]
    pub const fn learn(unix_millis: u64, sent: Instant, received: Instant) -> Self {
        let half_millis = received.since(sent).as_millis() as u64 / 2; // a Duration of an Instant's range fits
        Self { unix_millis: unix_millis.saturating_add(half_millis), at: received }
    }

    /// The relay's time at `now`, in ms of Unix time.
    #[must_use]
    pub const fn unix_millis(&self, now: Instant) -> u64 {
        let millis = now.signed_nanos_since(self.at) / 1_000_000;
        self.unix_millis.saturating_add_signed(millis)
    }

    /// The relay's time at `now`, in whole seconds of Unix time.
    #[must_use]
    pub const fn unix(&self, now: Instant) -> u64 {
        self.unix_millis(now) / 1_000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_round_trip_is_added_and_time_goes_on() {
        let clock =
            RelayClock::learn(1_800_000_000_000, Instant::from_millis(100), Instant::from_millis(300));
        assert_eq!(clock.unix_millis(Instant::from_millis(300)), 1_800_000_000_100);
        assert_eq!(clock.unix(Instant::from_millis(1_200)), 1_800_000_001);
        assert_eq!(clock.unix_millis(Instant::from_millis(200)), 1_800_000_000_000);
    }
}
