//! The interface between a protocol state machine (`Machine`) and its driver. The driver is the
//! simulator (`byway-sim`) or uses real sockets (`byway-net`).

use crate::socket_number::Local;
use crate::time::{Duration, Instant};
use core::net::SocketAddr;

/// A protocol endpoint without input and output of its own: the driver owns the sockets, clock,
/// threads and random numbers. The same inputs at the same times give the same bytes.
///
/// ```text
/// The driver repeats:
///     handle     for each input that has arrived
///     wake       if the deadline has passed
///     transmit   until it returns None
///     sleep      until the deadline or the next input
/// ```
pub trait Machine {
    /// Handles one input. `now` never decreases.
    fn handle(&mut self, now: Instant, input: Input<'_>);

    /// Runs the work due at `now`. A call before the deadline changes nothing.
    fn wake(&mut self, now: Instant);

    /// Writes the next datagram into `out`, or several datagrams of equal size to one address,
    /// which the kernel can send in one call (GSO). `None`: there is nothing to send until the next
    /// input or deadline.
    fn transmit(&mut self, now: Instant, out: &mut TransmitBuffer<'_>) -> Option<Transmit>;

    /// When to call [`wake`](Machine::wake) next; `None` if only an input can change anything.
    /// Absolute, and not in the past after `wake` and `transmit`.
    fn deadline(&self) -> Option<Instant>;

    /// Whether the machine still uses a TCP connection that was [opened](Input::Connection). The
    /// driver asks some seconds after the opening, and again from time to time. It closes an unused
    /// connection, so that a stranger cannot occupy connections for long.
    fn serves(&self, local: Local) -> bool {
        let _ = local;
        false
    }

    /// The next request about TCP connections, such as to open or close one. After the machine has
    /// received data from a TCP connection, and after each round of sending, the driver calls this
    /// function until it returns `None`.
    fn ask(&mut self, now: Instant) -> Option<TcpRequest> {
        let _ = now;
        None
    }
}

/// A request of a machine about its TCP connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpRequest {
    /// Open a connection to `peer` within `patience`. [`Input::Connection`] reports success and
    /// [`Input::NotDialed`] failure. Several connections can be opening at the same time.
    Dial {
        /// The address to connect to.
        peer: SocketAddr,
        /// The time after which dialling is given up.
        patience: Duration,
    },
    /// Stop reading from this connection. TCP's flow control then stops the peer. If the connection
    /// breaks meanwhile, the machine still gets an [`Input::Connection`].
    Pause(Local),
    /// Continue to read from this connection.
    Resume(Local),
    /// Close this connection. Data that wait to be sent are dropped.
    Close(Local),
}

/// An input of a machine: a datagram, an error or a change.
#[derive(Debug)]
pub enum Input<'a> {
    /// A datagram arrived.
    Datagram(Datagram<'a>),
    /// A datagram could not be sent.
    SendError(SendError),
    /// A local socket was opened or closed, or changed its address.
    Link(LinkChange),
    /// A TCP connection that carries datagrams was opened, or is gone.
    Connection(ConnectionChange),
    /// No TCP connection to this address could be [opened](TcpRequest::Dial).
    NotDialed(SocketAddr),
    /// A local socket is full, or has room again.
    Room(RoomChange),
}

/// A datagram that arrived. The payload is lent mutably so that it can be decrypted in place.
#[derive(Debug)]
pub struct Datagram<'a> {
    /// The local socket or connection on which the datagram arrived.
    pub local: Local,
    /// The source address of the datagram. UDP source addresses can be forged.
    pub remote: SocketAddr,
    /// The ECN mark with which the datagram arrived.
    pub ecn: Ecn,
    /// The time on the machine's clock when the kernel received the datagram. It is at most `now`,
    /// and the better delay sample.
    pub arrival: Instant,
    /// The bytes of the datagram.
    pub payload: &'a mut [u8],
    /// Bytes that follow the payload and are only a length ([`Transmit::phantom`]). 0 on sockets.
    pub phantom: usize,
}

/// Why and where a send failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendError {
    /// The local socket from which the datagram was sent.
    pub local: Local,
    /// The destination of the datagram.
    pub remote: SocketAddr,
    /// Payload bytes of the (largest) datagram that failed.
    pub size: usize,
    /// The kind of the system's error.
    pub kind: SendErrorKind,
}

/// The kinds of failure that a machine can do something about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendErrorKind {
    /// No route, host or port unreachable, network down.
    Unreachable,
    /// Larger than the interface or the known path MTU allows.
    TooLarge,
    /// A firewall or the system forbids sending to the destination.
    Denied,
}

/// A local socket was opened or closed, or changed its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkChange {
    /// The local socket that came, changed or went.
    pub local: Local,
    /// The address to which the socket is bound. The unspecified address lets the system choose the
    /// source address.
    pub address: SocketAddr,
    /// Whether the socket can be used from now on.
    pub up: bool,
}

/// A TCP connection that carries datagrams ([`framing`](crate::framing)) was opened or closed. The
/// machine uses the connection like a socket. Datagrams arrive once and in order. A close loses the
/// datagrams that have not arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionChange {
    /// The number of the connection, unique among all sockets and connections.
    pub local: Local,
    /// The local address of the connection.
    pub address: SocketAddr,
    /// The remote address of the connection.
    pub peer: SocketAddr,
    /// Whether the connection can be used from now on.
    pub open: bool,
}

/// The send buffer of a local socket is full, or has room again. A new socket has room. For a full
/// socket, the driver queues datagrams up to a limit, and drops the rest like a full router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoomChange {
    /// The socket that became full, or has room again.
    pub local: Local,
    /// Whether the socket takes datagrams from now on.
    pub room: bool,
}

/// Explicit Congestion Notification, RFC 3168 section 5.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Ecn {
    /// The sender does not take part.
    #[default]
    NotEct,
    /// ECN-capable, codepoint 01.
    Ect1,
    /// ECN-capable, codepoint 10.
    Ect0,
    /// CE: a queue on the route experienced congestion.
    Ce,
}

/// The differentiated services code point (RFC 2474), by which networks choose how to treat
/// packets. The machine sets the code point of each packet that it sends. The machine gets no code
/// points of arriving packets, because networks change them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Dscp {
    /// The default forwarding of most traffic (RFC 2474), code point 000000.
    #[default]
    BestEffort,
    /// Lower effort: sent only when best effort leaves capacity (LE of RFC 8622, code point
    /// 000001).
    LowerEffort,
}

impl Dscp {
    /// The six bits of the code point.
    #[must_use]
    pub const fn code_point(self) -> u8 {
        match self {
            Self::BestEffort => 0,
            Self::LowerEffort => 1,
        }
    }
}

/// The buffer into which a machine writes datagrams to send.
#[derive(Debug)]
pub struct TransmitBuffer<'a> {
    /// A buffer for datagrams. It has room for at least one of the largest size that the machine
    /// was told.
    pub buffer: &'a mut [u8],
    /// The most datagrams in one run. 1: the driver cannot segment.
    pub max_segments: usize,
}

/// The datagrams that a machine wrote into [`TransmitBuffer`], and their destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// The socket to leave by.
    pub local: Local,
    /// The address to send to.
    pub remote: SocketAddr,
    /// The ECN mark to send with.
    pub ecn: Ecn,
    /// The code point to send with.
    pub dscp: Dscp,
    /// Bytes written to the buffer in all.
    pub size: usize,
    /// Size of each datagram of the run; the last may be shorter. Equal to `size` for a single
    /// datagram.
    pub segment: usize,
    /// Simulated bytes at the end of each datagram, beyond the bytes in the buffer. The simulated
    /// links count these bytes, but no memory holds them, so bulk data costs nothing to copy.
    /// Always 0 on real sockets.
    pub phantom: usize,
}
