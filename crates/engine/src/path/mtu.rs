//! The largest datagram that a path carries, found by probing (RFC 8899). A probe is a PING that is
//! padded to the size in question. Over TCP nothing is probed, because a packet is a frame of any
//! size.

use byway_wire::packet::BASE_DATAGRAM;
use byway_wire::{Duration, Instant};

/// A size is given up after this many lost probes (RFC 8899 section 5.1.2, MAX_PROBES).
const MAX_PROBES: u8 = 3;
/// How long after a failed search a larger size is tried again (RFC 8899 section 5.1.1,
/// PMTU_RAISE_TIMER).
const RAISE_AFTER: Duration = Duration::from_secs(600);
/// How long the base size is kept after a black hole: if it was an outage, the size comes back
/// soon.
const AFTER_BLACK_HOLE: Duration = Duration::from_secs(10);
/// After so many losses of packets above the base size, the base size is used again (RFC 8899
/// section 4.3). Packets that are lost together count as one loss. An acknowledged packet above the
/// base size resets the count.
const BLACK_HOLE_LOSSES: u8 = 3;
/// A frame holds as much as its path delivers in this time, so that it delays the next one little.
const FRAME_TIME: Duration = Duration::from_millis(1);
/// Bytes of a frame at most. A driver takes four of these at once.
const LONGEST_FRAME: usize = 65_535 / 4;
/// Limits of the frames of `Mtu::of_hops`: the bytes that the path delivers in `HOPS_TIME`, and at
/// most `LONGEST_BY_HOPS` bytes. Relays accept frames of at most 9 KiB, which include the headers
/// for the relay.
const HOPS_TIME: Duration = Duration::from_millis(40);
const LONGEST_BY_HOPS: usize = 8 << 10;
/// The smallest frame, in bytes, on a path over TCP whose rate the congestion controller sets
/// (`Mtu::of_hops`). With its length field it fills one TCP segment over IPv6 with timestamps, on
/// Ethernet. A slightly longer frame needs a second segment with its own headers.
const LEAST_BY_HOPS: usize = 1426;
/// Sizes worth a first try, as UDP payloads: Ethernet over IPv4, over IPv6, over common tunnels,
/// and jumbo frames.
const LADDER: [usize; 6] = [1352, 1420, 1452, 1472, 8952, 8972];

/// The search on one path.
#[derive(Clone, Debug)]
pub struct Mtu {
    current: usize,
    /// The smallest size known or believed not to pass; the limit plus one at first.
    ceiling: usize,
    limit: usize,
    probe: Option<(usize, u64)>,
    failures: u8,
    next_at: Instant,
    /// Losses of large packets since one came through, and when the last was noticed.
    suspicions: u8,
    suspected_at: Instant,
    /// Of frames: how long the path takes for one, and the smallest.
    span: Duration,
    least: usize,
}

impl Mtu {
    /// Begins at the base size and will search up to `limit` (UDP payload).
    #[must_use]
    pub fn new(limit: usize) -> Self {
        let current = BASE_DATAGRAM.min(limit);
        Self {
            current,
            ceiling: limit + 1,
            limit,
            probe: None,
            failures: 0,
            next_at: Instant::ZERO,
            suspicions: 0,
            suspected_at: Instant::ZERO,
            span: FRAME_TIME,
            least: BASE_DATAGRAM,
        }
    }

    /// Frames of a TCP connection. They begin with the base size.
    #[must_use]
    pub const fn of_frames() -> Self {
        Self {
            current: BASE_DATAGRAM,
            ceiling: LONGEST_FRAME + 1,
            limit: LONGEST_FRAME,
            probe: None,
            failures: 0,
            next_at: Instant::FAR_FUTURE,
            suspicions: 0,
            suspected_at: Instant::ZERO,
            span: FRAME_TIME,
            least: BASE_DATAGRAM,
        }
    }

    /// The frame sizes for a path over TCP, direct or through a relay, whose rate the congestion
    /// controller sets. Large frames cost little encryption time per byte. Each frame is still a
    /// small part of what is sent between two changes of the rate.
    #[must_use]
    pub const fn of_hops() -> Self {
        Self {
            current: LEAST_BY_HOPS,
            least: LEAST_BY_HOPS,
            limit: LONGEST_BY_HOPS,
            ceiling: LONGEST_BY_HOPS + 1,
            span: HOPS_TIME,
            ..Self::of_frames()
        }
    }

    /// Fits the size of a TCP path's frames (packets) to its `rate`, in bytes per second. The right
    /// size is what the path carries in 1 ms, or in 40 ms if `Mtu::of_hops` made this `Mtu`. Each
    /// call at most doubles or halves the size.
    pub fn fit(&mut self, rate: u64) {
        let bytes = u128::from(rate) * self.span.as_nanos() / 1_000_000_000;
        let fitting = usize::try_from(bytes).unwrap_or(usize::MAX);
        if fitting >= self.current * 2 {
            self.current = (self.current * 2).min(self.limit);
        } else if fitting < self.current / 2 {
            self.current = (self.current / 2).max(self.least);
        }
    }

    /// The size in bytes (UDP payload) of the largest datagrams that are known to pass.
    #[must_use]
    pub const fn current(&self) -> usize {
        self.current
    }

    /// The size in bytes to probe now, if a probe is due.
    #[must_use]
    pub fn wanted(&self, now: Instant) -> Option<usize> {
        if self.probe.is_some() || now < self.next_at {
            return None;
        }
        // The limit first: it is what most paths have. Then the ladder from above.
        if self.limit < self.ceiling && self.limit > self.current {
            return Some(self.limit);
        }
        LADDER.iter().rev().copied().find(|size| *size > self.current && *size < self.ceiling)
    }

    /// A probe of `size` left as packet `number`.
    pub const fn sent(&mut self, size: usize, number: u64) {
        self.probe = Some((size, number));
    }

    /// Packet `number` was acknowledged.
    pub fn acked(&mut self, number: u64) {
        if let Some((size, probe)) = self.probe
            && probe == number
        {
            (self.probe, self.failures) = (None, 0);
            self.current = self.current.max(size);
        }
    }

    /// Packet `number` was lost.
    pub fn lost(&mut self, now: Instant, number: u64) {
        if let Some((size, probe)) = self.probe
            && probe == number
        {
            self.probe = None;
            self.failures += 1;
            if self.failures >= MAX_PROBES {
                self.refused(now, size);
            }
        }
    }

    /// The system, or three losses, said that `size` is too large.
    pub fn refused(&mut self, now: Instant, size: usize) {
        (self.probe, self.failures) = (None, 0);
        self.ceiling = self.ceiling.min(size);
        if self.current >= size {
            self.current = BASE_DATAGRAM.min(self.limit);
        }
        if self.wanted(now).is_none() {
            self.rest(now);
        }
    }

    /// The search is over; it begins anew when the route may have changed.
    fn rest(&mut self, now: Instant) {
        (self.next_at, self.ceiling) = (now + RAISE_AFTER, self.limit + 1);
    }

    /// A packet above the base size came through.
    pub const fn passed(&mut self) {
        self.suspicions = 0;
    }

    /// A packet above the base size that was sent at `sent_at` was lost.
    pub fn suspect(&mut self, now: Instant, sent_at: Instant) {
        if sent_at < self.suspected_at {
            return; // of the same loss
        }
        self.suspected_at = now;
        self.suspicions += 1;
        if self.suspicions >= BLACK_HOLE_LOSSES {
            self.suspicions = 0;
            self.black_hole(now);
        }
    }

    /// Nothing large gets through any more: back to the base, and search again later (RFC 8899
    /// section 4.3).
    fn black_hole(&mut self, now: Instant) {
        if self.current > BASE_DATAGRAM {
            self.current = BASE_DATAGRAM.min(self.limit);
            (self.probe, self.failures) = (None, 0);
            self.next_at = now + AFTER_BLACK_HOLE;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn search(limit: usize, real: usize) -> Mtu {
        let mut mtu = Mtu::new(limit);
        let now = Instant::from_millis(1);
        let mut number = 0;
        while let Some(size) = mtu.wanted(now) {
            mtu.sent(size, number);
            if size <= real {
                mtu.acked(number);
                assert_eq!(mtu.current(), size);
            } else {
                mtu.lost(now, number);
            }
            number += 1;
            assert!(number < 100, "the search does not end");
        }
        mtu
    }

    #[test]
    fn common_links_are_found_exactly() {
        for (limit, real, found) in [
            (1472, 1472, 1472),
            (9000, 1472, 1472),
            (9000, 1452, 1452),
            (9000, 9000, 9000),
            (1472, 1400, 1352),
            (1472, 1300, 1200),
        ] {
            assert_eq!(search(limit, real).current(), found, "{limit} {real}");
        }
    }

    #[test]
    fn a_black_hole_sends_it_back_to_the_base() {
        let mut mtu = search(1472, 1472);
        let at = Instant::from_millis;
        mtu.suspect(at(5), at(1));
        mtu.suspect(at(9), at(6));
        mtu.passed();
        for (now, sent_at) in [(20, 11), (21, 12), (30, 21)] {
            mtu.suspect(at(now), at(sent_at));
            assert_eq!(mtu.current(), 1472, "two losses, one of them in two parts");
        }
        mtu.suspect(at(40), at(30));
        assert_eq!(mtu.current(), BASE_DATAGRAM);
        assert_eq!(mtu.wanted(at(41)), None);
        assert_eq!(mtu.wanted(at(10_040)), Some(1472));
    }

    #[test]
    fn frames_grow_and_shrink_with_the_rate() {
        let mut frames = Mtu::of_frames();
        assert_eq!((frames.current(), frames.wanted(Instant::from_millis(1 << 40))), (BASE_DATAGRAM, None));
        frames.fit(1_250_000); // 10 Mbit/s
        assert_eq!(frames.current(), BASE_DATAGRAM);
        for (rate, size) in [
            (3_000_000, 2_400),
            (1_000_000_000, 4_800),
            (1_000_000_000, 9_600),
            (1_000_000_000, LONGEST_FRAME),
            (1_000_000_000, LONGEST_FRAME),
        ] {
            frames.fit(rate);
            assert_eq!(frames.current(), size, "{rate}");
        }
        for size in [LONGEST_FRAME / 2, LONGEST_FRAME / 4, LONGEST_FRAME / 8, LONGEST_FRAME / 8] {
            frames.fit(1_250_000);
            assert_eq!(frames.current(), size);
        }
    }

    proptest! {
        #[test]
        fn never_more_than_passes(limit in 1200usize..9001, real in 1200usize..9001) {
            let found = search(limit, real).current();
            prop_assert!(found <= real.max(BASE_DATAGRAM) && found <= limit);
        }
    }
}
