//! The ACK frame: for each of the peer's paths, what arrived and when.
//!
//! ```text
//! entry: path, largest number, packets believed lost so far, CE marks so far,
//!        arrival of the largest (4, receiver's clock modulo 2^32 µs), µs from that arrival to this ACK,
//!        range count, (largest - first of its range), then per range (gap - 1, length - 1) downwards,
//!        stamp run count, runs of (packets, zigzag µs that they arrived before the run above)
//! ```
//!
//! A stamp run is a number of consecutive received packets and their common arrival time. Runs go
//! from the largest packet number downwards. An ACK need not repeat times that an earlier ACK
//! contained.

use super::frame_type::FRAME_ACK;
use crate::codec::{DecodeError, Reader, VARINT_MAX, Writer, unzigzag, varint_len, zigzag};
use crate::id::PathId;

/// The most ranges in one entry, and the most stamp runs.
pub const MAX_ENTRY_RANGES: u64 = 256;
/// The most entries in one frame.
pub const MAX_ENTRIES: u64 = 256;

/// The entries of an ACK frame, checked, as bytes of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AckEntries<'a> {
    count: u64,
    bytes: &'a [u8],
    /// The first entry, already parsed, and the bytes of the others. Most ACKs have one entry,
    /// which is thus parsed once.
    first: AckEntry<'a>,
    others: &'a [u8],
}

/// The packets that arrived on one path: one entry of an ACK frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AckEntry<'a> {
    /// The path, by the number of its sender, who reads the ACK.
    pub path: PathId,
    /// The largest packet number that arrived.
    pub largest: u64,
    /// Packets believed lost since the path began. When this goes down, a loss was none.
    pub lost: u64,
    /// Packets that arrived with a CE mark since the path began.
    pub ce: u64,
    /// When the largest arrived: the receiver's clock in µs modulo 2^32.
    pub arrival: u32,
    /// µs between that arrival and the making of this ACK, to be taken off an RTT sample.
    pub held_micros: u64,
    /// Number of packet numbers below the largest in its range.
    first: u64,
    ranges: &'a [u8],
    stamps: &'a [u8],
}

impl<'a> AckEntries<'a> {
    pub(super) fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let count = reader.varint()?;
        if count == 0 || count > MAX_ENTRIES {
            return Err(DecodeError::Range("ACK entry count"));
        }
        let whole = reader.clone();
        let first = AckEntry::read(reader)?;
        let begun = whole.remaining() - reader.remaining();
        for _ in 1..count {
            AckEntry::read(reader)?;
        }
        let bytes = whole.clone().bytes(whole.remaining() - reader.remaining())?;
        Ok(Self { count, bytes, first, others: bytes.get(begun..).unwrap_or_default() })
    }

    pub(super) fn write(&self, writer: &mut Writer<'_>) {
        writer.varint(self.count);
        writer.bytes(self.bytes);
    }

    /// The entries of the frame, in order.
    pub fn iter(&self) -> impl Iterator<Item = AckEntry<'a>> + 'a {
        let mut reader = Reader::new(self.others);
        let others = core::iter::from_fn(move || AckEntry::read(&mut reader).ok());
        core::iter::once(self.first.clone()).chain(others)
    }
}

impl<'a> AckEntry<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let path = PathId(reader.varint_u32("path")?);
        let (largest, lost, ce) = (reader.varint()?, reader.varint()?, reader.varint()?);
        let (arrival, held_micros) = (reader.u32()?, reader.varint()?);
        let more = reader.varint()?;
        if more >= MAX_ENTRY_RANGES {
            return Err(DecodeError::Range("ACK range count"));
        }
        let first = reader.varint()?;
        let mut lowest = largest.checked_sub(first).ok_or(DecodeError::Range("ACK range"))?;
        let mut received = first + 1;
        let at = reader.clone();
        for _ in 0..more {
            let (gap, length) = (reader.varint()?, reader.varint()?);
            let down = gap + length + 2;
            lowest = lowest.checked_sub(down).ok_or(DecodeError::Range("ACK range"))?;
            received += length + 1;
        }
        let ranges = at.clone().bytes(at.remaining() - reader.remaining())?;
        let runs = reader.varint()?;
        if runs > MAX_ENTRY_RANGES {
            return Err(DecodeError::Range("ACK stamp count"));
        }
        let at = reader.clone();
        for _ in 0..runs {
            let (packets, before) = (reader.varint()?, reader.varint()?);
            received = match received.checked_sub(packets) {
                Some(rest) if packets > 0 && before <= u64::from(u32::MAX) => rest,
                _ => return Err(DecodeError::Range("ACK stamp")),
            };
        }
        let stamps = at.clone().bytes(at.remaining() - reader.remaining())?;
        Ok(Self { path, largest, lost, ce, arrival, held_micros, first, ranges, stamps })
    }

    /// The ranges of numbers that arrived, from the largest down: first, and one past the last.
    pub fn ranges(&self) -> impl Iterator<Item = (u64, u64)> + 'a {
        let mut reader = Reader::new(self.ranges);
        let mut next = Some((self.largest - self.first, self.largest + 1));
        core::iter::from_fn(move || {
            let (start, end) = next?;
            next = (|| {
                let (gap, length) = (reader.varint().ok()?, reader.varint().ok()?);
                // `read` has seen that it fits; only now, since nothing is below a range that
                // starts at 0.
                let stop = start - 1 - gap;
                Some((stop - 1 - length, stop))
            })();
            Some((start, end))
        })
    }

    /// The arrival times of received packets, beginning with the largest packet number. Each item
    /// is a count of packets and the arrival time of all of them, by the receiver's clock in µs
    /// modulo 2^32.
    pub fn stamps(&self) -> impl Iterator<Item = (u64, u32)> + 'a {
        let mut reader = Reader::new(self.stamps);
        let mut at = self.arrival;
        core::iter::from_fn(move || {
            let packets = reader.varint().ok()?;
            at = at.wrapping_sub(unzigzag(reader.varint().ok()?) as u32);
            Some((packets, at))
        })
    }
}

/// The counts that [`AckWriter::entry`] writes.
#[derive(Clone, Copy, Debug)]
pub struct EntryParts<'a> {
    /// The path, by the number of its sender, who reads the ACK.
    pub path: PathId,
    /// Packets believed lost since the path began.
    pub lost: u64,
    /// CE-marked packets since the path began.
    pub ce: u64,
    /// When the largest arrived, receiver's clock in µs modulo 2^32.
    pub arrival: u32,
    /// µs from that arrival to now.
    pub held_micros: u64,
    /// Received numbers, descending and disjoint, not touching. Each range is the first and one
    /// past the last. There is at least one.
    pub ranges: &'a [(u64, u64)],
    /// Stamp runs from the largest down. Each is a number of packets and the receiver's clock in
    /// µs, modulo 2^32.
    pub stamps: &'a [(u64, u32)],
}

/// Writes an ACK frame entry by entry, as far as there is room.
#[derive(Debug)]
pub struct AckWriter {
    start: usize,
    entries: u8,
}

impl AckWriter {
    /// The most entries that this writer takes. The count then needs only one byte.
    pub const CAPACITY: u8 = 63;

    /// Writes the beginning of an ACK frame.
    #[must_use]
    pub fn begin(writer: &mut Writer<'_>) -> Self {
        let start = writer.len();
        writer.u8(FRAME_ACK);
        writer.u8(0);
        Self { start, entries: 0 }
    }

    /// Adds an entry, with as many older ranges and stamps as fit. `false`, and nothing written,
    /// when not even the first range fits.
    pub fn entry(&mut self, writer: &mut Writer<'_>, parts: &EntryParts<'_>) -> bool {
        let Some(((first, end), older)) = parts.ranges.split_first() else { return false };
        let largest = end - 1;
        let fixed = varint_len(parts.path.0.into())
            + varint_len(largest)
            + varint_len(parts.lost)
            + varint_len(parts.ce)
            + 4
            + varint_len(parts.held_micros)
            + 2 * 2 // counts
            + varint_len(largest - first);
        let Some(room) = writer.room().checked_sub(fixed) else { return false };
        if self.entries == Self::CAPACITY {
            return false;
        }
        // Stamps are fresh, older ranges were told before: stamps first, but never more than half
        // of what is left.
        let (runs, stamp_bytes) =
            affordable(parts.stamps.iter().copied(), if older.is_empty() { room } else { room / 2 }, {
                let mut at = parts.arrival;
                move |(packets, stamp)| {
                    let before = zigzag(i64::from(at.wrapping_sub(stamp) as i32));
                    at = stamp;
                    varint_len(packets) + varint_len(before)
                }
            });
        let (more, _) = affordable(older.iter().copied(), room - stamp_bytes, {
            let mut above = *first;
            move |(start, stop)| {
                let bytes = varint_len(above - stop - 1) + varint_len(stop - start - 1);
                above = start;
                bytes
            }
        });
        writer.varint(parts.path.0.into());
        writer.varint(largest);
        writer.varint(parts.lost.min(VARINT_MAX));
        writer.varint(parts.ce.min(VARINT_MAX));
        writer.u32(parts.arrival);
        writer.varint(parts.held_micros);
        writer.varint(more as u64);
        writer.varint(largest - first);
        let mut above = *first;
        for (start, stop) in older.iter().take(more) {
            writer.varint(above - stop - 1);
            writer.varint(stop - start - 1);
            above = *start;
        }
        writer.varint(runs as u64);
        let mut at = parts.arrival;
        for (packets, stamp) in parts.stamps.iter().take(runs) {
            writer.varint(*packets);
            writer.varint(zigzag(i64::from(at.wrapping_sub(*stamp) as i32)));
            at = *stamp;
        }
        self.entries += 1;
        true
    }

    /// Ends the frame. A frame without entries is removed. Returns whether anything was written.
    pub fn finish(self, frame: &mut Writer<'_>) -> bool {
        if self.entries == 0 {
            frame.truncate(self.start);
            return false;
        }
        frame.patch(self.start + 1, self.entries);
        true
    }
}

/// Returns the number of leading items that fit into `room` bytes, and their bytes.
fn affordable<T>(
    items: impl Iterator<Item = T>,
    room: usize,
    mut cost: impl FnMut(T) -> usize,
) -> (usize, usize) {
    let (mut count, mut bytes) = (0, 0);
    for item in items.take(MAX_ENTRY_RANGES as usize - 1) {
        let next = bytes + cost(item);
        if next > room {
            break;
        }
        (count, bytes) = (count + 1, next);
    }
    (count, bytes)
}

#[cfg(test)]
mod tests {
    use super::super::{Frame, Frames};
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn every_entry_of_a_frame_is_read_and_the_frame_after_it() {
        for count in [1, 2, 63] {
            let mut buffer = [0; 2000];
            let mut writer = Writer::new(&mut buffer);
            let mut ack = AckWriter::begin(&mut writer);
            for path in 0..count {
                let (end, at) = (100 + u64::from(path), 7 * path);
                let ranges = [(end - 3, end), (end - 20, end - 10)];
                let parts = EntryParts {
                    path: PathId(path),
                    lost: 300,
                    ce: 0,
                    arrival: at,
                    held_micros: 70_000,
                    ranges: &ranges[..1 + path as usize % 2],
                    stamps: &[(3, at)],
                };
                assert!(ack.entry(&mut writer, &parts));
            }
            assert!(ack.finish(&mut writer));
            writer.u8(super::super::frame_type::FRAME_PING);
            let mut frames = Frames::new(writer.written());
            let Some(Ok(Frame::Ack(entries))) = frames.next() else { panic!("no ACK") };
            assert_eq!(frames.next(), Some(Ok(Frame::Ping)));
            let got: Vec<_> =
                entries.iter().map(|entry| (entry.path.0, entry.largest, entry.ranges().count())).collect();
            let expected: Vec<_> =
                (0..count).map(|path| (path, 99 + u64::from(path), 1 + path as usize % 2)).collect();
            assert_eq!(got, expected);
        }
    }
}
