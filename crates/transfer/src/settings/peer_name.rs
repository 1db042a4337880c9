//! The name that a person gives to a receiver.

use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// The most letters of a name.
const MAX_NAME_LEN: usize = 64;
/// The beginning of tickets, keys, relay words and registry words.
const WORD_PREFIX: &str = "byway";

/// The name of a peer: letters, digits, `-`, `_` and `.` of ASCII. It begins with a letter or a
/// digit, and not as a ticket does.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PeerName(String);

/// Why a text is no name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PeerNameError {
    /// A letter that a name may not contain, or not at its beginning.
    #[error("a peer's name has letters, digits, `-`, `_` and `.`, and begins with a letter or a digit")]
    Letters,
    /// Longer than the longest name.
    #[error("a peer's name has at most {MAX_NAME_LEN} letters")]
    Long,
    /// The name could be taken for a ticket.
    #[error("a peer's name does not begin with `{WORD_PREFIX}`, as tickets, keys and words do")]
    Word,
}

impl PeerName {
    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PeerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for PeerName {
    type Err = PeerNameError;

    /// Reads a name, with or without the colon of `byway send`.
    fn from_str(text: &str) -> Result<Self, PeerNameError> {
        let name = text.strip_suffix(':').unwrap_or(text);
        let is_part = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
        if !name.starts_with(|first: char| first.is_ascii_alphanumeric()) || !name.chars().all(is_part) {
            return Err(PeerNameError::Letters);
        }
        if name.len() > MAX_NAME_LEN {
            return Err(PeerNameError::Long);
        }
        if name.get(..WORD_PREFIX.len()).is_some_and(|head| head.eq_ignore_ascii_case(WORD_PREFIX)) {
            return Err(PeerNameError::Word);
        }
        Ok(Self(name.to_owned()))
    }
}

/// Returns the name and the directory in `NAME` or `NAME=DIR`. `None`: the text has neither form.
pub(super) fn named_sender(text: &str) -> Option<(PeerName, Option<&str>)> {
    let (name, place) =
        text.trim().split_once('=').map_or((text.trim(), None), |(name, place)| (name, Some(place)));
    Some((name.parse().ok()?, place))
}

/// The one of `names` that `wanted` was perhaps meant as.
pub(crate) fn nearest<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near = names.into_iter().map(|name| (distance(wanted, name), name)).min()?;
    (near.0 <= wanted.len().max(near.1.len()).div_ceil(3)).then_some(near.1)
}

/// Returns the edit distance of two texts: letters to insert, delete, replace or swap with a
/// neighbour.
fn distance(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (y, letter) in one.iter().enumerate() {
        let mut next = vec![y + 1];
        for (x, against) in other.iter().enumerate() {
            let at = |row: &[usize], x: usize| row.get(x).copied().unwrap_or(usize::MAX - 1);
            let replaced = at(&row, x) + usize::from(letter != against);
            let mut best = replaced.min(at(&row, x + 1) + 1).min(at(&next, x) + 1);
            if y > 0 && x > 0 && one.get(y - 1) == Some(against) && other.get(x - 1) == Some(letter) {
                best = best.min(at(&before, x - 1) + 1);
            }
            next.push(best);
        }
        before = std::mem::replace(&mut row, next);
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_letters_that_need_no_quotes() {
        for name in ["nas", "NAS-2", "1", "a.b_c", "nas:", &"a".repeat(64)] {
            let read: PeerName = name.parse().unwrap();
            assert_eq!(read.as_str(), name.trim_end_matches(':'));
        }
        for (name, why) in [
            ("", PeerNameError::Letters),
            (":", PeerNameError::Letters),
            ("-n", PeerNameError::Letters),
            (".nas", PeerNameError::Letters),
            ("na s", PeerNameError::Letters),
            ("nas:x", PeerNameError::Letters),
            ("nüs", PeerNameError::Letters),
            ("a/b", PeerNameError::Letters),
            (&"a".repeat(65), PeerNameError::Long),
            ("Byway2-abc", PeerNameError::Word),
        ] {
            assert_eq!(name.parse::<PeerName>(), Err(why), "{name}");
        }
    }

    #[test]
    fn the_nearest_name_is_found_if_one_is_near() {
        let names = ["nas", "laptop", "office"];
        for (wanted, near) in [
            ("nsa", Some("nas")),
            ("labtop", Some("laptop")),
            ("Office", Some("office")),
            ("x", None),
            ("cellar", None),
        ] {
            assert_eq!(nearest(wanted, names), near, "{wanted}");
        }
        assert_eq!(nearest("nas", []), None);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
    }
}
