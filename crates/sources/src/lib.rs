//! Live sources: programs that give records all the time, at a rate that they ask for, and a sink that writes them down.
//!
//! ```text
//! source                                             sink
//!   HELLO of the session: protocol, permission         the gate lets it in, or says why not
//!   stream 0: HELLO, FROM, RECORD…, BEAT, END   ──>    DIR/NAME: each record once, in order
//!                                               <──    stream 1: WELCOME, WRITTEN…
//! ```
//!
//! A source has one session, whose paths are TCP connections: to the sink itself, or by relays. Its rates are those of the rate
//! controller of Wang et al. ([`byway_control::wang`]). It keeps a record until the sink says that it has written it.
//!
//! | question | place |
//! |---|---|
//! | how input is cut into records | [`cut`] |
//! | what source and sink say to each other | [`message`] |
//! | which records a source keeps, and which it gives up | [`kept`] |
//! | what a sink knows of a source's file after a restart | [`note`] |
//! | which rate each path has | `rate` |
//! | when a record may leave | `bucket` |
//! | which TCP connections there are | `dials` |
#![warn(clippy::print_stdout, clippy::print_stderr, clippy::exit)]

mod bucket;
pub mod cut;
mod dials;
mod endpoint;
mod files;
mod gate;
mod input;
pub mod kept;
pub mod message;
mod name;
pub mod note;
mod plan;
mod rate;
mod running;
mod sink;
mod source;
mod standing;
mod ways;

pub use files::prepare;
pub use input::{Feed, Input, InputError, Wakers, read};
pub use name::{Name, NameError};
pub use plan::{Held, SourceError, SourceNews, SourcePlan};
pub use rate::PathView;
pub use running::Running;
pub use sink::{Sink, SinkNews, SinkPlan, SourceReport};
pub use source::Source;
pub use standing::{PathStanding, Standing};

/// The name of what source and sink speak.
pub const PROTOCOL: &str = "byway-source/1";
/// Bytes of the longest record.
pub const LONGEST: usize = 1 << 20;
