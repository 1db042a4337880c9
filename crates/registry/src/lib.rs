//! The registry: relays enrol in it, and senders ask it for relays to try.
//!
//! [`Registry`] is a [`Machine`](byway_wire::Machine). Requests are records ([`message`]) on
//! streams of byway sessions. Heartbeats and tests of relays are single datagrams on the same port.
//! The machine never waits for its store: it emits [requests](store::StoreRequest) and takes the
//! answers later.
//!
//! | module | what it is |
//! |---|---|
//! | [`word`] | what joins a relay to a registry, and what a sender asks with |
//! | [`message`], [`stream_records`] | what is said on streams, and how it is framed |
//! | [`store`] | what is kept, and the requests for it |
//! | [`relay_directory`] | the relays that are known: who is alive, tested, listed |
//! | [`relay_draw`], [`grant_minting`] | which relays a client is told of, and what it may use of them: pure functions |
//! | [`relay_tests`] | a packet exchange through a relay before it is listed |
//! | [`registry`] | the machine |
//! | [`registry_client`] | the other side: enrolment and question in a session of one's own endpoint |
//! | [`complaints`] | which relays a sender complains of, and when |
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod complaints;
pub mod grant_minting;
pub mod message;
pub mod registry;
pub mod registry_client;
pub mod relay_directory;
pub mod relay_draw;
pub mod relay_tests;
pub mod secrets;
pub mod store;
pub mod stream_records;
pub mod word;

pub use registry::{LogEvent, Registry, RegistryConfig, RegistryCounters};
