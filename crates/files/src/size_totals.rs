//! The totals of a tree, counted before it is sent: for progress and for a dry run.

use crate::error::SourceError;
use crate::manifest::Counts;
use crate::source_options::SourceOptions;
use crate::tree_selection::TreeSelection;
use crate::tree_walk::{Entry, Walk, WarningKind};
use std::path::PathBuf;
use std::sync::Arc;

/// Counts a tree in steps, so that the caller can do other work in between, or stop.
#[derive(Debug)]
pub struct Totals {
    walk: Walk,
    counts: Counts,
    excluded: u64,
    unsent: u64,
}

impl Totals {
    /// Makes the totals of a tree before any step. `paths` and `options` are as for
    /// [`crate::Source::open`], and `selection` is as for [`crate::Source::select`].
    ///
    /// # Errors
    /// As for [`crate::Source::open`].
    pub fn new(
        paths: &[PathBuf],
        options: &SourceOptions,
        selection: Arc<TreeSelection>,
    ) -> Result<Self, SourceError> {
        let mut walk = Walk::open(paths, options)?.select(selection);
        walk.opens = false;
        Ok(Self { walk, counts: Counts::default(), excluded: 0, unsent: 0 })
    }

    /// Counts up to `entries` more entries. Returns whether there are more.
    pub fn step(&mut self, entries: usize) -> bool {
        for _ in 0..entries {
            match self.walk.step() {
                None => return false,
                Some(Entry::Directory { .. }) => self.counts.directories += 1,
                Some(Entry::Symlink { .. }) => self.counts.symlinks += 1,
                Some(Entry::File { status, .. }) => {
                    self.counts.files += 1;
                    self.counts.bytes = self.counts.bytes.saturating_add(status.size);
                }
                Some(Entry::HardLink { .. }) => self.counts.files += 1,
                Some(Entry::Excluded { .. }) => self.excluded += 1,
                Some(Entry::Root { .. }) => {}
                Some(Entry::Warning(warning)) => {
                    let is_entry = warning.kind != WarningKind::EmptyTree;
                    self.unsent += u64::from(is_entry && warning.kind.is_loss());
                }
            }
        }
        true
    }

    /// The counts so far.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// Returns the number of excluded entries so far. A directory counts as one, with all that it
    /// holds.
    #[must_use]
    pub const fn excluded(&self) -> u64 {
        self.excluded
    }

    /// The number of entries so far that cannot be read.
    #[must_use]
    pub const fn unsent(&self) -> u64 {
        self.unsent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counting_in_steps_finds_what_was_made() {
        let top = tempfile::tempdir().unwrap();
        let made = crate::generate(top.path(), 3, 200_000).unwrap();
        let paths = [top.path().join(".")];
        let mut totals = Totals::new(&paths, &SourceOptions::DEFAULT, Arc::default()).unwrap();
        let mut steps = 0;
        while totals.step(7) {
            steps += 1;
        }
        assert!(steps > 2);
        assert_eq!(totals.counts(), made.counts);
        assert_eq!(totals.unsent(), 0);
    }
}
