//! A thread that makes small files beside the thread that writes: there is one more core than that
//! one, mostly.

use byway_files::{MadeFile, SmallFile};
use std::sync::mpsc::{Receiver, RecvError, SyncSender, channel, sync_channel};
use std::thread::{Builder, JoinHandle};

/// The most batches of small files that this thread holds: one that it is writing, and one that
/// waits. The receiver's disk thread writes all further files itself. It cannot take a waiting
/// batch back, even when it has nothing else to do.
const MAX_BATCHES: usize = 2;

/// The writing thread's handle of the thread that makes small files.
pub(crate) struct FileThread {
    /// Hung up at the end.
    jobs: Option<SyncSender<Vec<SmallFile>>>,
    made: Receiver<Vec<MadeFile>>,
    /// Batches that the thread was given and has not returned.
    out: usize,
    thread: Option<JoinHandle<()>>,
}

impl FileThread {
    /// Starts the thread. `None`: there is only one core, or no thread can start, so the writer
    /// makes all files.
    pub fn start() -> Option<Self> {
        if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
            return None;
        }
        let (jobs, inbox) = sync_channel::<Vec<SmallFile>>(MAX_BATCHES);
        let (done, made) = channel();
        let run = move || {
            for together in inbox {
                if done.send(SmallFile::make(together)).is_err() {
                    return;
                }
            }
        };
        let thread = Builder::new().name("byway files".into()).spawn(run).ok()?;
        Some(Self { jobs: Some(jobs), made, out: 0, thread: Some(thread) })
    }

    /// Whether the thread accepts another batch.
    pub const fn has_room(&self) -> bool {
        self.out < MAX_BATCHES
    }

    /// Gives the thread files to make. The caller has checked that there is room. Returns the files
    /// if the thread is gone.
    pub fn give(&mut self, together: Vec<SmallFile>) -> Result<(), Vec<SmallFile>> {
        match &self.jobs {
            Some(jobs) => jobs.send(together).map_err(|refused| refused.0)?,
            None => return Err(together),
        }
        self.out += 1;
        Ok(())
    }

    /// The next batch of files that the thread has made, if one is ready.
    pub fn next(&mut self) -> Option<Vec<MadeFile>> {
        let made = self.made.try_recv().ok()?;
        self.out -= 1;
        Some(made)
    }

    /// Waits for the next batch of made files. `None`: no batch is under way. An error: the thread
    /// failed.
    pub fn wait(&mut self) -> Option<Result<Vec<MadeFile>, RecvError>> {
        self.out = self.out.checked_sub(1)?;
        Some(self.made.recv())
    }
}

impl Drop for FileThread {
    /// Stops the thread, and waits for its end.
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // Had it panicked, it was said.
            let _ = thread.join();
        }
    }
}
