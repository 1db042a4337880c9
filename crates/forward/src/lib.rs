//! TCP connections of local programs travel as streams of a session: `byway forward`.
//!
//! A program connects to a local port of the *entry*. The *exit*, at the other end of the session,
//! connects to the target.
//!
//! ```text
//! program ──TCP── entry ══ one stream of the session, over many paths ══ exit ──TCP── target
//!                   REQUEST: the target            ──>
//!                   <──                                ANSWER: connected, or why not
//!                   bytes                          <──> bytes
//! ```
//!
//! | module | what it is |
//! |---|---|
//! | [`forward_target`] | where a connection is to lead: a host and a port |
//! | [`local_port`] | which local port leads to which target, as a person writes it |
//! | [`allow_rules`] | what an exit may dial: a pure function of rules, target and address |
//! | [`stream_request`] | what stands at the beginning of a stream |
//! | [`socks`] | SOCKS5 as programs speak it to the entry |
//! | [`splice`] | a socket and a stream become one connection: ends, resets and back-pressure pass both ways |
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod allow_rules;
pub mod forward_target;
pub mod local_port;
pub mod socks;
pub mod splice;
pub mod stream_request;
