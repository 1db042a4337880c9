//! What a path does when a queue vanishes.

use super::super::constants::VANISHED_SHARE;
use super::super::queue_delay::DelayReading;
use super::{BackgroundPath, BeforeQueue};
use byway_wire::Instant;

impl BackgroundPath {
    /// A queue drains no faster than its line sends. What vanishes at once was none, so all that
    /// the path did about it is taken back. The end of a start is taken back on any path, since a
    /// start that fills the line does not let its queue vanish.
    pub(super) fn take_back(&mut self, met: &DelayReading, now: Instant) {
        let Some(queue) = self.queue else { return };
        let BeforeQueue { level, met: met_before, known } = queue.before;
        let tells = met.jitters || level.start && !self.start;
        let vanished = met.fell as f64 >= VANISHED_SHARE * queue.deepest as f64;
        if tells && vanished && now.since(queue.since) <= self.grace() {
            (self.level, self.start, self.start_until) = (level.level, level.start, level.start_until);
            (self.met, self.known) = (met_before, known);
            (self.queue, self.above) = (None, 0);
        }
    }
}
