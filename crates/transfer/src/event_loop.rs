//! An event loop that has a thread of its own, as the program's thread sees it.

use crate::error::Error;
use crate::events::TransferEvent;
use byway_net::{Control, Finished, Handle, Owner, Panicked, Waker};
use byway_wire::Duration;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};

/// A channel in the place of one that is hung up: nobody reads it.
#[must_use]
pub fn hung_up<T>() -> SyncSender<T> {
    sync_channel(1).0
}

/// What the program asks of an event loop while it runs.
#[derive(Debug, Default)]
pub struct Requests {
    cancel: AtomicBool,
    lifted: AtomicBool,
}

impl Requests {
    /// Whether the owner is to end.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancel.load(Ordering::Acquire)
    }

    /// Whether this side's bandwidth limit does not hold for now.
    #[must_use]
    pub fn is_lifted(&self) -> bool {
        self.lifted.load(Ordering::Acquire)
    }
}

/// An event loop with its owner, and what it tells. The owner's type makes it
/// [`Sending`](crate::Sending), [`Receiving`](crate::Receiving) or
/// [`Forwarding`](crate::Forwarding).
pub struct EventLoop<O: Owner, N = TransferEvent> {
    driver: Handle<O>,
    news: Receiver<N>,
    requests: Arc<Requests>,
}

impl<O: Owner, N> EventLoop<O, N> {
    /// An event loop that runs. Its owner tells `news`, and heeds `requests`.
    #[must_use]
    pub const fn new(driver: Handle<O>, news: Receiver<N>, requests: Arc<Requests>) -> Self {
        Self { driver, news, requests }
    }

    /// The next event; `None` if nothing happened within `patience`, or the event loop has ended.
    /// Call this a few times a second: each call wakes the event loop, which then does what is due.
    pub fn next(&self, patience: Duration) -> Option<N> {
        self.driver.waker().wake();
        match self.news.recv_timeout(patience) {
            Ok(news) => Some(news),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                // The owner is gone, and its thread about to be.
                std::thread::sleep(Duration::from_millis(1));
                None
            }
        }
    }

    /// Whether it has ended, with nothing more in [`next`](Self::next) once that gave `None`.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.driver.is_finished()
    }

    /// Asks the owner to end: the other side is told.
    pub fn cancel(&self) {
        self.requests.cancel.store(true, Ordering::Release);
        self.driver.waker().wake();
    }

    /// Lifts the bandwidth limit that it was started with, or sets it again.
    pub fn lift(&self, lifted: bool) {
        self.requests.lifted.store(lifted, Ordering::Release);
        self.driver.waker().wake();
    }

    /// Wakes it: there is something for it to look at.
    #[must_use]
    pub fn waker(&self) -> &Waker {
        self.driver.waker()
    }

    /// A way to wake it from elsewhere.
    #[must_use]
    pub fn control(&self) -> &Control {
        self.driver.control()
    }

    /// Waits for the end. Its owner, for what it has to tell.
    ///
    /// # Errors
    /// The event loop broke.
    pub fn into_owner(self) -> Result<O, Error> {
        let finished = self.finish()?;
        finished.outcome?;
        Ok(finished.owner)
    }

    pub(crate) fn finish(self) -> Result<Finished<O>, Panicked> {
        self.driver.join()
    }
}
