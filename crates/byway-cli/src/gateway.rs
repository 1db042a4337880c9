//! A gateway on this host: the running of it, and what is told of its peers.

mod peer_news;
pub mod run;

pub use byway_gateway_host::{check, config_file, plumbing};
