//! The state of the bytes of one stream or object: sent, acknowledged, lost, repeated.

use crate::data::data_frames::DataId;
use crate::data::ranges::RangeSet;
use alloc::collections::VecDeque;

/// The state of the sent bytes of one stream or object.
#[derive(Debug, Default)]
pub(super) struct DeliveryState {
    /// The offset below which all bytes went out at least once.
    pub sent: u64,
    /// The bytes that the peer has acknowledged.
    pub acked: RangeSet,
    /// The bytes that are lost and must be sent again.
    pub lost: RangeSet,
    /// The offset below which all bytes were considered for the repetition of the tail.
    pub repeated_to: u64,
    /// Whether the stream or object counts in [`Queues::wanting`].
    wanting: bool,
    /// Whether the stream or object is in [`Queues::again`].
    in_again: bool,
    /// Whether the stream or object is in [`Queues::tail`].
    in_tail: bool,
}

impl DeliveryState {
    /// Notes that the peer has acknowledged the bytes `start..end`. Calls `new` for each range in
    /// it that was not acknowledged before. Returns the number of bytes in these ranges.
    pub fn on_acked(&mut self, start: u64, end: u64, new: impl FnMut(u64, u64)) -> u64 {
        let end = end.min(self.sent);
        self.lost.remove(start, end);
        self.acked.insert_each(start, end, new)
    }

    /// Marks the bytes of `start..end` as lost that are not acknowledged.
    pub fn on_lost(&mut self, start: u64, end: u64) {
        for (from, to) in self.acked.gaps(start, end.min(self.sent)) {
            self.lost.insert(from, to);
        }
    }

    /// Returns the oldest range in flight that was not repeated yet. Lost data are not part of it,
    /// as they are sent again anyway.
    pub fn to_repeat(&self) -> Option<(u64, u64)> {
        self.acked
            .gaps(self.repeated_to, self.sent)
            .find_map(|(start, end)| self.lost.gaps(start, end).next())
    }
}

#[cfg(debug_assertions)]
impl DeliveryState {
    /// Asserts that only sent bytes are acknowledged or lost.
    pub fn check(&self) {
        debug_assert!(self.acked.end().max(self.lost.end()) <= self.sent, "more than was sent: {self:?}");
        debug_assert!(self.repeated_to <= self.sent, "more is repeated than was sent: {self:?}");
    }

    /// Counts the bytes that were sent and are not acknowledged. Asserts that no lost byte was
    /// acknowledged.
    pub fn recount_in_flight(&self) -> u64 {
        let is_missing = |(start, end)| self.acked.gaps(start, end).eq([(start, end)]);
        debug_assert!(self.lost.iter().all(is_missing), "lost and acknowledged: {self:?}");
        self.sent - self.acked.iter().map(|(start, end)| end - start).sum::<u64>()
    }

    /// Returns the number of ranges that a recount examines.
    pub fn ranges(&self) -> usize {
        self.acked.count() + self.lost.count()
    }
}

/// The queues of streams and objects with bytes to send again.
#[derive(Debug, Default)]
pub(super) struct Queues {
    /// Streams and objects with lost data, in the order of their first loss. Some may have none
    /// left.
    again: VecDeque<DataId>,
    /// Number of streams and objects with lost data, which is exact.
    wanting: usize,
    /// Streams and objects with new data since their last repetition, in the order of sending. Some
    /// may be done.
    tail: VecDeque<DataId>,
}

impl Queues {
    /// Whether anybody has something lost to send.
    pub const fn wants(&self) -> bool {
        self.wanting > 0
    }

    /// Updates the queues after a change in the lost bytes of `track`.
    pub fn settle(&mut self, id: DataId, track: &mut DeliveryState, wants: bool) {
        if wants && !track.in_again {
            track.in_again = true;
            self.again.push_back(id);
        }
        match (track.wanting, wants) {
            (false, true) => self.wanting += 1,
            (true, false) => self.wanting -= 1,
            _ => {}
        }
        track.wanting = wants;
    }

    /// Returns the stream or object whose lost data are sent next.
    pub fn next_again(&self) -> Option<DataId> {
        self.again.front().copied()
    }

    /// Removes the first entry of `again`, which has no lost bytes left or has ended.
    pub fn pop_again(&mut self, track: Option<&mut DeliveryState>) {
        self.again.pop_front();
        if let Some(track) = track {
            track.in_again = false;
        }
    }

    /// Something new was sent.
    pub fn sent_new(&mut self, id: DataId, track: &mut DeliveryState) {
        if !track.in_tail {
            track.in_tail = true;
            self.tail.push_back(id);
        }
    }

    /// Returns the stream or object whose tail is repeated next.
    pub fn next_tail(&self) -> Option<DataId> {
        self.tail.front().copied()
    }

    /// Removes the first entry of `tail`, which has nothing left to repeat or has ended.
    pub fn pop_tail(&mut self, track: Option<&mut DeliveryState>) {
        self.tail.pop_front();
        if let Some(track) = track {
            track.in_tail = false;
        }
    }

    /// Asserts that those with lost data are counted, and that whoever is said to stand in a queue
    /// does. `tracks` are all there are, each with whether it wants to send again. `track` finds
    /// one.
    #[cfg(debug_assertions)]
    pub fn check<'a>(
        &self,
        tracks: impl Iterator<Item = (&'a DeliveryState, bool)>,
        track: impl Fn(DataId) -> Option<&'a DeliveryState>,
    ) {
        let (mut wanting, mut again, mut tail) = (0, 0, 0);
        for (track, wants) in tracks {
            debug_assert_eq!(track.wanting, wants, "what is lost was noted: {track:?}");
            debug_assert!(track.in_again || !wants, "what is lost waits for its turn: {track:?}");
            wanting += usize::from(wants);
            again += usize::from(track.in_again);
            tail += usize::from(track.in_tail);
        }
        debug_assert_eq!(self.wanting, wanting, "those with lost data are counted");
        // An owner that uses an id twice leaves an entry of the first use.
        let standing = |queue: &VecDeque<DataId>, flag: fn(&DeliveryState) -> bool| {
            queue.iter().filter(|id| track(**id).is_some_and(flag)).count()
        };
        debug_assert!(again <= standing(&self.again, |track| track.in_again), "some are not in the queue");
        debug_assert!(tail <= standing(&self.tail, |track| track.in_tail), "some tails are not in the queue");
    }

    /// Returns the number of entries that a check examines.
    #[cfg(debug_assertions)]
    pub fn entries(&self) -> usize {
        self.again.len() + self.tail.len()
    }
}
