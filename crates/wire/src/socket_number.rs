//! The numbers of sockets that carry datagrams.

use core::fmt;

/// The number of a UDP socket or a TCP connection that carries datagrams. The driver of a
/// protocol state machine assigns the numbers: 0 to 32,767 to UDP sockets
/// ([`crate::LinkChange`]), and 32,768 to 65,535 to TCP connections
/// ([`crate::ConnectionChange`]).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Local(pub u16);

impl fmt::Debug for Local {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Local {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "local{}", self.0)
    }
}

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
