//! How much work strangers may cause. A HELLO is answered with multiplications on the curve: nothing costs more of what nobody
//! has to prove anything for, and who forges HELLOs that fit no key pays nothing for it.

use byway_wire::{Duration, Instant};

/// Time that must pass for each HELLO computed on: 200 a second are a few hundredths of a core.
const PACE: Duration = Duration::from_millis(5);
/// So many at once before cookies are asked for.
const BURST: u32 = 64;
/// So many more, of senders that showed that they receive at their address, before none is computed on.
const MOST: u32 = 1_024;

/// What to do with a HELLO that nobody has looked into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Care {
    /// Compute.
    None,
    /// Compute if its sender shows a cookie.
    Cookie,
    /// Drop it.
    Drop,
}

/// A meter of HELLOs computed on: a leaky bucket as one point in time.
#[derive(Debug, Default)]
pub(super) struct Effort {
    /// When it is empty.
    rested_at: Instant,
}

impl Effort {
    /// What there is room for.
    pub(super) fn care(&self, now: Instant) -> Care {
        let debt = self.rested_at.since(now);
        if debt < PACE * BURST {
            Care::None
        } else if debt < PACE * (BURST + MOST) {
            Care::Cookie
        } else {
            Care::Drop
        }
    }

    /// One was computed on.
    pub(super) fn spend(&mut self, now: Instant) {
        self.rested_at = self.rested_at.max(now) + PACE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_free_then_cookies_then_nothing_and_rest_helps() {
        let mut effort = Effort::default();
        let mut now = Instant::from_millis(1_000);
        for spent in 0..BURST + MOST {
            assert_eq!(effort.care(now), if spent < BURST { Care::None } else { Care::Cookie });
            effort.spend(now);
        }
        assert_eq!(effort.care(now), Care::Drop);
        now += PACE;
        assert_eq!(effort.care(now), Care::Cookie);
        now += PACE * MOST;
        assert_eq!(effort.care(now), Care::None);
    }
}
