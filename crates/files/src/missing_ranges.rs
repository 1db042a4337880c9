//! Which stretches of a file travel as its object: all of it, or what the receiver does not have
//! yet and is no hole.

use crate::chunks::Layout;
use byway_engine::data::RangeSet;

/// The ranges of a file that are sent as an object, one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileRanges {
    /// The ranges: the offset in the object, the offset in the file, and the length. None is empty.
    stretches: Vec<(u64, u64, u64)>,
    size: u64,
}

impl FileRanges {
    /// All of the file without the chunks in `kept` and in `holes`.
    pub fn without(layout: &Layout, kept: &RangeSet, holes: &RangeSet) -> Self {
        let (mut stretches, mut size) = (Vec::new(), 0);
        let mut left_out = kept.clone();
        holes.iter().for_each(|(start, end)| _ = left_out.insert(start, end));
        for (first, past) in left_out.gaps(0, layout.count().into()) {
            let (start, end) = layout.bytes(first, past);
            stretches.push((size, start, end - start));
            size += end - start;
        }
        Self { stretches, size }
    }

    /// Bytes of the object.
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// The ranges of the file, as offsets and lengths, for `length` bytes from `offset` of the
    /// object on.
    pub fn pieces(&self, offset: u64, length: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let first = self.stretches.partition_point(|(at, _, long)| at + long <= offset);
        let end = offset.saturating_add(length);
        self.stretches.iter().skip(first).take_while(move |(at, ..)| *at < end).map(
            move |(at, start, long)| {
                let from = offset.max(*at);
                (start + (from - at), end.min(at + long) - from)
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunks::MIN_CHUNK_LEN;

    fn whole(size: u64) -> FileRanges {
        FileRanges::without(&Layout::new(size), &RangeSet::new(), &RangeSet::new())
    }

    fn kept(ranges: &[(u64, u64)]) -> RangeSet {
        let mut kept = RangeSet::new();
        ranges.iter().for_each(|(start, end)| _ = kept.insert(*start, *end));
        kept
    }

    #[test]
    fn what_is_kept_does_not_travel() {
        let layout = Layout::new(5 * MIN_CHUNK_LEN + 10);
        let stretches = |ranges| FileRanges::without(&layout, &kept(ranges), &RangeSet::new());
        assert_eq!(stretches(&[]), whole(layout.size));
        assert_eq!(whole(9).pieces(0, 99).collect::<Vec<_>>(), [(0, 9)]);
        assert_eq!(stretches(&[(0, 6)]), whole(0));
        let some = stretches(&[(0, 1), (3, 5)]);
        assert_eq!(some.size(), 2 * MIN_CHUNK_LEN + 10);
        let pieces = |offset, length| some.pieces(offset, length).collect::<Vec<_>>();
        assert_eq!(pieces(0, 5), [(MIN_CHUNK_LEN, 5)]);
        assert_eq!(pieces(2 * MIN_CHUNK_LEN - 1, 5), [(3 * MIN_CHUNK_LEN - 1, 1), (5 * MIN_CHUNK_LEN, 4)]);
        assert_eq!(pieces(2 * MIN_CHUNK_LEN + 9, 5), [(5 * MIN_CHUNK_LEN + 9, 1)]);
        assert_eq!(pieces(2 * MIN_CHUNK_LEN + 10, 5), []);
        assert_eq!(pieces(0, u64::MAX), [(MIN_CHUNK_LEN, 2 * MIN_CHUNK_LEN), (5 * MIN_CHUNK_LEN, 10)]);
        assert_eq!(whole(0).pieces(0, 9).count(), 0);
        assert_eq!(FileRanges::without(&layout, &kept(&[(0, 1)]), &kept(&[(3, 5)])), some);
        assert_eq!(FileRanges::without(&layout, &kept(&[(0, 1), (4, 5)]), &kept(&[(3, 5)])), some);
    }
}
