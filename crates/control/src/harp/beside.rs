//! What a path does beside requests that come and go.

use super::options::Options;
use super::path::{Path, QUIET};
use crate::Acked;
use byway_wire::{Duration, Instant};

/// In company so much time without a queue is silence: of requests that come each 200 ms on average one in ninety is that late.
const SILENCE: Duration = Duration::from_millis(900);
/// A window of fewer packets, which are far apart, tells neither a burst from the trembling of the line nor when it is over.
const WITNESSES: f64 = 1.0;
/// What is in flight waits for its ACK a little longer than an RTT: up to a quarter of it, as receivers delay ACKs (`ack_delay` in the
/// engine), and a little for the pacer to be what limits. With a whole packet more for each path, as before, eight transfers had
/// their packets in a queue together.
const UNTIL_ACKED: f64 = 1.3;

impl Path {
    /// Whether the path behaves as in company.
    pub(super) fn has_company(&self, now: Instant) -> bool {
        self.window >= WITNESSES && self.company.is_here(now) && self.sense.is_steady()
    }

    /// The bytes in flight that let the pacer alone decide: a window that is short of the ACKs on their way leaves the line idle, or
    /// has to be larger than the line wants, and that is what requests would wait for.
    pub(super) fn paced_window(&self) -> f64 {
        UNTIL_ACKED * self.window * self.packet
    }

    /// The RTT over which a window is spread. The mean forgets a queue over many ACKs, and as long as it remembers one that is over, the
    /// pace is below what the window is meant for: so where the pacer alone decides, the queue of late is no part of it.
    pub(super) fn pacing_rtt(&self, paced: bool) -> Duration {
        if paced { self.min_rtt.max(self.srtt.saturating_sub(self.sense.waiting())) } else { self.srtt }
    }

    /// Tells a burst of others from what is no burst, or none of others.
    pub(super) fn notice_burst(&mut self, acked: &Acked<'_>, options: &Options) {
        // What was sent before the window was reduced meets the burst that reduced it; and one packet is no witness.
        let own = self.rushing(options) || self.answered(acked.sent_at);
        let trusted = self.sense.is_steady() && self.window >= WITNESSES;
        if self.sense.has_met_burst() && options.company && trusted && !own {
            self.company.on_burst(acked.now, self.srtt);
        }
    }

    /// Whether nothing has waited for so long that nobody seems to be there.
    pub(super) fn is_silent(&self) -> bool {
        self.quiet >= QUIET && self.srtt.saturating_mul(self.quiet) >= SILENCE
    }

    /// Where the window is that would have grown to `grown` without company.
    pub(super) fn hold_back(&mut self, now: Instant, grown: f64) -> f64 {
        let silent = self.is_silent();
        if self.in_company { self.company.grow(now, self.window, grown, silent) } else { grown }
    }

    /// Takes back what a burst took when it has passed: a packet hardly waited; or, where packets wait a little even so, none
    /// waited too long for an RTT.
    pub(super) fn take_back(&mut self, acked: &Acked<'_>) {
        let passed = self.sense.free() || self.sense.calm() && acked.sent_at >= self.recover + self.srtt;
        if passed
            && !self.answered(acked.sent_at)
            && let Some(window) = self.company.give_back(acked.now)
        {
            self.window = self.window.max(window);
            self.recover = acked.now;
        }
    }

    /// The window that would deliver as much without the queue.
    fn without_queue(&self) -> f64 {
        self.window * (self.min_rtt.as_secs_f64() / self.srtt.as_secs_f64().max(1e-9)).min(1.0)
    }

    /// A queue was felt: the part of the window that a burst is given, if one explains the queue.
    pub(super) fn on_queue(&mut self, now: Instant, options: &Options) -> Option<f64> {
        let fitting = if self.rushing(options) { self.fitting(options) } else { self.without_queue() };
        if options.company { self.company.on_queue(now, self.srtt, self.window, fitting) } else { None }
    }

    /// What a signal takes that should take `beta` per RTT: where a window has few packets, the one that tells comes half of their
    /// distance after an RTT.
    pub(super) fn by_the_time(&self, beta: f64, options: &Options) -> f64 {
        if !options.company {
            return beta;
        }
        1.0 - libm::pow(1.0 - beta, 1.0 + 0.5 / self.window.max(0.5))
    }
}
