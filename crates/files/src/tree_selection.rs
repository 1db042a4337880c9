//! Which entries of a tree are sent: all, those that patterns leave, or those of a list.

use crate::name::{NameError, check_name};
use crate::path_pattern::PathPattern;
use std::collections::BTreeSet;
use std::io::{self, BufRead};
use std::ops::Bound;
use thiserror::Error;

/// The most patterns of one transfer.
pub const MAX_PATTERNS: usize = 1_024;
/// The most bytes of all patterns of one transfer.
pub const MAX_PATTERN_BYTES: usize = 16 << 10;

/// Why a pattern or a listed path is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SelectionError {
    /// The pattern is empty, too long or incomplete, so that it matches nothing.
    #[error("it is empty, over 1024 bytes, or ends within brackets or behind a backslash")]
    Pattern,
    /// Over [`MAX_PATTERNS`], or [`MAX_PATTERN_BYTES`] in all.
    #[error("these are too many patterns: at most 1024, of 16 KiB in all")]
    TooManyPatterns,
    /// The path of a list leads out of the tree.
    #[error("its paths must lead to something in the tree that is sent: {0}")]
    Path(NameError),
}

/// Patterns by the rules of gitignore(5). The last pattern that matches an entry decides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TreeFilter {
    patterns: Vec<FilterPattern>,
    bytes: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct FilterPattern {
    text: Vec<u8>,
    excludes: bool,
    pattern: PathPattern,
}

impl TreeFilter {
    /// Adds a pattern that excludes the entries that it matches, or includes them again. A leading
    /// `!` reverses this, as in a file of git.
    ///
    /// # Errors
    /// [`SelectionError`].
    pub fn add(&mut self, pattern: &[u8], excludes: bool) -> Result<(), SelectionError> {
        let (text, excludes) = match pattern.strip_prefix(b"!") {
            Some(rest) => (rest, !excludes),
            None => (pattern, excludes),
        };
        let pattern = PathPattern::new(text).ok_or(SelectionError::Pattern)?;
        self.bytes += text.len();
        if self.patterns.len() == MAX_PATTERNS || self.bytes > MAX_PATTERN_BYTES {
            return Err(SelectionError::TooManyPatterns);
        }
        self.patterns.push(FilterPattern { text: text.to_vec(), excludes, pattern });
        Ok(())
    }

    /// Whether an entry is left out, by its path from the top of the tree. Whoever asks has asked
    /// so of the directories above: what is in one that is left out is left out too.
    #[must_use]
    pub fn excludes(&self, path: &[u8], is_directory: bool) -> bool {
        let last = self.patterns.iter().rev().find(|it| it.pattern.matches(path, is_directory));
        last.is_some_and(|pattern| pattern.excludes)
    }

    /// Returns each pattern, and whether it excludes.
    pub(crate) fn patterns(&self) -> impl Iterator<Item = (&[u8], bool)> {
        self.patterns.iter().map(|pattern| (pattern.text.as_slice(), pattern.excludes))
    }

    /// Whether any pattern excludes.
    #[must_use]
    pub fn can_exclude(&self) -> bool {
        self.patterns.iter().any(|pattern| pattern.excludes)
    }
}

/// The selection of entries that are sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TreeSelection {
    /// The patterns of excluded entries.
    pub filter: TreeFilter,
    /// The only paths that are sent, with all entries below them. `None`: every path is sent.
    pub listed: Option<ListedPaths>,
}

/// Paths from the top of a tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListedPaths(BTreeSet<Vec<u8>>);

impl ListedPaths {
    /// Adds a path, as programs list them: `a/b`, `./a/b` or `a/b/`. An empty path is ignored, and
    /// `.` is the whole tree.
    ///
    /// # Errors
    /// [`SelectionError::Path`].
    pub fn add(&mut self, path: &[u8]) -> Result<(), SelectionError> {
        if path.is_empty() {
            return Ok(());
        }
        if path.starts_with(b"/") {
            return Err(SelectionError::Path(NameError::EmptyComponent));
        }
        let components = path.split(|byte| *byte == b'/').filter(|it| !matches!(*it, b"" | b"."));
        let path = components.collect::<Vec<_>>().join(&b'/');
        if !path.is_empty() {
            check_name(&path).or_else(|error| match error {
                // Its owner may have listed it. The walk says that it is not sent.
                NameError::Reserved => Ok(()),
                error => Err(SelectionError::Path(error)),
            })?;
        }
        self.0.insert(path);
        Ok(())
    }

    /// Reads a list of a path a line.
    ///
    /// # Errors
    /// It cannot be read, or a path leads out of the tree.
    pub fn read(input: impl BufRead) -> io::Result<Self> {
        let mut listed = Self::default();
        for line in input.split(b'\n') {
            listed.add(&line?).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        }
        Ok(listed)
    }

    /// Returns the paths, in the order of their bytes.
    pub fn paths(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(Vec::as_slice)
    }

    /// Whether a path or a directory above it is listed.
    pub(crate) fn holds(&self, path: &[u8]) -> bool {
        let ends = (0..path.len()).filter(|at| path.get(*at) == Some(&b'/'));
        let mut above = ends.chain([0, path.len()]).filter_map(|end| path.get(..end));
        above.any(|path| self.0.contains(path))
    }

    /// Returns the names in a directory that lead to listed paths, in order. `None`: all names do.
    pub(crate) fn names(&self, directory: &[u8]) -> Option<Vec<Vec<u8>>> {
        if self.holds(directory) {
            return None;
        }
        let mut names: Vec<Vec<u8>> = Vec::new();
        let mut at = if directory.is_empty() { Vec::new() } else { [directory, b"/"].concat() };
        let start = at.len();
        while let Some(next) =
            self.0.range::<[u8], _>((Bound::Included(at.as_slice()), Bound::Unbounded)).next()
        {
            if next.get(..start) != at.get(..start) {
                break;
            }
            let rest = next.get(start..).unwrap_or_default();
            let name = rest.split(|byte| *byte == b'/').next().unwrap_or_default().to_vec();
            at.truncate(start);
            at.extend_from_slice(&name);
            // The next path that is neither this one nor below it. Names between `name` and
            // `name/` may exist, so that one name may be met twice.
            at.push(if rest.len() > name.len() { b'/' + 1 } else { 0 });
            names.push(name);
        }
        names.sort_unstable();
        names.dedup();
        Some(names)
    }
}

/// Returns the path of an entry from the top of the tree `root`. `None`: it is not below `root`.
pub(crate) fn below_root<'a>(root: &[u8], path: &'a [u8]) -> Option<&'a [u8]> {
    if root.is_empty() {
        return Some(path);
    }
    path.strip_prefix(root)?.strip_prefix(b"/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use ignore::gitignore::GitignoreBuilder;
    use proptest::prelude::*;

    fn filter(patterns: &[&str]) -> TreeFilter {
        let mut filter = TreeFilter::default();
        for pattern in patterns {
            filter.add(pattern.as_bytes(), true).unwrap();
        }
        filter
    }

    #[test]
    fn the_last_pattern_that_matches_counts() {
        let filter = filter(&["*.o", "!keep.o", "/build/", "docs/*.txt", "a/**/z", "[!a-y]?"]);
        for (path, is_directory, excluded) in [
            ("x.o", false, true),
            ("deep/er/x.o", false, true),
            ("deep/keep.o", false, false),
            ("build", true, true),
            ("build", false, false),
            ("src/build", true, false),
            ("docs/a.txt", false, true),
            ("docs/b/a.txt", false, false),
            ("x/docs/a.txt", false, false),
            ("a/z", false, true),
            ("a/b/c/z", false, true),
            ("a/bz", false, false),
            ("zz", false, true),
            ("yz", false, false),
        ] {
            assert_eq!(filter.excludes(path.as_bytes(), is_directory), excluded, "{path}");
        }
    }

    #[test]
    fn patterns_are_bounded_and_complete() {
        for pattern in ["", "/", "!", "[a", "x\\", "[[:digits:]]"] {
            assert_eq!(
                TreeFilter::default().add(pattern.as_bytes(), true),
                Err(SelectionError::Pattern),
                "{pattern}"
            );
        }
        let long = vec![b'*'; 1_000_000];
        assert_eq!(TreeFilter::default().add(&long, true), Err(SelectionError::Pattern));
        let mut many = TreeFilter::default();
        let added = (0..).take_while(|_| many.add(&long[..100], true).is_ok()).count();
        assert_eq!(added, MAX_PATTERN_BYTES / 100);
        let mut many = TreeFilter::default();
        assert_eq!((0..).take_while(|_| many.add(b"x", true).is_ok()).count(), MAX_PATTERNS);
    }

    /// A pattern of many stars, for which backtracking would never end, takes few steps.
    #[test]
    fn a_pattern_of_stars_takes_few_steps() {
        let mut filter = TreeFilter::default();
        (0..16).for_each(|_| filter.add("*a".repeat(500).as_bytes(), true).unwrap());
        let path = [vec![b'a'; 254], b"b".to_vec()].concat();
        assert!(!filter.excludes(&path, false));
        let mut deep = TreeFilter::default();
        (0..16).for_each(|_| deep.add(("**/".repeat(300) + "*a*/b").as_bytes(), true).unwrap());
        assert!(!deep.excludes("a/".repeat(2_000).as_bytes(), false));
        assert!(deep.excludes(("a/".repeat(2_000) + "b").as_bytes(), false));
    }

    #[test]
    fn a_list_leads_to_its_paths_and_says_nothing_of_the_rest() {
        let mut listed = ListedPaths::default();
        for path in ["a/b", "./c//d/", "", "a/b.txt", "a/b/x", "e-f", "e/f", "e"] {
            listed.add(path.as_bytes()).unwrap();
        }
        let names = |listed: &ListedPaths, directory: &str| {
            let names = listed.names(directory.as_bytes())?;
            Some(names.into_iter().map(|name| String::from_utf8(name).unwrap()).collect::<Vec<_>>())
        };
        assert_eq!(names(&listed, "").unwrap(), ["a", "c", "e", "e-f"]);
        assert_eq!(names(&listed, "a").unwrap(), ["b", "b.txt"]);
        assert_eq!(names(&listed, "c").unwrap(), ["d"]);
        assert_eq!(
            [names(&listed, "a/b"), names(&listed, "c/d"), names(&listed, "c/d/deep"), names(&listed, "e")],
            [None, None, None, None]
        );
        assert_eq!(names(&listed, "b").unwrap(), [""; 0]);
        listed.add(b"./").unwrap();
        assert_eq!(names(&listed, ""), None);
        assert_eq!(names(&listed, "b"), None);
        for path in ["/etc", "..", "a/../../b", "a\0"] {
            assert!(listed.add(path.as_bytes()).is_err(), "{path}");
        }
    }

    proptest! {
        /// The crate `ignore` reads patterns as git does, except for braces and for cases that git
        /// does not define.
        #[test]
        fn patterns_match_as_those_of_another_program(
            lines in proptest::collection::vec("!?/?(a|b|c|\\*|\\?|\\[ab\\]|\\[!a-b\\]|\\*\\*/|/){1,6}/?", 1..4),
            path in "[abc]{1,3}(/[abc]{1,3}){0,3}",
            is_directory: bool,
        ) {
            prop_assume!(lines.iter().all(|line| !line.contains("//") && !line.contains("***")));
            let (mut ours, mut theirs) = (TreeFilter::default(), GitignoreBuilder::new(""));
            let mut readable = 0;
            for line in &lines {
                if ours.add(line.as_bytes(), true).is_ok() {
                    theirs.add_line(None, line).unwrap();
                    readable += 1;
                }
            }
            prop_assume!(readable > 0);
            let theirs = theirs.build().unwrap();
            let expected = theirs.matched(&path, is_directory).is_ignore();
            prop_assert_eq!(ours.excludes(path.as_bytes(), is_directory), expected, "{:?} {}", lines, path);
        }
    }
}
