//! A TCP segment in its IP packet: both headers read and checked together, and the changes that a
//! gateway makes to them.

use crate::bypass::BypassReason;
use crate::checksum::ChecksumState;
use crate::ip_header::{Ip, PROTOCOL_TCP};
use crate::key::FlowKey;
use crate::tcp_header::{CHECKSUM_AT, Flags, Tcp};
use byway_wire::checksum::{self, fold, pseudo_header, replaced_at, sum};

/// A view of a TCP segment. It holds places and values but not the bytes, so that the bytes can be
/// changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The IP headers.
    pub ip: Ip,
    /// The TCP header.
    pub tcp: Tcp,
    /// The state of the checksum.
    pub checksum: ChecksumState,
}

impl Segment {
    /// Reads and checks `packet`.
    ///
    /// # Errors
    /// Why the packet is to be passed on.
    pub fn read(packet: &[u8], checksum: ChecksumState) -> Result<Self, BypassReason> {
        let ip = Ip::read(packet)?;
        if ip.protocol != PROTOCOL_TCP {
            return Err(BypassReason::NotTcp);
        }
        let packet = packet.get(..ip.end).ok_or(BypassReason::Truncated)?;
        let tcp = Tcp::read(packet, ip.headers)?;
        let segment = Self { ip, tcp, checksum };
        let intact = checksum != ChecksumState::Full
            || fold(segment.pseudo_header() + sum(packet.get(tcp.at..).unwrap_or_default())) == 0xffff;
        if intact { Ok(segment) } else { Err(BypassReason::TcpChecksum) }
    }

    /// Returns the key of the segment's flow, in the direction of the segment.
    #[must_use]
    pub const fn key(&self) -> FlowKey {
        FlowKey {
            source: self.ip.source,
            destination: self.ip.destination,
            source_port: self.tcp.source,
            destination_port: self.tcp.destination,
        }
    }

    /// Bytes of payload.
    #[must_use]
    pub const fn payload_len(&self) -> usize {
        self.ip.end - self.tcp.payload
    }

    /// Returns the sequence numbers that the segment takes: its payload, and one each for SYN and
    /// FIN.
    #[must_use]
    pub const fn sequence_len(&self) -> u32 {
        let flags = self.tcp.flags;
        self.payload_len() as u32 + flags.any(Flags::SYN) as u32 + flags.any(Flags::FIN) as u32
    }

    /// Returns the sequence number one past the segment's last.
    #[must_use]
    pub const fn sequence_end(&self) -> u32 {
        self.tcp.sequence.wrapping_add(self.sequence_len())
    }

    /// Whether the segment only acknowledges: it has an ACK, but no data, SYN, FIN or RST.
    #[must_use]
    pub const fn only_acknowledges(&self) -> bool {
        let flags = self.tcp.flags;
        let life = Flags::SYN.0 | Flags::FIN.0 | Flags::RST.0;
        self.payload_len() == 0 && flags.any(Flags::ACK) && flags.0 & life == 0
    }

    /// Writes `value` over the two bytes at `at` and keeps the checksum right (RFC 1624). `at`
    /// counts from the start of the IP packet. Returns whether `at` lies within the TCP header; if
    /// not, nothing is written.
    pub fn set_word(&self, packet: &mut [u8], at: usize, value: u16) -> bool {
        if at < self.tcp.at || at + 2 > self.tcp.payload {
            return false;
        }
        let Some(place) = packet.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<2>()) else {
            return false;
        };
        let old = u16::from_be_bytes(*place);
        *place = value.to_be_bytes();
        // A partial checksum covers the pseudo-header alone until somebody completes it.
        if self.checksum != ChecksumState::Partial {
            let field =
                packet.get_mut(self.tcp.at + CHECKSUM_AT..).and_then(|rest| rest.first_chunk_mut::<2>());
            if let Some(field) = field {
                let sum = u16::from_be_bytes(*field);
                *field = replaced_at(sum, old, value, at - self.tcp.at).to_be_bytes();
            }
        }
        true
    }

    /// Completes a partial checksum, if nothing else will do so later. A complete one is left as it
    /// is.
    pub fn complete(&mut self, packet: &mut [u8]) {
        if self.checksum == ChecksumState::Partial {
            if let Some(bytes) = packet.get_mut(self.tcp.at..self.ip.end) {
                checksum::complete(bytes, CHECKSUM_AT);
            }
            self.checksum = ChecksumState::Checked;
        }
    }

    fn pseudo_header(&self) -> u64 {
        pseudo_header(self.ip.source, self.ip.destination, PROTOCOL_TCP, self.ip.end - self.tcp.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp_header::WINDOW_AT;
    use crate::testing::{tcp_v4, tcp_v6};
    use proptest::prelude::*;

    #[test]
    fn what_is_not_tcp_or_not_intact_is_left_alone() {
        for packet in [tcp_v4(b"odd"), tcp_v6(b"even")] {
            let segment = Segment::read(&packet, ChecksumState::Full).unwrap();
            assert_eq!(segment.payload_len(), packet.len() - segment.tcp.payload);
            for at in segment.tcp.at..packet.len() {
                let mut broken = packet.clone();
                broken[at] ^= 0x80;
                assert!(Segment::read(&broken, ChecksumState::Full).is_err(), "byte {at}");
                if at >= segment.tcp.payload {
                    assert_eq!(Segment::read(&broken, ChecksumState::Full), Err(BypassReason::TcpChecksum));
                    assert!(Segment::read(&broken, ChecksumState::Checked).is_ok());
                }
            }
        }
        let mut udp = tcp_v6(b"");
        udp[6] = 17;
        assert_eq!(Segment::read(&udp, ChecksumState::Full), Err(BypassReason::NotTcp));
    }

    #[test]
    fn syn_and_fin_take_a_number_each() {
        let mut packet = tcp_v4(b"12345");
        let read = |packet: &[u8]| Segment::read(packet, ChecksumState::Checked).unwrap();
        assert_eq!(read(&packet).sequence_len(), 5);
        packet[33] |= 1;
        assert_eq!(read(&packet).sequence_len(), 6);
        assert_eq!(read(&tcp_v4(b"")).sequence_len(), 0);
    }

    #[test]
    fn what_only_acknowledges_has_neither_data_nor_a_say_in_the_flow_s_life() {
        let only = |packet: &[u8]| Segment::read(packet, ChecksumState::Checked).unwrap().only_acknowledges();
        assert!(only(&tcp_v4(b"")) && !only(&tcp_v4(b"12345")));
        let mut fin = tcp_v4(b"");
        fin[33] |= 1;
        assert!(!only(&fin));
    }

    proptest! {
        #[test]
        fn a_change_keeps_the_checksum_right(
            v6: bool, payload in prop::collection::vec(any::<u8>(), 0..50), at in 0usize..30, value: u16
        ) {
            let mut packet = if v6 { tcp_v6(&payload) } else { tcp_v4(&payload) };
            let segment = Segment::read(&packet, ChecksumState::Full).unwrap();
            let place = segment.tcp.at + at;
            prop_assume!(!(11..14).contains(&at) && !(15..18).contains(&at), "length, flags, the checksum itself");
            prop_assert_eq!(segment.set_word(&mut packet, place, value), at <= 18);
            prop_assert!(Segment::read(&packet, ChecksumState::Full).is_ok());
        }

        #[test]
        fn a_partial_checksum_is_completed_to_the_one_that_was(
            v6: bool, payload in prop::collection::vec(any::<u8>(), 0..50), window: u16
        ) {
            let mut whole = if v6 { tcp_v6(&payload) } else { tcp_v4(&payload) };
            let segment = Segment::read(&whole, ChecksumState::Full).unwrap();
            let mut packet = whole.clone();
            let field = segment.tcp.at + CHECKSUM_AT;
            packet[field..field + 2].copy_from_slice(&fold(segment.pseudo_header()).to_be_bytes());
            let mut partial = Segment::read(&packet, ChecksumState::Partial).unwrap();
            prop_assert!(segment.set_word(&mut whole, segment.tcp.at + WINDOW_AT, window));
            prop_assert!(partial.set_word(&mut packet, segment.tcp.at + WINDOW_AT, window));
            partial.complete(&mut packet);
            prop_assert_eq!(partial.checksum, ChecksumState::Checked);
            partial.complete(&mut packet);
            prop_assert_eq!(packet, whole);
        }
    }
}
