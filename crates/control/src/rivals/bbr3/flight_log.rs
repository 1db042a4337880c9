//! The state at the sending of each packet. An ACK or a loss names the packet by its time of
//! sending.

use byway_wire::{Duration, Instant};

/// Entries of the log, at most.
const MAX_ENTRIES: usize = 256;
/// A round trip has about this many entries. Packets that are closer share one.
const ENTRIES_PER_RTT: u32 = 32;

/// The state at the sending of a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sending {
    at: Instant,
    delivered: f64,
    lost: f64,
    in_flight: f64,
    app_limited: bool,
}

impl Sending {
    /// Bytes that were delivered before.
    pub(super) const fn delivered(&self) -> f64 {
        self.delivered
    }

    /// Bytes that were lost before.
    pub(super) const fn lost(&self) -> f64 {
        self.lost
    }

    /// Bytes in flight, the packet included.
    pub(super) const fn in_flight(&self) -> f64 {
        self.in_flight
    }

    /// Whether the application limited the amount sent.
    pub(super) const fn app_limited(&self) -> bool {
        self.app_limited
    }
}

/// The latest packets sent, of about eight round trips. The log has a fixed size.
#[derive(Clone, Debug)]
pub(super) struct FlightLog {
    entries: [Sending; MAX_ENTRIES],
    /// Entries made so far. The latest is at this number less one, modulo `MAX_ENTRIES`.
    made: usize,
}

impl FlightLog {
    pub(super) const fn new(now: Instant) -> Self {
        let first = Sending { at: now, delivered: 0.0, lost: 0.0, in_flight: 0.0, app_limited: false };
        Self { entries: [first; MAX_ENTRIES], made: 1 }
    }

    /// Enters a packet sent at `now`. `totals`: bytes delivered and lost so far.
    pub(super) fn note(
        &mut self,
        now: Instant,
        rtt: Duration,
        totals: (f64, f64),
        in_flight: f64,
        app_limited: bool,
    ) {
        let latest = &mut self.entries[(self.made - 1) % MAX_ENTRIES];
        if now.since(latest.at) < rtt / ENTRIES_PER_RTT && self.made > 1 {
            latest.app_limited |= app_limited;
            return;
        }
        let (delivered, lost) = totals;
        self.entries[self.made % MAX_ENTRIES] = Sending { at: now, delivered, lost, in_flight, app_limited };
        self.made += 1;
    }

    /// The entry of the packet that was sent at `at`: the latest that is not later, or the oldest.
    pub(super) fn at(&self, at: Instant) -> Sending {
        let oldest = self.made.saturating_sub(MAX_ENTRIES);
        let (mut low, mut high) = (oldest, self.made);
        // The entry `low` is early enough or the oldest; all from `high` on are too late.
        while high - low > 1 {
            let middle = low.midpoint(high);
            if self.entries[middle % MAX_ENTRIES].at <= at {
                low = middle;
            } else {
                high = middle;
            }
        }
        self.entries[low % MAX_ENTRIES]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_found_by_its_time_also_when_the_log_is_full() {
        let at = Instant::from_millis;
        let mut log = FlightLog::new(at(0));
        for millis in 1..=1_000_u32 {
            let totals = (f64::from(millis), f64::from(millis) / 10.0);
            log.note(at(u64::from(millis)), Duration::from_millis(32), totals, 7.0, millis % 2 == 0);
        }
        let found = |millis| log.at(at(millis)).delivered();
        assert_eq!([found(1_000), found(2_000), found(900)].map(|it| it as u32), [1_000, 1_000, 900]);
        assert_eq!(found(3) as u32, 1_000 - MAX_ENTRIES as u32 + 1, "the oldest");
        assert!(log.at(at(900)).app_limited() && !log.at(at(901)).app_limited());
        assert!((log.at(at(900)).lost() - 90.0).abs() < 1e-9 && log.at(at(900)).in_flight() > 6.9);
    }

    #[test]
    fn packets_that_are_close_share_an_entry() {
        let at = Instant::from_micros;
        let mut log = FlightLog::new(at(0));
        for micros in 0..3_000_u64 {
            log.note(at(micros), Duration::from_millis(32), (micros as f64, 0.0), 7.0, micros == 2_100);
        }
        assert_eq!(log.at(at(2_500)).delivered() as u64, 2_000);
        assert!(log.at(at(2_000)).app_limited() && !log.at(at(1_999)).app_limited());
    }
}
