//! What stands before an IP packet, or instead of one, in a datagram of a session.
//!
//! ```text
//! ORDERED    0x10, flow label (3), sequence (4), IP packet
//! UNORDERED  0x11, IP packet
//! SERVES     0x12, part of an announcement (see `serves`)
//! BATCHED    0x13, flow label (3), sequence (4), map (4), IP packet
//! LOSS       0x14, flow label (3), first missing sequence (4), one past the last (4)
//! LABELLED   0x15, flow label (3), IP packet
//! KNOWN      0x16, flow label (3), generation (1), proof (2)
//! UNKNOWN    0x17, flow label (3), generation (1)
//! SPEAKS     0x18, what the sender understands: bits in bytes, of which there is at least one and may be more in time
//! ```
//!
//! Where there is a label, an IP packet may be an example, or have [short headers](crate::compact), if its receiver has said that it
//! understands that. KNOWN and UNKNOWN are about examples.
//!
//! The upper half of the first byte is the version. Labels are given by the entry gateway, to one direction of a flow each, and
//! not again soon. The sequence counts the packets of a label from 0; it is the gateway's own, so that the exit orders what the
//! entry sent, and retransmissions of the host are new packets. The session's sealing and replay protection stand around all of it.

use crate::compact::Generation;
use crate::loss::Rule;
use byway_wire::{DecodeError, Reader, Writer};

/// The version that is written, in the upper half of the first byte.
pub const VERSION: u8 = 1;
/// Bytes before the IP packet in [`Message::Ordered`].
pub const ORDERED_LEN: usize = 8;
/// Bytes before the IP packet in [`Message::Batched`].
pub const BATCHED_LEN: usize = 12;
/// Bytes before the IP packet in [`Message::Unordered`].
pub const UNORDERED_LEN: usize = 1;
/// Bytes before the IP packet in [`Message::Labelled`].
pub const LABELLED_LEN: usize = 4;
/// The first byte of [`Message::Speaks`]: short headers and examples.
pub const COMPACT: u8 = 1;

const ORDERED: u8 = VERSION << 4;
const UNORDERED: u8 = VERSION << 4 | 1;
const SERVES: u8 = VERSION << 4 | 2;
const BATCHED: u8 = VERSION << 4 | 3;
const LOSS: u8 = VERSION << 4 | 4;
const LABELLED: u8 = VERSION << 4 | 5;
const KNOWN: u8 = VERSION << 4 | 6;
const UNKNOWN: u8 = VERSION << 4 | 7;
const SPEAKS: u8 = VERSION << 4 | 8;

/// Bytes before an IP packet that is to be put in order, by the rule that finds losses.
#[must_use]
pub const fn header_len(rule: Rule) -> usize {
    if matches!(rule, Rule::Batched) { BATCHED_LEN } else { ORDERED_LEN }
}

/// The name of one direction of a flow between two gateways, 24 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label(u32);

impl Label {
    /// The label with the lower 24 bits of `number`.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        Self(number & 0x00ff_ffff)
    }

    /// Its number.
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

/// What a datagram holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// An IP packet to be put in order among those of its label.
    Ordered {
        /// Its flow and direction.
        label: Label,
        /// Its place among the packets of the label.
        sequence: u32,
        /// The packet.
        packet: &'a [u8],
    },
    /// An IP packet whose order does not matter.
    Unordered {
        /// The packet.
        packet: &'a [u8],
    },
    /// A part of an announcement of served hosts.
    Serves {
        /// See [`serves::Part::read`](crate::serves::Part::read).
        part: &'a [u8],
    },
    /// As [`Ordered`](Self::Ordered), and which packets of the label took the same path before it (HIR, 7.3).
    Batched {
        /// Its flow and direction.
        label: Label,
        /// Its place among the packets of the label.
        sequence: u32,
        /// Bit `n`: packet `sequence - 1 - n` took the path that this one took.
        map: u32,
        /// The packet.
        packet: &'a [u8],
    },
    /// Packets that the exit holds for lost (Harp, III.D): a loss indication.
    Loss {
        /// Flow and direction.
        label: Label,
        /// First that is missing.
        first: u32,
        /// One past the last that is missing.
        end: u32,
    },
    /// As [`Unordered`](Self::Unordered), where the label is needed.
    Labelled {
        /// Its flow and direction.
        label: Label,
        /// The packet.
        packet: &'a [u8],
    },
    /// An example came and is remembered.
    Known {
        /// Flow and direction.
        label: Label,
        /// Of which generation it is.
        generation: Generation,
        /// See [`Template::proof`](crate::compact::Template::proof).
        proof: u16,
    },
    /// Short headers came without an example before them.
    Unknown {
        /// Flow and direction.
        label: Label,
        /// Of which generation they are.
        generation: Generation,
    },
    /// What the sender understands.
    Speaks {
        /// Of the first byte see [`COMPACT`]; there is at least one, and more mean nothing yet.
        features: &'a [u8],
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
            UNORDERED => return packet(&mut reader).map(|packet| Self::Unordered { packet }),
            SERVES => return Ok(Self::Serves { part: reader.take_rest() }),
            SPEAKS => return packet(&mut reader).map(|features| Self::Speaks { features }),
            ORDERED..SPEAKS => {}
            _ => return Err(DecodeError::UnknownType(kind)),
        }
        let [high, middle, low] = reader.array()?;
        let label = Label(u32::from_be_bytes([0, high, middle, low]));
        match kind {
            LABELLED => return Ok(Self::Labelled { label, packet: packet(&mut reader)? }),
            KNOWN | UNKNOWN => return about_example(kind, label, &mut reader),
            _ => {}
        }
        let sequence = reader.u32()?;
        match kind {
            ORDERED => Ok(Self::Ordered { label, sequence, packet: packet(&mut reader)? }),
            BATCHED => {
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
            Self::Ordered { packet, .. }
            | Self::Unordered { packet }
            | Self::Batched { packet, .. }
            | Self::Labelled { packet, .. } => writer.bytes(packet),
            Self::Serves { part: bytes } | Self::Speaks { features: bytes } => writer.bytes(bytes),
            Self::Loss { .. } | Self::Known { .. } | Self::Unknown { .. } => {}
        }
    }

    /// Writes what stands before the packet alone, for whoever has left room for it in the packet's own buffer.
    pub fn write_header(&self, writer: &mut Writer<'_>) {
        match *self {
            Self::Ordered { label, sequence, .. } => {
                writer.u32(u32::from(ORDERED) << 24 | label.0);
                writer.u32(sequence);
            }
            Self::Unordered { .. } => writer.u8(UNORDERED),
            Self::Serves { .. } => writer.u8(SERVES),
            Self::Batched { label, sequence, map, .. } => {
                writer.u32(u32::from(BATCHED) << 24 | label.0);
                writer.u32(sequence);
                writer.u32(map);
            }
            Self::Loss { label, first, end } => {
                writer.u32(u32::from(LOSS) << 24 | label.0);
                writer.u32(first);
                writer.u32(end);
            }
            Self::Labelled { label, .. } => writer.u32(u32::from(LABELLED) << 24 | label.0),
            Self::Known { label, generation, proof } => {
                writer.u32(u32::from(KNOWN) << 24 | label.0);
                writer.u8(generation.number());
                writer.u16(proof);
            }
            Self::Unknown { label, generation } => {
                writer.u32(u32::from(UNKNOWN) << 24 | label.0);
                writer.u8(generation.number());
            }
            Self::Speaks { .. } => writer.u8(SPEAKS),
        }
    }

    /// Whether a datagram is small and not to wait for paths that have room: what gateways tell each other, and packets whose order
    /// does not matter.
    #[must_use]
    pub fn is_urgent(datagram: &[u8]) -> bool {
        matches!(datagram.first(), Some(&(UNORDERED | LOSS..=UNKNOWN)))
    }
}

fn about_example<'a>(kind: u8, label: Label, reader: &mut Reader<'a>) -> Result<Message<'a>, DecodeError> {
    let number = reader.u8()?;
    let generation = Generation::new(number);
    let message = match kind {
        KNOWN => Message::Known { label, generation, proof: reader.u16()? },
        _ => Message::Unknown { label, generation },
    };
    let whole = generation.number() == number && reader.is_empty();
    if whole { Ok(message) } else { Err(DecodeError::Range("generation of an example")) }
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
        let generation = Generation::new(5);
        let frozen: [(Message<'_>, &[u8]); 9] = [
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
            (Message::Labelled { label, packet }, &[0x15, 10, 11, 12, b'I', b'P']),
            (Message::Known { label, generation, proof: 0x0102 }, &[0x16, 10, 11, 12, 5, 1, 2]),
            (Message::Unknown { label, generation }, &[0x17, 10, 11, 12, 5]),
            (Message::Speaks { features: &[COMPACT, 9] }, &[0x18, 1, 9]),
        ];
        for (message, bytes) in frozen {
            assert_eq!(written(&message), bytes);
            assert_eq!(Message::read(bytes), Ok(message));
        }
        assert_eq!((ORDERED_LEN, UNORDERED_LEN, BATCHED_LEN, LABELLED_LEN), (8, 1, 12, 4));
        let urgent: Vec<bool> = frozen.iter().map(|(_, bytes)| Message::is_urgent(bytes)).collect();
        assert_eq!(urgent, [false, true, false, false, true, true, true, true, false]);
    }

    #[test]
    fn what_is_none_of_these_is_refused() {
        for first in [0x00, 0x0f, 0x19, 0x1f, 0x20, 0xff] {
            assert_eq!(Message::read(&[first; 20]), Err(DecodeError::UnknownType(first)));
        }
        for cut in [
            &[][..],
            &[0x10, 0, 0, 0, 0, 0, 0, 0],
            &[0x11],
            &[0x13, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            &[0x14, 0, 0],
            &[0x15, 0, 0, 0],
            &[0x16, 0, 0, 0, 1, 0],
            &[0x17, 0, 0, 0],
            &[0x18],
        ] {
            assert_eq!(Message::read(cut), Err(DecodeError::Truncated), "{cut:?}");
        }
        let empty = [0x14, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 5];
        assert_eq!(Message::read(&empty), Err(DecodeError::Range("missing packets")));
        assert_eq!(
            Message::read(&[0x14, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 6, 0]),
            Err(DecodeError::Range("missing packets"))
        );
        for odd in [&[0x16, 0, 0, 0, 8, 0, 0][..], &[0x16, 0, 0, 0, 1, 0, 0, 0], &[0x17, 0, 0, 0, 0, 0]] {
            assert_eq!(Message::read(odd), Err(DecodeError::Range("generation of an example")));
        }
        assert_eq!(Label::new(0x00ff_ffff).next(), Label::new(0));
    }

    proptest! {
        #[test]
        fn what_is_read_is_written_the_same(bytes in prop::collection::vec(any::<u8>(), 0..64), kind in 0x10u8..0x19) {
            let bytes: Vec<u8> = [kind].into_iter().chain(bytes).collect();
            if let Ok(message) = Message::read(&bytes) {
                prop_assert_eq!(written(&message), bytes);
            }
        }
    }
}
