//! Losses that come in bursts.

use crate::random::Random;

/// A line that alternates between a good and a bad state, with a loss probability for each state.
/// The model is Gilbert's ("Capacity of a burst-noise channel", 1960), as Elliott extended it
/// (1963). The state may change once per packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GilbertElliott {
    /// Probability per packet that a good line turns bad.
    pub to_bad: f64,
    /// Probability per packet that a bad line turns good; its inverse is the mean length of a bad
    /// spell in packets.
    pub to_good: f64,
    /// Probability that a packet is lost while the line is good.
    pub loss_good: f64,
    /// Probability that a packet is lost while the line is bad.
    pub loss_bad: f64,
}

impl GilbertElliott {
    /// A line that loses nothing while good and everything while bad. In the long run it loses the
    /// share `loss` of all packets, in runs of `length` packets on average. A `length` below 1
    /// counts as 1.
    #[must_use]
    pub fn of(loss: f64, length: f64) -> Self {
        let to_good = 1.0 / length.max(1.0);
        let loss = loss.clamp(0.0, 0.999_999);
        Self { to_bad: (to_good * loss / (1.0 - loss)).min(1.0), to_good, loss_good: 0.0, loss_bad: 1.0 }
    }

    /// The share of packets that is lost in the long run.
    #[must_use]
    pub fn mean(&self) -> f64 {
        let moves = self.to_bad + self.to_good;
        let bad = if moves > 0.0 { self.to_bad / moves } else { 0.0 };
        bad * self.loss_bad + (1.0 - bad) * self.loss_good
    }

    /// Moves on by a packet, which finds the line in the state it moved to. Whether the packet is
    /// lost.
    pub(super) fn loses(&self, bad: &mut bool, random: &mut Random) -> bool {
        let turns = random.chance(if *bad { self.to_good } else { self.to_bad });
        *bad ^= turns;
        random.chance(if *bad { self.loss_bad } else { self.loss_good })
    }
}
