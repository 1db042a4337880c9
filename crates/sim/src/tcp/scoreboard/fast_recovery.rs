//! Fast recovery without SACK: Reno (RFC 2581) and NewReno (RFC 6582). Three duplicate ACKs tell of
//! a loss, and NewReno takes a partial ACK for a further one.

use crate::tcp::options::PartialAck;

/// Later arrivals that make a loss (RFC 6675, DupThresh).
pub(super) const DUP_THRESH: u32 = 3;

/// The state of a recovery.
#[derive(Clone, Debug)]
pub(super) struct FastRecovery {
    /// The reaction to a partial ACK.
    partial_ack: PartialAck,
    /// Duplicate ACKs, each a segment that left the network.
    duplicates: u32,
    /// The number whose acknowledgment ends recovery. `None`: there is no recovery.
    recover: Option<u64>,
    /// No recovery begins before this number is acknowledged.
    guard: u64,
    /// Partial ACKs of this recovery.
    partial_acks: u32,
}

impl FastRecovery {
    pub(super) const fn new(partial_ack: PartialAck) -> Self {
        Self { partial_ack, duplicates: 0, recover: None, guard: 0, partial_acks: 0 }
    }

    /// Returns the number of segments that have left the network since the last acknowledged one.
    #[inline]
    pub(super) const fn duplicates(&self) -> u32 {
        self.duplicates
    }

    /// Whether the retransmission timer goes on, though the last ACK brought something new.
    pub(super) fn keeps_timer(&self) -> bool {
        self.recover.is_some() && self.partial_ack == PartialAck::Impatient && self.partial_acks > 1
    }

    /// Handles an ACK of `packets` segments, the last of them before `una`. Returns whether the
    /// first remaining segment is lost.
    pub(super) fn on_advance(&mut self, una: u64, packets: u32) -> bool {
        let is_partial = self.recover.is_some_and(|recover| una < recover);
        if is_partial && self.partial_ack != PartialAck::Ends {
            self.partial_acks += 1;
            // The segments behind the hole had been counted as they arrived. The next hole is here.
            self.duplicates = self.duplicates.saturating_sub(packets.saturating_sub(1));
            return true;
        }
        (self.recover, self.duplicates) = (None, 0);
        false
    }

    /// Handles a duplicate ACK while `outstanding` segments, from `una` to before `next`, are not
    /// acknowledged. Returns whether the first of them is lost.
    pub(super) fn on_duplicate(&mut self, una: u64, next: u64, outstanding: u32) -> bool {
        self.duplicates = (self.duplicates + 1).min(outstanding.saturating_sub(1));
        let begins = self.duplicates >= DUP_THRESH && self.recover.is_none() && una >= self.guard;
        if begins {
            (self.recover, self.guard, self.partial_acks) = (Some(next), next, 0);
        }
        begins
    }

    /// The retransmission timer expired when `next` was the next number to be sent.
    pub(super) fn on_timeout(&mut self, next: u64) {
        (self.duplicates, self.recover, self.guard) = (0, None, next);
    }

    /// All unacknowledged data is given up.
    pub(super) fn abandon(&mut self) {
        (self.duplicates, self.recover) = (0, None);
    }
}
