//! The receiving end of a path: what arrived and when, what is missing, and when to say so.

use super::reordering::ReorderTolerance;
use crate::config::Pnack;
use crate::invariant::Invariant as _;
use alloc::vec::Vec;
use byway_wire::frame::PathHint;
use byway_wire::frame::ack::{AckWriter, EntryParts};
use byway_wire::{Duration, Ecn, Instant, PathId, Writer};

/// Packets after which an ACK is due.
const ACK_PACKETS: u32 = 10;
/// Packets after which an ACK is due while their one-way delay exceeds the `delay_limit` of the
/// sender's PATH_HINT. The sender must learn soon of the queue that causes this delay. A sender
/// with a small window may never have `ACK_PACKETS` packets in flight.
const BEYOND_LIMIT_ACK_PACKETS: u32 = 4;
/// The longest time from the first packet that an ACK acknowledges to the ACK. If a quarter
/// of the RTT is shorter, that quarter counts instead (at least `MIN_ACK_DELAY`). Later ACKs would
/// limit the rate.
const MAX_ACK_DELAY: Duration = Duration::from_millis(10);
const MIN_ACK_DELAY: Duration = Duration::from_millis(1);
/// Time after which a hole counts as lost, until the sender has reported an RTT.
const DEFAULT_HOLE_TIMEOUT: Duration = Duration::from_millis(25);
/// The most ranges of received numbers that are kept. Older ones have been acknowledged many times.
const MAX_RANGES: usize = 48;
/// The most arrivals remembered for the next ACK's stamps.
const MAX_STAMPS: usize = 256;
/// Time for which a lost hole is remembered, in case its packets still arrive.
const LOST_HOLE_LIFETIME: Duration = Duration::from_secs(4);
/// The most undecided holes. Beyond it the oldest is judged lost at once.
const MAX_HOLES: usize = 128;

/// A hole in the packet numbers: the first missing number, and one more than the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hole {
    start: u64,
    end: u64,
    seen_at: Instant,
    /// Counted and reported as lost; kept for a while to notice that it was not.
    lost: bool,
}

/// Facts about the receiving end of a path.
#[derive(Clone, Debug)]
pub struct ReceivePath {
    /// The path's id, which the peer chose.
    pub id: PathId,
    /// When anything last arrived.
    pub last_arrival: Instant,
    /// Packets and bytes (UDP payload) that arrived.
    pub packets: u64,
    /// Bytes that arrived.
    pub bytes: u64,
    /// Received packet numbers as descending ranges: the first number, and one more than the last.
    ranges: Vec<(u64, u64)>,
    /// Arrivals since the last ACK: number and stamp.
    fresh: Vec<(u64, u32)>,
    largest_at: Instant,
    largest_stamp: u32,
    holes: Vec<Hole>,
    /// Number of holes at the front of `holes` that were judged lost. Mostly all are, and then none
    /// need be examined.
    judged: usize,
    /// When the oldest ranges are to be forgotten, or earlier.
    forget_at: Instant,
    lost: u64,
    ce: u64,
    tolerance: ReorderTolerance,
    hint: Option<PathHint>,
    beyond_limit: bool,
    unacked: u32,
    ack_at: Option<Instant>,
    /// The delay of an ACK, if it is fixed.
    ack_after: Option<Duration>,
    report: Vec<(u64, u64)>,
}

/// A packet that arrived and was authentic.
#[derive(Clone, Copy, Debug)]
pub struct PacketArrival {
    /// The packet's number.
    pub number: u64,
    /// The arrival time of the packet.
    pub at: Instant,
    /// The sender's stamp in µs, modulo 2^32 ([`byway_wire::packet`]).
    pub stamp: u32,
    /// Bytes (UDP payload).
    pub bytes: usize,
    /// The packet's ECN mark.
    pub ecn: Ecn,
    /// Whether the packet must be acknowledged.
    pub eliciting: bool,
}

impl ReceivePath {
    /// A path on which nothing arrived yet.
    #[must_use]
    pub const fn new(id: PathId, now: Instant, pnack: Pnack) -> Self {
        Self {
            id,
            last_arrival: now,
            packets: 0,
            bytes: 0,
            ranges: Vec::new(),
            fresh: Vec::new(),
            largest_at: now,
            largest_stamp: 0,
            holes: Vec::new(),
            judged: 0,
            forget_at: now,
            lost: 0,
            ce: 0,
            tolerance: ReorderTolerance::new(pnack),
            hint: None,
            beyond_limit: false,
            unacked: 0,
            ack_at: None,
            ack_after: None,
            report: Vec::new(),
        }
    }

    /// The same, whose ACKs wait for `ack_after` instead of a time that follows from the RTT.
    #[must_use]
    pub const fn with_ack_after(mut self, ack_after: Option<Duration>) -> Self {
        self.ack_after = ack_after;
        self
    }

    /// The next expected packet number, from which truncated numbers are restored.
    #[must_use]
    pub fn expected(&self) -> u64 {
        self.ranges.first().map_or(0, |(_, end)| *end)
    }

    /// Stores the sender's hint about the path.
    pub const fn on_hint(&mut self, hint: PathHint) {
        self.hint = Some(hint);
    }

    /// Returns the smoothed RTT that the path's sender reported. `None`: it reported none.
    #[must_use]
    pub fn round_trip(&self) -> Option<Duration> {
        self.hint.map(|hint| Duration::from_micros(hint.srtt_micros))
    }

    /// Enters a packet. Returns whether it is the newest of the path, so that its source is the
    /// path's address now.
    pub fn on_packet(&mut self, arrival: &PacketArrival) -> bool {
        let at = arrival.at;
        self.last_arrival = self.last_arrival.max(at);
        self.packets += 1;
        self.bytes += arrival.bytes as u64;
        self.ce += u64::from(arrival.ecn == Ecn::Ce);
        let expected = self.expected();
        let newest = arrival.number >= expected;
        if newest {
            if arrival.number > expected {
                self.open_hole(expected, arrival.number, at);
            }
            (self.largest_at, self.largest_stamp) = (at, at.as_micros() as u32);
        } else {
            self.fill(arrival.number, at);
        }
        self.insert(arrival.number);
        if self.fresh.len() < MAX_STAMPS {
            self.fresh.push((arrival.number, at.as_micros() as u32));
        }
        if arrival.eliciting {
            self.unacked += 1;
            if self.ack_at.is_none() {
                self.ack_at = Some(at + self.ack_delay());
            }
            // A path that begins, or that was silent for long, is measured at once.
            if self.unacked >= ACK_PACKETS || self.packets <= 4 || arrival.ecn == Ecn::Ce {
                self.ack_at = Some(at);
            }
        }
        if let Some(limit) = self.hint.and_then(|hint| hint.delay_limit) {
            let apparent = (at.as_micros() as u32).wrapping_sub(arrival.stamp);
            let beyond = apparent.wrapping_sub(limit) as i32 > 0;
            // Who yields to a queue must hear at once that it stands, and that it is gone.
            if beyond != self.beyond_limit || beyond && self.unacked >= BEYOND_LIMIT_ACK_PACKETS {
                self.ack_at = Some(at);
            }
            self.beyond_limit = beyond;
        }
        self.judge(at);
        newest
    }

    fn insert(&mut self, number: u64) {
        match self.ranges.first_mut() {
            Some((_, end)) if *end == number => {
                *end += 1;
                return;
            }
            Some((_, end)) if number > *end => {
                self.ranges.insert(0, (number, number + 1));
                self.ranges.truncate(MAX_RANGES);
                return;
            }
            None => {
                self.ranges.push((number, number + 1));
                return;
            }
            Some(_) => {}
        }
        // The first range that lies below the number; the one above may touch it.
        let below = self.ranges.partition_point(|(_, end)| *end > number);
        if below > 0 && self.ranges.get(below - 1).is_some_and(|(start, _)| *start <= number) {
            return; // already there
        }
        let touches_below = self.ranges.get(below).is_some_and(|(_, end)| *end == number);
        let touches_above =
            below > 0 && self.ranges.get(below - 1).is_some_and(|(start, _)| *start == number + 1);
        match (touches_above, touches_below) {
            (true, true) => {
                let (start, _) = self.ranges.remove(below);
                if let Some(above) = self.ranges.get_mut(below - 1).sure() {
                    above.0 = start;
                }
            }
            (true, false) => {
                if let Some(above) = self.ranges.get_mut(below - 1).sure() {
                    above.0 = number;
                }
            }
            (false, true) => {
                if let Some(range) = self.ranges.get_mut(below).sure() {
                    range.1 = number + 1;
                }
            }
            (false, false) => {
                self.ranges.insert(below, (number, number + 1));
                self.ranges.truncate(MAX_RANGES);
            }
        }
    }

    fn open_hole(&mut self, start: u64, end: u64, at: Instant) {
        if self.holes.len() == MAX_HOLES {
            let oldest = self.holes.remove(0);
            if oldest.lost {
                self.judged -= 1;
            } else {
                self.count_lost(oldest);
            }
        }
        self.holes.push(Hole { start, end, seen_at: at, lost: false });
    }

    fn count_lost(&mut self, hole: Hole) {
        self.lost += hole.end - hole.start;
        if self.report.len() < MAX_HOLES {
            self.report.push((hole.start, hole.end));
        }
    }

    /// A packet came late: it takes itself out of its hole, and if that was called a loss, more
    /// patience is learnt.
    fn fill(&mut self, number: u64, at: Instant) {
        let Some(index) = self.holes.iter().position(|hole| hole.start <= number && number < hole.end) else {
            return;
        };
        let hole = self.holes.remove(index);
        let pieces = usize::from(number + 1 < hole.end) + usize::from(hole.start < number);
        if hole.lost {
            self.judged = self.judged - 1 + pieces;
            self.lost -= 1;
            let late = at.since(hole.seen_at);
            let round_trip =
                self.hint.map_or(DEFAULT_HOLE_TIMEOUT * 4, |hint| Duration::from_micros(hint.srtt_micros));
            let behind = self.expected() - number;
            self.tolerance.learn(behind, late, round_trip);
        }
        if number + 1 < hole.end {
            self.holes.insert(index, Hole { start: number + 1, ..hole });
        }
        if hole.start < number {
            self.holes.insert(index, Hole { end: number, ..hole });
        }
    }

    /// Finds the holes that are lost by now: after three later packets (more on a path that
    /// reorders), or a quarter RTT.
    fn judge(&mut self, now: Instant) {
        if self.holes.is_empty() {
            return;
        }
        let (expected, patience, packets) = (self.expected(), self.patience(), self.tolerance.packets());
        // An older hole is judged no later than a younger one: those that are open stand at the
        // end.
        for index in self.judged..self.holes.len() {
            let Some(hole) = self.holes.get_mut(index).sure() else { break };
            let due = expected >= hole.end + packets || hole.seen_at + patience <= now;
            if !due {
                break;
            }
            hole.lost = true;
            if self.judged == 0 {
                self.forget_at = hole.seen_at + LOST_HOLE_LIFETIME;
            }
            self.judged += 1;
            let hole = *hole;
            self.count_lost(hole);
            self.ack_at = Some(now);
        }
        if self.judged > 0 && self.forget_at <= now {
            self.holes.retain(|hole| !hole.lost || hole.seen_at + LOST_HOLE_LIFETIME > now);
            self.judged = self.holes.partition_point(|hole| hole.lost);
            self.forget_at = self.holes.first().map_or(now, |oldest| oldest.seen_at + LOST_HOLE_LIFETIME);
        }
    }

    fn ack_delay(&self) -> Duration {
        match (self.ack_after, self.round_trip()) {
            (Some(set), _) => set,
            (None, Some(srtt)) => (srtt / 4).clamp(MIN_ACK_DELAY, MAX_ACK_DELAY),
            (None, None) => MAX_ACK_DELAY,
        }
    }

    fn patience(&self) -> Duration {
        let quarter =
            self.hint.map_or(DEFAULT_HOLE_TIMEOUT, |hint| Duration::from_micros(hint.srtt_micros / 4));
        self.tolerance.patience(quarter.max(Duration::from_millis(1)))
    }

    /// Judges holes that have grown old.
    pub fn wake(&mut self, now: Instant) {
        self.judge(now);
    }

    /// When an ACK is due, or a hole grows old.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        let patience = self.patience();
        let hole = self.holes.get(self.judged).map(|hole| hole.seen_at + patience);
        match (self.ack_at, hole) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Whether an ACK is due.
    #[must_use]
    pub fn ack_due(&self, now: Instant) -> bool {
        self.ack_at.is_some_and(|at| at <= now)
    }

    /// Whether an ACK is due so soon that it should go now in a packet with data. Soon: within half
    /// of [`Config::ack_after`](crate::Config::ack_after), or a quarter of the default ACK delay.
    /// `false` while lost packets wait to be reported, because the report comes with an ACK.
    #[must_use]
    pub fn ack_nearly_due(&self, now: Instant) -> bool {
        let early = self.ack_delay() / if self.ack_after.is_some() { 2 } else { 4 };
        self.report.is_empty() && self.ack_at.is_some_and(|at| at <= now + early)
    }

    /// Whether ACKs are delayed by the configured time.
    #[must_use]
    pub const fn acks_wait(&self) -> bool {
        self.ack_after.is_some()
    }

    /// Has the ACK go at once.
    pub const fn ack_at_once(&mut self, now: Instant) {
        self.ack_at = Some(now);
    }

    /// Packet numbers found missing since the last call, for a PNACK.
    pub fn take_missing(&mut self, missing: &mut Vec<(u64, u64)>) {
        missing.clear();
        missing.append(&mut self.report);
        missing.sort_unstable();
    }

    /// Writes the path's entry of an ACK. `false` if it does not fit; the ACK then stays due.
    pub fn write_ack(
        &mut self,
        now: Instant,
        ack: &mut AckWriter,
        writer: &mut Writer<'_>,
        runs: &mut Vec<(u64, u32)>,
    ) -> bool {
        self.stamp_runs(runs);
        let written = ack.entry(
            writer,
            &EntryParts {
                path: self.id,
                lost: self.lost,
                ce: self.ce,
                arrival: self.largest_stamp,
                held_micros: u64::try_from(now.since(self.largest_at).as_micros()).unwrap_or(0),
                ranges: &self.ranges,
                stamps: runs,
            },
        );
        if written {
            self.fresh.clear();
            self.unacked = 0;
            self.ack_at = None;
        }
        written
    }

    /// Collects the stamps of packets received since the last ACK, down from the largest number
    /// without a gap, with equal stamps merged.
    fn stamp_runs(&mut self, runs: &mut Vec<(u64, u32)>) {
        runs.clear();
        if !self.fresh.is_sorted_by(|a, b| a.0 < b.0) {
            self.fresh.sort_unstable();
            self.fresh.dedup_by_key(|(number, _)| *number);
        }
        let mut fresh = self.fresh.iter().rev().peekable();
        'ranges: for (start, end) in &self.ranges {
            for number in (*start..*end).rev() {
                match fresh.peek() {
                    Some((at, stamp)) if *at == number => {
                        match runs.last_mut() {
                            Some((count, before)) if before == stamp => *count += 1,
                            _ => runs.push((1, *stamp)),
                        }
                        fresh.next();
                    }
                    _ => break 'ranges,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use proptest::prelude::*;

    fn arrival(number: u64, micros: u64) -> PacketArrival {
        PacketArrival {
            number,
            at: Instant::from_micros(micros),
            stamp: 0,
            bytes: 1200,
            ecn: Ecn::NotEct,
            eliciting: true,
        }
    }

    fn path_after(numbers: &[u64]) -> ReceivePath {
        let mut path = ReceivePath::new(PathId(0), Instant::ZERO, Pnack::Patient);
        for (index, number) in numbers.iter().enumerate() {
            path.on_packet(&arrival(*number, 1000 + index as u64));
        }
        path
    }

    #[test]
    fn three_later_packets_make_a_hole_a_loss() {
        let mut path = path_after(&[0, 1, 3, 4]);
        let mut missing = Vec::new();
        path.take_missing(&mut missing);
        assert!(missing.is_empty());
        path.on_packet(&arrival(5, 1100));
        path.on_packet(&arrival(6, 1200));
        path.take_missing(&mut missing);
        assert_eq!(missing, [(2, 3)]);
        assert_eq!(path.lost, 1);
    }

    #[test]
    fn a_gap_is_a_loss_at_once_for_who_wants_it_so() {
        let mut path = ReceivePath::new(PathId(0), Instant::ZERO, Pnack::FirstGap);
        let mut missing = Vec::new();
        for number in [0, 1, 3] {
            path.on_packet(&arrival(number, 1000 + number));
        }
        path.take_missing(&mut missing);
        assert_eq!((missing.as_slice(), path.lost), ([(2, 3)].as_slice(), 1));
        // A packet that comes late teaches no patience.
        path.on_packet(&arrival(2, 1010));
        path.on_packet(&arrival(5, 1020));
        path.take_missing(&mut missing);
        assert_eq!((missing.as_slice(), path.lost), ([(4, 5)].as_slice(), 1));
    }

    #[test]
    fn a_quarter_round_trip_makes_a_hole_a_loss() {
        let mut path = path_after(&[0, 2]);
        path.on_hint(PathHint { path: PathId(0), srtt_micros: 40_000, delay_limit: None });
        assert_eq!(
            path.deadline(),
            Some(Instant::from_micros(1001)),
            "the first packets are acknowledged at once"
        );
        path.wake(Instant::from_micros(11_000));
        assert_eq!(path.lost, 0);
        path.wake(Instant::from_micros(11_001));
        assert_eq!(path.lost, 1);
    }

    #[test]
    fn a_late_packet_takes_the_loss_back_and_teaches_patience() {
        let mut path = path_after(&[0, 2, 3, 4, 5, 6, 7]);
        assert_eq!(path.lost, 1);
        path.on_packet(&arrival(1, 3000));
        assert_eq!((path.lost, path.tolerance.packets()), (0, 8));
        for number in [9, 10, 11, 12] {
            path.on_packet(&arrival(number, 3100));
        }
        assert_eq!(path.lost, 0);
    }

    #[test]
    fn an_ack_is_due_after_ten_packets_or_ten_milliseconds() {
        let mut path = path_after(&[0, 1, 2, 3]);
        let (mut runs, mut buffer) = (Vec::new(), [0; 200]);
        let mut writer = Writer::new(&mut buffer);
        let mut ack = AckWriter::begin(&mut writer);
        assert!(path.write_ack(Instant::from_micros(1100), &mut ack, &mut writer, &mut runs));
        assert_eq!(path.ack_at, None);
        path.on_packet(&arrival(4, 2000));
        assert_eq!(path.deadline(), Some(Instant::from_micros(12_000)));
        for number in 5..14 {
            path.on_packet(&arrival(number, 2000 + number));
        }
        assert!(path.ack_due(Instant::from_micros(2013)));
    }

    #[test]
    fn on_a_short_way_an_ack_is_due_after_a_quarter_round_trip() {
        for (srtt_micros, after) in
            [(400, 1_000), (0, 1_000), (8_000, 2_000), (20_000, 5_000), (40_000, 10_000), (200_000, 10_000)]
        {
            let mut path = path_after(&[0, 1, 2, 3]);
            let (mut runs, mut buffer) = (Vec::new(), [0; 200]);
            let mut writer = Writer::new(&mut buffer);
            let mut ack = AckWriter::begin(&mut writer);
            path.write_ack(Instant::from_micros(1100), &mut ack, &mut writer, &mut runs);
            path.on_hint(PathHint { path: PathId(0), srtt_micros, delay_limit: None });
            path.on_packet(&arrival(4, 2_000));
            assert_eq!(path.deadline(), Some(Instant::from_micros(2_000 + after)));
        }
    }

    #[test]
    fn the_first_packet_beyond_the_delay_limit_is_acknowledged_at_once_and_the_first_within() {
        let mut path = path_after(&[0, 1, 2, 3]);
        let (mut runs, mut buffer) = (Vec::new(), [0; 200]);
        let mut writer = Writer::new(&mut buffer);
        let mut ack = AckWriter::begin(&mut writer);
        path.write_ack(Instant::from_micros(1100), &mut ack, &mut writer, &mut runs);
        path.on_hint(PathHint { path: PathId(0), srtt_micros: 20_000, delay_limit: Some(10_000) });
        path.on_packet(&PacketArrival { stamp: 20_000 - 9_999, ..arrival(4, 20_000) });
        assert!(!path.ack_due(Instant::from_micros(20_000)));
        for (number, waited, due) in
            [(5, 10_001, true), (6, 10_001, false), (7, 9_999, true), (8, 9_999, false)]
        {
            let at = 20_000 + number;
            path.on_packet(&PacketArrival { stamp: (at - waited) as u32, ..arrival(number, at) });
            assert_eq!(path.ack_due(Instant::from_micros(at)), due, "{number}");
            let mut ack = AckWriter::begin(&mut writer);
            path.write_ack(Instant::from_micros(at), &mut ack, &mut writer, &mut runs);
        }
    }

    #[test]
    fn while_a_queue_stands_an_ack_is_due_after_four_packets() {
        let mut path = path_after(&[0, 1, 2, 3]);
        let (mut runs, mut buffer) = (Vec::new(), [0; 400]);
        let mut writer = Writer::new(&mut buffer);
        path.on_hint(PathHint { path: PathId(0), srtt_micros: 200_000, delay_limit: Some(10_000) });
        for (number, due) in [(4, true), (5, false), (6, false), (7, false), (8, true)] {
            path.on_packet(&PacketArrival { stamp: 20_000 - 10_001, ..arrival(number, 20_000) });
            assert_eq!(path.ack_due(Instant::from_micros(20_000)), due, "{number}");
            if number == 4 {
                let mut ack = AckWriter::begin(&mut writer);
                assert!(path.write_ack(Instant::from_micros(20_000), &mut ack, &mut writer, &mut runs));
            }
        }
    }

    proptest! {
        /// Compares a receiving path with a plain set of the packet numbers that arrived. The
        /// path's ranges are exactly the numbers of the set. The path's count of losses never
        /// exceeds the number of missing packets. In the end both counts are equal.
        #[test]
        fn ranges_and_losses_agree_with_a_set(numbers in prop::collection::vec(0u64..60, 1..80)) {
            let mut path = ReceivePath::new(PathId(0), Instant::ZERO, Pnack::Patient);
            let mut seen = BTreeSet::new();
            for (index, number) in numbers.iter().enumerate() {
                if seen.insert(*number) {
                    path.on_packet(&arrival(*number, 1000 + index as u64));
                }
                let in_ranges: BTreeSet<u64> = path.ranges.iter().flat_map(|(start, end)| *start..*end).collect();
                prop_assert_eq!(&in_ranges, &seen);
                prop_assert!(path.ranges.windows(2).all(|pair| pair[0].0 > pair[1].1));
                let largest = seen.last().copied().unwrap_or(0);
                prop_assert!(path.lost <= largest + 1 - seen.len() as u64);
            }
            path.wake(Instant::from_millis(4000));
            let largest = seen.last().copied().unwrap_or(0);
            prop_assert_eq!(path.lost, largest + 1 - seen.len() as u64);
        }
    }
}
