//! NewReno, the yardstick: RFC 5681 with the one reduction per loss event of RFC 6582.
//!
//! Retransmission is the path's business; what is left of NewReno is its window. Fast recovery with its inflation by
//! duplicate ACKs (RFC 6582, 3.2) exists because TCP knows the bytes in flight only roughly; here they are known exactly.

use crate::bundle::{Memento, Single};
use crate::{Acked, Allowance, Congested, Opened, Trigger, Undo};
use byway_wire::Instant;

/// What the RFCs leave to choose.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Initial window in packets. RFC 6928: 10. RFC 5681: 2 to 4.
    pub initial: f64,
    /// L of RFC 3465: at most so many packets are added for one ACK in slow start. The RFC says 2 for a receiver that
    /// acknowledges every second packet; byway's receivers acknowledge up to 10 with one ACK, and its paths are paced,
    /// so that no burst follows.
    pub limit: f64,
}

impl Options {
    /// For byway's own receivers.
    pub const BYWAY: Self = Self { initial: 10.0, limit: 10.0 };
    /// For a TCP receiver, as the reference hosts of the simulator have it.
    pub const TCP: Self = Self { initial: 2.0, limit: 2.0 };
}

/// The congestion window of one path by NewReno.
#[derive(Clone, Debug)]
pub struct NewReno {
    options: Options,
    packet: f64,
    window: f64,
    threshold: f64,
    /// Packets sent before belong to a loss event that has been answered.
    recover: Instant,
    memento: Option<Memento<(f64, f64)>>,
    /// Timeouts since something was acknowledged.
    timeouts: u32,
}

impl NewReno {
    /// A path of byway's.
    #[must_use]
    pub fn new(opened: &Opened) -> Self {
        Self::with_options(opened, Options::BYWAY)
    }

    /// A path with `options`.
    #[must_use]
    pub fn with_options(opened: &Opened, options: Options) -> Self {
        let packet = f64::from(opened.packet_size.max(1));
        Self {
            options,
            packet,
            window: options.initial * packet,
            threshold: f64::INFINITY,
            recover: opened.now,
            memento: None,
            timeouts: 0,
        }
    }

    /// Whether the window is below the slow start threshold.
    #[must_use]
    pub fn in_slow_start(&self) -> bool {
        self.window < self.threshold
    }
}

impl Single for NewReno {
    fn on_acked(&mut self, acked: &Acked<'_>) {
        self.timeouts = 0;
        // RFC 7661: a window that is not used is not validated, so it does not grow.
        // RFC 6582: no growth in recovery, that is until a packet sent after the reduction is acknowledged.
        if acked.app_limited || acked.sent_at < self.recover {
            return;
        }
        let bytes = acked.bytes as f64;
        if self.in_slow_start() {
            // RFC 5681 (2): cwnd += min (N, SMSS), with RFC 3465's L in place of 1.
            let grown = self.window + bytes.min(self.options.limit * self.packet);
            self.window = grown.min(self.threshold.max(self.window + self.packet));
        } else {
            // RFC 5681, 3.1: one SMSS per window of bytes acknowledged.
            self.window += self.packet * bytes / self.window;
        }
    }

    fn on_congested(&mut self, congested: &Congested) {
        let timeout = congested.trigger == Trigger::Timeout;
        let answered = if timeout { self.timeouts > 0 } else { congested.sent_at < self.recover };
        match &mut self.memento {
            Some(memento) if answered => memento.extend(congested, self.packet),
            _ => self.memento = Some(Memento::new((self.window, self.threshold), congested, self.packet)),
        }
        if !answered {
            // RFC 5681 (4): ssthresh = max (FlightSize / 2, 2*SMSS); a second timeout in a row leaves it as it is.
            let flight = (congested.in_flight as f64).min(self.window);
            self.threshold = (flight / 2.0).max(2.0 * self.packet);
            self.window = self.threshold;
        }
        if timeout {
            // RFC 5681, 3.1: the loss window is one segment.
            self.timeouts += 1;
            self.window = self.packet;
        }
        if timeout || !answered {
            self.recover = congested.now;
        }
    }

    fn on_undo(&mut self, undo: &Undo) {
        if let Some((window, threshold)) = self.memento.as_mut().and_then(|memento| memento.undone(undo)) {
            self.window = self.window.max(window);
            self.threshold = threshold;
            self.memento = None;
        }
    }

    fn on_route_change(&mut self, now: Instant) {
        self.window = self.window.min(self.options.initial * self.packet);
        self.threshold = f64::INFINITY;
        self.recover = now;
        self.memento = None;
    }

    fn allowance(&self) -> Allowance {
        Allowance { window: self.window as u64, ..Allowance::default() }
    }
}
