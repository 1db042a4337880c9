//! Reads and writes bytes without panics, with a reader over untrusted input and a writer over a
//! fixed buffer. Variable-length integers are those of RFC 9000, section 16.

use thiserror::Error;

/// Why bytes could not be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// The bytes end before the value does.
    #[error("ends too early")]
    Truncated,
    /// A value is outside its range. The text names the value.
    #[error("{0} is out of range")]
    Range(&'static str),
    /// A type byte that this version does not know.
    #[error("unknown type {0:#04x}")]
    UnknownType(u8),
}

/// The largest number that a variable-length integer holds (RFC 9000, section 16).
pub const VARINT_MAX: u64 = (1 << 62) - 1;

/// The number of bytes that [`Writer::varint`] takes for `value`: `1`, `2`, `4` or `8`.
#[must_use]
pub const fn varint_len(value: u64) -> usize {
    match value {
        0..=0x3f => 1,
        0x40..=0x3fff => 2,
        0x4000..=0x3fff_ffff => 4,
        _ => 8,
    }
}

/// Takes values off the front of untrusted bytes.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads from the start of `bytes`.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Bytes not read yet.
    #[must_use]
    pub const fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// Whether all bytes were read.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next `count` bytes.
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], DecodeError> {
        let (head, tail) = self.rest.split_at_checked(count).ok_or(DecodeError::Truncated)?;
        self.rest = tail;
        Ok(head)
    }

    /// The next bytes as an array.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (head, tail) = self.rest.split_first_chunk::<N>().ok_or(DecodeError::Truncated)?;
        self.rest = tail;
        Ok(*head)
    }

    /// All bytes that are left.
    pub fn take_rest(&mut self) -> &'a [u8] {
        core::mem::take(&mut self.rest)
    }

    /// Reads one byte.
    pub fn u8(&mut self) -> Result<u8, DecodeError> {
        Ok(self.array::<1>()?[0])
    }

    /// Two bytes, big endian.
    pub fn u16(&mut self) -> Result<u16, DecodeError> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    /// Four bytes, big endian.
    pub fn u32(&mut self) -> Result<u32, DecodeError> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    /// Eight bytes, big endian.
    pub fn u64(&mut self) -> Result<u64, DecodeError> {
        Ok(u64::from_be_bytes(self.array()?))
    }

    /// A variable-length integer. Longer encodings than needed are accepted, as in QUIC.
    #[inline]
    pub fn varint(&mut self) -> Result<u64, DecodeError> {
        match self.rest.split_first() {
            Some((&first, tail)) if first < 0x40 => {
                self.rest = tail;
                Ok(u64::from(first))
            }
            Some((&first, _)) => self.long_varint(first),
            None => Err(DecodeError::Truncated),
        }
    }

    /// Reads the rest of a variable-length integer of two, four or eight bytes, whose first byte is
    /// `first`.
    fn long_varint(&mut self, first: u8) -> Result<u64, DecodeError> {
        let length = 1 << (first >> 6);
        // In the middle of a packet eight bytes are there whatever the length: one load and a
        // shift.
        let word = match self.rest.first_chunk::<8>() {
            Some(bytes) => u64::from_be_bytes(*bytes),
            None => {
                let mut bytes = [0; 8];
                bytes.iter_mut().zip(self.rest).for_each(|(to, from)| *to = *from);
                u64::from_be_bytes(bytes)
            }
        };
        self.rest = self.rest.get(length..).ok_or(DecodeError::Truncated)?;
        Ok((word & VARINT_MAX) >> (64 - 8 * length))
    }

    /// Reads a variable-length integer of at most 32 bits. `what` is its name for the error.
    pub fn varint_u32(&mut self, what: &'static str) -> Result<u32, DecodeError> {
        u32::try_from(self.varint()?).map_err(|_| DecodeError::Range(what))
    }
}

/// Writes values into a fixed buffer. The caller checks beforehand that there is room
/// ([`Writer::room`]). A write that does not fit writes nothing and marks the writer as
/// [`overflowed`](Writer::overflowed).
#[derive(Debug)]
pub struct Writer<'a> {
    buffer: &'a mut [u8],
    length: usize,
    phantom: usize,
    overflowed: bool,
}

impl<'a> Writer<'a> {
    /// Writes from the start of `buffer`.
    #[must_use]
    pub const fn new(buffer: &'a mut [u8]) -> Self {
        Self { buffer, length: 0, phantom: 0, overflowed: false }
    }

    /// Bytes that still fit.
    #[must_use]
    pub const fn room(&self) -> usize {
        self.buffer.len() - self.length
    }

    /// The number of bytes written.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.length
    }

    /// Whether nothing was written yet.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Whether a write did not fit and was left out.
    #[must_use]
    pub const fn overflowed(&self) -> bool {
        self.overflowed
    }

    /// The bytes written so far.
    #[must_use]
    pub fn written(&self) -> &[u8] {
        self.buffer.get(..self.length).unwrap_or_default()
    }

    /// Forgets everything written after `length` bytes.
    pub fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
    }

    /// Replaces one byte already written.
    pub fn patch(&mut self, at: usize, value: u8) {
        if let Some(byte) = self.buffer.get_mut(..self.length).and_then(|written| written.get_mut(at)) {
            *byte = value;
        }
    }

    /// Writes `bytes` unchanged.
    pub fn bytes(&mut self, bytes: &[u8]) {
        match self.claim(bytes.len()) {
            Some(room) => room.copy_from_slice(bytes),
            None => self.overflowed = true,
        }
    }

    /// The next `count` bytes, for the caller to fill. `None` if they do not fit.
    pub fn claim(&mut self, count: usize) -> Option<&mut [u8]> {
        let end = self.length.checked_add(count)?;
        let room = self.buffer.get_mut(self.length..end)?;
        self.length = end;
        Some(room)
    }

    /// Counts `count` phantom bytes, which exist only as a length
    /// ([`Transmit::phantom`](crate::Transmit::phantom)). The room shrinks by `count`, and nothing
    /// is written.
    pub fn skip(&mut self, count: usize) {
        match self.buffer.len().checked_sub(count).filter(|end| *end >= self.length) {
            Some(end) => {
                self.buffer = core::mem::take(&mut self.buffer).split_at_mut(end).0;
                self.phantom += count;
            }
            None => self.overflowed = true,
        }
    }

    /// The number of bytes that were [skipped](Self::skip).
    #[must_use]
    pub const fn phantom(&self) -> usize {
        self.phantom
    }

    /// Writes one byte.
    pub fn u8(&mut self, value: u8) {
        self.bytes(&[value]);
    }

    /// Two bytes, big endian.
    pub fn u16(&mut self, value: u16) {
        self.bytes(&value.to_be_bytes());
    }

    /// Four bytes, big endian.
    pub fn u32(&mut self, value: u32) {
        self.bytes(&value.to_be_bytes());
    }

    /// Eight bytes, big endian.
    pub fn u64(&mut self, value: u64) {
        self.bytes(&value.to_be_bytes());
    }

    /// Writes a variable-length integer in its shortest form. Larger values are clamped to
    /// [`VARINT_MAX`].
    pub fn varint(&mut self, value: u64) {
        let value = value.min(VARINT_MAX);
        match varint_len(value) {
            1 => self.u8(value as u8),
            2 => self.u16(0x4000 | value as u16),
            4 => self.u32(0x8000_0000 | value as u32),
            _ => self.u64(0xc000_0000_0000_0000 | value),
        }
    }
}

/// Encodes a signed number as an unsigned one. Numbers of small magnitude stay small.
#[must_use]
pub const fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// The inverse of [`zigzag`].
#[must_use]
pub const fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn varints_match_the_examples_of_rfc_9000_appendix_a1() {
        let examples: [(&[u8], u64); 4] = [
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c], 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
        ];
        for (bytes, value) in examples {
            assert_eq!(Reader::new(bytes).varint(), Ok(value));
            let mut buffer = [0; 8];
            let mut writer = Writer::new(&mut buffer);
            writer.varint(value);
            assert_eq!(writer.written(), bytes);
        }
        assert_eq!(Reader::new(&[0x40, 0x25]).varint(), Ok(37));
    }

    #[test]
    fn a_varint_ends_where_its_first_byte_says_whatever_follows() {
        let bytes = [0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c];
        for (first, length) in [(0x02, 1), (0x42, 2), (0x82, 4), (0xc2, 8)] {
            let mut buffer = [0xff; 16];
            buffer[..8].copy_from_slice(&bytes);
            buffer[0] = first;
            let whole = Reader::new(&buffer[..length]).varint();
            for end in 0..16 {
                let mut reader = Reader::new(&buffer[..end]);
                if end < length {
                    assert_eq!(reader.varint(), Err(DecodeError::Truncated));
                    assert_eq!(reader.remaining(), end, "nothing is taken");
                } else {
                    assert_eq!((reader.varint(), reader.remaining()), (whole, end - length));
                }
            }
        }
    }

    #[test]
    fn a_full_writer_says_so_and_keeps_what_it_has() {
        let mut buffer = [0; 3];
        let mut writer = Writer::new(&mut buffer);
        writer.u16(7);
        writer.u32(9);
        assert!(writer.overflowed());
        assert_eq!(writer.written(), [0, 7]);
    }

    #[test]
    fn what_is_skipped_takes_room_and_no_place() {
        let mut buffer = [0; 10];
        let mut writer = Writer::new(&mut buffer);
        writer.u8(1);
        writer.skip(6);
        writer.u16(2);
        assert_eq!((writer.len(), writer.phantom(), writer.room()), (3, 6, 1));
        writer.u16(3);
        assert!(writer.overflowed());
        assert_eq!(writer.written(), [1, 0, 2]);
        let mut writer = Writer::new(&mut buffer);
        writer.skip(11);
        assert!(writer.overflowed() && writer.phantom() == 0);
    }

    proptest! {
        #[test]
        fn varint_round_trip(value in 0..=VARINT_MAX) {
            let mut buffer = [0; 8];
            let mut writer = Writer::new(&mut buffer);
            writer.varint(value);
            prop_assert_eq!(writer.len(), varint_len(value));
            prop_assert_eq!(Reader::new(writer.written()).varint(), Ok(value));
        }

        #[test]
        fn zigzag_round_trip(value: i64) {
            prop_assert_eq!(unzigzag(zigzag(value)), value);
        }
    }
}
