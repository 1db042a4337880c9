//! The ICMP message "packet too big" (RFC 1191; RFC 4443, section 3.2), for a host whose packet no
//! path carries. The source address is the packet's destination. Hosts accept any source, because
//! they match the packet that the message quotes.

use crate::ip_header::Ip;
use alloc::vec::Vec;
use byway_wire::checksum::{fold, pseudo_header, sum};
use core::net::IpAddr;

const ICMP_PROTOCOL: u8 = 1;
const ICMP_V6_PROTOCOL: u8 = 58;
/// Bytes of an IPv4 header without options.
const HEADER_V4_LEN: usize = 20;
/// Bytes of an IPv6 header.
const HEADER_V6_LEN: usize = 40;
/// Bytes of the ICMP message before the quoted packet.
const MESSAGE_LEN: usize = 8;
/// Bytes of the packet that an ICMP message quotes besides the IP headers: ports and sequence
/// number of TCP.
const QUOTED_TCP_LEN: usize = 8;
/// Hops that the message may take.
const HOP_LIMIT: u8 = 64;

/// Makes the ICMP message for the sender of `packet`, whose headers are `ip`: the largest packet
/// has `most` bytes. `None`: `packet` is too short.
#[must_use]
pub fn too_big(packet: &[u8], ip: &Ip, most: usize) -> Option<Vec<u8>> {
    let quoted = packet.get(..ip.headers + QUOTED_TCP_LEN)?;
    let most = u16::try_from(most).unwrap_or(u16::MAX).to_be_bytes();
    let mut message = match (ip.source, ip.destination) {
        (IpAddr::V4(_), _) => alloc::vec![3, 4, 0, 0, 0, 0, most[0], most[1]],
        (IpAddr::V6(_), _) => alloc::vec![2, 0, 0, 0, 0, 0, most[0], most[1]],
    };
    debug_assert_eq!(message.len(), MESSAGE_LEN);
    message.extend_from_slice(quoted);
    let around = match ip.source {
        IpAddr::V4(_) => 0,
        IpAddr::V6(_) => pseudo_header(ip.destination, ip.source, ICMP_V6_PROTOCOL, message.len()),
    };
    let check = !fold(sum(&message) + around);
    message.get_mut(2..4)?.copy_from_slice(&check.to_be_bytes());
    let mut told = match (ip.destination, ip.source) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let length = u16::try_from(HEADER_V4_LEN + message.len()).ok()?.to_be_bytes();
            let mut header =
                alloc::vec![0x45, 0, length[0], length[1], 0, 0, 0, 0, HOP_LIMIT, ICMP_PROTOCOL, 0, 0];
            header.extend(from.octets().into_iter().chain(to.octets()));
            let check = !fold(sum(&header));
            header.get_mut(10..12)?.copy_from_slice(&check.to_be_bytes());
            header
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let length = u16::try_from(message.len()).ok()?.to_be_bytes();
            let mut header = alloc::vec![0x60, 0, 0, 0, length[0], length[1], ICMP_V6_PROTOCOL, HOP_LIMIT];
            header.extend(from.octets().into_iter().chain(to.octets()));
            debug_assert_eq!(header.len(), HEADER_V6_LEN);
            header
        }
        _ => return None,
    };
    told.extend_from_slice(&message);
    Some(told)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{tcp_v4, tcp_v6};
    use etherparse::{Icmpv4Type, Icmpv6Type, SlicedPacket, TransportSlice, icmpv4};

    #[test]
    fn a_host_of_version_4_is_told() {
        let packet = tcp_v4(&[7; 1_000]);
        let ip = Ip::read(&packet).unwrap();
        let told = too_big(&packet, &ip, 900).unwrap();
        let back = Ip::read(&told).unwrap();
        assert_eq!(
            (back.source, back.destination, back.protocol),
            (ip.destination, ip.source, ICMP_PROTOCOL)
        );
        let sliced = SlicedPacket::from_ip(&told).unwrap();
        let Some(TransportSlice::Icmpv4(icmp)) = sliced.transport else { panic!("{sliced:?}") };
        let expected = icmpv4::DestUnreachableHeader::FragmentationNeeded { next_hop_mtu: 900 };
        assert_eq!(icmp.icmp_type(), Icmpv4Type::DestinationUnreachable(expected));
        assert_eq!(icmp.payload(), &packet[..28]);
        assert_eq!(fold(sum(&told[20..])), 0xffff);
    }

    #[test]
    fn a_host_of_version_6_is_told() {
        let packet = tcp_v6(&[7; 1_000]);
        let ip = Ip::read(&packet).unwrap();
        let told = too_big(&packet, &ip, 1_300).unwrap();
        let back = Ip::read(&told).unwrap();
        assert_eq!(
            (back.source, back.destination, back.protocol),
            (ip.destination, ip.source, ICMP_V6_PROTOCOL)
        );
        let sliced = SlicedPacket::from_ip(&told).unwrap();
        let Some(TransportSlice::Icmpv6(icmp)) = sliced.transport else { panic!("{sliced:?}") };
        assert_eq!(icmp.icmp_type(), Icmpv6Type::PacketTooBig { mtu: 1_300 });
        assert_eq!(icmp.payload(), &packet[..48]);
        let (IpAddr::V6(from), IpAddr::V6(to)) = (back.source, back.destination) else { panic!() };
        assert!(icmp.is_checksum_valid(from.octets(), to.octets()));
        assert_eq!(too_big(&packet[..44], &ip, 1_300), None);
    }
}
