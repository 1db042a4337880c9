//! The event loop of a transfer, which has a thread of its own, as the program's thread sees it.

use crate::events::TransferEvent;
use byway_net::{Control, Finished, Handle, Owner, Panicked};
use byway_wire::Duration;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};

/// A channel in the place of one that is hung up: nobody reads it.
pub(crate) fn hung_up<T>() -> SyncSender<T> {
    sync_channel(1).0
}

/// What the program asks of an event loop while it runs.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    cancel: AtomicBool,
    lifted: AtomicBool,
}

impl Requests {
    /// Whether the transfer is to be given up.
    pub fn is_cancelled(&self) -> bool {
        self.cancel.load(Ordering::Acquire)
    }

    /// Whether this side's bandwidth limit does not hold for now.
    pub fn is_lifted(&self) -> bool {
        self.lifted.load(Ordering::Acquire)
    }
}

/// An event loop with its owner, whose type makes it [`Sending`](crate::Sending) or
/// [`Receiving`](crate::Receiving).
pub struct EventLoop<O: Owner> {
    driver: Handle<O>,
    news: Receiver<TransferEvent>,
    requests: Arc<Requests>,
}

impl<O: Owner> EventLoop<O> {
    pub(crate) const fn new(
        driver: Handle<O>,
        news: Receiver<TransferEvent>,
        requests: Arc<Requests>,
    ) -> Self {
        Self { driver, news, requests }
    }

    /// The next event; `None` if nothing happened within `patience`, or the event loop has ended.
    /// Call this a few times a second: each call wakes the event loop, which then checks the
    /// progress and whether the transfer has ended.
    pub fn next(&self, patience: Duration) -> Option<TransferEvent> {
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

    /// Gives up: the other side is told.
    pub fn cancel(&self) {
        self.requests.cancel.store(true, Ordering::Release);
        self.driver.waker().wake();
    }

    /// Lifts the bandwidth limit that it was started with, or sets it again.
    pub fn lift(&self, lifted: bool) {
        self.requests.lifted.store(lifted, Ordering::Release);
        self.driver.waker().wake();
    }

    /// A way to wake it from elsewhere.
    #[must_use]
    pub fn control(&self) -> &Control {
        self.driver.control()
    }

    pub(crate) fn finish(self) -> Result<Finished<O>, Panicked> {
        self.driver.join()
    }
}
