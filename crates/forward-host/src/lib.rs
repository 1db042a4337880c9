//! Forwards that run: what [`byway_forward`] says, with sockets of this host.
//!
//! | module | what it is |
//! |---|---|
//! | [`entry`] | listens for programs, and opens a stream for each connection |
//! | [`exit`] | dials the targets that streams ask for, if they are allowed |
//! | `dial`, `resolver` | a target's addresses in turn; names, looked up by threads of their own |
//! | `line` | the stream of a program's connection |
//! | `nonblocking_tcp` | a connection of TCP that blocks nobody |
//! | `connection_slots` | connections by number, those whose turn it is, those whose time is up |
//!
//! Entry and exit belong to the owner of an endpoint and live on its thread. The driver's
//! [`Watch`](byway_net::Watch) tells which sockets are ready, so a turn costs what happened, and
//! not what is open.
#![warn(clippy::print_stdout, clippy::print_stderr, clippy::exit)]

mod connection_slots;
pub mod entry;
pub mod exit;
mod forwarded_stream;
mod nonblocking_tcp;
mod resolver;
mod target_dial;

pub use entry::{Entry, EntryEvent, Listener, Listening};
pub use exit::Exit;
pub use nonblocking_tcp::ByteCounts;
