//! The sending end of a path: its numbers, what is in flight, what ACKs and silences say about it.

mod loss_detection;
#[cfg(test)]
mod tests;

use super::delay::DelayClock;
use super::dscp_support::DscpSupport;
use super::ecn::Validation;
use super::mtu::Mtu;
use super::pacer::Pacer;
use super::reordering::ReorderDelay;
use super::rtt::Rtt;
use super::sent_packets::{PacketState, SentPacket, SentPackets};
use super::transport::PathTransport;
use crate::data::Carried;
use crate::invariant::Invariant as _;
use alloc::vec::Vec;
use byway_control::Delay;
use byway_wire::frame::ack::AckEntry;
use byway_wire::packet::BASE_DATAGRAM;
use byway_wire::{Duration, Instant, PathId};
use smallvec::SmallVec;

/// The longest that a receiver holds an ACK back, and a little for timers: part of every timeout.
pub const ACK_DELAY: Duration = Duration::from_millis(12);
/// ACKs over which the wait for an ACK is averaged.
const ACK_WAIT_SAMPLES: u64 = 64;
/// The longest wait of an ACK that counts, whatever the receiver reports.
const MAX_ACK_WAIT_MICROS: u64 = ACK_DELAY.as_micros() as u64;
/// The longest timeout to which timeouts back off while there is something to send: a path that
/// lives again is found soon.
const MAX_TIMEOUT: Duration = Duration::from_millis(1500);
/// Timeouts in a row without an answer that are silence, however recently something was sent.
const SILENCE_TIMEOUTS: u32 = 3;

/// Facts about the sending end of a path. Fields that are used together stand together in memory.
/// With hundreds of paths this saves cache misses.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct SendPath {
    /// Bytes in flight.
    pub in_flight: u64,
    /// The path's id.
    pub id: PathId,
    /// Timeouts in a row.
    timeouts: u32,
    /// When packets may leave.
    pub pacer: Pacer,
    /// Size of datagrams.
    pub mtu: Mtu,
    transport: PathTransport,
    /// When the last timeout came.
    timed_out_at: Instant,
    last_sent_at: Instant,
    delivered: (u64, Instant),
    /// The mean time that packets wait at the receiver for their ACK.
    ack_wait_micros: u64,
    /// The time of the last ACK, and the bytes in flight before it.
    before_ack: (Instant, u64),
    sent_packets: SentPackets,
    /// Totals for people and figures.
    pub totals: Totals,
    /// Whether the path's ECN marks are valid.
    pub ecn: Validation,
    /// Whether the path carries packets marked as lower effort.
    pub dscp_support: DscpSupport,
    /// Round-trip time.
    pub rtt: Rtt,
    largest_acked: Option<u64>,
    /// When the newest packet was sent that was acknowledged.
    newest_acked_at: Instant,
    lateness: ReorderDelay,
    /// Number of packets that the receiver reports as lost, and of CE marks that it reports.
    reported: (u64, u64),
    rate: Option<u64>,
    /// The latest and the smallest one-way delay on the present route, on the same scale.
    one_way: Option<(i64, i64)>,
    delay: DelayClock,
}

/// Totals since the path began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Packets and bytes sent (UDP payload).
    pub packets: u64,
    /// Bytes sent.
    pub bytes: u64,
    /// Packets acknowledged.
    pub acked: u64,
    /// Bytes acknowledged.
    pub acked_bytes: u64,
    /// Packets believed lost, without those that arrived late.
    pub lost: u64,
    /// Bytes of the packets believed lost.
    pub lost_bytes: u64,
    /// The number of timeouts.
    pub timeouts: u64,
}

/// A packet about to be entered.
#[derive(Debug)]
pub struct Outbound<'a> {
    /// Bytes (UDP payload).
    pub bytes: u32,
    /// Whether the peer must acknowledge the packet.
    pub eliciting: bool,
    /// Whether the packet counts as in flight.
    pub counted: bool,
    /// Whether the application limits sending, and not the window.
    pub app_limited: bool,
    /// The stream and object data that the packet carries.
    pub packet_data: &'a [Carried],
}

/// The packets that an ACK entry newly acknowledged.
#[derive(Clone, Debug, Default)]
pub struct NewlyAcked {
    /// Packets newly acknowledged.
    pub packets: u32,
    /// Bytes newly acknowledged.
    pub bytes: u64,
    /// The sending time of the latest newly acknowledged packet, and whether the application
    /// limited it.
    pub latest: Option<(Instant, bool)>,
    /// The RTT sample of the entry. `None`: it has none.
    pub rtt: Option<Duration>,
    /// Number of new CE marks.
    pub ce: u32,
    /// The sending times of packets that were falsely believed lost.
    pub undone: SmallVec<[Instant; 4]>,
}

/// Packets found lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DetectedLosses {
    /// Number of packets.
    pub packets: u32,
    /// Bytes of the lost packets.
    pub bytes: u64,
    /// When the first lost packet was sent.
    pub first_sent_at: Instant,
    /// When the last lost packet was sent.
    pub last_sent_at: Instant,
    /// Bytes in flight before.
    pub in_flight: u64,
}

impl SendPath {
    /// A path of which at most the RTT is known; datagrams up to `max_datagram` are tried.
    #[must_use]
    pub fn new(id: PathId, now: Instant, rtt: Option<Duration>, max_datagram: usize) -> Self {
        let mtu = Mtu::new(max_datagram);
        Self {
            id,
            in_flight: 0,
            rtt: Rtt::new(rtt),
            pacer: Pacer::new(now, mtu.current() as u64),
            mtu,
            transport: PathTransport::Datagrams,
            timed_out_at: now,
            ecn: Validation::default(),
            dscp_support: DscpSupport::default(),
            totals: Totals::default(),
            delay: DelayClock::default(),
            one_way: None,
            sent_packets: SentPackets::default(),
            largest_acked: None,
            newest_acked_at: now,
            reported: (0, 0),
            last_sent_at: now,
            lateness: ReorderDelay::default(),
            timeouts: 0,
            delivered: (0, now),
            ack_wait_micros: 0,
            before_ack: (now, 0),
            rate: None,
        }
    }

    /// Sets the transport of the path's packets.
    pub fn set_carriage(&mut self, carriage: PathTransport) {
        if carriage != self.transport {
            self.transport = carriage;
            self.mtu = match carriage {
                PathTransport::Datagrams => Mtu::new(BASE_DATAGRAM),
                PathTransport::Connection => Mtu::of_frames(),
            };
        }
    }

    /// Sets that a TCP connection carries the packets, or one to a relay and one from there. The
    /// owner of these connections sets the path's rate.
    pub fn set_carried_whole(&mut self) {
        (self.transport, self.mtu) = (PathTransport::Connection, Mtu::of_hops());
    }

    /// The transport of the path's packets.
    #[must_use]
    pub const fn carriage(&self) -> PathTransport {
        self.transport
    }

    /// Whether the path was silent for so long that it counts as lost, if another path answers.
    #[must_use]
    pub fn is_as_good_as_gone(&self) -> bool {
        self.transport.is_as_good_as_gone(self.timeouts)
    }

    /// The number of the next packet.
    #[must_use]
    pub fn next_number(&self) -> u64 {
        self.sent_packets.next_number()
    }

    /// Packets of which nothing was heard.
    #[must_use]
    pub const fn outstanding(&self) -> usize {
        self.sent_packets.outstanding()
    }

    /// Whether anything sent on this path was ever acknowledged.
    #[must_use]
    pub const fn is_proven(&self) -> bool {
        self.largest_acked.is_some()
    }

    /// When a packet that must be acknowledged was last sent.
    #[must_use]
    pub const fn last_sent_at(&self) -> Instant {
        self.last_sent_at
    }

    /// When the newest packet was sent that was acknowledged: the path's beginning, if none was.
    #[must_use]
    pub const fn newest_acked_at(&self) -> Instant {
        self.newest_acked_at
    }

    /// Timeouts in a row. Above 0 the path is silent.
    #[must_use]
    pub const fn timeouts(&self) -> u32 {
        self.timeouts
    }

    /// Delivery rate over the last RTT in bytes per second, if known.
    #[must_use]
    pub const fn delivery_rate(&self) -> Option<u64> {
        self.rate
    }

    /// Whether the bytes in flight are those of the outstanding packets that count. With many
    /// packets, it checks only whether there are any. For assertions.
    #[must_use]
    pub fn balances(&self) -> bool {
        const MAX_COUNTED_PACKETS: u64 = 64;
        if self.sent_packets.next_number() - self.sent_packets.base() > MAX_COUNTED_PACKETS {
            return self.sent_packets.outstanding() > 0 || self.in_flight == 0;
        }
        let counts = |packet: &SentPacket| packet.counted && packet.fate == PacketState::Outstanding;
        let counted = self.sent_packets.iter().filter(|(_, packet)| counts(packet));
        counted.map(|(_, packet)| u64::from(packet.bytes)).sum::<u64>() == self.in_flight
    }

    /// Returns the difference of the latest one-way delay and the smallest on this route. `None`:
    /// not measured.
    #[must_use]
    pub fn queueing(&self) -> Option<Duration> {
        let (latest, least) = self.one_way?;
        Some(Duration::from_nanos(latest.abs_diff(least)))
    }

    /// Converts a one-way delay from the controller's scale to the receiver's, in microseconds.
    #[must_use]
    pub fn apparent(&self, now: Instant, one_way: i64) -> Option<u32> {
        self.delay.apparent(now, one_way)
    }

    /// Enters the packet that was just made as the next number.
    pub fn on_sent(&mut self, now: Instant, packet: Outbound<'_>) {
        self.totals.packets += 1;
        self.totals.bytes += u64::from(packet.bytes);
        let counted = packet.eliciting && packet.counted;
        if counted {
            if self.in_flight == 0 {
                self.delivered.1 = now;
            }
            self.in_flight += u64::from(packet.bytes);
        }
        if packet.eliciting {
            self.last_sent_at = now;
        }
        let first = packet.packet_data.first().copied();
        let entry = SentPacket {
            sent_at: now,
            bytes: packet.bytes,
            fate: if packet.eliciting { PacketState::Outstanding } else { PacketState::Silent },
            counted,
            app_limited: packet.app_limited,
            delivered: self.delivered,
            first,
            more: false,
        };
        self.sent_packets.push(entry, packet.packet_data.get(1..).unwrap_or_default());
    }

    /// Handles one entry of an ACK frame: the entry about this path. The ACK came back by path
    /// `way`. Calls `arrived` for all data that arrived. Appends one-way delays to `delays`, in
    /// sending order. `None`: the entry names packet numbers never sent.
    pub fn on_ack(
        &mut self,
        now: Instant,
        entry: &AckEntry<'_>,
        way: PathId,
        delays: &mut Vec<Delay>,
        mut arrived: impl FnMut(&Carried),
    ) -> Option<NewlyAcked> {
        if entry.largest >= self.next_number() {
            return None;
        }
        let mut progress = NewlyAcked::default();
        self.before_ack = (now, self.in_flight);
        let held = Duration::from_micros(entry.held_micros);
        let (expected, smoothed) = (self.expected(), self.rtt.smoothed());
        let first_delay = delays.len();
        let mut stamps = Stamps { run: None, rest: entry.stamps() };
        let mut sampled = None;
        let mut oldest_stamp = entry.arrival;
        let mut rate_from = None;
        let mut place = usize::MAX;
        for (start, end) in entry.ranges() {
            if end <= self.sent_packets.first_known() {
                break;
            }
            let mut below = end;
            while let Some(number) = self.sent_packets.last_known(start, below, &mut place) {
                stamps.skip(below - 1 - number);
                // The largest number's stamp stands in every entry, also where no run gives it once
                // more.
                let own = (number == entry.largest).then_some(entry.arrival);
                let stamp = stamps.take().or(own);
                below = number;
                let Some((before, packet)) = self.sent_packets.settle(number, PacketState::Acked).sure()
                else {
                    continue;
                };
                match before {
                    PacketState::Silent | PacketState::Acked => continue,
                    PacketState::Lost if packet.counted => {
                        progress.undone.push(packet.sent_at);
                        self.totals.lost = self.totals.lost.saturating_sub(1);
                        self.totals.lost_bytes =
                            self.totals.lost_bytes.saturating_sub(u64::from(packet.bytes));
                        let late = now.since(packet.sent_at).saturating_sub(expected);
                        if late <= ReorderDelay::most(smoothed) {
                            self.lateness.learn(late, smoothed);
                        }
                    }
                    PacketState::Lost => {}
                    PacketState::Outstanding if packet.counted => self.in_flight -= u64::from(packet.bytes),
                    PacketState::Outstanding => {}
                }
                if number == entry.largest {
                    // A packet that was believed lost also gives an RTT sample. Its ACK is
                    // unambiguous, because each number is sent only once. Without such samples, an
                    // RTT that has grown beyond the timeout would never be measured.
                    let elapsed = now.since(packet.sent_at);
                    let rtt = if held < elapsed { elapsed - held } else { elapsed };
                    progress.rtt = Some(rtt);
                    if self.rtt.sample(now, rtt, way) {
                        self.delay.way_back_changed();
                    }
                }
                self.mtu.passed(now, packet.bytes as usize, packet.sent_at);
                progress.packets += 1;
                progress.bytes += u64::from(packet.bytes);
                progress.latest = progress.latest.max(Some((packet.sent_at, packet.app_limited)));
                if rate_from.is_none_or(|(sent_at, _)| sent_at < packet.sent_at) {
                    rate_from = Some((packet.sent_at, packet.delivered));
                }
                let (sent_at, bytes, more) = (packet.sent_at, packet.bytes, packet.more);
                packet.first.iter().for_each(&mut arrived);
                if more {
                    self.sent_packets.more(number).for_each(&mut arrived);
                }
                // One sample per batch: the packet that waited least for the batch to end, which is
                // its last.
                if let Some(stamp) = stamp
                    && sampled != Some(stamp)
                {
                    sampled = Some(stamp);
                    oldest_stamp = stamp;
                    let rtt = if number == entry.largest { progress.rtt } else { None };
                    if let Some(one_way) = self.delay.sample(now, sent_at, stamp, rtt, bytes) {
                        let least = self.one_way.map_or(one_way, |(_, least)| least.min(one_way));
                        self.one_way = Some((one_way, least));
                        delays.push(Delay { sent_at, one_way, bytes });
                    }
                }
                self.mtu.acked(now, number);
            }
            stamps.skip(below - start);
        }
        if let Some(fresh) = delays.get_mut(first_delay..) {
            fresh.reverse();
        }
        if progress.packets > 0 {
            self.timeouts = 0;
            self.newest_acked_at =
                progress.latest.map_or(self.newest_acked_at, |(at, _)| at.max(self.newest_acked_at));
            let span = u64::from(entry.arrival.wrapping_sub(oldest_stamp));
            let wait = entry.held_micros.saturating_add(span / 2).min(MAX_ACK_WAIT_MICROS);
            self.ack_wait_micros = (self.ack_wait_micros * (ACK_WAIT_SAMPLES - 1) + wait) / ACK_WAIT_SAMPLES;
            self.dscp_support.on_ack();
            self.totals.acked += u64::from(progress.packets);
            self.totals.acked_bytes += progress.bytes;
            self.delivered = (self.delivered.0 + progress.bytes, now);
            self.rate = rate_from.and_then(|(_, (bytes, at))| {
                let nanos = now.since(at).as_nanos();
                let delivered = u128::from(self.delivered.0 - bytes);
                u64::try_from(delivered * 1_000_000_000 / nanos.max(1)).ok()
            });
            if let (PathTransport::Connection, Some(rate)) = (self.transport, self.rate) {
                self.mtu.fit(rate);
            }
        }
        if self.largest_acked.is_none_or(|largest| largest <= entry.largest) {
            self.largest_acked = Some(entry.largest);
            let marks = entry.ce.saturating_sub(self.reported.1);
            let marks = u32::try_from(marks).unwrap_or(u32::MAX);
            progress.ce = self.ecn.on_ack(progress.packets, marks);
            self.reported = (entry.lost, self.reported.1.max(entry.ce));
        }
        self.trim(now);
        Some(progress)
    }

    /// The bytes that may be in flight where the controller allows `window` of them on the way:
    /// those that have arrived and wait for their ACK come on top. RTTs are measured without that
    /// wait, so the rate is the one that the controller expects of its window.
    #[must_use]
    pub fn window_limit(&self, window: u64) -> u64 {
        let rtt = u64::try_from(self.rtt.smoothed().as_micros()).unwrap_or(u64::MAX).max(1);
        let wait = self.ack_wait_micros.min(rtt / 4);
        window.saturating_add(window.saturating_mul(wait) / rtt)
    }

    /// Returns the time until a packet is acknowledged on a path with little reordering.
    fn expected(&self) -> Duration {
        let rtt = self.rtt.conservative();
        rtt + (rtt / 4).max(Duration::from_millis(1)) + ACK_DELAY
    }

    /// When [`detect_losses`](Self::detect_losses) or [`on_timeout`](Self::on_timeout) should be
    /// called.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        match (self.loss_deadline(), self.timeout_deadline()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Whether too many ACK-only packets were sent after an unacknowledged packet.
    #[must_use]
    pub fn is_crowded(&self) -> bool {
        self.sent_packets.is_crowded()
    }

    /// When the oldest packet with data left of which nothing was heard. Not for the hot path.
    #[must_use]
    pub fn oldest_data(&self) -> Option<Instant> {
        let waits = |packet: &&SentPacket| packet.fate == PacketState::Outstanding && packet.first.is_some();
        let mut packets =
            (self.sent_packets.base()..self.next_number()).filter_map(|number| self.sent_packets.get(number));
        packets.find(waits).map(|packet| packet.sent_at)
    }

    /// Notes that the path's route changed, so that measurements are invalid.
    pub fn route_changed(&mut self) {
        self.rtt.reset();
        self.delay = DelayClock::default();
        self.one_way = None;
        self.lateness = ReorderDelay::default();
        self.ecn = Validation::default();
        self.dscp_support = DscpSupport::default();
        self.timeouts = 0;
    }

    fn trim(&mut self, now: Instant) {
        // A packet that comes later than this is not worth an undo.
        let memory = (self.rtt.conservative() * 4).max(Duration::from_secs(1));
        self.sent_packets.trim(now - memory);
    }
}

/// Stamps of the packets that an ACK entry names, from the largest down.
struct Stamps<I> {
    run: Option<(u64, u32)>,
    rest: I,
}

impl<I: Iterator<Item = (u64, u32)>> Stamps<I> {
    /// Passes over `packets` packets.
    fn skip(&mut self, mut packets: u64) {
        while packets > 0 {
            let Some((left, stamp)) = self.run.or_else(|| self.rest.next()) else { return };
            let passed = left.min(packets);
            packets -= passed;
            self.run = (left > passed).then_some((left - passed, stamp));
        }
    }

    /// Returns the next packet's stamp. `None`: the packet arrived before the last ACK.
    fn take(&mut self) -> Option<u32> {
        let stamp = self.run.or_else(|| self.rest.next());
        self.run = stamp;
        self.skip(1);
        stamp.map(|(_, stamp)| stamp)
    }
}
