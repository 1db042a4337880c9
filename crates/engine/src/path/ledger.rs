//! The packets of one path that were sent and are not settled yet, by packet number.
//!
//! Numbers are contiguous, so a deque with a base is the whole index; it begins with the oldest packet of which nothing was
//! heard. A lost packet is remembered for a while: if its ACK comes after all, the loss was none and what it caused can be
//! undone. What is remembered stands aside, or a single loss would keep a second's worth of packets in everybody's way.

use crate::data::Carried;
use alloc::collections::VecDeque;
use byway_wire::Instant;
use smallvec::SmallVec;

/// What data a packet carried.
pub type Cargo = SmallVec<[Carried; 2]>;

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Asks for no ACK and is not in flight (an ACK itself, say).
    Silent,
    /// Sent, and nothing heard.
    Outstanding,
    /// Arrived.
    Acked,
    /// Believed lost.
    Lost,
}

/// A packet that was sent.
#[derive(Clone, Debug)]
pub struct Entry {
    /// When.
    pub sent_at: Instant,
    /// Size in bytes (UDP payload).
    pub bytes: u32,
    /// What became of it.
    pub fate: Fate,
    /// Whether it counts as bytes in flight: a probe for a larger size does not.
    pub counted: bool,
    /// Whether the application, not the window, limited what was sent.
    pub app_limited: bool,
    /// Bytes delivered on the path when it was sent, and since when: for the delivery rate.
    pub delivered: (u64, Instant),
    /// What it carried.
    pub cargo: Cargo,
}

/// The ledger of one path.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    base: u64,
    entries: VecDeque<Entry>,
    /// When the packet at the base was sent, if it is one of which nothing was heard: every deadline asks for it, and of many
    /// paths' entries few are in the processor's cache.
    oldest: Option<Instant>,
    /// Lost packets older than the base, by number.
    lost: VecDeque<(u64, Entry)>,
    outstanding: usize,
}

/// Lost packets remembered at most; then the oldest is lost for good.
const MOST_LOST: usize = 1 << 15;

/// Packets that nothing is heard of and that ask for nothing, kept behind one that does: with more of them, it is given up.
const MOST_SILENT: usize = 1 << 16;

impl Ledger {
    /// Whether so many silent packets wait behind one of which nothing was heard that they are kept for its sake alone: a peer
    /// that makes a host send ACKs, and never acknowledges anything, must not decide how much memory they take.
    #[must_use]
    pub fn is_crowded(&self) -> bool {
        self.entries.len() >= MOST_SILENT && self.outstanding <= self.entries.len() / 16
    }

    /// The number that the next packet gets.
    #[must_use]
    pub fn next_number(&self) -> u64 {
        self.base + self.entries.len() as u64
    }

    /// The smallest number that is not settled.
    #[must_use]
    pub const fn base(&self) -> u64 {
        self.base
    }

    /// Packets of which nothing was heard.
    #[must_use]
    pub const fn outstanding(&self) -> usize {
        self.outstanding
    }

    /// Enters the next packet.
    pub fn push(&mut self, entry: Entry) {
        self.outstanding += usize::from(entry.fate == Fate::Outstanding);
        self.entries.push_back(entry);
        if self.oldest.is_none() {
            self.trim(Instant::ZERO);
        }
    }

    /// The oldest packet of which nothing was heard, and when it was sent.
    #[must_use]
    pub fn oldest(&self) -> Option<(u64, Instant)> {
        if let Some(sent_at) = self.oldest {
            return Some((self.base, sent_at));
        }
        let (number, entry) = self.iter().find(|(_, entry)| entry.fate == Fate::Outstanding)?;
        Some((number, entry.sent_at))
    }

    /// A packet by its number.
    #[must_use]
    pub fn get(&self, number: u64) -> Option<&Entry> {
        let index = number.checked_sub(self.base)?;
        self.entries.get(usize::try_from(index).ok()?)
    }

    /// Settles a packet as `fate`; returns what it was before and the packet, if it is still known.
    pub fn settle(&mut self, number: u64, fate: Fate) -> Option<(Fate, &Entry)> {
        let entry = match number.checked_sub(self.base) {
            Some(index) => self.entries.get_mut(usize::try_from(index).ok()?)?,
            None => {
                let index = self.lost.binary_search_by_key(&number, |(number, _)| *number).ok()?;
                &mut self.lost.get_mut(index)?.1
            }
        };
        let before = entry.fate;
        if before == Fate::Outstanding && fate != Fate::Outstanding {
            self.outstanding -= 1;
            if number == self.base {
                self.oldest = None;
            }
        }
        if before != Fate::Silent {
            entry.fate = fate;
        }
        Some((before, entry))
    }

    /// The largest number in `start..below` that [`settle`](Self::settle) may know.
    #[must_use]
    pub fn last_known(&self, start: u64, below: u64) -> Option<u64> {
        let number = if below > self.base {
            below - 1
        } else {
            let index = self.lost.partition_point(|(number, _)| *number < below);
            self.lost.get(index.checked_sub(1)?)?.0
        };
        (number >= start).then_some(number)
    }

    /// No number below this is known any more.
    #[must_use]
    pub fn first_known(&self) -> u64 {
        self.lost.front().map_or(self.base, |(number, _)| *number)
    }

    /// Forgets what is settled at the old end; a lost packet only when it was sent before `lost_before`.
    pub fn trim(&mut self, lost_before: Instant) {
        if self.oldest.is_none() {
            while self.entries.front().is_some_and(|front| front.fate != Fate::Outstanding)
                && let Some(front) = self.entries.pop_front()
            {
                if front.fate == Fate::Lost {
                    self.lost.push_back((self.base, front));
                }
                self.base += 1;
            }
            self.oldest = self.entries.front().map(|front| front.sent_at);
        }
        let over = |(_, entry): &(u64, Entry)| entry.fate != Fate::Lost || entry.sent_at < lost_before;
        while self.lost.len() > MOST_LOST || self.lost.front().is_some_and(over) {
            self.lost.pop_front();
        }
    }

    /// Numbers and packets from the oldest on.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &Entry)> {
        (self.base..).zip(self.entries.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(sent_millis: u64, fate: Fate) -> Entry {
        Entry {
            sent_at: Instant::from_millis(sent_millis),
            bytes: 1200,
            fate,
            counted: true,
            app_limited: false,
            delivered: (0, Instant::ZERO),
            cargo: Cargo::new(),
        }
    }

    #[test]
    fn settled_packets_leave_from_the_old_end_only() {
        let mut ledger = Ledger::default();
        for at in 0..4 {
            ledger.push(entry(at, Fate::Outstanding));
        }
        assert_eq!(ledger.settle(1, Fate::Acked).map(|(before, _)| before), Some(Fate::Outstanding));
        ledger.trim(Instant::ZERO);
        assert_eq!((ledger.base(), ledger.outstanding()), (0, 3));
        ledger.settle(0, Fate::Lost);
        ledger.trim(Instant::ZERO);
        assert_eq!((ledger.base(), ledger.next_number()), (2, 4));
        assert!(ledger.get(1).is_none() && ledger.get(4).is_none());
        let before = ledger.settle(0, Fate::Acked).map(|(before, _)| before);
        assert_eq!(before, Some(Fate::Lost), "a loss may still turn out to be none");
        ledger.trim(Instant::from_millis(1));
        assert!(ledger.settle(0, Fate::Acked).is_none());
    }

    #[test]
    fn what_may_be_known_is_found_across_what_is_forgotten() {
        let mut ledger = Ledger::default();
        for at in 0..10 {
            ledger.push(entry(at, Fate::Outstanding));
        }
        for number in 0..7 {
            ledger.settle(number, if number % 3 == 0 { Fate::Lost } else { Fate::Acked });
        }
        ledger.trim(Instant::from_millis(1));
        assert_eq!((ledger.first_known(), ledger.base(), ledger.outstanding()), (3, 7, 3));
        assert_eq!(ledger.last_known(0, 10), Some(9));
        assert_eq!((ledger.last_known(0, 7), ledger.last_known(0, 6)), (Some(6), Some(3)));
        assert_eq!((ledger.last_known(4, 6), ledger.last_known(0, 3)), (None, None));
    }

    #[test]
    fn losses_are_not_remembered_without_end() {
        let mut ledger = Ledger::default();
        for number in 0..2 * MOST_LOST as u64 {
            ledger.push(entry(1, Fate::Outstanding));
            ledger.settle(number, Fate::Lost);
        }
        ledger.trim(Instant::ZERO);
        assert_eq!((ledger.lost.len(), ledger.entries.len()), (MOST_LOST, 0));
    }

    #[test]
    fn packets_that_ask_for_nothing_leave_no_trace() {
        let mut ledger = Ledger::default();
        for at in 0..1000 {
            ledger.push(entry(at, Fate::Silent));
        }
        assert_eq!((ledger.base(), ledger.entries.len()), (1000, 0));
    }
}
