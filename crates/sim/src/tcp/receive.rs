//! The receiver's state: data in order, data out of order, and the ACKs that are due.

use super::options::TcpConfig;
use super::pace::Pace;
use super::ranges::Ranges;
use super::segment::{MAX_SACKS, Segment};
use byway_wire::{Duration, Instant};

/// Time that an ACK waits for a second segment.
const ACK_DELAY: Duration = Duration::from_millis(40);

/// How the application reads received data.
#[derive(Clone, Debug)]
pub(super) enum ReadPattern {
    /// The receiver reads all bytes at once.
    All,
    /// The receiver reads at this rate.
    Paced(Pace),
    /// The application reads when it calls [`Receive::take`].
    ByHand,
}

#[derive(Debug)]
pub(super) struct Receive {
    /// The next expected sequence number. All earlier data have arrived.
    pub next: u64,
    early: Ranges,
    /// The latest ranges of segments out of order, newest first, for SACK blocks (RFC 2018, section
    /// 4).
    recent: [u64; MAX_SACKS],
    /// The sequence number at the end of the sender's data. `None`: its FIN has not arrived.
    end: Option<u64>,
    /// Bytes in order that the application has not taken.
    pub unread: u64,
    pub reading: ReadPattern,
    capacity: u64,
    mss: u64,
    /// The right edge of the advertised window. It never moves back.
    edge: u64,
    pub shift: u8,
    delayed: bool,
    /// Segments that are still acknowledged at once.
    quick: u32,
    /// An ACK is to be sent now.
    pub ack_now: bool,
    /// When an ACK is to be sent at the latest.
    pub ack_at: Instant,
    /// Full segments since the last ACK.
    unacked: u32,
    /// The timestamp of the latest segment, to be echoed.
    pub echo: u32,
    pub arrived: u32,
    sack: bool,
    /// Whether the ACK answers a probe.
    pub probed: bool,
}

impl Receive {
    pub(super) fn new(options: &TcpConfig, reading: ReadPattern) -> Self {
        let capacity = options.receive_window.min(1 << 30);
        let shift = (0..14).find(|shift| capacity >> shift <= 0xffff).unwrap_or(14);
        Self {
            next: 0,
            early: Ranges::default(),
            recent: [u64::MAX; MAX_SACKS],
            end: None,
            unread: 0,
            reading,
            capacity,
            mss: u64::from(options.mss.max(1)),
            edge: capacity,
            shift,
            delayed: options.delayed_ack,
            quick: options.quick_acks,
            ack_now: false,
            ack_at: Instant::FAR_FUTURE,
            unacked: 0,
            echo: 0,
            arrived: 0,
            sack: options.sack,
            probed: false,
        }
    }

    /// The peer does not take SACK blocks.
    pub(super) fn without_sack(&mut self) {
        self.sack = false;
    }

    /// Takes `len` bytes from `seq` on, and perhaps the end. How many bytes are in order now that
    /// were not before.
    #[inline]
    pub(super) fn on_data(&mut self, now: Instant, seq: u64, len: u32, fin: bool) -> u64 {
        let end = seq + u64::from(len);
        if fin {
            self.end = Some(end);
            self.ack_now = true;
        }
        if end > self.edge {
            // Beyond the window: as if it had not come.
            self.ack_now = true;
            return 0;
        }
        if seq <= self.next && self.early.is_empty() && end > self.next {
            let fresh = end - self.next;
            self.next = end;
            self.unacked += 1;
            if !self.delayed || self.unacked >= 2 || self.quick > 0 {
                self.ack_now = true;
                self.quick = self.quick.saturating_sub(1);
            } else if self.ack_at == Instant::FAR_FUTURE {
                self.ack_at = now + ACK_DELAY;
            }
            return fresh;
        }
        // A segment out of order, one that fills a hole, or one that came twice needs an ACK at
        // once (RFC 5681, 4.2).
        self.ack_now = true;
        let before = self.next;
        if end > self.next && len > 0 {
            if seq > self.next {
                self.early.insert(seq, end);
                self.note_recent(seq);
            } else {
                self.next = end;
                self.swallow();
            }
        }
        self.next - before
    }

    /// Everything before `seq` is not waited for any more. How many bytes behind it are in order
    /// now.
    pub(super) fn skip_to(&mut self, seq: u64) -> u64 {
        self.ack_now = true;
        if seq <= self.next || seq > self.edge {
            return 0;
        }
        self.next = seq;
        self.early.cut_below(seq);
        self.swallow();
        self.next - seq
    }

    fn swallow(&mut self) {
        while let Some(end) = self.early.take_at(self.next) {
            self.next = self.next.max(end);
        }
    }

    fn note_recent(&mut self, seq: u64) {
        let range = self.early.around(seq);
        let [a, b, _] = self.recent;
        let within = |number: u64| range.is_some_and(|(from, to)| (from..to).contains(&number));
        self.recent = if within(a) {
            [seq, b, self.recent[2]]
        } else if within(b) {
            [seq, a, self.recent[2]]
        } else {
            [seq, a, b]
        };
    }

    /// Whether all data of the sender and its FIN have arrived.
    pub(super) fn is_complete(&self) -> bool {
        self.end == Some(self.next)
    }

    /// The cumulative acknowledgement: a FIN counts as a byte.
    pub(super) fn cumulative(&self) -> u64 {
        self.next + u64::from(self.is_complete())
    }

    /// Passes bytes in order to the application. Returns how many it reads now.
    pub(super) fn read(&mut self, now: Instant, fresh: u64) -> u64 {
        match &mut self.reading {
            ReadPattern::All => fresh,
            ReadPattern::ByHand => {
                self.unread += fresh;
                0
            }
            ReadPattern::Paced(pace) => {
                let taken = pace.take(now, self.unread);
                self.unread = self.unread - taken + fresh;
                // What has just come may be read at once where there is no limit.
                let more = if pace.is_unlimited() { self.unread } else { 0 };
                self.unread -= more;
                self.tell_if_wider();
                taken + more
            }
        }
    }

    /// The application takes `bytes` bytes by hand.
    pub(super) fn take(&mut self, bytes: u64) {
        self.unread = self.unread.saturating_sub(bytes);
        self.tell_if_wider();
    }

    /// When the application will have read enough for a window update, or everything.
    pub(super) fn reads_at(&self) -> Instant {
        match &self.reading {
            ReadPattern::Paced(pace) if self.unread > 0 => {
                pace.when(self.unread.min(self.worth_telling())).unwrap_or(Instant::FAR_FUTURE)
            }
            _ => Instant::FAR_FUTURE,
        }
    }

    /// RFC 9293, 3.8.6.2.2: a window grows by a segment or half the buffer, or not at all.
    fn worth_telling(&self) -> u64 {
        self.mss.min(self.capacity / 2).max(1)
    }

    fn tell_if_wider(&mut self) {
        let free = (self.next + self.capacity).saturating_sub(self.unread);
        let told = self.edge.saturating_sub(self.next);
        if free >= self.edge + self.worth_telling() && told < 2 * self.mss {
            self.ack_now = true;
        }
    }

    /// Writes the acknowledgment fields into `segment`.
    #[inline]
    pub(super) fn acknowledge(&mut self, segment: &mut Segment) {
        let free = (self.next + self.capacity).saturating_sub(self.unread);
        if free >= self.edge + self.worth_telling() || self.edge < self.next {
            self.edge = self.edge.max(free);
        }
        segment.ack = self.cumulative() as u32;
        let window = self.edge.saturating_sub(self.next) >> self.shift;
        segment.window = window.min(0xffff) as u16;
        segment.echo = self.echo;
        if self.sack && !self.early.is_empty() {
            let mut count = 0;
            for &seq in &self.recent {
                let Some((from, to)) = self.early.around(seq) else { continue };
                // A FIN counts as a byte.
                let block = (from as u32, (to + u64::from(self.end == Some(to))) as u32);
                let (told, free) = segment.sacks.split_at_mut(count);
                if told.contains(&block) {
                    continue;
                }
                if let Some(place) = free.first_mut() {
                    *place = block;
                    count += 1;
                }
            }
            segment.sack_count = count;
        }
        (self.ack_now, self.ack_at, self.unacked) = (false, Instant::FAR_FUTURE, 0);
    }
}
