//! The header before an IP packet in a session's datagram, and messages between gateways that hold
//! no IP packet.
//!
//! ```text
//! ORDERED    0x10, flow label (3), sequence (4), IP packet
//! UNORDERED  0x11, IP packet
//! SERVES     0x12, part of an announcement (see `serves`)
//! BATCHED    0x13, flow label (3), sequence (4), map (4), IP packet
//! LOSS       0x14, flow label (3), first missing sequence (4), one past the last (4)
//! RELAY      0x19, the bytes of a relay's word (see `byway_wire::relay`)
//! TABLE      0x1a, what another gateway announced (see `forwarded_announcements`)
//! ```
//!
//! | field | meaning |
//! |---|---|
//! | upper half of the first byte | version |
//! | flow label | one direction of a flow; chosen by the entry gateway, not reused soon |
//! | sequence | counts the packets of a label from 0, so that the exit gateway can restore their order |
//! | first bytes 0x15 to 0x18 | not used, because gateways of version 0.1 sent them |

use crate::loss::LossRuleKind;
use byway_wire::{DecodeError, Reader, Writer};

/// The version that is written, in the upper half of the first byte.
pub const ENCAP_VERSION: u8 = 1;
/// Bytes before the IP packet in [`Message::Ordered`].
pub const ORDERED_LEN: usize = 8;
/// Bytes before the IP packet in [`Message::Batched`].
pub const BATCHED_LEN: usize = 12;
/// Bytes before the IP packet in [`Message::Unordered`].
pub const UNORDERED_LEN: usize = 1;

const TYPE_ORDERED: u8 = ENCAP_VERSION << 4;
const TYPE_UNORDERED: u8 = ENCAP_VERSION << 4 | 1;
const TYPE_SERVES: u8 = ENCAP_VERSION << 4 | 2;
const TYPE_BATCHED: u8 = ENCAP_VERSION << 4 | 3;
const TYPE_LOSS: u8 = ENCAP_VERSION << 4 | 4;
const TYPE_RELAY: u8 = ENCAP_VERSION << 4 | 9;
const TYPE_TABLE: u8 = ENCAP_VERSION << 4 | 10;
/// A message of gateways of version 0.1, which is ignored.
pub const TYPE_SPEAKS: u8 = ENCAP_VERSION << 4 | 8;

/// Bytes before an IP packet that is to be put in order, by the rule that finds losses.
#[must_use]
pub const fn header_len(rule: LossRuleKind) -> usize {
    if matches!(rule, LossRuleKind::Batched) { BATCHED_LEN } else { ORDERED_LEN }
}

/// Identifies one direction of a flow between two gateways: 24 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label(u32);

impl Label {
    /// The label with the lower 24 bits of `number`.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        Self(number & 0x00ff_ffff)
    }

    /// The number of the label.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }

    /// The label to give next.
    #[must_use]
    pub const fn next(self) -> Self {
        Self::new(self.0.wrapping_add(1))
    }
}

/// The content of a datagram between gateways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// An IP packet that the exit puts in order with the other packets of its label.
    Ordered {
        /// The label of the packet's flow and direction.
        label: Label,
        /// The sequence number of the packet under its label.
        sequence: u32,
        /// The IP packet.
        packet: &'a [u8],
    },
    /// An IP packet whose order does not matter.
    Unordered {
        /// The IP packet.
        packet: &'a [u8],
    },
    /// A part of an announcement of served hosts.
    Serves {
        /// The part as bytes, for
        /// [`serves::AnnouncementPart::read`](crate::serves::AnnouncementPart::read).
        part: &'a [u8],
    },
    /// A packet as in [`Ordered`](Self::Ordered), with a map of the packets of its label that took
    /// the same path (HIR, 7.3).
    Batched {
        /// The label of the packet's flow and direction.
        label: Label,
        /// The sequence number of the packet under its label.
        sequence: u32,
        /// Bit `n`: packet `sequence - 1 - n` took the path that this one took.
        map: u32,
        /// The IP packet.
        packet: &'a [u8],
    },
    /// Packets that the exit holds for lost. It is a loss indication (Harp, III.D).
    Loss {
        /// The label: the flow and its direction.
        label: Label,
        /// First that is missing.
        first: u32,
        /// One more than the last missing sequence number.
        end: u32,
    },
    /// The relay beside the gateway, with a relay word for the peer.
    Relay {
        /// The relay word in bytes, for [`Word::from_bytes`](byway_wire::relay::Word::from_bytes).
        word: &'a [u8],
    },
    /// A part of another gateway's announcement, passed on.
    Table {
        /// The table as bytes, for
        /// [`Table::read`](crate::forwarded_announcements::ForwardedPart::read).
        table: &'a [u8],
    },
}

impl<'a> Message<'a> {
    /// Reads a datagram.
    ///
    /// # Errors
    /// What is wrong with it; other versions and kinds are of an unknown type.
    pub fn read(datagram: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(datagram);
        let kind = reader.u8()?;
        match kind {
            TYPE_UNORDERED => return packet(&mut reader).map(|packet| Self::Unordered { packet }),
            TYPE_SERVES => return Ok(Self::Serves { part: reader.take_rest() }),
            TYPE_RELAY => return Ok(Self::Relay { word: reader.take_rest() }),
            TYPE_TABLE => return Ok(Self::Table { table: reader.take_rest() }),
            TYPE_ORDERED | TYPE_BATCHED | TYPE_LOSS => {}
            _ => return Err(DecodeError::UnknownType(kind)),
        }
        let [high, middle, low] = reader.array()?;
        let label = Label(u32::from_be_bytes([0, high, middle, low]));
        let sequence = reader.u32()?;
        match kind {
            TYPE_ORDERED => Ok(Self::Ordered { label, sequence, packet: packet(&mut reader)? }),
            TYPE_BATCHED => {
                let map = reader.u32()?;
                Ok(Self::Batched { label, sequence, map, packet: packet(&mut reader)? })
            }
            _ => {
                let end = reader.u32()?;
                let is_range = end.wrapping_sub(sequence) as i32 > 0;
                if !is_range || !reader.is_empty() {
                    return Err(DecodeError::Range("missing packets"));
                }
                Ok(Self::Loss { label, first: sequence, end })
            }
        }
    }

    /// Writes the datagram.
    pub fn write(&self, writer: &mut Writer<'_>) {
        self.write_header(writer);
        match *self {
            Self::Ordered { packet: bytes, .. }
            | Self::Unordered { packet: bytes }
            | Self::Batched { packet: bytes, .. }
            | Self::Serves { part: bytes }
            | Self::Relay { word: bytes }
            | Self::Table { table: bytes } => writer.bytes(bytes),
            Self::Loss { .. } => {}
        }
    }

    /// Writes the header before a packet, into room in the packet's own buffer.
    pub fn write_header(&self, writer: &mut Writer<'_>) {
        match *self {
            Self::Ordered { label, sequence, .. } => {
                writer.u32(u32::from(TYPE_ORDERED) << 24 | label.0);
                writer.u32(sequence);
            }
            Self::Unordered { .. } => writer.u8(TYPE_UNORDERED),
            Self::Serves { .. } => writer.u8(TYPE_SERVES),
            Self::Relay { .. } => writer.u8(TYPE_RELAY),
            Self::Table { .. } => writer.u8(TYPE_TABLE),
            Self::Batched { label, sequence, map, .. } => {
                writer.u32(u32::from(TYPE_BATCHED) << 24 | label.0);
                writer.u32(sequence);
                writer.u32(map);
            }
            Self::Loss { label, first, end } => {
                writer.u32(u32::from(TYPE_LOSS) << 24 | label.0);
                writer.u32(first);
                writer.u32(end);
            }
        }
    }

    /// Whether a datagram takes the path with the least delay. True for IP packets whose order does
    /// not matter (UNORDERED) and for loss reports (LOSS). Other datagrams take the path with the
    /// smallest part of its congestion window in flight.
    #[must_use]
    pub fn is_urgent(datagram: &[u8]) -> bool {
        matches!(datagram.first(), Some(&(TYPE_UNORDERED | TYPE_LOSS)))
    }
}

/// A packet, which has at least a byte.
fn packet<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], DecodeError> {
    if reader.is_empty() { Err(DecodeError::Truncated) } else { Ok(reader.take_rest()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn written(message: &Message<'_>) -> Vec<u8> {
        let mut buffer = [0; 300];
        let mut writer = Writer::new(&mut buffer);
        message.write(&mut writer);
        assert!(!writer.overflowed());
        writer.written().to_vec()
    }

    #[test]
    fn in_hex() {
        let (label, sequence, packet) = (Label::new(0xff0a_0b0c), 0x0102_0304, &b"IP"[..]);
        let frozen: [(Message<'_>, &[u8]); 7] = [
            (Message::Ordered { label, sequence, packet }, &[0x10, 10, 11, 12, 1, 2, 3, 4, b'I', b'P']),
            (Message::Unordered { packet }, &[0x11, b'I', b'P']),
            (Message::Serves { part: &[1, 2] }, &[0x12, 1, 2]),
            (
                Message::Batched { label, sequence, map: 0x8000_0001, packet },
                &[0x13, 10, 11, 12, 1, 2, 3, 4, 0x80, 0, 0, 1, b'I', b'P'],
            ),
            (
                Message::Loss { label, first: u32::MAX, end: 1 },
                &[0x14, 10, 11, 12, 255, 255, 255, 255, 0, 0, 0, 1],
            ),
            (Message::Relay { word: &[1, 2] }, &[0x19, 1, 2]),
            (Message::Table { table: &[1, 2] }, &[0x1a, 1, 2]),
        ];
        for (message, bytes) in frozen {
            assert_eq!(written(&message), bytes);
            assert_eq!(Message::read(bytes), Ok(message));
        }
        assert_eq!((ORDERED_LEN, UNORDERED_LEN, BATCHED_LEN), (8, 1, 12));
        let urgent: Vec<bool> = frozen.iter().map(|(_, bytes)| Message::is_urgent(bytes)).collect();
        assert_eq!(urgent, [false, true, false, false, true, false, false]);
    }

    #[test]
    fn what_is_none_of_these_is_refused() {
        for first in [0x00, 0x0f, 0x15, 0x18, 0x1f, 0x20, 0xff] {
            assert_eq!(Message::read(&[first; 20]), Err(DecodeError::UnknownType(first)));
        }
        for cut in [
            &[][..],
            &[0x10, 0, 0, 0, 0, 0, 0, 0],
            &[0x11],
            &[0x13, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            &[0x14, 0, 0],
        ] {
            assert_eq!(Message::read(cut), Err(DecodeError::Truncated), "{cut:?}");
        }
        let empty = [0x14, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 5];
        assert_eq!(Message::read(&empty), Err(DecodeError::Range("missing packets")));
        assert_eq!(
            Message::read(&[0x14, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 6, 0]),
            Err(DecodeError::Range("missing packets"))
        );
        assert_eq!(Label::new(0x00ff_ffff).next(), Label::new(0));
    }

    proptest! {
        #[test]
        fn what_is_read_is_written_the_same(bytes in prop::collection::vec(any::<u8>(), 0..64), kind in 0x10u8..0x1b) {
            let bytes: Vec<u8> = [kind].into_iter().chain(bytes).collect();
            if let Ok(message) = Message::read(&bytes) {
                prop_assert_eq!(written(&message), bytes);
            }
        }
    }
}
