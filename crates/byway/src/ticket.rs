//! Tickets and relay words: what one person hands to another so that the programs find and trust each other.
//!
//! ```text
//! ticket      byway1-        key (32), permission (16), count (1) × address, count (1) × relay
//! relay word  byway-relay1-  relay
//! relay       address, length (1), opaque bytes that relays read
//! address     4 or 16 (1), IP address, port (2)
//! ```
//!
//! Both end in the checksum of [`crate::word`], by which a mistyped ticket is told from an expired one before anything
//! is sent. Both are secrets: who holds a ticket may send, who holds a relay word may use the relay.

use crate::identity::PublicKey;
use crate::secret::Secret;
use crate::word::{self, CHECKSUM_LEN, WordError};
use byway_wire::frame::{read_address, write_address};
use byway_wire::{DecodeError, Reader, Writer};
use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;
use thiserror::Error;

const TICKET: &str = "byway1-";
const RELAY: &str = "byway-relay1-";

/// Addresses, and relays, that one ticket names at most.
pub const MAX_ENTRIES: usize = 16;
/// Opaque bytes of one relay at most.
pub const MAX_OPAQUE: usize = 255;

const ADDRESS_MAX: usize = 1 + 16 + 2;
const RELAY_MAX: usize = ADDRESS_MAX + 1 + MAX_OPAQUE;
const TICKET_MAX: usize = 32 + 16 + 2 + MAX_ENTRIES * (ADDRESS_MAX + RELAY_MAX);

/// Where a receiver is, who it is, and the permission to send to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// The receiver's public key.
    pub key: PublicKey,
    /// What the receiver recognises its own ticket by.
    pub permission: Secret<[u8; 16]>,
    /// Where the receiver can be reached directly; at most [`MAX_ENTRIES`].
    pub addresses: Vec<SocketAddr>,
    /// Relays through which the receiver can be reached, as it has greeted them; at most [`MAX_ENTRIES`].
    pub relays: Vec<RelayWord>,
}

/// A relay and what it asks to be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelayWord {
    /// Where the relay listens.
    pub address: SocketAddr,
    /// Grant, secret and consent as the relay's own formats have them; at most [`MAX_OPAQUE`] bytes.
    pub opaque: Secret<Vec<u8>>,
}

/// Why a text is not a ticket or not a relay word; `T` in the texts is what was wanted.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TicketError {
    /// Begins like nothing byway prints.
    #[error("this is not a {wanted}: one begins with {prefix}")]
    Unknown {
        /// "ticket" or "relay word".
        wanted: &'static str,
        /// What it begins with.
        prefix: &'static str,
    },
    /// Another of byway's words.
    #[error("this is a {found}, not a {wanted}: {hint}")]
    OtherKind {
        /// What it is.
        found: &'static str,
        /// What it should be.
        wanted: &'static str,
        /// Where the right one comes from.
        hint: &'static str,
    },
    /// Printed by a byway that speaks another version.
    #[error("this {wanted} is of version {version}, this byway reads version 1: update the older side")]
    OtherVersion {
        /// "ticket" or "relay word".
        wanted: &'static str,
        /// Its version.
        version: u32,
    },
    /// The end is missing.
    #[error("this {wanted} is cut short: copy it again, to its end")]
    Truncated {
        /// "ticket" or "relay word".
        wanted: &'static str,
    },
    /// The checksum disagrees.
    #[error("this {wanted} was mistyped: copy it again")]
    Mistyped {
        /// "ticket" or "relay word".
        wanted: &'static str,
    },
    /// A character that no word contains.
    #[error("this {wanted} was mistyped: character {at} is {found:?}, which no {wanted} contains")]
    Character {
        /// "ticket" or "relay word".
        wanted: &'static str,
        /// The character.
        found: char,
        /// Its place, counted from 1.
        at: usize,
    },
    /// The checksum agrees and the contents make no sense: not made by byway.
    #[error("this {wanted} holds something that byway does not write: {reason}")]
    Malformed {
        /// "ticket" or "relay word".
        wanted: &'static str,
        /// What.
        reason: DecodeError,
    },
}

impl fmt::Display for Ticket {
    /// The ticket as a word. Entries beyond [`MAX_ENTRIES`] and opaque bytes beyond [`MAX_OPAQUE`] do not fit and are left
    /// out whole.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut buffer = [0; TICKET_MAX];
        let mut writer = Writer::new(&mut buffer);
        writer.bytes(&self.key.0);
        writer.bytes(self.permission.expose());
        let addresses = self.addresses.iter().take(MAX_ENTRIES);
        writer.u8(addresses.len() as u8);
        addresses.for_each(|address| write_address(&mut writer, *address));
        let relays = || self.relays.iter().filter(|relay| relay.fits()).take(MAX_ENTRIES);
        writer.u8(relays().count() as u8);
        relays().for_each(|relay| relay.write(&mut writer));
        f.write_str(&word::encode(TICKET, writer.written()))
    }
}

impl FromStr for Ticket {
    type Err = TicketError;

    fn from_str(text: &str) -> Result<Self, TicketError> {
        KIND_TICKET.read(text, |reader| {
            Ok(Self {
                key: PublicKey(reader.array()?),
                permission: Secret::new(reader.array()?),
                addresses: read_list(reader, read_address)?,
                relays: read_list(reader, RelayWord::read)?,
            })
        })
    }
}

impl RelayWord {
    fn fits(&self) -> bool {
        self.opaque.expose().len() <= MAX_OPAQUE
    }

    fn write(&self, writer: &mut Writer<'_>) {
        write_address(writer, self.address);
        let opaque = self.opaque.expose();
        writer.u8(opaque.len().min(MAX_OPAQUE) as u8);
        writer.bytes(opaque.get(..MAX_OPAQUE).unwrap_or(opaque));
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let address = read_address(reader)?;
        let length = usize::from(reader.u8()?);
        Ok(Self { address, opaque: Secret::new(reader.bytes(length)?.to_vec()) })
    }
}

impl fmt::Display for RelayWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut buffer = [0; RELAY_MAX];
        let mut writer = Writer::new(&mut buffer);
        self.write(&mut writer);
        f.write_str(&word::encode(RELAY, writer.written()))
    }
}

impl FromStr for RelayWord {
    type Err = TicketError;

    fn from_str(text: &str) -> Result<Self, TicketError> {
        KIND_RELAY.read(text, Self::read)
    }
}

/// Whether `text` is meant as a ticket, good or bad: what tells the last argument of `send` from a path.
#[must_use]
pub fn looks_like_ticket(text: &str) -> bool {
    version_of("byway", text).is_some()
}

/// What the errors of one kind of word have in common.
struct Kind {
    wanted: &'static str,
    prefix: &'static str,
    /// The prefix without its version and dash.
    stem: &'static str,
    /// Where a word of this kind comes from.
    hint: &'static str,
}

const KIND_TICKET: Kind =
    Kind { wanted: "ticket", prefix: TICKET, stem: "byway", hint: "`byway recv` prints a ticket" };
const KIND_RELAY: Kind = Kind {
    wanted: "relay word",
    prefix: RELAY,
    stem: "byway-relay",
    hint: "`byway relay` prints the word of a relay",
};

impl Kind {
    fn read<T>(
        &self,
        text: &str,
        parse: impl Fn(&mut Reader<'_>) -> Result<T, DecodeError>,
    ) -> Result<T, TicketError> {
        let wanted = self.wanted;
        let payload = word::decode(self.prefix, text).map_err(|error| match error {
            WordError::Prefix => self.foreign(text.trim()),
            WordError::Character { found, at } => TicketError::Character { wanted, found, at },
            WordError::TooLong => TicketError::Mistyped { wanted },
            WordError::Checksum(bytes) => {
                // Without its end, what is left runs out before the contents do, or in the checksum after them.
                let mut reader = Reader::new(&bytes);
                match parse(&mut reader) {
                    Err(DecodeError::Truncated) => TicketError::Truncated { wanted },
                    Ok(_) if reader.remaining() < CHECKSUM_LEN => TicketError::Truncated { wanted },
                    _ => TicketError::Mistyped { wanted },
                }
            }
        })?;
        let mut reader = Reader::new(&payload);
        let value = parse(&mut reader).map_err(|reason| TicketError::Malformed { wanted, reason })?;
        if !reader.is_empty() {
            return Err(TicketError::Malformed { wanted, reason: DecodeError::Range("length") });
        }
        Ok(value)
    }

    /// What a text without the prefix is instead.
    fn foreign(&self, text: &str) -> TicketError {
        let wanted = self.wanted;
        if let Some(version) = version_of(self.stem, text) {
            return TicketError::OtherVersion { wanted, version };
        }
        let other = |found| TicketError::OtherKind { found, wanted, hint: self.hint };
        if version_of(KIND_RELAY.stem, text).is_some() {
            other("relay word")
        } else if version_of(KIND_TICKET.stem, text).is_some() {
            other("ticket")
        } else if word::strip_prefix("byway-key-", text).is_some() {
            other("public key")
        } else {
            TicketError::Unknown { wanted, prefix: self.prefix }
        }
    }
}

/// The number between `stem` and a dash.
fn version_of(stem: &str, text: &str) -> Option<u32> {
    word::strip_prefix(stem, text)?.split_once('-')?.0.parse().ok()
}

fn read_list<T>(
    reader: &mut Reader<'_>,
    read: impl Fn(&mut Reader<'_>) -> Result<T, DecodeError>,
) -> Result<Vec<T>, DecodeError> {
    let count = usize::from(reader.u8()?);
    if count > MAX_ENTRIES {
        return Err(DecodeError::Range("number of entries"));
    }
    (0..count).map(|_| read(reader)).collect()
}

#[cfg(test)]
mod tests;
