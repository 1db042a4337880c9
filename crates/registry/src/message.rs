//! The messages between a registry and a relay or client: records ([`crate::stream_records`]),
//! requests on stream 0, answers on stream 1. Numbers are in network byte order. A text follows its
//! length (1 byte), and a list its count (1 byte).
//!
//! ```text
//! 01 ENROL     proof (20), relay (16), range (1), range key (32), rate class (1), quota class (1), operator, region, addresses, seen (1)
//! 02 READY     the relay knows the epoch: it may be tested
//! 03 ASK       proof (20), most (1), passed over (2)
//! 04 COMPLAIN  proof (20), relays (16 each)
//!
//! 81 EPOCH     epoch (4), last epoch holds for s (4)
//! 82 ENROLLED  beat after ms (4), addresses that passed, failures: address, reason
//! 83 LIST      made at (8, s of Unix time), good until (8), flags (1), count (1), entries
//!    flags     1: there are more relays, 2: entries tell carriers
//!    entry     relay (16), operator, region, seen s ago (2), rate that it forwards (8), length (1), relay word, carriers (1)
//!    carriers  1: UDP, 2: TCP. An entry that does not tell them is of a relay over UDP alone
//! 84 HEARD     of a complaint
//! 8f REFUSED   reason (1), retry after s (4)
//! ```

use crate::word::WordProof;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use byway_wire::frame::{read_address, write_address};
use byway_wire::heartbeat::RelayId;
use byway_wire::relay::{self, QuotaClass, RANGE_COUNT, RangeKey, RateClass};
use byway_wire::{DecodeError, Reader, Writer};
use core::fmt;
use core::net::SocketAddr;

/// The most relays in one answer.
pub const MAX_RELAYS: usize = 100;
/// The most addresses of a relay: as many as its relay words contain.
pub const MAX_ADDRESSES: usize = relay::MAX_ADDRESSES;
/// The most relays in one complaint.
pub const MAX_COMPLAINTS: usize = 16;
/// Bytes of a text at most.
pub const MAX_TEXT_LEN: usize = 48;
/// Bytes of the longest request.
pub const MAX_REQUEST_LEN: usize = 512;
/// The flag of a list that is not complete: the registry has more relays.
const MORE_RELAYS: u8 = 1;
/// The flag of a list whose entries tell over which transports the relays forward.
const TELLS_CARRIERS: u8 = 2;
/// The bits of an entry's carriers.
const CARRIER_UDP: u8 = 1;
const CARRIER_TCP: u8 = 2;
/// Bytes of the longest answer.
pub const MAX_ANSWER_LEN: usize = 40_000;

/// A short text without control characters.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Label(String);

impl Label {
    /// A label from `text`, without control characters and cut to the longest length.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let mut label = String::new();
        for letter in text.chars().filter(|letter| !letter.is_control()) {
            if label.len() + letter.len_utf8() > MAX_TEXT_LEN {
                break;
            }
            label.push(letter);
        }
        Self(label)
    }

    /// The label as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let length = usize::from(reader.u8()?);
        let text = core::str::from_utf8(reader.bytes(length)?).map_err(|_| DecodeError::Range("text"))?;
        let label = Self::new(text);
        if label.0.len() == length { Ok(label) } else { Err(DecodeError::Range("text")) }
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.u8(self.0.len() as u8); // at most MAX_TEXT_LEN
        writer.bytes(self.0.as_bytes());
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A relay that wants to be listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enrol {
    /// Proof that the relay holds a registry word for joining.
    pub proof: WordProof,
    /// The name of the relay.
    pub relay: RelayId,
    /// The number of the range of grants that the relay gives the registry, 0 to 127.
    pub range: u8,
    /// The key with which the registry mints grants of the range.
    pub range_key: RangeKey,
    /// The most bytes per second that the relay grants to a client.
    pub rate: RateClass,
    /// The most bytes per day that the relay grants to a client.
    pub quota: QuotaClass,
    /// The name of the relay's operator. Answers are spread over operators.
    pub operator: Label,
    /// The region of the relay, as its operator named it.
    pub region: Label,
    /// The relay's addresses: one to [`MAX_ADDRESSES`].
    pub addresses: Vec<SocketAddr>,
    /// Whether the relay may be behind a NAT. If so, the source address of its heartbeats is tested
    /// too.
    pub seen: bool,
}

/// A question for relays. It does not name a destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelayQuery {
    /// Proof that the client holds a registry word for use.
    pub proof: WordProof,
    /// The most relays to return.
    pub most: u8,
    /// Number of relays of the same draw that the client already has, and that are skipped.
    pub skip: u16,
}

/// A request of a relay or a client to the registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// To list a relay.
    Enrol(alloc::boxed::Box<Enrol>),
    /// The relay knows the epoch now, and asks to be tested.
    Ready,
    /// A client asks for relays.
    Ask(RelayQuery),
    /// To test these relays again.
    Complain {
        /// Proof that the client holds a registry word for use.
        proof: WordProof,
        /// The relays that do not work.
        relays: Vec<RelayId>,
    },
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[repr(u8)]
pub enum Reason {
    /// There is no such registry word, or its secret differs.
    #[error("the registry does not know this word")]
    UnknownWord = 1,
    /// The registry word was revoked.
    #[error("this word was revoked")]
    Revoked = 2,
    /// The registry word has expired.
    #[error("this word has expired")]
    Expired = 3,
    /// The registry word has enrolled as many relays as it may.
    #[error("this word was used as often as it may be")]
    UsedUp = 4,
    /// The registry word is of the other kind: one for use does not enrol, and one for joining does
    /// not ask.
    #[error(
        "this word is for something else: relays enrol with the word for joining, senders ask with the word for use"
    )]
    OtherKind = 5,
    /// The holder of the registry word asks too often.
    #[error("this word asks too often")]
    TooOften = 6,
    /// The store does not answer.
    #[error("the registry cannot write to its store now")]
    StoreGone = 7,
    /// The largest permitted number of relays is already at one of the addresses.
    #[error("two relays are enrolled at this address already")]
    Crowded = 8,
    /// Another key has enrolled this relay.
    #[error("another key enrolled this relay before")]
    OtherKey = 9,
    /// No packet came back through the relay.
    #[error("no packet came back through the relay on any of its addresses")]
    Untested = 10,
    /// The request is malformed.
    #[error("the registry does not understand the request")]
    Malformed = 11,
    /// The registry is too busy.
    #[error("the registry has as much to do as it can")]
    Busy = 12,
    /// A NAT or firewall in front of the relay admits only the registry's packets.
    #[error(
        "a NAT or a firewall stands before it, which lets in nobody but the registry: forward a UDP port, and name the outside \
         address with --advertise"
    )]
    Filtered = 13,
    /// A NAT is before the relay, and the registry cannot test whether it admits packets of other
    /// hosts.
    #[error(
        "a NAT stands before it, and the registry has no second address (--probe-from) to try what that lets in: forward a UDP \
         port, and name the outside address with --advertise"
    )]
    Unprobed = 14,
    /// The relay's clock is so far ahead that every grant has expired there.
    #[error(
        "its clock is ahead of the registry's by a day or more, so that words have expired there before they are used: set the \
         clock that is wrong, as by NTP"
    )]
    Clock = 15,
}

impl Reason {
    /// All reasons, in the order of their numbers.
    pub const ALL: [Self; 15] = [
        Self::UnknownWord,
        Self::Revoked,
        Self::Expired,
        Self::UsedUp,
        Self::OtherKind,
        Self::TooOften,
        Self::StoreGone,
        Self::Crowded,
        Self::OtherKey,
        Self::Untested,
        Self::Malformed,
        Self::Busy,
        Self::Filtered,
        Self::Unprobed,
        Self::Clock,
    ];

    /// The reason's name, in lower case with underscores.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::UnknownWord => "unknown_word",
            Self::Revoked => "revoked",
            Self::Expired => "expired",
            Self::UsedUp => "used_up",
            Self::OtherKind => "other_kind",
            Self::TooOften => "too_often",
            Self::StoreGone => "store_gone",
            Self::Crowded => "crowded",
            Self::OtherKey => "other_key",
            Self::Untested => "untested",
            Self::Malformed => "malformed",
            Self::Busy => "busy",
            Self::Filtered => "filtered",
            Self::Unprobed => "unprobed",
            Self::Clock => "clock",
        }
    }

    /// Whether the same request may succeed later.
    #[must_use]
    pub const fn passes(self) -> bool {
        matches!(
            self,
            Self::TooOften
                | Self::StoreGone
                | Self::Untested
                | Self::Busy
                | Self::Crowded
                | Self::Filtered
                | Self::Unprobed
        )
    }

    fn of(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| *reason as u8 == number)
    }
}

/// Why a relay failed the test of one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[repr(u8)]
pub enum Failure {
    /// The relay did not answer a greeting.
    #[error("no answer to a greeting")]
    NoAnswer = 1,
    /// The relay answered the greeting, but did not forward the test packet.
    #[error("a packet did not come back; the relay may not be allowed to send to the registry's address")]
    NoPacket = 2,
    /// The relay reported that it does not forward the test packet.
    #[error("the relay refused to forward")]
    Refused = 3,
    /// The registry has no socket of this address family, so it could not test.
    #[error("the registry cannot reach this address family")]
    NoSocket = 4,
    /// Only packets of the registry reach the source address of the relay's heartbeats.
    #[error("a NAT or a firewall lets in nobody but the registry")]
    Filtered = 5,
    /// The registry could not test whether packets of other hosts reach the source address of the
    /// relay's heartbeats.
    #[error("the registry has no second address to try what the NAT lets in")]
    Unprobed = 6,
    /// The relay answered that a grant made just now has expired.
    #[error("the relay's clock is ahead of the registry's by a day or more")]
    Clock = 7,
}

impl Failure {
    const ALL: [Self; 7] = [
        Self::NoAnswer,
        Self::NoPacket,
        Self::Refused,
        Self::NoSocket,
        Self::Filtered,
        Self::Unprobed,
        Self::Clock,
    ];

    fn of(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|it| *it as u8 == number)
    }
}

/// A relay in a list for a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The name of the relay.
    pub relay: RelayId,
    /// The name of the relay's operator.
    pub operator: Label,
    /// The region of the relay, as its operator named it.
    pub region: Label,
    /// Seconds since the relay's last heartbeat.
    pub seen: u16,
    /// Bytes per second that the relay forwards.
    pub load: u64,
    /// Whether the relay passed its test over TCP, and not only over UDP.
    pub tcp: bool,
    /// The relay word, which permits the client to use the relay.
    pub word: relay::Word,
}

/// A list of relays, as a client gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelayList {
    /// When the list was made, in seconds of Unix time by the registry's clock.
    pub made: u64,
    /// The expiry of the relay words, in the same unit. A client renews them earlier.
    pub until: u64,
    /// Whether the registry has more relays.
    pub more: bool,
    /// The relays, in no order of merit.
    pub relays: Vec<Listed>,
}

/// An answer of the registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The present epoch. The relay must know it before it is tested.
    Epoch {
        /// The number of the epoch.
        epoch: u32,
        /// Seconds for which relay words of the previous epoch are still valid.
        last_holds: u32,
    },
    /// The relay is enrolled, and will be after a restart of the registry.
    Enrolled {
        /// After how many ms the first heartbeat shall come.
        beat_millis: u32,
        /// The addresses at which the registry will list the relay.
        passed: Vec<SocketAddr>,
        /// The addresses at which the registry will not list the relay, and why.
        failed: Vec<(SocketAddr, Failure)>,
    },
    /// Relays to try.
    List(RelayList),
    /// The registry has received the complaint.
    Heard,
    /// The registry refuses the request.
    Refused {
        /// The reason of the refusal.
        reason: Reason,
        /// Seconds after which the request may succeed. 0: never, or unknown.
        retry: u32,
    },
}

impl Request {
    /// Reads a request from a whole record.
    ///
    /// # Errors
    /// It is none.
    pub fn read(record: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(record);
        let request = match reader.u8()? {
            0x01 => Self::Enrol(alloc::boxed::Box::new(Enrol {
                proof: WordProof::read(&mut reader)?,
                relay: RelayId(reader.array()?),
                range: match reader.u8()? {
                    range if usize::from(range) < RANGE_COUNT => range,
                    _ => return Err(DecodeError::Range("range of grants")),
                },
                range_key: RangeKey::new(reader.array()?),
                rate: RateClass(reader.u8()?),
                quota: QuotaClass(reader.u8()?),
                operator: Label::read(&mut reader)?,
                region: Label::read(&mut reader)?,
                addresses: read_addresses(&mut reader, 1)?,
                seen: reader.u8()? != 0,
            })),
            0x02 => Self::Ready,
            0x03 => Self::Ask(RelayQuery {
                proof: WordProof::read(&mut reader)?,
                most: reader.u8()?,
                skip: reader.u16()?,
            }),
            0x04 => Self::Complain {
                proof: WordProof::read(&mut reader)?,
                relays: read_list(&mut reader, MAX_COMPLAINTS, |reader| Ok(RelayId(reader.array()?)))?,
            },
            other => return Err(DecodeError::UnknownType(other)),
        };
        if reader.is_empty() { Ok(request) } else { Err(DecodeError::Range("length")) }
    }

    /// The encoded request. Addresses and relays beyond their limits are left out.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        to_bytes(MAX_REQUEST_LEN, |writer| match self {
            Self::Enrol(enrol) => {
                writer.u8(0x01);
                enrol.proof.write(writer);
                writer.bytes(&enrol.relay.0);
                writer.u8(enrol.range);
                writer.bytes(enrol.range_key.reveal());
                writer.u8(enrol.rate.0);
                writer.u8(enrol.quota.0);
                enrol.operator.write(writer);
                enrol.region.write(writer);
                write_addresses(writer, &enrol.addresses);
                writer.u8(u8::from(enrol.seen));
            }
            Self::Ready => writer.u8(0x02),
            Self::Ask(ask) => {
                writer.u8(0x03);
                ask.proof.write(writer);
                writer.u8(ask.most);
                writer.u16(ask.skip);
            }
            Self::Complain { proof, relays } => {
                writer.u8(0x04);
                proof.write(writer);
                let relays = relays.iter().take(MAX_COMPLAINTS);
                writer.u8(relays.len() as u8);
                relays.for_each(|relay| writer.bytes(&relay.0));
            }
        })
    }
}

impl Listed {
    /// The names of the transports over which the relay forwards.
    #[must_use]
    pub const fn carriers(&self) -> &'static [&'static str] {
        carriers(self.tcp)
    }

    fn read(reader: &mut Reader<'_>, tells_carriers: bool) -> Result<Self, DecodeError> {
        let relay = RelayId(reader.array()?);
        let (operator, region) = (Label::read(reader)?, Label::read(reader)?);
        let (seen, load) = (reader.u16()?, reader.u64()?);
        let length = usize::from(reader.u8()?);
        let word =
            relay::Word::from_bytes(reader.bytes(length)?).map_err(|_| DecodeError::Range("relay word"))?;
        let tcp = tells_carriers && reader.u8()? & CARRIER_TCP != 0;
        Ok(Self { relay, operator, region, seen, load, tcp, word })
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.bytes(&self.relay.0);
        self.operator.write(writer);
        self.region.write(writer);
        writer.u16(self.seen);
        writer.u64(self.load);
        let word = self.word.to_bytes();
        writer.u8(word.len() as u8); // at most 112
        writer.bytes(&word);
        writer.u8(if self.tcp { CARRIER_UDP | CARRIER_TCP } else { CARRIER_UDP });
    }
}

/// The names of the transports of a relay: `udp`, and `tcp` if it also forwards over TCP.
#[must_use]
pub const fn carriers(tcp: bool) -> &'static [&'static str] {
    if tcp { &["udp", "tcp"] } else { &["udp"] }
}

impl RelayList {
    /// Reads a list that [`write`](Self::write) wrote.
    ///
    /// # Errors
    /// It is none.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (made, until, flags) = (reader.u64()?, reader.u64()?, reader.u8()?);
        let entry = |reader: &mut Reader<'_>| Listed::read(reader, flags & TELLS_CARRIERS != 0);
        let relays = read_list(reader, MAX_RELAYS, entry)?;
        Ok(Self { made, until, more: flags & MORE_RELAYS != 0, relays })
    }

    /// Writes the list, with at most [`MAX_RELAYS`] relays.
    pub fn write(&self, writer: &mut Writer<'_>) {
        writer.u64(self.made);
        writer.u64(self.until);
        writer.u8(TELLS_CARRIERS | if self.more { MORE_RELAYS } else { 0 });
        let relays = self.relays.iter().take(MAX_RELAYS);
        writer.u8(relays.len() as u8);
        relays.for_each(|relay| relay.write(writer));
    }
}

impl Answer {
    /// Reads an answer from a whole record.
    ///
    /// # Errors
    /// It is none.
    pub fn read(record: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(record);
        let answer = match reader.u8()? {
            0x81 => Self::Epoch { epoch: reader.u32()?, last_holds: reader.u32()? },
            0x82 => Self::Enrolled {
                beat_millis: reader.u32()?,
                passed: read_addresses(&mut reader, 0)?,
                failed: read_list(&mut reader, MAX_ADDRESSES, |reader| {
                    let address = read_address(reader)?;
                    Ok((address, Failure::of(reader.u8()?).ok_or(DecodeError::Range("failure"))?))
                })?,
            },
            0x83 => Self::List(RelayList::read(&mut reader)?),
            0x84 => Self::Heard,
            0x8f => Self::Refused {
                reason: Reason::of(reader.u8()?).ok_or(DecodeError::Range("reason"))?,
                retry: reader.u32()?,
            },
            other => return Err(DecodeError::UnknownType(other)),
        };
        if reader.is_empty() { Ok(answer) } else { Err(DecodeError::Range("length")) }
    }

    /// The bytes of the message as a record.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        to_bytes(MAX_ANSWER_LEN, |writer| match self {
            Self::Epoch { epoch, last_holds } => {
                writer.u8(0x81);
                writer.u32(*epoch);
                writer.u32(*last_holds);
            }
            Self::Enrolled { beat_millis, passed, failed } => {
                writer.u8(0x82);
                writer.u32(*beat_millis);
                write_addresses(writer, passed);
                let failed = failed.iter().take(MAX_ADDRESSES);
                writer.u8(failed.len() as u8);
                failed.for_each(|(address, why)| {
                    write_address(writer, *address);
                    writer.u8(*why as u8);
                });
            }
            Self::List(list) => {
                writer.u8(0x83);
                list.write(writer);
            }
            Self::Heard => writer.u8(0x84),
            Self::Refused { reason, retry } => {
                writer.u8(0x8f);
                writer.u8(*reason as u8);
                writer.u32(*retry);
            }
        })
    }
}

/// The bytes that `write` writes, at most `most`.
fn to_bytes(most: usize, write: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    let mut bytes = vec![0; most];
    let mut writer = Writer::new(&mut bytes);
    write(&mut writer);
    let length = writer.len();
    bytes.truncate(length);
    bytes
}

fn read_addresses(reader: &mut Reader<'_>, least: usize) -> Result<Vec<SocketAddr>, DecodeError> {
    let addresses = read_list(reader, MAX_ADDRESSES, read_address)?;
    let bad = |address: &SocketAddr| {
        let ip = address.ip();
        let mapped = matches!(ip, core::net::IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some());
        address.port() == 0 || ip.is_unspecified() || ip.is_multicast() || mapped
    };
    if addresses.len() < least || addresses.iter().any(bad) {
        return Err(DecodeError::Range("addresses"));
    }
    Ok(addresses)
}

fn write_addresses(writer: &mut Writer<'_>, addresses: &[SocketAddr]) {
    let addresses = addresses.iter().take(MAX_ADDRESSES);
    writer.u8(addresses.len() as u8);
    addresses.for_each(|address| write_address(writer, *address));
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
