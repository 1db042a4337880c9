//! The packets of one path that were sent and are not settled yet, by packet number.
//!
//! Numbers are contiguous, so a deque with a base is the whole index. A lost packet stays for a while: if its ACK comes
//! after all, the loss was none and what it caused can be undone.

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
    outstanding: usize,
}

impl Ledger {
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
        self.trim(Instant::ZERO);
    }

    /// A packet by its number.
    #[must_use]
    pub fn get(&self, number: u64) -> Option<&Entry> {
        let index = number.checked_sub(self.base)?;
        self.entries.get(usize::try_from(index).ok()?)
    }

    /// Settles a packet as `fate`; returns what it was before and the packet, if it is still known.
    pub fn settle(&mut self, number: u64, fate: Fate) -> Option<(Fate, &Entry)> {
        let index = usize::try_from(number.checked_sub(self.base)?).ok()?;
        let entry = self.entries.get_mut(index)?;
        let before = entry.fate;
        if before == Fate::Outstanding && fate != Fate::Outstanding {
            self.outstanding -= 1;
        }
        if before != Fate::Silent {
            entry.fate = fate;
        }
        Some((before, entry))
    }

    /// Forgets what is settled at the old end; a lost packet only when it was sent before `lost_before`.
    pub fn trim(&mut self, lost_before: Instant) {
        while let Some(front) = self.entries.front() {
            let done = match front.fate {
                Fate::Silent | Fate::Acked => true,
                Fate::Lost => front.sent_at < lost_before,
                Fate::Outstanding => false,
            };
            if !done {
                break;
            }
            self.entries.pop_front();
            self.base += 1;
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
        assert_eq!(ledger.base(), 0, "a loss may still turn out to be none");
        ledger.trim(Instant::from_millis(1));
        assert_eq!((ledger.base(), ledger.next_number()), (2, 4));
        assert!(ledger.get(1).is_none() && ledger.get(4).is_none());
        assert!(ledger.settle(0, Fate::Acked).is_none());
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
