//! The control that other threads hold of a driver.

use crate::statistics::{Counters, Statistics};
use crate::waker::Waker;
use crate::watched_fds::Watch;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The handle of one driver for other threads: its waker, its list of watched descriptors, its stop
/// switch and its counts. If the owner's threads need the waker before the driver runs, make the
/// control first.
#[derive(Clone, Debug)]
pub struct Control {
    waker: Waker,
    watch: Watch,
    shared: Arc<DriverFlags>,
}

#[derive(Debug, Default)]
struct DriverFlags {
    stop: AtomicBool,
    counters: Counters,
}

impl Control {
    /// Makes the control of a driver that will run later. With it, other threads wake, watch and
    /// stop the driver.
    ///
    /// # Errors
    ///
    /// The system's error if it refuses an eventfd or epoll descriptor, for example because too
    /// many files are open.
    pub fn new() -> io::Result<Self> {
        Ok(Self { waker: Waker::new()?, watch: Watch::new()?, shared: Arc::default() })
    }

    /// Returns the waker, which wakes the driver for a turn of the owner. It can be cloned.
    #[must_use]
    pub fn waker(&self) -> &Waker {
        &self.waker
    }

    /// Returns the watch. The owner gets its ready descriptors by [`ready`](crate::Owner::ready).
    /// It can be cloned.
    #[must_use]
    pub fn watch(&self) -> &Watch {
        &self.watch
    }

    /// Ends the driver soon, and returns without waiting for the end. The driver runs one more
    /// turn. Then it sends the last datagrams of the machine, as far as the sockets take them
    /// without waiting, and ends.
    pub fn stop(&self) {
        self.shared.stop.store(true, Ordering::Release);
        self.waker.wake();
    }

    /// The counters of the driver so far.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.shared.counters.read()
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.shared.stop.load(Ordering::Acquire)
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.shared.counters
    }
}
