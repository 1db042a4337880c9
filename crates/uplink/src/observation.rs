//! What an uplink carries, for a person who only looks.

use crate::carried_rate::CarriedRate;
use crate::interface_counters::{CounterLook, CounterReader, InterfaceCounters};
use byway_wire::{Duration, Instant};

/// A look older than this says nothing of the present.
const MAX_LOOK_AGE: Duration = Duration::from_millis(1_500);
/// Bytes per second that every line is assumed to carry.
const MIN_LINE_RATE: u64 = 1_000;
/// Bytes of a full packet on Ethernet, as interfaces count it.
const FULL_PACKET_BYTES: f64 = 1_514.0;

/// What the looks at an uplink's counters show so far.
#[derive(Clone, Debug)]
pub struct Observation {
    counters: CounterReader,
    up: CarriedRate,
    down: CarriedRate,
}

/// What an uplink carries, as of the latest two looks. Rates are in bytes per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ObservedUplink {
    /// What the host sends.
    pub sent: u64,
    /// What the host receives.
    pub received: u64,
    /// The most that the uplink carried in the time between two looks. The line may carry more.
    pub most_sent: u64,
    /// The same of what the host received.
    pub most_received: u64,
    /// How long a full packet takes at the most that was sent. Whoever comes behind a queue waits
    /// at most this time for each packet of it.
    pub packet_time: Duration,
}

impl ObservedUplink {
    /// What nobody uses of the most that was sent, in bytes per second.
    #[must_use]
    pub const fn idle(&self) -> u64 {
        self.most_sent.saturating_sub(self.sent)
    }
}

impl Default for Observation {
    fn default() -> Self {
        Self {
            counters: CounterReader::new(MAX_LOOK_AGE),
            up: CarriedRate::new(MIN_LINE_RATE),
            down: CarriedRate::new(MIN_LINE_RATE),
        }
    }
}

impl Observation {
    /// The interface is another from now on.
    pub fn move_on(&mut self) {
        *self = Self::default();
    }

    /// Takes in what the counters show now. `None`: they cannot be read. Returns what passed since
    /// the look before, if that is known.
    pub fn look(&mut self, shown: Option<InterfaceCounters>, now: Instant) -> Option<ObservedUplink> {
        let CounterLook::Passed { bytes, time } = self.counters.look(now, shown) else { return None };
        let rate = |bytes: u64| (bytes as f64 / time.as_secs_f64()) as u64;
        let (sent, received) = (rate(bytes.sent), rate(bytes.received));
        self.up.on_window(sent, None);
        self.down.on_window(received, None);
        let (most_sent, most_received) = (self.up.peak(), self.down.peak());
        let packet_time = Duration::from_secs_f64(FULL_PACKET_BYTES / most_sent as f64);
        Some(ObservedUplink { sent, received, most_sent, most_received, packet_time })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_uplink_shows_what_it_carries_and_the_most_that_it_did() {
        let mut seen = Observation::default();
        let mut now = Instant::from_millis(1);
        let mut sent = 7_000;
        assert_eq!(seen.look(Some(InterfaceCounters { sent, received: 0 }), now), None);
        let mut after = |bytes: u64| {
            now += Duration::from_secs(1);
            sent += bytes;
            seen.look(Some(InterfaceCounters { sent, received: 5 * (sent - 7_000) }), now).unwrap()
        };
        let full = after(1_250_000);
        assert_eq!((full.sent, full.received, full.idle()), (1_250_000, 6_250_000, 0));
        let quiet = after(250_000);
        // The most that was seen falls by 1/256 in each window.
        let most = 1_250_000 - 1_250_000 / 256;
        assert_eq!((quiet.sent, quiet.most_sent, quiet.idle()), (250_000, most, most - 250_000));
        assert!((quiet.packet_time.as_secs_f64() - 0.001_216).abs() < 1e-6, "{quiet:?}");
        assert_eq!(seen.look(None, now), None);
        seen.move_on();
        now += Duration::from_secs(1);
        assert_eq!(seen.look(Some(InterfaceCounters::default()), now), None);
    }
}
