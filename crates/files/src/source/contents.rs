//! The contents of files on their way out: read, hashed chunk by chunk, noted in the journals.

use super::{FileResult, NewObject, Source};
use crate::chunk_journal::Journal;
use crate::chunks::{Hash, Hashing, hole};
use crate::file_status::FileStatus;
use crate::manifest::{ChunkRanges, Record, Withdrawal};
use crate::missing_ranges::FileRanges;
use crate::not_copied::NotCopied;
use crate::receiver_report::ObjectRange;
use crate::tree_walk::{Warning, WarningKind};
use byway_engine::data::RangeSet;
use byway_wire::{DecodeError, ObjectId};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The most chunks that one call of [`Source::next_records`] reads to complete hashes.
const CATCH_UP_CHUNKS: usize = 16;

impl Source {
    /// Fills `buffer` with the object's bytes from `offset` on, which must exist, and hashes them.
    pub(super) fn fill(&mut self, object: ObjectId, offset: u64, mut buffer: &mut [u8]) -> io::Result<()> {
        let Some(outgoing) = self.objects.get(object) else { return Ok(()) };
        let (size, length) = (outgoing.size(), buffer.len() as u64);
        // What is read whole, at once, is looked at after that: once is enough.
        let whole = offset == 0 && length == outgoing.status.size;
        let pieces: Vec<(u64, u64)> =
            outgoing.travels.iter().flat_map(|travels| travels.pieces(offset, length)).collect();
        for (at, length) in pieces {
            let rest = std::mem::take(&mut buffer);
            let length = usize::try_from(length).unwrap_or(usize::MAX).min(rest.len());
            let (piece, after) = rest.split_at_mut(length);
            self.opened(object, !whole)?.read_exact_at(piece, at)?;
            self.feed(object, at, piece);
            buffer = after;
        }
        self.settle(object)?;
        if offset + length == size && self.objects.get(object).is_some_and(|outgoing| !outgoing.settled) {
            self.behind.insert(object);
        }
        Ok(())
    }

    /// The open file of an object; opened again if it was closed. `looked`: whether to check that a
    /// file opened again has not changed since its FILE record was made. If the file has changed,
    /// fails with `UnexpectedEof`.
    fn opened(&mut self, object: ObjectId, looked: bool) -> io::Result<&File> {
        if self.open.get(object).is_none() {
            let outgoing = self.objects.get(object).ok_or(io::ErrorKind::NotFound)?;
            let file = self.walk.reopen(outgoing.start, &outgoing.path)?;
            if looked && outgoing.status.differs(&FileStatus::of(&file)?) {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.open.insert(object, file);
        }
        Ok(self.open.get(object).ok_or(io::ErrorKind::NotFound)?)
    }

    /// Hashes bytes of a file that were read.
    fn feed(&mut self, object: ObjectId, at: u64, bytes: &[u8]) {
        let Some(outgoing) = self.objects.get_mut(object).filter(|outgoing| !outgoing.settled) else {
            return;
        };
        let mut complete: Vec<(u32, Hash)> = Vec::new();
        let divided = outgoing.hashes.layout.is_divided();
        outgoing.hashes.feed(at, bytes, |index, hash| {
            if divided {
                complete.push((index, *hash));
            }
        });
        self.note(object, &complete);
    }

    /// Notes hashes in the file's journal. A journal that cannot be written is done without.
    fn note(&mut self, object: ObjectId, complete: &[(u32, Hash)]) {
        let (Some(journals), Some(outgoing)) = (&mut self.journals, self.objects.get(object)) else {
            return;
        };
        let layout = outgoing.hashes.layout;
        if !layout.is_divided() || complete.is_empty() {
            return;
        }
        let journal = journals.of(object, &outgoing.path, &outgoing.status, layout);
        let note =
            |journal: Journal<'_>| complete.iter().try_for_each(|(index, hash)| journal.note(*index, hash));
        let noted = journal.and_then(note);
        if noted.is_err() {
            self.journals = None;
        }
    }

    /// Gives the hash of an object whose chunks all have known hashes, if its file is unchanged
    /// since it was announced.
    fn settle(&mut self, object: ObjectId) -> io::Result<()> {
        let Some(outgoing) = self.objects.get(object).filter(|outgoing| !outgoing.settled) else {
            return Ok(());
        };
        let Some(hash) = outgoing.hashes.root() else { return Ok(()) };
        self.check_unchanged(object)?;
        self.give_hash(object, hash);
        Ok(())
    }

    /// Checks that an object's file has not changed since it was announced, and closes the file.
    /// Fails with `UnexpectedEof` if the file has changed. Called when the last chunk is hashed.
    fn check_unchanged(&mut self, object: ObjectId) -> io::Result<()> {
        let file = self.opened(object, true)?;
        let status = FileStatus::of(file)?;
        let mut found = NotCopied::default();
        found.note_attributes(file);
        self.walk.not_copied.add_attributes(found);
        if self.objects.get(object).is_none_or(|outgoing| outgoing.status.differs(&status)) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.open.remove(object);
        if let Some(journals) = &mut self.journals {
            journals.close(object);
        }
        Ok(())
    }

    fn give_hash(&mut self, object: ObjectId, hash: Hash) {
        self.behind.remove(&object);
        if let Some(outgoing) = self.objects.get_mut(object) {
            outgoing.settled = true;
            outgoing.hashes.retain(|_| false);
            self.unsettled = self.unsettled.saturating_sub(1);
            self.settled.push_back((object, FileResult::Hash(hash)));
        }
    }

    /// Hashes chunks that were left out because reads came in another order: a few chunks per call.
    pub(super) fn catch_up(&mut self) {
        for _ in 0..CATCH_UP_CHUNKS {
            let Some(object) = self.behind.first().copied() else { return };
            self.catch_up_on(object);
        }
    }

    fn catch_up_on(&mut self, object: ObjectId) {
        let unknown = self.objects.get_mut(object).and_then(|outgoing| outgoing.hashes.first_unknown());
        let caught = match unknown {
            Some(index) => self.hash_chunk(object, index).map(|hash| {
                if let Some(outgoing) = self.objects.get_mut(object) {
                    outgoing.hashes.set(index, hash);
                }
                self.note(object, &[(index, hash)]);
            }),
            None => Ok(()),
        };
        if let Err(error) = caught.and_then(|()| self.settle(object)) {
            self.withdraw(object, error);
        }
    }

    /// Reads a chunk and returns its hash. A hole has a fixed hash and is not read. If somebody
    /// writes data into the hole, the file gets a new modification time, which `check_unchanged`
    /// notices.
    fn hash_chunk(&mut self, object: ObjectId, index: u32) -> io::Result<Hash> {
        let outgoing = self.objects.get(object).ok_or(io::ErrorKind::NotFound)?;
        if outgoing.hashes.is_hole(index) {
            return Ok(hole());
        }
        let layout = outgoing.hashes.layout;
        Hashing::read(self.opened(object, true)?, &layout, index)
    }

    /// The hash of a chunk: from the journal if that can be believed, else from the file.
    fn own_hash(&mut self, object: ObjectId, index: u32) -> io::Result<Hash> {
        let outgoing = self.objects.get(object).ok_or(io::ErrorKind::NotFound)?;
        let layout = outgoing.hashes.layout;
        if outgoing.hashes.is_hole(index) {
            return Ok(hole());
        }
        if let Some(journals) = self.journals.as_mut().filter(|_| layout.is_divided())
            && let Ok(Some(journal)) = journals.believed(object, &outgoing.path, &outgoing.status, layout)
            && let Ok(Some(hash)) = journal.read(index)
        {
            return Ok(hash);
        }
        let hash = self.hash_chunk(object, index)?;
        self.note(object, &[(index, hash)]);
        Ok(hash)
    }

    /// Takes in a HAVE record: `hashes` of the receiver's chunks, from the chunk `first` on. Chunks
    /// with equal hashes are not sent.
    ///
    /// # Errors
    /// HAVE was not expected for this object, or names chunks that the file does not have.
    pub fn have(
        &mut self,
        object: ObjectId,
        first: u32,
        hashes: &[[u8; 32]],
        placed: bool,
        last: bool,
    ) -> Result<(), DecodeError> {
        // One that was withdrawn or released meanwhile.
        let Some(outgoing) = self.objects.get_mut(object).filter(|it| !it.withdrawn) else { return Ok(()) };
        if outgoing.travels.is_some() {
            return Err(DecodeError::Range("chunk"));
        }
        outgoing.comparison.take(&outgoing.hashes.layout, first, hashes.len())?;
        for (index, theirs) in (first..).zip(hashes) {
            match self.own_hash(object, index) {
                Ok(own) if own == *theirs => {
                    if let Some(outgoing) = self.objects.get_mut(object) {
                        outgoing.comparison.equal(index);
                        if !outgoing.hashes.is_hole(index) {
                            outgoing.hashes.set(index, own);
                        }
                    }
                }
                Ok(_) => {}
                Err(error) => {
                    self.withdraw(object, error);
                    return Ok(());
                }
            }
        }
        if last && let Err(error) = self.divide(object, placed) {
            self.withdraw(object, error);
        }
        Ok(())
    }

    /// Tells the receiver which chunks it keeps (PARTS), and starts to send the others.
    fn divide(&mut self, object: ObjectId, placed: bool) -> io::Result<()> {
        let Some(outgoing) = self.objects.get_mut(object) else { return Ok(()) };
        let layout = outgoing.hashes.layout;
        let (bytes, kept) = std::mem::take(&mut outgoing.comparison).decide(&layout, placed);
        outgoing.hashes.retain(|index| kept.covers(index.into(), u64::from(index) + 1));
        let bytes_of = |(first, past)| {
            let (start, end) = layout.bytes(first, past);
            end - start
        };
        self.kept += kept.iter().map(bytes_of).sum::<u64>();
        let travels = FileRanges::without(&layout, &kept, &outgoing.hashes.holes);
        let size = travels.size();
        self.skipped += layout.size - size;
        outgoing.travels = Some(travels);
        let parts = Record::Parts { object, kept: ChunkRanges::written(&bytes) };
        self.codec.encode(&parts, &mut self.out);
        self.divided.push_back(NewObject { id: object, size });
        if size == 0 {
            self.behind.insert(object);
        }
        self.settle(object)
    }

    /// Handles a SAME report: the receiver has these files, and no data of them are sent.
    ///
    /// # Errors
    /// The receiver was asked about another object, or has answered before.
    pub fn same(&mut self, objects: ObjectRange) -> Result<(), DecodeError> {
        for object in self.answered(objects)?.objects() {
            // One that was withdrawn meanwhile is in place, too: the receiver ignores the rest.
            let Some(outgoing) = self.objects.remove(object) else { continue };
            if outgoing.travels.is_some() {
                return Err(DecodeError::Range("object"));
            }
            self.open.remove(object);
            self.unsettled = self.unsettled.saturating_sub(usize::from(!outgoing.settled));
            self.unchanged += 1;
            self.kept += outgoing.status.size;
            self.skipped += outgoing.status.size;
        }
        Ok(())
    }

    /// Handles a WANTED report: these files are to be sent whole.
    ///
    /// # Errors
    /// The receiver was asked about another object, or has answered before.
    pub fn wanted(&mut self, objects: ObjectRange) -> Result<(), DecodeError> {
        for object in self.answered(objects)?.objects() {
            let Some(outgoing) = self.objects.get_mut(object).filter(|it| !it.withdrawn) else { continue };
            if outgoing.travels.is_some() {
                return Err(DecodeError::Range("object"));
            }
            let travels =
                FileRanges::without(&outgoing.hashes.layout, &RangeSet::new(), &outgoing.hashes.holes);
            let (size, whole) = (travels.size(), outgoing.status.size);
            outgoing.travels = Some(travels);
            self.skipped += whole - size;
            self.divided.push_back(NewObject { id: object, size });
            if whole == 0 {
                self.give_hash(object, *blake3::hash(&[]).as_bytes());
            } else if size == 0 {
                self.behind.insert(object);
            }
        }
        Ok(())
    }

    /// Returns the objects, if all of them were announced, and follow the objects answered before.
    fn answered(&mut self, objects: ObjectRange) -> Result<ObjectRange, DecodeError> {
        let past = objects.first.0.saturating_add(objects.count);
        if objects.first.0 < self.next_answer || past > self.next_object {
            return Err(DecodeError::Range("object"));
        }
        self.next_answer = past;
        Ok(objects)
    }

    pub(super) fn withdraw(&mut self, object: ObjectId, error: io::Error) {
        let Some(outgoing) = self.objects.get_mut(object) else { return };
        if outgoing.withdrawn {
            return;
        }
        outgoing.withdrawn = true;
        outgoing.hashes.retain(|_| false);
        let path = crate::tree_walk::to_path(outgoing.path.clone());
        // A file that is gone, or of another size, changed; only what the system refuses to read is
        // unreadable.
        let changed = matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::NotFound);
        let (why, kind) = if changed {
            (Withdrawal::Changed, WarningKind::Changed)
        } else {
            (Withdrawal::Unreadable, WarningKind::Unreadable(error.to_string()))
        };
        let was_settled = std::mem::replace(&mut outgoing.settled, true);
        self.open.remove(object);
        self.behind.remove(&object);
        if !was_settled {
            self.unsettled = self.unsettled.saturating_sub(1);
            self.settled.push_back((object, FileResult::Withdrawn(why)));
        }
        self.warn(Warning { path, kind });
    }
}
