//! byway: one path, one object without an end, read from memory in pieces and forgotten as soon as it is written.

use crate::{DATAGRAM, Error, Meter, Outcome, PIECE, WINDOW};
use bytes::Bytes;
use byway_control::by_name;
use byway_engine::data::{IncomingLimits, OutgoingLimits};
use byway_engine::handshake::{Identity, PublicKey};
use byway_engine::seal::Suites;
use byway_engine::{Admission, Admit, Config, Connect, Endpoint, EndpointConfig, EndpointEvent, Handle};
use byway_net::{Clock, Flow, Owner, Socket, Statistics, seed, spawn};
use byway_wire::{Instant, ObjectId};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// More than any run moves.
const ENDLESS: u64 = 1 << 50;

struct Everybody(&'static str);

impl Admission for Everybody {
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
    meter: Arc<Meter>,
}

impl Owner for Sender {
    type Machine = Endpoint;

    fn turn(&mut self, endpoint: &mut Endpoint, now: Instant) -> Flow {
        if self.handle.is_none() {
            let Some(controller) = by_name(self.congestion, 1) else { return Flow::Stop };
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
                        connection.outgoing().add_object(ObjectId(0), ENDLESS);
                    }
                    self.ready = true;
                    self.meter.connected();
                }
                EndpointEvent::Failed(..) | EndpointEvent::Closed(_) => return Flow::Stop,
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
        Flow::Continue
    }
}

struct Receiver {
    handle: Option<Handle>,
    meter: Arc<Meter>,
}

impl Owner for Receiver {
    type Machine = Endpoint;

    fn turn(&mut self, endpoint: &mut Endpoint, _: Instant) -> Flow {
        while let Some(event) = endpoint.next_event() {
            if let EndpointEvent::Accepted(handle) = event {
                self.handle = Some(handle);
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
        Flow::Continue
    }
}

fn endpoint(admission: Option<Box<dyn Admission>>) -> Result<(Endpoint, PublicKey), Error> {
    let identity = Identity::from_secret(seed()?);
    let public = identity.public();
    let config = Config {
        max_datagram: DATAGRAM,
        outgoing: OutgoingLimits { memory: WINDOW, read_size: PIECE, ..OutgoingLimits::default() },
        incoming: IncomingLimits { memory: WINDOW, ..IncomingLimits::default() },
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

/// Moves bytes for `duration` under this controller.
///
/// # Errors
///
/// What the system refuses, or no connection.
pub fn run(congestion: &'static str, duration: Duration) -> Result<Outcome, Error> {
    let clock = Clock::new();
    let meter = Arc::new(Meter::default());
    let (here, there) = (Socket::bind("127.0.0.1:0".parse()?)?, Socket::bind("127.0.0.1:0".parse()?)?);
    let address = there.address();
    let (machine, peer) = endpoint(Some(Box::new(Everybody(congestion))))?;
    let receiver = Receiver { handle: None, meter: meter.clone() };
    let receiver = spawn("receiver", machine, receiver, vec![there], clock)?;
    let (machine, _) = endpoint(None)?;
    let sender = Sender {
        congestion,
        peer,
        address,
        handle: None,
        ready: false,
        piece: vec![1; PIECE].into(),
        meter: meter.clone(),
    };
    let sender = spawn("sender", machine, sender, vec![here], clock)?;
    let outcome = meter.measure(duration);
    let (sent, received) = (sender.statistics(), receiver.statistics());
    sender.stop();
    receiver.stop();
    let sender = sender.join().map_err(|_| "the sender panicked")?;
    receiver.join().map_err(|_| "the receiver panicked")?.outcome?;
    let note = note(&sender.machine, sender.owner.handle, &sent, &received);
    sender.outcome?;
    Ok(Outcome { note, ..outcome? })
}

fn note(endpoint: &Endpoint, handle: Option<Handle>, sent: &Statistics, received: &Statistics) -> String {
    let Some(connection) = handle.and_then(|handle| endpoint.connection(handle)) else {
        return String::new();
    };
    let status = connection.status();
    let Some(path) = status.paths.first() else { return String::new() };
    let per = |datagrams: u64, calls: u64| datagrams as f64 / calls.max(1) as f64;
    format!(
        "{} B datagrams, {:.1} per send call, {:.1} per receive call, {:.1} per ACK sent; window {} KB, RTT {} us, lost {}, timeouts {}",
        path.datagram,
        per(sent.sent_datagrams, sent.send_calls),
        per(received.received_datagrams, received.receive_calls),
        per(sent.sent_datagrams, sent.received_datagrams),
        path.window / 1000,
        path.srtt.as_micros(),
        path.totals.lost,
        path.totals.timeouts,
    )
}
