//! The end-to-end session over many paths: sealed packets, recovery per path, streams, objects and
//! datagrams above them.
//!
//! Pure: it is told the time and handed its entropy; datagrams go in, datagrams and deadlines come
//! out.
//!
//! * [`handshake`]: two strangers become a connection; [`seal`]: what makes a packet unreadable and
//!   unforgeable.
//! * [`path`]: facts about one path; [`data`]: what the application sends and receives.
//! * [`connection`]: one session over many paths; [`endpoint`]: all sessions of a host, the
//!   [`byway_wire::Machine`].
#![no_std]

extern crate alloc;

pub mod carrier_trials;
pub mod config;
pub mod connection;
pub mod data;
pub mod endpoint;
pub mod handshake;
mod invariant;
pub mod path;
mod payload_kind;
mod random;
mod role;
pub mod route;
pub mod seal;

pub use config::{AckPathRule, Config, Payload, Pnack, Tau};
pub use connection::{Connection, RelayState};
pub use endpoint::{
    AddressProblem, Admission, Admit, Connect, ConnectError, Endpoint, EndpointConfig, EndpointEvent, Handle,
    RelayRoute, RelayStatus, RelayTrouble,
};
pub use route::{PacketSource, Route, Via};
