//! Tickets: a receiver gives one to a sender, so that the two programs find and trust each other.
//!
//! ```text
//! byway1-   key (32), permission (16), count (1) × address, count (1) × relay
//! byway2-   the same, count (1) × name; where there are names, or relays that remember the receiver
//! name      length (1), host name (bytes), port (2)
//! relay     length (1), relay word (bytes of byway_wire::relay::Word), reach
//! reach     in byway1-: address, consent (10); in byway2-: 1, address, consent (10); or 0: the relay tells
//! address   4 or 16 (1), IP address, port (2)
//! ```
//!
//! The checksum ([`byway_wire::checked_text`]) reveals a mistyped ticket. A ticket is a secret: who
//! holds it may send and use its relays.

use crate::host_name::NamedAddress;
use crate::identity::{KeyError, PublicKey};
use crate::secret::Secret;
use crate::sockets::INTERNET_ADDRESSES;
use byway_wire::checked_text::{self, CHECKSUM_LEN, TextError};
use byway_wire::frame::{read_address, write_address};
use byway_wire::relay::{self, CONSENT_LEN};
use byway_wire::{DecodeError, Reader, Writer};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;
use thiserror::Error;
use zeroize::Zeroize;

/// How a ticket is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TicketFormat {
    /// `byway1-`: with the receiver's addresses at the time.
    Fixed,
    /// `byway2-`: with ways that lead to the receiver also when its addresses have changed.
    Lasting,
}

impl TicketFormat {
    const fn prefix(self) -> &'static str {
        match self {
            Self::Fixed => "byway1-",
            Self::Lasting => "byway2-",
        }
    }
}

/// The most addresses that a ticket holds, and the most relays.
pub const MAX_ENTRIES: usize = 16;
/// The most names of the receiver's host that a ticket holds.
pub const MAX_NAMES: usize = 4;

const ADDRESS_MAX: usize = 1 + 16 + 2;
/// The largest size of a relay in a ticket. The relay word has a one-byte length; with four
/// addresses and a caveat it takes 112 bytes.
const RELAY_MAX: usize = 1 + 255 + 1 + ADDRESS_MAX + CONSENT_LEN;
const TICKET_MAX: usize =
    32 + 16 + 3 + MAX_ENTRIES * (ADDRESS_MAX + RELAY_MAX) + MAX_NAMES * NamedAddress::MAX_LEN;

/// A receiver's addresses and public key, with the permission to send to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// The receiver's public key.
    pub key: PublicKey,
    /// The secret by which the receiver recognises its own ticket.
    pub permission: Secret<[u8; 16]>,
    /// The addresses at which the receiver can be reached without a relay; at most [`MAX_ENTRIES`].
    pub addresses: Vec<SocketAddr>,
    /// Relays through which the receiver can be reached; at most [`MAX_ENTRIES`].
    pub relays: Vec<GreetedRelay>,
    /// Names of the receiver's host, which a sender looks up; at most [`MAX_NAMES`].
    pub names: Vec<NamedAddress>,
}

/// A relay that the receiver has greeted, and the data with which a sender reaches the receiver
/// through it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GreetedRelay {
    /// The relay word, which permits the sender to use the relay.
    pub word: relay::Word,
    /// The receiver's address as the relay saw it, and the receiver's consent, which expires before
    /// the ticket. `None`: the relay remembers the receiver's location.
    pub reach: Option<(SocketAddr, relay::Consent)>,
}

/// Why a text is not a ticket.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TicketError {
    /// Begins like nothing byway prints.
    #[error("this is not a ticket: one begins with byway1- or byway2- and is printed by `byway recv`")]
    Unknown,
    /// The text is a relay word or a public key.
    #[error("this is a {0}, not a ticket: `byway recv` prints a ticket")]
    OtherKind(&'static str),
    /// Printed by a byway that speaks another version.
    #[error("this ticket is of version {0}, this byway reads versions 1 and 2: update the older side")]
    OtherVersion(u32),
    /// The text is cut off at its end.
    #[error("this ticket is cut short: copy it again, to its end")]
    Truncated,
    /// The checksum is wrong, so the text was copied wrongly.
    #[error("this ticket was mistyped: copy it again")]
    Mistyped,
    /// A character that no ticket contains.
    #[error("this ticket was mistyped: character {at} is {found:?}, which no ticket contains")]
    Character {
        /// The character that was found.
        found: char,
        /// The address's place in the ticket, counted from 1.
        at: usize,
    },
    /// The checksum agrees and the contents make no sense: not made by byway.
    #[error("this ticket holds something that byway does not write: its {0}")]
    Malformed(DecodeError),
}

impl fmt::Display for Ticket {
    /// Writes the ticket as one word, **secrets included**. Entries beyond [`MAX_ENTRIES`] and
    /// names beyond [`MAX_NAMES`] are left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let format = self.format();
        let mut buffer = [0; TICKET_MAX];
        let mut writer = Writer::new(&mut buffer);
        writer.bytes(&self.key.0);
        writer.bytes(self.permission.expose());
        let addresses = self.addresses.iter().take(MAX_ENTRIES);
        writer.u8(addresses.len() as u8);
        addresses.for_each(|address| write_address(&mut writer, *address));
        let relays = self.relays.iter().take(MAX_ENTRIES);
        writer.u8(relays.len() as u8);
        relays.for_each(|relay| relay.write(&mut writer, format));
        if format == TicketFormat::Lasting {
            let names = self.names.iter().take(MAX_NAMES);
            writer.u8(names.len() as u8);
            names.for_each(|name| name.write(&mut writer));
        }
        let text = checked_text::encode(format.prefix(), writer.written());
        buffer.zeroize();
        f.write_str(&text)
    }
}

impl FromStr for Ticket {
    type Err = TicketError;

    fn from_str(text: &str) -> Result<Self, TicketError> {
        let (decoded, format) = match checked_text::decode(TicketFormat::Lasting.prefix(), text) {
            Err(TextError::Prefix) => {
                (checked_text::decode(TicketFormat::Fixed.prefix(), text), TicketFormat::Fixed)
            }
            decoded => (decoded, TicketFormat::Lasting),
        };
        let payload = decoded.map_err(|error| match error {
            TextError::Prefix => foreign(text.trim()),
            TextError::Character { found, at } => TicketError::Character { found, at },
            TextError::TooLong => TicketError::Mistyped,
            TextError::Checksum(bytes) => {
                // Without its end, what is left runs out before the contents do, or in the checksum
                // after them.
                let mut reader = Reader::new(&bytes);
                match Self::read(&mut reader, format) {
                    Err(DecodeError::Truncated) => TicketError::Truncated,
                    Ok(_) if reader.remaining() < CHECKSUM_LEN => TicketError::Truncated,
                    _ => TicketError::Mistyped,
                }
            }
        })?;
        let payload = Secret::new(payload);
        let mut reader = Reader::new(payload.expose());
        let ticket = Self::read(&mut reader, format).map_err(TicketError::Malformed)?;
        if reader.is_empty() { Ok(ticket) } else { Err(TicketError::Malformed(DecodeError::Range("length"))) }
    }
}

impl Ticket {
    /// IP addresses to which a sender may send datagrams for the receiver: the receiver's own
    /// addresses and those of relays, which forward them. The relays are the ticket's, and the
    /// sender's other `relays`. A name that is not looked up yet may lead to any host: addresses in
    /// the Internet stand for it, or loopback for `localhost`.
    #[must_use]
    pub fn destinations(&self, relays: &[relay::Word]) -> Vec<IpAddr> {
        let words = self.relays.iter().map(|relay| &relay.word).chain(relays);
        let relays = words.flat_map(|word| word.relays().iter());
        let named = self.names.iter().flat_map(|host| match host.name.is_localhost() {
            true => [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()],
            false => INTERNET_ADDRESSES,
        });
        self.addresses.iter().chain(relays).map(SocketAddr::ip).chain(named).collect()
    }

    fn format(&self) -> TicketFormat {
        let is_lasting = !self.names.is_empty() || self.relays.iter().any(|relay| relay.reach.is_none());
        if is_lasting { TicketFormat::Lasting } else { TicketFormat::Fixed }
    }

    fn read(reader: &mut Reader<'_>, format: TicketFormat) -> Result<Self, DecodeError> {
        let mut ticket = Self {
            key: PublicKey(reader.array()?),
            permission: Secret::new(reader.array()?),
            addresses: read_list(reader, MAX_ENTRIES, read_address)?,
            relays: read_list(reader, MAX_ENTRIES, |reader| GreetedRelay::read(reader, format))?,
            names: Vec::new(),
        };
        if format == TicketFormat::Lasting {
            ticket.names = read_list(reader, MAX_NAMES, NamedAddress::read)?;
        }
        if ticket.format() != format {
            return Err(DecodeError::Range("format"));
        }
        Ok(ticket)
    }
}

impl GreetedRelay {
    /// Whether `other` leads to the same address with a newer consent, or is a relay that now
    /// remembers the location.
    #[must_use]
    pub fn is_renewed_by(&self, other: &Self) -> bool {
        let address = |relay: &Self| relay.reach.map(|(address, _)| address);
        self.word == other.word && (other.reach.is_none() || address(self) == address(other))
    }

    fn write(&self, writer: &mut Writer<'_>, format: TicketFormat) {
        let word = Secret::new(self.word.to_bytes());
        writer.u8(word.expose().len() as u8); // at most 112
        writer.bytes(word.expose());
        if format == TicketFormat::Lasting {
            writer.u8(u8::from(self.reach.is_some()));
        }
        if let Some((address, consent)) = &self.reach {
            write_address(writer, *address);
            consent.write(writer);
        }
    }

    fn read(reader: &mut Reader<'_>, format: TicketFormat) -> Result<Self, DecodeError> {
        let length = usize::from(reader.u8()?);
        let word = reader.bytes(length)?;
        let word = relay::Word::from_bytes(word).map_err(|_| DecodeError::Range("relay word"))?;
        let has_reach = match format {
            TicketFormat::Fixed => true,
            TicketFormat::Lasting => match reader.u8()? {
                0 => false,
                1 => true,
                _ => return Err(DecodeError::Range("reach")),
            },
        };
        let reach = match has_reach {
            true => Some((read_address(reader)?, relay::Consent::read(reader)?)),
            false => None,
        };
        Ok(Self { word, reach })
    }
}

/// Whether `text` is meant as a ticket, valid or not. Distinguishes the last argument of `send`
/// from a path.
#[must_use]
pub fn looks_like_ticket(text: &str) -> bool {
    version_of(text).is_some()
}

/// Returns the error for a text without a ticket's prefix. It says what the text is instead.
fn foreign(text: &str) -> TicketError {
    if let Some(version) = version_of(text) {
        TicketError::OtherVersion(version)
    } else if checked_text::strip_prefix(relay::WORD_PREFIX, text).is_some() {
        TicketError::OtherKind("relay word")
    } else if text.parse::<PublicKey>() != Err(KeyError::NotAKey) {
        TicketError::OtherKind("public key")
    } else {
        TicketError::Unknown
    }
}

/// The number between `byway` and a dash.
fn version_of(text: &str) -> Option<u32> {
    checked_text::strip_prefix("byway", text)?.split_once('-')?.0.parse().ok()
}

fn read_list<T>(
    reader: &mut Reader<'_>,
    most: usize,
    read: impl Fn(&mut Reader<'_>) -> Result<T, DecodeError>,
) -> Result<Vec<T>, DecodeError> {
    let count = usize::from(reader.u8()?);
    if count > most {
        return Err(DecodeError::Range("number of entries"));
    }
    (0..count).map(|_| read(reader)).collect()
}

#[cfg(test)]
mod tests;
