//! The destination of received data, and the summary of what was received.

use crate::error::TransferError;
use crate::hello_preamble::ConnectionPurpose;
use crate::progress::{PathCounters, TransferId};
use byway_files::{Modes, TrashName};
use std::io::Write;
use std::path::PathBuf;

/// The place for received data.
#[derive(Clone, Debug)]
pub enum Destination {
    /// A directory, which is made if it is missing.
    Directory(ReceivingDirectory),
    /// A single stream. The function opens the output, once for each attempt of the sender.
    Pipe(fn() -> Box<dyn Write + Send>),
}

/// A directory that trees are received into.
#[derive(Clone, Debug)]
pub struct ReceivingDirectory {
    /// The path of the directory.
    pub path: PathBuf,
    /// The mode bits that are set on files in the directory.
    pub modes: Modes,
    /// Whether senders may have entries moved to the trash that they no longer have.
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
    /// Whether the sender reported that it could not read some entries, which are therefore
    /// missing.
    pub is_partial: bool,
    /// The id and the sender of the transfer.
    pub origin: TransferId,
    /// Payload bytes in place.
    pub bytes: u64,
    /// Bytes that were not sent, because they were already here.
    pub kept: u64,
    /// Number of files that were not sent, because equal ones (size and time) were already here.
    pub unchanged: u64,
    /// Number of files, directories and links in place.
    pub entries: u64,
    /// Number of entries that are not in place.
    pub failed: u64,
    /// Number of entries that were moved to the trash, because the sender no longer has them.
    pub deleted: u64,
    /// Number of entries that could not be moved to the trash.
    pub undeleted: u64,
    /// The folder of the trash with the deleted entries. `None`: none was moved.
    pub trash: Option<TrashName>,
    /// Seconds from the first contact to the end.
    pub seconds: f64,
    /// The amounts of a tree whose transfer broke off. `None`: the transfer is complete.
    pub broken_off: Option<PartialTransfer>,
    /// Every path on which the data came.
    pub paths: Vec<PathCounters>,
}

/// The amounts of a tree whose transfer broke off, in payload bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartialTransfer {
    /// Bytes that are here and kept for another try.
    pub arrived: u64,
    /// Bytes that this try transferred.
    pub travelled: u64,
    /// Bytes of the whole tree. `None`: the sender did not tell.
    pub total: Option<u64>,
}
