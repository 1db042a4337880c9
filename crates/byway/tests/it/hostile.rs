//! A peer whose library breaks the rules: its connection ends, and says why.

use crate::common::{PATIENCE, config};
use byway::control_records::{ControlRecord, EndKind};
use byway::{ConnectionError, Endpoint};
use byway_control::Class;
use byway_engine::connection::Event;
use byway_engine::handshake::{Identity, PublicKey};
use byway_engine::seal::Suites;
use byway_engine::{Config, Connect, EndpointConfig, EndpointEvent, Handle};
use byway_net::{Clock, LoopControl, Owner, Socket};
use byway_transfer::application_protocol::Application;
use byway_wire::{Instant, ObjectId, StreamId};
use std::sync::mpsc::{SyncSender, sync_channel};

/// Says bytes instead of records, and tells why it was closed.
struct Liar {
    connect: Option<Connect>,
    handle: Option<Handle>,
    says: Vec<u8>,
    /// Objects of these sizes, whatever was announced.
    objects: Vec<usize>,
    closed: SyncSender<String>,
}

impl Owner for Liar {
    type Machine = byway_engine::Endpoint;

    fn turn(&mut self, endpoint: &mut byway_engine::Endpoint, now: Instant) -> LoopControl {
        if let Some(connect) = self.connect.take() {
            endpoint.connect(now, connect).unwrap();
        }
        while let Some(event) = endpoint.next_event() {
            if let EndpointEvent::Connected(handle) = event {
                self.handle = Some(handle);
                let out = endpoint.connection_mut(handle).unwrap().outgoing();
                out.open_stream(StreamId(0));
                assert_eq!(out.write(StreamId(0), &self.says), self.says.len());
                for (id, size) in (0..).map(ObjectId).zip(&self.objects) {
                    out.add_object(id, *size as u64);
                }
            }
        }
        let Some(connection) = self.handle.and_then(|handle| endpoint.connection_mut(handle)) else {
            return LoopControl::Continue;
        };
        while let Some(read) = connection.outgoing().next_read() {
            connection.outgoing().provide(read.object, read.offset, vec![1; read.length]);
        }
        while let Some(event) = connection.next_event() {
            if let Event::Closed { reason, by_peer: true, .. } = event {
                self.closed.send(reason).unwrap();
                return LoopControl::Stop;
            }
        }
        LoopControl::Continue
    }
}

/// What a listener does about somebody who says this.
fn blamed(says: Vec<u8>, objects: Vec<usize>) -> String {
    let listener = Endpoint::listen(config()).unwrap();
    let ticket = listener.ticket();
    let application = Application { permission: ticket.permission, protocol: "test/1".parse().unwrap() };
    let connect = Connect {
        peer: PublicKey(ticket.key.0),
        addresses: ticket.addresses,
        application: application.to_bytes(),
        controller: Class::Normal.controller(1),
    };
    let machine = byway_engine::Endpoint::new(EndpointConfig {
        identity: Identity::from_secret([9; 32]),
        suites: Suites::SECURE,
        seed: byway_net::seed().unwrap(),
        connection: Config::default(),
        admission: None,
        greeting: Vec::new(),
    });
    let (closed, reason) = sync_channel(1);
    let liar = Liar { connect: Some(connect), handle: None, says, objects, closed };
    let socket = Socket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let _driver = byway_net::spawn("liar", machine, liar, vec![socket], Clock::new()).unwrap();
    let peer = listener.accept().unwrap();
    let reason = reason.recv_timeout(PATIENCE).unwrap();
    match peer.accept_stream().unwrap_err() {
        ConnectionError::Broke(why) => assert_eq!(why, reason),
        other => panic!("{other:?}"),
    }
    reason
}

#[test]
fn who_breaks_the_rules_is_told_so_and_closed() {
    let hello = ControlRecord::Hello { streams: 1, objects: 1 };
    let over = ControlRecord::Over { stream: StreamId(3), how: EndKind::Read };
    let announced = ControlRecord::Object { object: ObjectId(0), size: 10, header: Vec::new() };
    let records = |records: &[&ControlRecord]| {
        let mut bytes = Vec::new();
        records.iter().for_each(|record| record.write(&mut bytes));
        bytes
    };
    let first = "it does not greet once and first";
    for (says, objects, reason) in [
        (b"GET / HTTP/1.1".to_vec(), vec![], "makes no sense"),
        (records(&[&over]), vec![], first),
        (records(&[&hello, &hello]), vec![], first),
        (records(&[&hello, &announced, &announced]), vec![], "announces an object twice"),
        (records(&[&hello, &announced]), vec![9], "another size than it said"),
        (records(&[&hello]), vec![1; 600], "more objects than it may have under way"),
    ] {
        let told = blamed(says, objects);
        assert!(told.contains(reason), "{told}");
    }
}
