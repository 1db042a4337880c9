//! Sets of offsets as sorted ranges that do not touch. The highest ranges lie in a ring buffer,
//! because most changes are near an end. Lower ranges lie in vectors of at most 256, so a change
//! moves few ranges.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// The most ranges in one piece. Tests have so few that they meet all cases.
const MAX_PIECE_RANGES: usize = if cfg!(test) { 4 } else { 256 };

/// A set of offsets. All ranges are half open: first, and one past the last.
#[derive(Clone, Debug, Default)]
pub struct RangeSet {
    /// The highest ranges; empty only if the set is.
    ranges: VecDeque<(u64, u64)>,
    /// The ranges below, in parts that are never empty.
    below: VecDeque<Vec<(u64, u64)>>,
    /// Number of ranges in these parts.
    count_below: usize,
}

/// The place of a range: its part, or else the ring, and the place there.
#[derive(Clone, Copy, Debug)]
struct RangeIndex {
    part: usize,
    slot: usize,
}

impl PartialEq for RangeSet {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for RangeSet {}

impl RangeSet {
    /// An empty set.
    #[must_use]
    pub const fn new() -> Self {
        Self { ranges: VecDeque::new(), below: VecDeque::new(), count_below: 0 }
    }

    /// Whether the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Returns the number of ranges in the set, which determines its memory.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count_below + self.ranges.len()
    }

    /// The ranges in ascending order: the first offset, and one more than the last.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (u64, u64)> + '_ {
        self.below.iter().flatten().chain(&self.ranges).copied()
    }

    /// The lowest range.
    #[must_use]
    pub fn first(&self) -> Option<(u64, u64)> {
        match self.below.front() {
            Some(lowest) => lowest.first().copied(),
            None => self.ranges.front().copied(),
        }
    }

    /// One more than the highest offset. Zero if the set is empty.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.ranges.back().map_or(0, |range| range.1)
    }

    /// The end of the range that begins at 0. Zero if 0 is not in the set.
    #[must_use]
    pub fn prefix(&self) -> u64 {
        match self.first() {
            Some((0, end)) => end,
            _ => 0,
        }
    }

    /// Whether all of `start..end` is in the set. An empty range always is.
    #[must_use]
    pub fn covers(&self, start: u64, end: u64) -> bool {
        start >= end || self.at(self.past(start)).is_some_and(|range| range.0 <= start && end <= range.1)
    }

    /// Adds `start..end`; returns how many offsets are new.
    pub fn insert(&mut self, start: u64, end: u64) -> u64 {
        self.insert_each(start, end, |_, _| ())
    }

    /// Adds `start..end`, telling each run of offsets that are new, ascending; returns how many
    /// there are.
    pub fn insert_each(&mut self, start: u64, end: u64, mut new: impl FnMut(u64, u64)) -> u64 {
        if start >= end {
            return 0;
        }
        match self.ranges.back_mut() {
            Some(last) if start == last.1 => {
                last.1 = end;
                new(start, end);
                return end - start;
            }
            Some(last) if start < last.1 => {}
            _ => {
                self.ranges.push_back((start, end));
                self.shorten();
                new(start, end);
                return end - start;
            }
        }
        let low = self.seek(|range| range.1 < start);
        let (mut at, mut merged, mut added, mut high, mut met) = (start, (start, end), 0, low, 0);
        while let Some(range) = self.at(high).filter(|range| range.0 <= end) {
            if at < range.0 {
                new(at, range.0);
                added += range.0 - at;
            }
            at = at.max(range.1);
            merged = (merged.0.min(range.0), merged.1.max(range.1));
            (high, met) = (self.next(high), met + 1);
        }
        if at < end {
            new(at, end);
            added += end - at;
        }
        match self.at_mut(low) {
            Some(range) if met > 0 => {
                *range = merged;
                self.take_out(self.next(low), met - 1);
            }
            _ => self.put(low, merged),
        }
        added
    }

    /// Takes `start..end` out; returns how many offsets were in.
    pub fn remove(&mut self, start: u64, end: u64) -> u64 {
        if self.is_empty() {
            return 0;
        }
        let mut at = self.past(start);
        let (mut high, mut met, mut removed) = (at, 0, 0);
        let (mut left, mut right) = (None, None);
        while let Some(range) = self.at(high).filter(|range| start < end && range.0 < end) {
            removed += range.1.min(end) - range.0.max(start);
            if range.0 < start {
                left = Some((range.0, start));
            }
            if range.1 > end {
                right = Some((end, range.1));
            }
            (high, met) = (self.next(high), met + 1);
        }
        // What sticks out on either side stays, in the places of what goes.
        for rest in [left, right].into_iter().flatten() {
            match self.at_mut(at) {
                Some(range) if met > 0 => {
                    *range = rest;
                    (at, met) = (self.next(at), met - 1);
                }
                _ => self.put(at, rest),
            }
        }
        self.take_out(at, met);
        removed
    }

    /// Removes up to `most` offsets from the lowest range, and returns them.
    pub fn take_first(&mut self, most: u64) -> Option<(u64, u64)> {
        let lowest = RangeIndex { part: 0, slot: 0 };
        let first = self.at_mut(lowest)?;
        let end = first.1.min(first.0.saturating_add(most));
        let taken = (first.0, end);
        if end == first.1 {
            self.take_out(lowest, 1);
        } else {
            first.0 = end;
        }
        Some(taken)
    }

    /// The ranges of `start..end` that are not in the set, ascending.
    pub fn gaps(&self, start: u64, end: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let (mut at, mut place) = (start, self.past(start));
        core::iter::from_fn(move || {
            while at < end {
                let from = at;
                let Some(range) = self.at(place).filter(|range| range.0 < end) else {
                    at = end;
                    return Some((from, end));
                };
                (at, place) = (range.1, self.next(place));
                if from < range.0 {
                    return Some((from, range.0));
                }
            }
            None
        })
    }

    /// Removes all ranges, and keeps the memory.
    pub fn clear(&mut self) {
        self.ranges.clear();
        self.below.clear();
        self.count_below = 0;
    }

    /// Place of the first range that ends beyond `offset`. The ends are tried first: that is where
    /// things happen.
    fn past(&self, offset: u64) -> RangeIndex {
        if self.ranges.back().is_none_or(|last| last.1 <= offset) {
            return RangeIndex { part: self.below.len(), slot: self.ranges.len() };
        }
        if self.first().is_some_and(|first| first.1 > offset) {
            return RangeIndex { part: 0, slot: 0 };
        }
        self.seek(|range| range.1 <= offset)
    }

    /// Place of the first range that is not `before`, as all are from there on.
    fn seek(&self, before: impl Fn(&(u64, u64)) -> bool) -> RangeIndex {
        let part = self.below.partition_point(|part| part.last().is_some_and(&before));
        let slot = match self.below.get(part) {
            Some(part) => part.partition_point(before),
            None => self.ranges.partition_point(before),
        };
        RangeIndex { part, slot }
    }

    #[inline]
    fn at(&self, place: RangeIndex) -> Option<(u64, u64)> {
        match self.below.get(place.part) {
            Some(part) => part.get(place.slot).copied(),
            None => self.ranges.get(place.slot).copied(),
        }
    }

    #[inline]
    fn at_mut(&mut self, place: RangeIndex) -> Option<&mut (u64, u64)> {
        match self.below.get_mut(place.part) {
            Some(part) => part.get_mut(place.slot),
            None => self.ranges.get_mut(place.slot),
        }
    }

    /// The place after this place.
    #[inline]
    fn next(&self, RangeIndex { part, slot }: RangeIndex) -> RangeIndex {
        match self.below.get(part) {
            Some(ranges) if slot + 1 >= ranges.len() => RangeIndex { part: part + 1, slot: 0 },
            _ => RangeIndex { part, slot: slot + 1 },
        }
    }

    /// Inserts a range before the place.
    fn put(&mut self, place: RangeIndex, range: (u64, u64)) {
        let Some(part) = self.below.get_mut(place.part) else {
            self.ranges.insert(place.slot, range);
            return self.shorten();
        };
        part.insert(place.slot, range);
        self.count_below += 1;
        if part.len() > MAX_PIECE_RANGES {
            let upper = part.split_off(MAX_PIECE_RANGES / 2);
            self.below.insert(place.part + 1, upper);
        }
    }

    /// Takes `count` ranges out from a place on.
    #[inline]
    fn take_out(&mut self, place: RangeIndex, count: usize) {
        match count {
            0 => {}
            1 if self.below.is_empty() => drop(self.ranges.remove(place.slot)),
            _ => self.take_out_of_parts(place, count),
        }
    }

    fn take_out_of_parts(&mut self, RangeIndex { mut part, mut slot }: RangeIndex, mut count: usize) {
        while count > 0
            && let Some(ranges) = self.below.get_mut(part)
        {
            let here = count.min(ranges.len() - slot);
            ranges.drain(slot..slot + here);
            self.count_below -= here;
            count -= here;
            if ranges.is_empty() {
                self.below.remove(part);
            } else {
                part += 1;
            }
            slot = 0;
        }
        if count > 0 {
            self.ranges.drain(slot..slot + count);
        }
        if self.ranges.is_empty()
            && let Some(highest) = self.below.pop_back()
        {
            self.count_below -= highest.len();
            self.ranges = highest.into();
        }
    }

    /// Moves ranges from a list that is too long to a part of their own.
    #[inline]
    fn shorten(&mut self) {
        if self.ranges.len() > MAX_PIECE_RANGES {
            self.split();
        }
    }

    #[cold]
    fn split(&mut self) {
        let lower: Vec<(u64, u64)> = self.ranges.drain(..MAX_PIECE_RANGES / 2).collect();
        self.count_below += lower.len();
        self.below.push_back(lower);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    const SPACE: usize = 160;

    /// A set as one flag per offset.
    fn flags(set: &RangeSet) -> Vec<bool> {
        let mut flags = vec![false; SPACE];
        for (start, end) in set.iter() {
            flags[start as usize..end as usize].fill(true);
        }
        flags
    }

    fn runs(flags: &[bool], wanted: bool, start: usize, end: usize) -> Vec<(u64, u64)> {
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for at in (start..end).filter(|at| flags[*at] == wanted) {
            match runs.last_mut() {
                Some(last) if last.1 == at as u64 => last.1 += 1,
                _ => runs.push((at as u64, at as u64 + 1)),
            }
        }
        runs
    }

    proptest! {
        #[test]
        fn it_is_a_set(operations in prop::collection::vec((any::<bool>(), 0..SPACE, 0..SPACE), 1..160)) {
            let mut set = RangeSet::new();
            let mut model = vec![false; SPACE];
            for (adds, a, b) in operations {
                // Mostly short, so that there are many ranges.
                let b = if b % 8 > 0 { (a + b % 3).min(SPACE - 1) } else { b };
                let (start, end) = (a.min(b), a.max(b));
                let changed = runs(&model, !adds, start, end);
                let count: u64 = changed.iter().map(|run| run.1 - run.0).sum();
                prop_assert_eq!(set.gaps(start as u64, end as u64).collect::<Vec<_>>(), runs(&model, false, start, end));
                prop_assert_eq!(set.covers(start as u64, end as u64), model[start..end].iter().all(|flag| *flag));
                if adds {
                    let mut told = Vec::new();
                    prop_assert_eq!(set.insert_each(start as u64, end as u64, |s, e| told.push((s, e))), count);
                    prop_assert_eq!(told, changed);
                } else {
                    prop_assert_eq!(set.remove(start as u64, end as u64), count);
                }
                model[start..end].fill(adds);
                prop_assert_eq!(flags(&set), model.clone());
                prop_assert!(set.below.iter().all(|part| !part.is_empty()));
                prop_assert_eq!(set.count(), set.iter().count());
                // Canonical: sorted, not empty, not touching.
                prop_assert_eq!(set.iter().collect::<Vec<_>>(), runs(&model, true, 0, SPACE));
                prop_assert_eq!(set.end() as usize, model.iter().rposition(|flag| *flag).map_or(0, |at| at + 1));
                prop_assert_eq!(set.prefix() as usize, model.iter().position(|flag| !flag).unwrap_or(SPACE));
            }
        }
    }

    #[test]
    fn the_front_is_taken_bit_by_bit() {
        let mut set = RangeSet::new();
        set.insert(3, 10);
        set.insert(20, 22);
        assert_eq!(set.take_first(4), Some((3, 7)));
        assert_eq!(set.take_first(4), Some((7, 10)));
        assert_eq!(set.take_first(u64::MAX), Some((20, 22)));
        assert_eq!(set.take_first(1), None);
    }
}
