//! The short-term model: what the path delivers now, by the losses of this cycle (5.5.10.3).

/// The share of the rate and of the volume that stays at least after a round with losses (2.8,
/// `Beta`).
const LOSS_KEEP_SHARE: f64 = 0.7;

/// Bounds that losses set, until the next REFILL. Rates in bytes per second, volumes in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShortTerm {
    /// Infinite: there is no bound.
    rate: f64,
    volume: f64,
    /// The largest delivery rate, and the most delivered within an RTT, of this round.
    latest_rate: f64,
    latest_volume: f64,
    lossy: bool,
}

impl ShortTerm {
    pub(super) const fn new() -> Self {
        let (rate, volume) = (f64::INFINITY, f64::INFINITY);
        Self { rate, volume, latest_rate: 0.0, latest_volume: 0.0, lossy: false }
    }

    pub(super) const fn rate(&self) -> f64 {
        self.rate
    }

    pub(super) const fn volume(&self) -> f64 {
        self.volume
    }

    pub(super) const fn latest_volume(&self) -> f64 {
        self.latest_volume
    }

    /// Adds a sample of the delivery rate, and of the bytes delivered since a packet was sent.
    pub(super) const fn sample(&mut self, rate: f64, delivered: f64) {
        self.latest_rate = self.latest_rate.max(rate);
        self.latest_volume = self.latest_volume.max(delivered);
    }

    /// Notes a loss. Whether it is the first of the round.
    pub(super) const fn note_loss(&mut self) -> bool {
        let first = !self.lossy;
        self.lossy = true;
        first
    }

    /// Ends a round. With `bounds`, the long-term rate and the window, a loss in it lowers the
    /// bounds toward the delivered amounts.
    pub(super) fn end_round(&mut self, bounds: Option<(f64, f64)>) {
        if let Some((rate, volume)) = bounds.filter(|_| self.lossy) {
            let kept = |bound: f64, usual: f64, latest: f64| {
                latest.max(LOSS_KEEP_SHARE * if bound.is_finite() { bound } else { usual })
            };
            self.rate = kept(self.rate, rate, self.latest_rate);
            self.volume = kept(self.volume, volume, self.latest_volume);
        }
        self.lossy = false;
    }

    /// The next round begins with this sample.
    pub(super) const fn begin_round(&mut self, rate: f64, delivered: f64) {
        (self.latest_rate, self.latest_volume) = (rate, delivered);
    }

    /// Forgets the measurements of this round (`ResetCongestionSignals`).
    pub(super) const fn forget_round(&mut self) {
        (self.latest_rate, self.latest_volume, self.lossy) = (0.0, 0.0, false);
    }

    /// Lifts the bounds (`ResetShortTermModel`).
    pub(super) const fn lift(&mut self) {
        (self.rate, self.volume) = (f64::INFINITY, f64::INFINITY);
    }

    /// Restores the bounds of `before`, if they were wider.
    pub(super) const fn restore(&mut self, before: &Self) {
        self.rate = self.rate.max(before.rate);
        self.volume = self.volume.max(before.volume);
        self.lossy = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_with_losses_takes_three_tenths_at_most() {
        let mut model = ShortTerm::new();
        model.sample(50.0, 900.0);
        model.end_round(Some((100.0, 1_000.0)));
        assert!(model.rate().is_infinite(), "no loss");
        assert!(model.note_loss() && !model.note_loss());
        model.end_round(Some((100.0, 1_000.0)));
        assert_eq!((model.rate() as u32, model.volume() as u32), (70, 900));
        model.begin_round(60.0, 100.0);
        model.note_loss();
        model.end_round(Some((100.0, 1_000.0)));
        assert_eq!((model.rate() as u32, model.volume() as u32), (60, 630));
        model.note_loss();
        model.end_round(None);
        assert_eq!(model.rate() as u32, 60, "it looks for more: its own loss tells nothing here");
        model.lift();
        assert!(model.rate().is_infinite() && model.volume().is_infinite());
    }
}
