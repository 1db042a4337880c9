//! Cuts a tree into shares of about equal bytes, so that several hosts can send one each.

use crate::error::SourceError;
use crate::source_options::SourceOptions;
use crate::tree_walk::{Entry, Walk};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// The cost in bytes of an entry, besides its contents and its path: its record in the manifest.
const ENTRY_COST_BYTES: u64 = 64;

/// The number of shares into which a tree is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShareCount {
    /// This number.
    Shares(usize),
    /// As many shares as needed so that none exceeds this number of bytes, if no file is larger.
    Bytes(u64),
}

/// The most shares of one tree.
pub const MAX_SHARES: usize = 100_000;

/// Some entries of a tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TreeShare {
    /// Paths from the top of the tree, in the order of a walk.
    pub paths: Vec<Vec<u8>>,
    /// Bytes of contents.
    pub bytes: u64,
}

/// A tree cut into shares. Each file, link and empty directory is in one share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TreeShares {
    /// The shares. Some may be empty.
    pub shares: Vec<TreeShare>,
    /// Entries that are in no share, and why: they cannot be read, or not be listed in lines.
    pub left_out: Vec<String>,
}

impl TreeShares {
    /// Writes the shares into `directory`, a list each: 01, 02 and so on.
    ///
    /// # Errors
    /// The directory or a list cannot be written.
    pub fn write(&self, directory: &Path) -> io::Result<()> {
        fs::create_dir_all(directory)?;
        let digits = self.shares.len().to_string().len().max(2);
        for (share, number) in self.shares.iter().zip(1..) {
            let lines: Vec<u8> =
                share.paths.iter().flat_map(|path| [path.as_slice(), b"\n"].concat()).collect();
            fs::write(directory.join(format!("{number:0digits$}")), lines)?;
        }
        Ok(())
    }

    /// The fewest and the most bytes of a share.
    #[must_use]
    pub fn smallest_and_largest(&self) -> (u64, u64) {
        let bytes = || self.shares.iter().map(|share| share.bytes);
        (bytes().min().unwrap_or_default(), bytes().max().unwrap_or_default())
    }

    /// Cuts the contents of `directory` into shares.
    ///
    /// # Errors
    /// The directory cannot be opened.
    pub fn cut(directory: &Path, count: ShareCount) -> Result<Self, SourceError> {
        let options = SourceOptions { into_root: true, ..SourceOptions::DEFAULT };
        let mut walk = Walk::open(&[PathBuf::from(directory)], &options)?;
        walk.opens = false;
        let (mut entries, mut left_out) = (Vec::new(), Vec::new());
        // A directory that is empty as far as is known.
        let mut empty: Option<Vec<u8>> = None;
        while let Some(entry) = walk.step() {
            let (path, bytes) = match entry {
                Entry::Directory { path, .. } => (path, None),
                Entry::File { path, status, .. } => (path, Some(status.size)),
                Entry::HardLink { path, size, .. } => (path, Some(size)),
                Entry::Symlink { path, .. } => (path, Some(0)),
                Entry::Warning(warning) => {
                    if warning.kind.is_loss() {
                        left_out.push(warning.to_string());
                    }
                    continue;
                }
                Entry::Excluded { .. } | Entry::Root { .. } => continue,
            };
            if let Some(directory) = empty.take()
                && !is_below(&path, &directory)
            {
                entries.push((directory, 0));
            }
            match bytes {
                None if path.is_empty() => {}
                None => empty = Some(path),
                Some(bytes) => entries.push((path, bytes)),
            }
        }
        entries.extend(empty.map(|directory| (directory, 0)));
        let (entries, unlisted): (Vec<_>, Vec<_>) =
            entries.into_iter().partition(|(path, _)| !path.contains(&b'\n'));
        left_out.extend(unlisted.iter().map(|(path, _)| {
            format!("{}: its name has a line break, which no list holds", crate::Printable(path))
        }));
        Ok(Self { shares: shares(entries, count), left_out })
    }
}

/// Whether `path` leads to something in `directory`.
fn is_below(path: &[u8], directory: &[u8]) -> bool {
    path.strip_prefix(directory).is_some_and(|rest| rest.first() == Some(&b'/'))
}

/// Gives each entry, from the dearest on, to the share that costs least so far. No share then costs
/// more than 4/3 of the least possible (Graham, 1969).
fn shares(entries: Vec<(Vec<u8>, u64)>, count: ShareCount) -> Vec<TreeShare> {
    let total: u64 = entries.iter().fold(0, |sum, (_, bytes)| bytes.saturating_add(sum));
    let count = match count {
        ShareCount::Shares(count) => count,
        ShareCount::Bytes(bytes) => usize::try_from(total.div_ceil(bytes.max(1))).unwrap_or(MAX_SHARES),
    };
    let count = count.clamp(1, MAX_SHARES);
    let cost = |(path, bytes): &(Vec<u8>, u64)| {
        bytes.saturating_add(ENTRY_COST_BYTES).saturating_add(path.len() as u64)
    };
    let mut order: Vec<usize> = (0..entries.len()).collect();
    order.sort_by_key(|&place| Reverse(cost(&entries[place])));
    let mut cheapest: BinaryHeap<Reverse<(u64, usize)>> =
        (0..count).map(|share| Reverse((0, share))).collect();
    let mut share_of = vec![0; entries.len()];
    for place in order {
        if let Some(Reverse((so_far, share))) = cheapest.pop() {
            share_of[place] = share;
            cheapest.push(Reverse((so_far.saturating_add(cost(&entries[place])), share)));
        }
    }
    let mut shares = vec![TreeShare::default(); count];
    for ((path, bytes), share) in entries.into_iter().zip(share_of) {
        shares[share].bytes = shares[share].bytes.saturating_add(bytes);
        shares[share].paths.push(path);
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_file_link_and_empty_directory_is_in_one_share() {
        let top = tempfile::tempdir().unwrap();
        let at = |name: &str| top.path().join(name);
        fs::create_dir_all(at("a/empty/deeper")).unwrap();
        fs::create_dir_all(at("b")).unwrap();
        fs::create_dir(at("z")).unwrap();
        fs::write(at("a/large"), vec![7; 3_000]).unwrap();
        fs::write(at("b/one"), vec![7; 1_400]).unwrap();
        fs::write(at("b/two"), vec![7; 1_500]).unwrap();
        fs::write(at("b/line\nbreak"), "").unwrap();
        std::os::unix::fs::symlink("one", at("b/link")).unwrap();
        let cut = TreeShares::cut(top.path(), ShareCount::Shares(2)).unwrap();
        let mut sizes: Vec<u64> = cut.shares.iter().map(|share| share.bytes).collect();
        sizes.sort_unstable();
        assert_eq!(sizes, [2_900, 3_000]);
        let mut paths: Vec<_> = cut.shares.iter().flat_map(|share| &share.paths).collect();
        paths.sort();
        assert_eq!(paths, [&b"a/empty/deeper"[..], b"a/large", b"b/link", b"b/one", b"b/two", b"z"]);
        assert_eq!(cut.left_out.len(), 1, "{:?}", cut.left_out);
        assert!(cut.left_out[0].contains("line break"), "{:?}", cut.left_out);
        let by_size = TreeShares::cut(top.path(), ShareCount::Bytes(2_000)).unwrap();
        assert_eq!(by_size.shares.len(), 3);
        assert!(TreeShares::cut(&at("nowhere"), ShareCount::Shares(2)).is_err());
    }

    proptest! {
        #[test]
        fn no_share_is_dearer_than_a_third_more_than_the_best(
            sizes in prop::collection::vec(0_u64..10_000, 0..60), count in 1_usize..9,
        ) {
            let entries: Vec<_> = sizes.iter().map(|&bytes| (b"p".to_vec(), bytes)).collect();
            let shares = shares(entries, ShareCount::Shares(count));
            prop_assert_eq!(shares.len(), count);
            let cost = |share: &TreeShare| share.bytes + share.paths.len() as u64 * (ENTRY_COST_BYTES + 1);
            let all: u64 = shares.iter().map(cost).sum();
            let largest = sizes.iter().max().map_or(0, |bytes| bytes + ENTRY_COST_BYTES + 1);
            let dearest = shares.iter().map(cost).max().unwrap_or(0);
            // A share gets its last entry while it is the cheapest.
            prop_assert!(dearest <= all / count as u64 + largest + 1);
            prop_assert_eq!(shares.iter().map(|share| share.paths.len()).sum::<usize>(), sizes.len());
        }
    }
}
