//! HyStart ends slow start when the RTT rises, or when ACKs arrive close together for about half of
//! the smallest RTT.
//!
//! Source: Ha and Rhee, "Taming the elephants: New TCP slow start" (2011), section 4. Constants:
//! Linux (`tcp_cubic.c`).

use crate::Acked;
use byway_wire::{Duration, Instant};

/// `hystart_low_window`: smaller windows are not judged.
const LOW_WINDOW: f64 = 16.0;
/// `hystart_ack_delta_us`: ACKs further apart are no train.
const MAX_TRAIN_GAP: Duration = Duration::from_millis(2);
/// `hystart_ack_delay`: by how much a sender's bursts lengthen a train at most.
const ACK_DELAY: Duration = Duration::from_millis(1);
/// `HYSTART_MIN_SAMPLES`: ACKs after which a round's RTT is judged.
const MIN_SAMPLES: u32 = 8;
/// `HYSTART_DELAY_MIN` and `HYSTART_DELAY_MAX`: the RTT must rise by an eighth to end slow start,
/// but by at least 4 ms and at most 16 ms.
const MIN_RTT_RISE: Duration = Duration::from_millis(4);
const MAX_RTT_RISE: Duration = Duration::from_millis(16);

/// Detects the end of slow start on one path, as Linux does.
#[derive(Clone, Debug)]
pub struct LinuxHyStart {
    /// When the round began; packets sent from here on belong to the next.
    round: Instant,
    /// The latest ACK of the train.
    train: Instant,
    current: Option<Duration>,
    samples: u32,
}

impl LinuxHyStart {
    /// For a slow start that begins at `now`.
    #[must_use]
    pub const fn new(now: Instant) -> Self {
        Self { round: now, train: now, current: None, samples: 0 }
    }

    /// Takes an ACK into account, with a window of `window` packets. Returns whether slow start is
    /// over.
    pub fn on_acked(&mut self, acked: &Acked<'_>, window: f64) -> bool {
        if acked.sent_at >= self.round {
            *self = Self::new(acked.now);
        }
        if window < LOW_WINDOW {
            return false;
        }
        if acked.now.since(self.train) <= MAX_TRAIN_GAP {
            self.train = acked.now;
            if acked.now.since(self.round) > (acked.min_rtt + ACK_DELAY) / 2 {
                return true;
            }
        }
        let Some(rtt) = acked.rtt else { return false };
        let current = self.current.map_or(rtt, |current| current.min(rtt));
        self.current = Some(current);
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
            return false;
        }
        current > acked.min_rtt + (acked.min_rtt / 8).clamp(MIN_RTT_RISE, MAX_RTT_RISE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// The round in which slow start ends, from 0 to 5; `None`: it does not end. Rounds 0 and 1
    /// have the RTT `base`, the later rounds `rtt`. Each round has twelve ACKs, at intervals of
    /// `apart`.
    fn ends(base: Duration, rtt: Duration, apart: Duration, window: f64) -> Option<u32> {
        let mut hystart = LinuxHyStart::new(Instant::ZERO);
        let mut start = Instant::from_millis(1_000);
        for round in 0..6 {
            let rtt = if round < 2 { base } else { rtt };
            for ack in 0..12 {
                // All of a round was sent in the round before.
                let now = start + rtt + apart * ack;
                let acked = Acked {
                    now,
                    bytes: 1_448,
                    packets: 1,
                    sent_at: if ack == 0 { start } else { start - MS },
                    rtt: Some(rtt),
                    srtt: rtt,
                    min_rtt: base,
                    delays: &[],
                    in_flight: 1 << 20,
                    app_limited: false,
                    delivery_rate: None,
                    ce: 0,
                };
                if hystart.on_acked(&acked, window) {
                    return Some(round);
                }
            }
            start += rtt + 1_000 * MS;
        }
        None
    }

    /// The rise must exceed an eighth of the RTT, but at least 4 ms and at most 16 ms.
    #[test]
    fn a_rise_of_the_rtt_ends_slow_start() {
        for (base, none) in [(8, 4), (20, 4), (80, 10), (400, 16)] {
            let (base, apart) = (base * MS, 3 * MS);
            assert_eq!(ends(base, base + none * MS, apart, 100.0), None, "{base:?}");
            assert_eq!(ends(base, base + none * MS + MS / 10, apart, 100.0), Some(2), "{base:?}");
        }
    }

    /// A train is long if it exceeds half an RTT, plus half of the time that bursts add to a train.
    #[test]
    fn a_long_train_of_acks_ends_slow_start() {
        let base = 40 * MS;
        // The last of twelve is 11 times so far from the first.
        assert_eq!(ends(base, base, MS * 205 / 110, 100.0), None, "20.5 ms");
        assert_eq!(ends(base, base, MS * 206 / 110, 100.0), Some(0), "20.6 ms");
        assert_eq!(ends(base, base, MS * 21 / 10, 100.0), None, "ACKs that are 2.1 ms apart are no train");
    }

    #[test]
    fn a_window_below_sixteen_packets_is_not_judged() {
        assert_eq!(ends(20 * MS, 60 * MS, MS, 15.9), None);
        assert_eq!(ends(20 * MS, 60 * MS, MS, 16.0), Some(0));
    }
}
