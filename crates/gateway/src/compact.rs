//! Headers that travel short: what stays the same in all packets of one direction of a flow is told once, by an example.
//!
//! What stands where an IP packet stands in a datagram says by its first byte what it is:
//!
//! ```text
//! 0x4., 0x6.            an IP packet
//! 0x00 + g              short headers by the template of generation g (0 to 7), and the payload
//! 0x10 + g              an IPv4 packet, an example of generation g; its first byte was 0x45
//! 0x8. + 0x10 * g       an IPv6 packet, an example of generation g; the upper half of its first byte was 6
//!
//! short headers         0x00 + g (1), the lower flags of TCP (1), AE (1 bit), ECN of IP (2), whether sequence number, acknowledgment
//!                       and window are those of the template (1 each), options (2),
//!                       identification (2, IPv4), checksum of TCP (2), sequence number (4), acknowledgment (4), window (2),
//!                       urgent pointer (2, with URG), options
//! options               0 none; 1 NOP, NOP, timestamps, by how much each is beyond the template's (2, 2); 2 the same in full (4, 4);
//!                       3 others: how many words of four bytes (1), and these
//! ```
//!
//! What is not there is the template's (addresses, ports, lifetime, DSCP, flow label, "do not fragment") or follows (lengths, the
//! header's checksum of IPv4). A packet needs nothing but its template, so losses and reordering harm no other (compare RFC 6846,
//! whose packets are changes of those before them). What does not fit the mould travels as it is: SYNs, resets, fragments, options of IP, bits
//! that have no meaning yet. TCP's checksum is the host's own, so that an expansion by a wrong template is dropped there.

mod teaching;

pub use teaching::{Slots, Teaching, Turn};

use crate::ip::TCP;
use alloc::vec::Vec;
use byway_wire::checksum::{fold, sum};
use byway_wire::{DecodeError, Reader, Writer};

/// Bytes of short headers at most: 20, and the options of TCP.
pub const MOST_SHORT: usize = 60;

const IPV4: u8 = 0x45;
const STAMPS: [u8; 4] = [1, 1, 8, 10];
const SYN_OR_RST: u8 = 0x06;
const URG: u8 = 0x20;

const NONE: u8 = 0;
const NEAR: u8 = 1;
const FAR: u8 = 2;
const OTHER: u8 = 3;
const AE: u8 = 0x80;
const SAME_SEQUENCE: u8 = 0x10;
const SAME_ACKNOWLEDGMENT: u8 = 0x08;
const SAME_WINDOW: u8 = 0x04;

/// Which template of a label, 0 to 7: numbers are used again, and the two that are in use at a time differ in their last bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generation(u8);

impl Generation {
    /// The generation with the lowest bits of `number`.
    #[must_use]
    pub const fn new(number: u8) -> Self {
        Self(number & 7)
    }

    /// Its number.
    #[must_use]
    pub const fn number(self) -> u8 {
        self.0
    }
}

/// What stands in the place of an IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// An IP packet, or nothing that is known here.
    Whole,
    /// One that is to be remembered as the template of this generation; the first byte to put in its place.
    Example(Generation, u8),
    /// Short headers by this template.
    Short(Generation),
}

impl Form {
    /// By the first byte.
    #[must_use]
    pub const fn of(packet: &[u8]) -> Self {
        match packet.first() {
            Some(&first @ 0x00..=0x07) => Self::Short(Generation::new(first)),
            Some(&first @ 0x10..=0x17) => Self::Example(Generation::new(first), IPV4),
            Some(&first @ 0x80..) => Self::Example(Generation::new(first >> 4), 0x60 | first & 0x0f),
            _ => Self::Whole,
        }
    }
}

/// Makes `packet`, whose [template](Template::of) was taken, an example.
pub fn mark(packet: &mut [u8], generation: Generation) {
    if let Some(first) = packet.first_mut() {
        *first = if *first == IPV4 { 0x10 | generation.0 } else { 0x80 | generation.0 << 4 | *first & 0x0f };
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Ip {
    V4([u8; 20]),
    V6([u8; 40]),
}

/// A packet that fits the mould, in parts.
struct Parts<'a> {
    ip: Ip,
    tcp: &'a [u8; 20],
    options: &'a [u8],
    payload: usize,
}

impl<'a> Parts<'a> {
    fn of(packet: &'a [u8]) -> Option<Self> {
        let (ip, rest) = match packet.first()? {
            &IPV4 => {
                let (ip, rest) = packet.split_first_chunk::<20>()?;
                let length = usize::from(u16::from_be_bytes([ip[2], ip[3]]));
                // All but "do not fragment". The checksum is to be the one that will be computed.
                let plain = ip[6] & 0xbf == 0 && ip[7] == 0 && ip[9] == TCP && length == packet.len();
                let sums = checksum(ip) == [ip[10], ip[11]];
                (Ip::V4(*ip), Some(rest).filter(|_| plain && sums)?)
            }
            0x60..=0x6f => {
                let (ip, rest) = packet.split_first_chunk::<40>()?;
                let length = usize::from(u16::from_be_bytes([ip[4], ip[5]]));
                (Ip::V6(*ip), Some(rest).filter(|_| ip[6] == TCP && length == rest.len())?)
            }
            _ => return None,
        };
        let (tcp, rest) = rest.split_first_chunk::<20>()?;
        let options = rest.get(..(usize::from(tcp[12] >> 4) * 4).checked_sub(20)?)?;
        let urgent = tcp[13] & URG != 0 || (tcp[18], tcp[19]) == (0, 0);
        // A flood of SYNs, and what answers it, is not to be learned from.
        let known = urgent && tcp[12] & 0x0e == 0 && tcp[13] & SYN_OR_RST == 0;
        let payload = packet.len() - rest.len() + options.len();
        known.then_some(Self { ip, tcp, options, payload })
    }

    /// The timestamps, if they stand first, as hosts have them.
    fn stamps(&self) -> Option<[u32; 2]> {
        let (head, rest) = self.options.split_first_chunk::<4>()?;
        Some([rest.first_chunk()?, rest.get(4..)?.first_chunk()?].map(|stamp| u32::from_be_bytes(*stamp)))
            .filter(|_| *head == STAMPS)
    }
}

/// The checksum of a header of IPv4, as hosts compute it.
fn checksum(ip: &[u8; 20]) -> [u8; 2] {
    let there = u64::from(u16::from_be_bytes([ip[10], ip[11]]));
    (!fold(sum(ip) - there)).to_be_bytes()
}

/// The headers of an example.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    ip: Ip,
    tcp: [u8; 20],
    stamps: [u32; 2],
}

impl Template {
    /// The template by which packets like this one can travel short; `None` if it does not fit the mould.
    #[must_use]
    pub fn of(packet: &[u8]) -> Option<Self> {
        let parts = Parts::of(packet)?;
        let stamps = parts.stamps().unwrap_or_default();
        Some(Self { tcp: *parts.tcp, stamps, ip: parts.ip })
    }

    /// TCP's checksum in the example: tells it from others of its generation.
    #[must_use]
    pub const fn proof(&self) -> u16 {
        u16::from_be_bytes([self.tcp[16], self.tcp[17]])
    }

    /// Writes short headers for `packet`, and returns where its payload begins; `None` if it differs in what does not travel.
    pub fn shorten(&self, generation: Generation, packet: &[u8], writer: &mut Writer<'_>) -> Option<usize> {
        let parts = Parts::of(packet)?;
        let (tcp, known) = (parts.tcp, &self.tcp);
        let (ecn, identification) = match (&parts.ip, &self.ip) {
            (Ip::V4(ip), Ip::V4(of)) => {
                let same = ip[1] & 0xfc == of[1] & 0xfc && ip[6..10] == of[6..10] && ip[12..] == of[12..];
                (Some(ip[1] & 3).filter(|_| same)?, Some([ip[4], ip[5]]))
            }
            (Ip::V6(ip), Ip::V6(of)) => {
                let class = ip[0] == of[0] && ip[1] & 0xcf == of[1] & 0xcf;
                let same = class && ip[2..4] == of[2..4] && ip[6..] == of[6..];
                (Some(ip[1] >> 4 & 3).filter(|_| same)?, None)
            }
            _ => return None,
        };
        if tcp[..4] != known[..4] {
            return None;
        }
        let is = |same: bool, bit: u8| if same { bit } else { 0 };
        let (sequence, acknowledgment) = (tcp[4..8] == known[4..8], tcp[8..12] == known[8..12]);
        let window = tcp[14..16] == known[14..16];
        let stamps = parts.stamps().filter(|_| parts.options.len() == 12);
        let beyond = stamps
            .map(|[value, echo]| [value.wrapping_sub(self.stamps[0]), echo.wrapping_sub(self.stamps[1])]);
        let options = match beyond {
            Some([value, echo]) if value | echo <= 0xffff => NEAR,
            Some(_) => FAR,
            None if parts.options.is_empty() => NONE,
            None => OTHER,
        };
        writer.u8(generation.0);
        writer.u8(tcp[13]);
        writer.u8(is(tcp[12] & 1 != 0, AE)
            | ecn << 5
            | is(sequence, SAME_SEQUENCE)
            | is(acknowledgment, SAME_ACKNOWLEDGMENT)
            | is(window, SAME_WINDOW)
            | options);
        identification.iter().for_each(|identification| writer.bytes(identification));
        writer.bytes(&tcp[16..18]);
        if !sequence {
            writer.bytes(&tcp[4..8]);
        }
        if !acknowledgment {
            writer.bytes(&tcp[8..12]);
        }
        if !window {
            writer.bytes(&tcp[14..16]);
        }
        if tcp[13] & URG != 0 {
            writer.bytes(&tcp[18..]);
        }
        match (options, beyond) {
            (NEAR, Some(beyond)) => beyond.iter().for_each(|beyond| writer.u16(*beyond as u16)),
            (FAR, _) => writer.bytes(parts.options.get(4..).unwrap_or_default()),
            (OTHER, _) => {
                writer.u8((parts.options.len() / 4) as u8);
                writer.bytes(parts.options);
            }
            _ => {}
        }
        (!writer.overflowed()).then_some(parts.payload)
    }

    /// Puts the packet of `short`, which are short headers by this template and the payload, behind what is in `out`.
    ///
    /// # Errors
    /// What is wrong with it; then `out` is as it was.
    pub fn expand(&self, short: &[u8], out: &mut Vec<u8>) -> Result<(), DecodeError> {
        let mut reader = Reader::new(short);
        let [_, flags, bits] = reader.array()?;
        let mut tcp = self.tcp;
        let mut ip = self.ip.clone();
        if let Ip::V4(ip) = &mut ip {
            [ip[4], ip[5]] = reader.array()?;
        }
        [tcp[16], tcp[17]] = reader.array()?;
        tcp[13] = flags;
        if bits & SAME_SEQUENCE == 0 {
            tcp[4..8].copy_from_slice(reader.bytes(4)?);
        }
        if bits & SAME_ACKNOWLEDGMENT == 0 {
            tcp[8..12].copy_from_slice(reader.bytes(4)?);
        }
        if bits & SAME_WINDOW == 0 {
            tcp[14..16].copy_from_slice(reader.bytes(2)?);
        }
        let urgent = if flags & URG == 0 { [0; 2] } else { reader.array()? };
        tcp[18..].copy_from_slice(&urgent);
        let mut stamps = [0; 12];
        let options = match bits & 3 {
            NONE => &[],
            OTHER => {
                let words = usize::from(reader.u8()?);
                reader.bytes(Some(words * 4).filter(|_| words <= 10).ok_or(DecodeError::Range("options"))?)?
            }
            size => {
                stamps[..4].copy_from_slice(&STAMPS);
                for (to, known) in stamps[4..].chunks_exact_mut(4).zip(self.stamps) {
                    let stamp =
                        if size == NEAR { known.wrapping_add(reader.u16()?.into()) } else { reader.u32()? };
                    to.copy_from_slice(&stamp.to_be_bytes());
                }
                &stamps[..]
            }
        };
        tcp[12] = (5 + options.len() as u8 / 4) << 4 | bits >> 7;
        let payload = reader.take_rest();
        let length = |headers: usize| {
            let length = u16::try_from(headers + tcp.len() + options.len() + payload.len());
            length.map(u16::to_be_bytes).map_err(|_| DecodeError::Range("length of a packet"))
        };
        match &mut ip {
            Ip::V4(ip) => {
                [ip[2], ip[3]] = length(20)?;
                ip[1] = ip[1] & 0xfc | bits >> 5 & 3;
                [ip[10], ip[11]] = checksum(ip);
                out.extend_from_slice(ip);
            }
            Ip::V6(ip) => {
                [ip[4], ip[5]] = length(0)?;
                ip[1] = ip[1] & 0xcf | (bits >> 5 & 3) << 4;
                out.extend_from_slice(ip);
            }
        }
        out.extend_from_slice(&tcp);
        out.extend_from_slice(options);
        out.extend_from_slice(payload);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
