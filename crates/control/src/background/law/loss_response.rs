//! What a path does when packets are lost or marked, and when nothing comes back.

use super::super::constants::DECREASE_FACTOR;
use super::BackgroundPath;
use crate::bundle::UndoState;
use crate::{Congested, Trigger, Undo};

impl BackgroundPath {
    /// Answers losses and marks. Losses count if there is a queue at the time, or if they are more
    /// than chance explains.
    pub fn on_congested(&mut self, congested: &Congested) {
        self.losses.on_lost(congested.bytes as f64 / self.packet);
        self.queue_delay.on_lost();
        if congested.sent_at < self.recover {
            self.extend(congested);
            return;
        }
        if congested.trigger == Trigger::Ce || self.losses.are_often() || self.queue.is_some() {
            self.remember(congested);
            let kept = if self.start { 0.5 } else { DECREASE_FACTOR };
            self.lower(congested.now, kept * self.level);
            self.met = congested.now;
        }
    }

    /// Answers a timeout: the rate falls to one packet per RTT, and a start leads up to half of the
    /// level.
    pub fn on_timeout(&mut self, congested: &Congested) {
        if self.timeouts == 0 || self.undo_state.is_none() {
            self.remember(congested);
            self.start_until = self.level / 2.0;
        } else {
            self.extend(congested);
        }
        self.timeouts = self.timeouts.saturating_add(1);
        self.lower(congested.now, self.level.min(self.one_per_rtt()));
        self.start = true;
        self.queue = None;
    }

    fn remember(&mut self, congested: &Congested) {
        self.undo_state = Some(UndoState::new(self.saved(), congested, self.packet));
    }

    fn extend(&mut self, congested: &Congested) {
        if let Some(undo_state) = &mut self.undo_state {
            undo_state.extend(congested, self.packet);
        }
    }

    /// A loss or a timeout was none.
    pub fn on_undo(&mut self, undo: &Undo) {
        let Some(before) = self.undo_state.as_mut().and_then(|undo_state| undo_state.undone(undo)) else {
            return;
        };
        self.undo_state = None;
        self.level = self.level.max(before.level);
        (self.start, self.start_until) = (before.start, before.start_until);
        if self.timeouts > 0 {
            self.timeouts = 0;
            self.choked = false;
        }
    }
}
