//! Installs the kernel state of a gateway, and removes it again. A [`KernelPlan`] describes this
//! state: a table of nftables, rules of policy routing, and routes.
//!
//! [`system`] reports which settings of this host would keep a gateway from working.
//!
//! A killed gateway leaves its kernel state behind. The next start replaces these **leftovers**, or
//! [`remove`] removes them. Leftovers have fixed names and numbers, such as the routing protocol
//! number [`PROTOCOL`](byway_gateway::kernel::PROTOCOL).
//!
//! [`KernelPlan`]: byway_gateway::kernel::KernelPlan

mod install;
pub mod system;

pub use install::{KernelState, install, installed, present, reload, remove};
