//! A checked view of an IP packet's headers, as far as TCP needs them. They are those of RFC 791
//! and RFC 8200.

use crate::bypass::BypassReason;
use byway_wire::checksum::{fold, sum};
use byway_wire::{DecodeError, Reader};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The protocol number of TCP.
pub const PROTOCOL_TCP: u8 = 6;

const PROTOCOL_HOP_BY_HOP: u8 = 0;
const PROTOCOL_ROUTING: u8 = 43;
const PROTOCOL_FRAGMENT: u8 = 44;
const PROTOCOL_ESP: u8 = 50;
const PROTOCOL_AH: u8 = 51;
const PROTOCOL_DESTINATION_OPTIONS: u8 = 60;
const PROTOCOL_MOBILITY: u8 = 135;
const PROTOCOL_HIP: u8 = 139;
const PROTOCOL_SHIM6: u8 = 140;
/// The most extension headers that are followed. RFC 8200 (section 4.1) defines six, of which one
/// may occur twice.
const MAX_EXTENSIONS: u32 = 8;

/// Loose and strict source route (RFC 791): options of IPv4.
const SOURCE_ROUTES: [u8; 2] = [131, 137];

/// The fields of an IP packet's headers, and the place of its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ip {
    /// The address that sent the packet.
    pub source: IpAddr,
    /// The address that the packet is for.
    pub destination: IpAddr,
    /// Differentiated services code point (RFC 2474), 0 to 63.
    pub dscp: u8,
    /// The two bits of ECN (RFC 3168).
    pub ecn: u8,
    /// The protocol number of the content after the headers.
    pub protocol: u8,
    /// Bytes of all IP headers: where the transport header begins.
    pub headers: usize,
    /// The length of the packet in bytes by its own header. Any bytes behind it are padding.
    pub end: usize,
}

impl Ip {
    /// Reads the headers of `packet`.
    ///
    /// # Errors
    /// Why the packet is to be passed on.
    pub fn read(packet: &[u8]) -> Result<Self, BypassReason> {
        match packet.first().map(|first| first >> 4) {
            Some(4) => Self::read_v4(packet),
            Some(6) => Self::read_v6(packet),
            _ => Err(BypassReason::NotIp),
        }
    }

    /// Whether the packet is IPv6.
    #[must_use]
    pub const fn is_v6(&self) -> bool {
        self.source.is_ipv6()
    }

    fn read_v4(packet: &[u8]) -> Result<Self, BypassReason> {
        let fixed = packet.first_chunk::<20>().ok_or(BypassReason::Truncated)?;
        let word = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
        let (headers, end) = (usize::from(fixed[0] & 0x0f) * 4, usize::from(word(2)));
        if headers < 20 || end < headers {
            return Err(BypassReason::IpLength);
        }
        if packet.len() < end {
            return Err(BypassReason::Truncated);
        }
        let header = packet.get(..headers).ok_or(BypassReason::Truncated)?;
        if fold(sum(header)) != 0xffff {
            return Err(BypassReason::IpChecksum);
        }
        // More fragments, or an offset.
        if word(6) & 0x3fff != 0 {
            return Err(BypassReason::Fragment);
        }
        if has_source_route(&header[20..]) {
            return Err(BypassReason::SourceRoute);
        }
        let address = |at: usize| Ipv4Addr::new(fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]);
        Ok(Self {
            source: address(12).into(),
            destination: address(16).into(),
            dscp: fixed[1] >> 2,
            ecn: fixed[1] & 3,
            protocol: fixed[9],
            headers,
            end,
        })
    }

    fn read_v6(packet: &[u8]) -> Result<Self, BypassReason> {
        let truncated = |_: DecodeError| BypassReason::Truncated;
        let mut reader = Reader::new(packet);
        let first = reader.u32().map_err(truncated)?;
        let length = usize::from(reader.u16().map_err(truncated)?);
        let [next, _hops] = reader.array().map_err(truncated)?;
        let source: [u8; 16] = reader.array().map_err(truncated)?;
        let destination: [u8; 16] = reader.array().map_err(truncated)?;
        if length == 0 && next == PROTOCOL_HOP_BY_HOP {
            return Err(BypassReason::Jumbogram);
        }
        let (protocol, extensions) = skip_extensions(next, reader.bytes(length).map_err(truncated)?)?;
        let class = (first >> 20) as u8;
        Ok(Self {
            source: Ipv6Addr::from(source).into(),
            destination: Ipv6Addr::from(destination).into(),
            dscp: class >> 2,
            ecn: class & 3,
            protocol,
            headers: 40 + extensions,
            end: 40 + length,
        })
    }
}

/// Skips the extension headers at the start of `payload`. Returns the protocol behind them, and
/// their length.
fn skip_extensions(mut next: u8, payload: &[u8]) -> Result<(u8, usize), BypassReason> {
    let mut reader = Reader::new(payload);
    for _ in 0..=MAX_EXTENSIONS {
        match next {
            PROTOCOL_HOP_BY_HOP
            | PROTOCOL_ROUTING
            | PROTOCOL_DESTINATION_OPTIONS
            | PROTOCOL_MOBILITY
            | PROTOCOL_HIP
            | PROTOCOL_SHIM6 => {
                let too_long = |_: DecodeError| BypassReason::IpLength;
                let [following, units, _kind, left] = reader.array().map_err(too_long)?;
                if next == PROTOCOL_ROUTING && left != 0 {
                    return Err(BypassReason::SourceRoute);
                }
                reader.bytes(usize::from(units) * 8 + 4).map_err(too_long)?;
                next = following;
            }
            PROTOCOL_FRAGMENT => return Err(BypassReason::Fragment),
            PROTOCOL_ESP | PROTOCOL_AH => return Err(BypassReason::Secured),
            _ => return Ok((next, payload.len() - reader.remaining())),
        }
    }
    Err(BypassReason::Extension)
}

fn has_source_route(options: &[u8]) -> bool {
    let mut reader = Reader::new(options);
    loop {
        match reader.u8() {
            Err(_) | Ok(0) => return false,
            Ok(1) => {}
            Ok(kind) if SOURCE_ROUTES.contains(&kind) => return true,
            // An option whose length is nonsense ends the list, as for every host.
            Ok(_) => {
                let skipped = reader
                    .u8()
                    .ok()
                    .and_then(|length| usize::from(length).checked_sub(2))
                    .map(|n| reader.bytes(n));
                if !matches!(skipped, Some(Ok(_))) {
                    return false;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{tcp_v4, tcp_v6};
    use alloc::vec;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    /// Makes the header's checksum right.
    fn seal(mut packet: Vec<u8>) -> Vec<u8> {
        let headers = usize::from(packet[0] & 15) * 4;
        packet[10..12].fill(0);
        let value = !fold(sum(&packet[..headers]));
        packet[10..12].copy_from_slice(&value.to_be_bytes());
        packet
    }

    fn changed(change: impl FnOnce(&mut Vec<u8>)) -> Result<Ip, BypassReason> {
        let mut packet = tcp_v4(b"data");
        change(&mut packet);
        Ip::read(&seal(packet))
    }

    #[test]
    fn what_a_header_of_version_4_says() {
        let ip = changed(|packet| packet[1] = 8 << 2 | 1).unwrap();
        assert_eq!(
            (ip.dscp, ip.ecn, ip.protocol, ip.headers, ip.end, ip.is_v6()),
            (8, 1, PROTOCOL_TCP, 20, 44, false)
        );
        assert_eq!((ip.source, ip.destination), ([10, 0, 0, 1].into(), [10, 0, 1, 2].into()));
        // Padding behind the packet is nobody's.
        assert_eq!(changed(|packet| packet.extend([0; 6])).unwrap().end, 44);
    }

    #[test]
    fn each_fault_of_version_4_has_its_name() {
        assert_eq!(Ip::read(&[]), Err(BypassReason::NotIp));
        assert_eq!(Ip::read(&[0x55; 60]), Err(BypassReason::NotIp));
        assert_eq!(Ip::read(&tcp_v4(b"")[..19]), Err(BypassReason::Truncated));
        assert_eq!(Ip::read(&tcp_v4(b"data")[..43]), Err(BypassReason::Truncated));
        assert_eq!(changed(|packet| packet[0] = 0x44), Err(BypassReason::IpLength));
        assert_eq!(changed(|packet| packet[3] = 19), Err(BypassReason::IpLength));
        let mut broken = tcp_v4(b"");
        broken[8] ^= 1;
        assert_eq!(Ip::read(&broken), Err(BypassReason::IpChecksum));
        assert_eq!(changed(|packet| packet[6] = 0x20), Err(BypassReason::Fragment));
        assert_eq!(changed(|packet| packet[7] = 1), Err(BypassReason::Fragment));
        assert!(changed(|packet| packet[6] = 0x40).is_ok(), "don't fragment is no fragment");
    }

    #[test]
    fn options_of_version_4_do_not_hide_what_follows_unless_they_prescribe_a_route() {
        let with = |options: [u8; 4]| {
            changed(|packet| {
                packet[0] = 0x46;
                packet[3] += 4;
                packet.splice(20..20, options);
            })
        };
        assert_eq!(with([148, 4, 0, 0]).unwrap().headers, 24);
        assert_eq!(with([1, 0, 131, 0]).unwrap().headers, 24, "behind the end of the options there are none");
        assert_eq!(with([1, 131, 3, 4]), Err(BypassReason::SourceRoute));
        assert_eq!(with([7, 1, 131, 3]).unwrap().headers, 24);
    }

    /// Makes an IPv6 packet with a TCP segment behind `extensions` (type, bytes after the first).
    fn extended(extensions: &[(u8, &[u8])]) -> Vec<u8> {
        let mut packet = tcp_v6(b"data");
        let (mut at, mut next) = (40, 6);
        for (kind, rest) in extensions.iter().rev() {
            packet.splice(40..40, [next].into_iter().chain(rest.iter().copied()));
            at += rest.len() + 1;
            next = *kind;
        }
        packet[6] = next;
        let length = (packet.len() - 40) as u16;
        packet[4..6].copy_from_slice(&length.to_be_bytes());
        assert!(at <= packet.len());
        packet
    }

    #[test]
    fn extension_headers_of_version_6() {
        let plain = Ip::read(&extended(&[])).unwrap();
        assert_eq!((plain.headers, plain.end, plain.protocol, plain.is_v6()), (40, 64, PROTOCOL_TCP, true));
        let skipped = Ip::read(&extended(&[
            (PROTOCOL_HOP_BY_HOP, &[0, 5, 2, 0, 0, 1, 0]),
            (PROTOCOL_DESTINATION_OPTIONS, &[1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
            (PROTOCOL_ROUTING, &[0, 4, 0, 0, 0, 0, 0]),
        ]));
        assert_eq!(skipped.map(|ip| (ip.headers, ip.protocol)), Ok((72, PROTOCOL_TCP)));
        let route: &[(u8, &[u8])] = &[(PROTOCOL_ROUTING, &[0, 4, 1, 0, 0, 0, 0])];
        assert_eq!(Ip::read(&extended(route)), Err(BypassReason::SourceRoute));
        let fragment: &[(u8, &[u8])] = &[(PROTOCOL_FRAGMENT, &[0, 0, 0, 0, 0, 0, 1])];
        assert_eq!(Ip::read(&extended(fragment)), Err(BypassReason::Fragment));
        assert_eq!(Ip::read(&extended(&[(PROTOCOL_ESP, &[0; 7])])), Err(BypassReason::Secured));
        assert_eq!(Ip::read(&extended(&[(PROTOCOL_AH, &[0; 11])])), Err(BypassReason::Secured));
        let beyond: &[(u8, &[u8])] = &[(PROTOCOL_HOP_BY_HOP, &[255, 5, 2, 0, 0, 1, 0])];
        assert_eq!(Ip::read(&extended(beyond)), Err(BypassReason::IpLength));
        let one: (u8, &[u8]) = (PROTOCOL_DESTINATION_OPTIONS, &[0, 1, 4, 0, 0, 0, 0]);
        assert!(Ip::read(&extended(&[one; 8])).is_ok());
        assert_eq!(Ip::read(&extended(&[one; 9])), Err(BypassReason::Extension));
        let mut jumbo = extended(&[(PROTOCOL_HOP_BY_HOP, &[0, 0xc2, 4, 0, 1, 0, 0])]);
        jumbo[4..6].fill(0);
        assert_eq!(Ip::read(&jumbo), Err(BypassReason::Jumbogram));
        assert_eq!(Ip::read(&extended(&[])[..63]), Err(BypassReason::Truncated));
        assert_eq!(Ip::read(&extended(&[])[..39]), Err(BypassReason::Truncated));
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_strange(mut bytes in prop::collection::vec(any::<u8>(), 0..120), version in 0u8..16) {
            if let Some(first) = bytes.first_mut() {
                *first = version << 4 | *first & 15;
            }
            if let Ok(ip) = Ip::read(&bytes) {
                prop_assert!(ip.headers <= ip.end && ip.end <= bytes.len());
            }
        }

        #[test]
        fn it_reads_what_etherparse_reads(
            source: [u8; 4], destination: [u8; 4], class: u8, words in 0usize..=10, payload in 0usize..100
        ) {
            let mut header = etherparse::Ipv4Header::new(
                payload as u16, 64, etherparse::IpNumber::TCP, source, destination).unwrap();
            header.dscp = etherparse::IpDscp::try_new(class >> 2).unwrap();
            header.ecn = etherparse::IpEcn::try_new(class & 3).unwrap();
            header.options = vec![1; words * 4].as_slice().try_into().unwrap();
            header.set_payload_len(payload).unwrap();
            header.header_checksum = header.calc_header_checksum();
            let mut packet = Vec::new();
            header.write(&mut packet).unwrap();
            packet.resize(packet.len() + payload, 0);
            let ip = Ip::read(&packet).unwrap();
            prop_assert_eq!((ip.source, ip.destination), (source.into(), destination.into()));
            prop_assert_eq!((ip.dscp, ip.ecn), (class >> 2, class & 3));
            prop_assert_eq!((ip.headers, ip.end), (20 + words * 4, packet.len()));
        }
    }
}
