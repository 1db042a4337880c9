//! A device that a driver watches besides its sockets.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

/// A device that has something to read now and then.
#[derive(Clone)]
pub struct DeviceSource(Arc<dyn AsFd + Send + Sync>);

impl DeviceSource {
    /// Watches `device`.
    #[must_use]
    pub fn new(device: Arc<dyn AsFd + Send + Sync>) -> Self {
        Self(device)
    }
}

impl AsFd for DeviceSource {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
