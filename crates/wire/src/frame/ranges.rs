//! Ranges of numbers or bytes that a PNACK or SNACK names.

use super::frame_type::{FRAME_PNACK, FRAME_SNACK_OBJECT, FRAME_SNACK_STREAM};
use crate::codec::{DecodeError, Reader, VARINT_MAX, Writer, varint_len};
use crate::id::{ObjectId, PathId, StreamId};

/// Writes a PNACK frame, which lists missing packets of a path. `missing`: ascending ranges (first
/// missing packet number, one past the last). As many ranges as fit are written. Nothing is written
/// if `missing` is empty, or without room for the longest possible range.
pub fn write_pnack(writer: &mut Writer<'_>, path: PathId, missing: &[(u64, u64)]) {
    write_missing(writer, FRAME_PNACK, path.0, missing);
}

/// Writes a SNACK frame of a stream, as `write_pnack` does for a path. The ranges are of byte
/// offsets.
pub fn write_snack_stream(writer: &mut Writer<'_>, id: StreamId, missing: &[(u64, u64)]) {
    write_missing(writer, FRAME_SNACK_STREAM, id.0, missing);
}

/// Writes a SNACK frame of an object, as `write_pnack` does for a path. The ranges are of byte
/// offsets.
pub fn write_snack_object(writer: &mut Writer<'_>, id: ObjectId, missing: &[(u64, u64)]) {
    write_missing(writer, FRAME_SNACK_OBJECT, id.0, missing);
}

/// A frame without a range is none: where not even one is sure to fit, nothing is written.
fn write_missing(writer: &mut Writer<'_>, kind: u8, id: u32, missing: &[(u64, u64)]) {
    let header = 1 + varint_len(id.into());
    if missing.is_empty() || writer.room() < header + MAX_COUNT_LEN + MAX_RANGE_LEN {
        return;
    }
    writer.u8(kind);
    writer.varint(id.into());
    write_ranges(writer, missing);
}

/// Ascending, disjoint, non-empty ranges, checked, as bytes of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranges<'a> {
    pub(super) count: u64,
    pub(super) bytes: &'a [u8],
}

/// Bytes that the number of ranges takes at most.
const MAX_COUNT_LEN: usize = 2;
/// The most bytes of one encoded range.
const MAX_RANGE_LEN: usize = 16;
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

    /// The ranges: the first number, and the number after the last.
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
    let affordable = writer.room().saturating_sub(MAX_COUNT_LEN) / MAX_RANGE_LEN;
    let count = ranges.len().min(affordable).min(MAX_RANGES as usize);
    writer.varint(count as u64);
    let mut end = 0;
    for (start, stop) in ranges.iter().take(count) {
        writer.varint(start - end);
        writer.varint(stop - start - 1);
        end = *stop;
    }
}
