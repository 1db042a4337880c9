//! Installs in the kernel what a gateway needs there ([`KernelPlan`]), and removes it again.
//!
//! [`install`] installs a plan. [`system`] reports which settings of this host would keep a gateway
//! from working.
//!
//! **Leftovers** of a gateway that was killed do no harm. Their names and numbers are fixed
//! ([`PROTOCOL`](byway_gateway::kernel::PROTOCOL)), so that byway recognises them. The next start
//! replaces them, or [`remove`] removes them.
//!
//! [`KernelPlan`]: byway_gateway::kernel::KernelPlan

mod install;
pub mod system;

pub use install::{KernelState, install, installed, present, reload, remove};
