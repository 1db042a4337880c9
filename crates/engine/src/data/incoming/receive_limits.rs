//! The limits of received streams and objects.

/// The smallest initial window of a stream in bytes, even with many streams.
const MIN_START_BYTES: usize = 2 << 10;

/// The limits on received streams and objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IncomingLimits {
    /// The connection's flow control window in bytes. Bytes of streams count until the application
    /// has read them. Bytes of objects count until the application has written them to disk. Each
    /// object counts as 512 bytes more than its data. At least 16 KiB.
    pub memory: usize,
    /// Bytes of a stream's first window, as told in the handshake. The window is smaller, down to 2
    /// KiB, if [`streams`](Self::streams) such windows would exceed `memory`. The window grows with
    /// the stream's first data, and as the application reads.
    pub stream_start: usize,
    /// Bytes that a stream's window reaches at most.
    pub stream_window: usize,
    /// The most streams of the peer that may be open at once. The peer is told a total since the
    /// connection began (MAX_STREAMS, RFC 9000 section 4.6): this number, plus one for each stream
    /// that is over in both directions.
    pub streams: usize,
    /// The most objects that may be incomplete at once. The peer must know this number:
    /// [`OutgoingLimits::objects`](crate::data::OutgoingLimits::objects).
    pub objects: usize,
}

impl IncomingLimits {
    /// The limits that are enforced: enough memory, and no stream limit above the limit of all
    /// streams.
    pub(super) fn sound(self) -> Self {
        let memory = self.memory.max(16 << 10);
        let stream_window = self.stream_window.clamp(1, memory);
        let all = (memory / self.streams.max(1)).max(MIN_START_BYTES);
        let stream_start = self.stream_start.min(all).clamp(1, stream_window);
        Self { memory, stream_start, stream_window, ..self }
    }

    /// The first limits in bytes, for the handshake: of the connection, and of each stream.
    #[must_use]
    pub fn initial(self) -> (u64, u64) {
        let sound = self.sound();
        (sound.memory as u64, sound.stream_start as u64)
    }
}

impl Default for IncomingLimits {
    fn default() -> Self {
        Self { memory: 32 << 20, stream_start: 64 << 10, stream_window: 8 << 20, streams: 128, objects: 4096 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_more_streams_the_less_each_begins_with() {
        let start = |streams| IncomingLimits { streams, ..IncomingLimits::default() }.sound().stream_start;
        assert_eq!(
            [0, 1, 128, 512, 2_048, 10_000].map(start),
            [65_536, 65_536, 65_536, 65_536, 16_384, 3_355]
        );
        assert_eq!([20_000, usize::MAX].map(start), [2_048, 2_048]);
    }
}
