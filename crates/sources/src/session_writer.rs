//! The messages of a source in a session, and the part already sent.

use crate::endpoint::SOURCE_STREAM;
use crate::message::Messages;
use byway_engine::data::Outgoing;
use byway_wire::Instant;

/// The most bytes that wait in the stream unsent. The source cannot give up records that wait
/// there.
const MAX_UNSENT_BYTES: u64 = 16 << 10;
/// Bytes of a piece that fills one TCP segment, with its frame header and its tag (MSS 1428 over
/// IPv6 with timestamps).
const SEGMENT_PIECE_BYTES: u64 = 1_300;
/// The longest piece in bytes. With headers and seal it fits into a frame of 8 KiB.
const MAX_PIECE_BYTES: u64 = 8_000;

/// The length in bytes of the pieces in which records are written to the stream. It is what
/// `demand` (bytes per second) sends in 40 ms. If that is less than a TCP segment, it is what
/// `demand` sends in 100 ms, at most a segment.
pub fn piece_length(demand: u64) -> usize {
    let least = (demand / 10).clamp(1, SEGMENT_PIECE_BYTES);
    usize::try_from((demand / 25).clamp(least, MAX_PIECE_BYTES)).unwrap_or(usize::MAX)
}

/// One session of a source: the messages in both directions, and the sent part.
#[derive(Default)]
pub struct ActiveSession {
    /// The messages that arrive from the sink.
    pub messages: Messages,
    /// When the sink was last heard.
    pub heard_at: Instant,
    /// Whether the sink takes records.
    pub welcome: bool,
    /// Encoded messages for the sink. The bytes before `said` are already written to the stream.
    pub out: Vec<u8>,
    said: usize,
    /// Bytes written to the stream so far.
    pub given: u64,
    /// Whether the message that ends the records was queued.
    pub end_said: bool,
}

impl ActiveSession {
    /// A session that begins now.
    pub fn new(now: Instant) -> Self {
        Self { heard_at: now, ..Self::default() }
    }

    /// Writes the messages that wait in `out` to the `stream`, in pieces of `piece` bytes. A rest
    /// that is shorter than a piece waits for more. Returns false if the stream had no room for all
    /// whole pieces.
    pub fn write(&mut self, stream: &mut Outgoing, piece: usize) -> bool {
        let waiting = self.out.get(self.said..).unwrap_or_default();
        let unsent = self.given.saturating_sub(stream.progress().sent);
        let room = usize::try_from(MAX_UNSENT_BYTES.saturating_sub(unsent)).unwrap_or_default();
        let ready = waiting.len() / piece * piece;
        let taken = stream.write(SOURCE_STREAM, waiting.get(..room.min(ready)).unwrap_or_default());
        (self.said, self.given) = (self.said + taken, self.given + taken as u64);
        if taken < ready {
            return false;
        }
        self.out.drain(..self.said);
        self.said = 0;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_fills_a_segment_unless_that_takes_long() {
        let lengths = [0, 5, 3_000, 13_000, 30_000, 125_000, 150_000, u64::MAX].map(piece_length);
        assert_eq!(lengths, [1, 1, 300, 1_300, 1_300, 5_000, 6_000, 8_000]);
    }
}
