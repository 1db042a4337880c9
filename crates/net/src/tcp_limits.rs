//! Limits on the data of TCP connections that wait in this program and in the kernel, and the
//! kernel's congestion control.

/// The kernel's congestion control for a TCP connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TcpCongestion {
    /// CUBIC (RFC 9438).
    #[default]
    Cubic,
    /// NewReno (RFC 5681, RFC 6582).
    Reno,
}

impl TcpCongestion {
    /// The algorithm's name in Linux.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cubic => "cubic",
            Self::Reno => "reno",
        }
    }
}

/// The buffer sizes of a driver's TCP connections. The defaults suit a host at the end of a
/// connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpLimits {
    /// Bytes read of one connection in a round, before the machine is
    /// [asked](byway_wire::Machine::ask) whether it takes more; at most 256 KiB.
    pub read: usize,
    /// Bytes of the longest datagram that is taken. A longer frame ends its connection, and none of
    /// it is kept.
    pub longest: usize,
    /// Bytes in this program that wait for a full connection. Further datagrams are dropped, as for
    /// a socket.
    pub parked: usize,
    /// Bytes that the kernel accepts beyond those that it has sent.
    pub unsent: u32,
    /// Size in bytes of the kernel's send buffer, and of its receive buffer. `None`: the kernel
    /// adapts both sizes. A small buffer limits the rate to one buffer per round trip.
    pub kernel: Option<usize>,
    /// The kernel's congestion control for the connection.
    pub congestion: TcpCongestion,
}

impl Default for TcpLimits {
    fn default() -> Self {
        // `unsent` is two of the longest segments that the kernel hands to a device at once.
        Self {
            read: 256 << 10,
            longest: 65_535,
            parked: 256 << 10,
            unsent: 128 << 10,
            kernel: None,
            congestion: TcpCongestion::Cubic,
        }
    }
}
