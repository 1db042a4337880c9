//! Forwards TCP connections through a session ([`byway_forward`]), with sockets of this host. The
//! entry accepts connections of local programs. The exit, on the other host, connects to the
//! targets that they ask for.
//!
//! | module | what it is |
//! |---|---|
//! | [`entry`] | listens for programs, and opens a stream for each connection |
//! | [`exit`] | dials the targets that streams ask for, if they are allowed |
//! | [`target_dial`] | dials the addresses of a target in turn |
//! | [`socks_dialog`] | what a program asks for by SOCKS5 |
//! | [`resolver`] | looks host names up, in threads of its own |
//! | `name_lookup_queue` | which sender's host name is looked up next |
//! | `forwarded_stream` | the stream of a program's connection |
//! | [`nonblocking_tcp`] | a TCP connection whose calls do not block |
//! | `connection_shares` | which sender may have another connection |
//! | [`connection_slots`] | connections by number, those whose turn it is, those whose time is up |
//!
//! Entry and exit run on the thread of an endpoint's event loop. The loop's
//! [`Watch`](byway_net::Watch) tells which sockets are ready.
#![warn(clippy::print_stdout, clippy::print_stderr, clippy::exit)]

mod connection_shares;
pub mod connection_slots;
pub mod entry;
pub mod exit;
mod forwarded_stream;
mod name_lookup_queue;
pub mod nonblocking_tcp;
pub mod resolver;
pub mod socks_dialog;
pub mod target_dial;

pub use entry::{Entry, EntryEvent, Listener, Listening};
pub use exit::Exit;
pub use nonblocking_tcp::ByteCounts;
