//! What a sink is told, and what it tells.

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
    /// This host.
    pub identity: Identity,
    /// What the ticket says.
    pub permission: Secret<[u8; 16]>,
    /// The names that sources may use, and the keys that may use them. Empty: any name that is not
    /// another key's.
    pub allow: Vec<AllowedSource>,
    /// Where to write.
    pub directory: PathBuf,
    /// Whether what is told as written survives a loss of power.
    pub sync: bool,
    /// Words of the relays at which it registers, so that others reach it through them.
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

/// What a sink tells.
#[derive(Clone, Debug)]
pub enum SinkEvent {
    /// A relay by which sources may come. It takes the word.
    Reachable(GreetedRelay),
    /// A relay by which no source will come.
    UselessRelay(UselessRelay),
    /// A source came.
    Came(Name),
    /// A source is gone: why.
    Gone(Name, String),
    /// A source has a new file: what became of the one before.
    NewFile(Name, FileChange),
    /// Something that a person should know.
    Warning(String),
    /// How the sources do, about once a second.
    Report(Vec<SourceReport>),
}

/// What became of a source's file. A new one is begun, and its first record is the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileChange {
    /// It has another name now.
    Moved,
    /// It has no name any more.
    Deleted,
    /// Its contents were cut off.
    Emptied,
    /// It was moved or deleted while the sink did not run, or the source was away.
    Missing,
}

/// How a source does.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceReport {
    /// Its name.
    pub name: Name,
    /// Bytes of records that were written in the last second or so, per second.
    pub rate: f64,
    /// Bytes per second that it asks for.
    pub demand: u64,
    /// Records that it has and that are not written.
    pub lag: u64,
    /// For how long the oldest of them waits, in seconds.
    pub lag_seconds: f64,
    /// Numbers that have no record, since the file began.
    pub lost: u64,
    /// Records written, since the file began.
    pub written: u64,
    /// Bytes that came over each of its paths.
    pub paths: Vec<(String, u64)>,
}
