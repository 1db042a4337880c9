//! The state to which a spurious decrease is undone.

use crate::{Congested, Trigger, Undo};
use byway_wire::Instant;

/// A window as it was before a decrease, to undo a wrong decrease. After a timeout, the decrease
/// was wrong if one packet declared lost is acknowledged (Eifel, RFC 4015); after a loss, only if
/// all such packets are.
#[derive(Clone, Copy, Debug)]
pub struct UndoState<T> {
    before: T,
    first: Instant,
    last: Instant,
    missing: u64,
}

impl<T: Copy> UndoState<T> {
    /// Remembers `before`, which `congested` is about to change, on a path of `packet_size` bytes.
    #[must_use]
    pub fn new(before: T, congested: &Congested, packet_size: f64) -> Self {
        let missing = match congested.trigger {
            Trigger::Timeout => 1,
            Trigger::Loss | Trigger::Ce => libm::ceil(congested.bytes as f64 / packet_size).max(1.0) as u64,
        };
        Self { before, first: congested.first_sent_at, last: congested.sent_at, missing }
    }

    /// Adds packets that were lost in the same loss event.
    pub fn extend(&mut self, congested: &Congested, packet_size: f64) {
        if congested.trigger != Trigger::Timeout {
            let more = libm::ceil(congested.bytes as f64 / packet_size).max(1.0) as u64;
            self.missing = self.missing.saturating_add(more);
        }
        self.first = self.first.min(congested.first_sent_at);
        self.last = self.last.max(congested.sent_at);
    }

    /// Takes `undo` into account. Returns the state before the decrease if the decrease was wrong.
    pub fn undone(&mut self, undo: &Undo) -> Option<T> {
        if undo.sent_at < self.first || undo.sent_at > self.last {
            return None;
        }
        self.missing = self.missing.saturating_sub(1);
        (self.missing == 0).then_some(self.before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn congested(trigger: Trigger, bytes: u64) -> Congested {
        let at = Instant::from_millis;
        Congested { trigger, first_sent_at: at(10), sent_at: at(20), now: at(40), bytes, in_flight: 9_000 }
    }

    fn undo(sent: u64) -> Undo {
        Undo { now: Instant::from_millis(50), sent_at: Instant::from_millis(sent) }
    }

    #[test]
    fn a_loss_is_undone_when_all_its_packets_turned_up() {
        let mut undo_state = UndoState::new(8, &congested(Trigger::Loss, 2_000), 1_000.0);
        assert_eq!(undo_state.undone(&undo(9)), None, "sent before the epoch");
        assert_eq!(undo_state.undone(&undo(10)), None);
        assert_eq!(undo_state.undone(&undo(20)), Some(8));
    }

    #[test]
    fn a_timeout_is_undone_by_the_first() {
        let mut undo_state = UndoState::new(8, &congested(Trigger::Timeout, 9_000), 1_000.0);
        assert_eq!(undo_state.undone(&undo(15)), Some(8));
    }
    #[test]
    fn losses_beyond_all_counting_are_not_undone_by_accident() {
        let all = congested(Trigger::Loss, u64::MAX);
        let mut undo_state = UndoState::new(8, &all, 1.0);
        undo_state.extend(&all, 1.0);
        assert_eq!(undo_state.undone(&undo(15)), None);
    }
}
