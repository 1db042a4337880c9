//! A value that the event loop and threads of the application share, and who waits for it to
//! change.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

/// A value, and the tasks and threads that wait for a change. The lock is held only to look and to
/// copy.
#[derive(Debug)]
pub struct Shared<T> {
    slot: Mutex<SharedState<T>>,
    changed: Condvar,
}

#[derive(Debug)]
struct SharedState<T> {
    value: T,
    /// Number of waiting threads.
    sleeping: usize,
    /// Tasks that wait, each at most twice.
    wakers: Vec<Waker>,
}

impl<T: Default> Default for Shared<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> Shared<T> {
    pub const fn new(value: T) -> Self {
        let slot = SharedState { value, sleeping: 0, wakers: Vec::new() };
        Self { slot: Mutex::new(slot), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, SharedState<T>> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the value, or changes it without waking waiting threads.
    pub fn with<R>(&self, look: impl FnOnce(&mut T) -> R) -> R {
        look(&mut self.lock().value)
    }

    /// Changes the value, and wakes all that wait for a change.
    pub fn change<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let mut slot = self.lock();
        let result = change(&mut slot.value);
        let (sleeping, wakers) = (slot.sleeping > 0, std::mem::take(&mut slot.wakers));
        drop(slot);
        if sleeping {
            self.changed.notify_all();
        }
        wakers.into_iter().for_each(Waker::wake);
        result
    }

    /// Waits until `attempt` returns a result, for `patience` at most. `None`: it returned none in
    /// that time.
    pub fn wait<R>(
        &self,
        patience: Option<Duration>,
        mut attempt: impl FnMut(&mut T) -> Option<R>,
    ) -> Option<R> {
        let until = patience.and_then(|patience| Instant::now().checked_add(patience));
        let mut slot = self.lock();
        loop {
            if let Some(result) = attempt(&mut slot.value) {
                return Some(result);
            }
            slot.sleeping += 1;
            slot = match until {
                None => self.changed.wait(slot).unwrap_or_else(PoisonError::into_inner),
                Some(until) => {
                    let left = until.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        slot.sleeping -= 1;
                        return None;
                    }
                    self.changed.wait_timeout(slot, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
            slot.sleeping -= 1;
        }
    }

    /// Returns the result of `attempt`. Without one, the task is woken by the next change.
    #[cfg(feature = "tokio")]
    pub fn poll<R>(
        &self,
        context: &std::task::Context<'_>,
        attempt: impl FnOnce(&mut T) -> Option<R>,
    ) -> std::task::Poll<R> {
        let mut slot = self.lock();
        match attempt(&mut slot.value) {
            Some(result) => std::task::Poll::Ready(result),
            None => {
                if !slot.wakers.iter().any(|waker| waker.will_wake(context.waker())) {
                    slot.wakers.push(context.waker().clone());
                }
                std::task::Poll::Pending
            }
        }
    }

    /// Waits, as a task, until `attempt` gives something.
    #[cfg(feature = "tokio")]
    pub async fn ready<R>(&self, mut attempt: impl FnMut(&mut T) -> Option<R>) -> R {
        std::future::poll_fn(|context| self.poll(context, &mut attempt)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_change_wakes_who_waits_and_patience_ends() {
        let shared = Arc::new(Shared::new(0));
        assert_eq!(shared.wait(Some(Duration::from_millis(1)), |value| (*value > 0).then_some(())), None);
        let other = Arc::clone(&shared);
        let waiter = std::thread::spawn(move || other.wait(None, |value| (*value > 2).then_some(*value)));
        for _ in 0..3 {
            shared.change(|value| *value += 1);
        }
        assert_eq!(waiter.join().unwrap(), Some(3));
        assert_eq!(shared.with(|value| *value), 3);
    }
}
