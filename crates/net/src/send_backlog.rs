//! Data that a machine wrote and the system has not accepted yet. A few runs are gathered, so that
//! they leave in one call.

use crate::send_batch::{DatagramRun, MAX_MESSAGES};
use crate::traffic_class::TrafficClass;
use byway_wire::{Local, Transmit};
use smallvec::SmallVec;

/// Bytes for a machine's datagrams of one call: the longest possible UDP payload, or a run of as
/// many bytes.
const WRITE_BYTES: usize = 65_535;
/// Bytes of room in all: enough for many small runs or a few long ones, and few enough to stay in
/// the processor's cache.
const BACKLOG_BYTES: usize = 4 * WRITE_BYTES;
/// The most runs that wait for one socket: a whole outbox, or many small runs.
const PARKED_RUNS: usize = 16 * MAX_MESSAGES;

/// Runs of datagrams, in the order in which they were written.
#[derive(Debug)]
pub(crate) struct Outbox {
    bytes: Vec<u8>,
    filled: usize,
    /// The runs, each with the offset of its bytes.
    runs: Vec<(Transmit, usize)>,
    /// Number of runs that were sent.
    done: usize,
    /// Bytes of the next that left.
    sent: usize,
}

impl Outbox {
    pub(crate) fn new() -> Self {
        Self::of(BACKLOG_BYTES)
    }

    /// Makes an outbox of at most `bytes` bytes, for runs that another outbox [hands
    /// over](Self::park).
    pub(crate) fn of(bytes: usize) -> Self {
        Self { bytes: vec![0; bytes], filled: 0, runs: Vec::with_capacity(MAX_MESSAGES), done: 0, sent: 0 }
    }

    /// Memory for the machine's next run. `None`: there is no room, so send first.
    pub(crate) fn room(&mut self) -> Option<&mut [u8]> {
        if self.runs.len() >= MAX_MESSAGES {
            return None;
        }
        self.bytes.get_mut(self.filled..self.filled + WRITE_BYTES)
    }

    /// Adds the run that the machine wrote into [`room`](Self::room).
    pub(crate) fn push(&mut self, transmit: Transmit) {
        debug_assert_eq!(transmit.phantom, 0, "a length alone cannot be sent");
        debug_assert!(
            transmit.size <= WRITE_BYTES,
            "a machine wrote {} bytes into {WRITE_BYTES}",
            transmit.size
        );
        self.runs.push((transmit, self.filled));
        self.filled += transmit.size.min(WRITE_BYTES);
    }

    /// The run that leaves next.
    pub(crate) fn first(&self) -> Option<&Transmit> {
        self.runs.get(self.done).map(|(transmit, _)| transmit)
    }

    /// The runs that leave next by one socket, and how many bytes of the first left already.
    pub(crate) fn next(&self) -> Option<(Local, SmallVec<[DatagramRun<'_>; MAX_MESSAGES]>, usize)> {
        let local = self.first()?.local;
        let waiting = self
            .runs
            .iter()
            .skip(self.done)
            .take_while(|(transmit, _)| transmit.local == local)
            .take(MAX_MESSAGES);
        let runs = waiting.map(|(transmit, from)| {
            let Transmit { remote, segment, size, .. } = *transmit;
            let mark = TrafficClass::of(transmit);
            DatagramRun {
                remote,
                mark,
                segment,
                bytes: self.bytes.get(*from..from + size).unwrap_or_default(),
            }
        });
        Some((local, runs.collect(), self.sent))
    }

    /// Moves the unsent part of all runs (datagrams of equal size to one address) of the full
    /// socket `local` to `parked`, an outbox for this socket alone. Returns how many datagrams were
    /// dropped because `parked` had no room.
    pub(crate) fn park(&mut self, local: Local, parked: &mut Self) -> u64 {
        let Self { bytes, runs, done, sent, .. } = self;
        let (mut at, mut kept, mut lost) = (*done, *done, 0);
        let mut start = std::mem::take(sent);
        while let Some((transmit, from)) = runs.get(at).copied() {
            at += 1;
            if transmit.local != local {
                if let Some(place) = runs.get_mut(kept) {
                    *place = (transmit, from);
                }
                kept += 1;
                continue;
            }
            let size = transmit.size.saturating_sub(std::mem::take(&mut start));
            let end = from + transmit.size;
            let rest = bytes.get(end - size..end).unwrap_or_default();
            if !parked.take(Transmit { size, ..transmit }, rest) {
                lost += size.div_ceil(transmit.segment.max(1)).max(1) as u64;
            }
        }
        runs.truncate(kept);
        self.advance(0, 0);
        lost
    }

    fn take(&mut self, transmit: Transmit, bytes: &[u8]) -> bool {
        let room = self.bytes.get_mut(self.filled..self.filled + bytes.len());
        let Some(room) = room.filter(|_| self.runs.len() < PARKED_RUNS) else { return false };
        room.copy_from_slice(bytes);
        self.runs.push((transmit, self.filled));
        self.filled += bytes.len();
        true
    }

    /// Notes that `runs` more runs were sent, and `sent` bytes of the next one.
    pub(crate) fn advance(&mut self, runs: usize, sent: usize) {
        (self.done, self.sent) = (self.done + runs, sent);
        if self.done >= self.runs.len() {
            self.runs.clear();
            (self.filled, self.done) = (0, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use byway_wire::{Dscp, Ecn};

    fn run(local: u16, size: usize) -> Transmit {
        let remote = "127.0.0.1:9".parse().unwrap();
        Transmit {
            local: Local(local),
            remote,
            ecn: Ecn::NotEct,
            dscp: Dscp::BestEffort,
            size,
            segment: size,
            phantom: 0,
        }
    }

    #[test]
    fn runs_leave_by_socket_in_order_and_keep_their_bytes() {
        let mut outbox = Outbox::new();
        for (number, local) in [0, 0, 1, 0].into_iter().enumerate() {
            outbox.room().unwrap()[..3].fill(number as u8);
            outbox.push(run(local, 3));
        }
        let next = |outbox: &Outbox| {
            let (local, runs, sent) = outbox.next()?;
            Some((local.0, runs.iter().map(|run| run.bytes.to_vec()).collect::<Vec<_>>(), sent))
        };
        assert_eq!(next(&outbox), Some((0, vec![vec![0; 3], vec![1; 3]], 0)));
        outbox.advance(1, 2);
        assert_eq!(next(&outbox), Some((0, vec![vec![1; 3]], 2)));
        outbox.advance(1, 0);
        assert_eq!(next(&outbox), Some((1, vec![vec![2; 3]], 0)));
        outbox.advance(1, 0);
        assert_eq!(next(&outbox), Some((0, vec![vec![3; 3]], 0)));
        outbox.advance(1, 0);
        assert_eq!(next(&outbox), None);
    }

    #[test]
    fn what_waits_for_one_socket_moves_and_the_others_stay_in_order() {
        let (mut outbox, mut parked) = (Outbox::new(), Outbox::new());
        for (number, local) in [0, 1, 0, 2, 0].into_iter().enumerate() {
            outbox.room().unwrap()[..4].copy_from_slice(&[number as u8, 1, 2, 3]);
            outbox.push(Transmit { segment: 2, ..run(local, 4) });
        }
        outbox.advance(0, 2);
        assert_eq!(outbox.park(Local(0), &mut parked), 0);
        let all = |outbox: &mut Outbox| {
            std::iter::from_fn(|| {
                let (local, runs, sent) = outbox.next()?;
                let bytes = runs.first()?.bytes.to_vec();
                drop(runs);
                outbox.advance(1, 0);
                Some((local.0, sent, bytes))
            })
            .collect::<Vec<_>>()
        };
        assert_eq!(all(&mut outbox), [(1, 0, vec![1, 1, 2, 3]), (2, 0, vec![3, 1, 2, 3])]);
        let expected = [(0, 0, vec![2, 3]), (0, 0, vec![2, 1, 2, 3]), (0, 0, vec![4, 1, 2, 3])];
        assert_eq!(all(&mut parked), expected);
        assert!(outbox.room().is_some() && outbox.filled == 0);
    }

    #[test]
    fn an_outbox_fits_into_an_empty_one_and_more_is_counted() {
        for size in [1, WRITE_BYTES] {
            let (mut outbox, mut parked) = (Outbox::new(), Outbox::new());
            while outbox.room().is_some() {
                outbox.push(run(0, size));
            }
            assert_eq!(outbox.park(Local(0), &mut parked), 0);
            if size == 1 {
                continue;
            }
            outbox.push(Transmit { segment: 1, ..run(0, 5) });
            assert_eq!(outbox.park(Local(0), &mut parked), 5);
            assert!(outbox.next().is_none());
        }
    }

    #[test]
    fn a_small_outbox_takes_as_many_bytes_as_it_was_told_in_many_small_runs() {
        let (mut outbox, mut parked) = (Outbox::new(), Outbox::of(1_000));
        let mut lost = 0;
        for _ in 0..4 {
            while outbox.room().is_some() {
                outbox.push(run(0, 10));
            }
            lost += outbox.park(Local(0), &mut parked);
        }
        assert_eq!((parked.filled, lost), (1_000, 4 * MAX_MESSAGES as u64 - 100));
        let mut left = 0;
        while let Some(runs) = parked.next().map(|(_, runs, _)| runs.len()) {
            left += runs;
            parked.advance(runs, 0);
        }
        assert_eq!(left, 100);
    }

    #[test]
    fn what_does_not_fit_is_sent_first() {
        let mut outbox = Outbox::new();
        for _ in 0..4 {
            assert_eq!(outbox.room().unwrap().len(), WRITE_BYTES);
            outbox.push(run(0, WRITE_BYTES));
        }
        assert!(outbox.room().is_none());
        outbox.advance(4, 0);
        for _ in 0..MAX_MESSAGES {
            assert!(outbox.room().is_some());
            outbox.push(run(0, 1));
        }
        assert!(outbox.room().is_none());
    }
}
