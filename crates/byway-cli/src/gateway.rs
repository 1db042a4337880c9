//! A gateway on this host: runs it, and reports changes of its peers.

mod peer_news;
pub mod run;

pub use byway_gateway_host::{check, config_file, plumbing};
