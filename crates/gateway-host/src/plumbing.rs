//! Installs and removes the kernel state of a gateway. A [`KernelPlan`] describes this state: an
//! nftables table, policy routing rules, and routes.
//!
//! A killed gateway leaves its kernel state behind. The next start or [`remove`] removes these
//! leftovers.
//!
//! [`KernelPlan`]: byway_gateway::kernel::KernelPlan

mod error;
mod install;
mod installed_plan;
pub mod system;

pub use error::PlumbingError;
pub use install::{KernelState, install, installed, present, reload, remove};
pub use installed_plan::InstalledPlan;
