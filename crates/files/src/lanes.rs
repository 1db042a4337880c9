//! BLAKE3 hashes of several small contents at once.
//!
//! BLAKE3 hashes pieces of 1 KiB beside each other, as many as the widest vector unit has lanes: sixteen, mostly. A file of 10 kB has nine
//! whole ones, and what is left of it goes through alone, so that it costs three times as much a byte as a large file. Here the
//! same piece of each of several files goes through together. What comes out is what [`blake3::hash`] gives.
//!
//! The crate shows the functions for this but promises nothing of them, so `Cargo.toml` names its version exactly.

use crate::chunks::Hash;
use blake3::IncrementCounter;
use blake3::platform::Platform;

/// As many contents as are worth hashing at once.
pub(crate) const LANES: usize = 16;
/// Contents longer than this, in bytes, fill the lanes by themselves, and are hashed so.
pub(crate) const LARGEST: usize = 32 << 10;
/// So few contents are faster one by one.
const FEW: usize = 3;

// BLAKE3 specification, sections 2.1 and 2.2.
const PIECE: usize = 1024;
const BLOCK: usize = 64;
const START: u8 = 1;
const END: u8 = 2;
const PARENT: u8 = 4;
const ROOT: u8 = 8;
const IV: [u32; 8] =
    [0x6A09_E667, 0xBB67_AE85, 0x3C6E_F372, 0xA54F_F53A, 0x510E_527F, 0x9B05_688C, 0x1F83_D9AB, 0x5BE0_CD19];

/// The hash of each of `contents`, in their order.
pub(crate) fn hash_each(contents: &[&[u8]]) -> Vec<Hash> {
    if contents.len() <= FEW {
        return contents.iter().map(|bytes| *blake3::hash(bytes).as_bytes()).collect();
    }
    let platform = Platform::detect();
    let mut trees = leaves(platform, contents);
    join(platform, &mut trees);
    let pairs = trees.iter().filter(|tree| tree.len() == 2).filter_map(|tree| pairs(tree).first());
    let mut roots = hash_many(platform, pairs.collect(), 0, (PARENT | ROOT, 0, 0)).into_iter();
    let roots = contents.iter().zip(&trees).map(|(bytes, tree)| match tree.len() {
        2 => roots.next().unwrap_or_default(),
        _ => *blake3::hash(bytes).as_bytes(),
    });
    roots.collect()
}

/// The values of the pieces of each of `contents`; none of one that is a single piece, or large.
fn leaves(platform: Platform, contents: &[&[u8]]) -> Vec<Vec<Hash>> {
    let pieces = |bytes: &&[u8]| match bytes.len() {
        ..=PIECE => 0,
        length @ ..=LARGEST => length.div_ceil(PIECE),
        _ => 0,
    };
    let mut trees: Vec<Vec<Hash>> = contents.iter().map(|it| Vec::with_capacity(pieces(it))).collect();
    let count = contents.iter().map(pieces).max().unwrap_or(0);
    for index in 0..count {
        let several = contents.iter().zip(&mut trees).filter(|(bytes, _)| pieces(bytes) > index);
        let mut whole = Vec::with_capacity(contents.len());
        let mut theirs = Vec::with_capacity(contents.len());
        for (bytes, tree) in several {
            let rest = bytes.get(index * PIECE..).unwrap_or_default();
            match rest.first_chunk::<PIECE>() {
                Some(piece) => {
                    whole.push(piece);
                    theirs.push(tree);
                }
                None => tree.push(last(platform, rest, index as u64)),
            }
        }
        let values = hash_many(platform, whole, index as u64, (0, START, END));
        theirs.into_iter().zip(values).for_each(|(tree, value)| tree.push(value));
    }
    trees
}

/// The value of the last piece, which is not whole.
fn last(platform: Platform, bytes: &[u8], index: u64) -> Hash {
    let mut words = IV;
    let count = bytes.len().div_ceil(BLOCK);
    for (at, piece) in bytes.chunks(BLOCK).enumerate() {
        let mut block = [0; BLOCK];
        block.iter_mut().zip(piece).for_each(|(to, from)| *to = *from);
        let start = if at == 0 { START } else { 0 };
        let end = if at + 1 == count { END } else { 0 };
        platform.compress_in_place(&mut words, &block, piece.len() as u8, index, start | end);
    }
    let mut value = Hash::default();
    value.as_chunks_mut::<4>().0.iter_mut().zip(words).for_each(|(to, word)| *to = word.to_le_bytes());
    value
}

/// Joins neighbours until two are left: the left subtree is complete at every level, so that only the last may be without another.
fn join(platform: Platform, trees: &mut [Vec<Hash>]) {
    while trees.iter().any(|tree| tree.len() > 2) {
        let high = trees.iter().filter(|tree| tree.len() > 2);
        let parents = hash_many(platform, high.flat_map(|tree| pairs(tree)).collect(), 0, (PARENT, 0, 0));
        let mut parents = parents.into_iter();
        for tree in trees.iter_mut().filter(|tree| tree.len() > 2) {
            let (half, odd) = (tree.len() / 2, tree.len() % 2);
            let alone = tree.last().copied().filter(|_| odd == 1);
            tree.clear();
            tree.extend(parents.by_ref().take(half).chain(alone));
        }
    }
}

fn pairs(tree: &[Hash]) -> &[[u8; BLOCK]] {
    tree.as_flattened().as_chunks().0
}

/// Compresses inputs that have position and flags (of all, of the first and of the last block) in common.
fn hash_many<const N: usize>(
    platform: Platform,
    mut inputs: Vec<&[u8; N]>,
    position: u64,
    (flags, start, end): (u8, u8, u8),
) -> Vec<Hash> {
    let count = inputs.len();
    // Seven at once take as long as four, two and one after the other; eight as long as four.
    let padded = count.next_power_of_two();
    if let Some(first) = inputs.first().copied().filter(|_| padded <= platform.simd_degree()) {
        inputs.resize(padded, first);
    }
    let mut values = vec![Hash::default(); inputs.len()];
    let room = values.as_flattened_mut();
    platform.hash_many(&inputs, &IV, position, IncrementCounter::No, flags, start, end, room);
    values.truncate(count);
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn contents(size: usize, seed: usize) -> Vec<u8> {
        (0..size).map(|at| (at.wrapping_mul(2_654_435_761).wrapping_add(seed * 77) >> 9) as u8).collect()
    }

    fn agree(sizes: &[usize]) {
        let all: Vec<Vec<u8>> = sizes.iter().enumerate().map(|(seed, size)| contents(*size, seed)).collect();
        let hashes = hash_each(&all.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let expected: Vec<Hash> = all.iter().map(|bytes| *blake3::hash(bytes).as_bytes()).collect();
        assert_eq!(hashes, expected, "{sizes:?}");
    }

    #[test]
    fn every_edge_has_the_hash_it_has_alone() {
        let edges =
            [0, 1, 63, 64, 65, 1_023, 1_024, 1_025, 2_047, 2_048, 2_049, 3_072, 9_999, 10_000, 16_384];
        agree(&edges);
        for size in edges {
            for count in [1, 4, 5, 16, 17] {
                agree(&vec![size; count]);
            }
        }
        for pieces in 1..40 {
            agree(&[pieces * 1_024; 4]);
            agree(&[pieces * 1_024 + 100; 4]);
        }
    }

    proptest! {
        #[test]
        fn any_contents_have_the_hashes_they_have_alone(sizes in prop::collection::vec(0..LARGEST + 3_000, 0..24)) {
            agree(&sizes);
        }
    }
}
