//! A driver's sockets and TCP connections by number, and which of them are full.

use crate::carrier::Carrier;
use crate::clock::Clock;
use crate::send_backlog::Outbox;
use crate::send_batch::Obstacle;
use crate::socket::Socket;
use crate::tcp::TcpCarrier;
use byway_wire::{Duration, Instant, Local};
use std::collections::VecDeque;

/// Time for which a full device is left alone. At 1 Gbit/s, 50 full-sized datagrams leave in this
/// time.
const DEVICE_PAUSE: Duration = Duration::from_micros(500);

/// The number of the first additional socket. Sockets that the machine knows have smaller numbers.
const FIRST_EXTRA_SOCKET: u16 = 1 << 14;

/// Sockets and connections by number.
#[derive(Debug, Default)]
pub(crate) struct Links {
    sockets: Vec<Link>,
    /// Additional sockets, which the machine does not know.
    beside: Vec<Link>,
    connections: Vec<Link>,
    /// Numbers of connections that are over, the oldest first.
    over: VecDeque<u16>,
}

/// A socket or connection, and its state.
#[derive(Debug)]
pub(crate) struct Link {
    /// The socket or connection. `None`: it was a TCP connection or a socket beside another one,
    /// and is closed.
    pub carrier: Option<Carrier>,
    /// Receive calls that failed in a row.
    pub failures: u32,
    pub full: Option<SocketFull>,
    /// Runs that wait until the socket has room. Allocated when the socket is first full.
    pub parked: Option<Box<Outbox>>,
    /// Whether reading is paused.
    pub paused: bool,
}

/// The state of a socket that is full, or whose device is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SocketFull {
    /// The time of the next attempt, if the system will not report room. `None`: it will.
    pub retry: Option<Instant>,
    /// Whether the socket probably has room again.
    pub over: bool,
}

impl SocketFull {
    pub(crate) fn new(obstacle: Obstacle, clock: &Clock) -> Self {
        Self { retry: (obstacle == Obstacle::Device).then(|| clock.now() + DEVICE_PAUSE), over: false }
    }

    /// Whether the system will report room in the socket.
    pub(crate) const fn waits_for_socket(self) -> bool {
        self.retry.is_none()
    }
}

impl Link {
    const fn new(carrier: Carrier) -> Self {
        Self { carrier: Some(carrier), failures: 0, full: None, parked: None, paused: false }
    }

    /// Whether the link waits until the system reports room.
    pub(crate) fn waits_for_socket(&self) -> bool {
        self.full.is_some_and(SocketFull::waits_for_socket)
    }

    /// Whether the link is a broken TCP connection.
    pub(crate) fn is_broken(&self) -> bool {
        matches!(&self.carrier, Some(Carrier::Tcp(connection)) if connection.is_gone())
    }
}

impl Links {
    /// The number of one more. `None`: there are as many sockets as there are numbers.
    pub(crate) fn add_socket(&mut self, socket: Socket) -> Option<Local> {
        let number = u16::try_from(self.sockets.len()).ok().filter(|it| *it < FIRST_EXTRA_SOCKET)?;
        self.sockets.push(Link::new(Carrier::Udp(socket)));
        Some(Local(number))
    }

    /// Adds a socket that the machine does not know. Returns its number. `None`: no number is left.
    pub(crate) fn add_beside(&mut self, socket: Socket) -> Option<Local> {
        let link = Link::new(Carrier::Udp(socket));
        let free = self.beside.iter().position(|link| link.carrier.is_none()).unwrap_or(self.beside.len());
        let number = u16::try_from(free).ok()?.checked_add(FIRST_EXTRA_SOCKET).map(Local);
        let number = number.filter(|it| !it.is_connection())?;
        match self.beside.get_mut(free) {
            Some(place) => *place = link,
            None => self.beside.push(link),
        }
        Some(number)
    }

    /// Closes an additional socket. Data that wait for it are dropped.
    pub(crate) fn close_beside(&mut self, local: Local) {
        if let Some(link) = self.get_mut(local) {
            (link.carrier, link.full, link.parked) = (None, None, None);
        }
    }

    /// The number of one more, of which the machine has heard nothing for long. `None`: there are
    /// as many connections as there are numbers.
    pub(crate) fn add_connection(&mut self, connection: Box<TcpCarrier>) -> Option<Local> {
        let link = Link::new(Carrier::Tcp(connection));
        if let Some(number) = Local::connection(self.connections.len()) {
            self.connections.push(link);
            return Some(number);
        }
        let number = Local(self.over.pop_front()?);
        *self.get_mut(number)? = link;
        Some(number)
    }

    #[inline]
    pub(crate) fn get(&self, local: Local) -> Option<&Link> {
        match local.connection_index() {
            None if local.0 >= FIRST_EXTRA_SOCKET => {
                self.beside.get(usize::from(local.0 - FIRST_EXTRA_SOCKET))
            }
            None => self.sockets.get(usize::from(local.0)),
            Some(index) => self.connections.get(index),
        }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, local: Local) -> Option<&mut Link> {
        match local.connection_index() {
            None if local.0 >= FIRST_EXTRA_SOCKET => {
                self.beside.get_mut(usize::from(local.0 - FIRST_EXTRA_SOCKET))
            }
            None => self.sockets.get_mut(usize::from(local.0)),
            Some(index) => self.connections.get_mut(index),
        }
    }

    /// Removes a connection. Data that wait for it are dropped.
    pub(crate) fn take_connection(&mut self, local: Local) -> Option<Box<TcpCarrier>> {
        let link = self.get_mut(local)?;
        let carrier = link.carrier.take_if(|carrier| matches!(carrier, Carrier::Tcp(_)))?;
        (link.full, link.parked, link.paused) = (None, None, false);
        self.over.push_back(local.0);
        if let Carrier::Tcp(connection) = carrier { Some(connection) } else { None }
    }

    /// The most datagrams in one message, over all sockets.
    pub(crate) fn max_segments(&self) -> usize {
        let all = self.sockets.iter().filter_map(|link| link.carrier.as_ref());
        all.map(Carrier::max_segments).max().unwrap_or(1)
    }

    pub(crate) fn into_sockets(self) -> Vec<Socket> {
        let udp =
            |link: Link| if let Some(Carrier::Udp(socket)) = link.carrier { Some(socket) } else { None };
        self.sockets.into_iter().filter_map(udp).collect()
    }
}
