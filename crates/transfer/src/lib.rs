//! Files and streams from host to host, and the relays between them. `byway send`, `recv`, `ping` and `relay` use this library.
//!
//! A receiver makes a [`Ticket`]. The ticket names the receiver's addresses and its key, and holds a permission. Its holder
//! may send. Each side has an [`Identity`]: a key pair.
//!
//! ```no_run
//! use byway_transfer::{Identity, News, Payload, Sending, SendingPlan};
//! use std::time::Duration;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let ticket = std::env::var("TICKET")?.parse()?;
//! let payload = Payload::Tree { paths: vec!["photos".into()], keep_modes: false };
//! let sending = Sending::start(SendingPlan::new(Identity::generate()?, ticket, payload)?)?;
//! while !sending.is_over() {
//!     if let Some(News::Progress(tally)) = sending.next(Duration::from_millis(100)) {
//!         println!("{} bytes have arrived", tally.bytes);
//!     }
//! }
//! sending.join()?.outcome?;
//! # Ok(())
//! # }
//! ```
//!
//! `examples/` has a sender and a receiver that are complete programs.
//!
//! Nothing here prints, ends the process or handles a signal. [`News`] tells the application what happens. [`Error`] and
//! [`TransferError`] tell what failed. The codes of [`close`] tell the other side.
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
//! Each end of a transfer has an event loop on a thread of its own. It runs the endpoint and an owner (`sender`, `receiver`), and
//! never waits for a disk. A second thread reads (`reader`) or writes (`writer`), and a third makes small files (`file_thread`).
//! Bounded channels connect the threads (`channel`, `outbound`, `inbound`). What does not fit into a channel stays in the engine,
//! and flow control slows the peer.
//!
//! | question | place |
//! |---|---|
//! | what a HELLO says, and who is let in | `preamble`, [`application`], `gate` |
//! | what a ticket, a key and a word look like | [`ticket`], [`identity`], [`byway_wire::word`] |
//! | what is kept between runs | [`state`] |
//! | which addresses are sent from, and which come and go | [`sockets`], `uplinks` |
//! | when TCP takes the place of UDP, and where it comes in | `dialers`, `dialing`, `relay_dialing`, `entrance` |
//! | why nobody answers | `ways`, `unreached`, [`NoAnswer`] |
//! | why a transfer is not faster | `pause_reason` |
//! | when a receiver was started anew | `probe` |
//! | how programs' connections are forwarded, and who keeps the session | `forwarding`, `exits`, `byway_forward_host` |
//! | how a relay runs, and how an end host lends its line | `relaying`, [`lending`] |
#![warn(clippy::print_stdout, clippy::print_stderr, clippy::exit)]

pub mod address;
pub mod application;
mod buffers;
mod cap;
mod channel;
pub mod close;
mod dialers;
mod dialing;
mod endpoint;
mod entrance;
mod error;
mod event_loop;
mod exits;
mod expire;
mod file_thread;
mod forwarding;
mod gate;
mod greeting;
pub mod identity;
mod inbound;
pub mod lending;
mod limit;
mod marking;
mod memory;
mod names;
mod news;
mod no_answer;
mod outbound;
mod path_news;
mod pause_reason;
mod ping;
mod preamble;
mod probe;
pub mod reach;
mod reader;
mod received;
mod receiver;
pub mod registry;
mod relay_dialing;
mod relaying;
mod relays;
mod sender;
pub mod sockets;
mod start;
pub mod state;
mod tally;
pub mod ticket;
pub mod units;
mod unreached;
mod uplinks;
mod warnings;
mod ways;
pub mod words;
mod writer;

pub use byway_files::Shown;
pub use byway_wire::secret::{self, Secret};
pub use dialers::Dialers;
pub use entrance::Entrance;
pub use error::{Error, NotConnected, TransferError};
pub use event_loop::EventLoop;
pub use forwarding::{ForwardTally, Forwarding, ForwardingPlan};
pub use gate::TicketOwner;
pub use greeting::greet_relays;
pub use identity::Identity;
pub use marking::default_dscp;
pub use memory::receiving_config;
pub use names::{carrier, route_name};
pub use news::News;
pub use no_answer::NoAnswer;
pub use path_news::PathNews;
pub use pause_reason::{Circumstances, PauseReason};
pub use ping::{PingPlan, Pinged, Pings, ping};
pub use preamble::{Kind, Preamble, PreambleError, Said};
pub use received::{BrokenOff, Destination, Received};
pub use receiver::{Receiving, ReceivingPlan};
pub use relay_dialing::RelayDialer;
pub use relaying::{
    Enrolment, Kept, KeptRange, LendLine, NotKept, RelayNews, Relayed, Relaying, RelayingPlan, listeners,
};
pub use relays::RelayTally;
pub use sender::{Sending, SendingPlan, Sent};
pub use start::Payload;
pub use tally::{Amount, Counter, Origin, PathTally, Tally};
pub use ticket::Ticket;
pub use unreached::not_connected;
pub use uplinks::Uplinks;
pub use ways::{Heard, Tried, Ways};
