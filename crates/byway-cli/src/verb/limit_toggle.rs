//! SIGUSR2: lifts the bandwidth limit of a transfer that runs, and sets it again.

use crate::messages;
use crate::output::{Event, Output};
use crate::signals::Signals;
use byway_net::Owner;
use byway_transfer::EventLoop;

/// The limit of one direction.
pub(super) struct LimitToggle {
    bytes_per_second: Option<u64>,
    lifted: bool,
}

impl LimitToggle {
    pub const fn new(bytes_per_second: Option<u64>) -> Self {
        Self { bytes_per_second, lifted: false }
    }

    /// Has a transfer begin as the one before it was.
    pub fn begin<O: Owner>(&self, running: &EventLoop<O>) {
        running.lift(self.lifted);
    }

    /// Does what was asked for, if something was, and says so.
    pub fn look<O: Owner>(&mut self, signals: &Signals, running: &EventLoop<O>, output: &mut Output) {
        if !signals.take_limit_toggle() {
            return;
        }
        let Some(limit) = self.bytes_per_second else {
            let message = messages::transfer::NO_LIMIT_TO_LIFT.into();
            return output.emit(&Event::Warning { message });
        };
        self.lifted = !self.lifted;
        running.lift(self.lifted);
        output.emit(&Event::Limit { bytes_per_second: (!self.lifted).then_some(limit) });
    }
}
