//! An unmodified host: smoltcp's TCP over IP packets, with the application that serves or fetches
//! bytes.

use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::tcp;
use smoltcp::time::Instant as Time;
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};
use std::collections::VecDeque;
use std::net::IpAddr;

/// What stands between a host and its gateway.
struct Wire {
    inbox: VecDeque<Vec<u8>>,
    outbox: VecDeque<Vec<u8>>,
}

struct Arrived(Vec<u8>);

impl RxToken for Arrived {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(&self.0)
    }
}

struct Leaving<'a>(&'a mut VecDeque<Vec<u8>>);

impl TxToken for Leaving<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, f: F) -> R {
        let mut packet = vec![0; length];
        let result = f(&mut packet);
        self.0.push_back(packet);
        result
    }
}

impl Device for Wire {
    type RxToken<'a> = Arrived;
    type TxToken<'a> = Leaving<'a>;

    fn receive(&mut self, _: Time) -> Option<(Arrived, Leaving<'_>)> {
        let packet = self.inbox.pop_front()?;
        Some((Arrived(packet), Leaving(&mut self.outbox)))
    }

    fn transmit(&mut self, _: Time) -> Option<Leaving<'_>> {
        Some(Leaving(&mut self.outbox))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = 1500;
        capabilities
    }
}

/// The byte at `at` of what a server sends on `port`.
fn pattern(port: u16, at: u64) -> u8 {
    (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8 ^ port as u8
}

struct Connection {
    handle: SocketHandle,
    port: u16,
    /// Bytes that this side still sends.
    left: u64,
    sent: u64,
    pub received: u64,
    closed: bool,
}

/// A host with one address.
pub struct Host {
    pub address: IpAddr,
    wire: Wire,
    interface: Interface,
    sockets: SocketSet<'static>,
    connections: Vec<Connection>,
    ephemeral: u16,
}

const BUFFER: usize = 256 << 10;

impl Host {
    pub fn new(address: IpAddr) -> Self {
        let mut wire = Wire { inbox: VecDeque::new(), outbox: VecDeque::new() };
        let mut config = Config::new(HardwareAddress::Ip);
        config.random_seed = u64::from(address.to_string().bytes().map(u32::from).sum::<u32>());
        let mut interface = Interface::new(config, &mut wire, Time::ZERO);
        interface.update_ip_addrs(|addresses| {
            let length = if address.is_ipv4() { 8 } else { 32 };
            addresses.push(IpCidr::new(address.into(), length)).expect("room for an address");
        });
        match address {
            IpAddr::V4(own) => interface.routes_mut().add_default_ipv4_route(own).map(drop),
            IpAddr::V6(own) => interface.routes_mut().add_default_ipv6_route(own).map(drop),
        }
        .expect("room for a route");
        Self {
            address,
            wire,
            interface,
            sockets: SocketSet::new(Vec::new()),
            connections: Vec::new(),
            ephemeral: 40_000,
        }
    }

    fn socket(&mut self) -> SocketHandle {
        let buffer = || tcp::SocketBuffer::new(vec![0; BUFFER]);
        let mut socket = tcp::Socket::new(buffer(), buffer());
        socket.set_congestion_control(tcp::CongestionControl::Cubic);
        socket.set_ack_delay(None);
        self.sockets.add(socket)
    }

    /// Sends `bytes` to whoever connects to `port`.
    pub fn serve(&mut self, port: u16, bytes: u64) {
        let handle = self.socket();
        self.sockets.get_mut::<tcp::Socket<'_>>(handle).listen(port).expect("a free port");
        self.connections.push(Connection { handle, port, left: bytes, sent: 0, received: 0, closed: false });
    }

    /// Fetches what `to` serves on `port`.
    pub fn fetch(&mut self, to: IpAddr, port: u16) {
        let handle = self.socket();
        self.ephemeral += 1;
        let remote = (IpAddress::from(to), port);
        let socket = self.sockets.get_mut::<tcp::Socket<'_>>(handle);
        socket.connect(self.interface.context(), remote, self.ephemeral).expect("an attempt");
        self.connections.push(Connection { handle, port, left: 0, sent: 0, received: 0, closed: false });
    }

    /// Bytes received, on all connections; each was looked at.
    pub fn received(&self) -> u64 {
        self.connections.iter().map(|connection| connection.received).sum()
    }

    /// A packet for this host.
    pub fn take(&mut self, packet: &[u8]) {
        self.wire.inbox.push_back(packet.to_vec());
    }

    /// The next packet of this host's.
    pub fn give(&mut self) -> Option<Vec<u8>> {
        self.wire.outbox.pop_front()
    }

    pub fn run(&mut self, micros: u64) {
        let now = Time::from_micros(micros as i64);
        for _ in 0..2 {
            self.interface.poll(now, &mut self.wire, &mut self.sockets);
            for connection in &mut self.connections {
                let socket = self.sockets.get_mut::<tcp::Socket<'_>>(connection.handle);
                while connection.left > 0 && socket.can_send() {
                    let (port, at, left) = (connection.port, connection.sent, connection.left);
                    let sent = socket.send(|buffer| {
                        let length = buffer.len().min(left as usize);
                        buffer[..length]
                            .iter_mut()
                            .zip(at..)
                            .for_each(|(byte, at)| *byte = pattern(port, at));
                        (length, length)
                    });
                    let sent = sent.expect("an open socket") as u64;
                    connection.sent += sent;
                    connection.left -= sent;
                }
                while socket.can_recv() {
                    let (port, at) = (connection.port, connection.received);
                    let received = socket.recv(|bytes| {
                        assert!(bytes.iter().zip(at..).all(|(byte, at)| *byte == pattern(port, at)));
                        (bytes.len(), bytes.len())
                    });
                    connection.received += received.expect("an open socket") as u64;
                }
                let over = connection.sent > 0 && connection.left == 0 && socket.send_queue() == 0
                    || connection.received > 0 && !socket.may_recv();
                if over && socket.may_send() {
                    socket.close();
                }
                connection.closed = over && !socket.may_recv();
            }
        }
    }

    /// When to run it again, in microseconds.
    pub fn alarm(&mut self, micros: u64) -> Option<u64> {
        let now = Time::from_micros(micros as i64);
        self.interface.poll_at(now, &self.sockets).map(|at| at.total_micros() as u64)
    }
}
