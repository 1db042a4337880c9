//! The files of a sink, one for each source, written on a thread of its own. The sink writes
//! records, then the [checkpoint](crate::checkpoint) that counts them, and then tells the source.

use crate::checkpoint::Checkpoint;
use crate::sink_plan::FileChange;
use crate::source_file::{OpenFault, SourceFile};
use crate::source_name::Name;
use byway_engine::handshake::PublicKey;
use byway_net::Waker;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

/// The directory of the notes, in the sink's directory.
pub const NOTES_DIRECTORY: &str = ".byway-sink";
/// How long after a failure a disk is tried again.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// How often it is looked whether a file still stands under its name.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// What the thread is asked. Of one session at most one is unanswered, and a `Close`.
#[derive(Debug)]
pub enum FileRequest {
    /// Open the file of a source.
    Open(u64, OpenRequest),
    /// Write records.
    Write(u64, Block),
    /// Nothing more comes.
    Close(u64),
}

/// Who asks for a file.
#[derive(Clone, Debug)]
pub struct OpenRequest {
    /// The name of the source.
    pub name: Name,
    /// The public key of the source's host.
    pub key: PublicKey,
    /// Whether the sink's operator named this key for the name. It has the name then, whoever had
    /// it before.
    pub is_listed: bool,
    /// The run of the source.
    pub run: [u8; 16],
    /// Whether each of its records ends with a line feed.
    pub has_lines: bool,
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
    /// It is not opened.
    Failed(u64, OpenFault),
    /// A block is written.
    Written(u64, Checkpoint),
    /// The disk refuses a block, which is tried again.
    Refused(u64, String),
    /// Something became of the file, and a new one is begun.
    Changed(u64, FileChange),
}

/// Makes the directory, and sees whether it can be written to.
///
/// # Errors
/// What the system says.
pub fn prepare(directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory.join(NOTES_DIRECTORY))?;
    let probe = directory.join(NOTES_DIRECTORY).join(".writable");
    File::create(&probe)?;
    fs::remove_file(probe)
}

/// The thread's work.
pub struct Files {
    directory: PathBuf,
    sync: bool,
    open: BTreeMap<u64, SourceFile>,
    /// Blocks that the disk refused.
    refused: Vec<(u64, Block)>,
    again_at: Instant,
    look_at: Instant,
    answers: SyncSender<FileReply>,
    waker: Waker,
}

impl Files {
    /// Writes into `directory`; if `sync`, what is told as written survives a loss of power.
    pub fn new(directory: PathBuf, sync: bool, answers: SyncSender<FileReply>, waker: Waker) -> Self {
        let now = Instant::now();
        let (open, refused) = (BTreeMap::new(), Vec::new());
        Self { directory, sync, open, refused, again_at: now, look_at: now, answers, waker }
    }

    /// Does what it is asked, until nobody asks any more.
    pub fn run(mut self, asks: &Receiver<FileRequest>) {
        loop {
            let ask = match asks.recv_timeout(RETRY_DELAY) {
                Ok(ask) => Some(ask),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            match ask {
                Some(FileRequest::Open(session, asked)) => {
                    let answer = match SourceFile::open(&self.directory, &asked, self.sync) {
                        Ok(mut open) => {
                            let (note, change) = (open.note(), open.take_change());
                            self.open.insert(session, open);
                            if let Some(change) = change {
                                self.tell(FileReply::Changed(session, change));
                            }
                            FileReply::Opened(session, note)
                        }
                        Err(fault) => FileReply::Failed(session, fault),
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
            if Instant::now() >= self.look_at {
                self.look();
            }
            if !self.refused.is_empty() && Instant::now() >= self.again_at {
                for (session, block) in std::mem::take(&mut self.refused) {
                    self.write(session, block, false);
                }
            }
        }
    }

    /// Looks after all files, also those of sources that give nothing now.
    fn look(&mut self) {
        self.look_at = Instant::now() + LOOK_INTERVAL;
        let mut changed = Vec::new();
        for (session, open) in &mut self.open {
            // What is wrong is told when there is something to write.
            let _ = open.look();
            changed.extend(open.take_change().map(|change| (*session, change)));
        }
        for (session, change) in changed {
            self.tell(FileReply::Changed(session, change));
        }
    }

    fn write(&mut self, session: u64, block: Block, first: bool) {
        let Some(open) = self.open.get_mut(&session) else { return };
        let outcome = open.write(&block);
        let change = open.take_change();
        match outcome {
            Ok(()) => {
                let note = open.note();
                self.tell(FileReply::Written(session, note));
            }
            Err(error) => {
                let sentence = format!("cannot write {}: {error}", open.path().display());
                self.refused.push((session, block));
                self.again_at = Instant::now() + RETRY_DELAY;
                if first {
                    self.tell(FileReply::Refused(session, sentence));
                }
            }
        }
        if let Some(change) = change {
            self.tell(FileReply::Changed(session, change));
        }
    }

    fn tell(&self, answer: FileReply) {
        // Without an owner nobody wants to know.
        let _ = self.answers.send(answer);
        self.waker.wake();
    }
}
