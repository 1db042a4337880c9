//! Names of things. Each is its own type, so that one cannot be passed for another.

use core::fmt;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty), $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub $inner);

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    };
}

number!(
    /// A path as its sender numbers it. Owns a packet-number space and, with it, nonces: never
    /// reused in a connection.
    PathId(u32), "path"
);
number!(
    /// A stream of ordered bytes. Even ids are opened by the initiator of the connection, odd ones
    /// by the responder.
    StreamId(u32), "stream"
);
number!(
    /// An object (a file): bytes that arrive in any order and are written in place. Numbered by its
    /// sender from 0.
    ObjectId(u32), "object"
);

/// The id in each data packet by which the receiver finds the path. Each path of a connection has a
/// different id. So two relays that carry different paths cannot see that the paths belong to the
/// same connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ConnectionId(pub [u8; 8]);

impl fmt::Debug for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", u64::from_be_bytes(self.0))
    }
}

/// The name of a relay at registries: a hash of its key, which reveals nothing about the key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelayId(pub [u8; 16]);

impl fmt::Display for RelayId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for RelayId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RelayId({self})")
    }
}
