//! Ranges of sequence numbers that arrived out of order, as both ends keep them.

/// Disjoint ranges in ascending order.
#[derive(Clone, Debug, Default)]
pub(super) struct Ranges(Vec<(u64, u64)>);

impl Ranges {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// The range that contains `number`.
    pub(super) fn around(&self, number: u64) -> Option<(u64, u64)> {
        let place = self.0.partition_point(|range| range.1 <= number);
        self.0.get(place).copied().filter(|range| range.0 <= number)
    }

    /// The first part of `from..to` that is in no range.
    pub(super) fn first_gap(&self, from: u64, to: u64) -> Option<(u64, u64)> {
        let mut place = self.0.partition_point(|range| range.1 <= from);
        let mut start = from;
        if let Some(range) = self.0.get(place)
            && range.0 <= from
        {
            start = range.1;
            place += 1;
        }
        let end = self.0.get(place).map_or(to, |range| range.0.min(to));
        (start < end).then_some((start, end))
    }

    /// Adds `from..to`.
    pub(super) fn insert(&mut self, from: u64, to: u64) {
        if from >= to {
            return;
        }
        let first = self.0.partition_point(|range| range.1 < from);
        let after = self.0.partition_point(|range| range.0 <= to);
        let touched = self.0.get(first..after).unwrap_or_default();
        let merged = match (touched.first(), touched.last()) {
            (Some(low), Some(high)) => (low.0.min(from), high.1.max(to)),
            _ => (from, to),
        };
        match self.0.get_mut(first) {
            Some(place) if first < after => {
                *place = merged;
                self.0.drain(first + 1..after);
            }
            _ => self.0.insert(first, merged),
        }
    }

    /// Removes all numbers below `number`.
    pub(super) fn cut_below(&mut self, number: u64) {
        let gone = self.0.partition_point(|range| range.1 <= number);
        self.0.drain(..gone);
        if let Some(first) = self.0.first_mut() {
            first.0 = first.0.max(number);
        }
    }

    /// Removes the first range if it begins at `number` or before. Returns the end of that range.
    pub(super) fn take_at(&mut self, number: u64) -> Option<u64> {
        let &(from, to) = self.0.first()?;
        (from <= number).then(|| {
            self.0.remove(0);
            to
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;
    use std::collections::BTreeSet;

    #[test]
    fn agrees_with_a_set() {
        let mut random = Random::new(3);
        for _ in 0..300 {
            let (mut ranges, mut set) = (Ranges::default(), BTreeSet::new());
            for _ in 0..12 {
                let from = random.below(40);
                let to = from + random.below(8);
                let gap = ranges.first_gap(from, to);
                let first = (from..to).find(|number| !set.contains(number));
                assert_eq!(gap.map(|gap| gap.0), first);
                if let Some((start, end)) = gap {
                    assert!((start..end).all(|number| !set.contains(&number)));
                    assert!(end == to || set.contains(&end));
                }
                ranges.insert(from, to);
                set.extend(from..to);
                if random.chance(0.1) {
                    let cut = random.below(20);
                    ranges.cut_below(cut);
                    set = set.split_off(&cut);
                }
                for number in 0..50 {
                    assert_eq!(ranges.around(number).is_some(), set.contains(&number));
                }
                assert!(ranges.0.windows(2).all(|pair| pair[0].1 < pair[1].0), "{ranges:?}");
            }
        }
    }
}
