//! How other threads get a driver's attention.

use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Makes a driver (the thread that runs a machine) call `Owner::turn` soon. Several wakes before
/// this call cause only one call. To send a message to the owner, put it into a channel first, then
/// wake the driver.
#[derive(Clone, Debug)]
pub struct Waker(Arc<EventFd>);

#[derive(Debug)]
struct EventFd {
    event: OwnedFd,
    rung: AtomicBool,
}

impl Waker {
    pub(crate) fn new() -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self(Arc::new(EventFd { event, rung: AtomicBool::new(false) })))
    }

    /// Rings. Does nothing once the driver has ended.
    pub fn wake(&self) {
        // Whoever finds it rung may leave: the driver has yet to silence it, and looks at its
        // channels after that.
        if !self.0.rung.swap(true, Ordering::AcqRel) {
            // A write of 8 bytes to an eventfd that counts to 2^64 and is read before it is written
            // again cannot fail.
            let _ = rustix::io::write(&self.0.event, &1u64.to_ne_bytes());
        }
    }

    /// Resets the waker on the driver's side: a later ring wakes it again. To be called before the
    /// driver checks why it was woken.
    pub(crate) fn silence(&self) {
        let _ = rustix::io::read(&self.0.event, &mut [0; 8]);
        self.0.rung.swap(false, Ordering::AcqRel);
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.event.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    fn is_ringing(waker: &Waker) -> bool {
        let mut polled = [PollFd::new(waker, PollFlags::IN)];
        poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap() == 1
    }

    #[test]
    fn rings_until_silenced_however_often_it_was_rung() {
        let waker = Waker::new().unwrap();
        assert!(!is_ringing(&waker));
        for _ in 0..1_000 {
            waker.clone().wake();
        }
        assert!(is_ringing(&waker));
        waker.silence();
        assert!(!is_ringing(&waker));
        waker.wake();
        assert!(is_ringing(&waker));
    }
}
