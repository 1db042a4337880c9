//! The long-term model: the most that may be in flight, by the losses of probes (5.5.10.2).

/// The share of the bytes in flight that a probe may lose (2.8, `LossThresh`).
const MAX_LOSS_SHARE: f64 = 0.02;
/// The share of the target that stays at least after a probe with too many losses (2.8, `Beta`).
const PROBE_KEEP_SHARE: f64 = 0.7;
/// The share that is left for other flows while cruising (2.8, `Headroom`).
const HEADROOM_SHARE: f64 = 0.15;
/// Doublings of the growth in one probe, at most.
const MAX_DOUBLINGS: u32 = 30;

/// Whether losing `lost` of `in_flight` bytes is too much.
pub(super) fn is_too_lossy(lost: f64, in_flight: f64) -> bool {
    lost > in_flight * MAX_LOSS_SHARE
}

/// The bytes in flight at which the losses passed the threshold. `burst` bytes of `lost` were lost
/// together, the last of `in_flight` (`InflightAtLoss`).
pub(super) fn in_flight_at_loss(lost: f64, in_flight: f64, burst: f64) -> f64 {
    let (flight_before, lost_before) = ((in_flight - burst).max(0.0), (lost - burst).max(0.0));
    let prefix = (MAX_LOSS_SHARE * flight_before - lost_before) / (1.0 - MAX_LOSS_SHARE);
    flight_before + prefix.clamp(0.0, burst)
}

/// The bound of the bytes in flight, and its growth in UP.
#[derive(Clone, Copy, Debug)]
pub(super) struct LongTerm {
    /// Infinite: no probe lost too much.
    volume: f64,
    /// Bytes acknowledged since the bound grew, and the number of bytes that let it grow by a
    /// packet.
    acked: f64,
    acked_per_packet: f64,
    doublings: u32,
}

impl LongTerm {
    pub(super) const fn new() -> Self {
        Self { volume: f64::INFINITY, acked: 0.0, acked_per_packet: f64::INFINITY, doublings: 0 }
    }

    pub(super) const fn volume(&self) -> f64 {
        self.volume
    }

    /// Returns the bound minus the headroom for other flows, at least `least`
    /// (`InflightWithHeadroom`).
    pub(super) const fn with_headroom(&self, packet: f64, least: f64) -> f64 {
        if self.volume.is_infinite() {
            return self.volume;
        }
        (self.volume - packet.max(HEADROOM_SHARE * self.volume)).max(least)
    }

    /// Lowers the bound after a probe with `in_flight` bytes lost too much. `target`: the bytes in
    /// flight that the flow wants.
    pub(super) fn lower(&mut self, in_flight: f64, target: f64) {
        self.volume = in_flight.max(PROBE_KEEP_SHARE * target);
    }

    /// STARTUP lost too much: `volume` is safe.
    pub(super) const fn set(&mut self, volume: f64) {
        self.volume = volume;
    }

    /// A packet was delivered that was sent with `in_flight` bytes, and few were lost.
    pub(super) const fn admit(&mut self, in_flight: f64) {
        if self.volume.is_finite() {
            self.volume = self.volume.max(in_flight);
        }
    }

    /// REFILL begins: the next probe grows as slowly as the first.
    pub(super) const fn refill(&mut self) {
        (self.acked, self.doublings) = (0.0, 0);
    }

    /// The bound does not grow (`StartProbeBW_DOWN`).
    pub(super) const fn hold(&mut self) {
        self.acked_per_packet = f64::INFINITY;
    }

    /// A round of UP begins: the bound grows by twice as many packets as in the round before.
    pub(super) fn steepen(&mut self, window: f64, packet: f64) {
        let packets = f64::from(1_u32 << self.doublings);
        self.doublings = (self.doublings + 1).min(MAX_DOUBLINGS);
        self.acked_per_packet = (window / packets).max(packet);
    }

    /// Raises the bound after `bytes` were acknowledged while it limited the amount sent.
    pub(super) fn grow(&mut self, bytes: f64, packet: f64) {
        self.acked += bytes;
        if self.acked >= self.acked_per_packet {
            let packets = libm::floor(self.acked / self.acked_per_packet);
            self.acked -= packets * self.acked_per_packet;
            self.volume += packets * packet;
        }
    }

    /// Restores the bound of `before`, if it was wider.
    pub(super) const fn restore(&mut self, before: &Self) {
        self.volume = self.volume.max(before.volume);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn the_bound_grows_by_one_packet_in_the_first_round_then_two_then_four() {
        let mut model = LongTerm::new();
        model.set(100.0);
        let mut grown = Vec::new();
        for _ in 0..4 {
            model.steepen(100.0, 1.0);
            let before = model.volume();
            (0..100).for_each(|_| model.grow(1.0, 1.0));
            grown.push((model.volume() - before) as u32);
        }
        assert_eq!(grown, [1, 2, 4, 8]);
        model.refill();
        model.hold();
        model.grow(1e9, 1.0);
        assert_eq!(model.volume() as u32, 115);
    }

    #[test]
    fn two_percent_are_the_most_that_a_probe_may_lose() {
        assert!(!is_too_lossy(2.0, 100.0) && is_too_lossy(2.1, 100.0));
        // 0 of 90 were lost, then 10 in a row. After 1.84 of these the share is 2 %.
        let at = in_flight_at_loss(10.0, 100.0, 10.0);
        assert!((at - 91.837).abs() < 0.001, "{at}");
        let mut model = LongTerm::new();
        model.lower(at, 100.0);
        assert_eq!(model.volume() as u32, 91);
        model.lower(10.0, 100.0);
        assert_eq!(model.volume() as u32, 70, "CUBIC keeps seven tenths too");
        assert!((model.with_headroom(1.0, 4.0) - 59.5).abs() < 1e-9);
        assert!((model.with_headroom(20.0, 4.0) - 50.0).abs() < 1e-9, "a packet at least");
    }
}
