//! A UDP socket with segmentation offload (one call sends many datagrams) and coalescing (one call
//! receives many), ECN marks, kernel receive timestamps and large buffers. The don't-fragment bit
//! makes the system refuse datagrams larger than the interface's MTU.

use crate::traffic_class::TrafficClass;
use nix::sys::socket::{setsockopt, sockopt};
use quinn_udp::{UdpSockRef, UdpSocketState};
use socket2::{Domain, Protocol, SockAddr, Type};
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;

/// The requested buffer size in bytes, in each direction: the data of 3 ms at 10 Gbit/s.
pub const BUFFER_BYTES: usize = 4 << 20;

/// A bound UDP socket. An IPv6 socket carries IPv6 alone, so that one of each family can share a
/// port.
#[derive(Debug)]
pub struct Socket {
    /// The system's socket. It is shared, so that the driver can wait for it while using it.
    pub(crate) io: Arc<UdpSocket>,
    pub(crate) state: UdpSocketState,
    address: SocketAddr,
    buffers: Buffers,
    /// The most datagrams in one message. 1: segmentation offload failed.
    pub(crate) max_segments: usize,
    /// The mark that is set for sent packets. `None`: none was set.
    pub(crate) mark: Option<TrafficClass>,
    /// The size into which messages are cut, as last set. 0: they are not cut.
    pub(crate) segment: usize,
    /// Whether each address of the host gets a socket beside this one.
    by_address: bool,
}

impl Socket {
    /// Binds to `address`, and requests [`BUFFER_BYTES`] of buffer in each direction. With port 0
    /// the system chooses one.
    ///
    /// # Errors
    ///
    /// [`BindError`], by cause.
    pub fn bind(address: SocketAddr) -> Result<Self, BindError> {
        Self::bind_with(address, BUFFER_BYTES)
    }

    /// Binds to `address` and asks for `buffer` bytes of buffer in each direction. It is no error
    /// if the system grants less: [`buffers`](Self::buffers) says how much it granted.
    ///
    /// # Errors
    ///
    /// [`BindError`], by cause.
    pub fn bind_with(address: SocketAddr, buffer: usize) -> Result<Self, BindError> {
        Self::open(address, buffer, false).map_err(|source| BindError::new(address, source))
    }

    /// Makes a driver answer from the address that was asked, if this socket is bound to all
    /// addresses of a host with several. For sockets to which other hosts send first.
    #[must_use]
    pub const fn answering_by_address(mut self) -> Self {
        self.by_address = true;
        self
    }

    pub(crate) const fn answers_by_address(&self) -> bool {
        self.by_address
    }

    /// Binds one address of the host at the port of this socket, which is bound to all addresses.
    /// Datagrams to that address then arrive at the new socket.
    pub(crate) fn beside(&self, ip: IpAddr) -> io::Result<Self> {
        let shared = socket2::SockRef::from(&*self.io);
        // Only between these two calls: at any other time nobody else may have the port.
        shared.set_reuse_address(true)?;
        let bound = Self::open(SocketAddr::new(ip, self.address.port()), self.buffers.asked, true);
        shared.set_reuse_address(false)?;
        bound
    }

    fn open(address: SocketAddr, buffer: usize, is_shared: bool) -> io::Result<Self> {
        let socket = socket2::Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
        if address.is_ipv6() {
            socket.set_only_v6(true)?;
        }
        if is_shared {
            socket.set_reuse_address(true)?;
        }
        socket.bind(&SockAddr::from(address))?;
        if is_shared {
            socket.set_reuse_address(false)?;
        }
        let buffers = Buffers::ask(&socket, buffer)?;
        let io: UdpSocket = socket.into();
        let state = state(&io)?;
        let address = io.local_addr()?;
        let max_segments = state.max_gso_segments().max(1);
        let io = Arc::new(io);
        Ok(Self { io, state, address, buffers, max_segments, mark: None, segment: 0, by_address: false })
    }

    /// The address to which the socket is bound, with the port that the system chose.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The buffers asked for and granted.
    #[must_use]
    pub fn buffers(&self) -> Buffers {
        self.buffers
    }

    /// A handle that limits how many bytes may wait in this host's send buffer.
    #[must_use]
    pub fn send_limit(&self) -> SendLimit {
        SendLimit { io: Arc::clone(&self.io), most: self.buffers.send }
    }

    /// Most datagrams that leave in one message; 1 if the system cannot segment, or can no longer.
    #[must_use]
    pub fn max_segments(&self) -> usize {
        self.max_segments
    }

    /// Whether the network may fragment datagrams, because the system has no don't-fragment bit.
    /// Then probes of the path MTU prove nothing.
    #[must_use]
    pub fn may_fragment(&self) -> bool {
        self.state.may_fragment()
    }
}

/// Sets quinn-udp's socket options, except the report of the destination address. quinn-udp 0.6
/// reads 96 bytes of ancillary data. A timestamp (32), a segment size (24) and an ECN mark (24)
/// leave no room for the address.
pub(crate) fn state(io: &UdpSocket) -> io::Result<UdpSocketState> {
    let state = UdpSocketState::new(UdpSockRef::from(io))?;
    if io.local_addr()?.is_ipv4() {
        setsockopt(io, sockopt::Ipv4PacketInfo, &false)?;
    } else {
        setsockopt(io, sockopt::Ipv6RecvPacketInfo, &false)?;
    }
    Ok(state)
}

/// The limit on a socket's data that wait in this host: in the queue of its interface, and in the
/// driver. A socket that is full takes nothing until some of it has left.
#[derive(Debug)]
pub struct SendLimit {
    io: Arc<UdpSocket>,
    /// The buffer size that the system granted at first.
    most: usize,
}

impl SendLimit {
    /// Sets the bytes that may wait, by the system's count, which doubles small datagrams for
    /// bookkeeping. Never more than was granted at first.
    pub fn set(&self, bytes: usize) {
        // A system that refuses lets more wait.
        let _ = socket2::SockRef::from(&*self.io).set_send_buffer_size(bytes.min(self.most));
    }
}

/// The buffer sizes of a socket in bytes of kernel memory, as the system counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffers {
    /// The requested size in each direction.
    pub asked: usize,
    /// The granted size of the send buffer.
    pub send: usize,
    /// The granted size of the receive buffer.
    pub receive: usize,
}

impl Buffers {
    fn ask(socket: &socket2::Socket, asked: usize) -> io::Result<Self> {
        // Being refused is no reason to stop: what was granted is read back below.
        let _ = socket.set_send_buffer_size(asked);
        let _ = socket.set_recv_buffer_size(asked);
        Ok(Self {
            asked,
            send: usable(socket.send_buffer_size()?),
            receive: usable(socket.recv_buffer_size()?),
        })
    }

    /// Whether less was granted than asked for.
    #[must_use]
    pub fn clipped(&self) -> bool {
        self.send < self.asked || self.receive < self.asked
    }
}

/// Returns the usable half of a buffer size. Linux reports twice the requested size, half of it for
/// bookkeeping (socket(7), `SO_RCVBUF`).
fn usable(reported: usize) -> usize {
    if cfg!(target_os = "linux") { reported / 2 } else { reported }
}

impl fmt::Display for Buffers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { asked, send, receive } = self;
        if self.clipped() {
            write!(
                f,
                "the system clipped the socket buffers (asked for {asked} bytes, got {send} to send and {receive} to \
                 receive); raise net.core.wmem_max and net.core.rmem_max to {asked}"
            )
        } else {
            write!(f, "socket buffers of {send} bytes to send and {receive} to receive")
        }
    }
}

/// Why a socket could not be bound.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// Another socket uses the port.
    #[error("UDP port {} on {} is in use by another program; choose another port, or 0 for any", .0.port(), .0.ip())]
    InUse(SocketAddr),
    /// The port is reserved, or the system forbids its use.
    #[error("this user may not bind UDP {0}; choose a port above 1023, or ask for the right to bind it")]
    NotPermitted(SocketAddr),
    /// The address belongs to no interface of this host.
    #[error("{} is not an address of this host; choose one that is, or the unspecified address", .0.ip())]
    NotAvailable(SocketAddr),
    /// The host does not speak this address family.
    #[error("this host does not support {}; use the other address family", if .0.is_ipv6() { "IPv6" } else { "IPv4" })]
    NoSuchFamily(SocketAddr),
    /// The system refused for another reason.
    #[error("binding UDP {address} failed: {source}")]
    Other {
        /// The address that could not be bound.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
}

impl BindError {
    fn new(address: SocketAddr, source: io::Error) -> Self {
        use rustix::io::Errno;
        match Errno::from_io_error(&source) {
            Some(Errno::ADDRINUSE) => Self::InUse(address),
            Some(Errno::ACCESS | Errno::PERM) => Self::NotPermitted(address),
            Some(Errno::ADDRNOTAVAIL) => Self::NotAvailable(address),
            Some(Errno::AFNOSUPPORT) => Self::NoSuchFamily(address),
            _ => Self::Other { address, source },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;

    const ANY_PORT: &str = "127.0.0.1:0";

    #[test]
    fn a_port_in_use_is_said_so() {
        let first = Socket::bind(ANY_PORT.parse().unwrap()).unwrap();
        let error = Socket::bind(first.address()).unwrap_err();
        assert!(matches!(error, BindError::InUse(address) if address == first.address()), "{error}");
        assert!(error.to_string().contains(&first.address().port().to_string()));
    }

    /// With one port at two addresses, datagrams to either arrive at its own socket and are
    /// answered from there. No other process gets the port.
    #[test]
    fn an_address_has_a_socket_beside_the_one_of_all_addresses() {
        let all = Socket::bind("0.0.0.0:0".parse().unwrap()).unwrap();
        let port = all.address().port();
        let own = all.beside("127.0.0.2".parse().unwrap()).unwrap();
        let asker = UdpSocket::bind("127.0.0.1:0").unwrap();
        asker.set_read_timeout(Some(std::time::Duration::from_secs(5))).unwrap();
        for (socket, ip) in [(&own, "127.0.0.2"), (&all, "127.0.0.1")] {
            asker.send_to(b"x", (ip, port)).unwrap();
            socket.io.set_nonblocking(false).unwrap();
            let (length, from) = socket.io.recv_from(&mut [0; 9]).unwrap();
            assert_eq!((length, from), (1, asker.local_addr().unwrap()));
            socket.io.send_to(b"yz", from).unwrap();
            let (length, from) = asker.recv_from(&mut [0; 9]).unwrap();
            assert_eq!((length, from), (2, SocketAddr::new(ip.parse().unwrap(), port)));
        }
        for taken in ["0.0.0.0", "127.0.0.1", "127.0.0.2"] {
            let stranger = socket2::Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
            stranger.set_reuse_address(true).unwrap();
            let address = SocketAddr::new(taken.parse().unwrap(), port);
            assert!(stranger.bind(&address.into()).is_err(), "{taken}");
        }
    }

    #[test]
    fn a_foreign_address_is_said_so() {
        // TEST-NET-3 (RFC 5737) is nobody's.
        let error = Socket::bind("203.0.113.7:0".parse().unwrap()).unwrap_err();
        assert!(matches!(error, BindError::NotAvailable(_)), "{error}");
    }

    #[test]
    fn causes_are_told_apart() {
        let address: SocketAddr = "[::1]:443".parse().unwrap();
        let of = |errno: Errno| BindError::new(address, io::Error::from(errno));
        assert!(matches!(of(Errno::ACCESS), BindError::NotPermitted(_)));
        assert!(matches!(of(Errno::PERM), BindError::NotPermitted(_)));
        assert!(matches!(of(Errno::AFNOSUPPORT), BindError::NoSuchFamily(_)));
        assert!(matches!(of(Errno::MFILE), BindError::Other { .. }));
        assert_eq!(
            of(Errno::AFNOSUPPORT).to_string(),
            "this host does not support IPv6; use the other address family"
        );
    }

    #[test]
    fn clipped_buffers_are_reported() {
        // No system grants a gibibyte unasked, and every system grants 8 KiB.
        let greedy = Socket::bind_with(ANY_PORT.parse().unwrap(), 1 << 30).unwrap().buffers();
        assert!(greedy.clipped(), "{greedy:?}");
        assert!(greedy.to_string().contains("rmem_max"));
        let modest = Socket::bind_with(ANY_PORT.parse().unwrap(), 8 << 10).unwrap().buffers();
        assert!(!modest.clipped(), "{modest:?}");
    }
}
