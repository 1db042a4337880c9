//! Two hosts with many streams. One host writes to a stream only when an event says that there is
//! room. The other host decides by a `Rule` which streams it reads at which time.
#![allow(dead_code, reason = "each test binary uses its part")]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test says so when it cannot go on")]

use crate::common::{MS, Plan, address, both, identity, pattern_bytes};
use byway_control::by_name;
use byway_engine::connection::Event;
use byway_engine::data::{InEvent, OutEvent};
use byway_engine::seal::Suites;
use byway_engine::{Admission, Admit, Config, Connect, Endpoint, EndpointConfig, EndpointEvent, Handle};
use byway_sim::{Node, PipeConfig, World};
use byway_wire::{Duration, Instant, Machine, StreamId};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// What is done with a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// The stream's owner goes on.
    Go,
    /// The stream's owner does nothing now, and is asked again soon.
    Wait,
    /// The stream's owner gives it up.
    GiveUp,
}

/// What a host does with each of its streams, counted from 0, of which it wrote or read so much,
/// now.
pub type Rule = fn(u32, u64, Instant) -> Act;

pub fn always(_: u32, _: u64, _: Instant) -> Act {
    Act::Go
}

struct Everybody(&'static str);

impl Admission for Everybody {
    fn admit(&mut self, _: byway_engine::handshake::PublicKey, _: &[u8]) -> Admit {
        Admit::Accept(by_name(self.0, 2).expect("a controller"))
    }
}

fn endpoint(seed: u8, config: Config, admission: Option<Box<dyn Admission>>) -> Endpoint {
    Endpoint::new(EndpointConfig {
        identity: identity(seed),
        suites: Suites::INSECURE_SIMULATION,
        seed: [seed; 32],
        connection: config,
        admission,
        greeting: Vec::new(),
    })
}

/// Opens streams and writes to them.
pub struct Talker {
    pub endpoint: Endpoint,
    pub handle: Option<Handle>,
    /// Streams to open in all, and bytes of each.
    wanted: u32,
    size: u64,
    /// Whether a stream is ended after its bytes.
    ends: bool,
    rule: Rule,
    plan: Plan,
    /// Open streams, with the bytes written.
    pub open: BTreeMap<StreamId, u64>,
    waiting: BTreeSet<StreamId>,
    now: Instant,
    pub opened: u32,
    pub acked: u32,
    pub given_up: u32,
    pub closed: Option<(u64, String)>,
}

impl Talker {
    fn drive(&mut self, now: Instant) {
        let Some(connection) = self.handle.and_then(|handle| self.endpoint.connection_mut(handle)) else {
            return;
        };
        while let Some(event) = connection.next_event() {
            if let Event::Closed { code, reason, .. } = event {
                self.closed = Some((code, reason));
            }
        }
        let out = connection.outgoing();
        let mut due: Vec<StreamId> = core::mem::take(&mut self.waiting).into_iter().collect();
        let mut may_open = self.opened == 0;
        loop {
            while may_open && self.opened < self.wanted {
                let Some(id) = out.open_next() else { break };
                self.opened += 1;
                self.open.insert(id, 0);
                due.push(id);
            }
            may_open = false;
            for id in due.drain(..) {
                let Some(written) = self.open.get_mut(&id) else { continue };
                while *written < self.size {
                    match (self.rule)(id.0 / 2, *written, now) {
                        Act::Go => {}
                        Act::Wait => {
                            self.waiting.insert(id);
                            break;
                        }
                        Act::GiveUp => {
                            out.reset(id, 5);
                            self.given_up += 1;
                            break;
                        }
                    }
                    let chunk = (self.size - *written).min(8_192) as usize;
                    let taken = out.write(id, &pattern_bytes(id.0, *written, chunk));
                    *written += taken as u64;
                    if taken < chunk {
                        break;
                    }
                }
                if *written == self.size && self.ends {
                    out.finish(id);
                }
            }
            match out.next_event() {
                Some(OutEvent::Writable(id)) => due.push(id),
                Some(OutEvent::MayOpen) => may_open = true,
                Some(OutEvent::StreamAcked(id)) => {
                    self.acked += 1;
                    self.open.remove(&id);
                }
                Some(OutEvent::Stopped { stream, code }) => {
                    assert_eq!(code, 6);
                    self.given_up += 1;
                    self.open.remove(&stream);
                }
                Some(OutEvent::ObjectAcked(_)) => {}
                None => break,
            }
        }
        self.now = now;
    }
}

impl Node for Talker {
    fn machine(&mut self) -> &mut dyn Machine {
        &mut self.endpoint
    }

    fn turn(&mut self, now: Instant) {
        if self.handle.is_none() {
            let connect = Connect {
                peer: identity(9).public(),
                addresses: self.plan.addresses.clone(),
                application: Vec::new(),
                controller: by_name(self.plan.congestion, 1).expect("a controller"),
            };
            self.handle = Some(self.endpoint.connect(now, connect).expect("an attempt"));
        }
        let mut connected = self.opened > 0;
        while let Some(event) = self.endpoint.next_event() {
            connected |= matches!(event, EndpointEvent::Connected(_));
        }
        if connected {
            self.drive(now);
        }
    }

    fn alarm(&self) -> Option<Instant> {
        if self.handle.is_none() {
            return Some(Instant::ZERO);
        }
        (!self.waiting.is_empty()).then_some(self.now + 10 * MS)
    }
}

/// Reads streams, and checks every byte.
pub struct Listener {
    pub endpoint: Endpoint,
    pub handle: Option<Handle>,
    rule: Rule,
    /// Streams that came, with the bytes read.
    pub read: BTreeMap<StreamId, u64>,
    waiting: BTreeSet<StreamId>,
    now: Instant,
    pub opened: u32,
    pub finished: u32,
    pub resets: u32,
    pub stopped: u32,
    /// Streams that came to their ends, in one way or another.
    over: BTreeSet<StreamId>,
    pub closed: Option<(u64, String)>,
    /// Streams that lived at once, at most.
    pub most_open: usize,
}

impl Listener {
    /// Bytes that it read of the streams from `first` on.
    pub fn read_from(&self, first: u32) -> u64 {
        self.read.range(StreamId(2 * first)..).map(|(_, read)| *read).sum()
    }

    fn drive(&mut self, now: Instant) {
        let Some(connection) = self.handle.and_then(|handle| self.endpoint.connection_mut(handle)) else {
            return;
        };
        while let Some(event) = connection.next_event() {
            if let Event::Closed { code, reason, .. } = event {
                self.closed = Some((code, reason));
            }
        }
        let incoming = connection.incoming();
        let mut due: Vec<StreamId> = core::mem::take(&mut self.waiting).into_iter().collect();
        while let Some(event) = incoming.next_event() {
            match event {
                InEvent::StreamOpened(id) => {
                    self.opened += 1;
                    self.read.insert(id, 0);
                    self.most_open = self.most_open.max(self.read.len() - self.over.len());
                }
                InEvent::StreamReadable(id) => due.push(id),
                InEvent::StreamReset { id, code } => {
                    assert!(code == 5, "{id:?}");
                    self.resets += 1;
                    self.over.insert(id);
                }
                InEvent::ObjectComplete { .. } => {}
            }
        }
        let mut buffer = vec![0; 4_096];
        for id in due {
            let at = self.read.get_mut(&id).expect("it was opened");
            loop {
                match (self.rule)(id.0 / 2, *at, now) {
                    Act::Go => {}
                    Act::Wait => {
                        self.waiting.insert(id);
                        break;
                    }
                    Act::GiveUp => {
                        incoming.stop(id, 6);
                        self.stopped += u32::from(self.over.insert(id));
                        break;
                    }
                }
                let Some(read) = incoming.read(id, &mut buffer) else { break };
                assert!(buffer[..read.length] == pattern_bytes(id.0, *at, read.length)[..], "{id:?} at {at}");
                *at += read.length as u64;
                if read.finished {
                    self.finished += 1;
                    self.over.insert(id);
                }
                if read.finished || read.length == 0 {
                    break;
                }
            }
        }
        self.now = now;
    }
}

impl Node for Listener {
    fn machine(&mut self) -> &mut dyn Machine {
        &mut self.endpoint
    }

    fn turn(&mut self, now: Instant) {
        while let Some(event) = self.endpoint.next_event() {
            if let EndpointEvent::Accepted(handle) = event {
                self.handle = Some(handle);
            }
        }
        self.drive(now);
    }

    fn alarm(&self) -> Option<Instant> {
        (!self.waiting.is_empty()).then_some(self.now + 10 * MS)
    }
}

/// Two hosts that talk.
pub struct Talk {
    pub world: World,
    pub talker: byway_sim::Handle<Talker>,
    pub listener: byway_sim::Handle<Listener>,
}

/// What a talk is about.
pub struct About {
    pub seed: u64,
    pub congestion: &'static str,
    pub streams: u32,
    pub size: u64,
    pub ends: bool,
    pub writes: Rule,
    pub reads: Rule,
    pub talker: Config,
    pub listener: Config,
    pub lines: Vec<PipeConfig>,
}

impl About {
    pub fn new(streams: u32, size: u64, line: PipeConfig) -> Self {
        Self {
            seed: 1,
            congestion: "mpath",
            streams,
            size,
            ends: true,
            writes: always,
            reads: always,
            talker: Config::default(),
            listener: Config::default(),
            lines: vec![line],
        }
    }

    pub fn begin(self) -> Talk {
        let mut world = World::new(self.seed);
        world.stop_trace();
        let to = address("10.0.1.1:4000");
        let listener = Listener {
            endpoint: endpoint(9, self.listener, Some(Box::new(Everybody("background")))),
            handle: None,
            rule: self.reads,
            read: BTreeMap::new(),
            waiting: BTreeSet::new(),
            now: Instant::ZERO,
            opened: 0,
            finished: 0,
            resets: 0,
            stopped: 0,
            over: BTreeSet::new(),
            closed: None,
            most_open: 0,
        };
        let listener = world.add("listener", listener, &[to]);
        let talker = Talker {
            endpoint: endpoint(7, self.talker, None),
            handle: None,
            wanted: self.streams,
            size: self.size,
            ends: self.ends,
            rule: self.writes,
            plan: Plan::new(self.congestion, &[], &[to]),
            open: BTreeMap::new(),
            waiting: BTreeSet::new(),
            now: Instant::ZERO,
            opened: 0,
            acked: 0,
            given_up: 0,
            closed: None,
        };
        let locals: Vec<SocketAddr> =
            (0..self.lines.len()).map(|path| address(&format!("10.0.0.{}:5000", path + 1))).collect();
        let talker = world.add("talker", talker, &locals);
        for (local, line) in locals.iter().zip(&self.lines) {
            let (up, down) = both(line.clone());
            world.connect(*local, to, up, down);
        }
        Talk { world, talker, listener }
    }
}

impl Talk {
    /// Runs until so many streams came to their ends, in one way or another.
    pub fn finish(&mut self, streams: u32, limit: Duration) -> Duration {
        let (talker, listener) = (self.talker, self.listener);
        let over = |world: &World| world[listener].over.len() as u32;
        let done = self.world.run_while(
            |world| {
                over(world) < streams && world[talker].closed.is_none() && world[listener].closed.is_none()
            },
            Instant::ZERO + limit,
        );
        let (host, peer) = (&self.world[talker], &self.world[listener]);
        assert!(
            done && over(&self.world) >= streams,
            "{} of {streams} streams over after {limit:?}: {} opened, {} acknowledged, {:?}, {:?}",
            over(&self.world),
            host.opened,
            host.acked,
            host.closed,
            peer.closed
        );
        self.world.now().since(Instant::ZERO)
    }

    /// Bytes that the listener holds unread, and the memory of that.
    pub fn held(&mut self) -> (u64, usize) {
        self.world.act(self.listener, |host, _| {
            let Some(connection) = host.handle.and_then(|handle| host.endpoint.connection_mut(handle)) else {
                return (0, 0);
            };
            (connection.incoming().held(), connection.incoming().memory())
        })
    }
}
