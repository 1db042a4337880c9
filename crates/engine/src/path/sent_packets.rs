//! The packets of one path that were sent and are not settled yet, by packet number. A deque begins
//! with the oldest outstanding packet. Lost packets, kept for late ACKs, are stored outside, so
//! that the deque stays short.

use crate::data::Carried;
use alloc::collections::VecDeque;
use byway_wire::Instant;
use smallvec::SmallVec;

/// The application data in a packet.
pub type PacketData = SmallVec<[Carried; 2]>;

/// The state of a sent packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketState {
    /// The packet must not be acknowledged and is not in flight, such as one with only an ACK.
    Silent,
    /// Sent, and nothing heard.
    Outstanding,
    /// The packet was acknowledged.
    Acked,
    /// The packet is believed lost.
    Lost,
}

/// A packet that was sent. The entry must fit into 64 bytes, because with hundreds of paths it is
/// not in the processor's cache when the packet is sent, nor when its ACK comes.
#[derive(Clone, Debug)]
pub struct SentPacket {
    /// When the packet was sent.
    pub sent_at: Instant,
    /// Size in bytes (UDP payload).
    pub bytes: u32,
    /// The state of the packet.
    pub fate: PacketState,
    /// Whether the packet counts as bytes in flight. A probe for a larger size does not.
    pub counted: bool,
    /// Whether the application, and not the window, limited sending.
    pub app_limited: bool,
    /// Bytes delivered on the path when the packet was sent, and the time of that count, for the
    /// delivery rate.
    pub delivered: (u64, Instant),
    /// The first item of data in the packet.
    pub first: Option<Carried>,
    /// Whether the packet carried more items of data.
    pub more: bool,
}

const _: () = assert!(size_of::<SentPacket>() <= 64);

/// A lost packet, with the items of data after the first.
#[derive(Clone, Debug)]
struct Lost {
    entry: SentPacket,
    more: SmallVec<[Carried; 1]>,
}

/// The sent packets of one path.
#[derive(Clone, Debug, Default)]
pub struct SentPackets {
    base: u64,
    entries: VecDeque<SentPacket>,
    /// When the packet with the number `base`, the oldest in `entries`, was sent, if it is
    /// outstanding. The time is copied here because every deadline needs it. With many paths the
    /// packet's entry is rarely in the processor's cache.
    oldest: Option<Instant>,
    /// The items of data after the first, by packet number. Bulk data have none.
    more: VecDeque<(u64, Carried)>,
    /// Lost packets older than the base, by number. Their numbers are also stored close together,
    /// as every ACK's ranges are compared with them.
    lost: VecDeque<Lost>,
    lost_numbers: VecDeque<u64>,
    outstanding: usize,
}

/// The most lost packets that are remembered. Beyond it the oldest is lost for good.
const MAX_LOST_PACKETS: usize = 1 << 15;

/// Number of neighbours that are examined before a search among all numbers.
const NEIGHBOUR_COUNT: usize = 8;

/// The most ACK-only packets that are kept behind an unacknowledged packet. With more, that packet
/// is given up.
const MAX_SILENT_PACKETS: usize = 1 << 16;

impl SentPackets {
    /// Whether the list of sent packets is too long: at least `MAX_SILENT_PACKETS` packets, of
    /// which at most a sixteenth waits for an ACK. The others usually hold only ACKs. The caller
    /// then counts the waiting packets as lost. Otherwise the list could grow without limit.
    #[must_use]
    pub fn is_crowded(&self) -> bool {
        self.entries.len() >= MAX_SILENT_PACKETS && self.outstanding <= self.entries.len() / 16
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

    /// Adds the next packet. `more`: its items of data after the first.
    pub fn push(&mut self, mut entry: SentPacket, more: &[Carried]) {
        let number = self.next_number();
        entry.more = !more.is_empty();
        self.more.extend(more.iter().map(|carried| (number, *carried)));
        self.outstanding += usize::from(entry.fate == PacketState::Outstanding);
        self.entries.push_back(entry);
        if self.oldest.is_none() {
            self.trim(Instant::ZERO);
        }
    }

    /// Returns the oldest outstanding packet, and its sending time.
    #[must_use]
    pub fn oldest(&self) -> Option<(u64, Instant)> {
        if let Some(sent_at) = self.oldest {
            return Some((self.base, sent_at));
        }
        let (number, entry) = self.iter().find(|(_, entry)| entry.fate == PacketState::Outstanding)?;
        Some((number, entry.sent_at))
    }

    /// Returns the packet with this number. `None`: it is not remembered.
    #[must_use]
    pub fn get(&self, number: u64) -> Option<&SentPacket> {
        let index = number.checked_sub(self.base)?;
        self.entries.get(usize::try_from(index).ok()?)
    }

    /// Sets the fate of a packet. Returns its former fate and the packet, if it is remembered.
    pub fn settle(&mut self, number: u64, fate: PacketState) -> Option<(PacketState, &SentPacket)> {
        let entry = match number.checked_sub(self.base) {
            Some(index) => self.entries.get_mut(usize::try_from(index).ok()?)?,
            None => {
                let index = self.lost_numbers.binary_search(&number).ok()?;
                &mut self.lost.get_mut(index)?.entry
            }
        };
        let before = entry.fate;
        if before == PacketState::Outstanding && fate != PacketState::Outstanding {
            self.outstanding -= 1;
            if number == self.base {
                self.oldest = None;
            }
        }
        if before != PacketState::Silent {
            entry.fate = fate;
        }
        Some((before, entry))
    }

    /// The items of data after the first in a remembered packet.
    pub fn more(&self, number: u64) -> impl Iterator<Item = &Carried> {
        let aside = self.lost_numbers.binary_search(&number).ok();
        let aside = aside.and_then(|index| self.lost.get(index)).into_iter().flat_map(|lost| &lost.more);
        let begin = self.more.partition_point(|(owner, _)| *owner < number);
        let own = self.more.range(begin..).take_while(move |(owner, _)| *owner == number);
        aside.chain(own.map(|(_, carried)| carried))
    }

    /// The largest number in `start..below` whose packet is still stored. `place` keeps the
    /// position between calls with ever smaller `below`, which makes the search fast. Set it to
    /// [`usize::MAX`] before the first call.
    #[must_use]
    pub fn last_known(&self, start: u64, below: u64, place: &mut usize) -> Option<u64> {
        if below > self.base {
            return (below > start).then(|| below - 1);
        }
        let numbers = &self.lost_numbers;
        *place = (*place).min(numbers.len());
        for _ in 0..NEIGHBOUR_COUNT {
            match place.checked_sub(1).and_then(|last| numbers.get(last)) {
                Some(number) if *number >= below => *place -= 1,
                last => return last.copied().filter(|number| *number >= start),
            }
        }
        *place = numbers.partition_point(|number| *number < below);
        numbers.get(place.checked_sub(1)?).copied().filter(|number| *number >= start)
    }

    /// The lowest packet number that is still remembered.
    #[must_use]
    pub fn first_known(&self) -> u64 {
        self.lost_numbers.front().copied().unwrap_or(self.base)
    }

    /// Forgets settled packets at the old end. A lost packet is forgotten only if it was sent
    /// before `lost_before`.
    pub fn trim(&mut self, lost_before: Instant) {
        if self.oldest.is_none() {
            while self.entries.front().is_some_and(|front| front.fate != PacketState::Outstanding)
                && let Some(front) = self.entries.pop_front()
            {
                if front.more || front.fate == PacketState::Lost {
                    self.set_aside(self.base, front);
                }
                self.base += 1;
            }
            self.oldest = self.entries.front().map(|front| front.sent_at);
        }
        let over = |lost: &Lost| lost.entry.fate != PacketState::Lost || lost.entry.sent_at < lost_before;
        while self.lost.len() > MAX_LOST_PACKETS || self.lost.front().is_some_and(over) {
            self.lost.pop_front();
            self.lost_numbers.pop_front();
        }
    }

    /// Removes the data items of the oldest packet, and keeps them if the packet is lost.
    #[cold]
    fn set_aside(&mut self, number: u64, entry: SentPacket) {
        let count = self.more.partition_point(|(owner, _)| *owner <= number);
        let more = self.more.drain(..count).map(|(_, carried)| carried).collect();
        if entry.fate == PacketState::Lost {
            self.lost.push_back(Lost { entry, more });
            self.lost_numbers.push_back(number);
        }
    }

    /// Numbers and packets from the oldest on.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &SentPacket)> {
        (self.base..).zip(self.entries.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(sent_millis: u64, fate: PacketState) -> SentPacket {
        SentPacket {
            sent_at: Instant::from_millis(sent_millis),
            bytes: 1200,
            fate,
            counted: true,
            app_limited: false,
            delivered: (0, Instant::ZERO),
            first: None,
            more: false,
        }
    }

    #[test]
    fn settled_packets_leave_from_the_old_end_only() {
        let mut sent_packets = SentPackets::default();
        for at in 0..4 {
            sent_packets.push(entry(at, PacketState::Outstanding), &[]);
        }
        assert_eq!(
            sent_packets.settle(1, PacketState::Acked).map(|(before, _)| before),
            Some(PacketState::Outstanding)
        );
        sent_packets.trim(Instant::ZERO);
        assert_eq!((sent_packets.base(), sent_packets.outstanding()), (0, 3));
        sent_packets.settle(0, PacketState::Lost);
        sent_packets.trim(Instant::ZERO);
        assert_eq!((sent_packets.base(), sent_packets.next_number()), (2, 4));
        assert!(sent_packets.get(1).is_none() && sent_packets.get(4).is_none());
        let before = sent_packets.settle(0, PacketState::Acked).map(|(before, _)| before);
        assert_eq!(before, Some(PacketState::Lost), "a loss may still turn out to be none");
        sent_packets.trim(Instant::from_millis(1));
        assert!(sent_packets.settle(0, PacketState::Acked).is_none());
    }

    #[test]
    fn what_may_be_known_is_found_across_what_is_forgotten() {
        let mut sent_packets = SentPackets::default();
        for at in 0..10 {
            sent_packets.push(entry(at, PacketState::Outstanding), &[]);
        }
        for number in 0..7 {
            sent_packets.settle(number, if number % 3 == 0 { PacketState::Lost } else { PacketState::Acked });
        }
        sent_packets.trim(Instant::from_millis(1));
        assert_eq!((sent_packets.first_known(), sent_packets.base(), sent_packets.outstanding()), (3, 7, 3));
        let last_known = |start, below| sent_packets.last_known(start, below, &mut { usize::MAX });
        assert_eq!(last_known(0, 10), Some(9));
        assert_eq!((last_known(0, 7), last_known(0, 6)), (Some(6), Some(3)));
        assert_eq!((last_known(4, 6), last_known(0, 3)), (None, None));
    }

    #[test]
    fn the_lost_are_found_one_after_the_other() {
        let mut sent_packets = SentPackets::default();
        for number in 0..200 {
            sent_packets.push(entry(1, PacketState::Outstanding), &[]);
            sent_packets.settle(number, if number % 7 < 3 { PacketState::Lost } else { PacketState::Acked });
        }
        sent_packets.trim(Instant::ZERO);
        for step in [1, 2, 5, 40, 150] {
            let (mut place, mut below) = (usize::MAX, 200u64);
            while below > 0 {
                let start = below.saturating_sub(step);
                let expected = (start..below).rev().find(|number| number % 7 < 3);
                assert_eq!(sent_packets.last_known(start, below, &mut place), expected);
                below = start;
            }
        }
    }

    #[test]
    fn what_packets_carry_stays_theirs() {
        let stream = |offset| Carried::Stream { id: byway_wire::StreamId(0), offset, length: 9, fin: false };
        let mut sent_packets = SentPackets::default();
        for number in 0..4 {
            let more = [stream(10 * number), stream(10 * number + 1)];
            sent_packets.push(entry(number, PacketState::Outstanding), &more[..number as usize % 3]);
        }
        let carried = |sent_packets: &SentPackets, number| {
            sent_packets.more(number).copied().collect::<alloc::vec::Vec<_>>()
        };
        for (number, count) in [(0, 0), (1, 1), (2, 2), (3, 0)] {
            assert_eq!(sent_packets.get(number).map(|entry| entry.more), Some(count > 0));
            assert_eq!(carried(&sent_packets, number).len(), count);
        }
        for (number, fate) in [(0, PacketState::Lost), (1, PacketState::Acked), (2, PacketState::Lost)] {
            sent_packets.settle(number, fate);
        }
        sent_packets.trim(Instant::ZERO);
        assert_eq!((sent_packets.base(), sent_packets.more.len()), (3, 0));
        assert_eq!(carried(&sent_packets, 2), [stream(20), stream(21)], "it may be said to have arrived yet");
        assert_eq!((carried(&sent_packets, 0).len(), carried(&sent_packets, 1).len()), (0, 0));
    }

    #[test]
    fn losses_are_not_remembered_without_end() {
        let mut sent_packets = SentPackets::default();
        for number in 0..2 * MAX_LOST_PACKETS as u64 {
            sent_packets.push(entry(1, PacketState::Outstanding), &[]);
            sent_packets.settle(number, PacketState::Lost);
        }
        sent_packets.trim(Instant::ZERO);
        assert_eq!((sent_packets.lost.len(), sent_packets.entries.len()), (MAX_LOST_PACKETS, 0));
    }

    #[test]
    fn packets_that_ask_for_nothing_leave_no_trace() {
        let mut sent_packets = SentPackets::default();
        for at in 0..1000 {
            sent_packets.push(entry(at, PacketState::Silent), &[]);
        }
        assert_eq!((sent_packets.base(), sent_packets.entries.len()), (1000, 0));
    }
}
