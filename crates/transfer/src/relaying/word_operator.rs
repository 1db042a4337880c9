//! An operator's changes to the named relay words, whether or not the relay runs.

use super::named_words::{MAX_NAMED_WORDS, NamedRelayWord, NamedRelayWords, WordName, end_of};
use super::state_writer;
use crate::state_directory::{StateDir, StateError, put_for_owner};
use byway_net::{EntropyError, unix_seconds};
use byway_wire::Duration;
use byway_wire::relay::{GrantId, QuotaClass, RateClass, RelayKey, RelayWordError, Word};
use rustix::fs::{FlockOperation, flock};
use serde::Serialize;
use std::fs::{File, OpenOptions};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The default validity of a named relay word.
pub const NAMED_WORD_LIFETIME: Duration = Duration::from_secs(365 * 86_400);

/// Time within which a relay that runs knows of a change, on a host that is not overloaded.
pub const WORD_CHANGE_TIME: Duration = Duration::from_millis(500);

/// Why the relay words of a relay cannot be changed as requested.
#[derive(Debug, Error)]
pub enum WordOperatorError {
    /// A file in the state directory cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// The system gives no randomness.
    #[error(transparent)]
    Entropy(#[from] EntropyError),
    /// A relay word cannot be made from the addresses.
    #[error("this relay cannot be named")]
    Word(#[from] RelayWordError),
    /// No relay word has this name.
    #[error("no word has the name {0}: `byway relay words` shows those that there are")]
    NoSuchName(WordName),
    /// A relay word already has this name, perhaps with other limits.
    #[error("{0} has a word already: revoke it first, or give no limits to print it again")]
    Taken(WordName),
    /// There are as many valid named relay words as a relay may have.
    #[error("{MAX_NAMED_WORDS} names have good words, which is the most: revoke one first")]
    Full,
    /// Nothing says where senders reach the relay.
    #[error("it is not known where the relay is: start it once, or give --advertise ADDR")]
    NoAddress,
}

impl WordOperatorError {
    /// Whether another request could succeed, so that the error is one of usage.
    #[must_use]
    pub const fn is_usage(&self) -> bool {
        !matches!(self, Self::State(_) | Self::Entropy(_))
    }
}

/// The limits of a new relay word. `None`: no limit, or the validity [`NAMED_WORD_LIFETIME`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WordLimits {
    /// Bytes per second.
    pub rate: Option<u64>,
    /// Bytes per day (UTC).
    pub quota: Option<u64>,
    /// The validity of the relay word.
    pub expires: Option<Duration>,
}

/// One row of the list of named relay words: the name, the limits and the bytes carried. Printed
/// for people, and as JSON for programs.
#[derive(Clone, Debug, Serialize)]
pub struct ListedWord {
    /// The name.
    pub name: String,
    /// `good`, `expired` or `revoked`.
    pub state: &'static str,
    /// Bits per second at most. `None`: no limit.
    pub rate_bps: Option<u64>,
    /// Bytes per day (UTC) at most. `None`: no limit.
    pub quota_bytes_per_day: Option<u64>,
    /// The expiry in Unix seconds.
    pub expires_unix: u64,
    /// Seconds until the expiry, whether or not the relay word was revoked.
    pub good_seconds: u64,
    /// Bytes that the relay carried for the relay word, in both directions, as of a few seconds
    /// ago.
    pub carried_bytes: u64,
}

impl ListedWord {
    fn of(word: &NamedRelayWord, carried_bytes: u64, unix: u64) -> Self {
        Self {
            name: word.name.to_string(),
            state: match (word.is_revoked, word.has_expired(unix)) {
                (true, _) => "revoked",
                (false, true) => "expired",
                (false, false) => "good",
            },
            rate_bps: word.rate.bytes_per_second().map(|rate| rate.saturating_mul(8)),
            quota_bytes_per_day: word.quota.bytes_per_day(),
            expires_unix: word.expiry.unix(),
            good_seconds: word.expiry.unix().saturating_sub(unix),
            carried_bytes,
        }
    }
}

/// The named relay words of a relay, in a state directory.
pub struct WordOperator {
    key: RelayKey,
    key_path: PathBuf,
    words_path: PathBuf,
    kept_path: PathBuf,
}

impl WordOperator {
    /// Opens the relay words of the relay whose key is in `key_file`, or else in the state
    /// directory. `makes_key`: a missing key is made.
    ///
    /// # Errors
    /// The key cannot be read or made.
    pub fn open(state: &StateDir, key_file: Option<&Path>, makes_key: bool) -> Result<Self, StateError> {
        let key = if makes_key { state.relay_key(key_file) } else { state.existing_relay_key(key_file) }?;
        Ok(Self {
            key: RelayKey::new(key.expose()),
            key_path: key_file.map_or_else(|| state.relay_key_path(), Path::to_owned),
            words_path: state.relay_words_path(key_file),
            kept_path: state.relay_kept_path(key_file),
        })
    }

    /// Makes a word for `name`, and keeps it under the name. If the name has a word that is good,
    /// and `limits` says nothing, that word is made again. `addresses`: where senders reach the
    /// relay; none: where it was when it ran last.
    ///
    /// # Errors
    /// The name has a word and `limits` says something, or the word cannot be kept. Then nothing
    /// has changed.
    pub fn issue(
        &self,
        name: &WordName,
        limits: WordLimits,
        addresses: Vec<SocketAddr>,
    ) -> Result<Word, WordOperatorError> {
        let _lock = self.lock()?;
        let (mut list, unix) = (NamedRelayWords::load(&self.words_path, self.key.id())?, unix_seconds());
        let known = list.find_mut(name).filter(|word| !word.is_revoked && !word.has_expired(unix));
        if known.is_some() && limits != WordLimits::default() {
            return Err(WordOperatorError::Taken(name.clone()));
        }
        let addresses = if addresses.is_empty() { self.last_addresses()? } else { addresses };
        if let Some(known) = known {
            return Ok(self.key.issue(known.grant(), addresses)?);
        }
        let word = NamedRelayWord {
            name: name.clone(),
            grant: free_id(&list)?,
            rate: limits.rate.map_or(RateClass::UNLIMITED, RateClass::at_most),
            quota: limits.quota.map_or(QuotaClass::UNLIMITED, QuotaClass::at_most),
            expiry: end_of(unix, limits.expires.unwrap_or(NAMED_WORD_LIFETIME)),
            is_revoked: false,
        };
        let issued = self.key.issue(word.grant(), addresses)?;
        list.put(word, unix).ok_or(WordOperatorError::Full)?;
        self.keep(&list)?;
        Ok(issued)
    }

    /// Revokes the relay word with this name. False: it was revoked before.
    ///
    /// # Errors
    /// There is no such name, or the change cannot be kept. Then nothing has changed.
    pub fn revoke(&self, name: &WordName) -> Result<bool, WordOperatorError> {
        let _lock = self.lock()?;
        let mut list = NamedRelayWords::load(&self.words_path, self.key.id())?;
        let word = list.find_mut(name).ok_or_else(|| WordOperatorError::NoSuchName(name.clone()))?;
        if std::mem::replace(&mut word.is_revoked, true) {
            return Ok(false);
        }
        self.keep(&list)?;
        Ok(true)
    }

    /// Returns the relay words, in the order of their names.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn list(&self) -> Result<Vec<ListedWord>, StateError> {
        let (kept, unix) = (state_writer::read(&self.kept_path)?, unix_seconds());
        let mut words = NamedRelayWords::load(&self.words_path, self.key.id())?.words;
        words.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        let carried = |id| kept.words.iter().find(|(grant, _)| *grant == id).map_or(0, |(_, bytes)| *bytes);
        Ok(words.iter().map(|word| ListedWord::of(word, carried(word.grant), unix)).collect())
    }

    fn last_addresses(&self) -> Result<Vec<SocketAddr>, WordOperatorError> {
        let addresses = state_writer::read(&self.kept_path)?.addresses;
        if addresses.is_empty() { Err(WordOperatorError::NoAddress) } else { Ok(addresses) }
    }

    /// Locks the relay words, and waits while another process changes them. The lock ends when the
    /// returned file is closed.
    fn lock(&self) -> Result<File, StateError> {
        let locked = || -> io::Result<File> {
            let file = OpenOptions::new().read(true).write(true).open(&self.key_path)?;
            flock(&file, FlockOperation::LockExclusive)?;
            Ok(file)
        };
        locked().map_err(|source| self.cannot("lock", &self.key_path, source))
    }

    fn keep(&self, list: &NamedRelayWords) -> Result<(), StateError> {
        let kept = put_for_owner(&self.words_path, &list.to_string());
        kept.map_err(|source| self.cannot("keep the words that have names in", &self.words_path, source))
    }

    fn cannot(&self, what: &str, path: &Path, source: io::Error) -> StateError {
        StateError::Io { what: what.to_owned(), path: path.to_owned(), source }
    }
}

/// Returns a random id that no relay word of the list has.
fn free_id(list: &NamedRelayWords) -> Result<u32, EntropyError> {
    loop {
        let id = GrantId::own(u32::from_be_bytes(byway_net::seed()?));
        if list.words.iter().all(|word| word.grant != id) {
            return Ok(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use byway_wire::relay::Scope;
    use std::fs;

    const HOUR: Duration = Duration::from_secs(3_600);

    fn place() -> (tempfile::TempDir, StateDir) {
        let place = tempfile::tempdir().unwrap();
        let state = StateDir::locate(Some(&place.path().join("state")), |_| None).unwrap();
        (place, state)
    }

    fn name(text: &str) -> WordName {
        text.parse().unwrap()
    }

    fn addresses() -> Vec<SocketAddr> {
        vec!["192.0.2.1:4748".parse().unwrap()]
    }

    #[test]
    fn a_name_has_one_good_word() {
        let (_place, state) = place();
        assert!(WordOperator::open(&state, None, false).is_err());
        assert!(!state.relay_key_path().exists(), "looking makes no key");
        let operator = WordOperator::open(&state, None, true).unwrap();
        let (alice, none) = (name("alice"), WordLimits::default());
        assert!(matches!(operator.issue(&alice, none, Vec::new()), Err(WordOperatorError::NoAddress)));
        let limits = WordLimits { rate: Some(1 << 20), quota: Some(1 << 30), expires: Some(HOUR) };
        let word = operator.issue(&alice, limits, addresses()).unwrap();
        assert_eq!(word.terms().rate.bytes_per_second(), Some(1 << 20));
        assert_eq!(word.terms().quota.bytes_per_day(), Some(1 << 30));
        assert!(word.terms().scope.contains(Scope::NAMED));
        assert_eq!(operator.issue(&alice, none, addresses()).unwrap(), word);
        assert!(matches!(operator.issue(&alice, limits, addresses()), Err(WordOperatorError::Taken(_))));
        assert!(operator.revoke(&alice).unwrap() && !operator.revoke(&alice).unwrap());
        assert!(matches!(operator.revoke(&name("bob")), Err(WordOperatorError::NoSuchName(_))));
        assert!(operator.list().unwrap()[0].state == "revoked");
        // The next word of the name is another one. One that is over makes room, too.
        let ended = WordLimits { expires: Some(Duration::ZERO), ..none };
        let next = operator.issue(&alice, ended, addresses()).unwrap();
        assert_ne!(next.grant().id, word.grant().id);
        assert_eq!(operator.list().unwrap()[0].state, "expired");
        operator.issue(&alice, limits, addresses()).unwrap();
        assert_eq!(operator.list().unwrap().len(), 1);
        // A new key ends all names with the words.
        state.roll_relay_key(None).unwrap();
        assert!(WordOperator::open(&state, None, false).unwrap().list().unwrap().is_empty());
    }

    #[test]
    fn commands_at_once_lose_nothing() {
        let (_place, state) = place();
        WordOperator::open(&state, None, true).unwrap();
        let (state, names) = (&state, ["a", "b", "c", "d", "e", "f", "g", "h"]);
        std::thread::scope(|scope| {
            for text in names {
                scope.spawn(move || {
                    let operator = WordOperator::open(state, None, false).unwrap();
                    operator.issue(&name(text), WordLimits::default(), addresses()).unwrap();
                    assert!(operator.revoke(&name(text)).unwrap());
                });
            }
        });
        let listed = WordOperator::open(state, None, false).unwrap().list().unwrap();
        assert_eq!(listed.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), names);
        assert!(listed.iter().all(|listed| listed.state == "revoked"));
    }

    #[test]
    fn what_cannot_be_kept_changes_nothing() {
        let (_place, state) = place();
        let operator = WordOperator::open(&state, None, true).unwrap();
        operator.issue(&name("alice"), WordLimits::default(), addresses()).unwrap();
        let path = state.relay_words_path(None);
        let before = fs::read_to_string(&path).unwrap();
        // Something that no file can be put in place of.
        fs::rename(&path, path.with_extension("copy")).unwrap();
        fs::create_dir_all(path.join("in the way")).unwrap();
        for done in [
            operator.revoke(&name("alice")).map(|_| ()),
            operator.issue(&name("bob"), WordLimits::default(), addresses()).map(|_| ()),
        ] {
            assert!(matches!(done, Err(WordOperatorError::State(StateError::Io { .. }))), "{done:?}");
        }
        fs::remove_dir_all(&path).unwrap();
        fs::rename(path.with_extension("copy"), &path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), before);
        // A damaged list is neither read nor replaced.
        fs::write(&path, "alice").unwrap();
        let issued = operator.issue(&name("bob"), WordLimits::default(), addresses());
        assert!(matches!(issued, Err(WordOperatorError::State(StateError::Damaged { .. }))));
        assert_eq!(fs::read_to_string(&path).unwrap(), "alice");
    }
}
