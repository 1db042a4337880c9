//! The channel on which an event loop's owner tells the program what happens. The program waits for
//! the next event, and other threads can interrupt its wait.

use byway_wire::Duration;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Weak};

/// The longest wait of the program while the owner is busy. Each call of
/// [`next`](crate::EventLoop::next) wakes the owner.
const BUSY_PATIENCE: Duration = Duration::from_millis(100);

/// The owner's end. The channel closes when the last clone is dropped.
pub struct NewsSender<N>(Arc<Shared<N>>);

struct Shared<N> {
    queue: SyncSender<Option<N>>,
    is_busy: AtomicBool,
}

/// The program's end.
#[derive(Debug)]
pub struct NewsReceiver<N> {
    queue: Receiver<Option<N>>,
    interrupter: Interrupter<N>,
}

/// A handle that interrupts the program's wait for events. It keeps no channel open.
pub struct Interrupter<N>(Weak<Shared<N>>);

/// Makes a channel that holds `max_queued` events.
#[must_use]
pub fn news_channel<N>(max_queued: usize) -> (NewsSender<N>, NewsReceiver<N>) {
    let (sender, queue) = sync_channel(max_queued);
    let shared = Arc::new(Shared { queue: sender, is_busy: AtomicBool::new(false) });
    let interrupter = Interrupter(Arc::downgrade(&shared));
    (NewsSender(shared), NewsReceiver { queue, interrupter })
}

/// A channel whose receiving end is already dropped.
#[must_use]
pub fn hung_up<N>() -> NewsSender<N> {
    news_channel(1).0
}

impl<N> NewsSender<N> {
    /// Sends an event. Returns the event if the queue is full or has no reader.
    ///
    /// # Errors
    /// The event was not sent.
    pub fn try_send(&self, news: N) -> Result<(), TrySendError<N>> {
        let returned =
            |news: Option<N>, error: fn(N) -> TrySendError<N>| news.map_or(Ok(()), |it| Err(error(it)));
        match self.0.queue.try_send(Some(news)) {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(news)) => returned(news, TrySendError::Full),
            Err(TrySendError::Disconnected(news)) => returned(news, TrySendError::Disconnected),
        }
    }

    /// Sends an event, and waits for room. Without a reader the event is dropped.
    pub fn send(&self, news: N) {
        let _ = self.0.queue.send(Some(news));
    }

    /// Notes whether the owner has something to do that no deadline of its own covers. While it
    /// does, the program waits for 100 ms at most, and then wakes the owner. At first it is not.
    pub fn set_busy(&self, is_busy: bool) {
        let was_busy = self.0.is_busy.swap(is_busy, Ordering::AcqRel);
        if is_busy && !was_busy {
            self.0.interrupt();
        }
    }
}

impl<N> NewsReceiver<N> {
    /// The next event. `None`: none came within `patience`, none came for 100 ms and the owner is
    /// [busy](NewsSender::set_busy), the wait was interrupted, or no sender is left.
    #[must_use]
    pub fn next(&self, patience: Duration) -> Option<N> {
        let is_busy = self.interrupter.0.upgrade().is_some_and(|it| it.is_busy.load(Ordering::Acquire));
        let patience = if is_busy { patience.min(BUSY_PATIENCE) } else { patience };
        match self.queue.recv_timeout(patience) {
            Ok(news) => news,
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                // The owner is gone, and its thread about to be.
                std::thread::sleep(Duration::from_millis(1));
                None
            }
        }
    }

    /// The events that are there.
    #[cfg(test)]
    pub(crate) fn try_iter(&self) -> impl Iterator<Item = N> {
        std::iter::from_fn(|| self.next(Duration::ZERO))
    }

    /// Returns a handle that interrupts [`next`](Self::next).
    #[must_use]
    pub fn interrupter(&self) -> Interrupter<N> {
        self.interrupter.clone()
    }
}

impl<N> Shared<N> {
    fn interrupt(&self) {
        let _ = self.queue.try_send(None);
    }
}

impl<N> Interrupter<N> {
    /// Ends the wait of [`NewsReceiver::next`], or the next one if nobody waits. An event that is
    /// queued ends the wait as well.
    pub fn interrupt(&self) {
        if let Some(shared) = self.0.upgrade() {
            shared.interrupt();
        }
    }
}

impl<N> Clone for NewsSender<N> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<N> Clone for Interrupter<N> {
    fn clone(&self) -> Self {
        Self(Weak::clone(&self.0))
    }
}

impl<N> fmt::Debug for NewsSender<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewsSender").finish_non_exhaustive()
    }
}

impl<N> fmt::Debug for Interrupter<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interrupter").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(3_600);

    #[test]
    fn the_program_waits_for_long_only_while_the_owner_is_at_rest() {
        let (sender, receiver) = news_channel::<()>(1);
        std::thread::scope(|scope| {
            scope.spawn(|| sender.set_busy(true));
            assert_eq!(receiver.next(LONG), None, "it became busy");
        });
        assert_eq!(receiver.next(LONG), None, "it is busy");
    }

    #[test]
    fn a_wait_ends_by_an_event_by_an_interruption_and_by_the_end() {
        let (sender, receiver) = news_channel(4);
        let interrupter = receiver.interrupter();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                sender.try_send(7).unwrap();
                interrupter.interrupt();
                drop(sender);
            });
            assert_eq!(receiver.next(LONG), Some(7));
            assert_eq!(receiver.next(LONG), None, "interrupted");
            assert_eq!(receiver.next(LONG), None, "no sender is left");
        });
        receiver.interrupter().interrupt();
    }

    #[test]
    fn an_interruption_takes_the_place_of_no_event() {
        let (sender, receiver) = news_channel(1);
        sender.try_send(1).unwrap();
        receiver.interrupter().interrupt();
        assert!(matches!(sender.clone().try_send(2), Err(TrySendError::Full(2))));
        assert_eq!(receiver.next(LONG), Some(1));
        assert_eq!(receiver.next(Duration::ZERO), None);
        sender.send(3);
        assert_eq!(receiver.next(LONG), Some(3));
        assert!(matches!(hung_up().try_send(4), Err(TrySendError::Disconnected(4))));
    }
}
