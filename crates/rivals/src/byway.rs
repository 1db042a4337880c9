//! byway with one path, over UDP or over one TCP connection, for the comparison with other
//! transports. The sender sends one endless object and reads it from memory. The receiver discards
//! the data at once.

use crate::{Error, Finish, MAX_DATAGRAM_LEN, Meter, PIECE_LEN, WINDOW_BYTES};
use bytes::Bytes;
use byway_control::by_name;
use byway_engine::data::{IncomingLimits, OutgoingLimits};
use byway_engine::handshake::{Identity, PublicKey};
use byway_engine::seal::Suites;
use byway_engine::{Admission, Admit, Config, Connect, Endpoint, EndpointConfig, EndpointEvent, Handle};
use byway_net::{
    Backlog, Carrier, Clock, Control, Dialing, Listener, LoopControl, Owner, Ready, Socket, Statistics,
    Token, Watch, seed, spawn_with,
};
use byway_wire::{Instant, ObjectId};
use data_encoding::HEXLOWER;
use std::net::SocketAddr;

/// Bytes of an object without an end: more than any run moves.
const ENDLESS_BYTES: u64 = 1 << 50;

/// The descriptor of the TCP socket (connection or listener) at an end. All others are UDP sockets.
const TCP_TOKEN: Token = Token(0);

/// The transport of byway's packets: UDP or one TCP connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carries {
    /// UDP datagrams.
    Udp,
    /// A single TCP connection carries the packets.
    Tcp,
}

/// A TCP connection that is not established yet: the receiver listens, and the sender dials.
#[derive(Default)]
struct Coming {
    listener: Option<Listener>,
    dialing: Option<Dialing>,
    opened: Vec<Carrier>,
}

impl Coming {
    fn ready(&mut self, watch: &Watch, ready: Ready) {
        if let Some(listener) = &self.listener {
            let mut taken = Vec::new();
            while listener.accept(&mut taken) == Backlog::MayHaveMore {}
            self.opened.extend(taken.into_iter().map(Carrier::from));
        }
        if let Some(dialing) = self.dialing.take_if(|_| ready.writable) {
            let _ = watch.remove(&dialing);
            self.opened.extend(dialing.finish().ok().map(Carrier::from));
        }
    }
}

struct AcceptAll(&'static str);

impl Admission for AcceptAll {
    fn admit(&mut self, _: PublicKey, _: &[u8]) -> Admit {
        match by_name(self.0, 2) {
            Some(controller) => Admit::Accept(controller),
            None => Admit::Reject { code: 1, reason: "no such controller".into() },
        }
    }
}

struct Sender {
    congestion: &'static str,
    peer: PublicKey,
    address: SocketAddr,
    handle: Option<Handle>,
    ready: bool,
    piece: Bytes,
    meter: Meter,
    watch: Watch,
    coming: Coming,
}

impl Owner for Sender {
    type Machine = Endpoint;

    fn ready(&mut self, _: &mut Endpoint, ready: Ready, _: Instant) {
        self.coming.ready(&self.watch, ready);
    }

    fn opened(&mut self) -> Vec<Carrier> {
        std::mem::take(&mut self.coming.opened)
    }

    fn turn(&mut self, endpoint: &mut Endpoint, now: Instant) -> LoopControl {
        if self.handle.is_none() {
            let Some(controller) = by_name(self.congestion, 1) else { return LoopControl::Stop };
            let connect = Connect {
                peer: self.peer,
                addresses: vec![self.address],
                application: Vec::new(),
                controller,
            };
            self.handle = endpoint.connect(now, connect).ok();
        }
        while let Some(event) = endpoint.next_event() {
            match event {
                EndpointEvent::Connected(handle) => {
                    if let Some(connection) = endpoint.connection_mut(handle) {
                        connection.outgoing().add_object(ObjectId(0), ENDLESS_BYTES);
                    }
                    self.ready = true;
                    self.meter.connected();
                }
                EndpointEvent::Failed(..) | EndpointEvent::Closed(_) => return LoopControl::Stop,
                _ => {}
            }
        }
        if self.ready
            && let Some(connection) = self.handle.and_then(|handle| endpoint.connection_mut(handle))
        {
            let out = connection.outgoing();
            while let Some(read) = out.next_read() {
                let bytes = self.piece.slice(..read.length.min(self.piece.len()));
                out.provide(read.object, read.offset, bytes);
            }
            while out.next_event().is_some() {}
            while connection.next_event().is_some() {}
        }
        LoopControl::Continue
    }
}

struct Receiver {
    handle: Option<Handle>,
    meter: Meter,
    watch: Watch,
    coming: Coming,
}

impl Owner for Receiver {
    type Machine = Endpoint;

    fn ready(&mut self, _: &mut Endpoint, ready: Ready, _: Instant) {
        self.coming.ready(&self.watch, ready);
    }

    fn opened(&mut self) -> Vec<Carrier> {
        std::mem::take(&mut self.coming.opened)
    }

    fn turn(&mut self, endpoint: &mut Endpoint, _: Instant) -> LoopControl {
        while let Some(event) = endpoint.next_event() {
            if let EndpointEvent::Accepted(handle) = event {
                self.handle = Some(handle);
                self.meter.connected();
            }
        }
        if let Some(connection) = self.handle.and_then(|handle| endpoint.connection_mut(handle)) {
            while connection.next_event().is_some() {}
            let incoming = connection.incoming();
            while let Some(write) = incoming.next_write() {
                self.meter.received(write.data.len() as u64);
                incoming.written(write.data);
            }
            while incoming.next_event().is_some() {}
        }
        LoopControl::Continue
    }
}

fn endpoint(admission: Option<Box<dyn Admission>>) -> Result<(Endpoint, PublicKey), Error> {
    let identity = Identity::from_secret(seed()?);
    let public = identity.public();
    let config = Config {
        max_datagram: MAX_DATAGRAM_LEN,
        outgoing: OutgoingLimits { memory: WINDOW_BYTES, read_size: PIECE_LEN, ..OutgoingLimits::default() },
        incoming: IncomingLimits { memory: WINDOW_BYTES, ..IncomingLimits::default() },
        ..Config::default()
    };
    let endpoint = Endpoint::new(EndpointConfig {
        identity,
        suites: Suites::SECURE,
        seed: seed()?,
        connection: config,
        admission,
        greeting: Vec::new(),
    });
    Ok((endpoint, public))
}

/// Starts the receiver, with this congestion controller. Returns its address and key as a line of
/// text, and a function that ends it.
///
/// # Errors
///
/// What the system refuses.
pub fn take(congestion: &'static str, carries: Carries, meter: Meter) -> Result<(String, Finish), Error> {
    let here = "127.0.0.1:0".parse()?;
    let control = Control::new()?;
    let (mut coming, mut sockets) = (Coming::default(), Vec::new());
    let address = match carries {
        Carries::Udp => {
            let socket = Socket::bind(here)?;
            let address = socket.address();
            sockets.push(socket);
            address
        }
        Carries::Tcp => {
            let listener = Listener::bind(here)?;
            control.watch().add(&listener, TCP_TOKEN)?;
            coming.listener.insert(listener).address()?
        }
    };
    let (machine, key) = endpoint(Some(Box::new(AcceptAll(congestion))))?;
    let receiver = Receiver { handle: None, meter, watch: control.watch().clone(), coming };
    let driver = spawn_with(control, "receiver", machine, receiver, sockets, Clock::new())?;
    let finish = move || {
        let counts = driver.statistics();
        driver.stop();
        driver.join()?.outcome?;
        Ok(format!("{:.1} datagrams per receive call", per(counts.received_datagrams, counts.receive_calls)))
    };
    Ok((format!("{address} {key}"), Box::new(finish)))
}

/// Starts the sender, with this congestion controller. `word` is the receiver's address and key, as
/// its `take` returned them.
///
/// # Errors
///
/// What the system refuses, or a word that is none.
pub fn give(congestion: &'static str, carries: Carries, word: &str, meter: Meter) -> Result<Finish, Error> {
    let (address, key) = word.split_once(' ').ok_or("no word of byway's")?;
    let key = HEXLOWER.decode(key.as_bytes()).map_err(|error| error.to_string())?;
    let address = address.parse()?;
    let control = Control::new()?;
    let (mut coming, mut sockets) = (Coming::default(), Vec::new());
    match carries {
        Carries::Udp => sockets.push(Socket::bind("127.0.0.1:0".parse()?)?),
        Carries::Tcp => {
            let dialing = Dialing::begin(address, None)?;
            control.watch().add(coming.dialing.insert(dialing), TCP_TOKEN)?;
        }
    }
    let sender = Sender {
        congestion,
        peer: PublicKey(key.as_slice().try_into()?),
        address,
        handle: None,
        ready: false,
        piece: vec![1; PIECE_LEN].into(),
        meter,
        watch: control.watch().clone(),
        coming,
    };
    let (machine, _) = endpoint(None)?;
    let driver = spawn_with(control, "sender", machine, sender, sockets, Clock::new())?;
    Ok(Box::new(move || {
        let counts = driver.statistics();
        driver.stop();
        let finished = driver.join()?;
        finished.outcome?;
        Ok(note(&finished.machine, finished.owner.handle, &counts))
    }))
}

fn per(datagrams: u64, calls: u64) -> f64 {
    datagrams as f64 / calls.max(1) as f64
}

fn note(endpoint: &Endpoint, handle: Option<Handle>, counts: &Statistics) -> String {
    let Some(connection) = handle.and_then(|handle| endpoint.connection(handle)) else {
        return String::new();
    };
    let status = connection.status();
    let Some(path) = status.paths.first() else { return String::new() };
    format!(
        "datagrams of {:.0} B, {:.1} per send call, {:.1} per ACK; window {} KB, RTT {} us, lost {}, timeouts {}",
        per(counts.sent_bytes, counts.sent_datagrams),
        per(counts.sent_datagrams, counts.send_calls),
        per(counts.sent_datagrams, counts.received_datagrams),
        path.window / 1000,
        path.srtt.as_micros(),
        path.totals.lost,
        path.totals.timeouts,
    )
}
