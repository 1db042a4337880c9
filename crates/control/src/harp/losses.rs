//! What share of the packets of one path is lost.

/// The share of losses of those that are counted since the latest decrease is taken over so many packets at least.
const SPAN: f64 = 200.0;
/// What is remembered beyond that: half of the packets are forgotten when there are so many.
const MEMORY: f64 = 2_000.0;
/// Of fewer than so many packets no share is known: a first loss would pass for a frequent one.
const KNOWN: f64 = 400.0;

/// Losses since the latest decrease, and in the long run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Losses {
    seen: f64,
    lost: f64,
    long_seen: f64,
    long_lost: f64,
}

impl Losses {
    pub fn on_acked(&mut self, packets: f64) {
        self.seen += packets;
        if self.seen > 2.0 * SPAN {
            (self.seen, self.lost) = (self.seen / 2.0, self.lost / 2.0);
        }
        self.long_seen += packets;
        if self.long_seen > MEMORY {
            (self.long_seen, self.long_lost) = (self.long_seen / 2.0, self.long_lost / 2.0);
        }
    }

    pub fn on_lost(&mut self, packets: f64) {
        self.lost += packets;
        self.long_lost += packets;
    }

    /// The window was decreased: what was lost before has been answered.
    pub const fn answered(&mut self) {
        (self.seen, self.lost) = (0.0, 0.0);
    }

    /// Whether more than this share was lost since the latest decrease.
    pub fn exceed(&self, share: f64) -> bool {
        self.lost > share * self.seen.max(SPAN)
    }

    /// The share lost in the long run, over one to two thousand packets once there were so many.
    pub fn share(&self) -> f64 {
        self.long_lost / self.long_seen.max(KNOWN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_seen_at_once_and_forgotten_when_answered() {
        let mut losses = Losses::default();
        losses.on_acked(1_000.0);
        losses.on_lost(4.0);
        assert!(!losses.exceed(0.02));
        losses.on_lost(8.0);
        assert!(losses.exceed(0.02));
        losses.answered();
        assert!(!losses.exceed(0.02));
    }

    #[test]
    fn the_share_in_the_long_run_survives_decreases_and_follows_the_line() {
        let mut losses = Losses::default();
        losses.on_lost(1.0);
        assert!(losses.share() <= 0.0025, "one loss is none that is frequent");
        for hundred in 0..200 {
            losses.on_acked(99.5);
            losses.on_lost(0.5);
            if hundred % 7 == 0 {
                losses.answered();
            }
        }
        assert!((losses.share() - 0.005).abs() < 0.0005, "{}", losses.share());
        losses.on_acked(20_000.0);
        for _ in 0..100 {
            losses.on_acked(100.0);
        }
        assert!(losses.share() < 0.0005, "{}", losses.share());
    }
}
