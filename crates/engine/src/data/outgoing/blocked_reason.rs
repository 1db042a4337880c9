//! Why nothing is sent.

/// Why there is nothing to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocked {
    /// The application has nothing to send.
    Application,
    /// The peer takes no more for now: its flow control, or its limit on objects at once.
    PeerLimit,
    /// The next object's bytes are still being read.
    Reading,
}
