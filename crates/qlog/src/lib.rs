//! What happens in a session over many paths, as a qlog file: JSON text sequences (RFC 7464) by
//! draft-ietf-quic-qlog-main-schema-13, with events of draft-ietf-quic-qlog-quic-events-12 and of
//! byway's own namespace. docs/lab.md says what each event and field means here.

mod event;
mod writer;

pub use event::{CloseTrigger, Event, Metrics, PathTotals, ScenarioDetails, TupleEnd};
pub use writer::{PathSample, QlogWriter, TraceHeader, millis};

/// The ending of a qlog file's name.
pub const FILE_SUFFIX: &str = ".sqlog";

/// The state of a path that has ended. Its tuple is abandoned.
pub const CLOSED_STATE: &str = "closed";

/// The state of a path on which the controller sends no data, since other paths do better without
/// it.
pub const CHOKED_STATE: &str = "choked";
