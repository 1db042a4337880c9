//! The protocol between [`Source`](crate::Source) and [`Sink`](crate::Sink) to resume a transfer
//! that broke off. This module checks HAVE and PARTS records and decides which chunks of a file are
//! sent.
//!
//! ```text
//!    sender                                               receiver
//! 1. START, COMPARE, FILE of each file                ──>
//! 2.                                                  <── HAVE: hashes of the chunks that are on its disk
//! 3. PARTS: which of these chunks are kept            ──>
//! 4. an object: the file without kept chunks and holes ──>
//! 5. HASH of the whole file                           ──>  judged, and put in place
//! ```
//!
//! | step | remark |
//! |---|---|
//! | 1 | without [`Journals`](crate::Journals) of an earlier run, the receiver answers SAME or WANTED, and steps 2 and 3 are left out |
//! | 2 | the chunks of the partial file for this path, size and time; without one, those of the file under the final name, if its size is the same and contents are to be compared |
//! | 3 | PARTS names chunks with equal hashes ([`Comparison`]), in a bounded number of ranges; of a file under its final name all or none, because such a file is never written to |
//! | 4 | the receiver checks PARTS ([`resumed`]), and both ends compute the object's ranges ([`FileRanges`](crate::missing_ranges::FileRanges)) |
//! | 5 | the receiver computes the file's hash from the hashes of all chunks |
//!
//! If a file changes at the sender meanwhile, its object is withdrawn.

use crate::chunks::Layout;
use crate::manifest::ChunkRanges;
use byway_engine::data::RangeSet;
use byway_wire::DecodeError;

/// The sender's side of steps 2 and 3, for one file: the chunks that are equal at both ends.
#[derive(Debug, Default)]
pub(crate) struct Comparison {
    equal: RangeSet,
    /// The lowest chunk that the receiver may report next.
    next: u32,
}

impl Comparison {
    /// Checks a HAVE record: `count` hashes of the receiver's chunks, from the chunk `first` on.
    ///
    /// # Errors
    /// The file has no such chunks, or `first` is not after the chunks of the HAVE record before.
    pub fn take(&mut self, layout: &Layout, first: u32, count: usize) -> Result<(), DecodeError> {
        let past = u64::from(first) + count as u64;
        if first < self.next || past > layout.count().into() {
            return Err(DecodeError::Range("chunk"));
        }
        self.next = past as u32;
        Ok(())
    }

    /// Notes that the receiver's chunk `index` equals the sender's.
    pub fn equal(&mut self, index: u32) {
        self.equal.insert(index.into(), u64::from(index) + 1);
    }

    /// Decides which chunks the receiver keeps. Returns them encoded for the PARTS record, and as a
    /// set of chunk indices. `placed`: the receiver's file has its final name already; if any of
    /// its chunks differs, none is kept.
    pub fn decide(mut self, layout: &Layout, placed: bool) -> (Vec<u8>, RangeSet) {
        if placed && !self.equal.covers(0, layout.count().into()) {
            self.equal.clear();
        }
        ChunkRanges::write(&self.equal)
    }
}

/// The state of a file at the receiver from which it is resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resumed {
    /// Nothing: the file comes whole.
    Nothing,
    /// The partial file is taken up again.
    Partial,
    /// A complete file under its final name, which equals the sender's.
    Placed,
}

/// Returns the state from which the receiver continues. `kept`: chunks that the sender said to
/// keep. `placed`: the file has its final name, so it is kept whole or not at all. `None` if `kept`
/// is only part of a placed file, or has a chunk whose hash the receiver never sent
/// (`was_offered`).
pub(crate) fn resumed(
    layout: &Layout,
    placed: bool,
    kept: &RangeSet,
    was_offered: impl Fn(u32) -> bool,
) -> Option<Resumed> {
    let known = kept.iter().all(|(first, past)| (first..past).all(|index| was_offered(index as u32)));
    match (known, kept.is_empty(), placed) {
        (false, ..) => None,
        (_, true, _) => Some(Resumed::Nothing),
        (_, false, false) => Some(Resumed::Partial),
        (_, false, true) => kept.covers(0, layout.count().into()).then_some(Resumed::Placed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunks::MIN_CHUNK_LEN;

    fn layout() -> Layout {
        Layout::new(4 * MIN_CHUNK_LEN)
    }

    fn set(chunks: &[(u64, u64)]) -> RangeSet {
        let mut set = RangeSet::new();
        chunks.iter().for_each(|(first, past)| _ = set.insert(*first, *past));
        set
    }

    fn kept(equal: &[u32], placed: bool) -> RangeSet {
        let mut comparison = Comparison::default();
        equal.iter().for_each(|index| comparison.equal(*index));
        let (bytes, kept) = comparison.decide(&layout(), placed);
        assert_eq!(ChunkRanges::written(&bytes).set(), kept, "both ends know the same");
        kept
    }

    #[test]
    fn chunks_are_told_of_in_their_order_and_once() {
        let mut comparison = Comparison::default();
        assert_eq!(comparison.take(&layout(), 1, 2), Ok(()));
        assert!(comparison.take(&layout(), 2, 1).is_err());
        assert!(comparison.take(&layout(), 3, 2).is_err());
        assert_eq!(comparison.take(&layout(), 3, 1), Ok(()));
        assert_eq!(comparison.take(&layout(), 4, 0), Ok(()), "the last says nothing more");
        assert!(comparison.take(&layout(), u32::MAX, usize::MAX >> 1).is_err());
    }

    #[test]
    fn a_file_under_its_final_name_is_kept_whole_or_not_at_all() {
        assert_eq!(kept(&[0, 2], false), set(&[(0, 1), (2, 3)]));
        assert_eq!(kept(&[0, 2], true), set(&[]));
        assert_eq!(kept(&[0, 1, 2, 3], true), set(&[(0, 4)]));
    }

    #[test]
    fn only_what_was_offered_can_be_kept() {
        let resumed = |placed, chunks: &[(u64, u64)]| {
            super::resumed(&layout(), placed, &set(chunks), |index| index != 3 || placed)
        };
        assert_eq!(resumed(false, &[]), Some(Resumed::Nothing));
        assert_eq!(resumed(false, &[(0, 1), (2, 3)]), Some(Resumed::Partial));
        assert_eq!(resumed(false, &[(2, 4)]), None);
        assert_eq!(resumed(true, &[]), Some(Resumed::Nothing));
        assert_eq!(resumed(true, &[(0, 4)]), Some(Resumed::Placed));
        assert_eq!(resumed(true, &[(0, 3)]), None);
    }
}
