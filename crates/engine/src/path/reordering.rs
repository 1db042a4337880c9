//! The limits of reordering: beyond them, a hole in a path's packet numbers counts as a loss. The
//! limits are a number of later packets and a time. The receiver reports holes beyond either limit.
//! Without a report, the sender applies such limits itself.

use crate::config::Pnack;
use byway_wire::Duration;

/// Later packets that make a hole a loss, as long as none came late (RFC 9002 section 6.1.1).
pub const REORDER_PACKETS: u64 = 3;
/// The most later packets that make a hole a loss, on a path that reorders.
const MAX_REORDER_PACKETS: u64 = 300;
/// A path that delivered some packets late waits longer before packets count as lost. The
/// additional time is at most this constant, or two RTTs if they are longer. RFC 8985 section 6.2
/// allows one RTT. Radio links delay packets by tens of milliseconds.
const MAX_LATENESS: Duration = Duration::from_millis(60);

/// The delay by which packets that were believed lost arrived late, plus a quarter for later ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReorderDelay(Duration);

impl ReorderDelay {
    /// The delay to wait for reordered packets.
    #[must_use]
    pub const fn wait(self) -> Duration {
        self.0
    }

    /// The longest delay on a path with this RTT.
    #[must_use]
    pub fn most(rtt: Duration) -> Duration {
        (rtt * 2).max(MAX_LATENESS)
    }

    /// Notes that a packet arrived `late` after later ones, on a path with this RTT.
    pub fn learn(&mut self, late: Duration, rtt: Duration) {
        self.0 = self.0.max(late + late / 4).min(Self::most(rtt));
    }
}

/// The rule by which a receiver judges holes as lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReorderTolerance {
    packets: u64,
    most_packets: u64,
    lateness: ReorderDelay,
}

impl ReorderTolerance {
    /// The initial tolerance of `rule`.
    #[must_use]
    pub const fn new(rule: Pnack) -> Self {
        let (packets, most_packets) = match rule {
            Pnack::Patient => (REORDER_PACKETS, MAX_REORDER_PACKETS),
            Pnack::FirstGap => (0, 0),
        };
        Self { packets, most_packets, lateness: ReorderDelay(Duration::ZERO) }
    }

    /// Returns the number of later packets that make a hole a loss.
    #[must_use]
    pub const fn packets(&self) -> u64 {
        self.packets
    }

    /// The time after which a hole is a loss. `usual` is that time on paths without late packets.
    #[must_use]
    pub fn patience(&self, usual: Duration) -> Duration {
        usual.max(self.lateness.wait())
    }

    /// A packet that was judged lost came: `behind` other packets, and `late`, on a path of this
    /// RTT.
    pub fn learn(&mut self, behind: u64, late: Duration, rtt: Duration) {
        self.packets = self.packets.max(behind + 1).min(self.most_packets);
        self.lateness.learn(late, rtt);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn late_packets_teach_patience_within_bounds() {
        let mut tolerance = ReorderTolerance::new(Pnack::Patient);
        assert_eq!((tolerance.packets(), tolerance.patience(5 * MS)), (REORDER_PACKETS, 5 * MS));
        tolerance.learn(7, 16 * MS, 10 * MS);
        assert_eq!((tolerance.packets(), tolerance.patience(5 * MS)), (8, 20 * MS));
        tolerance.learn(1, MS, 10 * MS);
        assert_eq!((tolerance.packets(), tolerance.patience(30 * MS)), (8, 30 * MS));
        tolerance.learn(9_000, 900 * MS, 40 * MS);
        assert_eq!((tolerance.packets(), tolerance.patience(MS)), (MAX_REORDER_PACKETS, 80 * MS));
    }

    #[test]
    fn who_takes_the_first_gap_for_a_loss_learns_no_patience() {
        let mut tolerance = ReorderTolerance::new(Pnack::FirstGap);
        tolerance.learn(7, MS, 10 * MS);
        assert_eq!(tolerance.packets(), 0);
    }
}
