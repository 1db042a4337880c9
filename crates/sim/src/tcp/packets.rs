//! Translates simulated segments into IPv4 packets with TCP headers, for byway's gateways, and
//! back. In TCP, but not in simulated segments, a SYN occupies a sequence number. So TCP's later
//! sequence numbers are higher by one. Some flags need an experimental option (RFC 6994).

use super::segment::{
    FLAG_ACK, FLAG_FIN, FLAG_PROBE, FLAG_REPLY, FLAG_RST, FLAG_SKIP, FLAG_SYN, MAX_HEADER_LEN, MAX_SACKS,
    Segment, SynFields,
};
use byway_wire::checksum::{fold, pseudo_header, sum};
use core::net::{IpAddr, SocketAddrV4};

const IP_HEADER_LEN: usize = 20;
const TCP_HEADER_LEN: usize = 20;
const TCP_PROTOCOL: u8 = 6;
/// The option's kind (RFC 6994). A length and `EXPERIMENT_ID` follow.
const EXPERIMENT_KIND: u8 = 253;
/// The experiment identifier in the TCP option (RFC 6994).
const EXPERIMENT_ID: [u8; 2] = *b"bw";
const TCP_FLAG_BITS: [(u8, u8); 4] = [(FLAG_FIN, 0x01), (FLAG_SYN, 0x02), (FLAG_RST, 0x04), (FLAG_ACK, 0x10)];
const EXPERIMENT_FLAGS: u8 = FLAG_PROBE | FLAG_SKIP | FLAG_REPLY;

/// A translator of one connection's packets, at one of its ends.
#[derive(Clone, Debug)]
pub struct Packets {
    here: SocketAddrV4,
    there: SocketAddrV4,
    mss: u16,
    /// The port in this host's SYN, which identifies its end.
    own: u32,
    identification: u16,
}

impl Packets {
    /// Makes a translator for packets between the hosts at `here` and `there`, whose addresses they
    /// contain. `mss`: the host's largest segment.
    #[must_use]
    pub const fn new(here: SocketAddrV4, there: SocketAddrV4, mss: u16) -> Self {
        Self { here, there, mss, own: 0, identification: 0 }
    }

    /// Appends to `out` the packet of a segment that the local host sends. `bytes` is the simulated
    /// segment, which has no payload; `data` is the payload's length in bytes. Returns `false` if
    /// `bytes` is no segment, or if the packet exceeds 65 535 bytes.
    pub fn pack(&mut self, bytes: &[u8], data: usize, out: &mut Vec<u8>) -> bool {
        let Some(segment) = Some(bytes).filter(|bytes| bytes.len() <= MAX_HEADER_LEN) else { return false };
        let Some(segment) = Segment::decode(segment, data) else { return false };
        if segment.has(FLAG_SYN) {
            self.own = segment.opening.port;
        }
        let options = self.options(&segment);
        let length = IP_HEADER_LEN + TCP_HEADER_LEN + options.len() + data;
        let Ok(total) = u16::try_from(length) else { return false };
        let begin = out.len();
        let (source, destination) = (self.here.ip().octets(), self.there.ip().octets());
        // In order: version and header length, total length, identification, "do not fragment",
        // then lifetime and protocol.
        out.extend([0x45, 0]);
        out.extend(total.to_be_bytes());
        out.extend(self.identification.to_be_bytes());
        out.extend([0x40, 0, 64, TCP_PROTOCOL, 0, 0]);
        out.extend(source.iter().chain(&destination));
        self.identification = self.identification.wrapping_add(1);
        let checksum = !fold(sum(out.get(begin..).unwrap_or_default()));
        put(out, begin + 10, checksum);
        let after = u32::from(!segment.has(FLAG_SYN));
        out.extend(self.here.port().to_be_bytes());
        out.extend(self.there.port().to_be_bytes());
        out.extend(segment.seq.wrapping_add(after).to_be_bytes());
        let acknowledged = if segment.has(FLAG_ACK) { segment.ack.wrapping_add(1) } else { 0 };
        out.extend(acknowledged.to_be_bytes());
        let flags =
            TCP_FLAG_BITS.iter().filter(|(ours, _)| segment.has(*ours)).fold(0, |all, (_, tcp)| all | tcp);
        out.extend([((TCP_HEADER_LEN + options.len()) as u8 / 4) << 4, flags]);
        out.extend(window(&segment).to_be_bytes());
        out.extend([0; 4]);
        out.extend(&options);
        // Zeros add nothing to the sum.
        let covered = sum(out.get(begin + IP_HEADER_LEN..).unwrap_or_default());
        let [here, there] = [self.here.ip(), self.there.ip()].map(|ip| IpAddr::V4(*ip));
        let pseudo = pseudo_header(here, there, TCP_PROTOCOL, length - IP_HEADER_LEN);
        put(out, begin + IP_HEADER_LEN + 16, !fold(covered + pseudo));
        out.resize(begin + length, 0);
        true
    }

    fn options(&self, segment: &Segment) -> Vec<u8> {
        let mut options = Vec::with_capacity(40);
        let stamps = [segment.stamp.to_be_bytes(), segment.echo.to_be_bytes()].concat();
        if segment.has(FLAG_SYN) {
            let [high, low] = self.mss.to_be_bytes();
            options.extend([2, 4, high, low, 1, 3, 3, segment.opening.shift]);
            options.extend(if segment.opening.sack { [4, 2] } else { [1, 1] });
            options.extend([8, 10]);
            options.extend(stamps);
            options.extend([EXPERIMENT_KIND, 12]);
            options.extend(EXPERIMENT_ID);
            options.extend(segment.opening.tag.to_be_bytes());
        } else {
            options.extend([1, 1, 8, 10]);
            options.extend(stamps);
            if segment.has(EXPERIMENT_FLAGS) {
                options.extend([EXPERIMENT_KIND, 5]);
                options.extend(EXPERIMENT_ID);
                options.extend([segment.flags & EXPERIMENT_FLAGS, 1, 1, 1]);
            } else if segment.sack_count > 0 {
                options.extend([1, 1, 5, 2 + 8 * segment.sack_count as u8]);
                for (from, to) in segment.sacks() {
                    options.extend(from.wrapping_add(1).to_be_bytes());
                    options.extend(to.wrapping_add(1).to_be_bytes());
                }
            }
        }
        options
    }

    /// Appends to `out` the segment of a packet for the local host, and returns the length of its
    /// data in bytes. `None`: the packet belongs to another connection, or cannot be read.
    /// Checksums are not verified here.
    pub fn unpack(&self, packet: &[u8], out: &mut Vec<u8>) -> Option<usize> {
        let (ip, rest) = packet.split_first_chunk::<IP_HEADER_LEN>()?;
        let (tcp, rest) = rest.split_first_chunk::<TCP_HEADER_LEN>()?;
        let (source, destination) = (self.there.ip().octets(), self.here.ip().octets());
        if ip[0] != 0x45 || ip[9] != TCP_PROTOCOL || ip[12..16] != source || ip[16..20] != destination {
            return None;
        }
        let number = |at: usize| {
            let four = tcp.get(at..)?.first_chunk::<4>()?;
            Some(u32::from_be_bytes(*four))
        };
        let ports = [self.there.port().to_be_bytes(), self.here.port().to_be_bytes()].concat();
        if tcp[..4] != ports {
            return None;
        }
        let (options, data) =
            rest.split_at_checked((usize::from(tcp[12] >> 4) * 4).checked_sub(TCP_HEADER_LEN)?)?;
        let flags = TCP_FLAG_BITS
            .iter()
            .filter(|(_, of_tcp)| tcp[13] & of_tcp != 0)
            .fold(0, |all, (ours, _)| all | ours);
        let mut segment = Segment {
            flags,
            to: self.own,
            window: u16::from_be_bytes([tcp[14], tcp[15]]),
            opening: SynFields::default(),
            ..Segment::default()
        };
        let after = u32::from(!segment.has(FLAG_SYN));
        segment.seq = number(4)?.wrapping_sub(after);
        segment.ack = if segment.has(FLAG_ACK) { number(8)?.wrapping_sub(1) } else { 0 };
        read(options, &mut segment)?;
        if segment.has(FLAG_SYN) && segment.window > 0 {
            segment.window = (segment.window >> segment.opening.shift.min(15)).max(1);
        }
        let begin = out.len();
        out.resize(begin + MAX_HEADER_LEN, 0);
        let size = segment.encode(data.len(), out.get_mut(begin..)?)?;
        out.truncate(begin + size);
        Some(data.len())
    }
}

/// The window field of a packet. In a SYN it is never shifted (RFC 7323, 2.2), although simulated
/// hosts shift it.
fn window(segment: &Segment) -> u16 {
    let shift = if segment.has(FLAG_SYN) { segment.opening.shift } else { 0 };
    u16::try_from(u64::from(segment.window) << shift).unwrap_or(u16::MAX)
}

/// Reads the options that [`Packets`] writes. `None`: they are malformed.
fn read(mut options: &[u8], segment: &mut Segment) -> Option<()> {
    while let Some((&kind, rest)) = options.split_first() {
        if kind == 1 {
            options = rest;
            continue;
        }
        let (&length, _) = rest.split_first()?;
        let (option, rest) = options.split_at_checked(usize::from(length))?;
        options = rest;
        let data = option.get(2..)?;
        match (kind, data) {
            (3, &[shift]) => segment.opening.shift = shift & 31,
            (4, []) => segment.opening.sack = true,
            (8, &[a, b, c, d, e, f, g, h]) => {
                segment.stamp = u32::from_be_bytes([a, b, c, d]);
                segment.echo = u32::from_be_bytes([e, f, g, h]);
            }
            (5, blocks) => {
                let blocks = blocks.as_chunks::<8>().0;
                segment.sack_count = blocks.len().min(MAX_SACKS);
                for (sack, &[a, b, c, d, e, f, g, h]) in segment.sacks.iter_mut().zip(blocks) {
                    let [from, to] = [[a, b, c, d], [e, f, g, h]].map(u32::from_be_bytes);
                    *sack = (from.wrapping_sub(1), to.wrapping_sub(1));
                }
            }
            (EXPERIMENT_KIND, data) => match (data.strip_prefix(&EXPERIMENT_ID)?, segment.has(FLAG_SYN)) {
                (&[beyond], false) => segment.flags |= beyond & EXPERIMENT_FLAGS,
                (tag, true) => segment.opening.tag = u64::from_be_bytes(*tag.first_chunk::<8>()?),
                _ => return None,
            },
            _ => {}
        }
    }
    Some(())
}

fn put(bytes: &mut [u8], at: usize, word: u16) {
    if let Some(place) = bytes.get_mut(at..at + 2) {
        place.copy_from_slice(&word.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends() -> (Packets, Packets) {
        let (a, b) = ("10.0.0.1:5000".parse().unwrap(), "10.0.0.2:4000".parse().unwrap());
        (Packets::new(a, b, 1448), Packets::new(b, a, 1448))
    }

    fn through(
        from: &mut Packets,
        to: &Packets,
        segment: &Segment,
        data: usize,
    ) -> (Segment, usize, Vec<u8>) {
        let (mut bytes, mut packet, mut other) = (vec![0; MAX_HEADER_LEN], Vec::new(), Vec::new());
        let size = segment.encode(data, &mut bytes).unwrap();
        assert!(from.pack(&bytes[..size], data, &mut packet));
        let data = to.unpack(&packet, &mut other).unwrap();
        (Segment::decode(&other, data).unwrap(), data, packet)
    }

    #[test]
    fn segments_come_out_as_they_went_in() {
        let (mut a, mut b) = ends();
        let opening = SynFields { port: 0x2_0007, shift: 11, sack: true, tag: u64::MAX - 3, answer: 0 };
        let syn = Segment { flags: FLAG_SYN, window: 65_535, stamp: 7, opening, ..Segment::default() };
        let (seen, _, packet) = through(&mut a, &b, &syn, 0);
        // Ports stay at their end, and a SYN promises no more than 64 KB.
        let window = 65_535 >> 11;
        assert_eq!(seen, Segment { window, opening: SynFields { port: 0, ..opening }, ..syn });
        assert_eq!(packet[34..36], [0xff, 0xff]);
        assert_eq!(packet.len(), 20 + 20 + 32);
        let answer = SynFields { port: 9, tag: 0, ..opening };
        let answer =
            Segment { flags: FLAG_SYN | FLAG_ACK, window: 500, opening: answer, stamp: 8, echo: 7, ..syn };
        let (seen, ..) = through(&mut b, &a, &answer, 0);
        assert_eq!((seen.to, seen.flags, seen.echo), (0x2_0007, FLAG_SYN | FLAG_ACK, 7));
        let sacks = [(10, 20), (u32::MAX - 5, 3), (0, 0)];
        let data = Segment {
            flags: FLAG_ACK | FLAG_FIN,
            seq: u32::MAX,
            ack: 5,
            sacks,
            sack_count: 2,
            ..Segment::default()
        };
        let (seen, length, packet) = through(&mut a, &b, &data, 1448);
        assert_eq!((seen, length), (Segment { to: 9, ..data }, 1448));
        assert_eq!(packet.len(), 1448 + 40 + 12 + 20);
        let probe = Segment { flags: FLAG_ACK | FLAG_PROBE | FLAG_SKIP, ..data };
        let (seen, ..) = through(&mut a, &b, &probe, 0);
        assert_eq!((seen.flags, seen.sack_count), (FLAG_ACK | FLAG_PROBE | FLAG_SKIP, 0));
    }

    #[test]
    fn sums_are_right() {
        let (mut a, b) = ends();
        for data in [0, 1, 1000] {
            let segment =
                Segment { flags: FLAG_ACK, seq: 0xfedc_ba98, window: 77, stamp: 1, ..Segment::default() };
            let (_, _, packet) = through(&mut a, &b, &segment, data);
            assert_eq!(fold(sum(&packet[..IP_HEADER_LEN])), 0xffff);
            let pseudo = sum(&packet[12..20]) + 6 + (packet.len() - IP_HEADER_LEN) as u64;
            assert_eq!(fold(sum(&packet[IP_HEADER_LEN..]) + pseudo), 0xffff);
        }
    }

    #[test]
    fn what_is_not_for_the_host_is_not_unpacked() {
        let (mut a, b) = ends();
        let segment = Segment { flags: FLAG_ACK, ..Segment::default() };
        let (_, _, packet) = through(&mut a, &b, &segment, 10);
        assert_eq!(a.unpack(&packet, &mut Vec::new()), None);
        for length in 0..52 {
            assert_eq!(b.unpack(&packet[..length], &mut Vec::new()), None, "{length}");
        }
        assert!(!a.pack(&[0; 30], 0, &mut Vec::new()));
        assert!(!a.pack(&packet, 0, &mut Vec::new()));
    }
}
