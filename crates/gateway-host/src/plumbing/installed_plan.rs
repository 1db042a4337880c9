//! A plan that is in the kernel for as long as a value lives.

use super::error::Result;
use super::install::{install, remove};
use byway_gateway::kernel::KernelPlan;

/// The kernel state that a gateway installed. Removed when this value is dropped.
pub struct InstalledPlan(KernelPlan);

impl InstalledPlan {
    /// Installs `plan`, as [`install`] does.
    ///
    /// # Errors
    /// As [`install`].
    pub fn new(plan: KernelPlan) -> Result<Self> {
        install(&plan)?;
        Ok(Self(plan))
    }
}

impl Drop for InstalledPlan {
    fn drop(&mut self) {
        // What cannot be taken out is of no harm without the device, and replaced by the next
        // gateway.
        let _ = remove(&self.0);
    }
}
