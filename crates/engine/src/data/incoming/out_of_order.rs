//! Counts the data that arrived out of order: the ranges that describe them, and the bytes beyond
//! holes.

use crate::data::data_frames::ProtocolError;
use crate::data::ranges::RangeSet;
use smallvec::SmallVec;

/// Ranges beyond one for each stream and object that every peer may make us remember.
const MIN_EXTRA_RANGES: usize = 16 << 10;

/// The new runs of a frame. Nearly always there is one.
pub(super) type NewRanges = SmallVec<[(u64, u64); 4]>;

/// Bytes of runs.
pub(super) fn length(runs: &NewRanges) -> u64 {
    runs.iter().map(|(start, end)| end - start).sum()
}

/// Counts received ranges, and bytes that lie behind holes.
#[derive(Debug, Default)]
pub(super) struct OutOfOrder {
    ranges: usize,
    beyond: u64,
    /// The most that ever were beyond holes.
    most: u64,
}

impl OutOfOrder {
    /// Adds a frame's bytes to the received ranges. Returns the new runs.
    pub fn add(&mut self, received: &mut RangeSet, start: u64, end: u64) -> NewRanges {
        let in_order = received.prefix();
        let runs = self.add_unwanted(received, start, end);
        self.beyond = (self.beyond + length(&runs)).saturating_sub(received.prefix() - in_order);
        self.most = self.most.max(self.beyond);
        runs
    }

    /// Adds bytes that are not wanted to the received ranges. Returns the new runs.
    pub fn add_unwanted(&mut self, received: &mut RangeSet, start: u64, end: u64) -> NewRanges {
        let mut runs = NewRanges::new();
        self.ranges -= received.count();
        received.insert_each(start, end, |from, to| runs.push((from, to)));
        self.ranges += received.count();
        runs
    }

    /// Notes that the missing bytes of `received` are no longer wanted.
    pub fn give_up(&mut self, received: &RangeSet) {
        let beyond = received.iter().map(|(start, end)| end - start).sum::<u64>() - received.prefix();
        self.beyond -= beyond.min(self.beyond);
    }

    /// Removes the received ranges of one stream or object from the counts.
    pub fn forget(&mut self, received: &RangeSet) {
        self.ranges -= received.count();
    }

    /// Bytes that lie behind holes, and the most there ever were.
    pub const fn beyond(&self) -> (u64, u64) {
        (self.beyond, self.most)
    }

    /// Checks that the ranges of `things` streams and objects take no more memory than their data
    /// may.
    pub fn check(&self, things: usize, memory: usize) -> Result<(), ProtocolError> {
        if self.ranges > things + MIN_EXTRA_RANGES.max(memory / 512) {
            return Err(ProtocolError::new(ProtocolError::SCATTERED, "data too scattered"));
        }
        Ok(())
    }

    /// Returns the number of remembered ranges.
    #[cfg(test)]
    pub const fn ranges(&self) -> usize {
        self.ranges
    }
}
