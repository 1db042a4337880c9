//! Transfers files and streams from host to host, and runs relays, for `byway send`, `recv`, `ping`
//! and `relay`. A receiver makes a [`Ticket`]. Whoever has the ticket may send.
//!
//! ```no_run
//! use byway_transfer::{Identity, Payload, Sending, SendingPlan, SourceOptions, TransferEvent};
//! use std::{sync::Arc, time::Duration};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let ticket = std::env::var("TICKET")?.parse()?;
//! let payload = Payload::Tree {
//!     paths: vec!["photos".into()],
//!     options: SourceOptions::default(),
//!     selection: Arc::default(), // all of them
//! };
//! let sending = Sending::start(SendingPlan::new(Identity::generate()?, ticket, payload)?)?;
//! while !sending.is_over() {
//!     if let Some(TransferEvent::Progress(tally)) = sending.next(Duration::from_millis(100)) {
//!         println!("{} bytes have arrived", tally.bytes);
//!     }
//! }
//! sending.join()?.outcome?;
//! # Ok(())
//! # }
//! ```
//!
//! `examples/` has a complete sender and a complete receiver.
//!
//! ```text
//! sender                                              receiver
//!   HELLO says: version, kind, permission, transfer     lets the sender in, or says why not
//!   stream 0: the manifest (or the bytes of a pipe) ──>
//!   objects: contents of files, in any order        ──> partial files, verified, put in place
//!                                                   <── stream 1: reports (or the receipt of a pipe)
//!   CLOSE                                           ──>
//! ```
//!
//! The event loop never waits for a disk: other threads read and write files. A full channel
//! between threads slows the peer.
//!
//! | question | place |
//! |---|---|
//! | what a HELLO says, and who is let in | `hello_preamble`, [`application_protocol`], `receiver/access`, [`AllowedSender`] |
//! | what a ticket, a key and a word look like | [`ticket`], [`identity`], [`byway_wire::checked_text`] |
//! | what is kept between runs | [`state_directory`] |
//! | which receivers have names, and what replaces defaults | [`settings`] |
//! | which addresses are sent from, and which come and go | [`local_address`], [`sockets`], `session/uplinks` |
//! | how a session is begun and kept | [`SessionKeeper`] |
//! | which names are looked up, when, and what they may lead to | [`host_name`], `session/name_lookup` |
//! | when TCP takes the place of UDP, and where it comes in | `session/dialers`, `session/tcp_dialer`, `tcp_entrance` |
//! | why nobody answers | `session/connect_attempts`, `session/unreached`, [`NoAnswer`] |
//! | why a transfer is not faster | `progress/limiting_factor` |
//! | when a receiver has forgotten a session | `session/restart_check` |
//! | which limits hold at which time, and who changes them | [`limits`], [`LimitChoice`], [`EventLoop::set_limits`] |
//! | how programs' connections are forwarded | `forwarding`, `forward_exit`, `byway_forward_host` |
//! | how standard input and output are one such connection | `pipe_bridge` |
//! | what runs on this host, and what ran | [`host_status`] |
//! | how a relay runs, and how an end host lends its line | `relaying`, [`lending`] |
#![warn(clippy::print_stdout, clippy::print_stderr, clippy::exit)]

pub mod address;
mod allowed_sender;
pub mod application_protocol;
mod buffers;
pub mod close;
mod directory_lock;
mod disk;
mod endpoint;
mod error;
mod event_loop;
mod events;
mod expired_leftovers;
mod forward_exit;
mod forwarding;
mod hello_preamble;
pub mod host_name;
pub mod host_status;
pub mod identity;
mod inbound_relays;
mod inbound_transfer;
pub mod lending;
pub mod limits;
pub mod local_address;
mod marking;
mod outbound_transfer;
#[cfg(feature = "pairing")]
pub mod pairing;
mod path_names;
mod ping;
mod pipe_bridge;
mod progress;
pub mod reachability;
mod receiver;
pub mod receiver_addresses;
pub mod registry;
mod relaying;
pub mod resume_command;
pub mod secret_words;
mod sender;
mod sender_start;
mod session;
mod session_log;
pub mod session_seats;
pub mod settings;
pub mod sockets;
pub mod state_directory;
mod tcp_entrance;
pub mod ticket;
pub mod units;
mod warnings;

pub use allowed_sender::{AllowedSender, AllowedSenderError};
pub use byway_files::{LookedAt, NotCopied, Printable, SourceOptions, TrashName};
pub use byway_wire::secret::{self, Secret};
pub use directory_lock::{DirectoryLock, DirectoryLockError};
pub use endpoint::endpoint;
pub use error::{Error, NotConnected, TransferError};
pub use event_loop::news_channel::{Interrupter, NewsReceiver, NewsSender, hung_up, news_channel};
pub use event_loop::{EventLoop, Requests};
pub use events::TransferEvent;
pub use forwarding::{Forwarding, ForwardingPlan};
pub use hello_preamble::{ConnectionPurpose, FirstMessage, Preamble, PreambleError};
pub use host_name::{HostName, NamedAddress};
pub use identity::Identity;
pub use inbound_relays::{StandingRelays, UselessRelay};
pub use limits::limit_choice::{LimitChoice, LimitWish, LimitedDirection};
pub use limits::memory_limit::{receiving_config, receiving_window};
pub use marking::default_dscp;
pub use path_names::{carrier, route_name};
pub use ping::{PingPlan, PingSummary, Pings, ping};
pub use pipe_bridge::PipedConnection;
pub use progress::cost_to_others::CostToOthers;
pub use progress::limiting_factor::{Circumstances, PauseReason};
pub use progress::{
    ForwardCounters, PathCounters, ProgressCounter, TransferAmount, TransferId, TransferProgress,
};
pub use receiver::access::TicketOwner;
pub use receiver::received_output::{Destination, PartialTransfer, ReceivedTransfer, ReceivingDirectory};
pub use receiver::relays::{GreetedRelays, greet_relays};
pub use receiver::{Receiving, ReceivingPlan};
pub use relaying::{
    CountersReader, Enrolment, KeptRange, LendLine, ListedWord, MAX_NAMED_WORDS, NAMED_WORD_LIFETIME,
    NamedRelayWord, NamedRelayWords, NoWordList, NotKept, RelayReport, RelayRunEvent, RelaySummary, Relaying,
    RelayingPlan, SavedState, WORD_CHANGE_TIME, WordLimits, WordName, WordNameError, WordOperator,
    WordOperatorError, WordUse, listeners,
};
pub use sender::{Sending, SendingPlan, SentTransfer};
pub use sender_start::Payload;
pub use session::connect_attempts::{AttemptPlace, AttemptReply, AttemptResult, ConnectAttempts};
pub use session::dialers::{Dialers, PeerPlace, TcpUse};
pub use session::keeper::{KnownRelay, LostSession, SessionClose, SessionEvent, SessionKeeper, SessionPlan};
pub use session::name_lookup::{NameStep, NoAddress};
pub use session::no_answer::NoAnswer;
pub use session::not_connected::not_connected;
pub use session::path_changes::PathChanges;
pub use session::relay_outcomes::RelayOutcome;
pub use session::tcp_dialer::{RetryDelays, TcpDialer};
pub use session::ticket_destinations::looked_up_destinations;
pub use session::uplinks::Uplinks;
pub use session_log::SessionLog;
pub use tcp_entrance::Entrance;
pub use ticket::Ticket;
