//! The interface between a protocol state machine (`Machine`) and its driver. The driver is the
//! simulator (`byway-sim`) or uses real sockets (`byway-net`).

use crate::id::Local;
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
    /// Takes one input. `now` never goes back.
    fn handle(&mut self, now: Instant, input: Input<'_>);

    /// Runs what is due at `now`. A call before the deadline changes nothing.
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
        /// The address that it is to lead to.
        peer: SocketAddr,
        /// How long it may take.
        patience: Duration,
    },
    /// Stop reading from this connection. TCP's flow control then stops the peer. If the connection
    /// breaks meanwhile, the machine still gets an [`Input::Connection`].
    Pause(Local),
    /// Read from this connection again.
    Resume(Local),
    /// Close this connection. What waits for it is dropped.
    Close(Local),
}

/// What the world tells a machine.
#[derive(Debug)]
pub enum Input<'a> {
    /// A datagram arrived.
    Datagram(Datagram<'a>),
    /// A datagram could not be sent.
    SendError(SendError),
    /// A local socket came, changed its address, or went.
    Link(LinkChange),
    /// A TCP connection that carries datagrams was opened, or is gone.
    Connection(ConnectionChange),
    /// A TCP connection to this address could not be [opened](TcpRequest::Dial).
    NotDialed(SocketAddr),
    /// A local socket is full, or has room again.
    Room(RoomChange),
}

/// A datagram that arrived. The payload is lent mutably so that it can be decrypted in place.
#[derive(Debug)]
pub struct Datagram<'a> {
    /// The socket it came in by.
    pub local: Local,
    /// The address that seems to have sent it. UDP source addresses can be forged.
    pub remote: SocketAddr,
    /// The ECN mark it arrived with.
    pub ecn: Ecn,
    /// When the kernel received it, on the machine's clock: not later than `now`, and the better
    /// delay sample.
    pub arrival: Instant,
    /// The bytes of the datagram.
    pub payload: &'a mut [u8],
    /// Bytes that follow the payload and are only a length ([`Transmit::phantom`]). 0 on sockets.
    pub phantom: usize,
}

/// Why and where a send failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendError {
    /// The socket it should have left by.
    pub local: Local,
    /// Where it should have gone.
    pub remote: SocketAddr,
    /// Payload bytes of the (largest) datagram that failed.
    pub size: usize,
    /// What the system said.
    pub kind: SendErrorKind,
}

/// The kinds of failure that a machine can do something about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendErrorKind {
    /// No route, host or port unreachable, network down.
    Unreachable,
    /// Larger than the interface or the known path MTU allows.
    TooLarge,
    /// A firewall or the system forbids it.
    Denied,
}

/// A local socket came, changed its address, or went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkChange {
    /// The socket that came, changed or went.
    pub local: Local,
    /// The address it is bound to (may be the unspecified address: the system then picks the
    /// source).
    pub address: SocketAddr,
    /// Whether it can be used from now on.
    pub up: bool,
}

/// A TCP connection that carries datagrams ([`framing`](crate::framing)) was opened or closed. The
/// machine uses the connection like a socket. Datagrams arrive once and in order. A close loses the
/// datagrams that have not arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionChange {
    /// The number of the socket that it is, among those of all sockets.
    pub local: Local,
    /// The socket's address here.
    pub address: SocketAddr,
    /// The address that it leads to.
    pub peer: SocketAddr,
    /// Whether it can be used from now on.
    pub open: bool,
}

/// The send buffer of a local socket is full, or has room again. A new socket has room. For a full
/// socket, the driver queues datagrams up to a limit, and drops the rest like a full router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoomChange {
    /// The socket that became full, or has room again.
    pub local: Local,
    /// Whether it takes datagrams from now on.
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
    /// CE: a queue on the way experienced congestion.
    Ce,
}

/// The differentiated services code point (RFC 2474), by which networks choose how to treat
/// packets. The machine sets the code point of each packet that it sends. The machine gets no code
/// points of arriving packets, because networks change them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Dscp {
    /// As most traffic: the default forwarding of RFC 2474, code point 000000.
    #[default]
    BestEffort,
    /// After best effort, with what that leaves: LE of RFC 8622, code point 000001.
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

/// Where a machine writes what it sends.
#[derive(Debug)]
pub struct TransmitBuffer<'a> {
    /// Room for the datagrams; at least one of the largest size the machine was told of.
    pub buffer: &'a mut [u8],
    /// How many datagrams may stand in one run (1: the driver cannot segment).
    pub max_segments: usize,
}

/// What a machine wrote into [`TransmitBuffer`] and where it goes.
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
