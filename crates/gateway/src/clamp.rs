//! Segments that fit once they are carried: the maximum segment size that a SYN names is lowered by
//! what the session adds.

use crate::tcp_header::{Flags, OPTION_MSS};
use crate::tcp_segment::Segment;

/// The maximum segment size in bytes for IP packets of at most `packet` bytes. IP and TCP headers
/// take 40 bytes (IPv4) or 60 (IPv6). TCP options are not subtracted: the sender subtracts them
/// itself (RFC 6691).
#[must_use]
pub const fn mss_for(packet: usize, v6: bool) -> u16 {
    let mss = packet.saturating_sub(if v6 { 60 } else { 40 });
    if mss > u16::MAX as usize { u16::MAX } else { mss as u16 }
}

/// Bytes of a session's packet that are headers and not a host's data: the host's IP and TCP
/// headers, the headers of the session, the relay's envelope, and the outer UDP and IP headers.
const HEADER_BYTES: usize = 160;

/// The packet size in bytes with which all paths together carry the most data of hosts. `largest`:
/// each path's largest packet. Smaller packets fit more paths, but spend a larger share on headers.
/// Zero if there are no paths.
#[must_use]
pub fn best_packet<I: Iterator<Item = usize>>(largest: impl Fn() -> I) -> usize {
    let through = |size: usize| {
        let paths = largest().filter(|largest| *largest >= size).count();
        // Parts per million of what the paths carry that are bytes of hosts.
        paths * (size.saturating_sub(HEADER_BYTES) * 1_000_000 / size.max(1))
    };
    largest().max_by_key(|size| (through(*size), *size)).unwrap_or_default()
}

/// A change of the maximum segment size in a SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MssChange {
    /// The maximum segment size before the change.
    pub from: u16,
    /// The maximum segment size after the change.
    pub to: u16,
}

/// Lowers the maximum segment size in a SYN to `most` bytes; `segment` is the parsed `packet`.
/// Without an MSS option nothing changes. Hosts then use 536 bytes (IPv4) or 1220 (IPv6; RFC 9293,
/// section 3.7.1), which pass every path.
pub fn clamp(packet: &mut [u8], segment: &Segment, most: u16) -> Option<MssChange> {
    if !segment.tcp.flags.any(Flags::SYN) {
        return None;
    }
    let mut clamped = None;
    // Each in turn: a host may take the first or the last of several.
    let mut from = 0;
    loop {
        let found = segment.tcp.walk(packet).filter_map(Result::ok).find_map(|option| {
            match (option.kind, option.data) {
                (OPTION_MSS, &[high, low]) if option.at > from => {
                    Some((option.at, u16::from_be_bytes([high, low])))
                }
                _ => None,
            }
        });
        let Some((at, mss)) = found else { return clamped };
        if mss > most && segment.set_word(packet, at, most) {
            clamped = Some(MssChange { from: mss, to: most });
        }
        from = at;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checksum::ChecksumState;
    use crate::testing::{IP_HEADER_LEN, build};
    use alloc::vec::Vec;
    use etherparse::TcpHeader;
    use proptest::prelude::*;

    fn syn(options: &[u8], ack: bool) -> Vec<u8> {
        let mut header = TcpHeader::new(1, 2, 3, 4);
        (header.syn, header.ack) = (true, ack);
        header.set_options_raw(options).unwrap();
        build(&header, b"")
    }

    #[test]
    fn sizes_of_segments() {
        assert_eq!((mss_for(1_400, false), mss_for(1_400, true), mss_for(10, true)), (1_360, 1_340, 0));
        assert_eq!(mss_for(1 << 20, false), u16::MAX);
    }

    #[test]
    fn one_narrow_path_counts_as_one() {
        let best = |largest: &[usize]| best_packet(|| largest.iter().copied());
        assert_eq!((best(&[]), best(&[1_400]), best(&[1_400, 1_100])), (0, 1_400, 1_100));
        assert_eq!(best(&[1_400, 1_400, 300]), 1_400, "half of each packet would be headers");
        let mut many = [8_900; 20];
        many[0] = 1_100;
        assert_eq!(best(&many), 8_900);
    }

    #[test]
    fn only_what_a_syn_names_is_lowered() {
        let mut packet = syn(&[1, 1, 1, 2, 4, 5, 0xb4, 1], false);
        let segment = Segment::read(&packet, ChecksumState::Full).unwrap();
        assert_eq!(clamp(&mut packet, &segment, 1_400), Some(MssChange { from: 1_460, to: 1_400 }));
        let segment = Segment::read(&packet, ChecksumState::Full).unwrap();
        assert_eq!(segment.tcp.options.mss, Some(1_400));
        assert_eq!(clamp(&mut packet, &segment, 1_401), None);
        let mut twice = syn(&[2, 4, 0x20, 0, 1, 2, 4, 0x30, 0, 0, 0, 0], true);
        let segment = Segment::read(&twice, ChecksumState::Full).unwrap();
        assert!(clamp(&mut twice, &segment, 536).is_some());
        assert_eq!(twice[IP_HEADER_LEN + 20..], [2, 4, 2, 24, 1, 2, 4, 2, 24, 0, 0, 0]);
        assert!(Segment::read(&twice, ChecksumState::Full).is_ok());
        let mut data = build(
            &{
                let mut header = TcpHeader::new(1, 2, 3, 4);
                header.ack = true;
                header.set_options_raw(&[2, 4, 0x20, 0]).unwrap();
                header
            },
            b"",
        );
        let segment = Segment::read(&data, ChecksumState::Full).unwrap();
        assert_eq!(clamp(&mut data, &segment, 536), None);
    }

    proptest! {
        #[test]
        fn the_checksum_stays_right_wherever_the_option_stands(nops in 0usize..8, mss: u16, most: u16) {
            let mut options = alloc::vec![1; nops];
            options.extend([2, 4]);
            options.extend(mss.to_be_bytes());
            let mut packet = syn(&options, false);
            let segment = Segment::read(&packet, ChecksumState::Full).unwrap();
            prop_assert_eq!(clamp(&mut packet, &segment, most).is_some(), mss > most);
            let read = Segment::read(&packet, ChecksumState::Full).unwrap();
            prop_assert_eq!(read.tcp.options.mss, Some(mss.min(most)));
            prop_assert_eq!(clamp(&mut packet, &read, most), None);
        }
    }
}
