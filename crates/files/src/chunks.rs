//! Divides a file into chunks, each with a BLAKE3 hash. Each chunk is a complete subtree of
//! BLAKE3's hash tree (specification, section 2.1; `blake3::hazmat`). So the hash of the whole file
//! is computed from the hashes of its chunks.

use blake3::hazmat::{HasherExt, Mode, merge_subtrees_non_root, merge_subtrees_root};
use byway_engine::data::RangeSet;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;

/// A BLAKE3 hash.
pub(crate) type Hash = [u8; 32];

/// The smallest chunk in bytes. It is also the size of a sender's reads.
pub(crate) const MIN_CHUNK_LEN: u64 = 256 << 10;
/// The most chunks of one file, which limits the memory for their hashes. Larger files have larger
/// chunks.
pub(crate) const MAX_CHUNKS: u64 = 1 << 16;
/// The most chunks of one file that are hashed while their bytes arrive. Other chunks are read
/// back.
const MAX_OPEN_CHUNKS: usize = 4;

/// Bytes read at a time for a hash alone.
pub(crate) const HASH_READ_LEN: usize = 128 << 10;

/// The division of a file into chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub size: u64,
    /// The size of a chunk in bytes, a power of two.
    chunk: u64,
}

impl Layout {
    /// The chunks of a file of `size` bytes (below 2^62).
    pub fn new(size: u64) -> Self {
        let mut chunk = MIN_CHUNK_LEN;
        while size.div_ceil(chunk) > MAX_CHUNKS {
            chunk *= 2;
        }
        Self { size, chunk }
    }

    /// The number of chunks.
    pub const fn count(&self) -> u32 {
        self.size.div_ceil(self.chunk) as u32
    }

    /// Whether the file has several chunks. A file of one needs no journal.
    pub const fn is_divided(&self) -> bool {
        self.size > self.chunk
    }

    /// The first offset of a chunk, and one more than the last.
    pub fn range(&self, index: u32) -> (u64, u64) {
        let start = u64::from(index).saturating_mul(self.chunk);
        (start.min(self.size), start.saturating_add(self.chunk).min(self.size))
    }

    /// First offset, and one past the last, of the chunks from `first` to before `past`. None are
    /// beyond the last, and there is one.
    pub fn bytes(&self, first: u64, past: u64) -> (u64, u64) {
        (self.range(first as u32).0, self.range(past as u32 - 1).1)
    }

    /// The chunk that `offset` is in.
    pub const fn index(&self, offset: u64) -> u32 {
        (offset / self.chunk) as u32
    }
}

/// The hash of a chunk that is a hole.
/// All holes have the same hash, because hashing a tebibyte of zeros would take minutes. So the
/// hash of a file with holes is not the BLAKE3 hash of its bytes.
pub(crate) fn hole() -> Hash {
    *hole_trees().first().unwrap_or(&[0; 32])
}

/// The hashes of complete subtrees of holes. They are of one chunk, two, four, and so on up to
/// [`MAX_CHUNKS`].
fn hole_trees() -> &'static [Hash; TREE_LEVELS] {
    static HOLE_TREES: OnceLock<[Hash; TREE_LEVELS]> = OnceLock::new();
    HOLE_TREES.get_or_init(|| {
        let mut hash = blake3::derive_key("byway 2026 a chunk that is a hole", &[]);
        std::array::from_fn(|_| {
            let tree = hash;
            hash = merge_subtrees_non_root(&tree, &tree, Mode::Hash);
            tree
        })
    })
}

const TREE_LEVELS: usize = MAX_CHUNKS.ilog2() as usize + 1;

/// The hash of a subtree of `count` holes.
fn holes_tree(count: u32) -> Hash {
    if let (true, Some(tree)) = (count.is_power_of_two(), hole_trees().get(count.ilog2() as usize)) {
        return *tree;
    }
    let left = left_count(count);
    merge_subtrees_non_root(&holes_tree(left), &holes_tree(count - left), Mode::Hash)
}

/// The hash of a chunk, computed from its start on.
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
    /// The hash of a chunk of which nothing was read yet.
    pub fn new(layout: &Layout, index: u32) -> Self {
        let (start, end) = layout.range(index);
        let mut hasher: Box<blake3::Hasher> = Box::default();
        hasher.set_input_offset(start);
        Self { index, at: start, end, whole: !layout.is_divided(), hasher }
    }

    /// Reads a chunk of `file`, and returns its hash.
    pub fn read(file: &File, layout: &Layout, index: u32) -> io::Result<Hash> {
        let mut hashing = Self::new(layout, index);
        let mut buffer = vec![0; HASH_READ_LEN];
        loop {
            let length = usize::try_from(hashing.left()).unwrap_or(HASH_READ_LEN).min(HASH_READ_LEN);
            let piece = buffer.get_mut(..length).unwrap_or_default();
            file.read_exact_at(piece, hashing.at)?;
            if let Some(hash) = hashing.update(piece) {
                return Ok(hash);
            }
        }
    }

    /// Returns the number of bytes of the chunk that are not hashed yet.
    pub const fn left(&self) -> u64 {
        self.end - self.at
    }

    /// Hashes the next bytes, at most as many as are [left](Self::left). Returns the hash, once the
    /// chunk is complete.
    pub fn update(&mut self, bytes: &[u8]) -> Option<Hash> {
        self.hasher.update(bytes);
        self.at += bytes.len() as u64;
        if self.at < self.end {
            return None;
        }
        Some(if self.whole { *self.hasher.finalize().as_bytes() } else { self.hasher.finalize_non_root() })
    }
}

/// The known hashes of a file's chunks.
#[derive(Debug)]
pub(crate) struct Hashes {
    pub layout: Layout,
    /// Chunks that are holes. If the hash of one is known, it is used.
    pub holes: RangeSet,
    /// Chunks that were found to be zeros.
    zeros: RangeSet,
    known: BTreeMap<u32, Hash>,
    /// Chunks whose hash is known, or that are holes. Kept as a number, since it is asked for after
    /// each read.
    given: u64,
    /// The index before which all chunks are known.
    searched: u32,
    /// The hash of a file with only one chunk, which needs no tree.
    only: Option<Hash>,
    open: Vec<Hashing>,
    /// Number of chunks that were examined, for tests.
    #[cfg(test)]
    looks: std::sync::atomic::AtomicU64,
}

impl Hashes {
    /// The hashes of a file of several chunks, some of which may be holes, or of one chunk.
    pub fn new(layout: Layout, holes: RangeSet) -> Self {
        Self {
            layout,
            given: chunks_of(&holes),
            holes,
            zeros: RangeSet::new(),
            known: BTreeMap::new(),
            searched: 0,
            only: None,
            open: Vec::new(),
            #[cfg(test)]
            looks: std::sync::atomic::AtomicU64::new(0),
        }
    }

    /// Whether a chunk is a hole.
    pub fn is_hole(&self, index: u32) -> bool {
        #[cfg(test)]
        self.looks.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        self.holes.covers(index.into(), u64::from(index) + 1)
    }

    /// Whether a chunk is known: by its hash, or as zeros in the place of a hole.
    pub fn knows(&self, index: u32) -> bool {
        let zeros = || self.zeros.covers(index.into(), u64::from(index) + 1);
        (self.only.is_some() && index == 0) || self.known.contains_key(&index) || zeros()
    }

    /// Notes that a chunk in the place of a hole is zeros.
    pub fn set_zeros(&mut self, index: u32) {
        self.zeros.insert(index.into(), u64::from(index) + 1);
    }

    /// Sets the hash of a chunk.
    pub fn set(&mut self, index: u32, hash: Hash) {
        match self.layout.is_divided() {
            true => {
                let is_new = self.known.insert(index, hash).is_none();
                self.given += u64::from(is_new && !self.is_hole(index));
            }
            false => self.only = Some(hash),
        }
    }

    /// Keeps only the hashes of chunks for which `keep` returns true.
    pub fn retain(&mut self, keep: impl Fn(u32) -> bool) {
        self.known.retain(|index, _| keep(*index));
        let stored = self.known.keys().filter(|index| !self.is_hole(**index)).count() as u64;
        self.given = chunks_of(&self.holes) + stored;
        self.zeros.clear();
        self.searched = 0;
        self.only = self.only.filter(|_| keep(0));
    }

    /// The first chunk whose hash is not known. All calls together look at each chunk once.
    pub fn first_unknown(&mut self) -> Option<u32> {
        if self.only.is_some() {
            return None;
        }
        while self.known.contains_key(&self.searched) || self.is_hole(self.searched) {
            self.searched += 1;
        }
        (self.searched < self.layout.count()).then_some(self.searched)
    }

    /// Hashes `bytes` of the file from `offset` on, and calls `each` with the index and hash of
    /// each completed chunk. A chunk whose bytes come out of order is not hashed: the caller hashes
    /// this chunk from the disk later.
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
                if self.open.len() >= MAX_OPEN_CHUNKS {
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
        let count = self.layout.count();
        if self.given < count.into() || count < 2 {
            return None;
        }
        let left = left_count(count);
        let (first, second) = (self.subtree(0, left), self.subtree(left, count - left));
        Some(*merge_subtrees_root(&first, &second, Mode::Hash).as_bytes())
    }

    /// The hash of the subtree of `count` chunks from `start` on, each of which is known or a hole.
    fn subtree(&self, start: u32, count: u32) -> Hash {
        let end = start + count;
        if self.holes.covers(start.into(), end.into()) && self.known.range(start..end).next().is_none() {
            return holes_tree(count);
        }
        if count == 1 {
            return self.known.get(&start).copied().unwrap_or_default();
        }
        let left = left_count(count);
        let (first, second) = (self.subtree(start, left), self.subtree(start + left, count - left));
        merge_subtrees_non_root(&first, &second, Mode::Hash)
    }
}

/// Returns the number of chunks in a set.
fn chunks_of(set: &RangeSet) -> u64 {
    set.iter().map(|(start, end)| end - start).sum()
}

/// The number of chunks in the left subtree, of several: the largest power of two below their
/// number.
const fn left_count(count: u32) -> u32 {
    count.next_power_of_two() / 2
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
            (MIN_CHUNK_LEN, 1),
            (MIN_CHUNK_LEN + 1, 2),
            (MIN_CHUNK_LEN * MAX_CHUNKS, MAX_CHUNKS as u32),
            (MIN_CHUNK_LEN * MAX_CHUNKS + 1, MAX_CHUNKS as u32 / 2 + 1),
            (1 << 61, MAX_CHUNKS as u32),
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
        let chunk = MIN_CHUNK_LEN as usize;
        for size in [0, 1, 1_025, chunk, chunk + 1, 2 * chunk, 5 * chunk - 7, 7 * chunk + 1_024] {
            let contents = contents(size);
            let mut hashes = Hashes::new(Layout::new(size as u64), RangeSet::new());
            let mut told = 0;
            hashes.feed(0, &contents, |_, _| told += 1);
            assert_eq!(told, hashes.layout.count());
            assert_eq!(hashes.root(), Some(*blake3::hash(&contents).as_bytes()), "{size}");
            assert_eq!(hashes.first_unknown(), None);
        }
    }

    #[test]
    fn the_work_grows_with_the_chunks_and_not_with_their_square() {
        let layout = Layout::new(MAX_CHUNKS * MIN_CHUNK_LEN);
        let mut holes = RangeSet::new();
        holes.insert(100, 200);
        let mut hashes = Hashes::new(layout, holes);
        let looks = |hashes: &Hashes| hashes.looks.load(std::sync::atomic::Ordering::Relaxed);
        for index in 0..layout.count() {
            // As after each read, of which one fills some holes too.
            assert_eq!(hashes.root(), None);
            if !(150..200).contains(&index) {
                hashes.set(index, [7; 32]);
            }
            assert!(looks(&hashes) <= 4 * u64::from(index + 1), "{} at {index}", looks(&hashes));
        }
        assert!(hashes.root().is_some());
        hashes.retain(|index| index > 0);
        assert_eq!((hashes.root(), hashes.first_unknown()), (None, Some(0)));
        assert!(looks(&hashes) <= 8 * MAX_CHUNKS);
    }

    #[test]
    fn holes_have_one_hash_wherever_they_are() {
        // BLAKE3's own: another at each offset, so that no table helps.
        let zeros = |index| {
            Hashing::new(&Layout::new(9 * MIN_CHUNK_LEN), index).update(&vec![0; MIN_CHUNK_LEN as usize])
        };
        assert_ne!(zeros(0), zeros(1));
        for count in [2, 3, 7, 64, 1_000] {
            let layout = Layout::new(count * MIN_CHUNK_LEN - 5);
            let mut all = RangeSet::new();
            all.insert(0, count);
            let mut told = Hashes::new(layout, RangeSet::new());
            (0..layout.count()).for_each(|index| told.set(index, hole()));
            let mut holes = Hashes::new(layout, all);
            assert_eq!((holes.root(), holes.first_unknown()), (told.root(), None), "{count}");
            // What is known of one counts.
            let middle = count as u32 / 2;
            [&mut told, &mut holes].into_iter().for_each(|hashes| hashes.set(middle, [7; 32]));
            assert_eq!(holes.root(), told.root(), "{count}");
        }
    }

    #[test]
    fn data_between_holes_count_each_in_its_place() {
        let count = 1_000;
        let layout = Layout::new(count * MIN_CHUNK_LEN);
        let (mut holes, mut plain) = (RangeSet::new(), Hashes::new(layout, RangeSet::new()));
        for (start, end) in [(0, 3), (5, 512), (600, 601), (700, count)] {
            holes.insert(start, end);
        }
        let mut sparse = Hashes::new(layout, holes);
        for index in 0..count as u32 {
            let data = blake3::hash(&index.to_be_bytes()).into();
            let hash = if sparse.is_hole(index) { hole() } else { data };
            plain.set(index, hash);
            assert_eq!(sparse.root(), None);
            if !sparse.is_hole(index) {
                assert_eq!(sparse.first_unknown(), Some(index));
                sparse.set(index, hash);
                if index == 699 {
                    break;
                }
            }
        }
        (700..count as u32).for_each(|index| plain.set(index, hole()));
        assert_eq!((sparse.root(), sparse.first_unknown()), (plain.root(), None));
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
            let mut hashes = Hashes::new(Layout::new(contents.len() as u64), RangeSet::new());
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
