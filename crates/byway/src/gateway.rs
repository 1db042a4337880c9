//! A gateway on this host: its configuration, what it installs in the kernel, and the running of it.

pub mod check;
pub mod config;
mod gating;
pub mod plumbing;
pub mod reload;
pub mod report;
pub mod run;
