//! A file that an earlier try left, while it is read.

use crate::chunks::{Hash, Hashing};
use byway_wire::ObjectId;
use std::fs::File;

/// A file being read back.
#[derive(Debug)]
pub(super) struct ReadBack {
    pub object: ObjectId,
    pub prior: PriorContents,
    /// The next chunk to look at.
    pub next: u32,
    pub hashing: Option<(u32, Hashing)>,
    /// Whether all bytes of the chunk that were read are zero.
    pub zeros: bool,
    /// The index of the first chunk in `hashes`, which are those of consecutive chunks.
    pub first: u32,
    pub run: Vec<Hash>,
}

/// The contents of a file that an earlier attempt left.
#[derive(Debug)]
pub(super) enum PriorContents {
    Nothing,
    /// A partial file. `journaled`: whether its journal lists its chunks.
    Partial {
        journaled: bool,
    },
    Placed(File),
}
