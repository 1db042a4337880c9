//! A checked view of a TCP header (RFC 9293) and its options (RFC 7323 and RFC 2018).

use crate::bypass::BypassReason;
use byway_wire::{DecodeError, Reader};
use core::fmt;

/// Flags of a TCP header, as in its thirteenth and fourteenth byte (with AE of RFC 9768).
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags(pub u16);

impl Flags {
    /// No more data will come.
    pub const FIN: Self = Self(0x001);
    /// Sequence numbers begin here.
    pub const SYN: Self = Self(0x002);
    /// The connection is no more.
    pub const RST: Self = Self(0x004);
    /// The data is to be handed to the application now.
    pub const PSH: Self = Self(0x008);
    /// The acknowledgment number means something.
    pub const ACK: Self = Self(0x010);
    /// The urgent pointer means something.
    pub const URG: Self = Self(0x020);
    /// Congestion was experienced (RFC 3168).
    pub const ECE: Self = Self(0x040);
    /// The congestion window was reduced (RFC 3168).
    pub const CWR: Self = Self(0x080);

    /// Whether any of `others` is set.
    #[must_use]
    pub const fn any(self, others: Self) -> bool {
        self.0 & others.0 != 0
    }

    /// The flags of both.
    #[must_use]
    pub const fn or(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    const fn are_sane(self) -> bool {
        let begins_and_ends = self.any(Self::SYN) && self.any(Self::FIN.or(Self::RST));
        self.any(Self::SYN.or(Self::ACK).or(Self::RST).or(Self::FIN)) && !begins_and_ends
    }
}

impl fmt::Debug for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR", "AE"];
        let mut set = f.debug_set();
        for (bit, name) in names.iter().enumerate() {
            if self.0 >> bit & 1 == 1 {
                set.entry(&format_args!("{name}"));
            }
        }
        set.finish()
    }
}

/// The values of a header's options.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct HeaderOptions {
    /// Maximum segment size (SYN only), bytes.
    pub mss: Option<u16>,
    /// Window scale, in a SYN only: bits by which windows are shifted left, at most [`MAX_SCALE`].
    pub scale: Option<u8>,
    /// Timestamps: value and echo reply.
    pub timestamps: Option<(u32, u32)>,
}

/// The largest window scale. Larger ones mean this one (RFC 7323, section 2.3).
pub const MAX_SCALE: u8 = 14;

/// The fields of a TCP header, and their places. Places count from the start of the IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tcp {
    /// Port of the sender.
    pub source: u16,
    /// Port of the receiver.
    pub destination: u16,
    /// Sequence number of the first byte, or of the SYN.
    pub sequence: u32,
    /// The byte expected next from the flow's other end, if [`Flags::ACK`] is set.
    pub acknowledgment: u32,
    /// The flags of the header.
    pub flags: Flags,
    /// The unscaled window of the header.
    pub window: u16,
    /// The urgent pointer of the header.
    pub urgent: u16,
    /// The values of the options.
    pub options: HeaderOptions,
    /// The place of the header.
    pub at: usize,
    /// The place of the payload.
    pub payload: usize,
}

/// The place of the window, from the start of the TCP header.
pub(crate) const WINDOW_AT: usize = 14;
/// The place of the checksum, from the start of the TCP header.
pub(crate) const CHECKSUM_AT: usize = 16;

impl Tcp {
    /// Reads the TCP header that begins `at` bytes into `packet`, an IP packet without padding.
    ///
    /// # Errors
    /// The header is truncated, or its length, options or flags are invalid. The packet is then
    /// passed on unchanged.
    pub fn read(packet: &[u8], at: usize) -> Result<Self, BypassReason> {
        let mut reader = Reader::new(packet.get(at..).ok_or(BypassReason::TcpTruncated)?);
        let header: [u8; 20] = reader.array().map_err(|_| BypassReason::TcpTruncated)?;
        let word = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        let double = |at: usize| u32::from(word(at)) << 16 | u32::from(word(at + 2));
        let length = usize::from(header[12] >> 4) * 4;
        let options = length.checked_sub(20).ok_or(BypassReason::TcpLength)?;
        let flags = Flags(word(12) & 0x01ff);
        let options = HeaderOptions::read(reader.bytes(options).map_err(|_| BypassReason::TcpTruncated)?)?;
        if !flags.are_sane() {
            return Err(BypassReason::TcpFlags);
        }
        Ok(Self {
            source: word(0),
            destination: word(2),
            sequence: double(4),
            acknowledgment: double(8),
            flags,
            window: word(WINDOW_AT),
            urgent: word(18),
            options,
            at,
            payload: at + length,
        })
    }

    /// Returns the options of this header in `packet`, one after the other.
    #[must_use]
    pub fn walk<'a>(&self, packet: &'a [u8]) -> Walk<'a> {
        let bytes = packet.get(self.at + 20..self.payload).unwrap_or_default();
        Walk { all: bytes, reader: Reader::new(bytes), base: self.at + 20 }
    }
}

const OPTION_END: u8 = 0;
const OPTION_NOP: u8 = 1;
/// The option that names a maximum segment size.
pub(crate) const OPTION_MSS: u8 = 2;
const OPTION_SCALE: u8 = 3;
const OPTION_TIMESTAMPS: u8 = 8;

/// One option of a TCP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpOption<'a> {
    /// The IANA number of the option's kind.
    pub kind: u8,
    /// The place of the option's data in the packet.
    pub at: usize,
    /// The data of the option, without kind and length.
    pub data: &'a [u8],
}

/// The options of a TCP header in order, without NOPs.
#[derive(Clone, Debug)]
pub struct Walk<'a> {
    all: &'a [u8],
    reader: Reader<'a>,
    base: usize,
}

impl<'a> Iterator for Walk<'a> {
    type Item = Result<TcpOption<'a>, BypassReason>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.reader.u8() {
                Err(_) => return None,
                Ok(OPTION_END) => {
                    self.reader.take_rest();
                    return None;
                }
                Ok(OPTION_NOP) => {}
                Ok(kind) => {
                    let option = self.data().map(|(at, data)| TcpOption { kind, at, data });
                    if option.is_err() {
                        self.reader.take_rest();
                    }
                    return Some(option.map_err(|_| BypassReason::TcpOptions));
                }
            }
        }
    }
}

impl<'a> Walk<'a> {
    fn data(&mut self) -> Result<(usize, &'a [u8]), DecodeError> {
        let length = usize::from(self.reader.u8()?);
        let at = self.base + self.all.len() - self.reader.remaining();
        let data = length.checked_sub(2).ok_or(DecodeError::Range("option length"))?;
        Ok((at, self.reader.bytes(data)?))
    }
}

impl HeaderOptions {
    /// Reads options. Options of a wrong length are left out, as every host does.
    fn read(bytes: &[u8]) -> Result<Self, BypassReason> {
        let mut options = Self::default();
        for option in (Walk { all: bytes, reader: Reader::new(bytes), base: 0 }) {
            let option = option?;
            match (option.kind, option.data) {
                (OPTION_MSS, &[high, low]) => options.mss = Some(u16::from_be_bytes([high, low])),
                (OPTION_SCALE, &[scale]) => options.scale = Some(scale.min(MAX_SCALE)),
                (OPTION_TIMESTAMPS, &[a, b, c, d, e, f, g, h]) => {
                    options.timestamps =
                        Some((u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h])));
                }
                _ => {}
            }
        }
        Ok(options)
    }
}

/// Whether sequence number `a` is before `b`, in the circle of 2^32. See RFC 9293, section 3.4.
#[must_use]
pub const fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

/// The later of two sequence numbers.
#[must_use]
pub const fn later(a: u32, b: u32) -> u32 {
    if before(a, b) { b } else { a }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{IP_HEADER_LEN, build};
    use alloc::vec;
    use alloc::vec::Vec;
    use etherparse::{TcpHeader, TcpOptionElement};
    use proptest::prelude::*;

    fn raw(options: &[u8]) -> Vec<u8> {
        let mut header = vec![0; 20];
        header.extend(options);
        header.resize(20 + options.len().div_ceil(4) * 4, 0);
        header[12] = (header.len() as u8 / 4) << 4;
        header[13] = 0x10;
        header
    }

    #[test]
    fn each_fault_has_its_name() {
        assert_eq!(Tcp::read(&raw(&[])[..19], 0), Err(BypassReason::TcpTruncated));
        assert_eq!(Tcp::read(&raw(&[]), 21), Err(BypassReason::TcpTruncated));
        assert_eq!(Tcp::read(&raw(&[1; 8])[..27], 0), Err(BypassReason::TcpTruncated));
        let with = |at: usize, value| {
            let mut header = raw(&[]);
            header[at] = value;
            Tcp::read(&header, 0)
        };
        assert_eq!(with(12, 0x40), Err(BypassReason::TcpLength));
        for flags in [0x00, 0x03, 0x06, 0x13, 0x16, 0x28] {
            assert_eq!(with(13, flags), Err(BypassReason::TcpFlags), "{flags:#04x}");
        }
        for flags in [0x01, 0x02, 0x04, 0x10, 0x12, 0x14, 0x19, 0xc2, 0xf0] {
            assert!(with(13, flags).is_ok(), "{flags:#04x}");
        }
        for options in [&[8u8, 1][..], &[8, 0], &[8, 10, 0, 0], &[1, 1, 1, 2], &[2, 4, 5, 180, 3, 3, 7, 8]] {
            assert_eq!(Tcp::read(&raw(options), 0), Err(BypassReason::TcpOptions), "{options:?}");
        }
        // Behind the end of the list nothing is read, and a known option of another length is not
        // that option.
        assert_eq!(Tcp::read(&raw(&[0, 8, 1, 1]), 0).unwrap().options, HeaderOptions::default());
        assert_eq!(Tcp::read(&raw(&[2, 3, 1, 1]), 0).unwrap().options, HeaderOptions::default());
    }

    #[test]
    fn the_circle_of_sequence_numbers() {
        assert!(before(u32::MAX, 0) && before(5, 6) && !before(6, 5) && !before(7, 7));
        assert_eq!((later(u32::MAX, 3), later(3, u32::MAX)), (3, 3));
    }

    #[test]
    fn flags_read_like_flags() {
        assert_eq!(alloc::format!("{:?}", Flags::SYN.or(Flags::ACK)), "{SYN, ACK}");
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_strange(bytes in prop::collection::vec(any::<u8>(), 0..100), at in 0usize..110) {
            if let Ok(tcp) = Tcp::read(&bytes, at) {
                prop_assert!(tcp.payload <= bytes.len() && tcp.payload >= at + 20);
                tcp.walk(&bytes).for_each(drop);
            }
        }

        #[test]
        fn it_reads_what_etherparse_writes(
            ports: (u16, u16), numbers: (u32, u32), window: u16, urgent: u16, mss: Option<u16>, scale: Option<u8>,
            permitted: bool, sack: Option<((u32, u32), Option<(u32, u32)>)>, stamps: Option<(u32, u32)>, nops in 0usize..3
        ) {
            let mut header = TcpHeader::new(ports.0, ports.1, numbers.0, window);
            (header.acknowledgment_number, header.ack, header.psh) = (numbers.1, true, true);
            (header.urg, header.urgent_pointer, header.ece) = (true, urgent, true);
            let mut options = vec![TcpOptionElement::Noop; nops];
            options.extend(mss.map(TcpOptionElement::MaximumSegmentSize));
            options.extend(scale.map(TcpOptionElement::WindowScale));
            options.extend(permitted.then_some(TcpOptionElement::SelectiveAcknowledgementPermitted));
            options.extend(stamps.map(|(value, echo)| TcpOptionElement::Timestamp(value, echo)));
            if let Some((first, second)) = sack {
                options.push(TcpOptionElement::SelectiveAcknowledgement(first, [second, None, None]));
            }
            prop_assume!(header.set_options(&options).is_ok());
            let packet = build(&header, b"payload");
            let tcp = Tcp::read(&packet, IP_HEADER_LEN).unwrap();
            prop_assert_eq!((tcp.source, tcp.destination), ports);
            prop_assert_eq!((tcp.sequence, tcp.acknowledgment), numbers);
            prop_assert_eq!((tcp.window, tcp.urgent), (window, urgent));
            prop_assert_eq!(tcp.flags, Flags::ACK.or(Flags::PSH).or(Flags::URG).or(Flags::ECE));
            let read = tcp.options;
            prop_assert_eq!((read.mss, read.scale), (mss, scale.map(|scale| scale.min(14))));
            prop_assert_eq!(read.timestamps, stamps);
            prop_assert_eq!(&packet[tcp.payload..], b"payload");
        }
    }
}
