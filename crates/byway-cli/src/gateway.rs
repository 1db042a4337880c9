//! A gateway on this host: what is told of its configuration, and the running of it.

pub mod check;
mod peer_news;
pub mod report;
pub mod run;

pub use byway_gateway_host::{config_file, plumbing};
