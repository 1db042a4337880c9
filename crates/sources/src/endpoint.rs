//! The common settings of the endpoints of a source and of a sink.

use byway_engine::{Config, Tau};
use byway_wire::{Duration, StreamId};

/// The stream with the messages of the source.
pub const SOURCE_STREAM: StreamId = StreamId(0);
/// The stream with the messages of the sink.
pub const SINK_STREAM: StreamId = StreamId(1);

/// The age at which a gap in a stream is reported as lost bytes. Younger gaps usually close without
/// a report: their bytes wait in the queue of a slow path.
const GAP_REPORT_AGE: Tau = Tau::AtLeast(Duration::from_secs(4));

/// The delay of an ACK. An ACK is sent as data of a TCP connection, so each costs two segments: its
/// own, and its TCP acknowledgment.
const ACK_DELAY: Duration = Duration::from_millis(200);

/// The sink closes a session with this code because another source with this name is connected.
pub const NAME_TAKEN_CODE: u64 = 20;
/// Either side closes a session with this code because the other side broke the protocol.
pub const FAULT_CODE: u64 = 21;
/// Either side closes a session with this code because the source connects again.
pub const RECONNECT_CODE: u64 = 22;
/// The sink closes a session with this code because the name belongs to another host's key.
pub const NAME_BOUND_CODE: u64 = 23;
/// The sink closes a session with this code because the source's protocol has another version.
pub const OTHER_VERSION_CODE: u64 = 24;

/// How a session of either behaves.
pub fn session_config(config: Config) -> Config {
    Config { tau: GAP_REPORT_AGE, ack_after: Some(ACK_DELAY), ..config }
}
