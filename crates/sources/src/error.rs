//! Why a source ends before its input does.

use crate::record_input::InputError;
use std::sync::Arc;

/// Why a source ends before its input does.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The input gives no records.
    #[error(transparent)]
    Input(Arc<InputError>),
    /// The sink does not admit the source, for this reason.
    #[error("the sink refuses: {0}")]
    Refused(String),
    /// A source with the same name is connected to the sink.
    #[error("{0}")]
    NameTaken(String),
    /// At the ticket's address is another host.
    #[error("the host at the ticket's address has another key: get the sink's ticket again")]
    OtherKey,
    /// The sink runs another version.
    #[error("the sink runs an incompatible version of byway")]
    OtherVersion,
    /// The sink has more records than this source ever sent.
    #[error(
        "the sink has {sink} records of this name, and this source gave {here}: another source writes under the name"
    )]
    OtherRecords {
        /// Numbers that the sink knows.
        sink: u64,
        /// The number of records that this source numbered.
        here: u64,
    },
    /// The input was to begin with the first record, and has fewer records than the sink.
    #[error(
        "the sink has {sink} records of this name, and the input gave only {here}: --replay wants an input that begins with the first record"
    )]
    InputTooShort {
        /// Numbers that the sink knows.
        sink: u64,
        /// Records that the input gave.
        here: u64,
    },
    /// The source was stopped before the sink had written all its records. The value is the number
    /// of missing records.
    #[error("stopped, with {0} records that the sink has not written")]
    Stopped(u64),
}
