//! The receiver's reports to the sender: records in an ordered stream, each with a length and a
//! body as in [`crate::manifest`]. Where the sender compares, the receiver answers each FILE record
//! with SAME, WANTED or FAILED, or with HAVE records. They list the file's chunks on its disk, in
//! ascending order.
//!
//! | type | report | fields |
//! |---|---|---|
//! | 00 | VERIFIED | object |
//! | 01 | FAILED | object, reason (1), detail (UTF-8) |
//! | 02 | REFUSED | reason (1), path length, path, detail (UTF-8): a directory or link that could not be made |
//! | 03 | DONE | files, bytes, failed; last, once |
//! | 04 | HAVE | object, flags (1), first chunk on the receiver's disk, BLAKE3 hashes of it and those that follow (32 each) |
//! | 05 | LIMIT | bytes per second that the receiver wants at most from now on; 0: no limit |
//! | 06 | SAME | first object, number of objects - 1: these files are here, with the same size and time |
//! | 07 | WANTED | first object, number of objects - 1: these files are to be sent whole |
//! | 08 | TRASHED | entries that were moved to the trash, its folder: seconds since 1970, number; at most once |
//! | 09 | LOOKED | what (1), amount, path: to a sender that asks what a transfer would do |
//!
//! | what of LOOKED | meaning | amount |
//! |---|---|---|
//! | 0 | a file or link is new | bytes |
//! | 1 | it replaces another one | bytes |
//! | 2 | the receiver's is newer, and kept | bytes |
//! | 3 | the contents have to be compared | bytes |
//! | 4 | it would be moved to the trash, with all that it holds | entries |
//!
//! | flag of HAVE | meaning |
//! |---|---|
//! | 1 | the last HAVE of the file |
//! | 2 | the chunks are in a file that already has its final name |

use crate::chunks;
use crate::manifest::{Framer, append, read_object, read_path};
use crate::name::{MAX_PATH_LEN, Printable};
use crate::trash::TrashName;
use byway_wire::codec::VARINT_MAX;
use byway_wire::{DecodeError, ObjectId, Reader, Writer, frame};
use std::fmt;

// Types of reports.
const VERIFIED_REPORT: u8 = 0x00;
const FAILED_REPORT: u8 = 0x01;
const REFUSED_REPORT: u8 = 0x02;
const DONE_REPORT: u8 = 0x03;
const HAVE_REPORT: u8 = 0x04;
const LIMIT_REPORT: u8 = 0x05;
const SAME_REPORT: u8 = 0x06;
const WANTED_REPORT: u8 = 0x07;
const TRASHED_REPORT: u8 = 0x08;
const LOOKED_REPORT: u8 = 0x09;
// Flags of HAVE.
const HAVE_LAST_FLAG: u8 = 0x01;
const HAVE_PLACED_FLAG: u8 = 0x02;
/// The most hashes in one HAVE record.
pub(crate) const MAX_HAVE_HASHES: usize = 240;
/// The longest detail, in bytes.
pub const MAX_DETAIL_LEN: usize = 512;

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $text:literal;)*) => {
        /// Why an entry of the tree did not arrive.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Reason { $($(#[$doc])* $name,)* }

        impl Reason {
            /// All reasons, in the order of their codes.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The number of the reason in a report.
            #[must_use]
            pub const fn code(self) -> u8 {
                match self { $(Self::$name => $code,)* }
            }

            fn from_code(code: u8) -> Result<Self, DecodeError> {
                match code { $($code => Ok(Self::$name),)* _ => Err(DecodeError::Range("reason")) }
            }
        }

        impl fmt::Display for Reason {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$name => $text,)* })
            }
        }
    };
}

reasons! {
    /// The contents do not have the sender's hash.
    Integrity = 1, "the contents do not match the sender's hash: send it again";
    /// The receiver has a directory at the path.
    IsDirectory = 2, "a directory has this name at the receiver: move it away and send again";
    /// A component of the path exists at the receiver, and is no directory.
    NotADirectory = 3, "part of the path is not a directory at the receiver: move it away and send again";
    /// A component of the path is a symbolic link.
    Link = 4, "part of the path is a symbolic link at the receiver, and those are not followed: receive into its target";
    /// The receiver may not write a file with this name.
    Name = 5, "the name cannot be written at the receiver: rename it";
    /// The sender withdrew the file.
    Withdrawn = 6, "the file changed or could not be read at the sender: send it again when it is at rest";
    /// The receiver has no permission to write to the directory.
    Denied = 7, "the receiver may not write there: change the permissions of the directory";
    /// The file is larger than the receiver's file system allows.
    TooLarge = 8, "the file is too large for the receiver's file system: receive elsewhere";
    /// Two files with one name at the same time, or bytes past the end of an object.
    Protocol = 9, "the sender broke the rules of the manifest: compare the versions of byway on both sides";
    /// Part of the path lies on another file system, so a file cannot be moved into place.
    OtherFileSystem = 10, "part of the path is another file system at the receiver: receive directly into that one";
    /// Another reason, which is in the detail.
    Other = 11, "the receiver could not write it";
    /// The receiver's file was modified later than the sender's.
    Newer = 12, "the receiver has a newer file, which is kept: --replace-newer replaces it";
    /// An entry that the sender no longer has cannot be moved to the trash.
    NotDeleted = 13, "the sender does not have it, and it cannot be moved to the receiver's trash: remove it there";
    /// An entry that the sender no longer has was changed at the receiver after the transfer began.
    ChangedMeanwhile = 14, "the sender does not have it, and it was changed at the receiver meanwhile, so it stays";
    /// The receiver deletes nothing.
    DeletesNothing = 15, "the receiver runs with --no-delete: what the sender no longer has stays there";
    /// The sender's tree did not arrive completely, so entries that seem to be gone may not be.
    Incomplete = 16, "nothing is deleted at the receiver, because not all of the tree arrived: send it again";
}

impl Reason {
    /// Whether something stays that was to be deleted. Else something did not arrive.
    #[must_use]
    pub const fn is_of_deletion(self) -> bool {
        matches!(self, Self::Incomplete | Self::NotDeleted | Self::ChangedMeanwhile | Self::DeletesNothing)
    }
}

/// The effect that a transfer would have on an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LookedAt {
    /// The receiver does not have the entry.
    New,
    /// The entry would replace the receiver's.
    Replaced,
    /// The receiver's is newer, and kept.
    Newer,
    /// The contents of both files would be compared, and the differences sent.
    Compared,
    /// The receiver's entry would be moved to the trash, with all that it holds.
    Deleted,
}

impl LookedAt {
    /// All effects, in the order of their codes.
    pub const ALL: [Self; 5] = [Self::New, Self::Replaced, Self::Newer, Self::Compared, Self::Deleted];
}

/// A report of the receiver to the sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// The object is verified, and in its final place.
    Verified {
        /// The number of the object.
        object: ObjectId,
    },
    /// The object is not in place and will not be.
    Failed {
        /// The number of the object.
        object: ObjectId,
        /// Why the file failed.
        reason: Reason,
        /// More, for a person; may be empty. Safe to print.
        detail: String,
    },
    /// A directory or symbolic link is not in place, or an entry is not deleted.
    Refused {
        /// The path of the entry in the manifest.
        path: Vec<u8>,
        /// Why the entry is not in place.
        reason: Reason,
        /// More, for a person; may be empty. Safe to print.
        detail: String,
    },
    /// The receiver is through: every object was reported, times and modes are set.
    Done {
        /// Number of files in place.
        files: u64,
        /// Bytes of the files in place.
        bytes: u64,
        /// Entries that failed or were refused.
        failed: u64,
    },
    /// The chunks of a file that the receiver has from an earlier try.
    Have {
        /// The number of the object.
        object: ObjectId,
        /// The chunk that the first hash is of.
        first: u32,
        /// The hashes of consecutive chunks. May be empty.
        hashes: Vec<[u8; 32]>,
        /// Whether the file already has its final name.
        placed: bool,
        /// Whether this is the last HAVE record of the object.
        last: bool,
    },
    /// Files that the receiver has, so that no data of them are sent.
    Same(ObjectRange),
    /// Files that are to be sent whole.
    Wanted(ObjectRange),
    /// Entries that the sender no longer has were moved to the trash.
    Trashed {
        /// Number of files, directories and links.
        entries: u64,
        /// The folder of the trash.
        folder: TrashName,
    },
    /// The effect that a transfer would have on an entry. Entries that would not change are not
    /// reported.
    Looked {
        /// The effect on the entry.
        what: LookedAt,
        /// Bytes of a file, or the number of entries that would go.
        amount: u64,
        /// The path of the entry.
        path: Vec<u8>,
    },
    /// The receiver limits the rate from now on. Flow control holds the sender to it as well.
    Limit {
        /// The limit in bytes per second. 0: no limit.
        bytes_per_second: u64,
    },
}

/// Objects with consecutive numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectRange {
    /// The first object.
    pub first: ObjectId,
    /// Number of objects, at least 1.
    pub count: u32,
}

impl ObjectRange {
    /// One object.
    #[must_use]
    pub const fn one(object: ObjectId) -> Self {
        Self { first: object, count: 1 }
    }

    /// Adds `object`, if it follows the last one. Returns whether it does.
    pub const fn extend(&mut self, object: ObjectId) -> bool {
        let follows = self.first.0 + self.count == object.0;
        self.count += follows as u32;
        follows
    }

    /// The objects.
    pub fn objects(self) -> impl Iterator<Item = ObjectId> {
        (self.first.0..self.first.0 + self.count).map(ObjectId)
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (first, more) = (read_object(reader)?, reader.varint_u32("number of objects")?);
        if u64::from(first.0) + u64::from(more) > frame::MAX_OBJECT_ID.into() {
            return Err(DecodeError::Range("number of objects"));
        }
        Ok(Self { first, count: more + 1 })
    }

    fn write(self, writer: &mut Writer<'_>) {
        writer.varint(self.first.0.into());
        writer.varint(u64::from(self.count.saturating_sub(1)));
    }
}

impl Report {
    /// Appends the report. A detail over [`MAX_DETAIL_LEN`] is cut, a path never is: manifests
    /// bound it.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Verified { object } => append(out, 0, |writer| {
                writer.u8(VERIFIED_REPORT);
                writer.varint(object.0.into());
            }),
            Self::Failed { object, reason, detail } => {
                let detail = cut(detail);
                append(out, detail.len(), |writer| {
                    writer.u8(FAILED_REPORT);
                    writer.varint(object.0.into());
                    writer.u8(reason.code());
                    writer.bytes(detail.as_bytes());
                });
            }
            Self::Refused { path, reason, detail } => {
                let detail = cut(detail);
                let path = path.get(..MAX_PATH_LEN).unwrap_or(path);
                append(out, path.len() + detail.len(), |writer| {
                    writer.u8(REFUSED_REPORT);
                    writer.u8(reason.code());
                    writer.varint(path.len() as u64);
                    writer.bytes(path);
                    writer.bytes(detail.as_bytes());
                });
            }
            Self::Done { files, bytes, failed } => append(out, 0, |writer| {
                writer.u8(DONE_REPORT);
                for count in [*files, *bytes, *failed] {
                    writer.varint(count);
                }
            }),
            Self::Have { object, first, hashes, placed, last } => {
                append(out, hashes.len() * 32, |writer| {
                    writer.u8(HAVE_REPORT);
                    writer.varint(object.0.into());
                    writer
                        .u8(if *last { HAVE_LAST_FLAG } else { 0 }
                            | if *placed { HAVE_PLACED_FLAG } else { 0 });
                    writer.varint((*first).into());
                    hashes.iter().for_each(|hash| writer.bytes(hash));
                });
            }
            Self::Same(objects) => append(out, 0, |writer| {
                writer.u8(SAME_REPORT);
                objects.write(writer);
            }),
            Self::Wanted(objects) => append(out, 0, |writer| {
                writer.u8(WANTED_REPORT);
                objects.write(writer);
            }),
            Self::Trashed { entries, folder } => append(out, 0, |writer| {
                writer.u8(TRASHED_REPORT);
                writer.varint(*entries);
                writer.varint(folder.seconds.min(VARINT_MAX));
                writer.varint(folder.number.into());
            }),
            Self::Looked { what, amount, path } => append(out, path.len(), |writer| {
                writer.u8(LOOKED_REPORT);
                writer.u8(*what as u8);
                writer.varint((*amount).min(VARINT_MAX));
                writer.bytes(path);
            }),
            Self::Limit { bytes_per_second } => append(out, 0, |writer| {
                writer.u8(LIMIT_REPORT);
                writer.varint((*bytes_per_second).min(VARINT_MAX));
            }),
        }
    }

    fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(body);
        let report = match reader.u8()? {
            VERIFIED_REPORT => Self::Verified { object: read_object(&mut reader)? },
            FAILED_REPORT => Self::Failed {
                object: read_object(&mut reader)?,
                reason: Reason::from_code(reader.u8()?)?,
                detail: read_detail(reader.take_rest())?,
            },
            REFUSED_REPORT => {
                let reason = Reason::from_code(reader.u8()?)?;
                let length =
                    usize::try_from(reader.varint()?).map_err(|_| DecodeError::Range("path length"))?;
                let path = read_path(reader.bytes(length)?)?.to_vec();
                Self::Refused { path, reason, detail: read_detail(reader.take_rest())? }
            }
            DONE_REPORT => {
                Self::Done { files: reader.varint()?, bytes: reader.varint()?, failed: reader.varint()? }
            }
            HAVE_REPORT => {
                let (object, flags) = (read_object(&mut reader)?, reader.u8()?);
                let first = reader.varint_u32("chunk")?;
                let mut hashes = Vec::new();
                while !reader.is_empty() {
                    hashes.push(reader.array()?);
                }
                if flags > HAVE_LAST_FLAG | HAVE_PLACED_FLAG
                    || u64::from(first) + hashes.len() as u64 > chunks::MAX_CHUNKS
                {
                    return Err(DecodeError::Range("chunk"));
                }
                let (placed, last) = (flags & HAVE_PLACED_FLAG != 0, flags & HAVE_LAST_FLAG != 0);
                Self::Have { object, first, hashes, placed, last }
            }
            SAME_REPORT => Self::Same(ObjectRange::read(&mut reader)?),
            WANTED_REPORT => Self::Wanted(ObjectRange::read(&mut reader)?),
            TRASHED_REPORT => Self::Trashed {
                entries: reader.varint()?,
                folder: TrashName {
                    seconds: reader.varint()?,
                    number: u16::try_from(reader.varint()?).map_err(|_| DecodeError::Range("number"))?,
                },
            },
            LOOKED_REPORT => Self::Looked {
                what: *LookedAt::ALL.get(usize::from(reader.u8()?)).ok_or(DecodeError::Range("what"))?,
                amount: reader.varint()?,
                path: read_path(reader.take_rest())?.to_vec(),
            },
            LIMIT_REPORT => Self::Limit { bytes_per_second: reader.varint()? },
            unknown => return Err(DecodeError::UnknownType(unknown)),
        };
        if reader.is_empty() { Ok(report) } else { Err(DecodeError::Range("record length")) }
    }
}

fn cut(text: &str) -> &str {
    let end = (0..=MAX_DETAIL_LEN.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    end.and_then(|end| text.get(..end)).unwrap_or_default()
}

fn read_detail(bytes: &[u8]) -> Result<String, DecodeError> {
    if bytes.len() > MAX_DETAIL_LEN {
        Err(DecodeError::Range("detail"))
    } else {
        Ok(Printable(bytes).to_string())
    }
}

/// The sender's end of the stream of reports.
#[derive(Debug, Default)]
pub struct Reports {
    framer: Framer,
    error: Option<DecodeError>,
}

impl Reports {
    /// At the start of a stream.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads `bytes`, the next bytes of the stream. Returns the reports that they complete.
    ///
    /// # Errors
    /// The bytes are no reports. All later calls fail with the same error.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Vec<Report>, DecodeError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let mut reports = Vec::new();
        let fed = self.framer.feed(bytes, |body| {
            reports.push(Report::decode(body)?);
            Ok(())
        });
        self.error = fed.err();
        self.error.map_or(Ok(reports), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn examples() -> Vec<Report> {
        vec![
            Report::Verified { object: ObjectId(3) },
            Report::Failed { object: ObjectId(64), reason: Reason::Integrity, detail: "no".into() },
            Report::Refused { path: b"a/\xff".to_vec(), reason: Reason::Link, detail: String::new() },
            Report::Done { files: 1, bytes: 16_384, failed: 2 },
            Report::Have { object: ObjectId(1), first: 70, hashes: vec![[9; 32]], placed: false, last: true },
            Report::Limit { bytes_per_second: 9 },
            Report::Same(ObjectRange { first: ObjectId(70), count: 20_000 }),
            Report::Wanted(ObjectRange::one(ObjectId(frame::MAX_OBJECT_ID))),
            Report::Trashed { entries: 64, folder: TrashName { seconds: 1, number: 2 } },
            Report::Looked { what: LookedAt::Deleted, amount: 1, path: b"a/b".to_vec() },
        ]
    }

    #[test]
    fn the_format_is_frozen() {
        let mut bytes = Vec::new();
        examples().iter().for_each(|report| report.encode(&mut bytes));
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let have = format!("0025 04 01 01 4046 {}", "09".repeat(32));
        let all = format!(
            "00020003 0006014040016e6f 000602040361 2fff 00070301 8000400002 {have} 00020509 0007 06 4046 80004e1f 0006 07 bfffffff 00 0005 08 4040 01 02 0006 09 04 01 612f62"
        );
        assert_eq!(hex, all.replace(' ', ""));
        let codes: Vec<u8> = Reason::ALL.iter().map(|reason| reason.code()).collect();
        assert_eq!(codes, (1..=16).collect::<Vec<u8>>());
    }

    #[test]
    fn details_are_cut_at_a_character_and_cannot_drive_a_terminal() {
        let detail = "\u{1b}[2J".to_owned() + &"é".repeat(400);
        let mut bytes = Vec::new();
        Report::Failed { object: ObjectId(0), reason: Reason::Other, detail }.encode(&mut bytes);
        let reports = Reports::new().feed(&bytes).unwrap();
        let Report::Failed { detail, .. } = &reports[0] else { panic!("{reports:?}") };
        assert!(detail.starts_with("\\u{1b}[2Jé") && detail.ends_with('é'), "{detail}");
    }

    #[test]
    fn a_failed_stream_stays_failed() {
        let mut reports = Reports::new();
        assert_eq!(reports.feed(&[0, 1, 99]), Err(DecodeError::UnknownType(99)));
        assert_eq!(reports.feed(&[0, 2, 0, 3]), Err(DecodeError::UnknownType(99)));
    }

    proptest! {
        #[test]
        fn reports_survive_any_cut(cut in 1..40usize) {
            let mut bytes = Vec::new();
            examples().iter().for_each(|report| report.encode(&mut bytes));
            let mut reports = Reports::new();
            let got: Vec<Report> =
                bytes.chunks(cut).flat_map(|piece| reports.feed(piece).unwrap()).collect();
            prop_assert_eq!(got, examples());
        }

        #[test]
        fn garbage_never_panics(bytes in vec(any::<u8>(), 0..300)) {
            let mut reports = Reports::new();
            let first = reports.feed(&bytes);
            if let Err(error) = first {
                prop_assert_eq!(reports.feed(&[]), Err(error));
            }
        }
    }
}
