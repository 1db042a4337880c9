//! An event loop that has a thread of its own, as the program's thread sees it.

pub(crate) mod news_channel;

use self::news_channel::{Interrupter, NewsReceiver};
use crate::error::Error;
use crate::events::TransferEvent;
use crate::units::RateLimits;
use byway_net::{Control, Finished, Handle, Owner, Panicked, Waker};
use byway_wire::Duration;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The value of no limit, in bytes per second.
const NO_LIMIT: u64 = u64::MAX;

/// Requests of the program to a running event loop.
#[derive(Debug)]
pub struct Requests {
    cancel: AtomicBool,
    /// Bytes per second to the peer, from 1 to [`NO_LIMIT`].
    up: AtomicU64,
    /// Bytes per second from the peer, from 1 to [`NO_LIMIT`].
    down: AtomicU64,
}

impl Default for Requests {
    fn default() -> Self {
        Self::new(RateLimits::default())
    }
}

impl Requests {
    /// No request yet. `limits` hold from the beginning.
    #[must_use]
    pub fn new(limits: RateLimits) -> Self {
        let requests =
            Self { cancel: AtomicBool::new(false), up: AtomicU64::new(0), down: AtomicU64::new(0) };
        requests.set_limits(limits);
        requests
    }

    /// Whether the owner is to end.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancel.load(Ordering::Acquire)
    }

    /// The limits of this side at the moment.
    #[must_use]
    pub fn limits(&self) -> RateLimits {
        let read = |rate: &AtomicU64| Some(rate.load(Ordering::Acquire)).filter(|rate| *rate != NO_LIMIT);
        RateLimits { up: read(&self.up), down: read(&self.down) }
    }

    /// Sets the limits. One of 0 is one of 1 byte per second.
    fn set_limits(&self, limits: RateLimits) {
        for (rate, limit) in [(&self.up, limits.up), (&self.down, limits.down)] {
            rate.store(limit.map_or(NO_LIMIT, |limit| limit.clamp(1, NO_LIMIT - 1)), Ordering::Release);
        }
    }
}

/// A running event loop and its owner, as a handle for the program's thread:
/// [`Sending`](crate::Sending), [`Receiving`](crate::Receiving) or
/// [`Forwarding`](crate::Forwarding).
pub struct EventLoop<O: Owner, N = TransferEvent> {
    driver: Handle<O>,
    news: NewsReceiver<N>,
    requests: Arc<Requests>,
}

impl<O: Owner, N> EventLoop<O, N> {
    /// A handle for a running event loop. Its owner sends events to `news`, and obeys `requests`.
    #[must_use]
    pub const fn new(driver: Handle<O>, news: NewsReceiver<N>, requests: Arc<Requests>) -> Self {
        Self { driver, news, requests }
    }

    /// The next event; `None` if nothing happened within `patience`, within 100 ms while something
    /// is under way, the wait was [interrupted](Self::interrupter), or the event loop has ended.
    /// Call this again and again: each call wakes the event loop, which then does what is due.
    pub fn next(&self, patience: Duration) -> Option<N> {
        self.driver.waker().wake();
        self.news.next(patience)
    }

    /// Returns a handle with which other threads end the wait of [`next`](Self::next).
    #[must_use]
    pub fn interrupter(&self) -> Interrupter<N> {
        self.news.interrupter()
    }

    /// Whether the event loop has ended. If so, and [`next`](Self::next) returns `None`, no event
    /// will follow.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.driver.is_finished()
    }

    /// Asks the owner to end the transfer and to notify the peer.
    pub fn cancel(&self) {
        self.requests.cancel.store(true, Ordering::Release);
        self.driver.waker().wake();
    }

    /// Replaces the bandwidth limits. A sender applies `up`, a receiver `down`, and a forwarder
    /// both.
    pub fn set_limits(&self, limits: RateLimits) {
        self.requests.set_limits(limits);
        self.driver.waker().wake();
    }

    /// Returns the waker of the event loop, for example to use after data was queued for it.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_as_they_were_set() {
        let limits = |up, down| RateLimits { up, down };
        let requests = Requests::new(limits(Some(5), None));
        assert_eq!(requests.limits(), limits(Some(5), None));
        requests.set_limits(limits(None, Some(7)));
        assert_eq!(requests.limits(), limits(None, Some(7)));
        requests.set_limits(limits(Some(0), Some(u64::MAX)));
        assert_eq!(requests.limits(), limits(Some(1), Some(u64::MAX - 1)));
        assert_eq!(Requests::default().limits(), RateLimits::default());
    }
}
