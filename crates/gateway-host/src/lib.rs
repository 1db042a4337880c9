//! A gateway on this host: what its file says, and the running of it.
//!
//! | module | what it is |
//! |---|---|
//! | [`config_file`] | `gw.toml`: what a gateway is told, and the line of every mistake in it |
//! | [`check`] | what a file means, what is odd about it, and what it would install |
//! | [`gateway_process`] | the machine of `byway-gateway` between sockets and a TUN device |
//! | [`joining`] | a host that asks a gateway to be served |
//! | [`gateway_relays`] | a relay beside the gateway, and relays that a registry offers |
//! | [`plumbing`] | what a gateway installs in the kernel, by `nft` and `ip`, and what this host says to it |
//! | [`config_reload`] | what a gateway takes over of its file while it runs |
//! | [`report_text`] | what a gateway is doing, in words |
//! | [`status_socket`] | where a gateway is asked what it is doing |

pub mod check;
pub mod config_file;
pub mod config_reload;
mod error;
pub mod gateway_process;
pub mod gateway_relays;
pub mod joining;
pub mod plumbing;
mod port_list;
pub mod report_text;
pub mod status_socket;

pub use error::GatewayError;
pub use port_list::with_ports;
