//! The file with the words that a relay's operator gave under names, beside the relay's key.
//!
//! ```text
//! byway-relay-words 1
//! relay 0123456789abcdef0123456789abcdef          whose key the words are made from
//! word alice 123456789 1048576 - 1832925600 good  name, id of the grant, bytes per second, bytes per day, expiry (Unix)
//! word bob 987654321 - - 1832925600 revoked       `-`: no limit
//! check 01234567                                  of all lines before: BLAKE3, 4 bytes
//! ```

use super::checked_lines::{check, checked, hex};
use crate::state_directory::StateError;
use byway_wire::Duration;
use byway_wire::heartbeat::RelayId;
use byway_wire::relay::{Grant, GrantId, Minute, QuotaClass, RateClass, Scope, Terms};
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::str::{FromStr, Lines};
use thiserror::Error;

/// The most named relay words of a relay.
pub const MAX_NAMED_WORDS: usize = 1_024;

/// The first line of the file, with its kind and version.
const FIRST_LINE: &str = "byway-relay-words 1";
/// Bytes of the longest file.
const MAX_FILE_BYTES: u64 = 192 << 10;
/// The most letters of a name.
const MAX_NAME_LEN: usize = 64;

/// The name of a relay word: ASCII letters and digits, `-`, `_` and `.`. It begins with a letter or
/// a digit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WordName(String);

/// The text is not a valid name for a relay word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "a name has at most {MAX_NAME_LEN} letters, digits, `-`, `_` and `.`, and begins with a letter or a digit"
)]
pub struct WordNameError;

impl fmt::Display for WordName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for WordName {
    type Err = WordNameError;

    fn from_str(text: &str) -> Result<Self, WordNameError> {
        let is_part = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
        let is_name = text.len() <= MAX_NAME_LEN
            && text.starts_with(|first: char| first.is_ascii_alphanumeric())
            && text.chars().all(is_part);
        if is_name { Ok(Self(text.to_owned())) } else { Err(WordNameError) }
    }
}

/// A relay word that has a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedRelayWord {
    /// The name, by which the relay word is listed and revoked.
    pub name: WordName,
    /// The id of the relay word's grant.
    pub grant: u32,
    /// The highest rate at which the relay word may be used.
    pub rate: RateClass,
    /// The most bytes per day (UTC) for which the relay word may be used.
    pub quota: QuotaClass,
    /// The time at which the relay word expires.
    pub expiry: Minute,
    /// Whether the relay word was revoked.
    pub is_revoked: bool,
}

impl NamedRelayWord {
    /// Returns the grant of the relay word, marked as that of a named word.
    #[must_use]
    pub const fn grant(&self) -> Grant {
        let scope = Scope::ALL.and(Scope::NAMED);
        let terms = Terms { expiry: self.expiry, rate: self.rate, quota: self.quota, scope };
        Grant { id: self.grant, terms }
    }

    /// Whether the relay word has expired at this Unix time.
    #[must_use]
    pub const fn has_expired(&self, unix: u64) -> bool {
        self.expiry.unix() <= unix
    }
}

/// The named relay words of a relay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedRelayWords {
    /// The relay from whose key the relay words are made. A relay with a new key is another relay.
    pub relay: Option<RelayId>,
    /// The relay words, no two with the same name or id.
    pub words: Vec<NamedRelayWord>,
}

/// The file of named relay words is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("holds no whole list of words")]
pub struct NoWordList;

impl fmt::Display for NamedRelayWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = format!("{FIRST_LINE}\n");
        if let Some(relay) = self.relay {
            text.push_str(&format!("relay {relay}\n"));
        }
        let limit = |value: Option<u64>| value.map_or_else(|| "-".to_owned(), |value| value.to_string());
        for word in &self.words {
            let (rate, quota) = (limit(word.rate.bytes_per_second()), limit(word.quota.bytes_per_day()));
            let state = if word.is_revoked { "revoked" } else { "good" };
            let (name, grant, expiry) = (&word.name, word.grant, word.expiry.unix());
            text.push_str(&format!("word {name} {grant} {rate} {quota} {expiry} {state}\n"));
        }
        writeln!(f, "{text}check {}", check(&text))
    }
}

impl FromStr for NamedRelayWords {
    type Err = NoWordList;

    fn from_str(text: &str) -> Result<Self, NoWordList> {
        let lines = checked(text, FIRST_LINE).ok_or(NoWordList)?;
        Self::read(lines).ok_or(NoWordList)
    }
}

impl NamedRelayWords {
    fn read(lines: Lines<'_>) -> Option<Self> {
        let mut list = Self::default();
        for line in lines {
            match line.split(' ').collect::<Vec<_>>().as_slice() {
                ["relay", id] => list.relay = Some(RelayId(hex(id)?)),
                ["word", name, grant, rate, quota, expiry, state] => {
                    let word = NamedRelayWord {
                        name: name.parse().ok()?,
                        grant: grant.parse().ok().filter(|id| matches!(GrantId::of(*id), GrantId::Own(_)))?,
                        rate: limit(rate, RateClass::UNLIMITED, RateClass::at_most)
                            .filter(|class| class.bytes_per_second() == rate.parse().ok())?,
                        quota: limit(quota, QuotaClass::UNLIMITED, QuotaClass::at_most)
                            .filter(|class| class.bytes_per_day() == quota.parse().ok())?,
                        expiry: minute(expiry)?,
                        is_revoked: match *state {
                            "good" => false,
                            "revoked" => true,
                            _ => return None,
                        },
                    };
                    list.push(word)?;
                }
                _ => return None,
            }
        }
        Some(list)
    }

    /// Adds a relay word. `None`: its name or id is taken, or there is no room.
    fn push(&mut self, word: NamedRelayWord) -> Option<()> {
        let is_taken = self.words.iter().any(|other| other.name == word.name || other.grant == word.grant);
        if is_taken || self.words.len() >= MAX_NAMED_WORDS {
            return None;
        }
        self.words.push(word);
        Some(())
    }

    /// Adds a word, in place of one with its name. Where there is no room, words that are revoked
    /// or have expired make room. They open nothing, whether they are listed or not. `None`: all
    /// words are good and there is no room, or the id is taken.
    pub fn put(&mut self, word: NamedRelayWord, unix: u64) -> Option<()> {
        self.words.retain(|other| other.name != word.name);
        if self.words.len() >= MAX_NAMED_WORDS {
            self.words.retain(|other| !other.is_revoked && !other.has_expired(unix));
        }
        self.push(word)
    }

    /// Returns the relay word with this name.
    pub fn find_mut(&mut self, name: &WordName) -> Option<&mut NamedRelayWord> {
        self.words.iter_mut().find(|word| word.name == *name)
    }

    /// Loads the list from a file for the relay `relay`. The list is empty if there is no file, or
    /// if it is for another key, whose words are not valid.
    ///
    /// # Errors
    /// The file cannot be read, or is damaged.
    pub fn load(path: &Path, relay: RelayId) -> Result<Self, StateError> {
        let empty = Self { relay: Some(relay), words: Vec::new() };
        let cannot = |source| StateError::Io {
            what: "read the words that have names in".into(),
            path: path.to_owned(),
            source,
        };
        let file = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(empty),
            opened => opened.map_err(cannot)?,
        };
        let mut bytes = Vec::new();
        file.take(MAX_FILE_BYTES).read_to_end(&mut bytes).map_err(cannot)?;
        let list: Option<Self> = std::str::from_utf8(&bytes).ok().and_then(|text| text.parse().ok());
        let list = list.ok_or_else(|| StateError::Damaged {
            path: path.to_owned(),
            holds: "holds no whole list of words that have names".into(),
        })?;
        Ok(if list.relay == Some(relay) { list } else { empty })
    }
}

/// Returns the expiry of a relay word that is valid for `good_for` from the time `unix` in seconds,
/// rounded up to a minute. With zero, it has expired.
pub(super) const fn end_of(unix: u64, good_for: Duration) -> Minute {
    let begun_minute = if good_for.as_nanos() == 0 { 0 } else { 59 };
    Minute::from_unix(unix.saturating_add(good_for.as_secs()).saturating_add(begun_minute))
}

/// Reads a limit as its class. `-`: no limit. `None`: the text is not a number.
fn limit<C>(text: &str, unlimited: C, class: impl Fn(u64) -> C) -> Option<C> {
    if text == "-" { Some(unlimited) } else { Some(class(text.parse().ok()?)) }
}

/// A whole minute, as Unix time. `None`: another time, or no number.
fn minute(text: &str) -> Option<Minute> {
    let unix = text.parse().ok()?;
    Some(Minute::from_unix(unix)).filter(|minute| minute.unix() == unix)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn word(name: &str, grant: u32) -> NamedRelayWord {
        NamedRelayWord {
            name: name.parse().unwrap(),
            grant,
            rate: RateClass::at_most(1 << 20),
            quota: QuotaClass::UNLIMITED,
            expiry: Minute::from_unix(1_832_925_600),
            is_revoked: false,
        }
    }

    fn some() -> NamedRelayWords {
        let bob = NamedRelayWord {
            rate: RateClass::UNLIMITED,
            quota: QuotaClass::at_most(512 << 10),
            is_revoked: true,
            ..word("bob", 987_654_321)
        };
        NamedRelayWords { relay: Some(RelayId([0xab; 16])), words: vec![word("alice", 123_456_789), bob] }
    }

    #[test]
    fn frozen_text() {
        let text = format!(
            "byway-relay-words 1\nrelay {}\nword alice 123456789 1048576 - 1832925600 good\n\
             word bob 987654321 - 524288 1832925600 revoked\ncheck ",
            "ab".repeat(16)
        );
        assert_eq!(some().to_string().split_at(text.len()).0, text);
        assert_eq!(some().to_string().parse(), Ok(some()));
    }

    #[test]
    fn what_is_damaged_or_of_another_kind_is_refused() {
        let good = some().to_string();
        for cut in 0..good.len() {
            assert_eq!(good[..cut].parse::<NamedRelayWords>(), Err(NoWordList), "{cut}");
        }
        assert_eq!(good.replace("revoked", "good").parse::<NamedRelayWords>(), Err(NoWordList));
        let with = |lines: &str| {
            let body = format!("{FIRST_LINE}\n{lines}");
            format!("{body}check {}\n", check(&body)).parse::<NamedRelayWords>()
        };
        let line = "word alice 1 - - 1832925600 good\n";
        assert!(with(line).is_ok());
        for lines in [
            line.repeat(2),
            line.replace("alice", "-alice"),
            line.replace("alice", &"a".repeat(65)),
            line.replace(" 1 ", " 2147483648 "), // a registry's
            line.replace("- -", "9999999 -"),    // no class
            line.replace("- -", "- 1"),
            line.replace("600", "601"), // no whole minute
            line.replace("good", "better"),
            format!("{line}{}", line.replace("alice", "bob")), // one id for two
            "relay 0\n".into(),
            "more\n".into(),
        ] {
            assert_eq!(with(&lines), Err(NoWordList), "{lines}");
        }
    }

    #[test]
    fn a_full_list_fits_the_file_and_makes_room_where_words_are_over() {
        let mut list = NamedRelayWords::default();
        let name = |at: usize| format!("{at:0>64}");
        let full = |at: usize| NamedRelayWord {
            rate: RateClass(0xfe),
            quota: QuotaClass(0xfe),
            is_revoked: at == 5,
            ..word(&name(at), at as u32)
        };
        for at in 0..MAX_NAMED_WORDS {
            list.put(full(at), 0).unwrap();
        }
        assert!((list.to_string().len() as u64) < MAX_FILE_BYTES);
        assert_eq!(list.to_string().parse().as_ref(), Ok(&list));
        assert_eq!(list.put(word("new", 1 << 20), 0), Some(()));
        assert_eq!(list.find_mut(&name(5).parse().unwrap()), None);
        assert_eq!(list.put(word("newer", 1 << 21), 0), None);
        assert_eq!(list.put(word("newer", 1 << 21), u64::MAX), Some(()));
        assert_eq!(list.words.len(), 1);
    }

    #[test]
    fn a_file_of_another_key_is_as_good_as_none_and_a_damaged_one_is_not() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("relay-words");
        let (relay, other) = (RelayId([0xab; 16]), RelayId([1; 16]));
        assert_eq!(NamedRelayWords::load(&path, relay).unwrap().words, []);
        std::fs::write(&path, some().to_string()).unwrap();
        assert_eq!(NamedRelayWords::load(&path, relay).unwrap(), some());
        assert_eq!(NamedRelayWords::load(&path, other).unwrap().words, []);
        for damaged in [&b""[..], b"\xff", &[b'a'; 1 << 20]] {
            std::fs::write(&path, damaged).unwrap();
            let error = NamedRelayWords::load(&path, relay).unwrap_err().to_string();
            assert!(error.contains("holds no whole list of words"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn garbage_never_panics(lines in prop::collection::vec("(word|relay) [a-z]{0,4}( [0-9-]{0,11}){0,5}( good)?", 0..5)) {
            let body = format!("{FIRST_LINE}\n{}\n", lines.join("\n"));
            if let Ok(list) = format!("{body}check {}\n", check(&body)).parse::<NamedRelayWords>() {
                prop_assert_eq!(list.to_string().parse(), Ok(list));
            }
        }
    }
}
