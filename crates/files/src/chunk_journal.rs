//! A journal: a file with the hashes of the chunks of another file, in one version of that file.
//!
//! ```text
//! magic (16), identity (32), size of the file (8), seconds (8) and nanoseconds (8) of its making, zeros to 128
//! per chunk: its hash (32), or zeros while it is not known
//! ```
//!
//! A wrong hash only causes extra work, so nothing is `fsync`ed. A damaged or outdated journal is
//! emptied.

use crate::chunks::{Hash, Layout};
use crate::manifest::Timestamp;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};

const JOURNAL_MAGIC: &[u8; 16] = b"byway-journal-1\n";
const HEADER_LEN: usize = 128;
const SLOT_LEN: u64 = 32;

/// The journal of one file: the known hashes of its chunks.
#[derive(Debug)]
pub(crate) struct Journal<'a> {
    file: &'a File,
    layout: Layout,
}

impl<'a> Journal<'a> {
    /// Opens the journal of the version `identity` of a file. Other contents of `file` are
    /// discarded. Also returns whether the journal existed.
    pub fn open(file: &'a File, identity: &[u8; 32], layout: Layout) -> io::Result<(Self, bool)> {
        let journal = Self { file, layout };
        let is_one = journal.made(identity)?.is_some();
        if !is_one {
            file.set_len(0)?;
            let metadata = file.metadata()?;
            let mut header = Vec::with_capacity(HEADER_LEN);
            header.extend(JOURNAL_MAGIC);
            header.extend(identity);
            header.extend(layout.size.to_be_bytes());
            header.extend(metadata.mtime().to_be_bytes());
            header.extend(metadata.mtime_nsec().to_be_bytes());
            header.resize(HEADER_LEN, 0);
            file.write_all_at(&header, 0)?;
        }
        Ok((journal, is_one))
    }

    /// A journal that was opened before.
    pub const fn known(file: &'a File, layout: Layout) -> Self {
        Self { file, layout }
    }

    /// Returns when the journal was made, by the clock of its file system. `None`: it belongs to
    /// another version of the file.
    pub fn made(&self, identity: &[u8; 32]) -> io::Result<Option<Timestamp>> {
        let metadata = self.file.metadata()?;
        let longest = HEADER_LEN as u64 + SLOT_LEN * u64::from(self.layout.count());
        if !metadata.is_file() || metadata.nlink() > 1 || metadata.len() > longest {
            return Ok(None);
        }
        let mut header = [0; HEADER_LEN];
        match self.file.read_exact_at(&mut header, 0) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        }
        let fields = [&JOURNAL_MAGIC[..], identity, &self.layout.size.to_be_bytes()].concat();
        let Some(times) = header.strip_prefix(fields.as_slice()) else { return Ok(None) };
        if times.iter().skip(16).any(|byte| *byte != 0) {
            return Ok(None);
        }
        let Some((seconds, nanoseconds)) = times.split_first_chunk::<8>() else { return Ok(None) };
        let nanoseconds = nanoseconds.first_chunk().map_or(0, |bytes| i64::from_be_bytes(*bytes));
        Ok(Some(Timestamp {
            seconds: i64::from_be_bytes(*seconds),
            nanoseconds: u32::try_from(nanoseconds).unwrap_or(0),
        }))
    }

    /// Notes the hash of a chunk.
    pub fn note(&self, index: u32, hash: &Hash) -> io::Result<()> {
        self.file.write_all_at(hash, HEADER_LEN as u64 + SLOT_LEN * u64::from(index))
    }

    /// Returns the stored hash of a chunk. `None`: the hash is not stored.
    pub fn read(&self, index: u32) -> io::Result<Option<Hash>> {
        let mut hash = [0; 32];
        match self.file.read_exact_at(&mut hash, HEADER_LEN as u64 + SLOT_LEN * u64::from(index)) {
            Ok(()) => Ok(Some(hash).filter(|hash| *hash != [0; 32])),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunks::MIN_CHUNK_LEN;
    use proptest::prelude::*;

    const LAYOUT: fn() -> Layout = || Layout::new(3 * MIN_CHUNK_LEN);

    fn file() -> File {
        // With a name: a journal has one link.
        let directory = tempfile::tempdir().unwrap();
        let mut options = File::options();
        let file = options.read(true).write(true).create_new(true).open(directory.path().join("j")).unwrap();
        std::mem::forget(directory.keep());
        file
    }

    #[test]
    fn what_was_noted_is_found_again_and_what_was_not_is_not() {
        let file = file();
        let (journal, was) = Journal::open(&file, &[1; 32], LAYOUT()).unwrap();
        assert!(!was);
        journal.note(1, &[7; 32]).unwrap();
        let (journal, was) = Journal::open(&file, &[1; 32], LAYOUT()).unwrap();
        assert!(was);
        let read: Vec<_> = (0..4).map(|index| journal.read(index).unwrap()).collect();
        assert_eq!(read, [None, Some([7; 32]), None, None]);
        let made = journal.made(&[1; 32]).unwrap().unwrap();
        assert!((made.seconds - file.metadata().unwrap().mtime()).abs() < 60);
    }

    #[test]
    fn another_files_journal_is_begun_anew() {
        let file = file();
        let note = |identity, size| {
            let (journal, was) = Journal::open(&file, &[identity; 32], Layout::new(size)).unwrap();
            let held = journal.read(0).unwrap().is_some();
            journal.note(0, &[7; 32]).unwrap();
            (was, held)
        };
        assert_eq!(note(1, 3 * MIN_CHUNK_LEN), (false, false));
        assert_eq!(note(1, 3 * MIN_CHUNK_LEN), (true, true));
        assert_eq!(note(2, 3 * MIN_CHUNK_LEN), (false, false), "another version");
        assert_eq!(note(2, 4 * MIN_CHUNK_LEN), (false, false), "another size");
        file.set_len(HEADER_LEN as u64 - 1).unwrap();
        assert_eq!(note(2, 4 * MIN_CHUNK_LEN), (false, false), "cut short");
        file.set_len(HEADER_LEN as u64 + 4 * SLOT_LEN + 1).unwrap();
        assert_eq!(note(2, 4 * MIN_CHUNK_LEN), (false, false), "too long");
        file.set_len(HEADER_LEN as u64 + SLOT_LEN - 1).unwrap();
        assert_eq!(note(2, 4 * MIN_CHUNK_LEN), (true, false), "a slot half written");
    }

    proptest! {
        #[test]
        fn garbage_is_never_a_journal(garbage in prop::collection::vec(any::<u8>(), 0..300)) {
            let file = file();
            file.write_all_at(&garbage, 0).unwrap();
            let (journal, was) = Journal::open(&file, &[1; 32], LAYOUT()).unwrap();
            prop_assert!(!was);
            prop_assert_eq!(journal.read(0).unwrap(), None);
        }
    }
}
