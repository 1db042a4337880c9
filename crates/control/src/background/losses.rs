//! What part of the packets of one path is lost.

use super::constants::{CONGESTION_LOSS_SHARE, LOSS_MEMORY_PACKETS};

/// Packets acknowledged and lost, old ones with less weight.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LossRate {
    arrived: f64,
    lost: f64,
}

impl LossRate {
    pub fn on_acked(&mut self, packets: f64) {
        let kept = libm::exp(-packets / LOSS_MEMORY_PACKETS);
        self.arrived = self.arrived * kept + packets;
        self.lost *= kept;
    }

    pub fn on_lost(&mut self, packets: f64) {
        self.lost += packets;
    }

    /// Whether more packets are lost than chance explains: more than 2 % (`CONGESTION_LOSS_SHARE`)
    /// of the arrived packets. Below 250 arrived packets (`LOSS_MEMORY_PACKETS / 2`), the limit
    /// stays 2 % of 250, because the loss rate of few packets is uncertain.
    pub fn are_often(&self) -> bool {
        self.lost > CONGESTION_LOSS_SHARE * self.arrived.max(LOSS_MEMORY_PACKETS / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(every: u32) -> LossRate {
        let mut losses = LossRate::default();
        for packet in 1..=10 * LOSS_MEMORY_PACKETS as u32 {
            losses.on_acked(1.0);
            losses.on_lost(if packet.is_multiple_of(every) { 1.0 } else { 0.0 });
        }
        losses
    }

    #[test]
    fn one_in_a_hundred_is_chance_and_one_in_thirty_is_not() {
        assert!(!lost(100).are_often());
        assert!(lost(30).are_often());
    }

    #[test]
    fn a_first_loss_is_not_often_and_losses_are_forgotten() {
        let mut losses = LossRate::default();
        losses.on_lost(1.0);
        assert!(!losses.are_often());
        let mut losses = lost(30);
        losses.on_acked(LOSS_MEMORY_PACKETS);
        assert!(!losses.are_often());
    }
}
