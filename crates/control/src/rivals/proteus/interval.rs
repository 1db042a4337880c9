//! A monitor interval: packets sent at one rate for about an RTT, and what became of them.

use super::regression::Regression;
use byway_wire::{Duration, Instant};

/// RTT samples that an interval needs (`kMinReliableRtt`).
const MIN_SAMPLES: u32 = 4;
/// With a smaller share of reliable samples an interval lasts twice as long
/// (`kMinReliabilityRatio`).
const RELIABLE_SHARE: f64 = 0.8;
/// Bytes of a packet whose time of sending ends an interval (`kMaxPacketSize`).
const LAST_PACKET_BYTES: f64 = 1_500.0;

/// A monitor interval.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interval {
    /// Bytes per second.
    rate: f64,
    first: Instant,
    last: Instant,
    least: Duration,
    is_extended: bool,
    is_open: bool,
    /// Whether packets without a result by now count as neither acknowledged nor lost.
    is_settled: bool,
    sent: f64,
    acked: f64,
    lost: f64,
    samples: u32,
    /// Reliable RTTs in microseconds, by the seconds from the first packet.
    rtts: Regression,
}

impl Interval {
    /// An interval that begins at `now` with `rate` bytes per second, for `least` at least.
    pub(super) fn new(now: Instant, rate: f64, least: Duration) -> Self {
        Self {
            rate,
            first: now,
            last: now,
            least,
            is_extended: false,
            is_open: true,
            is_settled: false,
            sent: 0.0,
            acked: 0.0,
            lost: 0.0,
            samples: 0,
            rtts: Regression::default(),
        }
    }

    pub(super) fn on_sent(&mut self, now: Instant, bytes: f64) {
        self.last = now;
        self.sent += bytes;
    }

    /// Ends the interval at `now`, if it is long enough and has samples of its own. One with many
    /// unreliable samples lasts longer.
    pub(super) fn end(&mut self, now: Instant) -> bool {
        if self.rtts.count() < MIN_SAMPLES || now.since(self.first) < self.least {
            return false;
        }
        let reliable = f64::from(self.rtts.count()) / f64::from(self.samples.max(1));
        if reliable < RELIABLE_SHARE && !self.is_extended {
            (self.is_extended, self.least) = (true, self.least.saturating_mul(2));
            return false;
        }
        self.is_open = false;
        true
    }

    /// Whether a packet sent at `at` is one of the interval.
    pub(super) fn has(&self, at: Instant) -> bool {
        self.first <= at && at <= self.last
    }

    /// Whether a packet sent from `first` to `last` may be one of the interval.
    pub(super) fn overlaps(&self, first: Instant, last: Instant) -> bool {
        first <= self.last && self.first <= last
    }

    pub(super) fn on_acked(&mut self, bytes: f64) {
        self.acked += bytes;
    }

    pub(super) fn on_lost(&mut self, bytes: f64) {
        self.lost += bytes;
    }

    /// A loss of `bytes` was none.
    pub(super) fn on_found(&mut self, bytes: f64) {
        self.lost = (self.lost - bytes).max(0.0);
        self.acked += bytes;
    }

    pub(super) fn sample(&mut self, sent_at: Instant, rtt: f64, is_reliable: bool) {
        self.samples += 1;
        if is_reliable {
            self.rtts.add(sent_at.since(self.first).as_secs_f64(), rtt);
        }
    }

    /// A packet sent at `at` was acknowledged. One that was sent an RTT after the interval shows
    /// that all its losses are known.
    pub(super) fn settle(&mut self, at: Instant, smoothed: Duration) {
        self.is_settled |= !self.is_open && at > self.last + smoothed;
    }

    /// Whether the fate of all packets is known.
    pub(super) fn is_complete(&self) -> bool {
        !self.is_open && (self.is_settled || self.acked + self.lost >= self.sent)
    }

    pub(super) const fn rate(&self) -> f64 {
        self.rate
    }

    /// Seconds in which the packets were sent.
    pub(super) fn seconds(&self) -> f64 {
        self.last.since(self.first).as_secs_f64() + LAST_PACKET_BYTES / self.rate.max(1.0)
    }

    /// Bytes per second that were sent.
    pub(super) fn sent_rate(&self) -> f64 {
        self.sent / self.seconds()
    }

    /// The share of the bytes that were lost.
    pub(super) fn loss(&self) -> f64 {
        if self.sent > 0.0 { (self.lost / self.sent).min(1.0) } else { 0.0 }
    }

    pub(super) const fn rtts(&self) -> &Regression {
        &self.rtts
    }
}
