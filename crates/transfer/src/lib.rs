//! Files and streams from host to host, and the relays between: the library under `byway send`, `recv`, `ping` and `relay`.
//!
//! A receiver prints a [`Ticket`]. Who holds it may send: the ticket says where the receiver is, which key it has, and what it
//! recognises the ticket by. Both ends have an [`Identity`].
//!
//! ```text
//! sender                                              receiver
//!   HELLO says: version, kind, permission, transfer     the gate lets it in, or says why not
//!   stream 0: the manifest (or the bytes of a pipe) ──>
//!   objects: contents of files, in any order        ──> partial files, verified, put in place
//!                                                   <── stream 1: reports (or the receipt of a pipe)
//!   CLOSE                                           ──>
//! ```
//!
//! An application uses [`Sending`] and [`Receiving`]: start, take [`News`] until it is over, join. `examples/` has both in thirty
//! lines. Nothing here prints, ends the process or handles a signal: what happens is told by values, what fails by [`Error`] and
//! [`TransferError`], and what the other side is told by the codes of [`close`].
//!
//! Two threads per transfer and end. The event loop's must never wait: it runs the endpoint and an owner (`sender`,
//! `receiver`). Disk, pipes and the network meet in channels: files and streams have a thread of their own (`reader`, `writer`;
//! `file_thread` makes small files beside that one). What does not fit into a channel waits in the engine, whose flow control
//! then slows the peer (`outbound`, `inbound`).
//!
//! | question | place |
//! |---|---|
//! | what a HELLO says, and who is let in | `preamble`, `gate` |
//! | what a ticket, a key and a word look like | [`ticket`], [`identity`], [`word`] |
//! | what is kept between runs | [`state`] |
//! | which addresses are sent from, and which come and go | [`sockets`], `uplinks` |
//! | why nobody answers | `ways`, `unreached` |
//! | why a transfer is not faster | `pause_reason` |
//! | when a receiver was started anew | `probe` |
//! | how a relay runs | `relaying` |

mod buffers;
mod channel;
pub mod close;
mod endpoint;
mod error;
mod event_loop;
mod expire;
mod file_thread;
mod gate;
mod greeting;
pub mod identity;
mod inbound;
mod limit;
mod marking;
mod memory;
mod names;
mod news;
mod outbound;
mod pause_reason;
mod ping;
mod preamble;
mod probe;
mod reader;
mod received;
mod receiver;
mod relaying;
pub mod secret;
mod sender;
pub mod sockets;
mod start;
pub mod state;
mod tally;
pub mod ticket;
mod unreached;
mod uplinks;
mod ways;
pub mod word;
mod writer;

pub use error::{Error, NotConnected, TransferError};
pub use event_loop::EventLoop;
pub use gate::{Gate, Refusal, Taken, TicketOwner};
pub use greeting::greet_relays;
pub use identity::Identity;
pub use marking::default_dscp;
pub use memory::receiving_config;
pub use names::route_name;
pub use news::News;
pub use pause_reason::PauseReason;
pub use ping::{PingPlan, Pinged, Pings, ping};
pub use preamble::{Kind, Preamble, PreambleError};
pub use received::{BrokenOff, Destination, Received};
pub use receiver::{Receiving, ReceivingPlan};
pub use relaying::{RelayNews, Relaying, RelayingPlan};
pub use secret::Secret;
pub use sender::{Sending, SendingPlan, Sent};
pub use start::Payload;
pub use tally::{Origin, PathTally, Tally};
pub use ticket::Ticket;
pub use ways::{Heard, Tried};
