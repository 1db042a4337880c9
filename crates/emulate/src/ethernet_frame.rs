//! Reads and changes an Ethernet frame: its size on the line, and its ECN mark.

use byway_wire::Ecn;
use byway_wire::checksum::replaced;

/// Bytes of an Ethernet header. The lines of the lab count bytes from the IP header on, as those of
/// the simulator do.
pub const ETHERNET_HEADER_LEN: usize = 14;

const ETHERTYPE_IPV4: [u8; 2] = [0x08, 0x00];
const ETHERTYPE_IPV6: [u8; 2] = [0x86, 0xdd];
const PROTOCOL_TCP: u8 = 6;
const PROTOCOL_UDP: u8 = 17;
/// The bits of the flags and fragment offset in an IPv4 header that are set only in fragments.
const FRAGMENT_MASK: u16 = 0x3fff;

/// Bytes that a frame has on the line.
#[must_use]
pub fn size(frame: &[u8]) -> usize {
    frame.len().saturating_sub(ETHERNET_HEADER_LEN)
}

/// Whether the kernel itself sent this frame: a report of multicast groups by MLDv2 (RFC 3810) or
/// IGMPv3 (RFC 3376). Links ignore these reports, since reports would use up random numbers and so
/// change the faults of later frames.
#[must_use]
pub fn nobody_sent(frame: &[u8]) -> bool {
    matches!(frame.get(..6), Some([0x33, 0x33, 0, 0, 0, 0x16] | [0x01, 0x00, 0x5e, 0, 0, 0x16]))
}

/// The ECN mark in the IP header of a frame. `NotEct` if the frame is not IP.
#[must_use]
pub fn ecn(frame: &[u8]) -> Ecn {
    let bits = match kind(frame) {
        Some(ETHERTYPE_IPV4) => frame.get(ETHERNET_HEADER_LEN + 1).copied().unwrap_or(0),
        // The traffic class lies across two bytes: its last two bits are bits 4 and 5 of the
        // second.
        Some(ETHERTYPE_IPV6) => frame.get(ETHERNET_HEADER_LEN + 1).copied().unwrap_or(0) >> 4,
        _ => 0,
    };
    match bits & 3 {
        0 => Ecn::NotEct,
        1 => Ecn::Ect1,
        2 => Ecn::Ect0,
        _ => Ecn::Ce,
    }
}

/// A hash that identifies the flow of a frame: of its IP addresses, protocol and, for TCP and UDP,
/// ports. Ports are left out in IPv4 fragments and behind IPv6 extension headers. Frames without IP
/// have the hash 0.
#[must_use]
pub fn flow(frame: &[u8]) -> u64 {
    let at = |from: usize, to: usize| {
        frame.get(ETHERNET_HEADER_LEN + from..ETHERNET_HEADER_LEN + to).unwrap_or_default()
    };
    let (addresses, protocol, ports) = match kind(frame) {
        Some(ETHERTYPE_IPV4) => {
            let header = usize::from(frame.get(ETHERNET_HEADER_LEN).copied().unwrap_or(0) & 0xf) * 4;
            let whole = word(frame, ETHERNET_HEADER_LEN + 6) & FRAGMENT_MASK == 0;
            (at(12, 20), at(9, 10), if whole { at(header, header + 4) } else { &[] })
        }
        Some(ETHERTYPE_IPV6) => (at(8, 40), at(6, 7), at(40, 44)),
        _ => return 0,
    };
    let ports = if matches!(protocol, [PROTOCOL_TCP | PROTOCOL_UDP]) { ports } else { &[] };
    let hashed = addresses.iter().chain(protocol).chain(ports);
    // FNV-1a.
    hashed.fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Marks a frame CE, if it is IP and ECN-capable.
pub fn mark(frame: &mut [u8]) {
    if matches!(ecn(frame), Ecn::NotEct | Ecn::Ce) {
        return;
    }
    match kind(frame) {
        Some(ETHERTYPE_IPV4) => {
            let before = word(frame, ETHERNET_HEADER_LEN);
            if let Some(byte) = frame.get_mut(ETHERNET_HEADER_LEN + 1) {
                *byte |= 3;
            }
            let (after, sum) = (word(frame, ETHERNET_HEADER_LEN), word(frame, ETHERNET_HEADER_LEN + 10));
            let sum = replaced(sum, before, after).to_be_bytes();
            if let Some(place) = frame.get_mut(ETHERNET_HEADER_LEN + 10..ETHERNET_HEADER_LEN + 12) {
                place.copy_from_slice(&sum);
            }
        }
        // Nothing sums up an IPv6 header.
        Some(ETHERTYPE_IPV6) => {
            if let Some(byte) = frame.get_mut(ETHERNET_HEADER_LEN + 1) {
                *byte |= 3 << 4;
            }
        }
        _ => {}
    }
}

/// The part of a frame that a line can corrupt: all but the Ethernet header, which exists only in
/// the emulation.
pub fn on_the_line(frame: &mut [u8]) -> &mut [u8] {
    frame.get_mut(ETHERNET_HEADER_LEN..).unwrap_or_default()
}

fn kind(frame: &[u8]) -> Option<[u8; 2]> {
    frame.get(12..14)?.try_into().ok()
}

fn word(frame: &[u8], at: usize) -> u16 {
    frame.get(at..at + 2).and_then(|two| two.try_into().ok()).map_or(0, u16::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use byway_wire::checksum::{fold, sum};

    /// Makes an Ethernet frame with only an IPv4 header and its checksum.
    fn v4(tos: u8) -> Vec<u8> {
        let mut frame = vec![0; ETHERNET_HEADER_LEN];
        frame[12..14].copy_from_slice(&ETHERTYPE_IPV4);
        frame.extend([0x45, tos, 0, 20, 0x12, 0x34, 0x40, 0, 64, 17, 0, 0, 10, 66, 0, 1, 10, 66, 0, 2]);
        let sum = !fold(sum(&frame[ETHERNET_HEADER_LEN..]));
        frame[ETHERNET_HEADER_LEN + 10..ETHERNET_HEADER_LEN + 12].copy_from_slice(&sum.to_be_bytes());
        frame
    }

    fn v6(class: u8) -> Vec<u8> {
        let mut frame = vec![0; ETHERNET_HEADER_LEN];
        frame[12..14].copy_from_slice(&ETHERTYPE_IPV6);
        frame.extend([0x60 | class >> 4, class << 4, 0, 0, 0, 0, 17, 64]);
        frame.extend([0; 32]);
        frame
    }

    #[test]
    fn marks_are_read_and_set_and_sums_stay_right() {
        for (bits, before) in [(0, Ecn::NotEct), (1, Ecn::Ect1), (2, Ecn::Ect0), (3, Ecn::Ce)] {
            let after = if bits == 0 { Ecn::NotEct } else { Ecn::Ce };
            for (kind, mut frame) in [("IPv4", v4(0xb8 | bits)), ("IPv6", v6(0xb8 | bits))] {
                assert_eq!(ecn(&frame), before, "{kind}");
                mark(&mut frame);
                assert_eq!(ecn(&frame), after, "{kind}");
                if kind == "IPv4" {
                    assert_eq!(fold(sum(&frame[ETHERNET_HEADER_LEN..])), 0xffff, "the header's sum");
                    assert_eq!(frame[ETHERNET_HEADER_LEN + 1] & 0xfc, 0xb8, "DSCP stays");
                } else {
                    assert_eq!(
                        frame[ETHERNET_HEADER_LEN..ETHERNET_HEADER_LEN + 2],
                        [0x6b, (8 | if bits == 0 { 0 } else { 3 }) << 4]
                    );
                }
            }
        }
    }

    #[test]
    fn a_flow_is_what_goes_between_two_ports() {
        let with = |mut frame: Vec<u8>, ports: [u8; 4], data: u8| {
            frame.extend(ports);
            frame.push(data);
            flow(&frame)
        };
        for header in [v4(0), v6(0)] {
            let one = with(header.clone(), [0, 1, 0, 2], 7);
            assert_eq!(with(header.clone(), [0, 1, 0, 2], 8), one);
            assert_ne!(with(header.clone(), [0, 1, 0, 3], 7), one);
            let mut other = header;
            other[ETHERNET_HEADER_LEN + 15] ^= 1;
            assert_ne!(with(other, [0, 1, 0, 2], 7), one);
        }
        // What stands behind the header of a later fragment is no port.
        let mut fragment = v4(0);
        fragment[ETHERNET_HEADER_LEN + 7] = 185;
        assert_eq!(with(fragment.clone(), [0, 1, 0, 2], 7), with(fragment, [9, 9, 9, 9], 7));
        assert_eq!(flow(&[0xff; 60]), flow(&[0xee; 8]));
    }

    #[test]
    fn what_is_no_ip_is_left_alone() {
        for length in 0..40 {
            let mut frame = vec![0xff; length];
            assert_eq!(ecn(&frame), Ecn::NotEct);
            mark(&mut frame);
            assert_eq!(frame, vec![0xff; length]);
            assert_eq!(size(&frame), length.saturating_sub(ETHERNET_HEADER_LEN));
        }
    }

    #[test]
    fn a_truncated_header_does_no_harm() {
        for length in ETHERNET_HEADER_LEN..ETHERNET_HEADER_LEN + 20 {
            let mut frame = v4(2);
            frame.truncate(length);
            mark(&mut frame);
            assert_eq!(frame.len(), length);
        }
    }
}
