//! A sender's record of its segments: which are in flight, delivered or lost, and which to send
//! again.
//!
//! | mode | a segment is lost when |
//! |---|---|
//! | SACK | three segments that were sent later have arrived (RFC 9002, 6.1.1) |
//! | RACK ([`Rack`]) | a segment that was sent later has arrived, and enough time has passed |
//! | without SACK | three duplicate ACKs or a partial ACK tell of it (RFC 6582) |
//! | after a timeout | it has not arrived, unless the timeout was too early (RFC 4015) |

mod fast_recovery;
mod rack_tlp;
mod tail_probe;

use super::options::{Recovery, TcpConfig};
use super::rack::Rack;
use super::ranges::Ranges;
use super::rtt::Rtt;
use super::segment::stamp;
use byway_wire::{Duration, Instant};
use fast_recovery::{DUP_THRESH, FastRecovery};
use std::collections::VecDeque;
pub(super) use tail_probe::TIMER_SLACK;
use tail_probe::TailProbe;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SegmentState {
    Outstanding,
    Sacked,
    Lost,
}

#[derive(Clone, Copy, Debug)]
struct SentSegment {
    seq: u64,
    /// The number of the segment's last transmission.
    transmission: u64,
    sent_at: Instant,
    /// When the segment was first sent.
    first_sent_at: Instant,
    /// Bytes delivered when the segment was sent, with times for the delivery rate.
    delivered: (u64, Instant),
    delivered_sent_at: Instant,
    /// Bytes of data.
    len: u32,
    state: SegmentState,
    fin: bool,
    app_limited: bool,
    resent: bool,
}

impl SentSegment {
    fn end(&self) -> u64 {
        self.seq + u64::from(self.len) + u64::from(self.fin)
    }
}

/// A segment to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OutgoingSegment {
    pub seq: u64,
    pub len: u32,
    pub fin: bool,
}

/// The result of an ACK: the newly acknowledged data.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NewlyAcked {
    /// Segments with data that arrived.
    pub packets: u32,
    /// Bytes of the segments with data that arrived.
    pub bytes: u64,
    /// Bytes that the cumulative acknowledgement moved over.
    pub in_order: u64,
    /// Whether the cumulative acknowledgement moved.
    pub advanced: bool,
    /// When the latest arrived transmission was sent.
    pub sent_at: Instant,
    /// Whether the application limited that transmission.
    pub app_limited: bool,
    /// The round-trip time of the segment. `None`: it is not certain which transmission arrived.
    pub rtt: Option<Duration>,
    /// Bytes per second delivered over the segment's round trip. `None`: unknown.
    pub rate: Option<u64>,
    /// The first sending time of the tail, if its probe shows that it had been lost. `None`: it was
    /// not lost.
    pub tail_lost: Option<Instant>,
    latest: u64,
    from: (u64, Instant),
    from_sent_at: Instant,
}

/// The segments that an ACK showed to be lost.
#[derive(Clone, Copy, Debug)]
pub(super) struct DetectedLosses {
    pub packets: u32,
    pub bytes: u64,
    pub first_sent_at: Instant,
    pub last_sent_at: Instant,
    /// Bytes in flight before.
    pub in_flight: u64,
}

#[derive(Debug)]
pub(super) struct Scoreboard {
    /// Whether the receiver sends SACK blocks.
    sack: bool,
    records: VecDeque<SentSegment>,
    /// The number of the first record, counted from the beginning.
    base: u64,
    /// The first unacknowledged sequence number.
    pub una: u64,
    /// The sequence number of the next new byte.
    pub next: u64,
    in_flight: u64,
    transmissions: u64,
    /// The latest three transmissions that arrived, latest first.
    latest: [u64; DUP_THRESH as usize],
    /// Records before this number were checked for loss after their first transmission.
    judged: u64,
    /// Retransmissions, with the numbers of their records.
    resent: VecDeque<(u64, u64)>,
    /// Numbers of records to be sent again; some may have arrived since.
    lost: VecDeque<u64>,
    sacked: Ranges,
    /// The number of records in `sacked`.
    sacked_segments: u32,
    /// The state of RACK. `None`: three later arrivals show a loss.
    rack: Option<Rack>,
    /// The probe of the tail: the end of its episode, and the transmission that sent old data
    /// again.
    tail: Option<TailProbe>,
    delivered: (u64, Instant),
    /// When the latest delivered segment was sent.
    delivered_sent_at: Instant,
    /// The time of the last timeout, until an ACK shows whether it was spurious.
    timeout_at: Option<Instant>,
    /// Finds losses without SACK.
    fast_recovery: FastRecovery,
}

impl Scoreboard {
    pub(super) fn new(now: Instant, options: &TcpConfig) -> Self {
        Self {
            sack: options.sack,
            records: VecDeque::new(),
            base: 0,
            una: 0,
            next: 0,
            in_flight: 0,
            transmissions: 0,
            latest: [0; DUP_THRESH as usize],
            judged: 0,
            resent: VecDeque::new(),
            lost: VecDeque::new(),
            sacked: Ranges::default(),
            sacked_segments: 0,
            rack: (options.recovery == Recovery::Rack).then(Rack::new),
            tail: None,
            delivered: (0, now),
            delivered_sent_at: now,
            timeout_at: None,
            fast_recovery: FastRecovery::new(options.partial_ack),
        }
    }

    /// Disables SACK, and RACK, which needs SACK (RFC 8985, section 5): the receiver sends no SACK
    /// blocks.
    pub(super) fn without_sack(&mut self) {
        (self.sack, self.rack) = (false, None);
    }

    /// Bytes in flight.
    #[inline]
    pub(super) fn in_flight(&self) -> u64 {
        let duplicates = self.fast_recovery.duplicates();
        if duplicates == 0 {
            return self.in_flight;
        }
        let segment = self.records.front().map_or(0, |record| u64::from(record.len));
        self.in_flight.saturating_sub(u64::from(duplicates) * segment)
    }

    /// Whether everything sent is acknowledged.
    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Bytes of data that are not acknowledged.
    pub(super) fn unacknowledged(&self) -> u64 {
        self.next - self.una
    }

    /// Enters new data.
    #[inline]
    pub(super) fn push(&mut self, now: Instant, len: u32, fin: bool, app_limited: bool) -> OutgoingSegment {
        if self.in_flight == 0 {
            (self.delivered.1, self.delivered_sent_at) = (now, now);
        }
        self.transmissions += 1;
        let seq = self.next;
        self.records.push_back(SentSegment {
            seq,
            transmission: self.transmissions,
            sent_at: now,
            first_sent_at: now,
            delivered: self.delivered,
            delivered_sent_at: self.delivered_sent_at,
            len,
            state: SegmentState::Outstanding,
            fin,
            app_limited,
            resent: false,
        });
        self.next += u64::from(len) + u64::from(fin);
        self.in_flight += u64::from(len);
        OutgoingSegment { seq, len, fin }
    }

    /// The next segment to retransmit.
    #[inline]
    pub(super) fn next_lost(&mut self) -> Option<OutgoingSegment> {
        while let Some(&number) = self.lost.front() {
            if let Some(record) = self.get(number)
                && record.state == SegmentState::Lost
            {
                return Some(OutgoingSegment { seq: record.seq, len: record.len, fin: record.fin });
            }
            self.lost.pop_front();
        }
        None
    }

    /// Enters that [`next_lost`](Self::next_lost) was sent again.
    pub(super) fn resend(&mut self, now: Instant) {
        let Some(number) = self.lost.pop_front() else { return };
        self.transmissions += 1;
        let (transmission, delivered, before) = (self.transmissions, self.delivered, self.delivered_sent_at);
        let Some(record) = self.get_mut(number) else { return };
        record.delivered_sent_at = before;
        (record.transmission, record.sent_at, record.delivered) = (transmission, now, delivered);
        (record.state, record.resent) = (SegmentState::Outstanding, true);
        let len = record.len;
        self.in_flight += u64::from(len);
        if self.sack {
            self.resent.push_back((transmission, number));
        }
    }

    /// Processes an ACK of all data before `ack` and of the SACK blocks `blocks`. `echo` is the
    /// timestamp that the ACK echoes. For each arrived segment that counted as lost, `undone` gets
    /// the time of its first sending.
    #[inline]
    pub(super) fn on_ack(
        &mut self,
        now: Instant,
        ack: u64,
        blocks: impl Iterator<Item = (u64, u64)>,
        echo: u32,
        undone: &mut Vec<Instant>,
    ) -> NewlyAcked {
        let mut progress = NewlyAcked::default();
        let was = self.una;
        let forward = self.rack.as_ref().map_or(0, Rack::forward);
        if let Some(at) = self.timeout_at
            && (ack > self.una)
        {
            self.timeout_at = None;
            if is_before(echo, at) {
                self.take_back_losses();
            }
        }
        while let Some(&record) = self.records.front()
            && record.end() <= ack
        {
            self.records.pop_front();
            self.base += 1;
            progress.in_order += u64::from(record.len);
            if record.state == SegmentState::Sacked {
                self.sacked_segments -= 1;
            } else {
                self.deliver(&record, now, (echo, forward), &mut progress, undone);
            }
        }
        if ack > self.una {
            self.una = ack;
            progress.advanced = true;
            if !self.sacked.is_empty() {
                self.sacked.cut_below(ack);
            }
        }
        for (from, to) in blocks {
            if from < self.una || to > self.next {
                continue;
            }
            while let Some((gap, end)) = self.sacked.first_gap(from, to) {
                self.sacked.insert(gap, end);
                let first = self.records.partition_point(|record| record.seq < gap);
                for place in first..self.records.len() {
                    let Some(&record) = self.records.get(place) else { break };
                    if record.end() > end {
                        break;
                    }
                    if record.state != SegmentState::Sacked {
                        self.deliver(&record, now, (echo, forward), &mut progress, undone);
                        self.sacked_segments += 1;
                        if let Some(record) = self.records.get_mut(place) {
                            record.state = SegmentState::Sacked;
                        }
                    }
                }
            }
        }
        if progress.advanced {
            if let Some(rack) = &mut self.rack {
                rack.on_advance(was, ack);
            }
            self.tail = self.tail.filter(|tail| ack < tail.end);
        }
        if progress.packets > 0 {
            self.delivered = (self.delivered.0 + progress.bytes, now);
            let (bytes, at) = progress.from;
            let mut nanos = (now.as_nanos() - at.as_nanos()).max(1);
            if self.rack.is_some() && progress.latest > 0 {
                // draft-cheng-iccrg-delivery-rate-estimation, 3.3: data never comes sooner than it
                // was sent.
                let sent = progress.sent_at.as_nanos().saturating_sub(progress.from_sent_at.as_nanos());
                nanos = nanos.max(sent);
                self.delivered_sent_at = progress.sent_at;
            }
            let delivered = self.delivered.0 - bytes;
            // The wide division is slow, and only needed beyond 18 GB in a round trip.
            let rate = match delivered.checked_mul(1_000_000_000) {
                Some(product) => product / nanos,
                None => (u128::from(delivered) * 1_000_000_000 / u128::from(nanos)) as u64,
            };
            progress.rate = (progress.latest > 0).then_some(rate);
        }
        progress
    }

    fn deliver(
        &mut self,
        record: &SentSegment,
        now: Instant,
        (echo, forward): (u32, u64),
        progress: &mut NewlyAcked,
        undone: &mut Vec<Instant>,
    ) {
        if record.state == SegmentState::Outstanding {
            self.in_flight -= u64::from(record.len);
        }
        progress.packets += u32::from(record.len > 0);
        progress.bytes += u64::from(record.len);
        // The ACK was made before the segment was sent again: the first one has arrived.
        let early = record.resent && is_before(echo, record.sent_at);
        let probed = record.resent && self.tail.is_some_and(|tail| tail.again == Some(record.transmission));
        if record.state == SegmentState::Lost || early && !probed {
            undone.push(record.first_sent_at);
        }
        if let Some(rack) = &mut self.rack {
            if !record.resent {
                rack.on_order(record.end(), forward);
            } else if early && !probed {
                rack.on_spurious(self.una, self.next);
            }
        }
        if probed && !early {
            progress.tail_lost = Some(record.first_sent_at);
        }
        if early {
            if progress.sent_at == Instant::ZERO {
                (progress.sent_at, progress.app_limited) = (record.first_sent_at, record.app_limited);
            }
            return;
        }
        let sent = record.transmission;
        if let Some(rack) = &mut self.rack {
            rack.on_arrival(now, sent, record.sent_at);
        }
        let [a, b, c] = self.latest;
        self.latest = if sent > a {
            [sent, a, b]
        } else if sent > b {
            [a, sent, b]
        } else {
            [a, b, c.max(sent)]
        };
        if sent > progress.latest {
            progress.latest = sent;
            progress.sent_at = record.sent_at;
            progress.app_limited = record.app_limited;
            progress.rtt = Some(now.since(record.sent_at));
            (progress.from, progress.from_sent_at) = (record.delivered, record.delivered_sent_at);
        }
    }

    /// Finds segments that count as lost because other segments have arrived. `duplicate`: the ACK
    /// acknowledges nothing new, and has no data and no larger window. With RACK, `judge_at`
    /// becomes the time when the next segment may count as lost.
    #[inline]
    pub(super) fn find_losses(
        &mut self,
        now: Instant,
        progress: &NewlyAcked,
        duplicate: bool,
        rtt: &Rtt,
        judge_at: &mut Instant,
    ) -> Option<DetectedLosses> {
        if !self.sack {
            return self.find_losses_by_duplicates(progress, duplicate);
        }
        *judge_at = Instant::FAR_FUTURE;
        if self.sacked.is_empty() && self.resent.is_empty() {
            return None;
        }
        if self.rack.is_some() { self.judge(now, rtt, judge_at) } else { self.find_losses_by_arrivals() }
    }

    /// Detects losses with SACK, after later segments have arrived.
    #[inline(never)]
    fn find_losses_by_arrivals(&mut self) -> Option<DetectedLosses> {
        let [.., latest] = self.latest;
        self.lose_before(latest, Instant::FAR_FUTURE).0
    }

    /// Counts outstanding segments as lost. Condition: the segment's last transmission has a number
    /// below `latest` (in sending order), and happened before the time `late`. The flag in the
    /// result: a segment below `latest` was sent at `late` or after, so the caller must check
    /// again.
    fn lose_before(&mut self, latest: u64, late: Instant) -> (Option<DetectedLosses>, bool) {
        let before = self.in_flight;
        let (mut losses, mut waits) = (None, false);
        self.judged = self.judged.max(self.base);
        // Transmissions are numbered in the order of sending. Both searches stop at the first
        // segment that is not lost.
        while let Some(&record) = self.get(self.judged) {
            if !record.resent {
                if record.transmission >= latest {
                    break;
                }
                if record.state == SegmentState::Outstanding {
                    if record.sent_at >= late {
                        waits = true;
                        break;
                    }
                    self.lose(self.judged, before, &mut losses);
                }
            }
            self.judged += 1;
        }
        while let Some(&(transmission, number)) = self.resent.front() {
            let current = self.get(number).filter(|record| record.transmission == transmission);
            if let Some(record) = current.filter(|record| record.state == SegmentState::Outstanding) {
                if transmission >= latest {
                    break;
                }
                if record.sent_at >= late {
                    waits = true;
                    break;
                }
                self.lose(number, before, &mut losses);
            }
            self.resent.pop_front();
        }
        (losses, waits)
    }

    /// Finds losses without SACK.
    #[inline(never)]
    fn find_losses_by_duplicates(
        &mut self,
        progress: &NewlyAcked,
        duplicate: bool,
    ) -> Option<DetectedLosses> {
        let before = self.in_flight();
        let mut losses = None;
        let outstanding = self.records.len() as u32;
        let is_lost = match (progress.advanced, duplicate) {
            (true, _) => self.fast_recovery.on_advance(self.una, progress.packets),
            (false, true) => self.fast_recovery.on_duplicate(self.una, self.next, outstanding),
            (false, false) => false,
        };
        if is_lost {
            self.lose_first(before, &mut losses);
        }
        losses
    }

    /// Whether the retransmission timer goes on, though the last ACK brought something new.
    pub(super) fn keeps_timer(&self) -> bool {
        self.fast_recovery.keeps_timer()
    }

    fn lose_first(&mut self, in_flight: u64, losses: &mut Option<DetectedLosses>) {
        if self.records.front().is_some_and(|record| record.state == SegmentState::Outstanding) {
            self.lose(self.base, in_flight, losses);
        }
    }

    fn lose(&mut self, number: u64, in_flight: u64, losses: &mut Option<DetectedLosses>) {
        let Some(record) = self.get_mut(number) else { return };
        record.state = SegmentState::Lost;
        let SentSegment { len, sent_at, .. } = *record;
        if let Some(rack) = &mut self.rack {
            rack.on_loss(self.una, self.next);
        }
        self.in_flight -= u64::from(len);
        self.lost.push_back(number);
        let none =
            DetectedLosses { packets: 0, bytes: 0, first_sent_at: sent_at, last_sent_at: sent_at, in_flight };
        let losses = losses.get_or_insert(none);
        losses.packets += 1;
        losses.bytes += u64::from(len);
        losses.first_sent_at = losses.first_sent_at.min(sent_at);
        losses.last_sent_at = losses.last_sent_at.max(sent_at);
    }

    /// Nothing was heard for the timeout: all that has not arrived counts as lost.
    pub(super) fn on_timeout(&mut self, now: Instant) -> Option<DetectedLosses> {
        let before = self.in_flight();
        self.fast_recovery.on_timeout(self.next);
        self.timeout_at.get_or_insert(now);
        self.tail = None;
        self.resent.clear();
        let mut losses = None;
        for number in self.base..self.base + self.records.len() as u64 {
            if self.get(number).is_some_and(|record| record.state == SegmentState::Outstanding) {
                self.lose(number, before, &mut losses);
            }
        }
        // In the order of the data, what had been lost before among it.
        let lost = |(place, record): (usize, &SentSegment)| {
            (record.state == SegmentState::Lost).then_some(self.base + place as u64)
        };
        self.lost = self.records.iter().enumerate().filter_map(lost).collect();
        losses
    }

    /// Handles a spurious timeout: segments that were not retransmitted count as in flight again.
    fn take_back_losses(&mut self) {
        for record in self.records.iter_mut().filter(|record| record.state == SegmentState::Lost) {
            record.state = SegmentState::Outstanding;
            self.in_flight += u64::from(record.len);
        }
        self.lost.clear();
        // They are judged again, by what was sent after them.
        self.judged = self.base;
    }

    /// Gives up all unacknowledged data, including data that SACK blocks reported: the receiver may
    /// still discard such data (RFC 2018, section 8). Returns how many bytes are given up. New data
    /// begins where the abandoned data ended.
    pub(super) fn abandon(&mut self) -> u64 {
        let bytes = self.records.iter().map(|record| u64::from(record.len)).sum();
        self.base += self.records.len() as u64;
        self.records.clear();
        self.lost.clear();
        self.resent.clear();
        self.sacked.clear();
        (self.sacked_segments, self.tail) = (0, None);
        (self.una, self.in_flight, self.timeout_at) = (self.next, 0, None);
        self.fast_recovery.abandon();
        bytes
    }

    fn get(&self, number: u64) -> Option<&SentSegment> {
        self.records.get(usize::try_from(number.checked_sub(self.base)?).ok()?)
    }

    fn get_mut(&mut self, number: u64) -> Option<&mut SentSegment> {
        self.records.get_mut(usize::try_from(number.checked_sub(self.base)?).ok()?)
    }
}

/// Whether a stamp is of before `at`.
fn is_before(echo: u32, at: Instant) -> bool {
    (echo.wrapping_sub(stamp(at)) as i32) < 0
}
