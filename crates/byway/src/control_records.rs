//! Records that the libraries of two hosts exchange beside the application's data, each side on its
//! own stream.
//!
//! ```text
//! record    kind (1), fields as varints
//! HELLO     1, version, streams that the peer may have open, objects that it may have under way
//! OVER      2, stream, how: 0 read to its end, 1 dropped and a code, 2 given up by its sender
//! OBJECT    3, object, size, length, header
//! TAKEN     4, object, how
//! WITHDRAWN 5, object
//! ```
//!
//! The first record of each side is a HELLO. A record of another kind, or with an invalid field,
//! ends the connection.

use byway_wire::codec::VARINT_MAX;
use byway_wire::{DecodeError, ObjectId, Reader, StreamId, Writer};

/// The version of the records.
pub const RECORD_VERSION: u64 = 1;
/// Bytes of the longest header of an object.
pub const HEADER_MAX: usize = 1024;
/// Bytes of the longest record.
pub const RECORD_MAX: usize = 1 + 3 * 8 + HEADER_MAX;

/// The end of a stream or object at its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndKind {
    /// The application has read everything.
    Read,
    /// The application refused the rest, with this code.
    Dropped(u64),
    /// The sender reset the stream or object, and the receiver knows.
    Reset,
}

/// A record that the libraries of both sides exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControlRecord {
    /// The limits on the peer's open streams and objects.
    Hello {
        /// Streams that the peer may have opened and that have not ended.
        streams: u32,
        /// Objects that the peer may be sending at once.
        objects: u32,
    },
    /// The receiving direction of a stream has ended at the sender of this record.
    Over {
        /// The number of the stream.
        stream: StreamId,
        /// The way in which the stream ended.
        how: EndKind,
    },
    /// An object is about to come.
    Object {
        /// The number of the object.
        object: ObjectId,
        /// The object's size in bytes.
        size: u64,
        /// The application's description of the object.
        header: Vec<u8>,
    },
    /// An object has ended at its receiver, who sends this record.
    Taken {
        /// The number of the object.
        object: ObjectId,
        /// The way in which the object ended.
        how: EndKind,
    },
    /// The sender gave up an object: no more of it comes.
    Withdrawn {
        /// The number of the object.
        object: ObjectId,
    },
}

impl EndKind {
    fn write(self, writer: &mut Writer<'_>) {
        match self {
            Self::Read => writer.varint(0),
            Self::Dropped(code) => {
                writer.varint(1);
                writer.varint(code.min(VARINT_MAX));
            }
            Self::Reset => writer.varint(2),
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(match reader.varint()? {
            0 => Self::Read,
            1 => Self::Dropped(reader.varint()?),
            2 => Self::Reset,
            _ => return Err(DecodeError::Range("end of a stream or object")),
        })
    }
}

impl ControlRecord {
    /// Appends the encoded record. A header beyond [`HEADER_MAX`] is the caller's mistake, and is
    /// cut.
    pub fn write(&self, bytes: &mut Vec<u8>) {
        let mut buffer = [0; RECORD_MAX];
        let mut writer = Writer::new(&mut buffer);
        match self {
            Self::Hello { streams, objects } => {
                writer.u8(1);
                [RECORD_VERSION, u64::from(*streams), u64::from(*objects)]
                    .iter()
                    .for_each(|field| writer.varint(*field));
            }
            Self::Over { stream, how } => {
                writer.u8(2);
                writer.varint(stream.0.into());
                how.write(&mut writer);
            }
            Self::Object { object, size, header } => {
                let header = header.get(..HEADER_MAX).unwrap_or(header);
                writer.u8(3);
                [u64::from(object.0), *size, header.len() as u64]
                    .iter()
                    .for_each(|field| writer.varint(*field));
                writer.bytes(header);
            }
            Self::Taken { object, how } => {
                writer.u8(4);
                writer.varint(object.0.into());
                how.write(&mut writer);
            }
            Self::Withdrawn { object } => {
                writer.u8(5);
                writer.varint(object.0.into());
            }
        }
        bytes.extend_from_slice(writer.written());
    }

    /// Reads the first record in `bytes`. Returns the record and its length in bytes; `None` if the
    /// record is not complete yet.
    ///
    /// # Errors
    /// The bytes are no valid record.
    pub fn read(bytes: &[u8]) -> Result<Option<(Self, usize)>, DecodeError> {
        let mut reader = Reader::new(bytes);
        match Self::take(&mut reader) {
            Ok(record) => Ok(Some((record, bytes.len() - reader.remaining()))),
            Err(DecodeError::Truncated) => Ok(None),
            Err(other) => Err(other),
        }
    }

    fn take(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(match reader.u8()? {
            1 => {
                if reader.varint()? != RECORD_VERSION {
                    return Err(DecodeError::Range("version of the library"));
                }
                Self::Hello { streams: reader.varint_u32("streams")?, objects: reader.varint_u32("objects")? }
            }
            2 => Self::Over { stream: StreamId(reader.varint_u32("stream")?), how: EndKind::read(reader)? },
            3 => {
                let (object, size) = (ObjectId(reader.varint_u32("object")?), reader.varint()?);
                let length = usize::try_from(reader.varint()?).unwrap_or(usize::MAX);
                if length > HEADER_MAX {
                    return Err(DecodeError::Range("header of an object"));
                }
                Self::Object { object, size, header: reader.bytes(length)?.to_vec() }
            }
            4 => Self::Taken { object: ObjectId(reader.varint_u32("object")?), how: EndKind::read(reader)? },
            5 => Self::Withdrawn { object: ObjectId(reader.varint_u32("object")?) },
            _ => return Err(DecodeError::Range("kind of a record")),
        })
    }
}

/// The bytes of records that came and were not read yet: never more than one record that is not all
/// there.
#[derive(Debug, Default)]
pub struct Records(Vec<u8>);

impl Records {
    /// Takes bytes in, and gives each record that is complete to `each`.
    ///
    /// # Errors
    /// A record is none.
    pub fn take(&mut self, bytes: &[u8], mut each: impl FnMut(ControlRecord)) -> Result<(), DecodeError> {
        self.0.extend_from_slice(bytes);
        let mut done = 0;
        while let Some((record, length)) = ControlRecord::read(self.0.get(done..).unwrap_or_default())? {
            each(record);
            done += length;
        }
        self.0.drain(..done);
        Ok(())
    }
}

/// Whether the initiator opened a stream. Its ids are even, those of the responder odd.
pub const fn is_initiators(stream: StreamId) -> bool {
    stream.0.is_multiple_of(2)
}

/// Returns the stream with the records of the initiator, or of the responder.
pub const fn records_of(initiator: bool) -> StreamId {
    StreamId(if initiator { 0 } else { 1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<ControlRecord> {
        let (stream, object) = (StreamId(70_000), ObjectId(9));
        vec![
            ControlRecord::Hello { streams: 1024, objects: 0 },
            ControlRecord::Over { stream, how: EndKind::Read },
            ControlRecord::Over { stream, how: EndKind::Dropped(70) },
            ControlRecord::Object { object, size: 1 << 40, header: b"name".to_vec() },
            ControlRecord::Taken { object, how: EndKind::Reset },
            ControlRecord::Withdrawn { object },
        ]
    }

    #[test]
    fn records_survive_in_whatever_pieces_they_come() {
        let mut bytes = Vec::new();
        all().iter().for_each(|record| record.write(&mut bytes));
        for piece in 1..bytes.len() {
            let (mut records, mut read) = (Records::default(), Vec::new());
            for piece in bytes.chunks(piece) {
                records.take(piece, |record| read.push(record)).unwrap();
            }
            assert_eq!(read, all());
        }
    }

    #[test]
    fn what_is_no_record_is_named() {
        let read = |bytes: &[u8]| Records::default().take(bytes, |_| ());
        assert_eq!(read(&[9]), Err(DecodeError::Range("kind of a record")));
        assert_eq!(read(&[1, 2, 0, 0]), Err(DecodeError::Range("version of the library")));
        assert_eq!(read(&[2, 4, 3]), Err(DecodeError::Range("end of a stream or object")));
        assert_eq!(read(&[3, 0, 0, 0x7f, 0xff]), Err(DecodeError::Range("header of an object")));
        assert_eq!(read(&[3, 0, 0]), Ok(()), "more may come");
    }

    #[test]
    fn the_longest_record_fits() {
        let header = vec![7; HEADER_MAX];
        let longest = ControlRecord::Object { object: ObjectId(u32::MAX), size: u64::MAX >> 2, header };
        let mut bytes = Vec::new();
        longest.write(&mut bytes);
        assert!(bytes.len() <= RECORD_MAX);
        assert_eq!(ControlRecord::read(&bytes), Ok(Some((longest, bytes.len()))));
    }
}
