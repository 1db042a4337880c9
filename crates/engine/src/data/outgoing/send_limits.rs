//! The limits of sent streams and objects.

/// The limits on sent streams and objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutgoingLimits {
    /// Bytes of data that wait to be sent or acknowledged, for all streams and objects together.
    /// Objects may take three quarters, all streams three quarters, and one stream one quarter, so
    /// that none of them can take all memory.
    pub memory: usize,
    /// Bytes that the owner is asked to read at once; at most a quarter of the memory.
    pub read_size: usize,
    /// The most objects that may be begun and not completely acknowledged, as the peer's
    /// [`IncomingLimits::objects`](crate::data::IncomingLimits::objects) allows.
    pub objects: usize,
}

impl OutgoingLimits {
    /// The bytes that all streams together may hold. Objects may hold as many.
    pub(super) const fn share(&self) -> usize {
        self.memory - self.memory / 4
    }
}

impl Default for OutgoingLimits {
    fn default() -> Self {
        Self { memory: 32 << 20, read_size: 256 << 10, objects: 4096 }
    }
}
