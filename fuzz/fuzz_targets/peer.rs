//! A peer that has valid keys and says what it likes, and an owner that does what owners do.
//! Nothing panics, what is sent because of it comes to an end, and what is sent to an address that
//! proved nothing is no more than came from there.
#![no_main]

use byway_control::by_name;
use byway_engine::config::Params;
use byway_engine::handshake::{Established, HandshakeProgress, Identity, Initiator, PublicKey};
use byway_engine::seal::{Suites, connection_id};
use byway_engine::{Admission, Admit, Config, Endpoint, EndpointConfig, EndpointEvent, Handle};
use byway_wire::frame::ack::{AckWriter, EntryParts};
use byway_wire::frame::{self, Frame, Object, PathHint, RelayOffer, Stream};
use byway_wire::packet::{HEADER_LEN, Handshake, Header, TAG_LEN};
use byway_wire::relay::GREET_LEN;
use byway_wire::{
    Datagram, Duration, Ecn, Input, Instant, LinkChange, Local, Machine, ObjectId, PathId, StreamId,
    TransmitBuffer, Writer,
};
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use std::collections::BTreeMap;
use std::net::SocketAddr;

#[derive(Arbitrary, Debug)]
enum Step {
    Packet { path: u8, skip: u8, from: u8, says: Vec<Say> },
    Again(u8),
    Millis(u16),
    Wake,
    Owner(Owner),
    Refused { size: u16 },
}

#[derive(Arbitrary, Debug)]
enum Say {
    Ping,
    Ack {
        path: u8,
        largest: u32,
        first: u8,
        more: Vec<(u8, u8)>,
        stamps: Vec<(u8, u32)>,
        lost: u8,
        ce: u8,
        held: u16,
    },
    Pnack {
        path: u8,
        ranges: Vec<(u16, u8)>,
    },
    SnackStream {
        id: u8,
        ranges: Vec<(u16, u8)>,
    },
    SnackObject {
        id: u8,
        ranges: Vec<(u16, u8)>,
    },
    Stream {
        id: u8,
        offset: u32,
        length: u8,
        fin: bool,
    },
    Object {
        id: u8,
        offset: u32,
        length: u8,
        fin: bool,
    },
    Datagram(u8),
    MaxStreams(u32),
    MaxData(u64),
    MaxStreamData {
        id: u8,
        limit: u32,
    },
    ResetStream {
        id: u8,
        code: u8,
    },
    StopSending {
        id: u8,
        code: u8,
    },
    Close(u8),
    Challenge([u8; 8]),
    Response([u8; 8]),
    Dropped(u8),
    Hint {
        path: u8,
        srtt: u32,
        limit: Option<u32>,
    },
    Offer {
        offer: u8,
        relay: [u8; 4],
        grant: u8,
    },
    Refused(u8),
    Raw(Vec<u8>),
}

#[derive(Arbitrary, Debug)]
enum Owner {
    Object { id: u8, size: u16 },
    Write { id: u8, length: u8 },
    Finish(u8),
    Reset(u8),
    Abandon(u8),
    Provide,
    Take,
    Read(u8),
    Stop(u8),
    Forget(u8),
    Flush,
    Events,
    Close,
}

struct Everybody;

impl Admission for Everybody {
    fn admit(&mut self, _: PublicKey, _: &[u8]) -> Admit {
        Admit::Accept(by_name("background", 1).expect("a controller"))
    }
}

fn address(number: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 1_000 + u16::from(number % 8)))
}

/// Gaps and lengths as ascending ranges.
fn ascending(steps: &[(u16, u8)]) -> Vec<(u64, u64)> {
    let mut end = 0;
    let range = |(gap, length): &(u16, u8)| {
        let start = end + 1 + u64::from(*gap);
        end = start + 1 + u64::from(*length);
        (start, end)
    };
    steps.iter().take(40).map(range).collect()
}

impl Say {
    fn write(&self, writer: &mut Writer<'_>) {
        let data = [3; 255];
        let object = |id: u8| ObjectId(u32::from(id % 8));
        // Mostly those that the peer itself opens.
        let stream = |id: u8| StreamId(u32::from(id % 8) * 2 + u32::from(id > 223));
        match self {
            Self::Ping => Frame::Ping.write(writer),
            Self::Ack { path, largest, first, more, stamps, lost, ce, held } => {
                let end = u64::from(*largest) + 1;
                let mut ranges = vec![(end.saturating_sub(1 + u64::from(*first)), end)];
                for (gap, length) in more.iter().take(30) {
                    let above = ranges.last().map_or(0, |(start, _)| *start);
                    let Some(stop) = above.checked_sub(1 + u64::from(*gap)) else { break };
                    let Some(start) = stop.checked_sub(1 + u64::from(*length)) else { break };
                    ranges.push((start, stop));
                }
                let stamps: Vec<_> =
                    stamps.iter().take(30).map(|(packets, at)| (1 + u64::from(*packets), *at)).collect();
                let parts = EntryParts {
                    path: PathId(u32::from(path % 8)),
                    lost: (*lost).into(),
                    ce: (*ce).into(),
                    arrival: *largest,
                    held_micros: (*held).into(),
                    ranges: &ranges,
                    stamps: &stamps,
                };
                let mut ack = AckWriter::begin(writer);
                ack.entry(writer, &parts);
                ack.finish(writer);
            }
            Self::Pnack { path, ranges } if !ranges.is_empty() => {
                frame::write_pnack(writer, PathId(u32::from(path % 8)), &ascending(ranges));
            }
            Self::SnackStream { id, ranges } if !ranges.is_empty() => {
                frame::write_snack_stream(writer, stream(*id), &ascending(ranges));
            }
            Self::SnackObject { id, ranges } if !ranges.is_empty() => {
                frame::write_snack_object(writer, object(*id), &ascending(ranges));
            }
            Self::Pnack { .. } | Self::SnackStream { .. } | Self::SnackObject { .. } => {}
            Self::Stream { id, offset, length, fin } => {
                let (offset, data) = (u64::from(*offset), &data[..usize::from(*length)]);
                frame::write_stream(writer, &Stream { id: stream(*id), offset, data, fin: *fin }, true);
            }
            Self::Object { id, offset, length, fin } => {
                let (offset, data) = (u64::from(*offset), &data[..usize::from(*length)]);
                frame::write_object(writer, &Object { id: object(*id), offset, data, fin: *fin }, true);
            }
            Self::Datagram(length) => frame::write_datagram(writer, &data[..usize::from(*length)], true),
            Self::MaxStreams(limit) => Frame::MaxStreams(u64::from(*limit)).write(writer),
            Self::MaxData(limit) => Frame::MaxData(*limit).write(writer),
            Self::MaxStreamData { id, limit } => {
                Frame::MaxStreamData { id: stream(*id), limit: (*limit).into() }.write(writer);
            }
            Self::ResetStream { id, code } => {
                Frame::ResetStream { id: stream(*id), code: (*code).into() }.write(writer);
            }
            Self::StopSending { id, code } => {
                Frame::StopSending { id: stream(*id), code: (*code).into() }.write(writer);
            }
            Self::Close(code) => Frame::Close { code: (*code).into(), reason: "so" }.write(writer),
            Self::Challenge(token) => Frame::PathChallenge(*token).write(writer),
            Self::Response(token) => Frame::PathResponse(*token).write(writer),
            Self::Dropped(path) => Frame::PathDropped(PathId(u32::from(path % 8))).write(writer),
            Self::Hint { path, srtt, limit } => {
                let path = PathId(u32::from(path % 8));
                Frame::PathHint(PathHint { path, srtt_micros: (*srtt).into(), delay_limit: *limit })
                    .write(writer);
            }
            Self::Offer { offer, relay, grant } => {
                let relay = SocketAddr::from((*relay, 4_748));
                Frame::RelayOffer(RelayOffer { offer: (*offer).into(), relay, grant: (*grant).into() })
                    .write(writer);
            }
            Self::Refused(offer) => Frame::RelayRefused((*offer).into()).write(writer),
            Self::Raw(bytes) => writer.bytes(bytes),
        }
    }
}

struct Table {
    honest: Endpoint,
    handle: Handle,
    keys: Established,
    now: Instant,
    numbers: BTreeMap<u8, u64>,
    /// Bytes from and to each address.
    books: BTreeMap<SocketAddr, (usize, usize)>,
}

fn put(endpoint: &mut Endpoint, now: Instant, from: SocketAddr, bytes: &[u8]) {
    let mut payload = bytes.to_vec();
    let (local, ecn, arrival) = (Local(0), Ecn::Ect0, now);
    let datagram = Datagram { local, remote: from, ecn, arrival, payload: &mut payload, phantom: 0 };
    endpoint.handle(now, Input::Datagram(datagram));
}

fn drain(endpoint: &mut Endpoint, now: Instant, books: &mut BTreeMap<SocketAddr, (usize, usize)>) -> Vec<u8> {
    let (mut buffer, mut first) = (vec![0; 16_384], Vec::new());
    for round in 0.. {
        assert!(round < 5_000, "it sends without end");
        let Some(sent) = endpoint.transmit(now, &mut TransmitBuffer { buffer: &mut buffer, max_segments: 4 })
        else {
            break;
        };
        books.entry(sent.remote).or_default().1 += sent.size;
        if first.is_empty() {
            first.extend_from_slice(&buffer[..sent.size]);
        }
    }
    first
}

impl Table {
    fn new() -> Self {
        let mut config = Config::default();
        (config.datagrams, config.datagram_fates) = (8, true);
        (config.incoming.memory, config.incoming.stream_window) = (16 << 10, 8 << 10);
        (config.incoming.streams, config.incoming.objects, config.outgoing.memory) = (4, 4, 16 << 10);
        let (mut books, now) = (BTreeMap::new(), Instant::from_millis(1_000));
        let suites = Suites::INSECURE_SIMULATION;
        let said = Params::of(&config).payload(b"");
        let identity = Identity::from_secret([2; 32]);
        let public = identity.public();
        let mut honest = Endpoint::new(EndpointConfig {
            identity,
            suites,
            seed: [2; 32],
            connection: config,
            admission: Some(Box::new(Everybody)),
            greeting: Vec::new(),
        });
        let link = LinkChange { local: Local(0), address: SocketAddr::from(([192, 0, 2, 2], 2)), up: true };
        honest.handle(now, Input::Link(link));
        let mine = Identity::from_secret([1; 32]);
        let mut initiator = Initiator::new(&mine, public, &said, suites, [3; 32]).expect("a handshake");
        put(&mut honest, now, address(0), &initiator.hello());
        let answer = drain(&mut honest, now, &mut books);
        let answer = Handshake::read(&answer).expect("an answer");
        let Ok(HandshakeProgress::Established(keys)) = initiator.on_packet(&answer) else {
            panic!("no session")
        };
        let handle = honest.handles().next().expect("a connection");
        Self { honest, handle, keys: *keys, now, numbers: BTreeMap::new(), books: BTreeMap::new() }
    }

    fn packet(&mut self, path: u8, skip: u8, says: &[Say]) -> Vec<u8> {
        let number = self.numbers.entry(path).or_default();
        *number += u64::from(skip);
        let id = PathId(u32::from(path));
        let mut packet = vec![0; 1_472];
        let mut writer = Writer::new(&mut packet[..1_472 - TAG_LEN]);
        let connection = connection_id(&self.keys.send_ids, id);
        let epoch = self.keys.sealer.epoch(self.now);
        Header { connection, number: *number as u32, epoch }.write(&mut writer);
        writer.u32(self.now.as_micros() as u32);
        says.iter().take(50).for_each(|say| say.write(&mut writer));
        let length = writer.len() + TAG_LEN;
        packet.truncate(length);
        self.keys.sealer.seal(id, *number, &mut packet, HEADER_LEN).expect("sealed");
        *number += 1;
        packet
    }

    fn owner(&mut self, act: &Owner) {
        let object = |id: &u8| ObjectId(u32::from(id % 8));
        let stream = |id: &u8| StreamId(u32::from(id % 16));
        let (now, handle) = (self.now, self.handle);
        if matches!(act, Owner::Close) {
            return self.honest.close(now, handle, 1, "enough");
        }
        let Some(connection) = self.honest.connection_mut(handle) else { return };
        match act {
            Owner::Object { id, size } => connection.outgoing().add_object(object(id), (*size).into()),
            Owner::Write { id, length } => {
                connection.outgoing().open_stream(stream(id));
                connection.outgoing().write(stream(id), &vec![4; usize::from(*length) * 16]);
            }
            Owner::Finish(id) => connection.outgoing().finish(stream(id)),
            Owner::Reset(id) => connection.outgoing().reset(stream(id), 9),
            Owner::Abandon(id) => connection.outgoing().abandon_object(object(id)),
            Owner::Provide => {
                while let Some(read) = connection.outgoing().next_read() {
                    connection.outgoing().provide(read.object, read.offset, vec![9; read.length]);
                }
            }
            Owner::Take => {
                while let Some(write) = connection.incoming().next_write() {
                    assert!(write.data.iter().all(|byte| *byte == 3));
                    connection.incoming().written(write.data);
                }
            }
            Owner::Read(id) => {
                let mut buffer = [0; 300];
                if let Some(read) = connection.incoming().read(stream(id), &mut buffer) {
                    assert!(buffer[..read.length].iter().all(|byte| *byte == 3));
                }
            }
            Owner::Stop(id) => connection.incoming().stop(stream(id), 8),
            Owner::Forget(id) => connection.incoming().forget_object(object(id)),
            Owner::Flush => connection.incoming().flush(),
            Owner::Events => {
                while connection.next_event().is_some() {}
                while connection.incoming().next_event().is_some() {}
                while let Some(received) = connection.next_datagram() {
                    connection.recycle(received.data);
                }
                while connection.outgoing().next_event().is_some() {}
                while let Some(event) = self.honest.next_event() {
                    if let EndpointEvent::Closed(handle) = event {
                        self.honest.forget(handle);
                    }
                }
            }
            Owner::Close => {}
        }
    }
}

fuzz_target!(|steps: Vec<Step>| {
    let mut table = Table::new();
    let mut kept: Vec<Vec<u8>> = vec![table.packet(0, 0, &[Say::Ping])];
    put(&mut table.honest, table.now, address(0), &kept[0]);
    for step in steps.iter().take(300) {
        let came = match step {
            Step::Packet { path, skip, from, says } => {
                let packet = table.packet(path % 8, *skip, says);
                kept.truncate(15);
                kept.insert(0, packet.clone());
                Some((address(*from), packet))
            }
            Step::Again(which) => kept.get(usize::from(*which)).map(|packet| (address(0), packet.clone())),
            Step::Millis(millis) => {
                table.now += Duration::from_millis((*millis).into());
                None
            }
            Step::Wake => {
                table.honest.wake(table.now);
                None
            }
            Step::Owner(act) => {
                table.owner(act);
                None
            }
            Step::Refused { size } => {
                let (local, remote, kind) = (Local(0), address(0), byway_wire::SendErrorKind::TooLarge);
                let error = byway_wire::SendError { local, remote, size: (*size).into(), kind };
                table.honest.handle(table.now, Input::SendError(error));
                None
            }
        };
        if let Some((from, packet)) = came {
            table.books.entry(from).or_default().0 += packet.len();
            put(&mut table.honest, table.now, from, &packet);
        }
        drain(&mut table.honest, table.now, &mut table.books);
        // From a connection that lives, or closes, there is always something to wait for.
        let status = table.honest.connection(table.handle).map(|connection| connection.status());
        if let Some(status) = status {
            assert!(status.paths.len() <= 256, "{} paths", status.paths.len());
        }
    }
    // Where nobody answered a challenge, no more bytes went than came from there; relays that were
    // offered get a few greetings.
    let answered = steps.iter().any(|step| {
        matches!(step, Step::Packet { says, .. } if says.iter().any(|say| matches!(say, Say::Response(_) | Say::Raw(_))))
    });
    for (at, (came, left)) in table.books.iter().filter(|(at, _)| **at != address(0)) {
        let allowed = if (1..8).any(|number| address(number) == *at) { *came } else { 6 * GREET_LEN };
        assert!(answered || *left <= allowed, "{at}: {left} bytes for {came}");
    }
});
