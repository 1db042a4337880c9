//! The end-to-end session over many paths: encrypted and authenticated packets, loss recovery per
//! path, and streams, objects and datagrams.
//!
//! This crate does no I/O and reads no clock. The caller passes in the time, a random seed and the
//! datagrams that arrived. The caller takes out datagrams to send, and the time of the next call.
//!
//! | module | what it is |
//! |---|---|
//! | [`handshake`] | how two hosts set up a connection |
//! | [`seal`] | encryption of packets |
//! | [`path`] | what is known of one path, for instance its RTT |
//! | `path_choice` | path choice as others do it, for studies |
//! | [`data`] | what the application sends and receives |
//! | [`connection`] | one session over many paths |
//! | [`endpoint`] | all sessions of a host, as a state machine ([`byway_wire::Machine`]) |
#![no_std]

extern crate alloc;

pub mod carrier_trials;
pub mod config;
pub mod connection;
pub mod data;
pub mod endpoint;
pub mod handshake;
mod invariant;
mod numbered_map;
pub mod path;
#[cfg(feature = "studies")]
pub mod path_choice;
mod payload_kind;
mod random;
mod role;
pub mod route;
pub mod seal;

pub use config::{AckPathRule, Config, Payload, Pnack, Tau};
pub use connection::{Connection, RelayState};
pub use endpoint::{
    AddressProblem, Admission, Admit, Connect, ConnectError, Endpoint, EndpointConfig, EndpointEvent, Handle,
    Reachable, RelayRoute, RelayStatus, RelayTrouble,
};
pub use route::{PacketSource, Route, Via};
