//! An admitted sender, and the directory for its trees.

use crate::identity::{KeyError, PublicKey};
use crate::secret_words::NoWord;
use byway_files::{NameError, Subdirectory};
use std::str::FromStr;
use thiserror::Error;

/// A sender that may send, as `KEY` or `KEY=DIR`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedSender {
    /// The sender's public key.
    pub key: PublicKey,
    /// The directory for the sender's trees, below the receiver's directory. `None`: the receiver's
    /// directory itself.
    pub below: Option<Subdirectory>,
}

/// Why a text names no sender.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AllowedSenderError {
    /// The text before `=` is not a public key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The text behind `=` is not a path below a directory.
    #[error("the directory of {key}: {why}: write a path below the one that is received into")]
    Place {
        /// The sender's public key.
        key: PublicKey,
        /// The mistake in the path.
        why: NameError,
    },
    /// A key has two places.
    #[error("{0} is named twice, with two directories: leave out one of them")]
    Twice(PublicKey),
}

impl From<PublicKey> for AllowedSender {
    fn from(key: PublicKey) -> Self {
        Self { key, below: None }
    }
}

impl FromStr for AllowedSender {
    type Err = AllowedSenderError;

    fn from_str(text: &str) -> Result<Self, AllowedSenderError> {
        let Some((key, place)) = text.split_once('=') else { return Ok(text.parse::<PublicKey>()?.into()) };
        let key = key.parse()?;
        let below = place.parse().map_err(|why| AllowedSenderError::Place { key, why })?;
        Ok(Self { key, below: Some(below) })
    }
}

/// The senders without repetition.
///
/// # Errors
/// A key has two directories.
pub(crate) fn each_once(all: Vec<AllowedSender>, option: &'static str) -> Result<Vec<AllowedSender>, NoWord> {
    let mut senders: Vec<AllowedSender> = Vec::new();
    for sender in all {
        match senders.iter().find(|other| other.key == sender.key) {
            None => senders.push(sender),
            Some(other) if *other == sender => {}
            Some(_) => return Err(NoWord::of(option, AllowedSenderError::Twice(sender.key))),
        }
    }
    Ok(senders)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Config;

    #[test]
    fn a_sender_is_a_key_and_perhaps_a_place() {
        let key = PublicKey([7; 32]);
        assert_eq!(key.to_string().parse(), Ok(AllowedSender::from(key)));
        let read: AllowedSender = format!("{key}=friends/ann/").parse().unwrap();
        assert_eq!(read.below.map(|below| below.to_string()), Some("friends/ann".into()));
        for place in ["", "/etc", "..", "a/../../b", ".byway-partial"] {
            let error = format!("{key}={place}").parse::<AllowedSender>().unwrap_err();
            assert!(matches!(error, AllowedSenderError::Place { .. }), "{place}");
        }
        assert_eq!("bob=a".parse::<AllowedSender>(), Err(KeyError::NotAKey.into()));
    }

    #[test]
    fn a_list_may_be_a_file_and_gives_each_key_one_place() {
        let directory = tempfile::tempdir().unwrap();
        let (key, other) = (PublicKey([7; 32]), PublicKey([8; 32]));
        let all = |text: &str| {
            std::fs::write(directory.path().join("list"), text).unwrap();
            let word = format!("@{}/list", directory.path().display()).parse().unwrap();
            Config::default().allowed_senders(&[word], "--allow")
        };
        let senders = all(&format!("# friends\n{key}=ann\n{other}\n{key}=ann/\n")).unwrap();
        assert_eq!(senders.iter().map(|sender| sender.key).collect::<Vec<_>>(), [key, other]);
        assert!(all(&format!("{key}=ann\n{key}\n")).unwrap_err().is_usage());
        assert!(all(&format!("{key}=..\n")).unwrap_err().is_usage());
    }
}
