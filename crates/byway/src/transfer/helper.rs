//! Who makes small files beside the thread that writes: there is one more core than that one, mostly.

use byway_files::{Made, Small};
use std::sync::mpsc::{Receiver, RecvError, SyncSender, channel, sync_channel};
use std::thread::{Builder, JoinHandle};

/// Files that wait for the other thread at most; the writer makes the next itself. What waits is written whatever happens.
const WAITING: usize = 32;

/// The other thread, as the writer sees it.
pub(super) struct Helper {
    /// Hung up at the end.
    jobs: Option<SyncSender<Small>>,
    made: Receiver<Made>,
    /// Files that it has and that did not come back.
    out: usize,
    thread: Option<JoinHandle<()>>,
}

impl Helper {
    /// Starts it. Without it all is done by the writer.
    pub fn start() -> Option<Self> {
        if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
            return None;
        }
        let (jobs, inbox) = sync_channel::<Small>(WAITING);
        let (done, made) = channel();
        let run = move || {
            for small in inbox {
                if done.send(small.make()).is_err() {
                    return;
                }
            }
        };
        let thread = Builder::new().name("byway files".into()).spawn(run).ok()?;
        Some(Self { jobs: Some(jobs), made, out: 0, thread: Some(thread) })
    }

    /// Whether it takes another.
    pub const fn has_room(&self) -> bool {
        self.out < WAITING
    }

    /// Gives it a file to make; it has room. The file comes back if the thread is gone.
    pub fn give(&mut self, small: Small) -> Result<(), Small> {
        match &self.jobs {
            Some(jobs) => jobs.send(small).map_err(|refused| refused.0)?,
            None => return Err(small),
        }
        self.out += 1;
        Ok(())
    }

    /// What it made, if there is anything.
    pub fn next(&mut self) -> Option<Made> {
        let made = self.made.try_recv().ok()?;
        self.out -= 1;
        Some(made)
    }

    /// What it makes now, or made before; `None`: nothing any more. An error: it broke down.
    pub fn wait(&mut self) -> Option<Result<Made, RecvError>> {
        self.out = self.out.checked_sub(1)?;
        Some(self.made.recv())
    }
}

impl Drop for Helper {
    /// Nothing is written any more once it is gone.
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // Had it panicked, it was said.
            let _ = thread.join();
        }
    }
}
