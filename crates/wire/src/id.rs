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
number!(
    /// The number of a UDP socket or a TCP connection that carries datagrams. The driver of a
    /// protocol state machine assigns the numbers: 0 to 32,767 to UDP sockets
    /// ([`crate::LinkChange`]), and 32,768 to 65,535 to TCP connections
    /// ([`crate::ConnectionChange`]).
    Local(u16), "local"
);

impl Local {
    /// The first number of a TCP connection.
    const FIRST_CONNECTION: u16 = 1 << 15;

    /// The number of a TCP connection, which are counted from 0. `None`: there are 32,768 numbers.
    #[must_use]
    pub fn connection(index: usize) -> Option<Self> {
        u16::try_from(index)
            .ok()
            .filter(|index| *index < Self::FIRST_CONNECTION)
            .map(|index| Self(index | Self::FIRST_CONNECTION))
    }

    /// Whether the number is that of a TCP connection, and not of a UDP socket.
    #[must_use]
    pub const fn is_connection(self) -> bool {
        self.0 >= Self::FIRST_CONNECTION
    }

    /// The number of the TCP connection, counted from 0.
    #[must_use]
    pub const fn connection_index(self) -> Option<usize> {
        if self.is_connection() { Some((self.0 - Self::FIRST_CONNECTION) as usize) } else { None }
    }
}

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
