//! The contents of a file in chunks, each with a BLAKE3 hash: what a transfer that is taken up again compares.
//!
//! Chunks are complete subtrees of BLAKE3's own tree, so the hash of a whole file follows from those of its chunks
//! and no byte is hashed twice (BLAKE3 specification, section 2.1; `blake3::hazmat`). A file of one chunk has the file's
//! hash as its chunk's.

use blake3::hazmat::{HasherExt, Mode, merge_subtrees_non_root, merge_subtrees_root};
use std::collections::BTreeMap;

/// A BLAKE3 hash.
pub(crate) type Hash = [u8; 32];

/// The smallest chunk, in bytes: what a sender reads at once.
pub(crate) const SMALLEST: u64 = 256 << 10;
/// Chunks that one file has at most: what bounds the memory for their hashes. Larger files have larger chunks.
pub(crate) const MOST: u64 = 1 << 16;
/// Chunks of one file that are hashed at the same time as their bytes come; others are read back.
const OPEN_MOST: usize = 4;

/// Where the chunks of a file begin and end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub size: u64,
    /// A power of two.
    chunk: u64,
}

impl Layout {
    /// The chunks of a file of `size` bytes (below 2^62).
    pub fn new(size: u64) -> Self {
        let mut chunk = SMALLEST;
        while size.div_ceil(chunk) > MOST {
            chunk *= 2;
        }
        Self { size, chunk }
    }

    /// How many there are.
    pub const fn count(&self) -> u32 {
        self.size.div_ceil(self.chunk) as u32
    }

    /// Whether there are several: one alone is not worth a journal.
    pub const fn is_divided(&self) -> bool {
        self.size > self.chunk
    }

    /// First offset, and one past the last, of a chunk.
    pub fn range(&self, index: u32) -> (u64, u64) {
        let start = u64::from(index).saturating_mul(self.chunk);
        (start.min(self.size), start.saturating_add(self.chunk).min(self.size))
    }

    /// The chunk that `offset` is in.
    pub const fn index(&self, offset: u64) -> u32 {
        (offset / self.chunk) as u32
    }
}

/// The hash of a chunk of zeros.
pub(crate) fn hash_of_zeros(layout: &Layout, index: u32) -> Hash {
    let mut hashing = Hashing::new(layout, index);
    loop {
        let left = usize::try_from(hashing.left()).unwrap_or(usize::MAX);
        if let Some(hash) = hashing.update(ZEROS.get(..left).unwrap_or(&ZEROS)) {
            return hash;
        }
    }
}

static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// A chunk being hashed from its start on.
#[derive(Debug)]
pub(crate) struct Hashing {
    index: u32,
    /// The offset in the file that comes next.
    pub at: u64,
    end: u64,
    whole: bool,
    hasher: Box<blake3::Hasher>,
}

impl Hashing {
    /// Of nothing yet.
    pub fn new(layout: &Layout, index: u32) -> Self {
        let (start, end) = layout.range(index);
        let mut hasher: Box<blake3::Hasher> = Box::default();
        hasher.set_input_offset(start);
        Self { index, at: start, end, whole: !layout.is_divided(), hasher }
    }

    /// How many bytes of the chunk are still to come.
    pub const fn left(&self) -> u64 {
        self.end - self.at
    }

    /// The next bytes, at most as many as are [left](Self::left). The hash, once the chunk has all of them.
    pub fn update(&mut self, bytes: &[u8]) -> Option<Hash> {
        self.hasher.update(bytes);
        self.at += bytes.len() as u64;
        if self.at < self.end {
            return None;
        }
        Some(if self.whole { *self.hasher.finalize().as_bytes() } else { self.hasher.finalize_non_root() })
    }
}

/// The hashes of a file's chunks, as far as they are known.
#[derive(Debug)]
pub(crate) struct Hashes {
    pub layout: Layout,
    known: BTreeMap<u32, Hash>,
    /// All chunks before this one are known.
    searched: u32,
    /// The hash of a file that is one chunk, in place of a tree for it.
    only: Option<Hash>,
    open: Vec<Hashing>,
}

impl Hashes {
    pub const fn new(layout: Layout) -> Self {
        Self { layout, known: BTreeMap::new(), searched: 0, only: None, open: Vec::new() }
    }

    /// Whether the hash of a chunk is known.
    pub fn knows(&self, index: u32) -> bool {
        (self.only.is_some() && index == 0) || self.known.contains_key(&index)
    }

    /// Sets the hash of a chunk.
    pub fn set(&mut self, index: u32, hash: Hash) {
        match self.layout.is_divided() {
            true => _ = self.known.insert(index, hash),
            false => self.only = Some(hash),
        }
    }

    /// Forgets all but those of chunks that `keep` wants.
    pub fn retain(&mut self, keep: impl Fn(u32) -> bool) {
        self.known.retain(|index, _| keep(*index));
        self.searched = 0;
        self.only = self.only.filter(|_| keep(0));
    }

    /// The first chunk whose hash is not known. All calls together look at each chunk once.
    pub fn first_unknown(&mut self) -> Option<u32> {
        if self.only.is_some() {
            return None;
        }
        while self.known.contains_key(&self.searched) {
            self.searched += 1;
        }
        (self.searched < self.layout.count()).then_some(self.searched)
    }

    /// Bytes that stand at `offset` came or were read. Calls `each` with the hash of every chunk that is known from here on.
    /// Chunks whose bytes come in another order than theirs are left out.
    pub fn feed(&mut self, mut offset: u64, mut bytes: &[u8], mut each: impl FnMut(u32, &Hash)) {
        while !bytes.is_empty() && offset < self.layout.size {
            let index = self.layout.index(offset);
            let (start, end) = self.layout.range(index);
            let length = usize::try_from(end - offset).unwrap_or(usize::MAX).min(bytes.len());
            let (piece, rest) = bytes.split_at(length);
            if !self.knows(index)
                && let Some(hash) = self.feed_chunk(index, start, offset, piece)
            {
                self.set(index, hash);
                each(index, &hash);
            }
            (offset, bytes) = (offset + length as u64, rest);
        }
    }

    fn feed_chunk(&mut self, index: u32, start: u64, offset: u64, piece: &[u8]) -> Option<Hash> {
        let place = self.open.iter().position(|open| open.index == index);
        if place.is_none() && !self.layout.is_divided() && piece.len() as u64 == self.layout.size {
            // A small file that comes in one piece: nothing needs to be kept of it.
            return Some(*blake3::hash(piece).as_bytes());
        }
        let mut hashing = match place {
            Some(place) if self.open.get(place).is_some_and(|open| open.at == offset) => {
                self.open.remove(place)
            }
            None if offset == start => {
                if self.open.len() >= OPEN_MOST {
                    self.open.remove(0);
                }
                Hashing::new(&self.layout, index)
            }
            _ => return None,
        };
        let hash = hashing.update(piece);
        if hash.is_none() {
            self.open.push(hashing);
        }
        hash
    }

    /// The hash of the whole file, if that of every chunk is known.
    pub fn root(&self) -> Option<Hash> {
        if self.layout.size == 0 {
            return Some(*blake3::hash(&[]).as_bytes());
        }
        if self.only.is_some() {
            return self.only;
        }
        if self.known.len() < self.layout.count() as usize {
            return None;
        }
        let hashes: Vec<&Hash> = self.known.values().collect();
        match hashes.as_slice() {
            [] | [_] => None,
            many => {
                let (left, right) = many.split_at(left_count(many.len()));
                Some(*merge_subtrees_root(&subtree(left), &subtree(right), Mode::Hash).as_bytes())
            }
        }
    }
}

/// Of several chunks, how many are in the left subtree: the largest power of two below their number.
const fn left_count(count: usize) -> usize {
    count.next_power_of_two() / 2
}

fn subtree(hashes: &[&Hash]) -> Hash {
    match hashes {
        [] => [0; 32],
        [one] => **one,
        many => {
            let (left, right) = many.split_at(left_count(many.len()));
            merge_subtrees_non_root(&subtree(left), &subtree(right), Mode::Hash)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn contents(size: usize) -> Vec<u8> {
        (0..size as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
    }

    #[test]
    fn chunks_grow_with_the_file_and_stay_few() {
        for (size, count) in [
            (0, 0),
            (1, 1),
            (SMALLEST, 1),
            (SMALLEST + 1, 2),
            (SMALLEST * MOST, MOST as u32),
            (SMALLEST * MOST + 1, MOST as u32 / 2 + 1),
            (1 << 61, MOST as u32),
        ] {
            let layout = Layout::new(size);
            assert_eq!((layout.count(), layout.is_divided()), (count, count > 1), "{size}");
            if let Some(last) = count.checked_sub(1) {
                assert_eq!(layout.range(last).1, size);
                assert_eq!(layout.index(size - 1), last);
            }
        }
    }

    #[test]
    fn the_hash_of_the_file_follows_from_those_of_its_chunks() {
        let chunk = SMALLEST as usize;
        for size in [0, 1, 1_025, chunk, chunk + 1, 2 * chunk, 5 * chunk - 7, 7 * chunk + 1_024] {
            let contents = contents(size);
            let mut hashes = Hashes::new(Layout::new(size as u64));
            let mut told = 0;
            hashes.feed(0, &contents, |_, _| told += 1);
            assert_eq!(told, hashes.layout.count());
            assert_eq!(hashes.root(), Some(*blake3::hash(&contents).as_bytes()), "{size}");
            assert_eq!(hashes.first_unknown(), None);
        }
    }

    #[test]
    fn zeros_have_the_hash_of_zeros() {
        let layout = Layout::new(2 * SMALLEST + 100_001);
        let mut hashes = Hashes::new(layout);
        (0..layout.count()).for_each(|index| hashes.set(index, hash_of_zeros(&layout, index)));
        assert_eq!(hashes.root(), Some(*blake3::hash(&vec![0; layout.size as usize]).as_bytes()));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(30))]
        #[test]
        fn pieces_in_any_order_give_right_hashes_or_none(
            cuts in prop::collection::vec(0..1_200_000usize, 0..12),
            order in prop::collection::vec(any::<u16>(), 13),
        ) {
            let contents = contents(1_200_000);
            let mut cuts = [cuts, vec![0, contents.len()]].concat();
            cuts.sort_unstable();
            let mut pieces: Vec<_> = cuts.windows(2).map(|pair| (pair[0], pair[1])).collect();
            let mut keys = order.iter().cycle();
            pieces.sort_by_cached_key(|_| keys.next());
            let mut hashes = Hashes::new(Layout::new(contents.len() as u64));
            for (start, end) in pieces {
                hashes.feed(start as u64, &contents[start..end], |_, _| ());
            }
            // What was left out is read again, as its owner does.
            while let Some(index) = hashes.first_unknown() {
                let (start, end) = hashes.layout.range(index);
                let mut hashing = Hashing::new(&hashes.layout, index);
                let hash = hashing.update(&contents[start as usize..end as usize]).unwrap();
                hashes.set(index, hash);
            }
            prop_assert_eq!(hashes.root(), Some(*blake3::hash(&contents).as_bytes()));
        }
    }
}
