//! Holders of a sink's ticket that mean harm, against a sink that is a process of its own.

use crate::common::machine::{PATIENCE, wait_for};
use crate::common::{Place, Running};
use byway_control::Class;
use byway_engine::seal::Suites;
use byway_engine::{Config, Connect, Endpoint, EndpointConfig, EndpointEvent, Handle, handshake};
use byway_net::{Clock, Control, LoopControl, Owner, Ready, Socket, TcpLimits};
use byway_sources::PROTOCOL_NAME;
use byway_sources::message::{FromSource, Message as _, record_head};
use byway_transfer::Ticket;
use byway_transfer::application_protocol::Application;
use byway_wire::{Instant, StreamId};
use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Bytes of the shortest WELCOME. All else that a sink says is shorter.
const WELCOME: usize = 35;

/// What each session says: first, and once the sink has answered.
type Script = fn(usize) -> (Vec<u8>, Vec<u8>);

/// A host that opens many sessions at once, and says what its script tells.
struct Crowd {
    ticket: Ticket,
    script: Script,
    /// Sessions to have, at most.
    most: usize,
    begun: usize,
    /// What each session has yet to say, whether it has said its first words, and its number.
    sessions: BTreeMap<Handle, (Vec<u8>, bool, usize)>,
    shared: Arc<Shared>,
}

/// What the test sees of a crowd, and tells it.
#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    /// Sessions that have said all that the sink took.
    welcomed: AtomicUsize,
    /// Sessions that the sink closed or refused.
    closed: AtomicUsize,
}

impl Owner for Crowd {
    type Machine = Endpoint;

    fn ready(&mut self, _: &mut Endpoint, _: Ready, _: Instant) {}

    fn depth(&self) -> TcpLimits {
        TcpLimits::default()
    }

    fn turn(&mut self, endpoint: &mut Endpoint, now: Instant) -> LoopControl {
        // A few at a time, as the handshakes take their time.
        let waiting = self.sessions.values().filter(|(_, said, _)| !said).count();
        if self.begun < self.most && waiting < 16 {
            let protocol = PROTOCOL_NAME.parse().unwrap();
            let application = Application { permission: self.ticket.permission.clone(), protocol };
            let connect = Connect {
                peer: handshake::PublicKey(self.ticket.key.0),
                addresses: self.ticket.addresses.clone(),
                application: application.to_bytes(),
                controller: Class::Normal.controller(self.begun as u64),
            };
            if let Ok(handle) = endpoint.connect(now, connect) {
                self.sessions.insert(handle, (Vec::new(), false, self.begun));
                self.begun += 1;
            }
        }
        while let Some(event) = endpoint.next_event() {
            match event {
                EndpointEvent::Connected(handle) => {
                    let Some((unsaid, has_said, number)) = self.sessions.get_mut(&handle) else { continue };
                    (*unsaid, *has_said) = ((self.script)(*number).0, true);
                    endpoint.connection_mut(handle).unwrap().outgoing().open_stream(StreamId(0));
                }
                EndpointEvent::Failed(handle, _) | EndpointEvent::Closed(handle) => {
                    endpoint.forget(handle);
                    self.sessions.remove(&handle);
                    self.shared.closed.fetch_add(1, Ordering::Relaxed);
                }
                _ => {}
            }
        }
        for (handle, (unsaid, _, number)) in &mut self.sessions {
            let Some(connection) = endpoint.connection_mut(*handle) else { continue };
            while connection.incoming().next_event().is_some() || connection.outgoing().next_event().is_some()
            {
            }
            let mut answer = [0; 256];
            if connection.incoming().read(StreamId(1), &mut answer).is_some_and(|read| read.length >= WELCOME)
            {
                self.shared.welcomed.fetch_add(1, Ordering::Relaxed);
                unsaid.extend((self.script)(*number).1);
            }
            let taken = connection.outgoing().write(StreamId(0), unsaid);
            unsaid.drain(..taken);
        }
        let stops = self.shared.stop.load(Ordering::Relaxed);
        if stops { LoopControl::Stop } else { LoopControl::Continue }
    }
}

/// Lets a crowd of so many sessions loose on the sink of this ticket, until the sink has answered
/// or closed all, and `look` is content.
fn with_crowd(ticket: &str, most: usize, script: Script, mut look: impl FnMut(&Shared) -> bool) {
    let ticket: Ticket = ticket.parse().unwrap();
    let endpoint = Endpoint::new(EndpointConfig {
        identity: handshake::Identity::from_secret([9; 32]),
        suites: Suites::SECURE,
        seed: byway_net::seed().unwrap(),
        connection: Config::default(),
        admission: None,
        greeting: Vec::new(),
    });
    let shared = Arc::new(Shared::default());
    let (sessions, begun) = (BTreeMap::new(), 0);
    let crowd = Crowd { ticket, script, most, begun, sessions, shared: Arc::clone(&shared) };
    let control = Control::new().unwrap();
    let waker = control.waker().clone();
    let sockets = vec![Socket::bind("127.0.0.1:0".parse().unwrap()).unwrap()];
    let driver = byway_net::spawn_with(control, "crowd", endpoint, crowd, sockets, Clock::new()).unwrap();
    let content = wait_for(PATIENCE, || {
        waker.wake();
        look(&shared).then_some(())
    });
    let counts = [&shared.welcomed, &shared.closed].map(|count| count.load(Ordering::Relaxed));
    shared.stop.store(true, Ordering::Relaxed);
    waker.wake();
    driver.join().unwrap();
    assert!(content.is_some(), "sessions welcomed and closed: {counts:?}");
}

/// Bytes of memory that a process has.
fn resident(process: i32) -> usize {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<usize>().unwrap() << 10
}

/// The sink's directory, and the sink.
fn sink(place: &Place, more: &[&str]) -> (Running, String) {
    let out = place.path("out").display().to_string();
    let arguments = [&["sink", &out, "--listen", "127.0.0.1:0", "--json"], more].concat();
    let mut sink = Running::start(place.command("sink", &arguments));
    let ticket = sink.event("ready")["ticket"].as_str().unwrap().to_owned();
    (sink, ticket)
}

fn hello(number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let name = format!("liar{number}").parse().unwrap();
    FromSource::Hello { name, run: [7; 16], has_lines: true }.write(&mut bytes);
    bytes
}

#[test]
fn a_sink_keeps_to_its_memory_and_serves_others() {
    const MEMORY: usize = 32 << 20;
    // What a process has of its own, with threads, code and buffers of sockets.
    const BASE: usize = 24 << 20;
    let place = Place::new();
    let (sink, ticket) = sink(&place, &["--memory", "32M"]);
    // A record of 1 MiB, of which the last byte never comes.
    let script: Script = |number| {
        let mut record = record_head(byway_sources::MAX_RECORD_LEN);
        record.extend(vec![b'x'; byway_sources::MAX_RECORD_LEN - 1]);
        (hello(number), record)
    };
    let mut most = 0;
    let mut looks = 0;
    with_crowd(&ticket, 90, script, |shared| {
        let process = sink.id();
        most = most.max(resident(process));
        let all = shared.welcomed.load(Ordering::Relaxed) + shared.closed.load(Ordering::Relaxed);
        looks += usize::from(all >= 90);
        if looks == 20 {
            // In the midst of it a source of small records is served at once.
            let records: String = (0..500).map(|number| format!("{number}\n")).collect();
            fs::write(place.path("records"), &records).unwrap();
            let arguments = ["source", "--name", "radar7", "--to", &ticket, "--demand", "1M"];
            let mut source = place.command("source", &arguments);
            source.stdin(fs::File::open(place.path("records")).unwrap());
            Running::start(source).end().succeeded();
            assert!(fs::read_to_string(place.path("out").join("radar7")).unwrap() == records);
        }
        assert!(looks == 0 || shared.welcomed.load(Ordering::Relaxed) > 60, "the sink takes nobody");
        looks >= 40
    });
    assert!(most < MEMORY + BASE, "{} MiB", most >> 20);
}
