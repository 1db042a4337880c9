//! The size of a stream's receive window. It doubles when a quarter is read within one RTT. If
//! unread data takes a sixth of the streams' memory, slow readers' windows shrink to what they read
//! in three RTTs.

use byway_wire::{Duration, Instant};

/// Unused promises count only divided by this number: an idle stream seldom gets a window full of
/// data that nobody reads.
const PROMISE_DIVISOR: u64 = 8;
/// The divisor of the free memory that all readers together get.
const READERS_DIVISOR: u64 = 3;
/// Data that is left unread beyond a third of the streams' memory adds to `READERS_DIVISOR`: its
/// share of the memory, times this factor.
const HELD_FACTOR: u64 = 80;
/// The streams' memory divided by this number is the bound beyond which much is left unread.
const PRESSURE_DIVISOR: u64 = 6;
/// The RTTs of data that a window covers, if much is left unread.
const PRESSED_WINDOW_RTTS: u32 = 3;
/// A shorter RTT counts as this one. A window grows if the application reads a quarter of it within
/// an RTT. A thread may wait 1 to 4 ms for a processor. With an RTT below that, even a fast reader
/// would seem slow.
const MIN_RTT: Duration = Duration::from_millis(4);
/// A stream that comes has the memory divided by this number, shared with all that live.
const INITIAL_DIVISOR: u64 = 32;
/// RTTs without a quarter of a window being taken, after which a stream counts as not being read.
const READER_TIMEOUT_RTTS: u32 = 8;
/// The shortest time after which a stream counts as not being read, for RTTs near 0.
const MIN_READER_TIMEOUT: Duration = Duration::from_millis(50);

/// The inputs from which window sizes are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WindowInputs {
    /// The connection's window in bytes.
    pub memory: u64,
    /// Unread bytes of other streams.
    pub held: u64,
    /// Bytes that all streams may still send, or have in flight, beyond their initial windows.
    pub promised: u64,
    /// Number of streams.
    pub live: u64,
    /// Number of streams that are read.
    pub readers: u64,
}

impl WindowInputs {
    /// The part of the memory that is the streams'.
    const fn streams(&self) -> u64 {
        self.memory / 4 * 3
    }

    /// Whether so many bytes are unread that windows shrink to the readers' rates.
    const fn is_pressed(&self) -> bool {
        self.held > self.streams() / PRESSURE_DIVISOR
    }

    /// Bytes that the window of a stream that is read may reach.
    pub const fn most(&self) -> u64 {
        let streams = self.streams();
        let free = streams.saturating_sub(self.held).saturating_sub(self.promised / PROMISE_DIVISOR);
        let readers = if self.readers == 0 { 1 } else { self.readers };
        // Both are below what 64 bits hold a hundred times.
        let beyond = self.held.saturating_sub(streams / READERS_DIVISOR) / (streams / 128 + 1);
        free / (READERS_DIVISOR + beyond * HELD_FACTOR / 128) / readers
    }

    /// Returns the first window of a stream in bytes. A single stream's window is large enough not
    /// to limit the sender in the first round trips.
    pub const fn first(&self) -> u64 {
        let live = if self.live == 0 { 1 } else { self.live };
        let (share, most) = (self.memory / INITIAL_DIVISOR / live, self.most());
        if share < most { share } else { most }
    }

    /// Returns the number of bytes that the reader of a window of `size` bytes takes between two
    /// checks.
    pub const fn worth_a_look(size: u64) -> u64 {
        size / 4
    }

    /// The window that follows one of `size` bytes of which the reader took `took` in a while.
    pub fn next(&self, size: u64, took: u64, elapsed: Duration, rtt: Duration) -> u64 {
        let rtt = rtt.max(MIN_RTT);
        let quick = if self.is_pressed() { rtt / 2 } else { rtt };
        let next = if took >= Self::worth_a_look(size) && elapsed <= quick {
            size.saturating_mul(2)
        } else if self.is_pressed() {
            size.min(at_that_rate(took, elapsed, rtt * PRESSED_WINDOW_RTTS).max(size / 2))
        } else {
            size
        };
        next.min(self.most())
    }
}

/// The bytes read in `time`, at the rate of `took` bytes in `elapsed`.
fn at_that_rate(took: u64, elapsed: Duration, time: Duration) -> u64 {
    let bytes = u128::from(took) * time.as_nanos() / elapsed.as_nanos().max(1);
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// Counts the streams that are being read.
#[derive(Debug)]
pub(super) struct Readers {
    round: u32,
    began: Option<Instant>,
    /// The number of readers in this round so far, and in the round before.
    counts: [u64; 2],
}

impl Readers {
    /// Readers of which none reads yet.
    pub const fn new() -> Self {
        Self { round: 0, began: None, counts: [0; 2] }
    }

    /// A stream was read that was last seen in round `seen`. Returns how many are being read.
    pub fn on_read(&mut self, now: Instant, rtt: Duration, seen: &mut u32) -> u64 {
        let length = (rtt * READER_TIMEOUT_RTTS).max(MIN_READER_TIMEOUT);
        let began = *self.began.get_or_insert(now);
        if self.round == 0 || now.since(began) >= length {
            let before = if now.since(began) < length * 2 { self.counts[0] } else { 0 };
            self.counts = [0, before];
            self.round += 1;
            self.began = Some(now);
        }
        if core::mem::replace(seen, self.round) != self.round {
            self.counts[0] += 1;
        }
        self.count()
    }

    /// Returns the number of streams that are read.
    pub const fn count(&self) -> u64 {
        if self.counts[0] > self.counts[1] { self.counts[0] } else { self.counts[1] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const MIB: u64 = 1 << 20;
    const MS: Duration = Duration::from_millis(1);

    fn sight() -> WindowInputs {
        WindowInputs { memory: 32 * MIB, held: 0, promised: 0, live: 1, readers: 1 }
    }

    #[test]
    fn one_alone_has_a_quarter_of_the_memory_and_readers_share_it() {
        assert_eq!(sight().most(), 8 * MIB);
        assert_eq!(WindowInputs { readers: 0, ..sight() }.most(), 8 * MIB);
        assert_eq!(WindowInputs { readers: 4, ..sight() }.most(), 2 * MIB);
        assert_eq!(sight().first(), MIB);
        assert_eq!(WindowInputs { live: 4, ..sight() }.first(), MIB / 4);
        assert_eq!(WindowInputs { live: 0, ..sight() }.first(), MIB);
    }

    #[test]
    fn what_nobody_reads_counts_and_what_is_only_promised_counts_little() {
        assert_eq!(WindowInputs { held: 6 * MIB, ..sight() }.most(), 6 * MIB);
        assert_eq!(WindowInputs { promised: 48 * MIB, ..sight() }.most(), 6 * MIB);
        assert_eq!(WindowInputs { held: 24 * MIB, ..sight() }.most(), 0);
        assert_eq!(WindowInputs { held: 20 * MIB, promised: u64::MAX, ..sight() }.first(), 0);
    }

    #[test]
    fn a_window_is_doubled_while_its_reader_keeps_up() {
        let next = |took, elapsed, rtt| sight().next(MIB, took, elapsed * MS, rtt * MS);
        assert_eq!(next(MIB / 4, 20, 20), 2 * MIB);
        assert_eq!(next(MIB / 4, 21, 20), MIB, "slower than that");
        assert_eq!(next(MIB / 4 - 1, 1, 20), MIB, "too little to tell");
        assert_eq!(sight().next(6 * MIB, 6 * MIB, MS, MS), 8 * MIB, "no more than it may have");
        let crowded = WindowInputs { held: 18 * MIB, ..sight() };
        assert!(crowded.next(4 * MIB, MIB, MS, MS) < MIB / 4, "others need it more");
        assert_eq!(sight().next(u64::MAX, u64::MAX, MS, MS), 8 * MIB);
    }

    #[test]
    fn a_reader_that_waited_for_a_processor_is_none_the_slower() {
        let next = |elapsed| sight().next(MIB, MIB / 4, elapsed, MS / 10);
        assert_eq!((next(MIN_RTT), next(MIN_RTT + MS)), (2 * MIB, MIB));
    }

    #[test]
    fn where_much_is_left_a_window_follows_what_is_taken() {
        let pressed = WindowInputs { held: 5 * MIB, ..sight() };
        let next = |took, elapsed| pressed.next(4 * MIB, took, elapsed * MS, 20 * MS);
        assert_eq!(next(MIB, 10), pressed.most(), "it limits the sender");
        assert_eq!(next(MIB, 11), 4 * MIB, "no more than three times as much");
        assert_eq!((next(MIB, 20), next(MIB, 25), next(MIB, 100)), (3 * MIB, 12 * MIB / 5, 2 * MIB));
        assert_eq!(sight().next(4 * MIB, MIB, 100 * MS, 20 * MS), 4 * MIB, "little is left");
    }

    /// Streams that grow to their limit and are then left unread leave a share for later streams.
    #[test]
    fn those_that_come_after_forty_that_were_left_have_a_share() {
        let mut sight = sight();
        let windows: Vec<u64> = (0..50)
            .map(|_| {
                let window = sight.most().min(5 * MIB);
                sight.held += window;
                window >> 10
            })
            .collect();
        assert!(windows[2] > 1_000 && windows[10] > 250 && windows[40] > 70, "{windows:?}");
    }

    /// Streams that grow and are then left unread, together or one after another, never take all
    /// memory.
    #[test]
    fn streams_that_stop_to_be_read_leave_some() {
        for readers in [1, 3, 40] {
            let mut sight = WindowInputs { readers, ..sight() };
            for _ in 0..10_000 {
                let most = sight.most();
                sight.held += most * readers;
                assert!(sight.held <= 24 * MIB, "{sight:?}");
            }
        }
        let forty =
            WindowInputs { held: 40 * WindowInputs { readers: 40, ..sight() }.most(), live: 41, ..sight() };
        assert!(forty.most() > 5 * MIB, "{forty:?}");
    }

    #[test]
    fn a_reader_is_who_reads_within_eight_round_trips() {
        let (mut readers, rtt) = (Readers::new(), 20 * MS);
        let mut seen = [0; 3];
        let mut read =
            |millis, stream: usize| readers.on_read(Instant::from_millis(millis), rtt, &mut seen[stream]);
        assert_eq!((read(1_000, 0), read(1_001, 1), read(1_002, 0)), (1, 2, 2));
        assert_eq!((read(1_160, 0), read(1_200, 0)), (2, 2), "it may still be one");
        assert_eq!(read(1_330, 0), 1);
        assert_eq!((read(1_340, 2), read(9_000, 1)), (2, 1));
    }
}
