//! The types that byway's other crates exchange: time, identifiers, packet formats, and the
//! interface of a protocol state machine ([`machine`]).
//!
//! This crate uses no socket and no clock.
//!
//! | what | where |
//! |---|---|
//! | packets, frames, their codec | [`packet`], [`frame`], [`codec`] |
//! | datagrams over a TCP connection | [`framing`] |
//! | relays: envelopes, credentials | [`relay`] |
//! | relays and their registries: heartbeats | [`heartbeat`] |
//! | time, identifiers, the contract of machines | [`time`], [`id`], [`machine`] |
//! | rate limits, shares of a table | [`rate_meter`], [`fair_share`] |
//! | CIDR prefixes, the Internet checksum | [`cidr`], [`checksum`] |
//! | whose addresses are taken for one host's | [`host_network`] |
//! | text with a checksum, bytes that must not be seen, units | [`checked_text`], [`secret`], [`units`] |
//! | texts of other hosts on a terminal | [`printable`] |
//! | seeded numbers, days and months | [`seeded_random`], [`date`] |
#![no_std]

extern crate alloc;

pub mod checked_text;
pub mod checksum;
pub mod cidr;
pub mod codec;
pub mod date;
pub mod fair_share;
pub mod frame;
pub mod framing;
pub mod heartbeat;
pub mod host_network;
pub mod id;
pub mod machine;
pub mod packet;
pub mod printable;
pub mod rate_meter;
pub mod relay;
pub mod secret;
pub mod seeded_random;
pub mod socket_number;
pub mod time;
pub mod units;

pub use cidr::{Prefix, PrefixError};
pub use codec::{DecodeError, Reader, Writer};
pub use host_network::NetworkPrefix;
pub use id::{ConnectionId, ObjectId, PathId, StreamId};
pub use machine::{
    ConnectionChange, Datagram, Dscp, Ecn, Input, LinkChange, Machine, RoomChange, SendError, SendErrorKind,
    TcpRequest, Transmit, TransmitBuffer,
};
pub use printable::Printable;
pub use rate_meter::Meter;
pub use socket_number::Local;
pub use time::{Duration, Instant};
