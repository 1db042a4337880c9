//! The manifest: records in an ordered stream from sender to receiver. A record is the length of
//! its body (2 bytes, big endian) and the body. A body is a type byte and fields.
//!
//! | type | record | fields |
//! |---|---|---|
//! | 00 | START | version; first in the stream, once |
//! | 01 | DIRECTORY | shared, metadata, rest of the path; before the records of its contents |
//! | 02 | FILE | shared, size, metadata, rest of the path; its object is the next one: 0, 1, 2 and so on |
//! | 03 | SYMLINK | shared, time, length of the rest, rest of the path, target |
//! | 04 | HASH | object, BLAKE3 of the contents (32); may follow the contents, so a sender need not hash a file first |
//! | 05 | WITHDRAWN | object, reason; in place of HASH |
//! | 06 | END | files, directories, symlinks, bytes; last in the stream, once |
//! | 07 | PARTS | object, ranges of chunks that the receiver keeps (`resume`): distance from the end of the range before, length - 1 |
//! | 08 | COMPARE | flags; right after START: every FILE is answered ([`crate::receiver_report`]) before its contents travel |
//! | 09 | HOLES | ranges of chunks of nothing but zeros that do not travel, of the FILE right after it; as in PARTS |
//! | 0b | HARDLINK | shared, size, time, length of the rest, rest of the path, path of the file's first name |
//! | 0a | TOTAL | bytes of all files; for whoever looks on, once or never |
//! | 0c | FILTER | flags, pattern; only where the receiver deletes, before the first entry: what it protects, in order |
//! | 0d | ROOT | shared, rest of the path; only where the receiver deletes: of the tree that follows, to which patterns relate |
//! | 0e | KEEP | shared, rest of the path; only where the receiver deletes: an entry that is here and not sent, in its place in the order |
//!
//! | field | encoding |
//! |---|---|
//! | integers | variable-length (RFC 9000 section 16), unless the width in bytes is given |
//! | shared | bytes that the path has in common with that of the record before, from its beginning on |
//! | path | relative byte string, one slash between components |
//! | metadata | the bits of the mode in which it differs from that of the record of this type before, and the time |
//! | time | seconds of the modification time less those of the record before (zigzag), and its nanoseconds |
//!
//! | flag of COMPARE | meaning |
//! |---|---|
//! | 1 | chunks that an earlier try left are to be offered by HAVE |
//! | 2 | a file of the same size and time is not taken for the same: its contents are compared by HAVE |
//! | 4 | a file of the receiver that is newer is replaced |
//! | 8 | what the receiver has below a ROOT, and the sender has not, is moved to the receiver's trash |
//! | 16 | a file of the receiver that is newer is kept, and counts as no failure |
//!
//! | flag of FILTER | meaning |
//! |---|---|
//! | 1 | what the pattern matches is excluded, and otherwise included again |
//!
//! A KEEP without a path, before the end, keeps all: the sender could not send all that it has.
//!
//! A KEEP with the path of the directory whose entries are coming keeps all that it holds at the
//! receiver.

use crate::chunks;
use crate::name::MAX_PATH_LEN;
use crate::path_pattern::MAX_PATTERN_LEN;
use byway_engine::data::RangeSet;
use byway_wire::codec::{unzigzag, zigzag};
use byway_wire::{DecodeError, ObjectId, Reader, Writer, frame};

/// The version of the manifest that this crate writes and reads.
pub const MANIFEST_VERSION: u64 = 3;
/// The longest body of a record in bytes: two paths, and the other fields.
pub const MAX_BODY_LEN: usize = 2 * MAX_PATH_LEN + MAX_FIELDS_LEN;
/// Bytes of a body's fields at most, paths and texts aside.
const MAX_FIELDS_LEN: usize = 64;
/// Every bit that a mode may have. They are permissions, setuid, setgid and sticky.
pub(crate) const MODE_MASK: u16 = 0o7777;
/// Seconds between 1970 and a time at most: 2^59 s, 18 billion years. Times further away are
/// brought to it.
const MAX_SECONDS: i64 = 1 << 59;

// Types of records.
const START_RECORD: u8 = 0x00;
const DIRECTORY_RECORD: u8 = 0x01;
const FILE_RECORD: u8 = 0x02;
const SYMLINK_RECORD: u8 = 0x03;
const HASH_RECORD: u8 = 0x04;
const WITHDRAWN_RECORD: u8 = 0x05;
const END_RECORD: u8 = 0x06;
const PARTS_RECORD: u8 = 0x07;
const COMPARE_RECORD: u8 = 0x08;
const HOLES_RECORD: u8 = 0x09;
const TOTAL_RECORD: u8 = 0x0a;
const HARD_LINK_RECORD: u8 = 0x0b;
const FILTER_RECORD: u8 = 0x0c;
const ROOT_RECORD: u8 = 0x0d;
const KEEP_RECORD: u8 = 0x0e;
// Flags of COMPARE.
const RESUMES_FLAG: u8 = 0x01;
const CONTENTS_FLAG: u8 = 0x02;
const REPLACES_NEWER_FLAG: u8 = 0x04;
const DELETES_FLAG: u8 = 0x08;
const EXPECTS_NEWER_FLAG: u8 = 0x10;
// The flag of FILTER.
const EXCLUDES_FLAG: u8 = 0x01;

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

/// Number of files, directories and links in a tree, and the files' bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Number of regular files.
    pub files: u64,
    /// Number of directories.
    pub directories: u64,
    /// Number of symbolic links.
    pub symlinks: u64,
    /// Bytes of all regular files.
    pub bytes: u64,
}

/// Why a sender withdraws a file that it announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Withdrawal {
    /// The file changed while it was read, so the data sent are not of one version.
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
    /// Another name of a file that was announced before.
    HardLink {
        /// The size of the file in bytes.
        size: u64,
        /// The file's modification time.
        mtime: Timestamp,
        /// The path of the further name.
        path: &'a [u8],
        /// The path under which the file was announced.
        first: &'a [u8],
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
    /// The chunks of a file that the receiver keeps. The object contains only the others.
    Parts {
        /// The number of the object.
        object: ObjectId,
        /// The indices of the chunks.
        kept: ChunkRanges<'a>,
    },
    /// The sender waits for the receiver's answer to each file.
    Compare(ComparePlan),
    /// The size of everything to send, for progress displays.
    Total {
        /// Bytes of all files.
        bytes: u64,
    },
    /// Chunks of the next file that contain only zeros, and are not sent.
    Holes(ChunkRanges<'a>),
    /// A pattern for entries of the receiver that are not deleted.
    Filter {
        /// Whether the pattern excludes entries, or includes them again.
        excludes: bool,
        /// The pattern.
        pattern: &'a [u8],
    },
    /// A tree follows in which the receiver deletes the entries that the sender does not have.
    Root {
        /// The path of the tree; empty for the receiver's directory.
        path: &'a [u8],
    },
    /// An entry of the sender that is not sent, so that the receiver deletes nothing there.
    Keep {
        /// The path of the entry, or of a directory all of whose entries are kept.
        path: &'a [u8],
    },
}

/// The rules by which the receiver's files are compared with the sender's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ComparePlan {
    /// The transfer was begun before: the receiver offers the chunks that it has of each file.
    pub resumes: bool,
    /// Contents are compared also where size and time are the same.
    pub contents: bool,
    /// A file of the receiver that is newer is replaced, too.
    pub replaces_newer: bool,
    /// Whether entries below a root that the sender does not have are moved to the trash.
    pub deletes: bool,
    /// A file of the receiver that is newer is kept, and counts as no failure.
    pub expects_newer: bool,
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

    /// Reads the bytes that [`ChunkRanges::write`] wrote.
    pub(crate) const fn written(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Returns the chunks as a set of their indices.
    pub(crate) fn set(self) -> RangeSet {
        let (mut reader, mut set, mut at) = (Reader::new(self.0), RangeSet::new(), 0);
        while let (Ok(gap), Ok(length)) = (reader.varint(), reader.varint()) {
            set.insert(at + gap, at + gap + length + 1);
            at += gap + length + 1;
        }
        set
    }
}

/// Writes or reads records. Each end remembers the fields of earlier records, from which later ones
/// differ.
#[derive(Debug, Default)]
pub struct RecordCodec {
    path: Vec<u8>,
    seconds: i64,
    directory_mode: u16,
    file_mode: u16,
    next_object: u32,
}

impl RecordCodec {
    /// Decodes the body of the next record from the peer. It does not check the components of a
    /// path: pass each path to [`check_name`](crate::check_name) before use.
    ///
    /// # Errors
    /// The body has a wrong length, an unknown type or an invalid value. The rest of the stream
    /// cannot be decoded then.
    pub fn decode<'a>(&'a mut self, body: &'a [u8]) -> Result<Record<'a>, DecodeError> {
        let mut reader = Reader::new(body);
        let record = match reader.u8()? {
            START_RECORD => Record::Start { version: reader.varint()? },
            DIRECTORY_RECORD => {
                let shared = reader.varint()?;
                let mode = read_mode(&mut reader, &mut self.directory_mode)?;
                let metadata = Metadata { mode, mtime: self.read_time(&mut reader)? };
                Record::Directory { metadata, path: self.read_path(shared, reader.take_rest())? }
            }
            FILE_RECORD => {
                let (shared, size) = (reader.varint()?, reader.varint()?);
                let mode = read_mode(&mut reader, &mut self.file_mode)?;
                let metadata = Metadata { mode, mtime: self.read_time(&mut reader)? };
                let object = self.next_object;
                if object > frame::MAX_OBJECT_ID {
                    return Err(DecodeError::Range("object"));
                }
                self.next_object += 1;
                let path = self.read_path(shared, reader.take_rest())?;
                Record::File { object: ObjectId(object), size, metadata, path }
            }
            SYMLINK_RECORD => {
                let shared = reader.varint()?;
                let mtime = self.read_time(&mut reader)?;
                let rest = read_text(&mut reader)?;
                let target = read_path(reader.take_rest())?;
                Record::Symlink { mtime, path: self.read_path(shared, rest)?, target }
            }
            HARD_LINK_RECORD => {
                let (shared, size) = (reader.varint()?, reader.varint()?);
                let mtime = self.read_time(&mut reader)?;
                let rest = read_text(&mut reader)?;
                let first = read_path(reader.take_rest())?;
                Record::HardLink { size, mtime, path: self.read_path(shared, rest)?, first }
            }
            HASH_RECORD => Record::Hash { object: read_object(&mut reader)?, hash: reader.array()? },
            WITHDRAWN_RECORD => Record::Withdrawn {
                object: read_object(&mut reader)?,
                why: match reader.u8()? {
                    0 => Withdrawal::Changed,
                    1 => Withdrawal::Unreadable,
                    _ => return Err(DecodeError::Range("reason")),
                },
            },
            END_RECORD => Record::End(Counts {
                files: reader.varint()?,
                directories: reader.varint()?,
                symlinks: reader.varint()?,
                bytes: reader.varint()?,
            }),
            PARTS_RECORD => Record::Parts {
                object: read_object(&mut reader)?,
                kept: ChunkRanges::read(reader.take_rest())?,
            },
            COMPARE_RECORD => {
                let flags = reader.u8()?;
                let known =
                    RESUMES_FLAG | CONTENTS_FLAG | REPLACES_NEWER_FLAG | DELETES_FLAG | EXPECTS_NEWER_FLAG;
                if flags > known {
                    return Err(DecodeError::Range("flags"));
                }
                Record::Compare(ComparePlan {
                    resumes: flags & RESUMES_FLAG != 0,
                    contents: flags & CONTENTS_FLAG != 0,
                    replaces_newer: flags & REPLACES_NEWER_FLAG != 0,
                    deletes: flags & DELETES_FLAG != 0,
                    expects_newer: flags & EXPECTS_NEWER_FLAG != 0,
                })
            }
            HOLES_RECORD => Record::Holes(ChunkRanges::read(reader.take_rest())?),
            TOTAL_RECORD => Record::Total { bytes: reader.varint()? },
            FILTER_RECORD => {
                let flags = reader.u8()?;
                if flags > EXCLUDES_FLAG {
                    return Err(DecodeError::Range("flags"));
                }
                let pattern = reader.take_rest();
                if pattern.len() > MAX_PATTERN_LEN {
                    return Err(DecodeError::Range("pattern"));
                }
                Record::Filter { excludes: flags == EXCLUDES_FLAG, pattern }
            }
            ROOT_RECORD => {
                let shared = reader.varint()?;
                Record::Root { path: self.read_path(shared, reader.take_rest())? }
            }
            KEEP_RECORD => {
                let shared = reader.varint()?;
                Record::Keep { path: self.read_path(shared, reader.take_rest())? }
            }
            unknown => return Err(DecodeError::UnknownType(unknown)),
        };
        if reader.is_empty() { Ok(record) } else { Err(DecodeError::Range("record length")) }
    }

    /// Appends the encoded record. Its paths must have at most [`MAX_PATH_LEN`] bytes. A FILE
    /// record has the next object, whatever it says.
    pub fn encode(&mut self, record: &Record<'_>, out: &mut Vec<u8>) {
        let variable = match record {
            Record::Directory { path, .. }
            | Record::File { path, .. }
            | Record::Root { path }
            | Record::Keep { path } => path.len(),
            Record::Filter { pattern, .. } => pattern.len(),
            Record::Symlink { path, target, .. } | Record::HardLink { path, first: target, .. } => {
                path.len() + target.len()
            }
            Record::Parts { kept, .. } | Record::Holes(kept) => kept.0.len(),
            _ => 0,
        };
        append(out, variable, |writer| match *record {
            Record::Start { version } => {
                writer.u8(START_RECORD);
                writer.varint(version);
            }
            Record::Directory { metadata, path } => {
                writer.u8(DIRECTORY_RECORD);
                let (shared, rest) = self.share_path(path);
                writer.varint(shared);
                write_mode(writer, metadata.mode, &mut self.directory_mode);
                self.write_time(writer, metadata.mtime);
                writer.bytes(rest);
            }
            Record::File { object: _, size, metadata, path } => {
                writer.u8(FILE_RECORD);
                let (shared, rest) = self.share_path(path);
                writer.varint(shared);
                writer.varint(size);
                write_mode(writer, metadata.mode, &mut self.file_mode);
                self.write_time(writer, metadata.mtime);
                writer.bytes(rest);
                self.next_object += 1;
            }
            Record::Symlink { mtime, path, target } => {
                writer.u8(SYMLINK_RECORD);
                let (shared, rest) = self.share_path(path);
                writer.varint(shared);
                self.write_time(writer, mtime);
                writer.varint(rest.len() as u64);
                writer.bytes(rest);
                writer.bytes(target);
            }
            Record::HardLink { size, mtime, path, first } => {
                writer.u8(HARD_LINK_RECORD);
                let (shared, rest) = self.share_path(path);
                writer.varint(shared);
                writer.varint(size);
                self.write_time(writer, mtime);
                writer.varint(rest.len() as u64);
                writer.bytes(rest);
                writer.bytes(first);
            }
            Record::Hash { object, hash } => {
                writer.u8(HASH_RECORD);
                writer.varint(object.0.into());
                writer.bytes(&hash);
            }
            Record::Withdrawn { object, why } => {
                writer.u8(WITHDRAWN_RECORD);
                writer.varint(object.0.into());
                writer.u8(match why {
                    Withdrawal::Changed => 0,
                    Withdrawal::Unreadable => 1,
                });
            }
            Record::End(counts) => {
                writer.u8(END_RECORD);
                for count in [counts.files, counts.directories, counts.symlinks, counts.bytes] {
                    writer.varint(count);
                }
            }
            Record::Parts { object, kept } => {
                writer.u8(PARTS_RECORD);
                writer.varint(object.0.into());
                writer.bytes(kept.0);
            }
            Record::Compare(plan) => {
                writer.u8(COMPARE_RECORD);
                let flags = [
                    (plan.resumes, RESUMES_FLAG),
                    (plan.contents, CONTENTS_FLAG),
                    (plan.replaces_newer, REPLACES_NEWER_FLAG),
                    (plan.deletes, DELETES_FLAG),
                    (plan.expects_newer, EXPECTS_NEWER_FLAG),
                ];
                writer.u8(flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag).sum());
            }
            Record::Total { bytes } => {
                writer.u8(TOTAL_RECORD);
                writer.varint(bytes);
            }
            Record::Holes(holes) => {
                writer.u8(HOLES_RECORD);
                writer.bytes(holes.0);
            }
            Record::Filter { excludes, pattern } => {
                writer.u8(FILTER_RECORD);
                writer.u8(if excludes { EXCLUDES_FLAG } else { 0 });
                writer.bytes(pattern);
            }
            Record::Root { path } => self.write_path_record(writer, ROOT_RECORD, path),
            Record::Keep { path } => self.write_path_record(writer, KEEP_RECORD, path),
        });
    }

    fn write_path_record(&mut self, writer: &mut Writer<'_>, kind: u8, path: &[u8]) {
        writer.u8(kind);
        let (shared, rest) = self.share_path(path);
        writer.varint(shared);
        writer.bytes(rest);
    }

    /// The bytes that a path shares with the one before, and the rest.
    fn share_path<'a>(&mut self, path: &'a [u8]) -> (u64, &'a [u8]) {
        let shared = self.path.iter().zip(path).take_while(|(one, other)| one == other).count();
        let rest = path.get(shared..).unwrap_or_default();
        self.path.truncate(shared);
        self.path.extend_from_slice(rest);
        (shared as u64, rest)
    }

    fn read_path(&mut self, shared: u64, rest: &[u8]) -> Result<&[u8], DecodeError> {
        let shared = usize::try_from(shared).ok().filter(|shared| *shared <= self.path.len());
        let shared = shared.ok_or(DecodeError::Range("shared path"))?;
        if shared + rest.len() > MAX_PATH_LEN {
            return Err(DecodeError::Range("path length"));
        }
        self.path.truncate(shared);
        self.path.extend_from_slice(rest);
        Ok(&self.path)
    }

    fn write_time(&mut self, writer: &mut Writer<'_>, time: Timestamp) {
        let seconds = time.seconds.clamp(-MAX_SECONDS, MAX_SECONDS);
        writer.varint(zigzag(seconds - self.seconds));
        writer.varint(time.nanoseconds.min(999_999_999).into());
        self.seconds = seconds;
    }

    fn read_time(&mut self, reader: &mut Reader<'_>) -> Result<Timestamp, DecodeError> {
        let seconds = self.seconds.saturating_add(unzigzag(reader.varint()?));
        let nanoseconds = reader.varint_u32("nanoseconds")?;
        if nanoseconds >= 1_000_000_000 || !(-MAX_SECONDS..=MAX_SECONDS).contains(&seconds) {
            return Err(DecodeError::Range("time"));
        }
        self.seconds = seconds;
        Ok(Timestamp { seconds, nanoseconds })
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

fn read_mode(reader: &mut Reader<'_>, before: &mut u16) -> Result<u16, DecodeError> {
    let changed = u16::try_from(reader.varint()?).map_err(|_| DecodeError::Range("mode"))?;
    if changed > MODE_MASK {
        return Err(DecodeError::Range("mode"));
    }
    *before ^= changed;
    Ok(*before)
}

fn write_mode(writer: &mut Writer<'_>, mode: u16, before: &mut u16) {
    let mode = mode & MODE_MASK;
    writer.varint((mode ^ *before).into());
    *before = mode;
}

/// Reads a byte string with its length before it.
fn read_text<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], DecodeError> {
    let length = usize::try_from(reader.varint()?).map_err(|_| DecodeError::Range("path length"))?;
    reader.bytes(length)
}

pub(crate) fn read_path(bytes: &[u8]) -> Result<&[u8], DecodeError> {
    if bytes.len() > MAX_PATH_LEN { Err(DecodeError::Range("path length")) } else { Ok(bytes) }
}

/// Reads the stream of records from pieces of any size.
#[derive(Debug, Default)]
pub(crate) struct RecordReader {
    framer: Framer,
    codec: RecordCodec,
}

impl RecordReader {
    /// Calls `each` with every record that `bytes` completes, and stops at the first error.
    pub(crate) fn feed<E: From<DecodeError>>(
        &mut self,
        bytes: &[u8],
        mut each: impl FnMut(Record<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let codec = &mut self.codec;
        self.framer.feed(bytes, |body| each(codec.decode(body)?))
    }
}

/// Cuts a stream of pieces of any size into bodies. It holds at most one incomplete record.
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

    /// Returns the records in hexadecimal, with blanks between them.
    fn hex(records: &[Record<'_>]) -> String {
        let mut codec = RecordCodec::default();
        let texts = records.iter().map(|record| {
            let mut out = Vec::new();
            codec.encode(record, &mut out);
            out.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
        });
        texts.collect::<Vec<_>>().join(" ")
    }

    const META: Metadata =
        Metadata { mode: 0o644, mtime: Timestamp { seconds: 1_700_000_000, nanoseconds: 5 } };

    #[test]
    fn the_format_is_frozen() {
        let mtime = Timestamp { seconds: 1_700_000_001, nanoseconds: 999_999_999 };
        let file = |path| Record::File { object: ObjectId(0), size: 20_000, metadata: META, path };
        assert_eq!(
            hex(&[
                Record::Start { version: MANIFEST_VERSION },
                Record::Compare(ComparePlan { contents: true, ..ComparePlan::default() }),
                Record::Directory { metadata: Metadata { mode: 0o755, ..META }, path: b"a" },
                file(b"a/b1"),
                file(b"a/b2"),
                Record::Symlink { mtime, path: b"a/l", target: b"../x" },
                Record::Directory { metadata: META, path: b"c" },
                Record::HardLink { size: 20_000, mtime: META.mtime, path: b"c/b3", first: b"a/b1" },
                Record::Root { path: b"" },
                Record::Keep { path: b"c/d" },
                Record::Keep { path: b"c/e" },
            ]),
            "00020003 00020802 000e010041edc0000000caa7e2000561 000d020180004e2041a400052f6231 \
             000a020380004e2000000532 000d030202bb9ac9ff016c2e2e2f78 000701004049010563 \
             00100b0180004e200005032f6233612f6231 00020d00 00050e00632f64 00030e0265"
        );
    }

    #[test]
    fn records_without_a_path_have_their_form() {
        let hash = Record::Hash { object: ObjectId(1), hash: [0xab; 32] };
        assert_eq!(hex(&[hash]), format!("00220401{}", "ab".repeat(32)));
        let withdrawn = Record::Withdrawn { object: ObjectId(1), why: Withdrawal::Unreadable };
        assert_eq!(hex(&[withdrawn]), "0003050101");
        let end = Record::End(Counts { files: 1, directories: 2, symlinks: 3, bytes: 64 });
        assert_eq!(hex(&[end]), "0006060102034040");
        let mut set = RangeSet::new();
        set.insert(0, 3);
        set.insert(70, 71);
        let (kept, told) = ChunkRanges::write(&set);
        assert_eq!((told, ChunkRanges::written(&kept).set()), (set.clone(), set));
        let parts = Record::Parts { object: ObjectId(1), kept: ChunkRanges::written(&kept) };
        assert_eq!(hex(&[parts]), "0007 07 01 00 02 4043 00".replace(' ', ""));
        assert_eq!(
            hex(&[Record::Holes(ChunkRanges::written(&kept))]),
            "0006 09 00 02 4043 00".replace(' ', "")
        );
        assert_eq!(hex(&[Record::Total { bytes: 64 }]), "00030a4040");
        let filter = |excludes| Record::Filter { excludes, pattern: b"*.o" };
        assert_eq!(hex(&[filter(true), filter(false)]), "00050c012a2e6f 00050c002a2e6f");
    }

    #[test]
    fn a_file_like_the_one_before_takes_few_bytes() {
        let (mut codec, mut out) = (RecordCodec::default(), Vec::new());
        let path = |number: u32| format!("photos/2026/holiday/img_{number:05}.jpg");
        for number in 0..1_000 {
            let seconds = META.mtime.seconds + i64::from(number) * 977;
            let mtime = Timestamp { seconds, nanoseconds: number * 91_331 };
            let (metadata, path) = (Metadata { mtime, ..META }, path(number));
            let path = path.as_bytes();
            codec.encode(&Record::File { object: ObjectId(number), size: 4_000, metadata, path }, &mut out);
        }
        assert!(out.len() < 22 * 1_000, "{}", out.len());
    }

    #[test]
    fn values_out_of_range_are_refused() {
        let bad: [&[u8]; 15] = [
            b"",
            b"\x00\x01\x00",                                      // left over
            b"\x01\x00\x50\x00\x00\x00a",                         // mode 0o10000
            b"\x01\x00\x00\x00\xbb\x9a\xca\x00a",                 // 10^9 nanoseconds
            b"\x01\x00\x00\xd0\x00\x00\x00\x00\x00\x00\x01\x00a", // later than the last time
            b"\x01\x01\x00\x00\x00a",                             // shares a byte with no path
            b"\x03\x00\x00\x00\x05ab",                            // path longer than the body
            b"\x05\x01\x02",                                      // reason nobody knows
            b"\x07",
            b"\x07\x01\x00",                 // half a range
            b"\x07\x01\x00\x00\x00\x00",     // ranges that touch
            b"\x07\x01\x00\x80\x01\x00\x00", // chunk 65536
            b"\x08\x20",                     // flag nobody knows
            b"\x0c\x02a",                    // flag nobody knows
            b"\x0e\x01",                     // shares a byte with no path
        ];
        for body in bad {
            assert!(RecordCodec::default().decode(body).is_err(), "{body:?}");
        }
        let mut codec = RecordCodec { path: vec![b'a'; MAX_PATH_LEN], ..RecordCodec::default() };
        let longer = [&[0x01][..], &[0x40 | (MAX_PATH_LEN >> 8) as u8, MAX_PATH_LEN as u8], b"\x00\x00\x00a"];
        assert!(codec.decode(&longer.concat()).is_err());
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
                Record::File { object: ObjectId(0), size, metadata, path: &target },
                Record::File { object: ObjectId(1), size, metadata, path: &path },
                Record::Symlink { mtime: metadata.mtime, path: &path, target: &target },
                Record::HardLink { size, mtime: metadata.mtime, path: &path, first: &target },
                Record::Hash { object, hash },
                Record::Withdrawn { object, why: Withdrawal::Changed },
                Record::End(Counts { files: size, directories: 0, symlinks: size, bytes: size }),
                Record::Parts { object, kept: ChunkRanges::written(&kept) },
                Record::Compare(ComparePlan { resumes: true, ..ComparePlan::default() }),
                Record::Holes(ChunkRanges::written(&kept)),
                Record::Total { bytes: size },
                Record::Filter { excludes: size % 2 == 0, pattern: &path },
                Record::Root { path: &path },
                Record::Keep { path: &target },
            ];
            let mut bytes = Vec::new();
            let (mut encoder, mut decoder) = (RecordCodec::default(), RecordCodec::default());
            records.iter().for_each(|record| encoder.encode(record, &mut bytes));
            let (mut framer, mut rest, mut seen) = (Framer::default(), &bytes[..], 0);
            for cut in cuts.iter().cycle() {
                let (piece, tail) = rest.split_at((*cut).min(rest.len()));
                framer.feed::<DecodeError>(piece, |body| {
                    assert_eq!(decoder.decode(body)?, records[seen]);
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
            let (mut framer, mut codec) = (Framer::default(), RecordCodec::default());
            for piece in pieces {
                let fed = framer.feed::<DecodeError>(&piece, |body| codec.decode(body).map(drop));
                prop_assert!(framer.held.len() <= 2 + MAX_BODY_LEN);
                if fed.is_err() {
                    break;
                }
            }
        }

        #[test]
        fn what_decodes_encodes_to_the_same_meaning(body in vec(any::<u8>(), 0..100)) {
            let [mut codec, mut encoder, mut again] = [(); 3].map(|()| RecordCodec::default());
            if let Ok(record) = codec.decode(&body) {
                let mut out = Vec::new();
                encoder.encode(&record, &mut out);
                prop_assert_eq!(again.decode(&out[2..]), Ok(record));
            }
        }
    }
}
