//! Ranges of numbers or bytes that a PNACK or SNACK names.

use super::{PNACK, SNACK_OBJECT, SNACK_STREAM};
use crate::codec::{DecodeError, Reader, VARINT_MAX, Writer};
use crate::id::{ObjectId, PathId, StreamId};

/// Writes a PNACK frame of as many of the ascending `missing` ranges (first, one past the last) as fit.
pub fn write_pnack(writer: &mut Writer<'_>, path: PathId, missing: &[(u64, u64)]) {
    writer.u8(PNACK);
    writer.varint(path.0.into());
    write_ranges(writer, missing);
}

/// Writes a SNACK frame of a stream with as many of the ascending `missing` ranges as fit.
pub fn write_snack_stream(writer: &mut Writer<'_>, id: StreamId, missing: &[(u64, u64)]) {
    writer.u8(SNACK_STREAM);
    writer.varint(id.0.into());
    write_ranges(writer, missing);
}

/// Writes a SNACK frame of an object with as many of the ascending `missing` ranges as fit.
pub fn write_snack_object(writer: &mut Writer<'_>, id: ObjectId, missing: &[(u64, u64)]) {
    writer.u8(SNACK_OBJECT);
    writer.varint(id.0.into());
    write_ranges(writer, missing);
}

/// Ascending, disjoint, non-empty ranges as they stand in a packet, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranges<'a> {
    pub(super) count: u64,
    pub(super) bytes: &'a [u8],
}

/// The most ranges in one frame: a peer cannot make another do more work than this per frame.
pub const MAX_RANGES: u64 = 256;

impl<'a> Ranges<'a> {
    pub(super) fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let count = reader.varint()?;
        if count == 0 || count > MAX_RANGES {
            return Err(DecodeError::Range("range count"));
        }
        let whole = reader.clone();
        let mut end = 0u64;
        for index in 0..count {
            let (distance, length) = (reader.varint()?, reader.varint()?);
            if index > 0 && distance == 0 {
                return Err(DecodeError::Range("range distance"));
            }
            end = end + distance + length + 1; // three values below 2^62 each, and `end` is kept below 2^62 too
            if end > VARINT_MAX {
                return Err(DecodeError::Range("range"));
            }
        }
        let used = whole.remaining() - reader.remaining();
        Ok(Self { count, bytes: whole.clone().bytes(used)? })
    }

    pub(super) fn write(&self, writer: &mut Writer<'_>) {
        writer.varint(self.count);
        writer.bytes(self.bytes);
    }

    /// The ranges: first, and one past the last.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + 'a {
        let mut reader = Reader::new(self.bytes);
        let mut end = 0;
        core::iter::from_fn(move || {
            let start = end + reader.varint().ok()?;
            end = start + reader.varint().ok()? + 1;
            Some((start, end))
        })
    }
}

pub(super) fn write_ranges(writer: &mut Writer<'_>, ranges: &[(u64, u64)]) {
    let affordable = writer.room().saturating_sub(2) / 16;
    let count = ranges.len().min(affordable).min(MAX_RANGES as usize);
    writer.varint(count as u64);
    let mut end = 0;
    for (start, stop) in ranges.iter().take(count) {
        writer.varint(start - end);
        writer.varint(stop - start - 1);
        end = *stop;
    }
}
