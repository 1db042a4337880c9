//! Which side of a connection began it, and whose streams are whose.

use byway_wire::StreamId;

/// The role of a host: whether it began the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The side that sent the HELLO.
    Initiator,
    /// The side that answered the HELLO.
    Responder,
}

impl Role {
    /// Whether this side opens the streams with this id: the initiator's are even (RFC 9000 section
    /// 2.1).
    #[must_use]
    pub const fn opens(self, id: StreamId) -> bool {
        self.first_stream() == id.0 % 2
    }

    /// Returns the id of the first stream that this host opens. Its later streams have every second
    /// id.
    pub(crate) const fn first_stream(self) -> u32 {
        match self {
            Self::Initiator => 0,
            Self::Responder => 1,
        }
    }
}
