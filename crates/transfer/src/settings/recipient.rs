//! From a name on the command line to the ticket of a peer.

use super::config::{Config, Finding, FindingWeight, Peer};
use super::peer_name::{PeerName, named_sender};
use super::schema::meant;
use crate::allowed_sender::{self, AllowedSender, AllowedSenderError};
use crate::secret_words::{self, NoWord, WordArgument, shortened};
use crate::ticket::{Ticket, looks_like_ticket};
use byway_files::{NameError, Subdirectory};
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The advice for a name that resembles no known name.
const LIST_HINT: &str = ": `byway peer list` shows the names";
/// The advice for a word in a ticket's place that resembles no known name.
const TICKET_HINT: &str = ", and it is no ticket: `byway recv` prints one, which begins with byway1- or byway2-; \
    `byway peer list` shows the names";

/// Why a peer's name cannot be used or saved.
#[derive(Debug, Error)]
pub enum PeerError {
    /// No file has the name.
    #[error("no peer is called `{}`{hint}", shortened(.name.as_str()))]
    Unknown {
        /// The name.
        name: PeerName,
        /// The advice, as the end of a sentence.
        hint: String,
    },
    /// A path is given in place of a ticket.
    #[error("`{0}` is a path, and the ticket is missing: write it, or `@FILE`, or `NAME:`, behind all paths")]
    Path(String),
    /// A path of the same name is here.
    #[error(
        "`{0}` is a peer, and also a path here: write `./{0}` for the path, or send from another directory"
    )]
    Ambiguous(String),
    /// A peer's name without the colon that `send` needs.
    #[error("`{0}` is a peer: write `{0}:` to send to it")]
    NoColon(PeerName),
    /// The text behind the colon is not a path below the receiver's directory.
    #[error(
        "the directory of `{text}`: {why}: write a path below the receiver's directory, as in `{name}:2026/`"
    )]
    Place {
        /// The argument.
        text: String,
        /// The peer.
        name: PeerName,
        /// The mistake in the path.
        why: NameError,
    },
    /// The user's file has this name already.
    #[error(
        "`{name}` is in {} already: choose another name, or change its ticket by `byway peer add --replace`",
        .file.display()
    )]
    Exists {
        /// The name.
        name: PeerName,
        /// The user's file.
        file: PathBuf,
    },
    /// Nothing says where the user's file is.
    #[error("there is no configuration file to write: set HOME, or BYWAY_CONFIG, and leave out --no-config")]
    NoFile,
    /// The file cannot be written.
    #[error("cannot write {}: {source}", .file.display())]
    NotWritten {
        /// The user's file.
        file: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file has a mistake.
    #[error(transparent)]
    Wrong(#[from] Finding),
    /// The text is no ticket.
    #[error(transparent)]
    Word(#[from] NoWord),
}

impl PeerError {
    /// Whether the user's input is wrong, rather than the system's answer.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        match self {
            Self::NotWritten { .. } => false,
            Self::Word(error) => error.is_mistyped(),
            Self::Wrong(finding) => !matches!(finding.weight, FindingWeight::Unread),
            _ => true,
        }
    }
}

/// The name and the rest of `NAME:REST`.
fn split(text: &str) -> Option<(PeerName, &str)> {
    let (name, rest) = text.split_once(':')?;
    Some((name.parse().ok()?, rest))
}

impl Config {
    /// The peer of this name.
    ///
    /// # Errors
    /// No file has it.
    pub fn peer(&self, name: &PeerName) -> Result<&Peer, PeerError> {
        self.peers().get(name).ok_or_else(|| self.unknown(name))
    }

    /// The error for a name that the file in question does not have.
    pub(super) fn unknown(&self, name: &PeerName) -> PeerError {
        self.unknown_with(name, LIST_HINT)
    }

    /// Like [`Self::unknown`], with the advice for a name that resembles no known name.
    fn unknown_with(&self, name: &PeerName, advice: &str) -> PeerError {
        let near = || meant(name.as_str(), self.peers().keys().map(PeerName::as_str));
        let hint = match self.peers().get(name) {
            Some(peer) => format!(" in your own file: edit {}", peer.file.display()),
            None => Some(near()).filter(|near| !near.is_empty()).unwrap_or_else(|| advice.to_owned()),
        };
        PeerError::Unknown { name: name.clone(), hint }
    }

    /// The peer whose name stands in the place of a ticket.
    fn peer_for_ticket(&self, name: &PeerName) -> Result<&Peer, PeerError> {
        self.peers().get(name).ok_or_else(|| self.unknown_with(name, TICKET_HINT))
    }

    /// The ticket that an argument is or names: a ticket, `@FILE`, `NAME` or `NAME:`.
    ///
    /// # Errors
    /// No peer has the name, or what is there is no ticket.
    pub fn ticket(&self, word: &WordArgument<Ticket>) -> Result<Ticket, PeerError> {
        match self.named(word) {
            Some(name) => Ok(self.peer_for_ticket(&name)?.ticket()?),
            None => Ok(word.value()?),
        }
    }

    /// Returns the name of the peer that an argument gives. `None`: the argument is a ticket.
    #[must_use]
    pub fn peer_name(&self, word: &WordArgument<Ticket>) -> Option<String> {
        let name = split(word.literal().unwrap_or_default().trim()).map(|(name, _)| name);
        name.or_else(|| self.named(word)).map(|name| name.to_string())
    }

    /// The tickets of an option that may be repeated.
    ///
    /// # Errors
    /// As [`Self::ticket`].
    pub fn tickets(
        &self,
        words: &[WordArgument<Ticket>],
        option: &'static str,
    ) -> Result<Vec<Ticket>, PeerError> {
        let mut tickets = Vec::new();
        for word in words {
            match self.named(word) {
                Some(_) => tickets.push(self.ticket(word)?),
                None => tickets.extend(secret_words::values(std::slice::from_ref(word), option)?),
            }
        }
        Ok(tickets)
    }

    /// The senders that an option names: by their keys, or by the names of peers. Each may have a
    /// directory behind `=`.
    ///
    /// # Errors
    /// A word names no sender, a peer is not there, or a key has two directories.
    pub fn allowed_senders(
        &self,
        words: &[WordArgument<AllowedSender>],
        option: &'static str,
    ) -> Result<Vec<AllowedSender>, PeerError> {
        let mut senders = Vec::new();
        for word in words {
            match word.literal().and_then(named_sender) {
                Some((name, place)) => {
                    let key = self.peer(&name)?.key()?;
                    let wrong = |why| NoWord::of(option, AllowedSenderError::Place { key, why });
                    let below = place.map(str::parse).transpose().map_err(wrong)?;
                    senders.push(AllowedSender { key, below });
                }
                None => senders.extend(secret_words::values(std::slice::from_ref(word), option)?),
            }
        }
        Ok(allowed_sender::each_once(senders, option)?)
    }

    /// Whether a file has this name, as a peer or as one that `recv` allows.
    #[must_use]
    pub fn mentions(&self, name: &PeerName) -> bool {
        self.peers().contains_key(name) || self.allowed_names().any(|(_, allowed)| allowed == *name)
    }

    /// Returns the peer's name, if the argument is one.
    fn named(&self, word: &WordArgument<Ticket>) -> Option<PeerName> {
        word.literal()?.trim().parse().ok()
    }

    /// Whether the last argument of `byway send` is `NAME:` or `NAME:DIR`, rather than a path.
    ///
    /// # Errors
    /// It may be either.
    pub fn is_recipient(&self, text: &str) -> Result<bool, PeerError> {
        let Some((name, _)) = split(text).filter(|_| !looks_like_ticket(text)) else { return Ok(false) };
        let is_path = Path::new(text).symlink_metadata().is_ok();
        match (is_path, self.peers().contains_key(&name)) {
            (true, true) => Err(PeerError::Ambiguous(text.to_owned())),
            (is_path, _) => Ok(!is_path),
        }
    }

    /// The ticket of whom `byway send` sends to: a ticket, `@FILE`, `NAME:` or `NAME:DIR`. And the
    /// directory below the receiver's in which a tree lands.
    ///
    /// # Errors
    /// No peer has the name, `DIR` leads elsewhere, or what is there is no ticket.
    pub fn recipient(
        &self,
        word: &WordArgument<Ticket>,
    ) -> Result<(Ticket, Option<Subdirectory>), PeerError> {
        let text = word.literal().unwrap_or_default().trim();
        if let Some((name, place)) = split(text) {
            let ticket = self.peer(&name)?.ticket()?;
            let place = (!place.is_empty()).then(|| place.parse());
            let below =
                place.transpose().map_err(|why| PeerError::Place { text: text.to_owned(), name, why })?;
            return Ok((ticket, below));
        }
        match self.named(word) {
            Some(name) if !self.peers().contains_key(&name) && Path::new(text).symlink_metadata().is_ok() => {
                Err(PeerError::Path(text.to_owned()))
            }
            Some(name) => {
                let peer = self.peer_for_ticket(&name);
                Err(peer.map_or_else(|error| error, |_| PeerError::NoColon(name.clone())))
            }
            None => Ok((word.value()?, None)),
        }
    }
}
