//! Bounds of what is sent.

/// Bounds of what is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutgoingLimits {
    /// Bytes held in all, including those that were sent and are not acknowledged. Objects together
    /// may take three quarters of them, streams together three quarters, and a single stream one
    /// quarter. So no kind of data, and no stream, can shut the others out.
    pub memory: usize,
    /// Bytes that the owner is asked to read at once; at most a quarter of the memory.
    pub read_size: usize,
    /// How many objects may be begun and not wholly acknowledged: what the peer's
    /// [`IncomingLimits::objects`](crate::data::IncomingLimits::objects) allows.
    pub objects: usize,
}

impl OutgoingLimits {
    /// What the streams may hold together, and the objects.
    pub(super) const fn share(&self) -> usize {
        self.memory - self.memory / 4
    }
}

impl Default for OutgoingLimits {
    fn default() -> Self {
        Self { memory: 32 << 20, read_size: 256 << 10, objects: 4096 }
    }
}
