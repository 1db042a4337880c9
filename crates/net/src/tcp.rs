//! A TCP connection that carries datagrams, each in a frame ([`byway_wire::framing`]), for networks
//! that drop UDP. The kernel gets little more data than it can send at once, because data in its
//! buffer cannot move to another path.

use crate::connection_permit::ConnectionPermit;
use crate::send_batch::{BatchProgress, DatagramRun, Obstacle, SendResult};
use crate::statistics::Counters;
use crate::tcp_limits::{TcpCongestion, TcpLimits};
use crate::traffic_class::TrafficClass;
use byway_wire::framing::{LENGTH_PREFIX_LEN, TcpFrames, prefix};
use byway_wire::{Datagram, Duration, Ecn, Input, Instant, Local, Machine, SendErrorKind};
use smallvec::SmallVec;
use std::io::{self, ErrorKind, IoSlice, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Weak};

/// Time that sent data may stay unacknowledged before the kernel gives a connection up (RFC 5482).
const USER_TIMEOUT: Duration = Duration::from_secs(30);
/// The most frames in one call.
const MAX_CALL_FRAMES: usize = 256;

/// A TCP connection that carries datagrams.
#[derive(Debug)]
pub struct TcpCarrier {
    io: TcpStream,
    address: SocketAddr,
    peer: SocketAddr,
    frames: TcpFrames,
    /// Bytes of the next frame that the kernel has already accepted, the length included.
    begun: usize,
    /// The mark that is set for sent packets. `None`: none was set.
    mark: Option<TrafficClass>,
    /// Whether the connection is closed or broken.
    gone: bool,
    lifetime: Arc<()>,
    _seat: Option<ConnectionPermit>,
}

impl TcpCarrier {
    /// Uses an established connection.
    ///
    /// # Errors
    /// What the system says: it is over already, or an option is refused.
    pub fn new(io: TcpStream) -> io::Result<Self> {
        Self::seated(io, None)
    }

    pub(crate) fn seated(io: TcpStream, seat: Option<ConnectionPermit>) -> io::Result<Self> {
        io.set_nonblocking(true)?;
        io.set_nodelay(true)?;
        let options = socket2::SockRef::from(&io);
        options.set_tcp_notsent_lowat(TcpLimits::default().unsent)?;
        options.set_tcp_user_timeout(Some(USER_TIMEOUT))?;
        // The system's own choice may be one that does not yield to others. A system without it
        // keeps its own.
        let _ = options.set_tcp_congestion(TcpCongestion::Cubic.name().as_bytes());
        let (address, peer) = (io.local_addr()?, io.peer_addr()?);
        Ok(Self {
            io,
            address,
            peer,
            frames: TcpFrames::default(),
            begun: 0,
            mark: None,
            gone: false,
            lifetime: Arc::default(),
            _seat: seat,
        })
    }

    /// The connection's local address.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The remote address of the connection.
    #[must_use]
    pub const fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Returns a handle whose strong count is 1 while the connection is open, and 0 once it is
    /// closed. By it, an owner learns when to dial again.
    #[must_use]
    pub fn lifetime(&self) -> Weak<()> {
        Arc::downgrade(&self.lifetime)
    }

    /// Whether the connection is closed or broken.
    pub(crate) const fn is_gone(&self) -> bool {
        self.gone
    }

    /// Sets the buffer limits of the connection.
    pub(crate) fn set_depth(&mut self, depth: &TcpLimits) {
        self.frames.set_longest(depth.longest);
        let options = socket2::SockRef::from(&self.io);
        // A system that refuses keeps more, or keeps to what it has.
        let _ = options.set_tcp_notsent_lowat(depth.unsent);
        let _ = options.set_tcp_congestion(depth.congestion.name().as_bytes());
        if let Some(bytes) = depth.kernel {
            let _ = options.set_recv_buffer_size(bytes);
            let _ = options.set_send_buffer_size(bytes);
        }
    }

    /// Reads once into `buffer`, and gives `machine` each datagram that is complete. False if the
    /// connection is over: the peer closed it, it broke, or it brought something that is no frame.
    pub(crate) fn receive(
        &mut self,
        (local, now): (Local, Instant),
        buffer: &mut [u8],
        machine: &mut dyn Machine,
        counters: &Counters,
    ) -> bool {
        let size = match self.io.read(buffer) {
            Ok(0) => return false,
            Ok(size) => size,
            Err(error) => return matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
        };
        counters.receive_calls.add(1);
        let remote = self.peer;
        let whole = self.frames.take(buffer.get_mut(..size).unwrap_or_default(), |payload| {
            counters.received_datagrams.add(1);
            counters.received_bytes.add(payload.len() as u64);
            let datagram = Datagram { local, remote, ecn: Ecn::NotEct, arrival: now, payload, phantom: 0 };
            machine.handle(now, Input::Datagram(datagram));
        });
        whole.is_ok()
    }

    /// Sends `runs`, each datagram in a frame. The first `start` bytes of `runs[0]` were sent
    /// before. If the kernel takes only a part of a frame, its datagram does not count as sent. The
    /// next call then sends the rest of the frame first.
    pub(crate) fn send(
        &mut self,
        runs: &[DatagramRun<'_>],
        start: usize,
        counters: &Counters,
    ) -> BatchProgress {
        let (mut done, mut start) = (0, start);
        loop {
            let left = runs.get(done..).unwrap_or_default();
            if left.first().is_some_and(|run| run.remote != self.peer) {
                return BatchProgress { done, then: SendResult::Failed(SendErrorKind::Unreachable) };
            }
            let then = match self.send_some(left, start, counters) {
                Ok(None) => SendResult::All,
                Ok(Some(mut sent)) => {
                    while let Some(run) = runs.get(done) {
                        let rest = run.bytes.len() - start;
                        if sent < rest {
                            start += sent;
                            break;
                        }
                        sent -= rest;
                        (done, start) = (done + 1, 0);
                    }
                    continue;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    SendResult::Blocked(start, Obstacle::Socket)
                }
                Err(_) => {
                    self.gone = true;
                    SendResult::Failed(SendErrorKind::Unreachable)
                }
            };
            return BatchProgress { done, then };
        }
    }

    /// Sends frames of these runs. Returns the number of bytes of the runs sent. `None`: there is
    /// nothing to send.
    fn send_some(
        &mut self,
        runs: &[DatagramRun<'_>],
        start: usize,
        counters: &Counters,
    ) -> io::Result<Option<usize>> {
        let Some(first) = runs.first() else { return Ok(None) };
        self.set_mark(first.mark);
        let mut frames: SmallVec<[([u8; LENGTH_PREFIX_LEN], &[u8]); MAX_CALL_FRAMES]> = SmallVec::new();
        let mut from = start;
        for run in runs.iter().take_while(|run| run.remote == self.peer && run.mark == first.mark) {
            for payload in run.bytes.get(from..).unwrap_or_default().chunks(run.segment.max(1)) {
                if frames.len() < MAX_CALL_FRAMES {
                    frames.push((prefix(payload.len()).ok_or(ErrorKind::InvalidInput)?, payload));
                }
            }
            from = 0;
        }
        if frames.is_empty() {
            return Ok(Some(0));
        }
        let mut slices: SmallVec<[IoSlice<'_>; 2 * MAX_CALL_FRAMES]> = SmallVec::new();
        let mut skip = self.begun;
        for (prefix, payload) in &frames {
            slices.push(IoSlice::new(prefix.get(skip..).unwrap_or_default()));
            slices.push(IoSlice::new(
                payload.get(skip.saturating_sub(LENGTH_PREFIX_LEN)..).unwrap_or_default(),
            ));
            skip = 0;
        }
        let mut taken = self.io.write_vectored(&slices)? + self.begun;
        counters.send_calls.add(1);
        let mut left = 0;
        for (_, payload) in &frames {
            if taken < LENGTH_PREFIX_LEN + payload.len() {
                break;
            }
            taken -= LENGTH_PREFIX_LEN + payload.len();
            left += payload.len();
            counters.sent_datagrams.add(1);
            counters.sent_bytes.add(payload.len() as u64);
        }
        self.begun = taken;
        Ok(Some(left))
    }

    /// Sets the code point (DSCP) of all packets that the kernel sends on this connection from now
    /// on, retransmissions included. The code point is best effort or lower effort. The kernel sets
    /// the ECN bits itself.
    fn set_mark(&mut self, mark: TrafficClass) {
        if self.mark != Some(mark) {
            let options = socket2::SockRef::from(&self.io);
            // A failure is ignored: the connection carries data without the code point too.
            let _ = match self.address {
                SocketAddr::V4(_) => options.set_tos_v4(mark.code_point()),
                SocketAddr::V6(_) => options.set_tclass_v6(mark.code_point()),
            };
            self.mark = Some(mark);
        }
    }
}

impl AsFd for TcpCarrier {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.io.as_fd()
    }
}

/// Bytes of a TCP segment that every IPv4 host takes (RFC 9293 section 3.7.1).
const NARROW_SEGMENT_BYTES: u32 = 536;

/// A TCP connection that is being established.
#[derive(Debug)]
pub struct Dialing {
    io: socket2::Socket,
    peer: SocketAddr,
}

impl Dialing {
    /// Begins to connect to `peer`, from `from` or an address that the system chooses. `from` is
    /// ignored if it is unspecified or of the other family.
    ///
    /// # Errors
    /// What the system says at once: no route, or no descriptor left.
    pub fn begin(peer: SocketAddr, from: Option<IpAddr>) -> io::Result<Self> {
        Self::begin_with(peer, from, None)
    }

    /// The same by a way that loses large packets and says nothing. In both directions a segment
    /// holds at most the bytes that every IPv4 host takes (RFC 9293 section 3.7.1).
    ///
    /// # Errors
    /// As [`begin`](Self::begin).
    pub fn begin_narrow(peer: SocketAddr, from: Option<IpAddr>) -> io::Result<Self> {
        Self::begin_with(peer, from, Some(NARROW_SEGMENT_BYTES))
    }

    fn begin_with(peer: SocketAddr, from: Option<IpAddr>, segment: Option<u32>) -> io::Result<Self> {
        let domain = socket2::Domain::for_address(peer);
        let io = socket2::Socket::new(domain, socket2::Type::STREAM, Some(socket2::Protocol::TCP))?;
        if let Some(segment) = segment {
            io.set_tcp_mss(segment)?;
        }
        io.set_nonblocking(true)?;
        if let Some(from) = from.filter(|from| !from.is_unspecified() && from.is_ipv4() == peer.is_ipv4()) {
            io.bind(&SocketAddr::new(from, 0).into())?;
        }
        match io.connect(&peer.into()) {
            Ok(()) => {}
            Err(error) if rustix::io::Errno::from_io_error(&error) == Some(rustix::io::Errno::INPROGRESS) => {
            }
            Err(error) => return Err(error),
        }
        Ok(Self { io, peer })
    }

    /// The address to which the connection is being opened.
    #[must_use]
    pub const fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Returns the connection, if it was established. To be called once the descriptor is writable.
    ///
    /// # Errors
    /// Why the connection was not established: nobody listens there, nobody answers, or there is no
    /// route.
    pub fn finish(self) -> io::Result<TcpCarrier> {
        match self.io.take_error()? {
            Some(error) => Err(error),
            None => TcpCarrier::new(self.io.into()),
        }
    }
}

impl AsFd for Dialing {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.io.as_fd()
    }
}
