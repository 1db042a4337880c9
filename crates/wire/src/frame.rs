//! The encrypted content of a packet is a sequence of frames. Integers are variable-length (RFC
//! 9000 section 16) unless a size in bytes is given. Without a length field, the frame extends to
//! the end of the packet.
//!
//! | type | frame | fields |
//! |---|---|---|
//! | 00 | PADDING | (zero bytes to the end of the packet) |
//! | 01 | PING | |
//! | 02 | ACK | entry count, entries: see [`ack`] |
//! | 03 | PNACK | path, range count, ranges (distance from the end of the range before, length - 1) |
//! | 04, 05 | SNACK of a stream, an object | id, range count, ranges (as above, in bytes) |
//! | 08-0b | STREAM | id, offset, \[length if bit 0\], bytes; bit 1: they end the stream |
//! | 0c-0f | OBJECT | id, offset, \[length if bit 0\], bytes; bit 1: they end the object |
//! | 10, 11 | DATAGRAM | \[length if bit 0\], bytes |
//! | 12 | MAX_STREAMS | streams that the peer may open in all (RFC 9000 section 19.11) |
//! | 14 | MAX_DATA | bytes that the connection may send in all |
//! | 15 | MAX_STREAM_DATA | stream, bytes |
//! | 16 | RESET_STREAM | stream, code |
//! | 17 | STOP_SENDING | stream, code |
//! | 18 | CLOSE | code, length, UTF-8 reason |
//! | 19, 1a | PATH_CHALLENGE, PATH_RESPONSE | challenge (8) |
//! | 1b | PATH_DROPPED | path: its sender will not use it again |
//! | 1c, 1d | PATH_HINT | path, smoothed RTT in µs, \[delay limit (4) if bit 0\]: see [`PathHint`] |
//! | 1e | RELAY_OFFER | offer, address, grant id (4): see [`RelayOffer`] |
//! | 1f | RELAY_CONSENT | offer, address, length, consent bytes |
//! | 20 | RELAY_REFUSED | offer |
//! | 22, 23 | ADDRESSES | token (8), count (1: 0 to 8), addresses; bit 0: the answer to one: see [`AddressList`] |
//! | | address in a frame | length in 1 byte (4 or 16), IP address, port in 2 bytes |

pub mod ack;
mod frame_type;
mod ranges;

use crate::codec::{DecodeError, Reader, Writer, varint_len};
use crate::id::{ObjectId, PathId, StreamId};
use crate::packet::MAX_DATAGRAM;
use ack::AckEntries;
use core::net::{IpAddr, SocketAddr};
use frame_type::{
    FRAME_ACK, FRAME_ADDRESSES, FRAME_CLOSE, FRAME_DATAGRAM, FRAME_MAX_DATA, FRAME_MAX_STREAM_DATA,
    FRAME_MAX_STREAMS, FRAME_OBJECT, FRAME_PADDING, FRAME_PATH_CHALLENGE, FRAME_PATH_DROPPED,
    FRAME_PATH_HINT, FRAME_PATH_RESPONSE, FRAME_PING, FRAME_PNACK, FRAME_RELAY_CONSENT, FRAME_RELAY_OFFER,
    FRAME_RELAY_REFUSED, FRAME_RESET_STREAM, FRAME_SNACK_OBJECT, FRAME_SNACK_STREAM, FRAME_STOP_SENDING,
    FRAME_STREAM,
};
pub use ranges::{MAX_RANGES, Ranges, write_pnack, write_snack_object, write_snack_stream};

const FLAG_LENGTH: u8 = 0x01;
const FLAG_FIN: u8 = 0x02;

/// The most bytes that the header of an OBJECT frame without a length takes: type, id below 2^30,
/// offset.
pub const OBJECT_HEADER_MAX: usize = 1 + 4 + 8;
/// Object numbers are at most this, so that frame headers stay small.
pub const MAX_OBJECT_ID: u32 = (1 << 30) - 1;

/// One frame, borrowed from the packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// Zero bytes up to the end of the packet.
    Padding,
    /// Asks for an acknowledgment.
    Ping,
    /// The packets that arrived on the peer's paths (ACK).
    Ack(AckEntries<'a>),
    /// Packet numbers that the receiver misses on one path, and believes lost (PNACK).
    Pnack {
        /// The path, by its sender's number.
        path: PathId,
        /// Missing packet numbers, ascending.
        missing: Ranges<'a>,
    },
    /// Holes in a stream that are older than the path RTTs explain.
    SnackStream {
        /// The stream that has holes.
        id: StreamId,
        /// Missing bytes, ascending.
        missing: Ranges<'a>,
    },
    /// Holes in an object that are older than the path RTTs explain.
    SnackObject {
        /// The object that has holes.
        id: ObjectId,
        /// Missing bytes, ascending.
        missing: Ranges<'a>,
    },
    /// Bytes of a stream.
    Stream(Stream<'a>),
    /// Bytes of an object.
    Object(Object<'a>),
    /// A message that is sent once and never again.
    Datagram(&'a [u8]),
    /// The peer may have opened this many streams in all, namely those with a lower number, counted
    /// from 0.
    MaxStreams(u64),
    /// The most distinct stream and object bytes that the connection may send in all.
    MaxData(u64),
    /// The most bytes that the stream may send in all.
    MaxStreamData {
        /// The number of the stream.
        id: StreamId,
        /// Offset that may not be passed.
        limit: u64,
    },
    /// The sender of a stream gave up.
    ResetStream {
        /// The number of the stream.
        id: StreamId,
        /// The application's code for the reason.
        code: u64,
    },
    /// The receiver of a stream does not want more of its bytes.
    StopSending {
        /// The number of the stream.
        id: StreamId,
        /// The application's code for the reason.
        code: u64,
    },
    /// The sender ends the connection.
    Close {
        /// Zero: all is well.
        code: u64,
        /// The reason, for people.
        reason: &'a str,
    },
    /// Asks the peer to return these bytes over the path on which they arrived.
    PathChallenge([u8; 8]),
    /// The bytes of a PATH_CHALLENGE, returned.
    PathResponse([u8; 8]),
    /// The sender of this frame will not use its path with this number again.
    PathDropped(PathId),
    /// A hint of a path's sender for the receiver.
    PathHint(PathHint),
    /// The sender would like to use a relay.
    RelayOffer(RelayOffer),
    /// The receiver greeted the relay, and consents to be reached through it.
    RelayConsent(RelayConsent<'a>),
    /// The receiver could not greet the relay.
    RelayRefused(u32),
    /// Outside addresses of the peer.
    Addresses(AddressList<'a>),
}

/// Bytes of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream<'a> {
    /// The stream that the bytes are of.
    pub id: StreamId,
    /// The offset of the bytes in the stream.
    pub offset: u64,
    /// The bytes of the stream.
    pub data: &'a [u8],
    /// Whether these bytes are the last of the stream.
    pub fin: bool,
}

/// Bytes of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object<'a> {
    /// The object that the bytes are of.
    pub id: ObjectId,
    /// The offset of the bytes in the object.
    pub offset: u64,
    /// The bytes of the object.
    pub data: &'a [u8],
    /// Whether these bytes are the last of the object.
    pub fin: bool,
}

/// A hint of a path's sender for the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathHint {
    /// The path that the hint is about.
    pub path: PathId,
    /// Smoothed RTT in µs: a quarter of it is how long a hole may stay before it is a loss.
    pub srtt_micros: u64,
    /// A limit in µs of the apparent delay: the receiver's clock minus the packet's stamp, modulo
    /// 2^32. The receiver sends an ACK at once if the delay crosses the limit, because delay-based
    /// congestion controllers need this event early.
    pub delay_limit: Option<u32>,
}

/// A relay that the sender would like to use. The receiver greets it and answers with a consent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelayOffer {
    /// The sender's number for the offer.
    pub offer: u32,
    /// The address of the relay.
    pub relay: SocketAddr,
    /// The id of the grant under which the sender will use the relay. The consent is good for this
    /// grant only.
    pub grant: u32,
}

/// A relay's proof that the receiver consented to be reached through it; opaque to the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelayConsent<'a> {
    /// The number of the offer that this consent answers.
    pub offer: u32,
    /// The receiver's address as the relay saw it.
    pub address: SocketAddr,
    /// Enclosed by the sender in each packet through the relay (format: [`crate::relay`]).
    pub consent: &'a [u8],
}

/// The most addresses in a frame ADDRESSES.
pub const MAX_LISTED_ADDRESSES: usize = 8;

/// Addresses at which relays see the host. Both hosts send to the peer's at about the same time, so
/// that the NATs and firewalls of both let packets in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressList<'a> {
    /// Whether this answers a list of the peer.
    pub is_answer: bool,
    /// The token in the packets that open a NAT for these addresses.
    pub token: [u8; 8],
    /// The encoded addresses of the frame, behind their number.
    encoded: &'a [u8],
}

impl<'a> AddressList<'a> {
    /// A list of addresses that [`write`](Self::write_addresses) wrote.
    #[must_use]
    pub const fn new(is_answer: bool, token: [u8; 8], encoded: &'a [u8]) -> Self {
        Self { is_answer, token, encoded }
    }

    /// Writes addresses, at most [`MAX_LISTED_ADDRESSES`], for [`new`](Self::new).
    pub fn write_addresses(writer: &mut Writer<'_>, addresses: &[SocketAddr]) {
        let addresses = addresses.iter().take(MAX_LISTED_ADDRESSES);
        writer.u8(addresses.len() as u8);
        addresses.for_each(|address| write_address(writer, *address));
    }

    /// The addresses.
    pub fn addresses(&self) -> impl Iterator<Item = SocketAddr> + 'a {
        let mut reader = Reader::new(self.encoded);
        let count = reader.u8().unwrap_or_default();
        (0..count).map_while(move |_| read_address(&mut reader).ok())
    }

    fn read(reader: &mut Reader<'a>, is_answer: bool) -> Result<Self, DecodeError> {
        let token = reader.array()?;
        let mut list = reader.clone();
        let count = list.u8()?;
        if usize::from(count) > MAX_LISTED_ADDRESSES {
            return Err(DecodeError::Range("number of addresses"));
        }
        for _ in 0..count {
            read_address(&mut list)?;
        }
        let encoded = reader.bytes(reader.remaining() - list.remaining())?;
        Ok(Self { is_answer, token, encoded })
    }
}

/// Iterates over the frames of a packet. Stops after the first error.
#[derive(Clone, Debug)]
pub struct Frames<'a> {
    reader: Reader<'a>,
    /// Phantom bytes of objects that were not read yet. `None`: the packet has all bytes.
    phantom: Option<usize>,
    failed: bool,
}

impl<'a> Frames<'a> {
    /// The frames in the sealed part of a packet, after the stamp.
    #[must_use]
    pub const fn new(payload: &'a [u8]) -> Self {
        Self { reader: Reader::new(payload), phantom: None, failed: false }
    }

    /// Reads the frames of a packet in which the bytes of objects, `phantom` in all, are only a
    /// length ([`Writer::skip`]). They read as zeros.
    #[must_use]
    pub const fn with_phantom(payload: &'a [u8], phantom: usize) -> Self {
        Self { reader: Reader::new(payload), phantom: Some(phantom), failed: false }
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Result<Frame<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed || self.reader.is_empty() {
            return None;
        }
        let frame = read(&mut self.reader, &mut self.phantom);
        self.failed = frame.is_err();
        Some(frame)
    }
}

fn read<'a>(reader: &mut Reader<'a>, phantom: &mut Option<usize>) -> Result<Frame<'a>, DecodeError> {
    let kind = reader.u8()?;
    Ok(match kind {
        FRAME_PADDING => {
            reader.take_rest();
            Frame::Padding
        }
        FRAME_PING => Frame::Ping,
        FRAME_ACK => Frame::Ack(AckEntries::read(reader)?),
        FRAME_PNACK => Frame::Pnack { path: read_path(reader)?, missing: Ranges::read(reader)? },
        FRAME_SNACK_STREAM => Frame::SnackStream { id: read_stream(reader)?, missing: Ranges::read(reader)? },
        FRAME_SNACK_OBJECT => Frame::SnackObject { id: read_object(reader)?, missing: Ranges::read(reader)? },
        0x08..=0x0b => {
            let (id, offset) = (read_stream(reader)?, reader.varint()?);
            let data = read_data(reader, kind, offset)?;
            Frame::Stream(Stream { id, offset, data, fin: kind & FLAG_FIN != 0 })
        }
        0x0c..=0x0f => {
            let (id, offset) = (read_object(reader)?, reader.varint()?);
            let data = match phantom {
                Some(left) => read_phantom(reader, kind, offset, left)?,
                None => read_data(reader, kind, offset)?,
            };
            Frame::Object(Object { id, offset, data, fin: kind & FLAG_FIN != 0 })
        }
        0x10 | 0x11 => Frame::Datagram(read_data(reader, kind, 0)?),
        FRAME_MAX_STREAMS => Frame::MaxStreams(reader.varint()?),
        FRAME_MAX_DATA => Frame::MaxData(reader.varint()?),
        FRAME_MAX_STREAM_DATA => Frame::MaxStreamData { id: read_stream(reader)?, limit: reader.varint()? },
        FRAME_RESET_STREAM => Frame::ResetStream { id: read_stream(reader)?, code: reader.varint()? },
        FRAME_STOP_SENDING => Frame::StopSending { id: read_stream(reader)?, code: reader.varint()? },
        FRAME_CLOSE => {
            let code = reader.varint()?;
            let reason =
                core::str::from_utf8(read_counted(reader)?).map_err(|_| DecodeError::Range("reason"))?;
            Frame::Close { code, reason }
        }
        FRAME_PATH_CHALLENGE => Frame::PathChallenge(reader.array()?),
        FRAME_PATH_RESPONSE => Frame::PathResponse(reader.array()?),
        FRAME_PATH_DROPPED => Frame::PathDropped(read_path(reader)?),
        0x1c | 0x1d => Frame::PathHint(PathHint {
            path: read_path(reader)?,
            srtt_micros: reader.varint()?,
            delay_limit: if kind & FLAG_LENGTH != 0 { Some(reader.u32()?) } else { None },
        }),
        FRAME_RELAY_OFFER => Frame::RelayOffer(RelayOffer {
            offer: reader.varint_u32("offer")?,
            relay: read_address(reader)?,
            grant: reader.u32()?,
        }),
        FRAME_RELAY_CONSENT => Frame::RelayConsent(RelayConsent {
            offer: reader.varint_u32("offer")?,
            address: read_address(reader)?,
            consent: read_counted(reader)?,
        }),
        FRAME_RELAY_REFUSED => Frame::RelayRefused(reader.varint_u32("offer")?),
        0x22 | 0x23 => Frame::Addresses(AddressList::read(reader, kind & FLAG_LENGTH != 0)?),
        unknown => return Err(DecodeError::UnknownType(unknown)),
    })
}

impl Frame<'_> {
    /// Writes the frame. A frame that carries bytes is written with a length. [`write_stream`] and
    /// its siblings can also write the last frame of a packet, without a length. To build an ACK
    /// entry by entry, use [`ack::AckWriter`].
    pub fn write(&self, writer: &mut Writer<'_>) {
        match self {
            Self::Padding => writer.u8(FRAME_PADDING),
            Self::Ping => writer.u8(FRAME_PING),
            Self::Ack(entries) => {
                writer.u8(FRAME_ACK);
                entries.write(writer);
            }
            Self::Pnack { path, missing } => {
                writer.u8(FRAME_PNACK);
                writer.varint(path.0.into());
                missing.write(writer);
            }
            Self::SnackStream { id, missing } => {
                writer.u8(FRAME_SNACK_STREAM);
                writer.varint(id.0.into());
                missing.write(writer);
            }
            Self::SnackObject { id, missing } => {
                writer.u8(FRAME_SNACK_OBJECT);
                writer.varint(id.0.into());
                missing.write(writer);
            }
            Self::Stream(stream) => write_stream(writer, stream, true),
            Self::Object(object) => write_object(writer, object, true),
            Self::Datagram(data) => write_datagram(writer, data, true),
            Self::MaxStreams(limit) => {
                writer.u8(FRAME_MAX_STREAMS);
                writer.varint(*limit);
            }
            Self::MaxData(limit) => {
                writer.u8(FRAME_MAX_DATA);
                writer.varint(*limit);
            }
            Self::MaxStreamData { id, limit } => write_pair(writer, FRAME_MAX_STREAM_DATA, *id, *limit),
            Self::ResetStream { id, code } => write_pair(writer, FRAME_RESET_STREAM, *id, *code),
            Self::StopSending { id, code } => write_pair(writer, FRAME_STOP_SENDING, *id, *code),
            Self::Close { code, reason } => {
                writer.u8(FRAME_CLOSE);
                writer.varint(*code);
                write_counted(writer, reason.as_bytes());
            }
            Self::PathChallenge(data) => {
                writer.u8(FRAME_PATH_CHALLENGE);
                writer.bytes(data);
            }
            Self::PathResponse(data) => {
                writer.u8(FRAME_PATH_RESPONSE);
                writer.bytes(data);
            }
            Self::PathDropped(path) => {
                writer.u8(FRAME_PATH_DROPPED);
                writer.varint(path.0.into());
            }
            Self::PathHint(hint) => {
                writer.u8(FRAME_PATH_HINT | u8::from(hint.delay_limit.is_some()));
                writer.varint(hint.path.0.into());
                writer.varint(hint.srtt_micros);
                if let Some(limit) = hint.delay_limit {
                    writer.u32(limit);
                }
            }
            Self::RelayOffer(offer) => {
                writer.u8(FRAME_RELAY_OFFER);
                writer.varint(offer.offer.into());
                write_address(writer, offer.relay);
                writer.u32(offer.grant);
            }
            Self::RelayConsent(consent) => {
                writer.u8(FRAME_RELAY_CONSENT);
                writer.varint(consent.offer.into());
                write_address(writer, consent.address);
                write_counted(writer, consent.consent);
            }
            Self::RelayRefused(offer) => {
                writer.u8(FRAME_RELAY_REFUSED);
                writer.varint((*offer).into());
            }
            Self::Addresses(list) => {
                writer.u8(FRAME_ADDRESSES | u8::from(list.is_answer));
                writer.bytes(&list.token);
                writer.bytes(list.encoded);
            }
        }
    }

    /// Whether a packet with this frame must be acknowledged.
    #[must_use]
    pub const fn is_eliciting(&self) -> bool {
        !matches!(
            self,
            Self::Padding
                | Self::Ack(_)
                | Self::Pnack { .. }
                | Self::SnackStream { .. }
                | Self::SnackObject { .. }
                | Self::Close { .. }
        )
    }
}

/// Bytes of a STREAM header, with or without a length.
#[must_use]
pub const fn stream_header_len(id: StreamId, offset: u64, length: Option<usize>) -> usize {
    data_header_len(id.0, offset, length)
}

/// Bytes of an OBJECT header, with or without a length.
#[must_use]
pub const fn object_header_len(id: ObjectId, offset: u64, length: Option<usize>) -> usize {
    data_header_len(id.0, offset, length)
}

const fn data_header_len(id: u32, offset: u64, length: Option<usize>) -> usize {
    let counted = match length {
        Some(length) => varint_len(length as u64),
        None => 0,
    };
    1 + varint_len(id as u64) + varint_len(offset) + counted
}

/// Writes a STREAM frame; without a length it must be the last of its packet.
pub fn write_stream(writer: &mut Writer<'_>, stream: &Stream<'_>, has_length: bool) {
    write_stream_header(
        writer,
        stream.id,
        stream.offset,
        has_length.then_some(stream.data.len()),
        stream.fin,
    );
    writer.bytes(stream.data);
}

/// Writes an OBJECT frame; without a length it must be the last of its packet.
pub fn write_object(writer: &mut Writer<'_>, object: &Object<'_>, has_length: bool) {
    write_object_header(
        writer,
        object.id,
        object.offset,
        has_length.then_some(object.data.len()),
        object.fin,
    );
    writer.bytes(object.data);
}

/// Writes the header of a STREAM frame, so that the caller can write the bytes itself.
pub fn write_stream_header(
    writer: &mut Writer<'_>,
    id: StreamId,
    offset: u64,
    length: Option<usize>,
    fin: bool,
) {
    write_data_header(writer, FRAME_STREAM, (id.0, offset), length, fin);
}

/// Writes the header of an OBJECT frame, so that the caller can write the bytes itself.
pub fn write_object_header(
    writer: &mut Writer<'_>,
    id: ObjectId,
    offset: u64,
    length: Option<usize>,
    fin: bool,
) {
    write_data_header(writer, FRAME_OBJECT, (id.0, offset), length, fin);
}

fn write_data_header(writer: &mut Writer<'_>, kind: u8, place: (u32, u64), length: Option<usize>, fin: bool) {
    writer.u8(kind | if length.is_some() { FLAG_LENGTH } else { 0 } | if fin { FLAG_FIN } else { 0 });
    writer.varint(place.0.into());
    writer.varint(place.1);
    if let Some(length) = length {
        writer.varint(length as u64);
    }
}

/// Writes a DATAGRAM frame; without a length it must be the last of its packet.
pub fn write_datagram(writer: &mut Writer<'_>, data: &[u8], has_length: bool) {
    writer.u8(FRAME_DATAGRAM | u8::from(has_length));
    if has_length {
        writer.varint(data.len() as u64);
    }
    writer.bytes(data);
}

fn write_pair(writer: &mut Writer<'_>, kind: u8, id: StreamId, value: u64) {
    writer.u8(kind);
    writer.varint(id.0.into());
    writer.varint(value);
}

fn read_path(reader: &mut Reader<'_>) -> Result<PathId, DecodeError> {
    Ok(PathId(reader.varint_u32("path")?))
}

fn read_stream(reader: &mut Reader<'_>) -> Result<StreamId, DecodeError> {
    Ok(StreamId(reader.varint_u32("stream")?))
}

fn read_object(reader: &mut Reader<'_>) -> Result<ObjectId, DecodeError> {
    match reader.varint_u32("object")? {
        id @ 0..=MAX_OBJECT_ID => Ok(ObjectId(id)),
        _ => Err(DecodeError::Range("object")),
    }
}

fn read_data<'a>(reader: &mut Reader<'a>, kind: u8, offset: u64) -> Result<&'a [u8], DecodeError> {
    let data = if kind & FLAG_LENGTH != 0 { read_counted(reader)? } else { reader.take_rest() };
    if offset + data.len() as u64 > crate::codec::VARINT_MAX {
        Err(DecodeError::Range("offset"))
    } else {
        Ok(data)
    }
}

/// Reads data of which only the length is in the packet. `left` is the number of missing bytes that
/// are not read yet.
fn read_phantom(
    reader: &mut Reader<'_>,
    kind: u8,
    offset: u64,
    left: &mut usize,
) -> Result<&'static [u8], DecodeError> {
    static ZERO_BYTES: [u8; MAX_DATAGRAM] = [0; MAX_DATAGRAM];
    let length = match kind & FLAG_LENGTH {
        0 if !reader.is_empty() => return Err(DecodeError::Range("length")),
        0 => *left,
        _ => usize::try_from(reader.varint()?).map_err(|_| DecodeError::Truncated)?,
    };
    *left = left.checked_sub(length).ok_or(DecodeError::Truncated)?;
    if offset + length as u64 > crate::codec::VARINT_MAX {
        return Err(DecodeError::Range("offset"));
    }
    ZERO_BYTES.get(..length).ok_or(DecodeError::Truncated)
}

fn read_counted<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], DecodeError> {
    let length = usize::try_from(reader.varint()?).map_err(|_| DecodeError::Truncated)?;
    reader.bytes(length)
}

fn write_counted(writer: &mut Writer<'_>, bytes: &[u8]) {
    writer.varint(bytes.len() as u64);
    writer.bytes(bytes);
}

/// Reads an address. It is its length in 1 byte (4 or 16), the IP address, and the port in 2 bytes.
pub fn read_address(reader: &mut Reader<'_>) -> Result<SocketAddr, DecodeError> {
    let ip: IpAddr = match reader.u8()? {
        4 => reader.array::<4>()?.into(),
        16 => reader.array::<16>()?.into(),
        _ => return Err(DecodeError::Range("address length")),
    };
    Ok(SocketAddr::new(ip, reader.u16()?))
}

/// Writes an address in the form that [`read_address`] reads.
pub fn write_address(writer: &mut Writer<'_>, address: SocketAddr) {
    match address.ip() {
        IpAddr::V4(ip) => {
            writer.u8(4);
            writer.bytes(&ip.octets());
        }
        IpAddr::V6(ip) => {
            writer.u8(16);
            writer.bytes(&ip.octets());
        }
    }
    writer.u16(address.port());
}

#[cfg(test)]
mod tests;
