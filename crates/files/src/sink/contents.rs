//! The contents of files on their way in: written where they belong, hashed as they come, noted in
//! the journal.

use super::partial::{Key, Partials, is_early};
use crate::chunks::{Hash, Hashes, Hashing, Layout};
use crate::manifest::Metadata;
use crate::missing_ranges::FileRanges;
use byway_engine::data::RangeSet;
use byway_wire::ObjectId;
use std::io;
use std::os::unix::fs::FileExt;

/// A file that is neither in place nor failed.
#[derive(Debug)]
pub(super) struct Incoming {
    pub path: Vec<u8>,
    pub metadata: Metadata,
    pub key: Key,
    /// The sender's hash of the whole file. `None`: it has not arrived.
    pub hash: Option<Hash>,
    /// Every byte that travels is here.
    pub finished: bool,
    pub contents: Contents,
    /// The metadata that the partial file already has.
    pub metadata_state: MetadataState,
    /// The stretches of the file that travel.
    pub travels: FileRanges,
    /// The ranges of the file that are stored in the partial file. If bytes of these ranges arrive
    /// again, they are not written. Their hash may already be computed, so a different copy would
    /// go undetected.
    pub received: RangeSet,
    /// Bytes of the file from an earlier try.
    pub kept: u64,
    /// The chunks that are holes, which are not sent, and the known hashes of the others.
    pub hashes: Hashes,
}

/// The metadata that a partial file already has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MetadataState {
    /// The partial file has none of its metadata.
    Bare,
    /// The partial file has its mode.
    Mode,
    /// The partial file has all its metadata, and only needs to be moved.
    Full,
}

/// The state of a file's contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contents {
    /// The sender is to be told which chunks an earlier attempt left.
    Asked,
    /// The sender was told of these chunks, and must answer which ones it sends.
    Offered {
        /// Whether the existing chunks are in the file with the final name.
        placed: bool,
    },
    /// Bytes are to arrive, and there is no partial file yet.
    Coming,
    /// Another thread has all bytes, and makes the partial file.
    Apart,
    /// The bytes are coming into a partial file.
    Growing {
        /// Whether this try made the partial file. If so, unwritten parts are zeros.
        fresh: bool,
    },
    /// The contents are under the final name.
    Placed,
}

impl Incoming {
    pub fn new(path: Vec<u8>, size: u64, metadata: Metadata, key: Key, holes: RangeSet, asked: bool) -> Self {
        let layout = Layout::new(size);
        let travels = FileRanges::without(&layout, &RangeSet::new(), &holes);
        Self {
            path,
            metadata,
            key,
            hash: None,
            finished: travels.size() == 0 && !asked,
            contents: if asked { Contents::Asked } else { Contents::Coming },
            metadata_state: MetadataState::Bare,
            travels,
            received: RangeSet::new(),
            kept: 0,
            hashes: Hashes::new(layout, holes),
        }
    }

    /// Whether the sender's choice of the chunks to send is known.
    pub const fn is_open(&self) -> bool {
        !matches!(self.contents, Contents::Asked | Contents::Offered { .. })
    }

    /// Whether the partial file of this try exists.
    pub const fn is_created(&self) -> bool {
        matches!(self.contents, Contents::Growing { .. })
    }

    /// Whether everything is there to verify the file.
    pub fn is_ready(&self) -> bool {
        self.finished && self.hash.is_some() && self.contents != Contents::Apart
    }

    /// Makes the partial file, unless it exists.
    pub fn create(&mut self, object: ObjectId, partials: &mut Partials) -> rustix::io::Result<()> {
        if self.contents == Contents::Coming {
            let has_mode = partials.create(object, self.key, &self.hashes.layout, self.metadata.mode)?;
            self.metadata_state = if has_mode { MetadataState::Mode } else { MetadataState::Bare };
            self.contents = Contents::Growing { fresh: true };
        }
        Ok(())
    }

    /// Sets the mode and time of the partial file, unless they are set.
    pub fn dress(
        &mut self,
        object: ObjectId,
        partials: &mut Partials,
        durable: bool,
    ) -> rustix::io::Result<()> {
        if self.metadata_state != MetadataState::Full {
            partials.dress(
                object,
                self.key,
                &self.metadata,
                self.metadata_state == MetadataState::Mode,
                durable,
            )?;
            self.metadata_state = MetadataState::Full;
        }
        Ok(())
    }

    /// Whether to set the mode and time of a small file now, before its hash arrives and is
    /// checked. True only once all its bytes are written. The file is open now; later it would have
    /// to be opened again.
    pub fn is_to_be_dressed(&self) -> bool {
        let layout = &self.hashes.layout;
        self.metadata_state != MetadataState::Full
            && !layout.is_divided()
            && is_early(self.metadata.mode)
            && self.received.covers(0, layout.size)
    }

    /// Writes new bytes at `offset` of the object, and hashes the chunks that they complete.
    pub fn store(
        &mut self,
        object: ObjectId,
        offset: u64,
        bytes: &[u8],
        partials: &mut Partials,
    ) -> io::Result<()> {
        let holes = self.contents == Contents::Growing { fresh: true } && self.hashes.layout.is_divided();
        let Self { travels, received, hashes, key, .. } = self;
        let (layout, mut rest) = (hashes.layout, bytes);
        let divided = layout.is_divided();
        let mut complete: Vec<(u32, Hash)> = Vec::new();
        for (start, length) in travels.pieces(offset, bytes.len() as u64) {
            let (piece, after) = rest.split_at(usize::try_from(length).unwrap_or(usize::MAX).min(rest.len()));
            rest = after;
            let mut new = Vec::new();
            received.insert_each(start, start + length, |from, to| new.push((from, to)));
            if new.is_empty() {
                continue;
            }
            let file = partials.file(object, *key)?;
            for (from, to) in new {
                let run = piece.get((from - start) as usize..(to - start) as usize).unwrap_or_default();
                if !(holes && is_zero(run)) {
                    file.write_all_at(run, from)?;
                }
                hashes.feed(from, run, |index, hash| {
                    if divided {
                        complete.push((index, *hash));
                    }
                });
                for index in layout.index(from)..=layout.index(to - 1) {
                    let (first, past) = layout.range(index);
                    if !hashes.knows(index) && received.covers(first, past) {
                        let hash = Hashing::read(file, &layout, index)?;
                        hashes.set(index, hash);
                        complete.push((index, hash));
                    }
                }
            }
        }
        if divided && !complete.is_empty() {
            let (journal, _) = partials.journal(object, *key, layout)?;
            for (index, hash) in complete {
                journal.note(index, &hash)?;
            }
        }
        Ok(())
    }
}

/// Whether all bytes are zero, so that a hole can replace them.
pub(super) fn is_zero(bytes: &[u8]) -> bool {
    let (head, words, tail) = {
        let (words, tail) = bytes.as_chunks::<64>();
        (words.first().is_none_or(|first| *first == [0; 64]), words, tail)
    };
    head && words.iter().all(|word| *word == [0; 64]) && tail.iter().all(|byte| *byte == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_are_told_from_anything_else() {
        for length in [0, 1, 63, 64, 65, 1_000] {
            assert!(is_zero(&vec![0; length]));
            for at in 0..length {
                let mut bytes = vec![0; length];
                bytes[at] = 1;
                assert!(!is_zero(&bytes), "{at} of {length}");
            }
        }
    }
}
