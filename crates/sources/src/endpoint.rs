//! What the endpoints of a source and of a sink have in common.

use byway_engine::{Config, Tau};
use byway_wire::{Duration, StreamId};

/// What a source says.
pub const FORTH: StreamId = StreamId(0);
/// What a sink says.
pub const BACK: StreamId = StreamId(1);

/// The age at which a gap in a stream is reported as lost bytes. Younger gaps usually close without
/// a report: their bytes wait in the queue of a slow path.
const PATIENT: Tau = Tau::AtLeast(Duration::from_secs(4));

/// How long an ACK waits. An ACK travels as data of a TCP connection, so each costs two segments:
/// its own, and the TCP acknowledgment of it.
const ACK_AFTER: Duration = Duration::from_millis(200);

/// The sink closes: another source of the name is there.
pub const NAME_TAKEN: u64 = 20;
/// The other side said what it must not.
pub const FAULT: u64 = 21;
/// The source comes again.
pub const AGAIN: u64 = 22;
/// The sink closes: the name is another key's.
pub const NAME_BOUND: u64 = 23;
/// The sink closes: the source speaks another version.
pub const OTHER_VERSION: u64 = 24;

/// How a session of either behaves.
pub fn session_config(config: Config) -> Config {
    Config { tau: PATIENT, ack_after: Some(ACK_AFTER), ..config }
}
