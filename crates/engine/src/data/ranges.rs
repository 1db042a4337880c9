//! Sets of offsets as sorted, disjoint ranges that do not touch.
//!
//! Data arrives, and is acknowledged, nearly in order: what changes is near one of the ends. A ring of pairs makes both
//! ends cheap (appending to the last range is O(1), the ring moves whichever side of a change is shorter) and takes 16
//! bytes per range and nothing when empty.

use alloc::collections::VecDeque;

/// A set of offsets. All ranges are half open: first, and one past the last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangeSet {
    ranges: VecDeque<(u64, u64)>,
}

impl RangeSet {
    /// The empty set.
    #[must_use]
    pub const fn new() -> Self {
        Self { ranges: VecDeque::new() }
    }

    /// Whether nothing is in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// How many ranges it takes to describe the set: what it costs in memory.
    #[must_use]
    pub fn count(&self) -> usize {
        self.ranges.len()
    }

    /// The ranges, ascending.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (u64, u64)> + '_ {
        self.ranges.iter().copied()
    }

    /// The lowest range.
    #[must_use]
    pub fn first(&self) -> Option<(u64, u64)> {
        self.ranges.front().copied()
    }

    /// One past the highest offset; zero when empty.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.ranges.back().map_or(0, |range| range.1)
    }

    /// One past the last offset of the unbroken run from zero.
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
        start >= end
            || self.ranges.get(self.past(start)).is_some_and(|range| range.0 <= start && end <= range.1)
    }

    /// Adds `start..end`; returns how many offsets are new.
    pub fn insert(&mut self, start: u64, end: u64) -> u64 {
        self.insert_each(start, end, |_, _| ())
    }

    /// Adds `start..end`, telling each run of offsets that are new, ascending; returns how many there are.
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
                new(start, end);
                return end - start;
            }
        }
        let low = self.ranges.partition_point(|range| range.1 < start);
        let (mut at, mut merged, mut added, mut high) = (start, (start, end), 0, low);
        while let Some(range) = self.ranges.get(high).filter(|range| range.0 <= end) {
            if at < range.0 {
                new(at, range.0);
                added += range.0 - at;
            }
            at = at.max(range.1);
            merged = (merged.0.min(range.0), merged.1.max(range.1));
            high += 1;
        }
        if at < end {
            new(at, end);
            added += end - at;
        }
        match self.ranges.get_mut(low) {
            Some(range) if high > low => {
                *range = merged;
                if high > low + 1 {
                    self.ranges.drain(low + 1..high);
                }
            }
            _ => self.ranges.insert(low, merged),
        }
        added
    }

    /// Takes `start..end` out; returns how many offsets were in.
    pub fn remove(&mut self, start: u64, end: u64) -> u64 {
        let low = self.past(start);
        let (mut high, mut removed) = (low, 0);
        let (mut left, mut right) = (None, None);
        while let Some(&range) = self.ranges.get(high).filter(|range| start < end && range.0 < end) {
            removed += range.1.min(end) - range.0.max(start);
            if range.0 < start {
                left = Some((range.0, start));
            }
            if range.1 > end {
                right = Some((end, range.1));
            }
            high += 1;
        }
        // What sticks out on either side stays, in the places of what goes.
        let mut at = low;
        for rest in [left, right].into_iter().flatten() {
            match self.ranges.get_mut(at) {
                Some(range) if at < high => *range = rest,
                _ => self.ranges.insert(at, rest),
            }
            at += 1;
        }
        if at < high {
            self.ranges.drain(at..high);
        }
        removed
    }

    /// Takes up to `most` offsets off the lowest range and returns them.
    pub fn take_first(&mut self, most: u64) -> Option<(u64, u64)> {
        let first = self.ranges.front_mut()?;
        let end = first.1.min(first.0.saturating_add(most));
        let taken = (first.0, end);
        if end == first.1 {
            self.ranges.pop_front();
        } else {
            first.0 = end;
        }
        Some(taken)
    }

    /// The ranges of `start..end` that are not in the set, ascending.
    pub fn gaps(&self, start: u64, end: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let (mut at, mut index) = (start, self.past(start));
        core::iter::from_fn(move || {
            while at < end {
                let from = at;
                let Some(&range) = self.ranges.get(index).filter(|range| range.0 < end) else {
                    at = end;
                    return Some((from, end));
                };
                (at, index) = (range.1, index + 1);
                if from < range.0 {
                    return Some((from, range.0));
                }
            }
            None
        })
    }

    /// Empties the set and keeps its memory.
    pub fn clear(&mut self) {
        self.ranges.clear();
    }

    /// Index of the first range that ends beyond `offset`. The ends are tried first: that is where things happen.
    fn past(&self, offset: u64) -> usize {
        if self.ranges.back().is_none_or(|last| last.1 <= offset) {
            return self.ranges.len();
        }
        if self.ranges.front().is_some_and(|first| first.1 > offset) {
            return 0;
        }
        self.ranges.partition_point(|range| range.1 <= offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    const SPACE: usize = 64;

    /// The same set, one flag per offset.
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
        fn it_is_a_set(operations in prop::collection::vec((any::<bool>(), 0..SPACE, 0..SPACE), 1..60)) {
            let mut set = RangeSet::new();
            let mut model = vec![false; SPACE];
            for (adds, a, b) in operations {
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
