//! The state of the probe for bandwidth: the phase of the ACKs, and the result of the last probe
//! (2.14).

/// The phase of the packets whose ACKs arrive now (`ack_phase`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Feedback {
    /// No probe.
    Nothing,
    /// The path fills.
    Refilling,
    /// A probe began, and its first packets are not acknowledged yet.
    Starting,
    /// Packets of a probe.
    Probing,
    /// A probe ended, and its last packets are not acknowledged yet.
    Stopping,
}

/// The state of probing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    feedback: Feedback,
    samples: bool,
    too_high: bool,
    cautious: bool,
}

impl Probe {
    pub(super) const fn new() -> Self {
        Self { feedback: Feedback::Nothing, samples: false, too_high: false, cautious: false }
    }

    /// Whether losses count as losses of a probe.
    pub(super) const fn has_samples(&self) -> bool {
        self.samples
    }

    /// Whether the last probe lost too much. Then the next one is cautious.
    pub(super) const fn was_too_high(&self) -> bool {
        self.too_high
    }

    pub(super) const fn refill(&mut self) {
        (self.feedback, self.cautious) = (Feedback::Refilling, false);
    }

    pub(super) const fn start(&mut self) {
        (self.feedback, self.samples) = (Feedback::Starting, true);
    }

    pub(super) const fn stop(&mut self) {
        self.feedback = Feedback::Stopping;
    }

    /// Notes that the probe lost too much. A probe is judged once.
    pub(super) const fn lose(&mut self) {
        (self.too_high, self.samples) = (true, false);
    }

    /// The probe ends without having lost too much so far. `cautious`: where the one before did.
    pub(super) const fn pass(&mut self, cautious: bool) {
        (self.too_high, self.cautious) = (false, cautious);
    }

    /// A round begins. Whether the ACKs of the last probe are all there.
    pub(super) fn begin_round(&mut self) -> bool {
        match self.feedback {
            Feedback::Starting => self.feedback = Feedback::Probing,
            Feedback::Stopping => {
                (self.feedback, self.samples) = (Feedback::Nothing, false);
                return true;
            }
            _ => {}
        }
        false
    }

    /// Whether a cautious probe lost little, so that a whole one may follow at once (5.3.3.4.2).
    pub(super) const fn may_repeat(&self) -> bool {
        self.cautious && !self.too_high
    }
}
