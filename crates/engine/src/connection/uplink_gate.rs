//! What a governor of the host's uplink allows a connection.

use crate::path::pacer::Pacer;
use byway_wire::packet::BASE_DATAGRAM;
use byway_wire::{Duration, Instant};

/// A driver wakes late by up to this time.
const MAX_LATENESS: Duration = Duration::from_micros(500);

/// What a governor of the host's uplink allows a connection, over all its paths. The default limits
/// nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UplinkLimit {
    /// Bytes of UDP payload per second at most.
    pub rate: Option<u64>,
    /// No data leave until this time.
    pub closed_until: Option<Instant>,
}

/// The state of the governor's limit.
#[derive(Debug)]
pub(super) struct UplinkGate {
    limit: UplinkLimit,
    bucket: Pacer,
    /// Bytes of the largest packet that was sent.
    packet: u64,
    /// Whether the limit, and not a window, was the last to hold data back.
    holds: bool,
    /// When more may leave. `None`: data do not wait for it.
    until: Option<Instant>,
    /// Packets and bytes sent.
    sent: (u64, u64),
}

impl UplinkGate {
    pub const fn new(now: Instant) -> Self {
        let limit = UplinkLimit { rate: None, closed_until: None };
        let bucket = Pacer::new(now, BASE_DATAGRAM as u64);
        let packet = BASE_DATAGRAM as u64;
        Self { limit, bucket, packet, holds: false, until: None, sent: (0, 0) }
    }

    /// Sets the limit. Returns whether data may leave earlier than was known.
    pub fn set(&mut self, now: Instant, limit: UplinkLimit) -> bool {
        if limit == self.limit {
            return false;
        }
        self.limit = limit;
        self.fill(now);
        self.holds &= limit != UplinkLimit::default();
        self.until.take().is_some()
    }

    /// Has the bucket fill as the limit says. On a slow line it holds one packet, so that whoever
    /// comes waits for no more than one, and no burst follows a time without data.
    fn fill(&mut self, now: Instant) {
        let rate = self.limit.rate.unwrap_or_default();
        self.bucket.set_single(now, rate, self.packet, MAX_LATENESS);
    }

    /// Datagrams of `size` bytes that may leave now; if none, notes until when.
    pub fn allows(&mut self, now: Instant, size: u64) -> u64 {
        if self.limit == UplinkLimit::default() {
            return u64::MAX;
        }
        if size > self.packet {
            self.packet = size;
            self.fill(now);
        }
        if let Some(until) = self.limit.closed_until {
            if now < until {
                (self.holds, self.until) = (true, Some(until));
                return 0;
            }
            self.limit.closed_until = None;
        }
        let most = match self.limit.rate {
            Some(_) => self.bucket.available(now) / size.max(1),
            None => u64::MAX,
        };
        self.holds |= most == 0;
        self.until = (most == 0).then(|| self.bucket.ready_at(size));
        most
    }

    /// When more may leave. `None`: data do not wait for it.
    pub const fn until(&self) -> Option<Instant> {
        self.until
    }

    /// Ends the wait, if its time has come.
    pub fn wake(&mut self, now: Instant) {
        self.until = self.until.filter(|until| *until > now);
    }

    /// Notes a packet that was sent. `is_data`: whether the limit counts it.
    pub const fn on_sent(&mut self, bytes: u64, is_data: bool) {
        self.sent = (self.sent.0 + 1, self.sent.1 + bytes);
        if is_data {
            self.bucket.spend(bytes);
        }
    }

    /// Something else held data back.
    pub const fn yields(&mut self) {
        self.holds = false;
    }

    /// Packets and bytes (UDP payload) sent so far.
    pub const fn sent(&self) -> (u64, u64) {
        self.sent
    }

    /// Whether data wait for what the host itself sent.
    pub const fn is_closed(&self) -> bool {
        self.holds && self.limit.closed_until.is_some()
    }

    /// Whether the limit holds data back.
    pub const fn holds(&self) -> bool {
        self.holds
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW: Instant = Instant::from_millis(1_000);

    proptest! {
        /// Whatever is asked for and set: no more leaves than the rates allow, nothing while the
        /// line is closed, and time goes on for whoever waits as long as it is told.
        #[test]
        fn no_more_leaves_than_is_allowed(
            steps in proptest::collection::vec((0_u64..20_000, 0_u64..3, 10_000_u64..5_000_000, 0_u64..30), 1..200),
            size in prop_oneof![Just(1_200_u64), Just(1_472), Just(8_972)],
        ) {
            let (mut now, mut gate) = (NOW, UplinkGate::new(NOW));
            let (mut allowed, mut left, mut greatest) = (0.0, 0.0, 0.0_f64);
            for (micros, kind, rate, closed) in steps {
                let closed_until = (kind == 1).then(|| now + Duration::from_millis(closed));
                gate.set(now, UplinkLimit { rate: Some(rate), closed_until });
                let until = now + Duration::from_micros(micros);
                greatest = greatest.max(rate as f64);
                allowed += rate as f64 * until.since(now).as_secs_f64();
                for _ in 0..50 {
                    let packets = gate.allows(now, size);
                    prop_assert!(packets == 0 || closed_until.is_none_or(|closed| now >= closed));
                    if packets == 0 {
                        let next = gate.until().expect("told when");
                        prop_assert!(next > now, "no progress");
                        if next > until { break }
                        now = next;
                        gate.wake(now);
                        continue;
                    }
                    (0..packets).for_each(|_| gate.on_sent(size, true));
                    left += (packets * size) as f64;
                }
                now = now.max(until);
                let most = allowed + greatest * 1e-3 + 2.0 * size as f64 + 3_000.0;
                prop_assert!(left <= most, "{left} of {most}");
            }
        }
    }

    #[test]
    fn what_was_not_sent_while_the_line_was_closed_does_not_leave_at_once() {
        let at = |millis| NOW + Duration::from_millis(millis);
        let mut gate = UplinkGate::new(NOW);
        let rate = Some(250_000);
        gate.set(NOW, UplinkLimit { rate, closed_until: Some(at(50)) });
        assert_eq!((gate.allows(NOW, 1_472), gate.until(), gate.is_closed()), (0, Some(at(50)), true));
        assert_eq!(gate.allows(at(50), 1_472), 1);
        gate.on_sent(1_472, true);
        assert_eq!(gate.allows(at(50), 1_472), 0);
        assert!(gate.until().is_some_and(|until| until > at(54) && until < at(57)));
        assert!(gate.set(at(51), UplinkLimit::default()));
        assert_eq!((gate.allows(at(51), 1_472), gate.holds()), (u64::MAX, false));
    }
}
