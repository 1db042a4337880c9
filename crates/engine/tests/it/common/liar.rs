//! A peer that has valid keys and may seal whatever it likes, and the honest endpoint that it talks
//! to.
#![allow(dead_code, reason = "each test binary uses its part")]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test says so when it cannot go on")]

use crate::common::{Receiver, address, identity};
use byway_engine::config::Params;
use byway_engine::connection::Event;
use byway_engine::handshake::{Established, HandshakeProgress, Initiator};
use byway_engine::seal::{Suites, connection_id};
use byway_engine::{Config, Endpoint, EndpointEvent, Handle};
use byway_wire::frame::{Frame, Frames};
use byway_wire::packet::{HEADER_LEN, Handshake, Header, STAMP_LEN, TAG_LEN};
use byway_wire::{Datagram, Ecn, Input, Instant, LinkChange, Local, Machine, PathId, TransmitBuffer, Writer};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// An honest endpoint, and a peer that has valid keys and may seal whatever it likes.
pub struct Bench {
    pub honest: Endpoint,
    pub handle: Handle,
    pub keys: Established,
    pub now: Instant,
    pub numbers: BTreeMap<u32, u64>,
    /// Packets of the honest side by path, to restore their numbers.
    pub heard: BTreeMap<PathId, u64>,
}

pub fn liar() -> SocketAddr {
    address("10.0.0.1:5000")
}

pub fn put(
    endpoint: &mut Endpoint,
    now: Instant,
    from: SocketAddr,
    bytes: &[u8],
) -> Vec<(SocketAddr, Vec<u8>)> {
    let mut payload = bytes.to_vec();
    let datagram = Datagram {
        local: Local(0),
        remote: from,
        ecn: Ecn::NotEct,
        arrival: now,
        payload: &mut payload,
        phantom: 0,
    };
    endpoint.handle(now, Input::Datagram(datagram));
    drain(endpoint, now)
}

pub fn drain(endpoint: &mut Endpoint, now: Instant) -> Vec<(SocketAddr, Vec<u8>)> {
    let mut sent = Vec::new();
    let mut buffer = vec![0; 65_536];
    while let Some(transmit) =
        endpoint.transmit(now, &mut TransmitBuffer { buffer: &mut buffer, max_segments: 16 })
    {
        for datagram in buffer[..transmit.size].chunks(transmit.segment) {
            sent.push((transmit.remote, datagram.to_vec()));
        }
        assert!(sent.len() < 100_000, "it sends without end");
    }
    sent
}

/// A packet with these frames, sealed with these keys.
pub fn seal(
    keys: &mut Established,
    now: Instant,
    path: PathId,
    number: u64,
    frames: impl FnOnce(&mut Writer<'_>),
) -> Vec<u8> {
    let mut packet = vec![0; 1472];
    let mut writer = Writer::new(&mut packet[..1472 - TAG_LEN]);
    let connection = connection_id(&keys.send_ids, path);
    let epoch = keys.sealer.epoch(now);
    Header { connection, number: number as u32, epoch }.write(&mut writer);
    writer.u32(now.as_micros() as u32);
    frames(&mut writer);
    let length = writer.len() + TAG_LEN;
    packet.truncate(length);
    keys.sealer.seal(path, number, &mut packet, HEADER_LEN).unwrap();
    packet
}

impl Bench {
    pub fn new(config: Config) -> Self {
        let mut honest = Receiver::new(9, config.clone(), Suites::SECURE).endpoint;
        let now = Instant::from_millis(1_000);
        let link = LinkChange { local: Local(0), address: address("10.0.1.1:4000"), up: true };
        honest.handle(now, Input::Link(link));
        let said = Params::of(&config).payload(b"");
        let mut initiator =
            Initiator::new(&identity(7), identity(9).public(), &said, Suites::SECURE, [3; 32]).unwrap();
        let answers = put(&mut honest, now, liar(), &initiator.hello());
        let [(to, answer)] = &answers[..] else { panic!("{} answers", answers.len()) };
        assert_eq!(*to, liar());
        let Ok(HandshakeProgress::Established(keys)) = initiator.on_packet(&Handshake::read(answer).unwrap())
        else {
            panic!("no session")
        };
        let handle = honest.handles().next().unwrap();
        let mut bench =
            Self { honest, handle, keys: *keys, now, numbers: BTreeMap::new(), heard: BTreeMap::new() };
        bench.say(0, |writer| Frame::Ping.write(writer));
        let accepted = std::iter::from_fn(|| bench.honest.next_event()).collect::<Vec<_>>();
        assert_eq!(accepted, [EndpointEvent::Accepted(bench.handle)]);
        bench
    }

    /// A packet with these frames, sealed with valid keys.
    pub fn packet(&mut self, path: u32, frames: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
        let number = self.numbers.entry(path).or_default();
        let packet = seal(&mut self.keys, self.now, PathId(path), *number, frames);
        *number += 1;
        packet
    }

    pub fn say(&mut self, path: u32, frames: impl FnOnce(&mut Writer<'_>)) -> Vec<(SocketAddr, Vec<u8>)> {
        let packet = self.packet(path, frames);
        put(&mut self.honest, self.now, liar(), &packet)
    }

    /// What `find` finds among the frames of a packet that the honest side sent.
    pub fn frame_in<T>(&mut self, packet: &[u8], find: impl Fn(Frame<'_>) -> Option<T>) -> Option<T> {
        let mut packet = packet.to_vec();
        let header = Header::read(&packet).ok()?;
        let path = (0..64)
            .map(PathId)
            .find(|path| connection_id(&self.keys.receive_ids, *path) == header.connection)?;
        let number = self.heard.entry(path).or_default();
        *number = u64::from(header.number);
        let plain =
            self.keys.opener.open(self.now, path, *number, header.epoch, &mut packet, HEADER_LEN).ok()?;
        Frames::new(&plain[STAMP_LEN..]).find_map(|frame| find(frame.ok()?))
    }

    /// The code of the CLOSE among what the honest side sent.
    pub fn close_in(&mut self, sent: &[(SocketAddr, Vec<u8>)]) -> Option<u64> {
        let code = |frame: Frame<'_>| match frame {
            Frame::Close { code, .. } => Some(code),
            _ => None,
        };
        sent.iter().find_map(|(_, packet)| self.frame_in(packet, code))
    }

    /// The data of a packet's PATH_CHALLENGE.
    pub fn challenge_in(&mut self, packet: &[u8]) -> [u8; 8] {
        let challenge = |frame: Frame<'_>| match frame {
            Frame::PathChallenge(challenge) => Some(challenge),
            _ => None,
        };
        self.frame_in(packet, challenge).expect("a challenge")
    }

    /// Asserts that the honest side closed with this code, said so, and told its owner.
    pub fn closed_with(&mut self, sent: &[(SocketAddr, Vec<u8>)], expected: u64) {
        assert_eq!(self.close_in(sent), Some(expected));
        let connection = self.honest.connection_mut(self.handle).unwrap();
        let told = std::iter::from_fn(|| connection.next_event())
            .any(|event| matches!(event, Event::Closed { code, by_peer: false, .. } if code == expected));
        assert!(told, "the owner was not told");
    }

    pub fn is_open(&self) -> bool {
        self.honest.connection(self.handle).is_some_and(|connection| !connection.is_closing())
    }

    pub fn state(&self) -> String {
        let connection = self.honest.connection(self.handle).unwrap();
        format!("{:?} {:?}", connection.status(), connection.deadline())
    }
}
