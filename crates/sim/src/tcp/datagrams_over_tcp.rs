//! A node on a host that has TCP: datagrams in frames over the connections that it dials and
//! accepts.

use super::server_config::ServerConfig;
use super::stack::{ByHand, Stack};
use crate::world::Node;
use byway_wire::framing::LENGTH_PREFIX_LEN;
use byway_wire::{
    ConnectionChange, Datagram, Ecn, Input, Instant, LinkChange, Local, Machine, RoomChange, SendError,
    SendErrorKind, TcpRequest, Transmit, TransmitBuffer,
};
use core::net::SocketAddr;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// The default of the bytes that a connection accepts beyond those sent. byway's real connections
/// have the same.
const MAX_UNSENT_BYTES: u64 = 128 << 10;
/// The first port of a host that dials: the first of the range of RFC 6335, section 6.
const FIRST_EPHEMERAL_PORT: u32 = 49_152;
/// The bit that tells TCP ports from UDP ports. In a world, an address and port belong to one
/// socket, so TCP and UDP cannot use the same port. The TCP port is the UDP port with this bit
/// flipped.
const TCP_PORT_BIT: u16 = 1 << 15;

/// The address of the TCP host that belongs to the UDP address `udp` of a world. The IP address is
/// the same, and the port differs in its highest bit (32 768).
#[must_use]
pub const fn tcp_address(udp: SocketAddr) -> SocketAddr {
    match udp {
        SocketAddr::V4(v4) => {
            SocketAddr::V4(core::net::SocketAddrV4::new(*v4.ip(), v4.port() ^ TCP_PORT_BIT))
        }
        SocketAddr::V6(v6) => {
            SocketAddr::V6(core::net::SocketAddrV6::new(*v6.ip(), v6.port() ^ TCP_PORT_BIT, 0, 0))
        }
    }
}

/// The payload bytes of all TCP connections of a world. Simulated segments carry only the length of
/// their data. So the bytes wait here until segments have carried as many bytes to the other end.
#[derive(Clone, Debug, Default)]
pub struct FrameBytes(Rc<RefCell<Streams>>);

#[derive(Debug, Default)]
struct Streams {
    /// Frames in flight, by connection and direction (whether from the side that dialled).
    under_way: BTreeMap<(u64, bool), VecDeque<Frame>>,
    /// Number of connections that were ever dialled.
    dialled: u64,
}

#[derive(Debug)]
struct Frame {
    /// The offset of the frame's end in its stream.
    end: u64,
    payload: Vec<u8>,
    phantom: usize,
}

impl FrameBytes {
    fn name(&self) -> u64 {
        let mut streams = self.0.borrow_mut();
        streams.dialled += 1;
        streams.dialled
    }

    fn push(&self, stream: (u64, bool), frame: Frame) {
        self.0.borrow_mut().under_way.entry(stream).or_default().push_back(frame);
    }

    /// Removes the next frame of the stream, if it ends at or before the offset `come`.
    fn pop(&self, stream: (u64, bool), come: u64) -> Option<Frame> {
        let mut streams = self.0.borrow_mut();
        let frames = streams.under_way.get_mut(&stream)?;
        if frames.front()?.end > come {
            return None;
        }
        frames.pop_front()
    }

    fn forget(&self, stream: (u64, bool)) {
        self.0.borrow_mut().under_way.remove(&stream);
    }
}

/// A node whose datagrams can also travel over TCP connections that the node dials or accepts, as
/// in `byway-net`. Its machine gets [`Input::Connection`] and [`Input::Room`]. Add the node to a
/// world with the addresses of [`addresses`](Self::addresses).
#[derive(Debug)]
pub struct TcpCarried<N> {
    both: NodeWithTcp<N>,
}

/// A node's machine, and the TCP of its host, as one machine.
#[derive(Debug)]
struct NodeWithTcp<N> {
    node: N,
    /// The deadline of the node's machine after the latest call.
    due: Option<Instant>,
    stack: Stack,
    /// The number of UDP sockets.
    sockets: u16,
    /// The addresses of the TCP hosts.
    here: Vec<SocketAddr>,
    bytes: FrameBytes,
    connections: Vec<Option<CarriedConnection>>,
    /// Connections that are not over, the oldest first: numbers are hardly ever used twice.
    live: Vec<Local>,
    /// Numbers of connections that are over, the oldest first.
    over: VecDeque<u16>,
    refuses: bool,
    /// Bytes that a connection accepts beyond those sent.
    unsent: u64,
}

#[derive(Debug)]
struct CarriedConnection {
    which: ByHand,
    /// The connection's number in the simulation, and whether this host dialled it.
    name: (u64, bool),
    address: SocketAddr,
    peer: SocketAddr,
    /// Whether the machine was told of the connection.
    told: bool,
    /// The deadline for a dialled connection to be established. `None`: it is established, or was
    /// accepted.
    until: Option<Instant>,
    full: bool,
    /// Whether the machine has paused reading from the connection.
    paused: bool,
    written: u64,
    read: u64,
}

impl CarriedConnection {
    const fn new(which: ByHand, name: (u64, bool), address: SocketAddr, peer: SocketAddr) -> Self {
        Self {
            which,
            name,
            address,
            peer,
            told: false,
            until: None,
            full: false,
            paused: false,
            written: 0,
            read: 0,
        }
    }
}

impl<N: Node> TcpCarried<N> {
    /// Puts `node`, which has `sockets` UDP sockets, on a host whose TCP behaves as `serve` says.
    /// `bytes` holds the payload of all connections, since simulated segments carry only lengths;
    /// all such hosts of a world share it. TCP draws its random numbers from `seed`.
    #[must_use]
    pub fn new(node: N, sockets: u16, bytes: &FrameBytes, seed: u64, serve: ServerConfig) -> Self {
        let mut stack = Stack::new(seed);
        stack.serve = serve;
        stack.newcomers = Some(Vec::new());
        Self {
            both: NodeWithTcp {
                node,
                due: None,
                stack,
                sockets,
                here: Vec::new(),
                bytes: bytes.clone(),
                connections: Vec::new(),
                live: Vec::new(),
                over: VecDeque::new(),
                refuses: false,
                unsent: MAX_UNSENT_BYTES,
            },
        }
    }

    /// Returns the addresses of such a host in a world.
    #[must_use]
    pub fn addresses(udp: &[SocketAddr]) -> Vec<SocketAddr> {
        udp.iter().copied().chain(udp.iter().map(|address| tcp_address(*address))).collect()
    }

    /// The node whose datagrams go over TCP.
    pub const fn node(&self) -> &N {
        &self.both.node
    }

    /// The node whose datagrams go over TCP.
    pub const fn node_mut(&mut self) -> &mut N {
        &mut self.both.node
    }

    /// Sets whether incoming connections are refused.
    pub const fn refuse(&mut self, refuses: bool) {
        self.both.refuses = refuses;
    }

    /// Sets the bytes that connections accept beyond those sent.
    #[must_use]
    pub const fn shallow(mut self, unsent: u64) -> Self {
        self.both.unsent = unsent;
        self
    }

    /// Opens a TCP connection from the host of the UDP socket `from` to the host of the UDP address
    /// `peer`. Returns the connection's number at once. `None`: there is no such socket, or all
    /// numbers are in use.
    pub fn dial(&mut self, now: Instant, from: Local, peer: SocketAddr) -> Option<Local> {
        self.both.dial(now, from, peer)
    }

    /// Closes a connection. Data written before still arrive.
    pub fn close(&mut self, now: Instant, local: Local) {
        self.both.close(now, local);
    }

    /// Resets a connection. Data in flight are lost.
    pub fn reset(&mut self, now: Instant, local: Local) {
        if let Some(which) = self.both.connection(local).map(|connection| connection.which) {
            self.both.stack.reset(now, which);
            self.both.gone(now, local);
        }
    }

    /// Pauses reading from a connection, or resumes it. While it is paused, its window closes and
    /// holds the peer back.
    pub fn pause(&mut self, now: Instant, local: Local, paused: bool) {
        self.both.pause(local, paused);
        self.both.settle(now);
    }

    /// Connections that are not over, with the address that each leads to.
    pub fn connections(&self) -> impl Iterator<Item = (Local, SocketAddr)> + '_ {
        let live = self.both.live.iter();
        live.filter_map(|local| Some((*local, self.both.connection(*local)?.peer)))
    }
}

impl<N: Node> NodeWithTcp<N> {
    fn tell(&mut self, now: Instant, input: Input<'_>) {
        self.node.machine().handle(now, input);
    }

    fn dial(&mut self, now: Instant, from: Local, peer: SocketAddr) -> Option<Local> {
        let here = *self.here.get(usize::from(from.0))?;
        let name = self.bytes.name();
        let way = (Local(self.sockets + from.0), tcp_address(peer));
        let which = self.stack.dial(now, way, name)?;
        let address = SocketAddr::new(here.ip(), ephemeral(which.port));
        self.enter(CarriedConnection::new(which, (name, true), address, peer))
    }

    fn connection(&self, local: Local) -> Option<&CarriedConnection> {
        self.connections.get(local.connection_index()?)?.as_ref()
    }

    fn connection_mut(&mut self, local: Local) -> Option<&mut CarriedConnection> {
        self.connections.get_mut(local.connection_index()?)?.as_mut()
    }

    fn enter(&mut self, connection: CarriedConnection) -> Option<Local> {
        let local = match Local::connection(self.connections.len()) {
            Some(local) => {
                self.connections.push(Some(connection));
                local
            }
            None => {
                let local = Local(self.over.pop_front()?);
                *self.connections.get_mut(local.connection_index()?)? = Some(connection);
                local
            }
        };
        self.live.push(local);
        Some(local)
    }

    /// Handles the end of a connection.
    fn gone(&mut self, now: Instant, local: Local) {
        let place = local.connection_index().and_then(|index| self.connections.get_mut(index));
        let Some(CarriedConnection { name, address, peer, told, until, .. }) = place.and_then(Option::take)
        else {
            return;
        };
        self.over.push_back(local.0);
        self.live.retain(|live| *live != local);
        // What it brought and nobody took.
        self.bytes.forget((name.0, !name.1));
        if told {
            let change = ConnectionChange { local, address, peer, open: false };
            self.tell(now, Input::Connection(change));
        } else if until.is_some() {
            self.tell(now, Input::NotDialed(peer));
        }
    }

    /// Carries out the machine's requests about connections. Returns whether there were any.
    fn answer_asks(&mut self, now: Instant) -> bool {
        let mut any = false;
        while let Some(ask) = self.node.machine().ask(now) {
            any = true;
            match ask {
                TcpRequest::Dial { peer, patience } => {
                    let local = self.dial(now, Local(0), peer);
                    match local.and_then(|local| self.connection_mut(local)) {
                        Some(connection) => connection.until = Some(now + patience),
                        None => self.tell(now, Input::NotDialed(peer)),
                    }
                }
                TcpRequest::Pause(local) => self.pause(local, true),
                TcpRequest::Resume(local) => self.pause(local, false),
                TcpRequest::Close(local) => self.close(now, local),
            }
        }
        any
    }

    fn pause(&mut self, local: Local, paused: bool) {
        if let Some(connection) = self.connection_mut(local) {
            connection.paused = paused;
        }
    }

    fn close(&mut self, now: Instant, local: Local) {
        if let Some(which) = self.connection(local).map(|connection| connection.which) {
            self.stack.end(now, which);
            self.gone(now, local);
        }
    }

    /// Passes events of connections to the machine: new ones, received data, room to send, and
    /// ends.
    fn settle(&mut self, now: Instant) {
        while let Some(which) = self.stack.newcomers.as_mut().and_then(Vec::pop) {
            self.accept(now, which);
        }
        self.answer_asks(now);
        // A connection that is read again has brought what is here already.
        let mut again = true;
        while core::mem::take(&mut again) {
            let mut at = 0;
            while let Some(local) = self.live.get(at).copied() {
                self.settle_one(now, local);
                again |= self.answer_asks(now);
                at += usize::from(self.live.get(at) == Some(&local));
            }
        }
    }

    fn accept(&mut self, now: Instant, which: ByHand) {
        if self.refuses {
            return self.stack.reset(now, which);
        }
        let Some(known) = self.stack.by_hand(which) else { return };
        let name = (known.opening.tag, false);
        let peer = SocketAddr::new(known.remote.ip(), ephemeral(known.peer_port));
        let host = known.local.0.checked_sub(self.sockets).and_then(|host| self.here.get(usize::from(host)));
        let Some(address) = host.copied().map(tcp_address) else { return };
        self.enter(CarriedConnection::new(which, name, address, peer));
    }

    fn settle_one(&mut self, now: Instant, local: Local) {
        let Some(connection) = self.connection(local) else { return };
        let (which, name, peer) = (connection.which, connection.name, connection.peer);
        let Some((is_open, come, is_over)) = self
            .stack
            .by_hand(which)
            .map(|known| (known.is_established(), known.receive.next, known.receive.is_complete()))
        else {
            return self.gone(now, local);
        };
        if !is_open {
            if connection.until.is_some_and(|until| until <= now) {
                self.stack.reset(now, which);
                self.gone(now, local);
            }
            return;
        }
        let address = connection.address;
        if !connection.told {
            self.tell(now, Input::Connection(ConnectionChange { local, address, peer, open: true }));
            if let Some(connection) = self.connection_mut(local) {
                connection.told = true;
            }
        }
        while self.connection(local).is_some_and(|connection| !connection.paused)
            && let Some(Frame { end, mut payload, phantom }) = self.bytes.pop((name.0, !name.1), come)
        {
            let datagram = Datagram {
                local,
                remote: peer,
                ecn: Ecn::NotEct,
                arrival: now,
                payload: &mut payload,
                phantom,
            };
            self.tell(now, Input::Datagram(datagram));
            if let Some(connection) = self.connection_mut(local) {
                let bytes = end - connection.read;
                connection.read = end;
                self.stack.read(which, bytes);
            }
        }
        self.look_for_room(now, local);
        if is_over {
            self.stack.end(now, which);
            self.gone(now, local);
        }
    }

    /// Notifies the machine if a full connection has room again.
    fn look_for_room(&mut self, now: Instant, local: Local) {
        let Some(which) = self.connection(local).filter(|it| it.full).map(|it| it.which) else { return };
        if self.stack.unsent(which) <= self.unsent / 2 {
            if let Some(connection) = self.connection_mut(local) {
                connection.full = false;
            }
            self.tell(now, Input::Room(RoomChange { local, room: true }));
        }
    }

    /// Writes the machine's datagrams to a connection.
    fn write(&mut self, now: Instant, transmit: &Transmit, bytes: &[u8]) {
        let local = transmit.local;
        let refused = SendError {
            local,
            remote: transmit.remote,
            size: transmit.segment,
            kind: SendErrorKind::Unreachable,
        };
        let stack = &self.stack;
        let known = self.connections.get_mut(local.connection_index().unwrap_or(usize::MAX));
        let known = known.and_then(Option::as_mut).filter(|it| it.told && it.peer == transmit.remote);
        let Some(connection) = known.filter(|it| stack.by_hand(it.which).is_some()) else {
            return self.tell(now, Input::SendError(refused));
        };
        let mut written = 0;
        for payload in bytes.chunks(transmit.segment.max(1)) {
            written += (LENGTH_PREFIX_LEN + payload.len() + transmit.phantom) as u64;
            let end = connection.written + written;
            let frame = Frame { end, payload: payload.to_vec(), phantom: transmit.phantom };
            self.bytes.push(connection.name, frame);
        }
        connection.written += written;
        let which = connection.which;
        self.stack.write(which, written);
        if self.stack.unsent(which) > self.unsent
            && let Some(connection) = self.connection_mut(local)
            && !core::mem::replace(&mut connection.full, true)
        {
            self.tell(now, Input::Room(RoomChange { local, room: false }));
        }
    }
}

/// The port that a dialling side seems to have.
const fn ephemeral(port: u32) -> u16 {
    (FIRST_EPHEMERAL_PORT + port % (65_536 - FIRST_EPHEMERAL_PORT)) as u16
}

impl<N: Node> Machine for NodeWithTcp<N> {
    fn handle(&mut self, now: Instant, input: Input<'_>) {
        let local = match &input {
            Input::Datagram(datagram) => datagram.local,
            Input::SendError(error) => error.local,
            Input::Link(change) => change.local,
            Input::Room(change) => change.local,
            Input::Connection(change) => change.local,
            // The node's own, as what comes by its sockets.
            Input::NotDialed(_) => Local(0),
        };
        if local.0 < self.sockets {
            self.tell(now, input);
        } else {
            if let Input::Link(LinkChange { address, up: true, .. }) = &input
                && self.here.len() < usize::from(self.sockets)
            {
                self.here.push(*address);
            }
            self.stack.handle(now, input);
        }
        self.settle(now);
    }

    fn wake(&mut self, now: Instant) {
        self.stack.wake(now);
        let machine = self.node.machine();
        if machine.deadline().is_some_and(|deadline| deadline <= now) {
            machine.wake(now);
        }
        self.settle(now);
    }

    fn transmit(&mut self, now: Instant, out: &mut TransmitBuffer<'_>) -> Option<Transmit> {
        loop {
            while let Some(transmit) = self.node.machine().transmit(now, out) {
                if transmit.local.0 < self.sockets {
                    return Some(transmit);
                }
                let written = out.buffer.get(..transmit.size).map(<[u8]>::to_vec).unwrap_or_default();
                self.write(now, &transmit, &written);
            }
            let transmit = self.stack.transmit(now, out);
            // What leaves makes room.
            if transmit.is_some() {
                for at in 0..self.live.len() {
                    if let Some(local) = self.live.get(at).copied() {
                        self.look_for_room(now, local);
                    }
                }
            }
            if transmit.is_some() || !self.answer_asks(now) {
                self.due = self.node.machine().deadline();
                return transmit;
            }
            self.settle(now);
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let live = self.live.iter().filter_map(|local| self.connection(*local));
        let waits = live.filter(|it| !it.told).filter_map(|it| it.until).min();
        [self.due, self.stack.deadline(), waits].into_iter().flatten().min()
    }
}

impl<N: Node> Node for TcpCarried<N> {
    fn machine(&mut self) -> &mut dyn Machine {
        self.both.due = self.both.node.machine().deadline();
        &mut self.both
    }

    fn turn(&mut self, now: Instant) {
        self.both.node.turn(now);
    }

    fn alarm(&self) -> Option<Instant> {
        self.both.node.alarm()
    }
}
