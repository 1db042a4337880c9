//! A file on its way out.

use crate::chunks::{Hashes, Layout};
use crate::file_status::FileStatus;
use crate::missing_ranges::FileRanges;
use crate::resume::Comparison;
use byway_engine::data::RangeSet;
use rustix::fs::SeekFrom;
use std::fs::File;

/// The most ranges of holes reported for one file. Other holes are sent as zeros.
const MAX_HOLES: usize = 256;

/// A file that was announced and is not settled at the receiver.
#[derive(Debug)]
pub(super) struct Outgoing {
    /// The index of the named path below which the file was found.
    pub start: usize,
    pub path: Vec<u8>,
    pub status: FileStatus,
    /// The ranges of the file to send. `None`: the receiver has not yet said which parts it has.
    pub travels: Option<FileRanges>,
    /// The receiver's reports about the file's chunks.
    pub comparison: Comparison,
    pub hashes: Hashes,
    /// Whether the verdict on the object was given. It is a hash, or that the object is withdrawn.
    pub settled: bool,
    pub withdrawn: bool,
}

impl Outgoing {
    pub fn new(start: usize, path: Vec<u8>, status: FileStatus, holes: RangeSet) -> Self {
        let layout = Layout::new(status.size);
        Self {
            start,
            path,
            status,
            travels: None,
            comparison: Comparison::default(),
            hashes: Hashes::new(layout, holes),
            settled: false,
            withdrawn: false,
        }
    }

    /// Returns the number of bytes to send, as far as it is known.
    pub fn size(&self) -> u64 {
        self.travels.as_ref().map_or(0, FileRanges::size)
    }
}

/// The chunks of a file that store nothing, in at most as many ranges as can be reported.
pub(super) fn holes(file: Option<&File>, status: &FileStatus) -> RangeSet {
    let (layout, mut data) = (Layout::new(status.size), RangeSet::new());
    let mut holes = RangeSet::new();
    let Some(file) = file.filter(|_| layout.is_divided() && status.is_sparse) else { return holes };
    let mut at = 0;
    // Every chunk holds some data, or is one of the holes: more steps than twice their number tell
    // nothing new.
    for _ in 0..2 * layout.count() {
        let Ok(start) = rustix::fs::seek(file, SeekFrom::Data(at)) else { break };
        let Ok(end) = rustix::fs::seek(file, SeekFrom::Hole(start)) else { return holes };
        let last = layout.index(end.clamp(start + 1, status.size.max(start + 1)) - 1);
        data.insert(layout.index(start).into(), u64::from(last) + 1);
        // Nothing more is to be learnt of the chunk in which the data end.
        at = end.max(layout.range(last).1);
        if at >= status.size {
            break;
        }
    }
    if at < status.size && rustix::fs::seek(file, SeekFrom::Data(at)).is_ok() {
        return holes;
    }
    let gaps = data.gaps(0, layout.count().into()).take(MAX_HOLES);
    gaps.for_each(|(start, end)| _ = holes.insert(start, end));
    holes
}
