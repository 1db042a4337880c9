//! A listener for TCP connections that carry datagrams, and how many of them strangers may hold.

use crate::connection_permit::{ConnectionPermit, ConnectionQuota};
use crate::tcp::TcpCarrier;
use rustix::io::Errno;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex};

/// The most connections at once.
const MAX_CONNECTIONS: usize = 1024;
/// The most connections accepted in one turn: about a millisecond of work.
const MAX_TURN_ACCEPTS: usize = 64;

/// Whether more connections wait after some were accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backlog {
    /// No connection waits. The system reports the next one.
    Empty,
    /// Perhaps more connections.
    MayHaveMore,
    /// There may be more connections, but no descriptor or memory for them now. No event reports
    /// when there is: accept them a little later.
    OutOfResources,
}

/// Listens for TCP connections that carry datagrams.
#[derive(Debug)]
pub struct Listener {
    io: TcpListener,
    seats: Arc<Mutex<ConnectionQuota>>,
    most: usize,
}

impl Listener {
    /// Listens at `address`. An IPv6 listener takes IPv6 alone.
    ///
    /// # Errors
    /// What the system says: another program has the port, or this user may not bind it.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let domain = socket2::Domain::for_address(address);
        let io = socket2::Socket::new(domain, socket2::Type::STREAM, Some(socket2::Protocol::TCP))?;
        if address.is_ipv6() {
            io.set_only_v6(true)?;
        }
        // A port whose last connections are not quite over can be had again.
        io.set_reuse_address(true)?;
        io.set_nonblocking(true)?;
        io.bind(&address.into())?;
        io.listen(1024)?;
        Ok(Self { io: io.into(), seats: Arc::default(), most: MAX_CONNECTIONS })
    }

    /// Sets how many connections of all peers are open at once, in the place of 1,024.
    #[must_use]
    pub const fn with_seats(mut self, most: usize) -> Self {
        self.most = most;
        self
    }

    /// The address to which the listener is bound.
    ///
    /// # Errors
    /// What the system says.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.io.local_addr()
    }

    /// Accepts at most 64 waiting connections and adds them to `taken`. Returns what waits then. At
    /// most 64 connections per network (IPv4 /24, IPv6 /56; not loopback) are open, and 1,024 in
    /// total (or as `with_seats` sets). Any beyond are closed.
    pub fn accept(&self, taken: &mut Vec<TcpCarrier>) -> Backlog {
        for _ in 0..MAX_TURN_ACCEPTS {
            match self.io.accept() {
                Ok((stream, peer)) => {
                    let seat = ConnectionPermit::take(&self.seats, peer.ip(), self.most);
                    taken.extend(seat.and_then(|seat| TcpCarrier::seated(stream, Some(seat)).ok()));
                }
                Err(error) => match AcceptFailure::of(&error) {
                    AcceptFailure::Lost => {}
                    AcceptFailure::NoneWaits => return Backlog::Empty,
                    AcceptFailure::Later => return Backlog::OutOfResources,
                },
            }
        }
        Backlog::MayHaveMore
    }
}

/// Why no connection was accepted (accept(2)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AcceptFailure {
    /// No connection waits, or the socket no longer listens.
    NoneWaits,
    /// The next connection is gone: its peer hung up, or its network had a fault. Others may wait
    /// behind it.
    Lost,
    /// Others may wait, but the system refuses now: it lacks descriptors or memory, or has a rule
    /// against it.
    Later,
}

impl AcceptFailure {
    fn of(error: &io::Error) -> Self {
        match Errno::from_io_error(error) {
            Some(Errno::AGAIN | Errno::BADF | Errno::INVAL | Errno::NOTSOCK) => Self::NoneWaits,
            Some(
                Errno::CONNABORTED
                | Errno::CONNRESET
                | Errno::INTR
                | Errno::TIMEDOUT
                | Errno::NETDOWN
                | Errno::NETUNREACH
                | Errno::NONET
                | Errno::HOSTDOWN
                | Errno::HOSTUNREACH
                | Errno::PROTO
                | Errno::NOPROTOOPT
                | Errno::OPNOTSUPP,
            ) => Self::Lost,
            _ => Self::Later,
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.io.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shortage_is_no_empty_backlog() {
        for errno in [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::NOBUFS, Errno::PERM, Errno::NOSR] {
            assert_eq!(AcceptFailure::of(&errno.into()), AcceptFailure::Later, "{errno}");
        }
        for errno in [Errno::AGAIN, Errno::INVAL, Errno::BADF] {
            assert_eq!(AcceptFailure::of(&errno.into()), AcceptFailure::NoneWaits, "{errno}");
        }
    }

    /// Linux reports faults of the next connection's network in place of that connection.
    #[test]
    fn a_connection_that_is_lost_before_it_is_taken_hides_none_behind_it() {
        for errno in [Errno::CONNABORTED, Errno::NETDOWN, Errno::HOSTUNREACH, Errno::PROTO, Errno::INTR] {
            assert_eq!(AcceptFailure::of(&errno.into()), AcceptFailure::Lost, "{errno}");
        }
    }
}
