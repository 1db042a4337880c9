//! Putting into the kernel what a gateway needs there ([`KernelPlan`]), and taking it out again.
//!
//! [`install`] puts it in place and [`system`] says what about this host stands in the way.
//!
//! **Leftovers** of a gateway that was killed are of no harm. They carry our names and numbers
//! ([`PROTOCOL`](byway_gateway::kernel::PROTOCOL)), so that they are known again. The next start
//! replaces them, or [`remove`] removes them.
//!
//! [`KernelPlan`]: byway_gateway::kernel::KernelPlan

mod install;
pub mod system;

pub use install::{KernelState, install, installed, present, reload, remove};
