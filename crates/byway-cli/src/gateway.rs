//! A gateway on this host: what is told of its configuration, what it installs in the kernel, and
//! the running of it.

pub mod check;
mod peer_news;
pub mod plumbing;
pub mod report;
pub mod run;

pub use byway_gateway_host::config_file;
