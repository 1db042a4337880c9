//! Two endpoints in one loop, without sockets, threads or a clock. The loop tells each endpoint the
//! time, and carries datagrams between the endpoints. A program with an event loop does the same
//! with its sockets and its clock.
//!
//! ```text
//! cargo run -p byway-engine --example sans_io
//! ```

use byway_control::Class;
use byway_engine::data::InEvent;
use byway_engine::handshake::{Identity, PublicKey};
use byway_engine::seal::Suites;
use byway_engine::{Admission, Admit, Config, Connect, Endpoint, EndpointConfig, EndpointEvent, Handle};
use byway_wire::{Datagram, Duration, Input, Instant, LinkChange, Local, Machine, StreamId, TransmitBuffer};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// How long a datagram travels.
const DELAY: Duration = Duration::from_millis(10);
/// The stream of the example: the first that the initiator opens.
const STREAM: StreamId = StreamId(0);
/// What is sent.
const MESSAGE: &[u8] = b"one loop, two machines";

/// Lets everybody in.
struct Everybody;

impl Admission for Everybody {
    fn admit(&mut self, _peer: PublicKey, _said: &[u8]) -> Admit {
        Admit::Accept(Class::Normal.controller(1))
    }
}

/// A host: a machine, and the application that owns it.
struct Host {
    endpoint: Endpoint,
    address: SocketAddr,
    connection: Option<Handle>,
    /// What was read so far.
    read: Vec<u8>,
    finished: bool,
}

/// A datagram on its way.
struct Flying {
    arrives: Instant,
    from: SocketAddr,
    to: usize,
    bytes: Vec<u8>,
}

fn host(secret: u8, listens: bool) -> Host {
    let admission = listens.then(|| -> Box<dyn Admission> { Box::new(Everybody) });
    let mut endpoint = Endpoint::new(EndpointConfig {
        identity: Identity::from_secret([secret; 32]),
        suites: Suites::SECURE,
        // A program takes this from the system.
        seed: [secret; 32],
        connection: Config::default(),
        admission,
        greeting: Vec::new(),
    });
    let address = SocketAddr::from(([192, 0, 2, secret], 4747));
    // The machine learns of its only socket.
    let link = LinkChange { local: Local(0), address, up: true };
    endpoint.handle(Instant::ZERO, Input::Link(link));
    Host { endpoint, address, connection: None, read: Vec::new(), finished: false }
}

impl Host {
    /// The application's part: called after whatever happened to the machine.
    fn turn(&mut self) {
        while let Some(event) = self.endpoint.next_event() {
            match event {
                EndpointEvent::Connected(handle) => {
                    self.connection = Some(handle);
                    if let Some(connection) = self.endpoint.connection_mut(handle) {
                        let out = connection.outgoing();
                        out.open_stream(STREAM);
                        // A stream takes what it has room for; this fits.
                        out.write(STREAM, MESSAGE);
                        out.finish(STREAM);
                    }
                }
                EndpointEvent::Accepted(handle) => self.connection = Some(handle),
                _ => {}
            }
        }
        let connection = self.connection.and_then(|handle| self.endpoint.connection_mut(handle));
        let Some(connection) = connection else { return };
        while let Some(event) = connection.incoming().next_event() {
            let InEvent::StreamReadable(id) = event else { continue };
            let mut buffer = [0; 16];
            while let Some(read) = connection.incoming().read(id, &mut buffer) {
                self.read.extend_from_slice(buffer.get(..read.length).unwrap_or_default());
                self.finished |= read.finished;
                if read.length == 0 || read.finished {
                    break;
                }
            }
        }
    }

    /// What the machine has to send now, each datagram by itself.
    fn sends(&mut self, now: Instant, mut each: impl FnMut(SocketAddr, &[u8])) {
        let mut buffer = vec![0; 64 << 10];
        let mut out = TransmitBuffer { buffer: &mut buffer, max_segments: 1 };
        while let Some(transmit) = self.endpoint.transmit(now, &mut out) {
            each(transmit.remote, out.buffer.get(..transmit.size).unwrap_or_default());
        }
    }
}

/// Runs the example. Returns what arrived, and when.
pub fn run() -> Result<(Vec<u8>, Instant), &'static str> {
    let mut hosts = [host(1, false), host(2, true)];
    let mut now = Instant::ZERO;
    let connect = Connect {
        peer: hosts[1].endpoint.public_key(),
        addresses: vec![hosts[1].address],
        application: Vec::new(),
        controller: Class::Normal.controller(2),
    };
    hosts[0].endpoint.connect(now, connect).map_err(|_| "no connection is begun")?;
    let addresses = [hosts[0].address, hosts[1].address];
    let mut flying: VecDeque<Flying> = VecDeque::new();
    while !hosts[1].finished {
        // Send what there is to send. All datagrams travel equally long, so the queue is in order.
        for host in &mut hosts {
            let from = host.address;
            host.sends(now, |remote, bytes| {
                if let Some(to) = addresses.iter().position(|address| *address == remote) {
                    flying.push_back(Flying { arrives: now + DELAY, from, to, bytes: bytes.to_vec() });
                }
            });
        }
        // Sleep: the time is that of the next arrival or deadline.
        let deadlines = hosts.iter().filter_map(|host| host.endpoint.deadline());
        let arrival = flying.front().map(|next| next.arrives);
        now = deadlines.chain(arrival).min().ok_or("nothing will ever happen")?.max(now);
        // Hand over what has arrived, wake who is due, and let the applications look.
        while flying.front().is_some_and(|next| next.arrives <= now)
            && let Some(mut next) = flying.pop_front()
        {
            let datagram = Datagram {
                local: Local(0),
                remote: next.from,
                ecn: byway_wire::Ecn::NotEct,
                arrival: now,
                payload: &mut next.bytes,
                phantom: 0,
            };
            hosts[next.to].endpoint.handle(now, Input::Datagram(datagram));
        }
        for host in &mut hosts {
            if host.endpoint.deadline().is_some_and(|deadline| deadline <= now) {
                host.endpoint.wake(now);
            }
            host.turn();
        }
    }
    Ok((std::mem::take(&mut hosts[1].read), now))
}

fn main() -> Result<(), &'static str> {
    let (read, at) = run()?;
    println!("{:?} after {} ms", String::from_utf8_lossy(&read), at.since(Instant::ZERO).as_millis());
    Ok(())
}
