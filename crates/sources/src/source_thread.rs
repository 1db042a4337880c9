//! A source or a sink that runs on a thread of its own, as the program sees it.

use byway_net::{Control, Handle, Owner, Waker};
use byway_transfer::Error;
use byway_wire::Duration;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};

/// A channel in the place of one that is hung up: nobody reads it.
pub fn hung_up<T>() -> SyncSender<T> {
    sync_channel(1).0
}

/// What the program asks for.
#[derive(Debug, Default)]
pub struct StopFlag {
    stop: AtomicBool,
}

impl StopFlag {
    /// Whether it is to stop.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }
}

/// An event loop with its owner, and what it tells.
pub struct RunningLoop<O: Owner, N> {
    driver: Handle<O>,
    news: Receiver<N>,
    requests: Arc<StopFlag>,
}

impl<O: Owner, N> RunningLoop<O, N> {
    pub(crate) const fn new(driver: Handle<O>, news: Receiver<N>, requests: Arc<StopFlag>) -> Self {
        Self { driver, news, requests }
    }

    /// Waits at most `patience` for the next event. `None` if there was none, or if the event loop
    /// has ended. Call this twenty times a second: each call makes the event loop do what is due.
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

    /// Whether it has ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.driver.is_finished()
    }

    /// Asks it to stop: the other side is told.
    pub fn stop(&self) {
        self.requests.stop.store(true, Ordering::Release);
        self.driver.waker().wake();
    }

    /// Wakes it: there is something for it to look at.
    #[must_use]
    pub fn waker(&self) -> &Waker {
        self.driver.waker()
    }

    /// Waits for the end. Its owner, for what it has to tell.
    ///
    /// # Errors
    /// The event loop broke.
    pub fn join(self) -> Result<O, Error> {
        let finished = self.driver.join()?;
        finished.outcome?;
        Ok(finished.owner)
    }

    /// A way to stop or wake it from elsewhere.
    #[must_use]
    pub fn control(&self) -> &Control {
        self.driver.control()
    }
}
