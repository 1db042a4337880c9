//! Which relays are good enough (mPath, sections 2.1 and 2.2). A probe must be answered within a
//! limit that follows the direct path's RTT.

use crate::config::Tau;
use byway_wire::{Duration, Instant};

/// The detour that is never too far. On a short direct path, twice its RTT would exclude every
/// relay.
const ALLOWED_DETOUR: Duration = Duration::from_millis(20);
/// Half of the minimum's window: an RTT counts for this time at least, and for twice this time at
/// most.
const HALF_WINDOW: Duration = Duration::from_secs(30);

/// Returns the RTT within which a probe must be answered (mPath's τ), where RTT₀ is `rtt`.
/// Literally it is 2 RTT₀.
pub(super) fn limit(rule: Tau, rtt: Duration) -> Duration {
    match rule {
        Tau::Direct(percent) => rtt * percent / 100,
        Tau::Adaptive => (rtt * 2).max(rtt + ALLOWED_DETOUR),
        Tau::AtLeast(least) => (rtt * 2).max(least),
    }
}

/// The smallest RTT of the last minute (RTT₀ in mPath).
#[derive(Clone, Copy, Debug)]
pub(super) struct MinRtt {
    began: Option<Instant>,
    now: Option<Duration>,
    before: Option<Duration>,
}

impl MinRtt {
    pub const NONE: Self = Self { began: None, now: None, before: None };

    /// Notes the direct path's present least RTT.
    pub fn note(&mut self, now: Instant, rtt: Duration) {
        let began = *self.began.get_or_insert(now);
        if now.since(began) >= HALF_WINDOW {
            self.began = Some(now);
            self.before = if now.since(began) < HALF_WINDOW * 2 { self.now } else { None };
            self.now = None;
        }
        self.now = Some(self.now.map_or(rtt, |least| least.min(rtt)));
    }

    /// Returns the smallest RTT of the last minute, if there is one.
    pub fn get(&self, now: Instant) -> Option<Duration> {
        let fresh = self.began.is_some_and(|began| now.since(began) < HALF_WINDOW * 2);
        let least = [self.now, self.before].into_iter().flatten().min();
        least.filter(|_| fresh)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_twice_the_direct_rtt_and_never_excludes_a_short_detour() {
        let ms = Duration::from_millis;
        assert_eq!(limit(Tau::Adaptive, ms(100)), ms(200));
        assert_eq!(limit(Tau::Adaptive, ms(5)), ms(25));
        assert_eq!(limit(Tau::Direct(200), ms(5)), ms(10), "literal");
        assert_eq!(limit(Tau::AtLeast(ms(4_000)), ms(5)), ms(4_000));
    }

    #[test]
    fn an_rtt_counts_for_about_a_minute() {
        let (at, ms) = (Instant::from_millis, Duration::from_millis);
        let mut least = MinRtt::NONE;
        assert_eq!(least.get(at(0)), None);
        least.note(at(0), ms(40));
        least.note(at(10_000), ms(70));
        assert_eq!(least.get(at(10_000)), Some(ms(40)));
        least.note(at(31_000), ms(90));
        assert_eq!(least.get(at(31_000)), Some(ms(40)));
        least.note(at(62_000), ms(80));
        assert_eq!(least.get(at(62_000)), Some(ms(80)));
        assert_eq!(least.get(at(200_000)), None, "nothing was noted for long");
    }
}
