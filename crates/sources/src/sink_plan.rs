//! The settings of a sink, and its events.

use crate::sink_access::AllowedSource;
use crate::source_name::Name;
use byway_engine::Config;
use byway_net::{Listener, Socket};
use byway_transfer::ticket::GreetedRelay;
use byway_transfer::{Identity, Secret, UselessRelay};
use byway_wire::relay::Word;
use std::path::PathBuf;

/// How to take records.
pub struct SinkPlan {
    /// The key pair of this host.
    pub identity: Identity,
    /// The secret in the ticket, which a source must present.
    pub permission: Secret<[u8; 16]>,
    /// The names that sources may use, and their keys. Empty: any name that does not belong to
    /// another key.
    pub allow: Vec<AllowedSource>,
    /// The directory to write into.
    pub directory: PathBuf,
    /// Whether records are reported as written only once they would survive a loss of power.
    pub sync: bool,
    /// The relay words of relays at which the sink registers, so that sources reach it through
    /// them.
    pub relays: Vec<Word>,
    /// For greeting relays.
    pub sockets: Vec<Socket>,
    /// To listen on.
    pub listeners: Vec<Listener>,
    /// How sessions behave.
    pub config: Config,
    /// Bytes of memory for records that came and are not written, of all sources together.
    pub record_memory: usize,
}

/// An event of a sink, for its program.
#[derive(Clone, Debug)]
pub enum SinkEvent {
    /// A relay through which sources may come, with its relay word.
    Reachable(GreetedRelay),
    /// A relay by which no source will come.
    UselessRelay(UselessRelay),
    /// A source connected.
    Came(Name),
    /// A source is gone: why.
    Gone(Name, String),
    /// A source has a new file, and why.
    NewFile(Name, FileChange),
    /// Something that a person should know.
    Warning(String),
    /// How the sources do, about once a second.
    Report(Vec<SourceReport>),
}

/// A change of a source's file. A new file begins with the next record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileChange {
    /// The file was renamed.
    Moved,
    /// The file was deleted.
    Deleted,
    /// The file's contents were cut off.
    Emptied,
    /// The file was moved or deleted while the sink did not run, or while the source was not
    /// connected.
    Missing,
}

/// How a source does.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceReport {
    /// The name of the source.
    pub name: Name,
    /// Bytes of records written per second, over about the last second.
    pub rate: f64,
    /// The rate in bytes per second that the source wants.
    pub demand: u64,
    /// Records that the source has and the sink has not written.
    pub lag: u64,
    /// Time that the oldest unwritten record has waited, in seconds.
    pub lag_seconds: f64,
    /// Numbers that have no record, since the file began.
    pub lost: u64,
    /// Records written, since the file began.
    pub written: u64,
    /// Bytes received over each path of the source. The text is the path's name.
    pub paths: Vec<(String, u64)>,
}
