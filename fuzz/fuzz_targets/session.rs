//! Two endpoints and a network of the fuzzer's making: it loses, repeats, delays, cuts and changes
//! datagrams, invents some, and lets time pass. Nothing panics, every byte that arrives is right,
//! and a connection that is not disturbed any more either moves its data or says why not.
#![no_main]

use byway_control::by_name;
use byway_engine::connection::Event;
use byway_engine::handshake::{Identity, PublicKey};
use byway_engine::seal::Suites;
use byway_engine::{Admission, Admit, Config, Connect, Endpoint, EndpointConfig, EndpointEvent, Handle};
use byway_wire::{
    Datagram, Duration, Ecn, Input, Instant, LinkChange, Local, Machine, ObjectId, StreamId, TransmitBuffer,
};
use libfuzzer_sys::fuzz_target;
use std::collections::VecDeque;
use std::net::SocketAddr;

struct Everybody;

impl Admission for Everybody {
    fn admit(&mut self, _peer: PublicKey, _said: &[u8]) -> Admit {
        Admit::Accept(by_name("background", 1).expect("a controller"))
    }
}

/// One host: its endpoint, its connection, what is under way to it.
struct Host {
    endpoint: Endpoint,
    address: SocketAddr,
    handle: Option<Handle>,
    inbox: VecDeque<Vec<u8>>,
    received: u64,
}

impl Host {
    fn new(seed: u8, address: &str, admission: Option<Box<dyn Admission>>) -> Self {
        let address = address.parse().expect("an address");
        let mut endpoint = Endpoint::new(EndpointConfig {
            identity: Identity::from_secret([seed; 32]),
            suites: Suites::INSECURE_SIMULATION,
            seed: [seed; 32],
            connection: Config::default(),
            admission,
            greeting: Vec::new(),
        });
        let change = LinkChange { local: Local(0), address, up: true };
        endpoint.handle(Instant::ZERO, Input::Link(change));
        Self { endpoint, address, handle: None, inbox: VecDeque::new(), received: 0 }
    }

    fn owner(&mut self) {
        while let Some(event) = self.endpoint.next_event() {
            match event {
                EndpointEvent::Connected(handle) => {
                    self.handle = Some(handle);
                    let connection = self.endpoint.connection_mut(handle).expect("connected");
                    connection.outgoing().add_object(ObjectId(0), 20_000);
                    connection.outgoing().open_stream(StreamId(0));
                    connection.outgoing().write(StreamId(0), &[7; 3_000]);
                    connection.outgoing().finish(StreamId(0));
                }
                EndpointEvent::Accepted(handle) => self.handle = Some(handle),
                _ => {}
            }
        }
        let Some(connection) = self.handle.and_then(|handle| self.endpoint.connection_mut(handle)) else {
            return;
        };
        while let Some(event) = connection.next_event() {
            let _: Event = event;
        }
        while let Some(read) = connection.outgoing().next_read() {
            connection.outgoing().provide(read.object, read.offset, vec![9; read.length]);
        }
        connection.incoming().flush();
        while let Some(write) = connection.incoming().next_write() {
            assert!(write.data.iter().all(|byte| *byte == 9));
            self.received += write.data.len() as u64;
            connection.incoming().written(write.data);
        }
        let mut buffer = [0; 512];
        while let Some(read) = connection.incoming().read(StreamId(0), &mut buffer) {
            assert!(buffer[..read.length].iter().all(|byte| *byte == 7));
            if read.length == 0 {
                break;
            }
        }
        while connection.incoming().next_event().is_some() {}
    }

    /// Sends what there is to send into the other's inbox.
    fn speak(&mut self, now: Instant, buffer: &mut [u8], inbox: &mut VecDeque<Vec<u8>>) {
        for round in 0.. {
            assert!(round < 10_000, "transmits without end");
            let mut out = TransmitBuffer { buffer, max_segments: 4 };
            let Some(sent) = self.endpoint.transmit(now, &mut out) else { break };
            for datagram in buffer[..sent.size].chunks(sent.segment) {
                if inbox.len() < 256 {
                    inbox.push_back(datagram.to_vec());
                }
            }
        }
    }

    fn hear(&mut self, now: Instant, from: SocketAddr, mut datagram: Vec<u8>) {
        let datagram = Datagram {
            local: Local(0),
            remote: from,
            ecn: Ecn::Ect0,
            arrival: now,
            payload: &mut datagram,
            phantom: 0,
        };
        self.endpoint.handle(now, Input::Datagram(datagram));
    }
}

fuzz_target!(|steps: &[u8]| {
    let mut alice = Host::new(1, "192.0.2.1:1", None);
    let mut bob = Host::new(2, "192.0.2.2:2", Some(Box::new(Everybody)));
    let mut now = Instant::from_millis(1);
    let mut buffer = vec![0; 16_384];
    let connect = Connect {
        peer: Identity::from_secret([2; 32]).public(),
        addresses: vec![bob.address],
        application: Vec::new(),
        controller: by_name("mpath", 1).expect("a controller"),
    };
    alice.endpoint.connect(now, connect).expect("an attempt");
    let mut replay: Vec<Vec<u8>> = Vec::new();
    for step in steps.iter().take(600) {
        // The low bit says which way, the rest what happens.
        let (from, to) = if step & 1 == 0 { (&mut alice, &mut bob) } else { (&mut bob, &mut alice) };
        from.speak(now, &mut buffer, &mut to.inbox);
        match (step >> 1) % 12 {
            0..=3 => {
                for _ in 0..=(step >> 5) * 4 {
                    if let Some(datagram) = to.inbox.pop_front() {
                        if replay.len() < 16 {
                            replay.push(datagram.clone());
                        }
                        to.hear(now, from.address, datagram);
                    }
                }
            }
            4 => drop(to.inbox.pop_front()),
            5 => {
                if let Some(mut datagram) = to.inbox.pop_front() {
                    let at = usize::from(*step) * 7 % datagram.len();
                    datagram[at] ^= 1 << (step >> 5);
                    to.hear(now, from.address, datagram);
                }
            }
            6 => {
                if let Some(datagram) = replay.get(usize::from(step >> 4)).cloned() {
                    to.hear(now, from.address, datagram);
                }
            }
            7 => {
                if let Some(datagram) = to.inbox.pop_front() {
                    to.inbox.push_back(datagram);
                }
            }
            8 => to.hear(now, from.address, vec![*step; usize::from(*step)]),
            9 => {
                if let Some(mut datagram) = to.inbox.pop_front() {
                    datagram.truncate(usize::from(*step) * 4);
                    to.hear(now, from.address, datagram);
                }
            }
            10 => now += Duration::from_millis(1 << (step >> 5)),
            _ => {
                // Another address: a NAT moved.
                if let Some(datagram) = to.inbox.pop_front() {
                    let moved = SocketAddr::new(from.address.ip(), 1000 + u16::from(*step));
                    to.hear(now, moved, datagram);
                }
            }
        }
        now += Duration::from_micros(200);
        for host in [&mut alice, &mut bob] {
            host.endpoint.wake(now);
            host.owner();
        }
    }
    // From here on the network is perfect.
    for _ in 0..20_000 {
        alice.speak(now, &mut buffer, &mut bob.inbox);
        bob.speak(now, &mut buffer, &mut alice.inbox);
        now += Duration::from_millis(2);
        while let Some(datagram) = bob.inbox.pop_front() {
            bob.hear(now, alice.address, datagram);
        }
        while let Some(datagram) = alice.inbox.pop_front() {
            alice.hear(now, bob.address, datagram);
        }
        for host in [&mut alice, &mut bob] {
            host.endpoint.wake(now);
            host.owner();
        }
        let over = alice.handle.is_none_or(|handle| {
            alice.endpoint.connection(handle).is_none_or(|connection| connection.is_closing())
        });
        if bob.received == 20_000 || (over && now > Instant::from_millis(25_000)) {
            return;
        }
    }
    panic!("neither done nor over: {} bytes received", bob.received);
});
