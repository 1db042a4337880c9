//! What the losses of one path tell: what part of its packets is lost, and how deep the queue is
//! then.

use super::constants::{
    CONGESTION_LOSS_SHARE, LOSS_DEPTH_SHARE, LOSS_DEPTH_SPREADS, LOSS_MEMORY_PACKETS, MIN_QUEUE_DELAY,
};
use byway_wire::time::signed_nanos;

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

/// What packets wait around losses, compared with all packets. Where packets around losses wait
/// longer, a full queue drops them. Where they wait as others do, the line loses them by chance.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LossDepth {
    /// What packets wait on average, in nanoseconds.
    mean: f64,
    /// What the packets around losses wait on average, in nanoseconds.
    at_loss: f64,
    losses: u32,
}

impl LossDepth {
    /// Losses before anything is said.
    const MIN_LOSSES: u32 = 4;
    /// Losses over which the wait around them is averaged.
    const MEMORY_LOSSES: u32 = 16;

    /// A packet waited this many nanoseconds.
    pub fn sample(&mut self, waited: i64) {
        self.mean += (waited as f64 - self.mean) / LOSS_MEMORY_PACKETS;
    }

    /// A packet was lost, and those around it waited this many nanoseconds.
    pub fn on_lost(&mut self, waited: i64) {
        self.losses = self.losses.saturating_add(1);
        self.at_loss += (waited as f64 - self.at_loss) / f64::from(self.losses.min(Self::MEMORY_LOSSES));
    }

    /// The wait from which on a queue is likely to fill up, in nanoseconds. `None`: losses do not
    /// depend on waits. `spread`: how far waits usually are from each other.
    pub fn limit(&self, spread: f64) -> Option<i64> {
        let depth = self.at_loss - self.mean;
        let noise = spread.max(signed_nanos(MIN_QUEUE_DELAY) as f64 / 2.0);
        let tells = self.losses >= Self::MIN_LOSSES && depth >= LOSS_DEPTH_SPREADS * noise;
        tells.then_some((self.mean + LOSS_DEPTH_SHARE * depth) as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_is_told_from_chance() {
        const MS: i64 = 1_000_000;
        // The queue grows to 8 ms and empties, under jitter.
        let run = |lost: fn(i64) -> bool| {
            let mut depth = LossDepth::default();
            for packet in 0..20_000_i64 {
                let waited = packet % 100 * 8 * MS / 100 + packet * 7919 % 1_000 * MS / 1_000;
                depth.sample(waited);
                if lost(packet) {
                    depth.on_lost(waited);
                }
            }
            depth.limit(MS as f64)
        };
        let full = run(|packet| packet % 100 == 99).expect("a limit");
        assert!((5 * MS..8 * MS).contains(&full), "{full}");
        assert_eq!(run(|packet| packet % 97 == 0), None);
        assert_eq!(run(|packet| packet == 99), None);
    }

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
