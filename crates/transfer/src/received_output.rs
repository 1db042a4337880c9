//! Where a receiver puts what comes, and what came.

use crate::error::TransferError;
use crate::hello_preamble::ConnectionPurpose;
use crate::progress::{PathCounters, TransferId};
use byway_files::Modes;
use std::io::Write;
use std::path::PathBuf;

/// Where to put what is received.
#[derive(Clone, Debug)]
pub enum Destination {
    /// A directory, made if it is missing; and which bits of modes are set there.
    Directory(PathBuf, Modes),
    /// A stream, and no more than one: what opens where it is written to, once for each try of its
    /// sender.
    Pipe(fn() -> Box<dyn Write + Send>),
}

impl Destination {
    /// The kind of transfer that the destination takes.
    pub(crate) const fn kind(&self) -> ConnectionPurpose {
        match self {
            Self::Directory(..) => ConnectionPurpose::Tree,
            Self::Pipe(_) => ConnectionPurpose::Pipe,
        }
    }
}

/// How one transfer ended.
#[derive(Debug)]
pub struct ReceivedTransfer {
    /// `Ok`: complete, but for what failed.
    pub outcome: Result<(), TransferError>,
    /// Whether the sender knows that it is complete.
    pub confirmed: bool,
    /// Whether the sender says that it could not read some entries, which are missing here.
    pub is_partial: bool,
    /// Which it was, and who sent it.
    pub origin: TransferId,
    /// Payload bytes in place.
    pub bytes: u64,
    /// How many of them did not travel, since an earlier try had brought them.
    pub kept: u64,
    /// How many files, directories and links are in place.
    pub entries: u64,
    /// How many entries are not in place.
    pub failed: u64,
    /// Seconds from the first contact to the end.
    pub seconds: f64,
    /// What there is of a tree that did not come to its end.
    pub broken_off: Option<PartialTransfer>,
    /// Every path that it came over.
    pub paths: Vec<PathCounters>,
}

/// What there is of a tree that did not come to its end, in payload bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartialTransfer {
    /// Bytes that are here and kept for another try.
    pub arrived: u64,
    /// Bytes that this try brought.
    pub travelled: u64,
    /// Bytes of the whole tree, if the sender said so.
    pub total: Option<u64>,
}
