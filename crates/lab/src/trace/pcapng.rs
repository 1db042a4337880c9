//! Writes the datagrams of a simulated world as a pcapng file (draft-ietf-opsawg-pcapng): raw IP
//! packets with generated UDP headers, times in nanoseconds. Payload that has only a length looks
//! as if the capture had cut it off.

use byway_wire::checksum::{fold, sum};
use byway_wire::{Ecn, Instant};
use core::net::{IpAddr, SocketAddr};
use std::io::{self, Write};

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
/// LINKTYPE_RAW: the packet begins with an IPv4 or IPv6 header.
const RAW_IP: u16 = 101;
const PROTOCOL_UDP: u8 = 17;
const HOP_LIMIT: u8 = 64;

/// Writes a pcapng file: one section with one interface.
#[derive(Debug)]
pub struct Pcapng<W> {
    out: W,
    packet: Vec<u8>,
}

impl<W: Write> Pcapng<W> {
    /// Writes the headers.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn new(out: W) -> io::Result<Self> {
        let mut file = Self { out, packet: Vec::new() };
        let mut section = Vec::new();
        section.extend_from_slice(&0x1a2b_3c4d_u32.to_le_bytes());
        section.extend_from_slice(&1_u16.to_le_bytes());
        section.extend_from_slice(&0_u16.to_le_bytes());
        // Length of the section: not known.
        section.extend_from_slice(&u64::MAX.to_le_bytes());
        file.block(SECTION_HEADER, &section)?;
        let mut interface = Vec::new();
        interface.extend_from_slice(&RAW_IP.to_le_bytes());
        interface.extend_from_slice(&[0; 2]);
        // No limit of length.
        interface.extend_from_slice(&0_u32.to_le_bytes());
        // Option if_tsresol (9) is one byte for 10^-9 s. Then the end of options.
        interface.extend_from_slice(&[9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0]);
        file.block(INTERFACE_DESCRIPTION, &interface)?;
        Ok(file)
    }

    /// Writes a datagram of `payload` and `phantom` further bytes.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn datagram(
        &mut self,
        at: Instant,
        (from, to): (SocketAddr, SocketAddr),
        ecn: Ecn,
        payload: &[u8],
        phantom: usize,
    ) -> io::Result<()> {
        let mut packet = core::mem::take(&mut self.packet);
        packet.clear();
        // Stamp, lengths: filled in below.
        packet.extend_from_slice(&0_u32.to_le_bytes());
        let nanos = at.as_nanos();
        packet.extend_from_slice(&((nanos >> 32) as u32).to_le_bytes());
        packet.extend_from_slice(&(nanos as u32).to_le_bytes());
        packet.extend_from_slice(&[0; 8]);
        let data = packet.len();
        let udp = 8 + payload.len() + phantom;
        ip_header(&mut packet, from.ip(), to.ip(), ecn, udp);
        packet.extend_from_slice(&from.port().to_be_bytes());
        packet.extend_from_slice(&to.port().to_be_bytes());
        packet.extend_from_slice(&(udp as u16).to_be_bytes());
        // No checksum.
        packet.extend_from_slice(&[0; 2]);
        packet.extend_from_slice(payload);
        let captured = (packet.len() - data) as u32;
        let original = captured + phantom as u32;
        if let Some(lengths) = packet.get_mut(12..20) {
            lengths.copy_from_slice(&(u64::from(original) << 32 | u64::from(captured)).to_le_bytes());
        }
        packet.resize(packet.len().next_multiple_of(4), 0);
        let result = self.block(ENHANCED_PACKET, &packet);
        self.packet = packet;
        result
    }

    /// Writes the bytes that are still buffered.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn finish(mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn block(&mut self, kind: u32, body: &[u8]) -> io::Result<()> {
        let length = (12 + body.len()) as u32;
        self.out.write_all(&kind.to_le_bytes())?;
        self.out.write_all(&length.to_le_bytes())?;
        self.out.write_all(body)?;
        self.out.write_all(&length.to_le_bytes())
    }
}

fn ip_header(out: &mut Vec<u8>, from: IpAddr, to: IpAddr, ecn: Ecn, length: usize) {
    let mark = match ecn {
        Ecn::NotEct => 0,
        Ecn::Ect1 => 1,
        Ecn::Ect0 => 2,
        Ecn::Ce => 3,
    };
    match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let begin = out.len();
            out.extend_from_slice(&[0x45, mark]);
            out.extend_from_slice(&((20 + length) as u16).to_be_bytes());
            // No fragments; the checksum follows.
            out.extend_from_slice(&[0, 0, 0x40, 0, HOP_LIMIT, PROTOCOL_UDP, 0, 0]);
            out.extend_from_slice(&from.octets());
            out.extend_from_slice(&to.octets());
            let checksum = !fold(sum(out.get(begin..).unwrap_or_default()));
            if let Some(place) = out.get_mut(begin + 10..begin + 12) {
                place.copy_from_slice(&checksum.to_be_bytes());
            }
        }
        (from, to) => {
            let octets = |ip: IpAddr| match ip {
                IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
                IpAddr::V6(ip) => ip.octets(),
            };
            out.extend_from_slice(&[0x60, mark << 4, 0, 0]);
            out.extend_from_slice(&(length as u16).to_be_bytes());
            out.extend_from_slice(&[PROTOCOL_UDP, HOP_LIMIT]);
            out.extend_from_slice(&octets(from));
            out.extend_from_slice(&octets(to));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_in_hex() {
        let mut file = Vec::new();
        let mut writer = Pcapng::new(&mut file).expect("headers");
        let ends = (([10, 0, 0, 1], 1000).into(), ([10, 0, 0, 2], 2000).into());
        writer.datagram(Instant::from_nanos(0x1_0000_0002), ends, Ecn::Ce, b"abc", 100).expect("a packet");
        writer.finish().expect("flushed");
        let hex: String = file.iter().map(|byte| format!("{byte:02x}")).collect();
        let section = "0a0d0d0a1c0000004d3c2b1a01000000ffffffffffffffff1c000000";
        let interface = "01000000200000006500000000000000090001000900000000000000" /* options */;
        let interface_end = "20000000";
        assert!(hex.starts_with(&format!("{section}{interface}{interface_end}")), "{hex}");
        let packet = hex.trim_start_matches(&format!("{section}{interface}{interface_end}"));
        // Block, interface 0, stamp, 31 of 131 bytes.
        assert!(packet.starts_with("0600000040000000000000000100000002000000"), "{packet}");
        assert!(packet.contains("1f00000083000000"), "{packet}");
        // IPv4 with CE and a length of 131, UDP with 111.
        assert!(packet.contains("45030083000040004011"), "{packet}");
        assert!(packet.contains("0a0000010a00000203e807d0006f0000616263"), "{packet}");
        assert_eq!(file.len() % 4, 0);
    }

    #[test]
    fn a_header_with_its_checksum_sums_to_nothing() {
        let mut header = Vec::new();
        ip_header(&mut header, [192, 168, 1, 2].into(), [10, 0, 0, 1].into(), Ecn::NotEct, 100);
        assert_eq!(header.len(), 20);
        assert_eq!(fold(sum(&header)), 0xffff);
    }
}
