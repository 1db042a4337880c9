//! An event loop that has a thread of its own, as the program's thread sees it.

use crate::error::Error;
use crate::events::TransferEvent;
use byway_net::{Control, Finished, Handle, Owner, Panicked, Waker};
use byway_wire::Duration;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};

/// A channel whose receiving end is already dropped.
#[must_use]
pub fn hung_up<T>() -> SyncSender<T> {
    sync_channel(1).0
}

/// Requests of the program to a running event loop.
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

    /// Whether this side's bandwidth limit is lifted at the moment.
    #[must_use]
    pub fn is_lifted(&self) -> bool {
        self.lifted.load(Ordering::Acquire)
    }
}

/// A running event loop with its owner, as the program's thread sees it:
/// [`Sending`](crate::Sending), [`Receiving`](crate::Receiving) or
/// [`Forwarding`](crate::Forwarding).
pub struct EventLoop<O: Owner, N = TransferEvent> {
    driver: Handle<O>,
    news: Receiver<N>,
    requests: Arc<Requests>,
}

impl<O: Owner, N> EventLoop<O, N> {
    /// A handle for a running event loop. Its owner sends events to `news`, and obeys `requests`.
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

    /// Whether the event loop has ended. If so, and [`next`](Self::next) returns `None`, no event
    /// will follow.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.driver.is_finished()
    }

    /// Asks the owner to end the transfer, and to tell the other side.
    pub fn cancel(&self) {
        self.requests.cancel.store(true, Ordering::Release);
        self.driver.waker().wake();
    }

    /// Lifts the bandwidth limit, or applies it again.
    pub fn lift(&self, lifted: bool) {
        self.requests.lifted.store(lifted, Ordering::Release);
        self.driver.waker().wake();
    }

    /// Wakes the event loop, for example after something was queued for it.
    #[must_use]
    pub fn waker(&self) -> &Waker {
        self.driver.waker()
    }

    /// Control of the event loop, for other threads.
    #[must_use]
    pub fn control(&self) -> &Control {
        self.driver.control()
    }

    /// Waits for the event loop to end. Returns its owner, which holds the results.
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
