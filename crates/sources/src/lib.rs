//! Live sources: programs that send records all the time, and a sink that writes these to files.
//! Each source says how many bytes per second it wants to send.
//!
//! ```text
//! source                                             sink
//!   HELLO of the session: protocol, permission         the gate lets it in, or says why not
//!   stream 0: HELLO, FROM, RECORD…, BEAT, END   ──>    DIR/NAME: each record once, in order
//!                                               <──    stream 1: WELCOME, WRITTEN…
//! ```
//!
//! A source has one session, whose paths are TCP connections, directly or through relays. The
//! controller of Wang et al. ([`byway_control::wang`]) sets the paths' rates. A source keeps each
//! record until the sink has written it.
//!
//! | question | place |
//! |---|---|
//! | how input is cut into records | [`record_framing`] |
//! | what source and sink say to each other | [`message`] |
//! | how much a sink holds of what is not written | `memory_budget` |
//! | how a source's numbers follow those of the sink | `numbering` |
//! | which records a source keeps, and which it gives up | [`record_buffer`] |
//! | what a sink knows of a source's file after a restart | [`checkpoint`] |
//! | which rate each path has | `rate` |
//! | when a record may leave, and when one may come | `rate_limiter`, `input_limit` |
//! | which relays a source uses, and what it says of them | `relay_choice`, `relay_warnings` |
//! | how a session is kept, and which TCP connections there are | [`byway_transfer::SessionKeeper`] |
#![warn(clippy::print_stdout, clippy::print_stderr, clippy::exit)]

pub mod checkpoint;
mod connected_source;
mod endpoint;
mod error;
mod input_limit;
mod memory_budget;
pub mod message;
mod numbering;
mod rate;
mod rate_limiter;
pub mod record_buffer;
pub mod record_framing;
mod record_input;
mod relay_choice;
mod relay_warnings;
mod session_writer;
mod sink;
mod sink_access;
mod sink_file;
mod sink_files;
mod sink_plan;
mod source;
mod source_event;
mod source_name;
mod source_plan;
mod source_status;
mod told_once;

pub use error::SourceError;
pub use rate::{ControllerReading, PathRates, RateRule};
pub use record_input::{Feed, Input, InputError, Wakers, read};
pub use sink::Sink;
pub use sink_access::AllowedSource;
pub use sink_files::prepare;
pub use sink_plan::{FileChange, SinkEvent, SinkPlan, SourceReport};
pub use source::Source;
pub use source_event::SourceEvent;
pub use source_name::{Name, NameError};
pub use source_plan::{OverflowPolicy, SourcePlan};
pub use source_status::{PathStanding, SourceStatus};

/// The name of the protocol that source and sink speak.
pub const PROTOCOL_NAME: &str = "byway-source/1";
/// Bytes of the longest record.
pub const MAX_RECORD_LEN: usize = 1 << 20;
/// The greatest number of a record, counted from 0: with a million records a second it is reached
/// after nine years.
pub const MAX_NUMBER: u64 = 1 << 48;
