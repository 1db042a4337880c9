//! A relay's events for its operator's log: a few of them, and the number that were left out.

use crate::operator_report::{Dropped, LogEvent};
use crate::per_second_limit::Limiter;
use alloc::collections::VecDeque;
use byway_wire::Instant;
use core::net::SocketAddr;

const MAX_EVENTS: usize = 64;
const EVENTS_PER_SECOND: u64 = 10;

#[derive(Debug)]
pub(crate) struct Log {
    limiter: Limiter,
    events: VecDeque<LogEvent>,
    left_out: u64,
}

impl Log {
    pub(crate) fn new() -> Self {
        Self {
            limiter: Limiter::new(EVENTS_PER_SECOND),
            events: VecDeque::with_capacity(MAX_EVENTS),
            left_out: 0,
        }
    }

    pub(crate) fn note(&mut self, now: Instant, dropped: Dropped, grant: u32, from: SocketAddr) {
        if self.events.len() < MAX_EVENTS && self.limiter.allows(now) {
            let left_out = core::mem::take(&mut self.left_out);
            self.events.push_back(LogEvent { dropped, grant, from, left_out });
        } else {
            self.left_out = self.left_out.saturating_add(1);
        }
    }

    pub(crate) fn next(&mut self) -> Option<LogEvent> {
        self.events.pop_front()
    }
}
