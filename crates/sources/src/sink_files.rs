//! The files of a sink, one for each source, written on a thread of its own. The sink writes
//! records, then the [checkpoint](crate::checkpoint) that counts them, and then tells the source.

use crate::checkpoint::{Checkpoint, SLOT};
use crate::source_name::Name;
use byway_net::Waker;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

/// Where the notes are, in the sink's directory.
const NOTES: &str = ".byway-sink";
/// A disk that refuses is tried again so much later.
const AGAIN: Duration = Duration::from_secs(1);

/// What the thread is asked. Of one session at most one is unanswered, and a `Close`.
#[derive(Debug)]
pub enum FileRequest {
    /// Open the file of a source.
    Open(u64, Name),
    /// Write records.
    Write(u64, Block),
    /// Nothing more comes.
    Close(u64),
}

/// Records in a row.
#[derive(Debug, Default)]
pub struct Block {
    /// Their bytes.
    pub bytes: Vec<u8>,
    /// How many they are.
    pub records: u64,
    /// Numbers before them, or among them, that have no record.
    pub lost: u64,
}

/// What it answers.
#[derive(Debug)]
pub enum FileReply {
    /// The file is open.
    Opened(u64, Checkpoint),
    /// It cannot be opened: why, for a person.
    Failed(u64, String),
    /// A block is written.
    Written(u64, Checkpoint),
    /// The disk refuses a block, which is tried again.
    Refused(u64, String),
}

/// Makes the directory, and sees whether it can be written to.
///
/// # Errors
/// What the system says.
pub fn prepare(directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory.join(NOTES))?;
    let probe = directory.join(NOTES).join(".writable");
    File::create(&probe)?;
    fs::remove_file(probe)
}

/// A source's file.
struct OpenFile {
    data: File,
    notes: File,
    note: Checkpoint,
    path: PathBuf,
}

impl OpenFile {
    fn new(directory: &Path, name: &Name) -> Result<Self, String> {
        let (path, notes) = (directory.join(name.as_str()), directory.join(NOTES).join(name.as_str()));
        let file = |path: &Path| {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(false);
            options.open(path).map_err(|error| format!("cannot open {}: {error}", path.display()))
        };
        let (data, mut notes_file) = (file(&path)?, file(&notes)?);
        let mut said = Vec::new();
        let read = (&mut notes_file).take(2 * SLOT as u64).read_to_end(&mut said);
        read.map_err(|error| format!("cannot read {}: {error}", notes.display()))?;
        let note = Checkpoint::read(&said).ok_or_else(|| {
            format!("{} is damaged: remove it and {} to begin anew", notes.display(), path.display())
        })?;
        let length =
            data.metadata().map_err(|error| format!("cannot read {}: {error}", path.display()))?.len();
        if length < note.bytes {
            return Err(format!(
                "{} has {length} bytes, and {} were written: put it back, or remove {} too to begin anew",
                path.display(),
                note.bytes,
                notes.display()
            ));
        }
        if length > note.bytes && said.is_empty() {
            return Err(format!(
                "{} is there already, and is no file of this sink: move it away",
                path.display()
            ));
        }
        let cut = data.set_len(note.bytes);
        cut.map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        Ok(Self { data, notes: notes_file, note, path })
    }

    fn write(&mut self, block: &Block, sync: bool) -> io::Result<()> {
        self.data.write_all_at(&block.bytes, self.note.bytes)?;
        let note = Checkpoint {
            generation: self.note.generation + 1,
            next: self.note.next + block.records + block.lost,
            bytes: self.note.bytes + block.bytes.len() as u64,
            lost: self.note.lost + block.lost,
        };
        let (slot, at) = note.to_slot();
        if sync {
            self.data.sync_data()?;
        }
        self.notes.write_all_at(&slot, at)?;
        if sync {
            self.notes.sync_data()?;
        }
        self.note = note;
        Ok(())
    }
}

/// The thread's work.
pub struct Files {
    directory: PathBuf,
    sync: bool,
    open: BTreeMap<u64, OpenFile>,
    /// Blocks that the disk refused.
    refused: Vec<(u64, Block)>,
    again_at: Instant,
    answers: SyncSender<FileReply>,
    waker: Waker,
}

impl Files {
    /// Writes into `directory`; if `sync`, what is told as written survives a loss of power.
    pub fn new(directory: PathBuf, sync: bool, answers: SyncSender<FileReply>, waker: Waker) -> Self {
        let again_at = Instant::now();
        Self { directory, sync, open: BTreeMap::new(), refused: Vec::new(), again_at, answers, waker }
    }

    /// Does what it is asked, until nobody asks any more.
    pub fn run(mut self, asks: &Receiver<FileRequest>) {
        loop {
            let ask = match asks.recv_timeout(AGAIN) {
                Ok(ask) => Some(ask),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            match ask {
                Some(FileRequest::Open(session, name)) => {
                    let answer = match OpenFile::new(&self.directory, &name) {
                        Ok(open) => {
                            let note = open.note;
                            self.open.insert(session, open);
                            FileReply::Opened(session, note)
                        }
                        Err(sentence) => FileReply::Failed(session, sentence),
                    };
                    self.tell(answer);
                }
                Some(FileRequest::Write(session, block)) => self.write(session, block, true),
                Some(FileRequest::Close(session)) => {
                    self.open.remove(&session);
                    self.refused.retain(|(of, _)| *of != session);
                }
                None => {}
            }
            if !self.refused.is_empty() && Instant::now() >= self.again_at {
                for (session, block) in std::mem::take(&mut self.refused) {
                    self.write(session, block, false);
                }
            }
        }
    }

    fn write(&mut self, session: u64, block: Block, first: bool) {
        let Some(open) = self.open.get_mut(&session) else { return };
        match open.write(&block, self.sync) {
            Ok(()) => {
                let note = open.note;
                self.tell(FileReply::Written(session, note));
            }
            Err(error) => {
                let sentence = format!("cannot write {}: {error}", open.path.display());
                self.refused.push((session, block));
                self.again_at = Instant::now() + AGAIN;
                if first {
                    self.tell(FileReply::Refused(session, sentence));
                }
            }
        }
    }

    fn tell(&self, answer: FileReply) {
        // Without an owner nobody wants to know.
        let _ = self.answers.send(answer);
        self.waker.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(text: &str, lost: u64) -> Block {
        Block { bytes: text.into(), records: text.lines().count() as u64, lost }
    }

    #[test]
    fn a_file_goes_on_behind_what_is_noted() {
        let directory = tempfile::tempdir().unwrap();
        prepare(directory.path()).unwrap();
        let name: Name = "radar7".parse().unwrap();
        let open = || OpenFile::new(directory.path(), &name);
        let mut file = open().unwrap();
        file.write(&block("one\ntwo\n", 0), true).unwrap();
        file.write(&block("five\n", 2), false).unwrap();
        let path = directory.path().join("radar7");
        // The sink was killed while it wrote.
        fs::write(&path, "one\ntwo\nfive\nsi").unwrap();
        let mut file = open().unwrap();
        assert_eq!((file.note.next, file.note.bytes, file.note.lost), (5, 13, 2));
        file.write(&block("six\n", 0), false).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "one\ntwo\nfive\nsix\n");
        fs::write(&path, "one\n").unwrap();
        assert!(open().err().unwrap().contains("has 4 bytes, and 17 were written"));
        fs::write(directory.path().join("other"), "mine").unwrap();
        let taken = OpenFile::new(directory.path(), &"other".parse().unwrap()).err().unwrap();
        assert!(taken.contains("is there already"), "{taken}");
        assert_eq!(fs::read_to_string(directory.path().join("other")).unwrap(), "mine");
    }
}
