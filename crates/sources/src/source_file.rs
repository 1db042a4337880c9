//! The file of a source, and the note that tells of it.

use crate::checkpoint::{Checkpoint, SLOT};
use crate::endpoint::NAME_BOUND;
use crate::sink_files::{Block, NOTES, OpenRequest};
use byway_transfer::close::CloseCode;
use byway_transfer::identity::PublicKey;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// A source's file.
pub struct SourceFile {
    data: File,
    notes: File,
    note: Checkpoint,
    path: PathBuf,
    run: [u8; 16],
}

/// Why a file is not opened.
#[derive(Debug, PartialEq, Eq)]
pub struct OpenFault {
    /// The code that the source is told.
    pub code: u64,
    /// What the source is told.
    pub sentence: String,
    /// What the sink's operator is told, if that is more.
    pub for_operator: Option<String>,
}

impl OpenFault {
    fn new(sentence: String) -> Self {
        Self { code: CloseCode::Failed.number(), sentence, for_operator: None }
    }

    fn other_key(asked: &OpenRequest, owner: [u8; 32]) -> Self {
        let (name, key) = (&asked.name, PublicKey(asked.key.0));
        Self {
            code: NAME_BOUND,
            sentence: name_is_bound(asked.name.as_str()),
            for_operator: Some(format!(
                "the host {key} asks for the name {name}, which is that of the host {}; to let it have the \
                 name, start the sink with --allow {name}={key}",
                PublicKey(owner)
            )),
        }
    }
}

/// What a source is told whose name is another host's.
pub fn name_is_bound(name: &str) -> String {
    format!(
        "the name {name} is that of another host's source: give another --name, or have the sink started with --allow \
         {name}=KEY, where KEY is what `byway id` prints here"
    )
}

impl SourceFile {
    /// Opens the file that `asked` names in `directory`. The first key that asks for a name has it
    /// from then on.
    pub fn open(directory: &Path, asked: &OpenRequest) -> Result<Self, OpenFault> {
        let name = asked.name.as_str();
        let (path, notes_path) = (directory.join(name), directory.join(NOTES).join(name));
        let file = |path: &Path| {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(false);
            let opened = options.open(path);
            opened.map_err(|error| OpenFault::new(format!("cannot open {}: {error}", path.display())))
        };
        let (data, mut notes) = (file(&path)?, file(&notes_path)?);
        let mut said = Vec::new();
        let read = (&mut notes).take(2 * SLOT as u64).read_to_end(&mut said);
        read.map_err(|error| OpenFault::new(format!("cannot read {}: {error}", notes_path.display())))?;
        let note = Checkpoint::read(&said).ok_or_else(|| {
            OpenFault::new(format!(
                "{} is damaged: remove it and {} to begin anew",
                notes_path.display(),
                path.display()
            ))
        })?;
        let owner = note.key.filter(|owner| *owner != asked.key.0 && !asked.is_listed);
        if let Some(owner) = owner {
            return Err(OpenFault::other_key(asked, owner));
        }
        let length = data.metadata();
        let length =
            length.map_err(|error| OpenFault::new(format!("cannot read {}: {error}", path.display())))?.len();
        if length < note.bytes {
            return Err(OpenFault::new(format!(
                "{} has {length} bytes, and {} were written: put it back, or remove {} too to begin anew",
                path.display(),
                note.bytes,
                notes_path.display()
            )));
        }
        if length > note.bytes && said.is_empty() {
            return Err(OpenFault::new(format!(
                "{} is there already, and is no file of this sink: move it away",
                path.display()
            )));
        }
        let cannot_write =
            |error: io::Error| OpenFault::new(format!("cannot write {}: {error}", path.display()));
        data.set_len(note.bytes).map_err(cannot_write)?;
        let mut open = Self { data, notes, note, path: path.clone(), run: asked.run };
        if note.key != Some(asked.key.0) {
            let bound = Checkpoint { key: Some(asked.key.0), generation: note.generation + 1, ..note };
            open.keep(bound, true).map_err(cannot_write)?;
        }
        Ok(open)
    }

    /// What is noted.
    pub const fn note(&self) -> Checkpoint {
        self.note
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends a block, and notes that. If `sync`, both survive a loss of power from then on.
    pub fn write(&mut self, block: &Block, sync: bool) -> io::Result<()> {
        let too_many = || io::Error::other("its numbers are used up");
        let before = self.note;
        let numbers = block.records.checked_add(block.lost);
        let note = Checkpoint {
            generation: before.generation.checked_add(1).ok_or_else(too_many)?,
            next: numbers.and_then(|numbers| before.next.checked_add(numbers)).ok_or_else(too_many)?,
            bytes: before.bytes.checked_add(block.bytes.len() as u64).ok_or_else(too_many)?,
            lost: before.lost.checked_add(block.lost).ok_or_else(too_many)?,
            runs: before.runs.written_by(self.run, before.next),
            ..before
        };
        self.data.write_all_at(&block.bytes, before.bytes)?;
        if sync {
            self.data.sync_data()?;
        }
        self.keep(note, sync)
    }

    fn keep(&mut self, note: Checkpoint, sync: bool) -> io::Result<()> {
        let (slot, at) = note.to_slot();
        self.notes.write_all_at(&slot, at)?;
        if sync {
            self.notes.sync_data()?;
        }
        self.note = note;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MAX_NUMBER;
    use crate::sink_files::prepare;
    use byway_engine::handshake;
    use std::fs;

    const RUN: [u8; 16] = [7; 16];

    fn block(text: &str, lost: u64) -> Block {
        Block { bytes: text.into(), records: text.lines().count() as u64, lost }
    }

    fn asked(name: &str, key: u8) -> OpenRequest {
        let key = handshake::PublicKey([key; 32]);
        OpenRequest { name: name.parse().unwrap(), key, is_listed: false, run: RUN }
    }

    #[test]
    fn a_file_goes_on_behind_what_is_noted() {
        let directory = tempfile::tempdir().unwrap();
        prepare(directory.path()).unwrap();
        let open = || SourceFile::open(directory.path(), &asked("radar7", 1));
        let mut file = open().unwrap();
        file.write(&block("one\ntwo\n", 0), true).unwrap();
        file.write(&block("five\n", 2), false).unwrap();
        let path = directory.path().join("radar7");
        // The sink was killed while it wrote.
        fs::write(&path, "one\ntwo\nfive\nsi").unwrap();
        let mut file = open().unwrap();
        assert_eq!((file.note.next, file.note.bytes, file.note.lost), (5, 13, 2));
        assert_eq!((file.note.runs.last, file.note.runs.last_from), (RUN, 0));
        file.write(&block("six\n", 0), false).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "one\ntwo\nfive\nsix\n");
        fs::write(&path, "one\n").unwrap();
        let fault = open().err().unwrap();
        assert!(fault.sentence.contains("has 4 bytes, and 17 were written"), "{fault:?}");
        fs::write(directory.path().join("other"), "mine").unwrap();
        let taken = SourceFile::open(directory.path(), &asked("other", 1)).err().unwrap();
        assert!(taken.sentence.contains("is there already"), "{taken:?}");
        assert_eq!(fs::read_to_string(directory.path().join("other")).unwrap(), "mine");
    }

    #[test]
    fn a_name_is_that_of_the_key_that_used_it_first_or_that_is_listed() {
        let directory = tempfile::tempdir().unwrap();
        prepare(directory.path()).unwrap();
        let open = |request: &OpenRequest| SourceFile::open(directory.path(), request);
        // It has the name from the first session on, also if nothing was written in it.
        drop(open(&asked("radar7", 1)).unwrap());
        let fault = open(&asked("radar7", 2)).err().unwrap();
        assert!(
            fault.code == NAME_BOUND && fault.sentence.contains("the name radar7 is that of"),
            "{fault:?}"
        );
        assert!(fault.for_operator.unwrap().contains(&format!("--allow radar7={}", PublicKey([2; 32]))));
        drop(open(&asked("radar7", 1)).unwrap());
        drop(open(&OpenRequest { is_listed: true, ..asked("radar7", 2) }).unwrap());
        assert_eq!(open(&asked("radar7", 1)).err().unwrap().code, NAME_BOUND, "the name has moved");
        drop(open(&asked("radar8", 1)).unwrap());
    }

    #[test]
    fn numbers_that_do_not_fit_are_refused_and_nothing_is_written() {
        let directory = tempfile::tempdir().unwrap();
        prepare(directory.path()).unwrap();
        let mut file = SourceFile::open(directory.path(), &asked("radar7", 1)).unwrap();
        file.write(&block("one\n", MAX_NUMBER - 1), false).unwrap();
        let before = file.note();
        for lost in [u64::MAX - before.next, u64::MAX] {
            let refused = file.write(&block("two\n", lost), false).unwrap_err();
            assert!(refused.to_string().contains("used up"), "{refused}");
        }
        assert_eq!(file.note(), before);
        assert_eq!(fs::read_to_string(directory.path().join("radar7")).unwrap(), "one\n");
    }
}
