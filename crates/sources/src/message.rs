//! The messages between a source, a program that sends records, and a sink, which writes them to
//! disk. Each side sends its messages on a stream of its own.
//!
//! ```text
//! message   kind (1), fields as varints
//! HELLO     1, version, lines, length, name, run (16) first on the source's stream; lines: 1 if records end with line feeds, else 0
//! FROM      2, number                                the record that follows has this number
//! RECORD    3, length, bytes                         the next number
//! SKIPPED   4, count                                 `count` numbers have no record: it was given up
//! BEAT      5, records so far, age, demand, given up what stands there, about once a second
//! END       6                                        no more records
//! WELCOME   1, number, from, last (16), before (16)  first on the sink's stream: the record that it wants next, and who wrote:
//!                                                    the run `last` from the record `from` on, the run `before` ahead of it
//! WRITTEN   2, number                                all before this one are on the disk; also said when nothing was written
//! ```
//!
//! A message with any other `kind`, or with a field out of its range, ends the session. A record's
//! number is at most [`MAX_NUMBER`]. Version 1 had no runs in WELCOME.

use crate::checkpoint::RunHistory;
use crate::source_name::Name;
use crate::{MAX_NUMBER, MAX_RECORD_LEN};
use byway_wire::codec::VARINT_MAX;
use byway_wire::{DecodeError, Reader, Writer};

/// The version of the messages.
const MESSAGE_VERSION: u64 = 2;
/// The error for a HELLO message of another version.
pub const OTHER_VERSION_ERROR: DecodeError = DecodeError::Range("version");
/// Bytes of the longest message that is no record.
const MAX_SHORT_MESSAGE_LEN: usize = 1 + 4 * 8 + 64 + 16;
/// Bytes of the longest message.
const MAX_MESSAGE_LEN: usize = MAX_RECORD_LEN + MAX_SHORT_MESSAGE_LEN;

/// Bytes of memory of a message that has begun, which are kept for the next message.
const MAX_SPARE_BYTES: usize = 4 << 10;

/// A message of a source to its sink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromSource {
    /// The first message: the source describes itself.
    Hello {
        /// The name under which the sink stores the records.
        name: Name,
        /// An identity that each process of a source draws at random.
        run: [u8; 16],
        /// Whether each record ends with a line feed. The input's last record may lack it.
        has_lines: bool,
    },
    /// The number of the record that follows. The records after it count on from there.
    From(u64),
    /// A record.
    Record(Vec<u8>),
    /// The count of numbers that have no record.
    Skipped(u64),
    /// The state of the source, sent regularly.
    Beat(SourceHeartbeat),
    /// No more records come.
    End,
}

/// The state of a source, as its heartbeat reports it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceHeartbeat {
    /// The number of the record that the input gives next.
    pub produced: u64,
    /// Milliseconds since the oldest record came that is not written.
    pub age_ms: u64,
    /// The rate in bytes per second that the source wants.
    pub demand: u64,
    /// Records that the source discarded.
    pub given_up: u64,
}

/// A message of a sink to a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FromSink {
    /// The number of the record that the sink wants next, and the runs that wrote the earlier
    /// records.
    Welcome(u64, RunHistory),
    /// All records with a lower number than this are written.
    Written(u64),
}

/// The beginning of a record's message, whose bytes follow.
#[must_use]
pub fn record_head(length: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    short(&mut bytes, 3, &[length as u64]);
    bytes
}

fn short(bytes: &mut Vec<u8>, kind: u8, fields: &[u64]) {
    let mut buffer = [0; MAX_SHORT_MESSAGE_LEN];
    let mut writer = Writer::new(&mut buffer);
    writer.u8(kind);
    fields.iter().for_each(|field| writer.varint((*field).min(VARINT_MAX)));
    bytes.extend_from_slice(writer.written());
}

/// A message that is encoded as bytes on a stream.
pub trait Message: Sized {
    /// Appends the encoded message to `bytes`.
    fn write(&self, bytes: &mut Vec<u8>);

    /// Reads the first message.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`]: it is not all there yet. Else it is none.
    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError>;
}

impl Message for FromSource {
    fn write(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Hello { name, run, has_lines } => {
                short(bytes, 1, &[MESSAGE_VERSION, (*has_lines).into(), name.as_str().len() as u64]);
                bytes.extend_from_slice(name.as_str().as_bytes());
                bytes.extend_from_slice(run);
            }
            Self::From(number) => short(bytes, 2, &[*number]),
            Self::Record(record) => {
                bytes.extend_from_slice(&record_head(record.len()));
                bytes.extend_from_slice(record);
            }
            Self::Skipped(count) => short(bytes, 4, &[*count]),
            Self::Beat(SourceHeartbeat { produced, age_ms, demand, given_up }) => {
                short(bytes, 5, &[*produced, *age_ms, *demand, *given_up]);
            }
            Self::End => short(bytes, 6, &[]),
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(match reader.u8()? {
            1 => {
                if reader.varint()? != MESSAGE_VERSION {
                    return Err(OTHER_VERSION_ERROR);
                }
                let has_lines = length_within(reader, 1, "kind of records")? == 1;
                let length = length_within(reader, 64, "length of a name")?;
                let name = std::str::from_utf8(reader.bytes(length)?).ok().and_then(|it| it.parse().ok());
                let name = name.ok_or(DecodeError::Range("name"))?;
                Self::Hello { name, run: reader.array()?, has_lines }
            }
            2 => Self::From(record_number(reader)?),
            3 => {
                let length = length_within(reader, MAX_RECORD_LEN, "length of a record")?;
                Self::Record(reader.bytes(length)?.to_vec())
            }
            4 => Self::Skipped(record_number(reader)?),
            5 => Self::Beat(SourceHeartbeat {
                produced: reader.varint()?,
                age_ms: reader.varint()?,
                demand: reader.varint()?,
                given_up: reader.varint()?,
            }),
            6 => Self::End,
            _ => return Err(DecodeError::Range("kind of message")),
        })
    }
}

impl Message for FromSink {
    fn write(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Welcome(number, runs) => {
                short(bytes, 1, &[*number, runs.last_from]);
                bytes.extend_from_slice(&runs.last);
                bytes.extend_from_slice(&runs.before);
            }
            Self::Written(number) => short(bytes, 2, &[*number]),
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match reader.u8()? {
            1 => {
                let (number, last_from) = (record_number(reader)?, record_number(reader)?);
                let runs = RunHistory { last: reader.array()?, last_from, before: reader.array()? };
                if last_from > number {
                    return Err(DecodeError::Range("first record of a run"));
                }
                Ok(Self::Welcome(number, runs))
            }
            2 => record_number(reader).map(Self::Written),
            _ => Err(DecodeError::Range("kind of message")),
        }
    }
}

fn record_number(reader: &mut Reader<'_>) -> Result<u64, DecodeError> {
    Some(reader.varint()?).filter(|number| *number <= MAX_NUMBER).ok_or(DecodeError::Range("record number"))
}

fn length_within(reader: &mut Reader<'_>, most: usize, what: &'static str) -> Result<usize, DecodeError> {
    usize::try_from(reader.varint()?).ok().filter(|length| *length <= most).ok_or(DecodeError::Range(what))
}

/// Messages out of a stream that comes in pieces. It holds no more than the longest message.
#[derive(Debug, Default)]
pub struct Messages {
    begun: Vec<u8>,
}

impl Messages {
    /// Bytes of memory that the buffered input occupies.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.begun.capacity()
    }

    /// Bytes of the message that has begun and is not complete.
    #[must_use]
    pub const fn begun(&self) -> usize {
        self.begun.len()
    }

    /// Returns the size of the whole message that has begun, if it is a record; 0 otherwise. The
    /// memory for all of it is taken when more of it arrives.
    #[must_use]
    pub fn record_length(&self) -> usize {
        record_length(&self.begun)
    }

    /// Takes in the next bytes of the stream. Calls `take` with each message that is complete.
    ///
    /// # Errors
    /// The bytes are no message. The rest of the stream cannot be read then.
    pub fn push<M: Message>(&mut self, mut bytes: &[u8], mut take: impl FnMut(M)) -> Result<(), DecodeError> {
        // What came before is completed a piece at a time: the rest need not be copied.
        while !self.begun.is_empty() && !bytes.is_empty() {
            let piece = match self.record_length().saturating_sub(self.begun.len()) {
                0 => self
                    .begun
                    .len()
                    .max(MAX_SHORT_MESSAGE_LEN)
                    .min(MAX_MESSAGE_LEN - self.begun.len().min(MAX_MESSAGE_LEN)),
                missing => missing,
            };
            let piece = piece.min(bytes.len());
            if piece == 0 {
                return Err(DecodeError::Range("length"));
            }
            let (now, rest) = bytes.split_at(piece);
            let before = self.begun.len();
            self.reserve();
            self.begun.extend_from_slice(now);
            let mut reader = Reader::new(&self.begun);
            match M::read(&mut reader) {
                Ok(message) => {
                    let used = self.begun.len() - reader.remaining();
                    take(message);
                    // The memory of a long message is given back at once.
                    if self.begun.capacity() > MAX_SPARE_BYTES {
                        self.begun = Vec::new();
                    }
                    self.begun.clear();
                    // It ends in what was added now: before, it was not complete.
                    bytes = bytes.get(used.saturating_sub(before)..).unwrap_or_default();
                }
                Err(DecodeError::Truncated) => bytes = rest,
                Err(error) => return Err(error),
            }
        }
        let mut reader = Reader::new(bytes);
        while !reader.is_empty() {
            let left = reader.remaining();
            match M::read(&mut reader) {
                Ok(message) => take(message),
                Err(DecodeError::Truncated) => {
                    let rest = bytes.get(bytes.len() - left..).unwrap_or_default();
                    self.begun.reserve_exact(rest.len());
                    self.begun.extend_from_slice(rest);
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Makes room for all of a record that has begun, and for no more.
    fn reserve(&mut self) {
        let length = self.record_length();
        self.begun.reserve_exact(length.saturating_sub(self.begun.len()));
    }
}

/// Bytes of the record's message with which `bytes` begin; 0 if that is not known.
fn record_length(bytes: &[u8]) -> usize {
    let mut reader = Reader::new(bytes);
    let is_record = reader.u8() == Ok(3);
    let length =
        is_record.then(|| length_within(&mut reader, MAX_RECORD_LEN, "length of a record").ok()).flatten();
    length.map_or(0, |length| bytes.len() - reader.remaining() + length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn heard<M: Message>(bytes: &[u8], piece: usize) -> (Vec<M>, bool) {
        let (mut messages, mut heard) = (Messages::default(), Vec::new());
        let sense = bytes.chunks(piece).all(|piece| messages.push(piece, |it| heard.push(it)).is_ok());
        (heard, sense)
    }

    #[test]
    fn what_is_said_is_frozen() {
        let name: Name = "radar7".parse().unwrap();
        let said = [
            FromSource::Hello { name, run: [7; 16], has_lines: true },
            FromSource::From(300),
            FromSource::Record(b"hi\n".to_vec()),
            FromSource::Skipped(2),
            FromSource::Beat(SourceHeartbeat { produced: 9, age_ms: 20, demand: 150_000, given_up: 2 }),
            FromSource::End,
        ];
        let mut bytes = Vec::new();
        said.iter().for_each(|it| it.write(&mut bytes));
        let expected = [
            &b"\x01\x02\x01\x06radar7"[..],
            &[7; 16],
            b"\x02\x41\x2c\x03\x03hi\n\x04\x02\x05\x09\x14\x80\x02\x49\xf0\x02\x06",
        ];
        assert_eq!(bytes, expected.concat());
        for piece in [1, 2, 5, 100] {
            assert_eq!(heard(&bytes, piece), (said.to_vec(), true), "{piece}");
        }
        let runs = RunHistory { last: [7; 16], last_from: 3, before: [8; 16] };
        let said = [FromSink::Welcome(5, runs), FromSink::Written(70)];
        let mut bytes = Vec::new();
        said.iter().for_each(|it| it.write(&mut bytes));
        assert_eq!(bytes, [&b"\x01\x05\x03"[..], &[7; 16], &[8; 16], b"\x02\x40\x46"].concat());
        for piece in [1, 2, 5, 100] {
            assert_eq!(heard(&bytes, piece), (said.to_vec(), true), "{piece}");
        }
        assert!(!heard::<FromSink>(b"\x03", 1).1);
        let begun_later = [&b"\x01\x05\x06"[..], &[7; 16], &[8; 16]].concat();
        assert!(!heard::<FromSink>(&begun_later, 1).1, "a run's first record is one of those written");
    }

    #[test]
    fn no_record_has_a_number_that_is_out_of_reach() {
        let refused = |kind: u8, number: u64| {
            let mut bytes = Vec::new();
            short(&mut bytes, kind, &[number]);
            let by_sink = kind == 2 && !heard::<FromSink>(&bytes, 9).1;
            let by_source = !heard::<FromSource>(&bytes, 9).1;
            (by_source, by_sink)
        };
        for kind in [2, 4] {
            assert_eq!(refused(kind, MAX_NUMBER), (false, false), "{kind}");
            for number in [MAX_NUMBER + 1, VARINT_MAX] {
                assert_eq!(refused(kind, number), (true, kind == 2), "{kind}");
            }
        }
    }

    #[test]
    fn nobody_makes_a_sink_hold_more_than_a_record() {
        let mut bytes = Vec::new();
        short(&mut bytes, 3, &[MAX_RECORD_LEN as u64 + 1]);
        assert!(!heard::<FromSource>(&bytes, 1).1);
        let mut messages = Messages::default();
        let mut record = record_head(MAX_RECORD_LEN);
        record.extend(vec![1; MAX_RECORD_LEN]);
        let mut count = 0;
        for piece in record.chunks(1 << 14) {
            messages.push::<FromSource>(piece, |_| count += 1).unwrap();
            assert!(messages.begun.len() <= MAX_MESSAGE_LEN && messages.capacity() <= record.len());
        }
        assert!(count == 1 && messages.begun.is_empty() && messages.capacity() <= MAX_SPARE_BYTES);
        for bad in [
            &b"\x01\x01\x01a"[..],
            b"\x01\x03\x01a",
            b"\x01\x02\x01\x01/",
            b"\x01\x02\x02\x01a",
            b"\x07",
            b"\x00",
        ] {
            assert!(!heard::<FromSource>(&[bad, &[0; 20]].concat(), 3).1, "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(
            lengths in proptest::collection::vec(0usize..400, 0..20),
            piece in 1usize..700,
        ) {
            let said: Vec<FromSource> = lengths.iter().map(|it| match it % 3 {
                0 => FromSource::From(*it as u64),
                _ => FromSource::Record(vec![*it as u8; *it]),
            }).collect();
            let mut bytes = Vec::new();
            said.iter().for_each(|it| it.write(&mut bytes));
            prop_assert_eq!(heard(&bytes, piece), (said, true));
        }
    }
}
