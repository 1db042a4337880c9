//! The carrier of a driver's datagrams: a UDP socket, or a TCP connection.

use crate::send_backlog::Outbox;
use crate::send_batch::SendResult;
use crate::socket::Socket;
use crate::statistics::Counters;
use crate::tcp::TcpCarrier;
use std::os::fd::{AsFd, BorrowedFd};

/// The transport of datagrams: a UDP socket or a TCP connection.
#[derive(Debug)]
pub enum Carrier {
    /// A UDP socket, for all addresses.
    Udp(Socket),
    /// A TCP connection, which carries datagrams to one address.
    Tcp(Box<TcpCarrier>),
}

impl From<Socket> for Carrier {
    fn from(socket: Socket) -> Self {
        Self::Udp(socket)
    }
}

impl From<TcpCarrier> for Carrier {
    fn from(connection: TcpCarrier) -> Self {
        Self::Tcp(Box::new(connection))
    }
}

impl AsFd for Carrier {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Udp(socket) => socket.io.as_fd(),
            Self::Tcp(connection) => connection.as_fd(),
        }
    }
}

impl Carrier {
    /// The most datagrams that the machine may write in one run.
    pub(crate) fn max_segments(&self) -> usize {
        match self {
            Self::Udp(socket) => socket.max_segments(),
            Self::Tcp(_) => 1,
        }
    }

    /// Sends the next runs in the outbox as far as possible, and removes them.
    pub(crate) fn send_next(&mut self, outbox: &mut Outbox, counters: &Counters) -> SendResult {
        let Some((_, runs, start)) = outbox.next() else { return SendResult::All };
        let left = match self {
            Self::Udp(socket) => socket.send(&runs, start, counters),
            Self::Tcp(connection) => connection.send(&runs, start, counters),
        };
        drop(runs);
        let sent = if let SendResult::Blocked(sent, _) = left.then { sent } else { 0 };
        outbox.advance(left.done, sent);
        left.then
    }
}
