//! Bounds of what is received.

/// What a stream's window begins with, where there are many streams or few.
const START_LEAST: usize = 2 << 10;
const START_MOST: usize = 64 << 10;

/// Bounds of what is received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IncomingLimits {
    /// The window: bytes of streams and objects that may be received and not yet read or written, and the costs of
    /// objects. At least 16 KiB.
    pub memory: usize,
    /// A stream's window at first, of which the peer knows from the handshake. When the stream is seen, it is told more, as its reader keeps
    /// up and as the memory allows. `streams` times as much should be no more than a quarter of the memory, so that streams
    /// that nobody reads leave room for others: see [`IncomingLimits::for_streams`].
    pub stream_start: usize,
    /// A stream's window at most.
    pub stream_window: usize,
    /// Streams of the peer's that are open at once. It is told how many it may open (RFC 9000 section 4.6): at first so many, and with each
    /// that is over in both directions one more.
    pub streams: usize,
    /// Objects incomplete at once. The peer must know it: [`OutgoingLimits::objects`](crate::data::OutgoingLimits::objects).
    pub objects: usize,
}

impl IncomingLimits {
    /// For so many streams of the peer's at once. The more they are, the less each begins with: from 64 KiB to 2 KiB.
    #[must_use]
    pub const fn for_streams(streams: usize) -> Self {
        let memory = 32 << 20;
        let stream_start = match memory / 4 / (if streams == 0 { 1 } else { streams }) {
            start @ START_LEAST..START_MOST => start,
            START_MOST.. => START_MOST,
            _ => START_LEAST,
        };
        Self { memory, stream_start, stream_window: 8 << 20, streams, objects: 4096 }
    }

    /// What is enforced: a memory that is not too small, and no stream that may have more than all together.
    pub(super) fn sound(self) -> Self {
        let memory = self.memory.max(16 << 10);
        let stream_window = self.stream_window.clamp(1, memory);
        Self { memory, stream_window, stream_start: self.stream_start.clamp(1, stream_window), ..self }
    }

    /// The first limits, for the handshake to tell: of the connection, and of every stream.
    #[must_use]
    pub fn initial(self) -> (u64, u64) {
        let sound = self.sound();
        (sound.memory as u64, sound.stream_start as u64)
    }
}

impl Default for IncomingLimits {
    fn default() -> Self {
        Self::for_streams(128)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_more_streams_the_less_each_begins_with() {
        let start = |streams| IncomingLimits::for_streams(streams).stream_start;
        assert_eq!(
            [0, 1, 128, 256, 1_000, 10_000].map(start),
            [65_536, 65_536, 65_536, 32_768, 8_388, 2_048]
        );
        // As many as there may be leave some to others, though nobody reads any.
        for streams in [1, 100, 1_000, 10_000] {
            assert!(start(streams) * streams < IncomingLimits::for_streams(streams).memory * 2 / 3);
        }
    }
}
