//! HyStart++ (RFC 9406): leaves slow start when the RTT rises, before the queue is full.
//!
//! Source: the abstract and the constants of RFC 9406. The rest of its text was not found, so the
//! steps of 4.2 are from memory.

use crate::Acked;
use byway_wire::time::signed_nanos;
use byway_wire::{Duration, Instant};

/// The parameters of RFC 9406, 4.3. The recommended values are [`RFC9406`](Self::RFC9406).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HyStartOptions {
    /// `MIN_RTT_THRESH`: a smaller rise of the RTT does not count.
    pub least_rise: Duration,
    /// `MAX_RTT_THRESH`: an RTT rise of at least this ends slow start.
    pub most_rise: Duration,
    /// `MIN_RTT_DIVISOR`. Between the two thresholds, a rise counts if it is at least the RTT of
    /// the round before divided by this number.
    pub divisor: u32,
    /// `N_RTT_SAMPLE`: a round of fewer packets is not judged.
    pub samples: u32,
    /// `CSS_GROWTH_DIVISOR`, the factor by which conservative slow start grows slower.
    pub slower: f64,
    /// `CSS_ROUNDS`: how many rounds of conservative slow start confirm the rise.
    pub rounds: u32,
}

impl HyStartOptions {
    /// RFC 9406, 4.3.
    pub const RFC9406: Self = Self {
        least_rise: Duration::from_millis(4),
        most_rise: Duration::from_millis(16),
        divisor: 8,
        samples: 8,
        slower: 4.0,
        rounds: 5,
    };
}

/// The delay on the path, as an ACK shows it.
#[derive(Clone, Copy, Debug)]
pub enum RoundDelay {
    /// The least RTT of the acknowledged packets.
    RoundTrip(Duration),
    /// The least one-way delay of the acknowledged packets in nanoseconds, and the least RTT of the
    /// path.
    OneWay(i64, Duration),
}

impl RoundDelay {
    const fn nanos(self) -> i64 {
        match self {
            Self::RoundTrip(rtt) => signed_nanos(rtt),
            Self::OneWay(delay, _) => delay,
        }
    }
}

/// Compares the least delays of successive rounds during the first slow start of a path.
#[derive(Clone, Debug)]
pub struct HyStart {
    options: HyStartOptions,
    /// Packets sent from here on belong to the next round.
    round: Instant,
    last: Option<i64>,
    current: Option<i64>,
    samples: u32,
    /// In conservative slow start: the delay that began it, and the rounds that are left.
    cautious: Option<(i64, u32)>,
}

impl HyStart {
    /// For a path that opens at `now`.
    #[must_use]
    pub const fn new(options: HyStartOptions, now: Instant) -> Self {
        Self { options, round: now, last: None, current: None, samples: 0, cautious: None }
    }

    /// Takes an ACK into account. All ACKs of a path have the same kind of `delay`. Returns a
    /// factor for the growth of slow start: 1, or `1 / slower` in conservative slow start. `None`:
    /// slow start is over.
    pub fn on_acked(&mut self, acked: &Acked<'_>, delay: Option<RoundDelay>) -> Option<f64> {
        if acked.sent_at >= self.round {
            self.round = acked.now;
            (self.last, self.current, self.samples) = (self.current, None, 0);
            if let Some((_, rounds)) = &mut self.cautious {
                *rounds = rounds.checked_sub(1).filter(|left| *left > 0)?;
            }
        }
        if let Some(delay) = delay {
            let nanos = delay.nanos();
            self.current = Some(self.current.map_or(nanos, |current| current.min(nanos)));
            // Each packet counts as a sample, because an ACK has the smallest delay of its packets.
            self.samples = self.samples.saturating_add(acked.packets);
            if self.samples >= self.options.samples {
                self.judge(delay);
            }
        }
        Some(if self.cautious.is_some() { 1.0 / self.options.slower } else { 1.0 })
    }

    fn judge(&mut self, delay: RoundDelay) {
        let Some(current) = self.current else { return };
        match (self.cautious, self.last) {
            // It was jitter: back to slow start.
            (Some((baseline, _)), _) if current < baseline => self.cautious = None,
            (None, Some(last)) => {
                let rtt = match delay {
                    RoundDelay::RoundTrip(_) => last,
                    RoundDelay::OneWay(_, rtt) => signed_nanos(rtt),
                };
                let part = rtt / i64::from(self.options.divisor.max(1));
                let (least, most) = (self.options.least_rise, self.options.most_rise);
                let rise = signed_nanos(least).max(part.min(signed_nanos(most)));
                if current >= last.saturating_add(rise) {
                    self.cautious = Some((current, self.options.rounds));
                }
            }
            _ => {}
        }
    }
}
