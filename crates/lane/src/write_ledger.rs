//! What one connection has written, and when its kernel sent it and the peer acknowledged it. The
//! kernel's time stamps name a byte of the stream. So each sample is exact, however late it is
//! read.

use byway_wire::{Duration, Instant};
use std::collections::VecDeque;

/// A receiver that holds back the ACK of less than two segments holds it back for longer than this:
/// Linux for 40 ms.
pub(crate) const MIN_HELD_BACK: Duration = Duration::from_millis(30);
/// Stamps nearer to each other than this, in nanoseconds, are of one ACK.
const ACK_TIME: i64 = 100_000;

/// No kernel sends a segment again within this time in nanoseconds: its timers wait longer, and
/// ACKs that tell of a loss need an RTT.
const MIN_RESEND_TIME: i64 = 1_000_000;

/// What a stamp of the kernel tells of a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StampKind {
    /// The segment with the byte was handed to the network device's queue.
    Sent,
    /// The peer acknowledged the byte.
    Acknowledged,
}

/// A stamp of the kernel for one byte of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// What happened to the byte.
    pub kind: StampKind,
    /// The number of the byte in the stream, counted from 0, modulo 2^32.
    pub byte: u32,
    /// When it happened, in nanoseconds of the kernel's wall clock.
    pub wall_nanos: i64,
}

/// What was true of the uplink when a run was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrittenContext {
    /// When the run was written.
    pub at: Instant,
    /// Bytes acknowledged on the uplink until then, and when the last of them was.
    pub delivered: u64,
    /// When the last of `delivered` was acknowledged.
    pub delivered_at: Instant,
    /// The host's own bytes on the uplink until then.
    pub host_sent: u64,
    /// How long the uplink needed then for what the host itself had sent.
    pub host_backlog: Duration,
    /// Whether the programs, and not the pacer, limited what was written.
    pub app_limited: bool,
}

/// Bytes that were written at once.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// Bytes of the stream up to the end of the run.
    end: u64,
    bytes: usize,
    context: WrittenContext,
    sent_wall: Option<i64>,
    /// Whether the kernel sent the end of the run more than once.
    sent_again: bool,
}

/// Runs were acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunAcknowledged {
    /// Bytes newly acknowledged.
    pub bytes: u64,
    /// How many of them the kernel had told to be sent.
    pub sent_bytes: u64,
    /// What was true when the last of them was written.
    pub context: WrittenContext,
    /// Bytes that the same ACK acknowledged, up to the last run.
    pub covered: u64,
    /// Whether another run was written so soon after the last that no receiver's timer expired
    /// between them.
    pub is_followed: bool,
    /// Round-trip time of the last run in nanoseconds. `None`: it was sent twice, or the kernel did
    /// not tell.
    pub rtt: Option<i64>,
}

/// What a stamp means for the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LedgerEvent {
    /// The kernel sent this many bytes for the first time.
    Sent(u64),
    /// Runs were acknowledged.
    Acknowledged(RunAcknowledged),
    /// A run was sent again: the kernel takes the first for lost.
    Lost {
        /// Bytes of the run.
        bytes: usize,
        /// When the run was written.
        written_at: Instant,
    },
}

/// The runs of one connection that are not acknowledged.
#[derive(Clone, Debug, Default)]
pub struct WriteLedger {
    written: u64,
    acknowledged: u64,
    runs: VecDeque<Run>,
    /// When the latest ACK came, and the bytes that it acknowledged.
    latest_ack: Option<(i64, u64)>,
}

impl WriteLedger {
    /// Notes that the socket took `bytes` at once.
    pub fn on_written(&mut self, bytes: usize, context: WrittenContext) {
        self.written += bytes as u64;
        let end = self.written;
        self.runs.push_back(Run { end, bytes, context, sent_wall: None, sent_again: false });
    }

    /// Bytes that are sent and not acknowledged. What the kernel holds back is not among them: it
    /// is in no queue of the network.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.runs.iter().filter(|run| run.sent_wall.is_some()).map(|run| run.bytes as u64).sum()
    }

    /// Whether the kernel holds a run back: its window, or the peer's, is full.
    #[must_use]
    pub fn is_held_back(&self) -> bool {
        self.runs.back().is_some_and(|run| run.sent_wall.is_none())
    }

    /// When the oldest run was written that is in flight.
    #[must_use]
    pub fn oldest(&self) -> Option<Instant> {
        self.runs.front().filter(|run| run.sent_wall.is_some()).map(|run| run.context.at)
    }

    /// Counts all bytes in flight as acknowledged, because no stamp comes any more. Returns how
    /// many they were.
    pub fn forget(&mut self) -> u64 {
        let mut forgotten = 0;
        while let Some(run) = self.pop_if(|run| run.sent_wall.is_some()) {
            forgotten += run.bytes as u64;
            self.acknowledged = run.end;
        }
        forgotten
    }

    /// Takes the oldest run out, if it is so.
    fn pop_if(&mut self, is_so: impl Fn(&Run) -> bool) -> Option<Run> {
        self.runs.front().filter(|run| is_so(run))?;
        self.runs.pop_front()
    }

    /// Takes a stamp of the kernel into account.
    pub fn on_stamp(&mut self, stamp: Stamp) -> Option<LedgerEvent> {
        // A byte's number counts modulo 2^32; what is in flight is far less than that.
        let ahead = stamp.byte.wrapping_add(1).wrapping_sub(self.acknowledged as u32);
        if ahead == 0 || u64::from(ahead) > self.written - self.acknowledged {
            return None;
        }
        let end = self.acknowledged + u64::from(ahead);
        match stamp.kind {
            StampKind::Sent => {
                let written = self.written;
                let run = self.runs.iter_mut().find(|run| run.end >= end).filter(|run| run.end == end)?;
                if run.sent_wall.is_none() {
                    let mut bytes = 0;
                    // The kernel may have joined two runs in a segment. Its end alone is stamped.
                    let untold = self.runs.iter_mut().take_while(|run| run.end <= end);
                    for run in untold.filter(|run| run.sent_wall.is_none()) {
                        run.sent_wall = Some(stamp.wall_nanos);
                        run.sent_again = run.end < end;
                        bytes += run.bytes as u64;
                    }
                    return Some(LedgerEvent::Sent(bytes));
                }
                // A tunnel's packet is stamped where it enters the tunnel, and where it leaves the
                // host.
                if run.sent_wall.is_some_and(|sent| stamp.wall_nanos.saturating_sub(sent) < MIN_RESEND_TIME) {
                    return None;
                }
                run.sent_again = true;
                // A kernel sends its last segment again after two RTTs, lost or not (RFC 8985,
                // section 7). In a queue of others that is soon.
                (run.end < written)
                    .then_some(LedgerEvent::Lost { bytes: run.bytes, written_at: run.context.at })
            }
            StampKind::Acknowledged => {
                let (mut last, mut sent_bytes) = (None, 0);
                while let Some(run) = self.pop_if(|run| run.end <= end) {
                    sent_bytes += if run.sent_wall.is_some() { run.bytes as u64 } else { 0 };
                    last = Some(run);
                }
                let last = last?;
                let bytes = last.end - self.acknowledged;
                self.acknowledged = last.end;
                let sent = last.sent_wall.filter(|_| last.end == end && !last.sent_again);
                let rtt = sent.map(|sent| stamp.wall_nanos.saturating_sub(sent)).filter(|rtt| *rtt > 0);
                // An ACK of several runs has a stamp for each.
                let same = self.latest_ack.filter(|(at, _)| stamp.wall_nanos.saturating_sub(*at) < ACK_TIME);
                let covered = bytes + same.map_or(0, |(_, before)| before);
                self.latest_ack = Some((stamp.wall_nanos, covered));
                let context = last.context;
                let next = self.runs.front().map(|next| next.context.at.since(context.at));
                let is_followed = next.is_some_and(|next| next < MIN_HELD_BACK);
                let acknowledged = RunAcknowledged { bytes, sent_bytes, context, covered, is_followed, rtt };
                Some(LedgerEvent::Acknowledged(acknowledged))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(millis: u64) -> WrittenContext {
        let at = Instant::from_millis(millis);
        WrittenContext {
            at,
            delivered: 0,
            delivered_at: at,
            host_sent: 0,
            host_backlog: Duration::ZERO,
            app_limited: false,
        }
    }

    fn sent(byte: u32, wall_nanos: i64) -> Stamp {
        Stamp { kind: StampKind::Sent, byte, wall_nanos }
    }

    fn acknowledged(byte: u32, wall_nanos: i64) -> Stamp {
        Stamp { kind: StampKind::Acknowledged, byte, wall_nanos }
    }

    fn told(event: Option<LedgerEvent>) -> RunAcknowledged {
        let Some(LedgerEvent::Acknowledged(told)) = event else { panic!("{event:?}") };
        told
    }

    #[test]
    fn a_run_has_an_rtt_from_its_two_stamps() {
        let mut ledger = WriteLedger::default();
        ledger.on_written(2_000, context(1));
        assert!(ledger.is_held_back());
        assert_eq!((ledger.in_flight(), ledger.oldest()), (0, None));
        assert_eq!(ledger.on_stamp(sent(1_999, 100)), Some(LedgerEvent::Sent(2_000)));
        assert!(!ledger.is_held_back());
        assert_eq!((ledger.in_flight(), ledger.oldest()), (2_000, Some(Instant::from_millis(1))));
        ledger.on_written(1_000, context(2));
        ledger.on_stamp(sent(2_999, 150));
        // One ACK for both: the first has no stamp of its own.
        let told = told(ledger.on_stamp(acknowledged(2_999, 350)));
        assert_eq!((told.bytes, told.covered, told.rtt), (3_000, 3_000, Some(200)));
        assert_eq!((ledger.in_flight(), ledger.oldest()), (0, None));
    }

    #[test]
    fn a_run_that_is_sent_twice_is_lost_and_has_no_rtt() {
        const MS: i64 = 1_000_000;
        let mut ledger = WriteLedger::default();
        ledger.on_written(2_000, context(1));
        ledger.on_stamp(sent(1_999, MS));
        assert_eq!(ledger.on_stamp(sent(1_999, 25 * MS)), None, "a probe of the tail");
        ledger.on_written(2_000, context(2));
        let written_at = Instant::from_millis(1);
        let lost = LedgerEvent::Lost { bytes: 2_000, written_at };
        assert_eq!(ledger.on_stamp(sent(1_999, 30 * MS)), Some(lost));
        assert_eq!(told(ledger.on_stamp(acknowledged(1_999, 50 * MS))).rtt, None);
    }

    #[test]
    fn a_run_that_a_tunnel_stamps_twice_has_an_rtt() {
        let mut ledger = WriteLedger::default();
        ledger.on_written(2_000, context(1));
        ledger.on_written(2_000, context(2));
        ledger.on_stamp(sent(1_999, 5_000_000));
        assert_eq!(ledger.on_stamp(sent(1_999, 5_030_000)), None);
        assert_eq!(told(ledger.on_stamp(acknowledged(1_999, 25_000_000))).rtt, Some(20_000_000));
    }

    #[test]
    fn numbers_of_bytes_wrap_and_foreign_stamps_change_nothing() {
        let mut ledger = WriteLedger::default();
        let mut wall = 0;
        for _ in 0..3_000 {
            ledger.on_written(2_000_000, context(1));
            let byte = (ledger.written - 1) as u32;
            ledger.on_stamp(sent(byte, wall));
            assert_eq!(ledger.on_stamp(acknowledged(byte.wrapping_add(7), wall)), None);
            assert_eq!(told(ledger.on_stamp(acknowledged(byte, wall + 20))).rtt, Some(20));
            wall += 100;
        }
        assert!(ledger.written > 1 << 32);
        assert_eq!(ledger.on_stamp(acknowledged(5, wall)), None);
    }

    #[test]
    fn what_no_stamp_tells_of_is_forgotten() {
        let mut ledger = WriteLedger::default();
        ledger.on_written(2_000, context(1));
        ledger.on_stamp(sent(1_999, 100));
        // The peer's window is full: this one stays, however long.
        ledger.on_written(1_000, context(2));
        assert_eq!((ledger.forget(), ledger.in_flight()), (2_000, 0));
        assert!(ledger.is_held_back());
        assert_eq!(ledger.on_stamp(acknowledged(1_999, 500)), None);
        assert_eq!(ledger.on_stamp(sent(2_999, 900)), Some(LedgerEvent::Sent(1_000)));
        assert_eq!(told(ledger.on_stamp(acknowledged(2_999, 950))).rtt, Some(50));
    }
}
