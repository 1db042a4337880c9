//! The files of a sink, one for each source, written on a thread of its own. The sink writes
//! records, then the [checkpoint](crate::checkpoint) that counts them, and then tells the source.

use crate::checkpoint::Checkpoint;
use crate::sink_file::{Block, NOTES_DIRECTORY, OpenFault, OpenRequest, SourceFile};
use crate::sink_plan::FileChange;
use byway_net::Waker;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

/// Time after a failure until a disk is tried again.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// Time between two checks whether each file is still at its path.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// A request to the thread that writes files. Each session has at most one unanswered request, and
/// a `Close`.
#[derive(Debug)]
pub enum FileRequest {
    /// Open the file of a source.
    Open(u64, OpenRequest),
    /// Write records.
    Write(u64, Block),
    /// The session with this number writes no more, and its file is closed.
    Close(u64),
}

/// A reply of the thread that writes files. The first value is the session's number.
#[derive(Debug)]
pub enum FileReply {
    /// The file is open, with this note about it.
    Opened(u64, Checkpoint),
    /// The file could not be opened.
    Failed(u64, OpenFault),
    /// A block is written, with this new note about the file.
    Written(u64, Checkpoint),
    /// The disk refuses a block, which is tried again.
    Refused(u64, String),
    /// The file was moved or deleted, so a new one was begun.
    Changed(u64, FileChange),
}

/// Makes the directory, and checks that files can be written into it.
///
/// # Errors
/// What the system says.
pub fn prepare(directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory.join(NOTES_DIRECTORY))?;
    let probe = directory.join(NOTES_DIRECTORY).join(".writable");
    File::create(&probe)?;
    fs::remove_file(probe)
}

/// The state of the thread that writes files.
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
    /// Files in `directory`. `sync`: records are reported as written once they would survive a loss
    /// of power.
    pub fn new(directory: PathBuf, sync: bool, answers: SyncSender<FileReply>, waker: Waker) -> Self {
        let now = Instant::now();
        let (open, refused) = (BTreeMap::new(), Vec::new());
        Self { directory, sync, open, refused, again_at: now, look_at: now, answers, waker }
    }

    /// Handles requests until the channel is closed.
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

    /// Checks that every open file is still at its path, including those of idle sources.
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
