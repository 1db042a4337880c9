//! The largest datagram that a path carries, found by probing (RFC 8899). A probe is a PING that is
//! padded to the size in question. Over TCP nothing is probed, because a packet is a frame of any
//! size.

use byway_wire::packet::BASE_DATAGRAM;
use byway_wire::{Duration, Instant};

/// Lost probes after which a size is given up (RFC 8899 section 5.1.2, MAX_PROBES).
const MAX_PROBES: u8 = 3;
/// Time after a failed search until a larger size is tried again (RFC 8899 section 5.1.1,
/// PMTU_RAISE_TIMER).
const RAISE_INTERVAL: Duration = Duration::from_secs(600);
/// Time for which the base size is kept after a black hole. If it was an outage, the larger size
/// returns soon.
const BLACK_HOLE_TIME: Duration = Duration::from_secs(10);
/// Losses of packets above the least size after which the base size is used again (RFC 8899 section
/// 4.3). Packets that are lost together count as one loss. An acknowledged packet of the
/// size that is in use, or of a size that was lost, resets the count.
const BLACK_HOLE_LOSSES: u8 = 3;
/// The least size in bytes: the UDP payload of the largest packet that every IPv4 host takes (RFC
/// 791 section 3.1). It is used once smaller packets pass and those of the base size do not.
const MIN_DATAGRAM: usize = 548;
/// The time that a frame takes on its path, so that it hardly delays the next one.
const FRAME_TIME: Duration = Duration::from_millis(1);
/// The largest frame in bytes. A driver takes four of these at once.
const MAX_FRAME_BYTES: usize = 65_535 / 4;
/// Limits of the frames of `Mtu::of_hops`: the bytes that the path delivers in `HOPS_TIME`, and at
/// most `MAX_HOPS_FRAME_BYTES` bytes. Relays accept frames of at most 9 KiB, which include the
/// headers for the relay.
const HOPS_TIME: Duration = Duration::from_millis(40);
const MAX_HOPS_FRAME_BYTES: usize = 8 << 10;
/// The smallest frame, in bytes, on a path over TCP whose rate the congestion controller sets
/// (`Mtu::of_hops`). With its length field it fills one TCP segment over IPv6 with timestamps, on
/// Ethernet. A slightly longer frame needs a second segment with its own headers.
const MIN_HOPS_FRAME_BYTES: usize = 1426;
/// UDP payloads that are tried first, in bytes. The first three fit narrow tunnels. After the base
/// come common tunnels, then Ethernet over IPv6 and IPv4. The last two are of jumbo frames.
const PROBE_SIZES: [usize; 10] = [740, 972, 1096, BASE_DATAGRAM, 1352, 1420, 1452, 1472, 8952, 8972];

/// The search for the largest datagram on one path.
#[derive(Clone, Debug)]
pub struct Mtu {
    current: usize,
    /// The smallest size known or believed not to pass; the limit plus one at first.
    ceiling: usize,
    limit: usize,
    probe: Option<(usize, u64)>,
    failures: u8,
    next_at: Instant,
    /// Losses of large packets since one came through. The next fields: when the last was noticed,
    /// and the size of the smallest.
    suspicions: u8,
    suspected_at: Instant,
    suspected_size: usize,
    /// When a smaller packet came through after those losses. It may only show that an outage is
    /// over. A large packet that left later and is lost shows that it is the size.
    small_passed_at: Option<Instant>,
    /// The time that the path takes for one frame, and the smallest frame.
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
            suspected_size: usize::MAX,
            small_passed_at: None,
            span: FRAME_TIME,
            least: BASE_DATAGRAM,
        }
    }

    /// Returns the state for frames of a TCP connection, which begin with the base size.
    #[must_use]
    pub const fn of_frames() -> Self {
        Self {
            current: BASE_DATAGRAM,
            ceiling: MAX_FRAME_BYTES + 1,
            limit: MAX_FRAME_BYTES,
            probe: None,
            failures: 0,
            next_at: Instant::FAR_FUTURE,
            suspicions: 0,
            suspected_at: Instant::ZERO,
            suspected_size: usize::MAX,
            small_passed_at: None,
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
            current: MIN_HOPS_FRAME_BYTES,
            least: MIN_HOPS_FRAME_BYTES,
            limit: MAX_HOPS_FRAME_BYTES,
            ceiling: MAX_HOPS_FRAME_BYTES + 1,
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
        PROBE_SIZES.iter().rev().copied().find(|size| *size > self.current && *size < self.ceiling)
    }

    /// A probe of `size` left as packet `number`.
    pub const fn sent(&mut self, size: usize, number: u64) {
        self.probe = Some((size, number));
    }

    /// Packet `number` was acknowledged.
    pub fn acked(&mut self, now: Instant, number: u64) {
        if let Some((size, probe)) = self.probe
            && probe == number
        {
            (self.probe, self.failures) = (None, 0);
            self.current = self.current.max(size);
            if self.current <= BASE_DATAGRAM && self.wanted(now).is_none() {
                // The base size passes again: what made it seem too large was an outage.
                let wait = if size == BASE_DATAGRAM { BLACK_HOLE_TIME } else { RAISE_INTERVAL };
                self.rest(now, wait);
            }
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

    /// Notes that `size` is too large, by an error of the system or by three losses.
    pub fn refused(&mut self, now: Instant, size: usize) {
        (self.probe, self.failures) = (None, 0);
        self.ceiling = self.ceiling.min(size);
        if self.current >= size {
            let smaller = if size > BASE_DATAGRAM { BASE_DATAGRAM } else { MIN_DATAGRAM };
            self.current = smaller.min(self.limit);
        }
        if self.wanted(now).is_none() {
            self.rest(now, RAISE_INTERVAL);
        }
    }

    /// Ends the search. It begins again after `wait`, as the route may have changed.
    fn rest(&mut self, now: Instant, wait: Duration) {
        (self.next_at, self.ceiling) = (now + wait, self.limit + 1);
    }

    /// A packet of `size` bytes that was sent at `sent_at` came through.
    #[inline]
    pub fn passed(&mut self, now: Instant, size: usize, sent_at: Instant) {
        if size >= self.suspected_size.min(self.current) {
            self.trust();
        } else if self.is_suspected() && sent_at >= self.suspected_at {
            self.small_passed_at.get_or_insert(now);
        }
    }

    /// A packet of `size` bytes that was sent at `sent_at` was lost.
    pub fn suspect(&mut self, now: Instant, size: usize, sent_at: Instant) {
        if size <= MIN_DATAGRAM {
            return;
        }
        self.suspected_size = self.suspected_size.min(size);
        if sent_at < self.suspected_at {
            return; // of the same loss
        }
        self.suspected_at = now;
        self.suspicions = self.suspicions.saturating_add(1);
        if self.suspicions == BLACK_HOLE_LOSSES {
            self.black_hole(now);
        } else if size <= self.current && self.small_passed_at.is_some_and(|at| at <= sent_at) {
            self.narrow(now);
        }
    }

    /// Whether so many large packets in a row were lost that a small packet must show whether the
    /// size is the cause.
    #[must_use]
    pub const fn is_suspected(&self) -> bool {
        self.suspicions >= BLACK_HOLE_LOSSES
    }

    /// No size is suspected any more.
    const fn trust(&mut self) {
        (self.suspicions, self.suspected_size, self.small_passed_at) = (0, usize::MAX, None);
    }

    /// Goes down to the smallest size, as only small packets pass, and searches upward at once.
    /// The base size comes first.
    fn narrow(&mut self, now: Instant) {
        self.trust();
        self.current = MIN_DATAGRAM.min(self.limit);
        (self.probe, self.failures) = (None, 0);
        (self.next_at, self.ceiling) = (now, self.ceiling.min(BASE_DATAGRAM + 1));
    }

    /// Nothing large gets through any more: back to the base, and search again later (RFC 8899
    /// section 4.3).
    fn black_hole(&mut self, now: Instant) {
        if self.current > BASE_DATAGRAM {
            self.current = BASE_DATAGRAM.min(self.limit);
            (self.probe, self.failures) = (None, 0);
            self.next_at = now + BLACK_HOLE_TIME;
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
                mtu.acked(now, number);
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
        mtu.suspect(at(5), 1472, at(1));
        mtu.suspect(at(9), 1472, at(6));
        mtu.passed(at(10), 1472, at(7));
        for (now, sent_at) in [(20, 11), (21, 12), (30, 21)] {
            mtu.suspect(at(now), 1472, at(sent_at));
            assert_eq!(mtu.current(), 1472, "two losses, one of them in two parts");
        }
        mtu.suspect(at(40), 1472, at(30));
        assert_eq!(mtu.current(), BASE_DATAGRAM);
        assert_eq!(mtu.wanted(at(41)), None);
        assert_eq!(mtu.wanted(at(10_040)), Some(1472));
    }

    /// Packets of the size in use are lost, and small ones pass.
    fn grow_narrow(mtu: &mut Mtu, from: u64) {
        let at = Instant::from_millis;
        for second in 0..4 {
            let sent_at = from + 1_000 * second;
            mtu.suspect(at(sent_at + 500), mtu.current(), at(sent_at));
            mtu.passed(at(sent_at + 600), 60, at(sent_at + 500));
        }
    }

    #[test]
    fn a_way_that_carries_only_small_packets_is_searched_from_below() {
        let mut mtu = search(1472, 1472);
        grow_narrow(&mut mtu, 1_000);
        assert_eq!(mtu.current(), MIN_DATAGRAM);
        let now = Instant::from_millis(6_000);
        let mut number = 100;
        while let Some(size) = mtu.wanted(now) {
            mtu.sent(size, number);
            if size <= 1_096 {
                mtu.acked(now, number)
            } else {
                mtu.lost(now, number)
            }
            number += 1;
        }
        assert_eq!((mtu.current(), number), (1_096, 104), "the base is tried thrice");
        assert_eq!(mtu.wanted(now + RAISE_INTERVAL), Some(1_472));
    }

    #[test]
    fn a_way_that_only_seemed_narrow_is_used_in_full_soon() {
        let mut mtu = search(1472, 1472);
        grow_narrow(&mut mtu, 1_000);
        let now = Instant::from_millis(6_000);
        assert_eq!(mtu.wanted(now), Some(BASE_DATAGRAM));
        mtu.sent(BASE_DATAGRAM, 100);
        mtu.acked(now, 100);
        assert_eq!((mtu.current(), mtu.wanted(now)), (BASE_DATAGRAM, None));
        assert_eq!(mtu.wanted(now + BLACK_HOLE_TIME), Some(1_472));
    }

    #[test]
    fn after_an_outage_small_packets_say_nothing_about_the_size() {
        let at = Instant::from_millis;
        let mut mtu = search(1472, 1472);
        for second in 0..9 {
            mtu.suspect(at(1_000 * second + 500), mtu.current(), at(1_000 * second));
        }
        mtu.passed(at(9_100), BASE_DATAGRAM, at(9_000));
        mtu.suspect(at(9_600), BASE_DATAGRAM, at(9_200));
        mtu.passed(at(9_900), 60, at(9_700));
        assert_eq!(mtu.current(), BASE_DATAGRAM);
    }

    #[test]
    fn what_the_system_calls_too_large_is_never_the_size() {
        for size in [1_472, 1_300, 1_200, 1_100] {
            let mut mtu = search(1472, 1472);
            mtu.refused(Instant::from_millis(5), size);
            assert!(mtu.current() < size, "{size}");
        }
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
            (1_000_000_000, MAX_FRAME_BYTES),
            (1_000_000_000, MAX_FRAME_BYTES),
        ] {
            frames.fit(rate);
            assert_eq!(frames.current(), size, "{rate}");
        }
        for size in [MAX_FRAME_BYTES / 2, MAX_FRAME_BYTES / 4, MAX_FRAME_BYTES / 8, MAX_FRAME_BYTES / 8] {
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
