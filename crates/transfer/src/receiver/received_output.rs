//! Where a receiver puts what comes, and what came.

use crate::error::TransferError;
use crate::hello_preamble::ConnectionPurpose;
use crate::progress::{PathCounters, TransferId};
use byway_files::{Modes, TrashName};
use std::io::Write;
use std::path::PathBuf;

/// Where received data are written.
#[derive(Clone, Debug)]
pub enum Destination {
    /// A directory, made if it is missing.
    Directory(ReceivingDirectory),
    /// A stream, and no more than one: what opens where it is written to, once for each try of its
    /// sender.
    Pipe(fn() -> Box<dyn Write + Send>),
}

/// A directory that trees are received into.
#[derive(Clone, Debug)]
pub struct ReceivingDirectory {
    /// Where it is.
    pub path: PathBuf,
    /// Which bits of modes are set there.
    pub modes: Modes,
    /// Whether senders may have moved to its trash what they no longer have.
    pub deletes: bool,
}

impl Destination {
    /// The kind of transfer that the destination takes.
    pub(crate) const fn kind(&self) -> ConnectionPurpose {
        match self {
            Self::Directory(_) => ConnectionPurpose::Tree,
            Self::Pipe(_) => ConnectionPurpose::Pipe,
        }
    }
}

/// The result of one transfer at a receiver.
#[derive(Debug)]
pub struct ReceivedTransfer {
    /// Whether the transfer is complete. Files that failed are counted separately.
    pub outcome: Result<(), TransferError>,
    /// Whether the sender knows that the transfer is complete.
    pub confirmed: bool,
    /// Whether the sender reported that it could not read some entries, which are missing here.
    pub is_partial: bool,
    /// Which transfer it was, and its sender.
    pub origin: TransferId,
    /// Payload bytes in place.
    pub bytes: u64,
    /// Bytes that were not transferred, because they were here.
    pub kept: u64,
    /// How many files were not transferred, because they were here with the same size and time.
    pub unchanged: u64,
    /// How many files, directories and links are in place.
    pub entries: u64,
    /// How many entries are not in place.
    pub failed: u64,
    /// How many entries were moved to the trash, because the sender no longer has them.
    pub deleted: u64,
    /// How many entries should have been moved there and were not.
    pub undeleted: u64,
    /// Where in the trash they are. `None`: none was moved.
    pub trash: Option<TrashName>,
    /// Seconds from the first contact to the end.
    pub seconds: f64,
    /// What has arrived of a tree whose transfer broke off. `None`: the transfer is complete.
    pub broken_off: Option<PartialTransfer>,
    /// Every path on which the data came.
    pub paths: Vec<PathCounters>,
}

/// What has arrived of a tree whose transfer broke off, in payload bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartialTransfer {
    /// Bytes that are here and kept for another try.
    pub arrived: u64,
    /// Bytes that this try transferred.
    pub travelled: u64,
    /// Bytes of the whole tree. `None`: the sender did not tell.
    pub total: Option<u64>,
}
