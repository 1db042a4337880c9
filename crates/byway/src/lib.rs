//! Encrypted, authenticated streams between two hosts, over many paths at once: from each local
//! address, and through relays.
//!
//! A listener's [`Ticket`] holds its addresses, its public key, and a secret. Whoever holds the
//! ticket may connect, so send its text over a trusted channel.
//!
//! ```
//! use std::io::{Read, Write};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//! // One host listens, and prints its ticket.
//! let config = byway::Config::new().protocol("greeting/1")?;
//! # let config = config.bind(["127.0.0.1:0".parse()?]);
//! let listener = byway::Endpoint::listen(config.clone())?;
//! let ticket = listener.ticket().to_string();
//! # let server = std::thread::spawn(move || -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//! let peer = listener.accept()?;
//! let mut stream = peer.accept_stream()?;
//! let mut heard = String::new();
//! stream.read_to_string(&mut heard)?;
//! write!(stream, "{heard} to you")?;
//! stream.finish()?; // waits until the other application has read it
//! # Ok(()) });
//!
//! // The other connects.
//! let peer = byway::connect_with(&ticket.parse()?, config)?;
//! let mut stream = peer.open_stream()?;
//! stream.write_all(b"good morning")?;
//! stream.shutdown()?; // what was written is all
//! let mut answer = String::new();
//! stream.read_to_string(&mut answer)?;
//! assert_eq!(answer, "good morning to you");
//! peer.close()?;
//! # server.join().unwrap()?;
//! # Ok(())
//! # }
//! ```
//!
//! All calls block, as in [`std::net`]. With the feature `tokio`, waiting methods have an `_async`
//! form.
//!
//! | data | delivery |
//! |---|---|
//! | streams | in order; with the feature `tokio` they are `AsyncRead` and `AsyncWrite` |
//! | objects ([`Peer::send_object`]) | the bytes of an object come in any order |
//! | datagrams ([`Peer::send_datagram`]) | may be lost |
//!
//! | what | how it ends |
//! |---|---|
//! | [`SendStream::finish`] | waits until the peer's application has read all |
//! | [`SendStream::shutdown`] | the peer will read to the end; nobody waits |
//! | a [`SendStream`] is dropped before | the stream is reset, and the peer reads an error |
//! | [`Peer::close`] | waits for all that was finished, then ends the connection |
//! | [`Peer::abort`] | ends it at once |
#![warn(clippy::print_stdout, clippy::print_stderr, clippy::exit)]

mod config;
/// Records that the libraries of both sides exchange. Public for fuzzing only, and not part of the
/// stable interface.
#[doc(hidden)]
pub mod control_records;
mod datagrams;
mod endpoint;
mod error;
mod event_loop;
mod listener_access;
mod loop_commands;
mod loop_objects;
mod object;
mod path_status;
mod peer;
mod receive_queue;
mod session;
mod shared_buffers;
mod shared_object;
mod shared_stream;
mod shared_value;
mod stream;
mod stream_pump;
mod uninit_buffer;

use byway_transfer::looked_up_destinations;

pub use byway_transfer::identity::PublicKey;
pub use byway_transfer::{Identity, PauseReason, Secret, Ticket};
pub use byway_wire::relay::Word;
pub use config::{Config, Priority};
pub use datagrams::DatagramError;
pub use endpoint::Endpoint;
pub use error::{
    ConnectError, ConnectionError, Error, NotConnected, ProtocolNameError, StartError, StreamError,
};
pub use object::{IncomingObject, Piece, SentObject};
pub use path_status::{PathState, PathStatus};
pub use peer::Peer;
pub use shared_object::ObjectError;
pub use stream::{RecvStream, SendStream, Stream};

/// Connects to the listener that gave `ticket`, with the default [`Config`]: a new key, and every
/// address of this host that leads to the listener. [`connect_with`] takes another.
///
/// # Errors
/// Nobody answers, or the listener refuses: [`ConnectError`] tells them apart.
///
/// ```no_run
/// use std::io::Write;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let peer = byway::connect(&std::env::var("TICKET")?.parse()?)?;
/// let mut stream = peer.open_stream()?;
/// stream.write_all(b"hello")?;
/// stream.finish()?;
/// # Ok(())
/// # }
/// ```
pub fn connect(ticket: &Ticket) -> Result<Peer, ConnectError> {
    connect_with(ticket, Config::new())
}

/// Connects to the listener that made `ticket`.
///
/// # Errors
/// Nobody answers, or the listener refuses: [`ConnectError`] tells them apart.
pub fn connect_with(ticket: &Ticket, config: Config) -> Result<Peer, ConnectError> {
    Endpoint::towards(ticket, config, |ticket, relays| looked_up_destinations(ticket, relays, None))?
        .connect(ticket)
}

/// The async form of [`connect_with`].
///
/// # Errors
/// As there.
#[cfg(feature = "tokio")]
pub async fn connect_async(ticket: &Ticket, config: Config) -> Result<Peer, ConnectError> {
    // Nothing may block here. The attempt looks the ticket's names up.
    Endpoint::towards(ticket, config, Ticket::destinations)?.connect_async(ticket).await
}

/// The examples of the page compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
