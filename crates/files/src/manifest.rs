//! The manifest: records in an ordered stream from sender to receiver. A record is the length of
//! its body (2 bytes, big endian) and the body. A body is a type byte and fields.
//!
//! | type | record | fields |
//! |---|---|---|
//! | 00 | START | version; first in the stream, once |
//! | 01 | DIRECTORY | metadata, path; before the records of its contents |
//! | 02 | FILE | object, size, metadata, path |
//! | 03 | SYMLINK | seconds (zigzag), nanoseconds, path length, path, target |
//! | 04 | HASH | object, BLAKE3 of the contents (32); may follow the contents, so a sender need not hash a file first |
//! | 05 | WITHDRAWN | object, reason; in place of HASH |
//! | 06 | END | files, directories, symlinks, bytes; last in the stream, once |
//! | 07 | PARTS | object, ranges of chunks that the receiver keeps (`resume`): distance from the end of the range before, length - 1 |
//! | 08 | RESUME | right after START: every FILE with bytes is answered by HAVE ([`crate::receiver_report`]) and followed by PARTS |
//! | 09 | HOLES | ranges of chunks of nothing but zeros that do not travel, of the FILE right after it; as in PARTS |
//! | 0a | TOTAL | bytes of all files; for whoever looks on, once or never |
//!
//! | field | encoding |
//! |---|---|
//! | integers | variable-length (RFC 9000 section 16), unless the width in bytes is given |
//! | metadata | three integers: mode, the modification time's seconds (zigzag), its nanoseconds |
//! | path | relative byte string, one slash between components |
//! | object | 0, 1, 2 and so on, in the order of the FILE records |

use crate::chunks;
use crate::name::MAX_PATH_LEN;
use byway_engine::data::RangeSet;
use byway_wire::codec::{unzigzag, zigzag};
use byway_wire::{DecodeError, ObjectId, Reader, Writer, frame};

/// The version of the manifest that this crate writes and reads.
pub const MANIFEST_VERSION: u64 = 2;
/// The longest body of a record in bytes: two paths, and the other fields.
pub const MAX_BODY_LEN: usize = 2 * MAX_PATH_LEN + MAX_FIELDS_LEN;
/// Bytes of a body's fields at most, paths and texts aside.
const MAX_FIELDS_LEN: usize = 64;
/// Every bit that a mode may have. They are permissions, setuid, setgid and sticky.
pub(crate) const MODE_MASK: u16 = 0o7777;
/// Seconds between 1970 and a time at most: 2^60 s, 36 billion years. Times further away are
/// brought to it.
const MAX_SECONDS: i64 = 1 << 60;

// Types of records.
const START_RECORD: u8 = 0x00;
const DIRECTORY_RECORD: u8 = 0x01;
const FILE_RECORD: u8 = 0x02;
const SYMLINK_RECORD: u8 = 0x03;
const HASH_RECORD: u8 = 0x04;
const WITHDRAWN_RECORD: u8 = 0x05;
const END_RECORD: u8 = 0x06;
const PARTS_RECORD: u8 = 0x07;
const RESUME_RECORD: u8 = 0x08;
const HOLES_RECORD: u8 = 0x09;
const TOTAL_RECORD: u8 = 0x0a;

/// The modification time of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp {
    /// Seconds since 1970, negative before.
    pub seconds: i64,
    /// Nanoseconds after that, below 10^9.
    pub nanoseconds: u32,
}

/// The mode and modification time of a file or directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// Permission bits, at most `0o7777`.
    pub mode: u16,
    /// The time of the last modification.
    pub mtime: Timestamp,
}

/// Numbers of files, directories and links in a tree, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// How many regular files.
    pub files: u64,
    /// How many directories.
    pub directories: u64,
    /// How many symbolic links.
    pub symlinks: u64,
    /// Bytes of all regular files.
    pub bytes: u64,
}

/// Why a sender withdraws a file that it announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Withdrawal {
    /// The file changed while it was read, so what was sent is of no one version.
    Changed,
    /// The file could not be completely read.
    Unreadable,
}

/// A record, which borrows from its encoded body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// The stream begins.
    Start {
        /// The version of the records that follow.
        version: u64,
    },
    /// A directory that is to be made.
    Directory {
        /// Mode and time, to be set when everything below is in place.
        metadata: Metadata,
        /// The path of the directory.
        path: &'a [u8],
    },
    /// A regular file, whose contents travel as an object.
    File {
        /// The object that carries the file's bytes.
        object: ObjectId,
        /// The size of the file in bytes.
        size: u64,
        /// The file's mode and time.
        metadata: Metadata,
        /// The path of the file.
        path: &'a [u8],
    },
    /// A symbolic link that is to be made.
    Symlink {
        /// Last modification of the link itself.
        mtime: Timestamp,
        /// The path of the link.
        path: &'a [u8],
        /// The target of the link, which is never followed.
        target: &'a [u8],
    },
    /// The BLAKE3 hash of an object.
    Hash {
        /// The number of the object.
        object: ObjectId,
        /// The BLAKE3 hash of the file.
        hash: [u8; 32],
    },
    /// The object will not be completed.
    Withdrawn {
        /// The number of the object.
        object: ObjectId,
        /// Why the file is withdrawn.
        why: Withdrawal,
    },
    /// The stream ends; every object was settled.
    End(Counts),
    /// The chunks of a file that the receiver keeps. The object has only the others.
    Parts {
        /// The number of the object.
        object: ObjectId,
        /// Chunks by their index.
        kept: ChunkRanges<'a>,
    },
    /// The sender tries a transfer again that was begun before.
    Resume,
    /// The size of everything to send, for progress displays.
    Total {
        /// Bytes of all files.
        bytes: u64,
    },
    /// Chunks of the next file that contain only zeros, and are not sent.
    Holes(ChunkRanges<'a>),
}

/// Ranges of chunks, ascending, that do not touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkRanges<'a>(&'a [u8]);

/// The most ranges in one record; each takes at most two integers of four bytes.
pub(crate) const MAX_KEPT_RANGES: usize = MAX_PATH_LEN / 4;

impl<'a> ChunkRanges<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let (mut end, mut count) = (0, 0);
        while !reader.is_empty() {
            let (gap, length) = (reader.varint()?, reader.varint()?);
            end += gap + length + 1;
            count += 1;
            if end > chunks::MAX_CHUNKS || gap == 0 && count > 1 || count > MAX_KEPT_RANGES {
                return Err(DecodeError::Range("chunks kept"));
            }
        }
        Ok(Self(bytes))
    }

    /// Encodes at most the first [`MAX_KEPT_RANGES`] ranges of `kept`. Also returns the set that
    /// was encoded.
    pub(crate) fn write(kept: &RangeSet) -> (Vec<u8>, RangeSet) {
        let (mut bytes, mut told, mut at) = (vec![0; 2 * MAX_PATH_LEN], RangeSet::new(), 0);
        let mut writer = Writer::new(&mut bytes);
        for (start, end) in kept.iter().take(MAX_KEPT_RANGES) {
            writer.varint(start - at);
            writer.varint(end - start - 1);
            told.insert(start, end);
            at = end;
        }
        let written = writer.len();
        bytes.truncate(written);
        (bytes, told)
    }

    /// From the bytes of [`ChunkRanges::write`].
    pub(crate) const fn written(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The chunks as a set of their indices.
    pub(crate) fn set(self) -> RangeSet {
        let (mut reader, mut set, mut at) = (Reader::new(self.0), RangeSet::new(), 0);
        while let (Ok(gap), Ok(length)) = (reader.varint(), reader.varint()) {
            set.insert(at + gap, at + gap + length + 1);
            at += gap + length + 1;
        }
        set
    }
}

impl<'a> Record<'a> {
    /// Decodes the body of a record from the other host. Does not check the components of a path:
    /// pass each path to [`check_name`](crate::check_name) before use.
    ///
    /// # Errors
    /// The body has a wrong length, an unknown type or an invalid value.
    pub fn decode(body: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(body);
        let record = match reader.u8()? {
            START_RECORD => Self::Start { version: reader.varint()? },
            DIRECTORY_RECORD => Self::Directory {
                metadata: read_metadata(&mut reader)?,
                path: read_path(reader.take_rest())?,
            },
            FILE_RECORD => Self::File {
                object: read_object(&mut reader)?,
                size: reader.varint()?,
                metadata: read_metadata(&mut reader)?,
                path: read_path(reader.take_rest())?,
            },
            SYMLINK_RECORD => {
                let mtime = read_time(&mut reader)?;
                let length =
                    usize::try_from(reader.varint()?).map_err(|_| DecodeError::Range("path length"))?;
                Self::Symlink {
                    mtime,
                    path: read_path(reader.bytes(length)?)?,
                    target: read_path(reader.take_rest())?,
                }
            }
            HASH_RECORD => Self::Hash { object: read_object(&mut reader)?, hash: reader.array()? },
            WITHDRAWN_RECORD => Self::Withdrawn {
                object: read_object(&mut reader)?,
                why: match reader.u8()? {
                    0 => Withdrawal::Changed,
                    1 => Withdrawal::Unreadable,
                    _ => return Err(DecodeError::Range("reason")),
                },
            },
            END_RECORD => Self::End(Counts {
                files: reader.varint()?,
                directories: reader.varint()?,
                symlinks: reader.varint()?,
                bytes: reader.varint()?,
            }),
            PARTS_RECORD => Self::Parts {
                object: read_object(&mut reader)?,
                kept: ChunkRanges::read(reader.take_rest())?,
            },
            RESUME_RECORD => Self::Resume,
            HOLES_RECORD => Self::Holes(ChunkRanges::read(reader.take_rest())?),
            TOTAL_RECORD => Self::Total { bytes: reader.varint()? },
            unknown => return Err(DecodeError::UnknownType(unknown)),
        };
        if reader.is_empty() { Ok(record) } else { Err(DecodeError::Range("record length")) }
    }

    /// Appends the encoded record. Its paths must have at most [`MAX_PATH_LEN`] bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let variable = match self {
            Self::Directory { path, .. } | Self::File { path, .. } => path.len(),
            Self::Symlink { path, target, .. } => path.len() + target.len(),
            Self::Parts { kept, .. } | Self::Holes(kept) => kept.0.len(),
            _ => 0,
        };
        append(out, variable, |writer| match *self {
            Self::Start { version } => {
                writer.u8(START_RECORD);
                writer.varint(version);
            }
            Self::Directory { metadata, path } => {
                writer.u8(DIRECTORY_RECORD);
                write_metadata(writer, metadata);
                writer.bytes(path);
            }
            Self::File { object, size, metadata, path } => {
                writer.u8(FILE_RECORD);
                writer.varint(object.0.into());
                writer.varint(size);
                write_metadata(writer, metadata);
                writer.bytes(path);
            }
            Self::Symlink { mtime, path, target } => {
                writer.u8(SYMLINK_RECORD);
                write_time(writer, mtime);
                writer.varint(path.len() as u64);
                writer.bytes(path);
                writer.bytes(target);
            }
            Self::Hash { object, hash } => {
                writer.u8(HASH_RECORD);
                writer.varint(object.0.into());
                writer.bytes(&hash);
            }
            Self::Withdrawn { object, why } => {
                writer.u8(WITHDRAWN_RECORD);
                writer.varint(object.0.into());
                writer.u8(match why {
                    Withdrawal::Changed => 0,
                    Withdrawal::Unreadable => 1,
                });
            }
            Self::End(counts) => {
                writer.u8(END_RECORD);
                for count in [counts.files, counts.directories, counts.symlinks, counts.bytes] {
                    writer.varint(count);
                }
            }
            Self::Parts { object, kept } => {
                writer.u8(PARTS_RECORD);
                writer.varint(object.0.into());
                writer.bytes(kept.0);
            }
            Self::Resume => writer.u8(RESUME_RECORD),
            Self::Total { bytes } => {
                writer.u8(TOTAL_RECORD);
                writer.varint(bytes);
            }
            Self::Holes(holes) => {
                writer.u8(HOLES_RECORD);
                writer.bytes(holes.0);
            }
        });
    }
}

/// Appends a length and the body that `write` makes: up to [`MAX_FIELDS_LEN`] bytes of fields and
/// `variable` more.
pub(crate) fn append(out: &mut Vec<u8>, variable: usize, write: impl FnOnce(&mut Writer<'_>)) {
    let start = out.len();
    out.resize(start + 2 + MAX_FIELDS_LEN + variable, 0);
    let room = out.get_mut(start..).unwrap_or_default();
    if let Some((length, body)) = room.split_first_chunk_mut::<2>() {
        let mut writer = Writer::new(body);
        write(&mut writer);
        debug_assert!(!writer.overflowed() && writer.len() <= MAX_BODY_LEN);
        let written = writer.len();
        *length = (written as u16).to_be_bytes();
        out.truncate(start + 2 + written);
    }
}

pub(crate) fn read_object(reader: &mut Reader<'_>) -> Result<ObjectId, DecodeError> {
    let id = reader.varint_u32("object")?;
    if id > frame::MAX_OBJECT_ID { Err(DecodeError::Range("object")) } else { Ok(ObjectId(id)) }
}

fn read_metadata(reader: &mut Reader<'_>) -> Result<Metadata, DecodeError> {
    let mode = u16::try_from(reader.varint()?).map_err(|_| DecodeError::Range("mode"))?;
    if mode > MODE_MASK {
        return Err(DecodeError::Range("mode"));
    }
    Ok(Metadata { mode, mtime: read_time(reader)? })
}

fn write_metadata(writer: &mut Writer<'_>, metadata: Metadata) {
    writer.varint((metadata.mode & MODE_MASK).into());
    write_time(writer, metadata.mtime);
}

fn read_time(reader: &mut Reader<'_>) -> Result<Timestamp, DecodeError> {
    let seconds = unzigzag(reader.varint()?);
    let nanoseconds = reader.varint_u32("nanoseconds")?;
    if nanoseconds >= 1_000_000_000 || !(-MAX_SECONDS..=MAX_SECONDS).contains(&seconds) {
        return Err(DecodeError::Range("time"));
    }
    Ok(Timestamp { seconds, nanoseconds })
}

fn write_time(writer: &mut Writer<'_>, time: Timestamp) {
    writer.varint(zigzag(time.seconds.clamp(-MAX_SECONDS, MAX_SECONDS)));
    writer.varint(time.nanoseconds.min(999_999_999).into());
}

pub(crate) fn read_path(bytes: &[u8]) -> Result<&[u8], DecodeError> {
    if bytes.len() > MAX_PATH_LEN { Err(DecodeError::Range("path length")) } else { Ok(bytes) }
}

/// Cuts a stream into bodies, whatever pieces it comes in. Holds at most one incomplete record.
#[derive(Debug, Default)]
pub(crate) struct Framer {
    held: Vec<u8>,
}

impl Framer {
    /// Calls `each` with every body that `bytes` completes, and stops at the first error.
    pub(crate) fn feed<E: From<DecodeError>>(
        &mut self,
        mut bytes: &[u8],
        mut each: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        while !bytes.is_empty() {
            let missing = match self.held.first_chunk::<2>() {
                None => 2 - self.held.len(),
                Some(length) => 2 + body_length(*length)? - self.held.len(),
            };
            let (head, tail) = bytes.split_at(missing.min(bytes.len()));
            self.held.extend_from_slice(head);
            bytes = tail;
            if let Some((length, body)) = self.held.split_first_chunk::<2>()
                && body.len() == body_length(*length)?
            {
                each(body)?;
                self.held.clear();
            }
        }
        Ok(())
    }
}

fn body_length(length: [u8; 2]) -> Result<usize, DecodeError> {
    match usize::from(u16::from_be_bytes(length)) {
        0 => Err(DecodeError::Range("record length")),
        length if length > MAX_BODY_LEN => Err(DecodeError::Range("record length")),
        length => Ok(length),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn hex(record: &Record<'_>) -> String {
        let mut out = Vec::new();
        record.encode(&mut out);
        out.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    const META: Metadata =
        Metadata { mode: 0o644, mtime: Timestamp { seconds: 1_700_000_000, nanoseconds: 5 } };

    #[test]
    fn the_format_is_frozen() {
        assert_eq!(hex(&Record::Start { version: MANIFEST_VERSION }), "00020002");
        assert_eq!(
            hex(&Record::Directory { metadata: META, path: b"a/b" }),
            "000f0141a4c0000000caa7e2000561 2f62".replace(' ', "")
        );
        let file = Record::File { object: ObjectId(70), size: 20_000, metadata: META, path: b"\xff" };
        assert_eq!(hex(&file), "0013024046 80004e20 41a4c0000000caa7e20005ff".replace(' ', ""));
        let mtime = Timestamp { seconds: -1, nanoseconds: 999_999_999 };
        let link = Record::Symlink { mtime, path: b"l", target: b"../x" };
        assert_eq!(hex(&link), "000c 03 01 bb9ac9ff 01 6c 2e2e2f78".replace(' ', ""));
        let hash = Record::Hash { object: ObjectId(1), hash: [0xab; 32] };
        assert_eq!(hex(&hash), format!("00220401{}", "ab".repeat(32)));
        let withdrawn = Record::Withdrawn { object: ObjectId(1), why: Withdrawal::Unreadable };
        assert_eq!(hex(&withdrawn), "0003050101");
        let end = Record::End(Counts { files: 1, directories: 2, symlinks: 3, bytes: 64 });
        assert_eq!(hex(&end), "0006060102034040");
        let mut set = RangeSet::new();
        set.insert(0, 3);
        set.insert(70, 71);
        let (kept, told) = ChunkRanges::write(&set);
        assert_eq!((told, ChunkRanges::written(&kept).set()), (set.clone(), set));
        let parts = Record::Parts { object: ObjectId(1), kept: ChunkRanges::written(&kept) };
        assert_eq!(hex(&parts), "0007 07 01 00 02 4043 00".replace(' ', ""));
        assert_eq!(hex(&Record::Resume), "000108");
        assert_eq!(
            hex(&Record::Holes(ChunkRanges::written(&kept))),
            "0006 09 00 02 4043 00".replace(' ', "")
        );
        assert_eq!(hex(&Record::Total { bytes: 64 }), "00030a4040");
    }

    #[test]
    fn values_out_of_range_are_refused() {
        let bad: [&[u8]; 13] = [
            b"",
            b"\x00\x01\x00",                                          // left over
            b"\x01\x50\x00\x00\x00a",                                 // mode 0o10000
            b"\x01\x00\x00\xbb\x9a\xca\x00a",                         // 10^9 nanoseconds
            b"\x02\xc0\x00\x00\x01\x00\x00\x00\x00\x01\x00\x00\x00a", // object 2^32
            b"\x02\xc0\x00\x00\x00\x40\x00\x00\x00\x01\x00\x00\x00a", // object 2^30
            b"\x03\x00\x00\x05ab",                                    // path longer than the body
            b"\x05\x01\x02",                                          // reason nobody knows
            b"\x07",
            b"\x07\x01\x00",                 // half a range
            b"\x07\x01\x00\x00\x00\x00",     // ranges that touch
            b"\x07\x01\x00\x80\x01\x00\x00", // chunk 65536
            b"\x08\x00",
        ];
        for body in bad {
            assert!(Record::decode(body).is_err(), "{body:?}");
        }
    }

    fn time() -> impl Strategy<Value = Timestamp> {
        (-MAX_SECONDS..=MAX_SECONDS, 0..1_000_000_000u32)
            .prop_map(|(seconds, nanoseconds)| Timestamp { seconds, nanoseconds })
    }

    fn metadata() -> impl Strategy<Value = Metadata> {
        (0..=MODE_MASK, time()).prop_map(|(mode, mtime)| Metadata { mode, mtime })
    }

    proptest! {
        #[test]
        fn every_record_survives_any_cut(
            metadata in metadata(),
            object in 0..=frame::MAX_OBJECT_ID,
            size in 0..=byway_wire::codec::VARINT_MAX,
            path in vec(any::<u8>(), 0..600),
            target in vec(any::<u8>(), 0..MAX_PATH_LEN),
            hash: [u8; 32],
            cuts in vec(1..900usize, 1..40),
        ) {
            let object = ObjectId(object);
            let mut set = RangeSet::new();
            path.iter().map(|byte| u64::from(*byte) * 99).for_each(|at| _ = set.insert(at, at + 7));
            let (kept, _) = ChunkRanges::write(&set);
            let records = [
                Record::Start { version: size },
                Record::Directory { metadata, path: &path },
                Record::File { object, size, metadata, path: &target },
                Record::Symlink { mtime: metadata.mtime, path: &path, target: &target },
                Record::Hash { object, hash },
                Record::Withdrawn { object, why: Withdrawal::Changed },
                Record::End(Counts { files: size, directories: 0, symlinks: size, bytes: size }),
                Record::Parts { object, kept: ChunkRanges::written(&kept) },
                Record::Resume,
                Record::Holes(ChunkRanges::written(&kept)),
                Record::Total { bytes: size },
            ];
            let mut bytes = Vec::new();
            records.iter().for_each(|record| record.encode(&mut bytes));
            let (mut framer, mut rest, mut seen) = (Framer::default(), &bytes[..], 0);
            for cut in cuts.iter().cycle() {
                let (piece, tail) = rest.split_at((*cut).min(rest.len()));
                framer.feed::<DecodeError>(piece, |body| {
                    assert_eq!(Record::decode(body)?, records[seen]);
                    seen += 1;
                    Ok(())
                }).unwrap();
                rest = tail;
                if rest.is_empty() {
                    break;
                }
            }
            prop_assert_eq!(seen, records.len());
            prop_assert!(framer.held.is_empty());
        }

        #[test]
        fn garbage_never_panics_and_is_never_hoarded(pieces in vec(vec(any::<u8>(), 0..300), 0..20)) {
            let mut framer = Framer::default();
            for piece in pieces {
                let fed = framer.feed::<DecodeError>(&piece, |body| Record::decode(body).map(drop));
                prop_assert!(framer.held.len() <= 2 + MAX_BODY_LEN);
                if fed.is_err() {
                    break;
                }
            }
        }

        #[test]
        fn what_decodes_encodes_to_the_same_meaning(body in vec(any::<u8>(), 0..100)) {
            if let Ok(record) = Record::decode(&body) {
                let mut out = Vec::new();
                record.encode(&mut out);
                prop_assert_eq!(Record::decode(&out[2..]), Ok(record));
            }
        }
    }
}
