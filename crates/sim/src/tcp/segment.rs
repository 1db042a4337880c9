//! Segments on the wire: a header of 24 bytes, then the fields of a SYN, or SACK blocks. Data is
//! only a length.
//!
//! | bytes | |
//! |---|---|
//! | 0-1 | checksum over all bytes and the length of the data |
//! | 2 | flags |
//! | 3-5 | destination port |
//! | 6-7 | window, scaled |
//! | 8-15 | sequence number, acknowledgement number |
//! | 16-23 | time stamp and echo, in units of 256 ns |

use byway_wire::Instant;

/// Bytes of every segment.
pub(super) const HEADER_LEN: usize = 24;
/// Additional bytes of a SYN.
const OPENING_LEN: usize = 20;
/// Most SACK blocks of a segment. With time stamps three fit into TCP's options (RFC 2018, section
/// 3).
pub(super) const MAX_SACKS: usize = 3;
/// Bytes of the longest segment without its data.
pub(super) const MAX_HEADER_LEN: usize = HEADER_LEN + OPENING_LEN + MAX_SACKS * 8;

pub(super) const FLAG_SYN: u8 = 1;
pub(super) const FLAG_ACK: u8 = 2;
pub(super) const FLAG_FIN: u8 = 4;
pub(super) const FLAG_RST: u8 = 8;
/// Asks for an ACK at once.
pub(super) const FLAG_PROBE: u8 = 16;
/// A flag: data before this segment's sequence number that have not arrived go to another path, so
/// they are not waited for.
pub(super) const FLAG_SKIP: u8 = 32;
/// The ACK that a probe asked for.
pub(super) const FLAG_REPLY: u8 = 64;

/// A segment without its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct Segment {
    pub flags: u8,
    /// The receiver's port, 24 bits.
    pub to: u32,
    pub window: u16,
    pub seq: u32,
    pub ack: u32,
    pub stamp: u32,
    pub echo: u32,
    /// The fields that come with a SYN.
    pub opening: SynFields,
    pub sacks: [(u32, u32); MAX_SACKS],
    pub sack_count: usize,
}

/// The fields of a SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct SynFields {
    /// The sender's port, 24 bits.
    pub port: u32,
    /// Number of bits by which the windows of later segments are shifted (RFC 7323, 2.2).
    pub shift: u8,
    /// Whether the sender of the SYN accepts SACK blocks.
    pub sack: bool,
    /// The flow that the connection belongs to.
    pub tag: u64,
    /// Bytes of the requested answer.
    pub answer: u64,
}

impl Segment {
    pub(super) fn has(&self, flags: u8) -> bool {
        self.flags & flags != 0
    }

    pub(super) fn sacks(&self) -> &[(u32, u32)] {
        self.sacks.get(..self.sack_count).unwrap_or_default()
    }

    /// Writes the segment before `data` bytes that are only a length. Returns the number of bytes
    /// written. `None`: `out` is too short.
    #[inline]
    pub(super) fn encode(&self, data: usize, out: &mut [u8]) -> Option<usize> {
        let mut size = HEADER_LEN;
        let [_, flags, to0, to1, to2] =
            [0, self.flags, self.to as u8, (self.to >> 8) as u8, (self.to >> 16) as u8];
        let [w0, w1] = self.window.to_le_bytes();
        let first = u64::from_le_bytes([0, 0, flags, to0, to1, to2, w0, w1]);
        let second = u64::from(self.seq) | u64::from(self.ack) << 32;
        let third = u64::from(self.stamp) | u64::from(self.echo) << 32;
        let (head, rest) = out.split_first_chunk_mut::<HEADER_LEN>()?;
        let mut sum = mix(mix(mix(data as u64, first), second), third);
        if self.flags & FLAG_SYN != 0 {
            let SynFields { port, shift, sack, tag, answer } = self.opening;
            let word = port & 0xff_ffff | u32::from(shift & 31) << 24 | u32::from(sack) << 31;
            let room = rest.first_chunk_mut::<OPENING_LEN>()?;
            let (a, b) = room.split_at_mut(4);
            let (b, c) = b.split_at_mut(8);
            a.copy_from_slice(&word.to_le_bytes());
            b.copy_from_slice(&tag.to_le_bytes());
            c.copy_from_slice(&answer.to_le_bytes());
            sum = mix(mix(mix(sum, u64::from(word)), tag), answer);
            size += OPENING_LEN;
        } else {
            for (&(from, to), room) in self.sacks().iter().zip(rest.chunks_exact_mut(8)) {
                let word = u64::from(from) | u64::from(to) << 32;
                room.copy_from_slice(&word.to_le_bytes());
                sum = mix(sum, word);
                size += 8;
            }
        }
        let first = first | sum >> 48;
        let (words, _) = head.as_chunks_mut::<8>();
        for (to, word) in words.iter_mut().zip([first, second, third]) {
            *to = word.to_le_bytes();
        }
        Some(size)
    }

    /// Reads a segment. It is `None` if the bytes are none, or were corrupted.
    #[inline]
    pub(super) fn decode(bytes: &[u8], data: usize) -> Option<Self> {
        let (head, rest) = bytes.split_first_chunk::<HEADER_LEN>()?;
        let (words, _) = head.as_chunks::<8>();
        let &[first, second, third] = words else { return None };
        let [first, second, third] = [first, second, third].map(u64::from_le_bytes);
        let mut sum = mix(mix(mix(data as u64, first & !0xffff), second), third);
        let mut segment = Self {
            flags: (first >> 16) as u8,
            to: (first >> 24) as u32 & 0xff_ffff,
            window: (first >> 48) as u16,
            seq: second as u32,
            ack: (second >> 32) as u32,
            stamp: third as u32,
            echo: (third >> 32) as u32,
            ..Self::default()
        };
        if segment.flags & FLAG_SYN != 0 {
            let room: &[u8; OPENING_LEN] = rest.try_into().ok()?;
            let (word, rest) = room.split_first_chunk::<4>()?;
            let (words, _) = rest.as_chunks::<8>();
            let &[tag, answer] = words else { return None };
            let word = u32::from_le_bytes(*word);
            let [tag, answer] = [tag, answer].map(u64::from_le_bytes);
            sum = mix(mix(mix(sum, u64::from(word)), tag), answer);
            let (port, shift) = (word & 0xff_ffff, (word >> 24) as u8 & 31);
            segment.opening = SynFields { port, shift, sack: word >> 31 != 0, tag, answer };
        } else if !rest.is_empty() {
            let (words, odd) = rest.as_chunks::<8>();
            if !odd.is_empty() || words.len() > MAX_SACKS {
                return None;
            }
            for (sack, word) in segment.sacks.iter_mut().zip(words) {
                let word = u64::from_le_bytes(*word);
                sum = mix(sum, word);
                *sack = (word as u32, (word >> 32) as u32);
            }
            segment.sack_count = words.len();
        }
        (sum >> 48 == first & 0xffff).then_some(segment)
    }
}

const fn mix(sum: u64, word: u64) -> u64 {
    let product = (sum ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    product ^ product >> 29
}

/// A time in the format of segments.
pub(super) const fn stamp(at: Instant) -> u32 {
    (at.as_nanos() >> 8) as u32
}

/// Nanoseconds from `earlier` to `later`. Negative if `later` is before `earlier`.
pub(super) const fn nanos_between(earlier: u32, later: u32) -> i64 {
    (later.wrapping_sub(earlier) as i32 as i64) << 8
}

/// The 64-bit number next to `near` whose low half is `low`; `None` below zero.
pub(super) const fn widen(near: u64, low: u32) -> Option<u64> {
    near.checked_add_signed(low.wrapping_sub(near as u32) as i32 as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;
    use crate::link::Corruption;

    fn some() -> [Segment; 3] {
        let plain = Segment {
            flags: FLAG_ACK | FLAG_FIN,
            to: 0xab_cdef,
            window: 7,
            seq: 1,
            ack: u32::MAX,
            stamp: 5,
            echo: 6,
            ..Segment::default()
        };
        let opening = SynFields { port: 0x12_3456, shift: 14, sack: true, tag: u64::MAX - 1, answer: 77 };
        let sacks = [(1, 2), (3, 4), (0, 0)];
        [plain, Segment { flags: FLAG_SYN, opening, ..plain }, Segment { sacks, sack_count: 2, ..plain }]
    }

    #[test]
    fn what_is_written_is_read() {
        for (segment, length) in some().iter().zip([24, 44, 40]) {
            let mut buffer = [0; MAX_HEADER_LEN];
            let size = segment.encode(1448, &mut buffer).unwrap();
            assert_eq!(size, length);
            assert_eq!(Segment::decode(&buffer[..size], 1448).as_ref(), Some(segment));
            assert_eq!(Segment::decode(&buffer[..size], 1447), None, "the length counts");
            assert_eq!(Segment::decode(&buffer[..size - 1], 1448), None);
            assert_eq!(segment.encode(0, &mut [0; HEADER_LEN - 1]), None);
        }
    }

    #[test]
    fn corruption_shows() {
        let mut random = Random::new(9);
        let mut missed = 0;
        for round in 0..60_000 {
            let mut buffer = [0; MAX_HEADER_LEN];
            let size = some()[round % 3].encode(1448, &mut buffer).unwrap();
            Corruption(random.next_u64()).apply(&mut buffer[..size]);
            missed += u32::from(Segment::decode(&buffer[..size], 1448).is_some());
        }
        // One in 65 536 passes a checksum of 16 bits.
        assert!(missed <= 8, "{missed}");
    }

    #[test]
    fn noise_is_no_segment() {
        let mut random = Random::new(1);
        for round in 0..10_000 {
            let mut noise = vec![0; round % 90];
            random.fill(&mut noise);
            Segment::decode(&noise, round);
        }
    }

    #[test]
    fn numbers_widen_to_the_nearest() {
        assert_eq!(widen(5, 3), Some(3));
        assert_eq!(widen(0, u32::MAX), None);
        assert_eq!(widen(u64::from(u32::MAX), 2), Some((1 << 32) + 2));
        assert_eq!(widen((1 << 32) + 2, u32::MAX), Some(u64::from(u32::MAX)));
        assert_eq!(nanos_between(u32::MAX, 1), 512);
        assert_eq!(nanos_between(1, u32::MAX), -512);
    }
}
