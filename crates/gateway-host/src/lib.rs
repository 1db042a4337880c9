//! A gateway on this host: what its file says, and the running of it.
//!
//! | module | what it is |
//! |---|---|
//! | [`config`] | `gw.toml`: what a gateway is told, and the line of every mistake in it |
//! | [`running`] | the machine of `byway-gateway` between sockets and a TUN device |
//! | [`joining`] | a host that asks a gateway to be served |
//! | [`gateway_relays`] | a relay beside the gateway, and relays that a registry offers |
//! | [`reload`] | what a gateway takes over of its file while it runs |

pub mod config;
mod error;
pub mod gateway_relays;
pub mod joining;
pub mod reload;
pub mod running;

pub use error::GatewayError;
