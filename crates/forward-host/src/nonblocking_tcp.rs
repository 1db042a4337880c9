//! A connection of TCP on this host that blocks nobody.

use byway_forward::splice::{IoResult, Local};
use rustix::io::Errno;
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// The most connections that wait to be accepted. The system allows fewer if `net.core.somaxconn`
/// is lower.
const LISTEN_BACKLOG: i32 = 4096;

/// The time without data after which the first keepalive probe is sent.
const KEEPALIVE_DELAY: Duration = Duration::from_secs(75);
/// Time between two unanswered keepalive probes.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// Bytes that went from programs to targets, and back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByteCounts {
    /// Bytes from the program to the target.
    pub forth: u64,
    /// Bytes from the target to the program.
    pub back: u64,
}

/// A connection. It is reset when dropped, or when this process is killed, unless both directions
/// have ended: a program must not take the end of this process for the end of its data.
#[derive(Debug)]
pub struct Tcp {
    stream: TcpStream,
    /// Whether the peer has closed its direction, and everything was read.
    is_read: bool,
    /// Whether this host has closed its direction.
    is_written: bool,
}

impl Tcp {
    const fn new(stream: TcpStream) -> Self {
        Self { stream, is_read: false, is_written: false }
    }

    /// Closes this side's direction. When the connection is dropped, it closes normally and is not
    /// reset.
    pub fn leave(&mut self) {
        self.finish();
        let _ = SockRef::from(&self.stream).set_linger(None);
    }

    /// Lets the system send the rest without a time limit, once both directions have ended.
    fn settle(&self) {
        if self.is_read && self.is_written {
            let _ = SockRef::from(&self.stream).set_linger(None);
        }
    }

    /// A connection that a listener accepted.
    ///
    /// # Errors
    /// The system does not make it nonblocking.
    pub fn accepted(stream: TcpStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        prepare(SockRef::from(&stream));
        Ok(Self::new(stream))
    }

    /// One end of a pair of sockets, whose other end this process has. Reading, writing, ends and
    /// errors are those of any stream socket. It cannot be reset: it is closed in any case.
    ///
    /// # Errors
    /// The system does not make it nonblocking.
    pub fn of_pair(end: UnixStream) -> io::Result<Self> {
        end.set_nonblocking(true)?;
        Ok(Self::new(OwnedFd::from(end).into()))
    }

    /// Starts to connect. Once the socket is writable, [`connected`](Self::connected) returns the
    /// result. Segments have at most `max_segment` bytes, TCP options included. `None`: as many as
    /// the path allows.
    ///
    /// # Errors
    /// The system has no socket, or no route.
    pub fn dial(address: SocketAddr, max_segment: Option<u32>) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        prepare(SockRef::from(&socket));
        if let Some(bytes) = max_segment {
            socket.set_tcp_mss(bytes)?;
        }
        match socket.connect(&address.into()) {
            Ok(()) => {}
            Err(error) if Errno::from_io_error(&error) == Some(Errno::INPROGRESS) => {}
            Err(error) => return Err(error),
        }
        Ok(Self::new(socket.into()))
    }

    /// Whether the connection is established by now.
    ///
    /// # Errors
    /// It failed.
    pub fn connected(&self) -> io::Result<bool> {
        if let Some(error) = self.stream.take_error()? {
            return Err(error);
        }
        match self.stream.peer_addr() {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotConnected => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns the address of the peer. `None`: the connection is broken.
    #[must_use]
    pub fn peer(&self) -> Option<SocketAddr> {
        self.stream.peer_addr().ok()
    }

    /// Copies the bytes that have arrived into `buffer`, without removing them from the socket.
    pub fn peek(&self, buffer: &mut [u8]) -> IoResult {
        io_of(self.stream.peek(buffer))
    }

    /// Whether the connection has an error. Reads and writes nothing.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        !matches!(self.stream.take_error(), Ok(None))
    }
}

impl AsFd for Tcp {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

fn io_of(result: io::Result<usize>) -> IoResult {
    match result {
        Ok(length) => IoResult::Done(length),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
            IoResult::Later
        }
        Err(_) => IoResult::Broken,
    }
}

/// Makes a system call, and repeats it as long as a signal interrupts it.
fn undisturbed(mut call: impl FnMut() -> io::Result<usize>) -> IoResult {
    loop {
        match call() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            result => return io_of(result),
        }
    }
}

impl Local for Tcp {
    fn read(&mut self, buffer: &mut [u8]) -> IoResult {
        let is_asked = !buffer.is_empty();
        let result = undisturbed(|| self.stream.read(buffer));
        if is_asked && result == IoResult::Done(0) {
            self.is_read = true;
            self.settle();
        }
        result
    }

    fn write(&mut self, bytes: &[u8]) -> IoResult {
        undisturbed(|| self.stream.write(bytes))
    }

    fn finish(&mut self) {
        // One that is broken already tells so when it is read.
        let _ = self.stream.shutdown(Shutdown::Write);
        self.is_written = true;
        self.settle();
    }

    fn abort(&mut self) {
        // A connection that is closed so is reset (RFC 9293, section 3.10.5).
        let _ = SockRef::from(&self.stream).set_linger(Some(Duration::ZERO));
    }
}

/// Sets the options of a socket. It turns off Nagle's algorithm, because the session itself
/// collects small writes into packets. It turns on keepalive probes, which detect that the other
/// host or program is gone while no data flows. An urgent byte stays where it is in the stream (RFC
/// 6093 section 4 tells programs to read it there). A connection that is closed before its end is
/// reset.
fn prepare(socket: SockRef<'_>) {
    // Where the system refuses, a connection works without.
    let _ = socket.set_tcp_nodelay(true);
    let _ = socket.set_out_of_band_inline(true);
    let _ = socket.set_linger(Some(Duration::ZERO));
    let _ = socket
        .set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE_DELAY).with_interval(KEEPALIVE_INTERVAL));
}

/// Opens a listening socket in nonblocking mode.
pub(crate) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(LISTEN_BACKLOG)?;
    Ok(socket.into())
}
