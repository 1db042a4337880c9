//! The events that a source tells its program.

use crate::source_status::SourceStatus;
use byway_transfer::NameStep;

/// An event of a source, for its program.
#[derive(Debug)]
pub enum SourceEvent {
    /// The sink accepts records, and has this number of them so far.
    Connected(u64),
    /// The number of records at the sink from another run with the same name and key, which wrote
    /// while this source was away. This source's records follow them.
    ForeignRecords(u64),
    /// The session is over, and is begun again: why.
    Away(String),
    /// Something that a person should know.
    Warning(String),
    /// A step in looking up a name of the sink.
    Name(NameStep),
    /// The source's state, about once a second.
    Report(SourceStatus),
}
