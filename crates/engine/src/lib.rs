//! The end-to-end session over many paths: sealed packets, recovery per path, streams, objects and datagrams above them.
//!
//! Pure: it is told the time and handed its entropy; datagrams go in, datagrams and deadlines come out.
//!
//! * [`handshake`]: two strangers become a connection; [`seal`]: what makes a packet unreadable and unforgeable.
//! * [`path`]: facts about one path; [`data`]: what the application sends and receives.
//! * [`connection`]: one session over many paths; [`endpoint`]: all sessions of a host, the [`byway_wire::Machine`].
#![no_std]

extern crate alloc;

pub mod config;
pub mod connection;
pub mod data;
pub mod endpoint;
pub mod handshake;
pub mod path;
mod payload;
mod random;
mod role;
pub mod route;
pub mod seal;
mod sure;
pub mod trials;

pub use config::{AckWay, Config, Payload, Pnack, Tau};
pub use connection::{Connection, Standing};
pub use endpoint::{
    Admission, Admit, Connect, ConnectError, Endpoint, EndpointConfig, EndpointEvent, Handle, Reach,
    RelayStatus, RelayTrouble, Unfit,
};
pub use route::{Route, Source, Via};
