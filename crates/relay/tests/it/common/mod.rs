//! A relay with a sender and a receiver around it.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)] // each test uses a part

use byway_relay::{Config, Policy, Relay};
use byway_wire::relay::{
    Caveat, Consent, GREET_LEN, Grant, Greet, Greeted, Hop, Minute, QuotaClass, RateClass, RelayClock, Scope,
    Terms, Word,
};
use byway_wire::{Datagram, Ecn, Input, Instant, LinkChange, Local, Machine, TransmitBuffer, Writer};
use std::net::SocketAddr;

pub const KEY: [u8; 32] = [5; 32];
/// A whole day, so that tests know where they are in it.
pub const UNIX: u64 = 1_800_057_600;

pub fn at(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

pub fn relay_v4() -> SocketAddr {
    at("1.2.3.4:4748")
}
pub fn relay_v6() -> SocketAddr {
    at("[2a00::4]:4748")
}
pub fn sender() -> SocketAddr {
    at("8.8.8.8:1000")
}
pub fn receiver() -> SocketAddr {
    at("9.9.9.9:2000")
}

pub fn terms() -> Terms {
    Terms {
        expiry: Minute::from_unix(UNIX + 40 * 86_400),
        rate: RateClass::UNLIMITED,
        quota: QuotaClass::UNLIMITED,
        scope: Scope::ALL,
    }
}

pub fn config() -> Config {
    let mut config = Config::new(KEY, UNIX * 1000);
    config.policy = Policy::public().allow("10.9.0.0/16".parse().unwrap());
    config.accounts = 64;
    config
}

pub struct World {
    pub relay: Relay,
    pub now: Instant,
    /// Bytes of the last datagram in, and of what left because of it.
    pub last: (usize, usize),
}

pub type Sent = Vec<(SocketAddr, Vec<u8>)>;

impl World {
    pub fn new(config: &Config) -> Self {
        let mut relay = Relay::new(config, Instant::ZERO);
        for (local, address) in [(Local(0), relay_v4()), (Local(1), relay_v6())] {
            relay.handle(Instant::ZERO, Input::Link(LinkChange { local, address, up: true }));
        }
        Self { relay, now: Instant::ZERO, last: (0, 0) }
    }

    pub fn pass(&mut self, millis: u64) {
        self.now = Instant::from_nanos(self.now.as_nanos() + millis * 1_000_000);
    }

    pub fn put(&mut self, remote: SocketAddr, packet: &[u8]) -> Sent {
        let mut payload = packet.to_vec();
        let local = if remote.is_ipv4() { Local(0) } else { Local(1) };
        let datagram =
            Datagram { local, remote, ecn: Ecn::Ect0, arrival: self.now, payload: &mut payload, phantom: 0 };
        self.relay.handle(self.now, Input::Datagram(datagram));
        let sent = self.drain();
        self.last = (packet.len(), sent.iter().map(|(_, bytes)| bytes.len()).sum());
        assert!(self.last.1 <= self.last.0, "amplified {:?}", self.last);
        sent
    }

    pub fn drain(&mut self) -> Sent {
        let mut buffer = vec![0; 65_535];
        let mut all = Vec::new();
        while let Some(sent) =
            self.relay.transmit(self.now, &mut TransmitBuffer { buffer: &mut buffer, max_segments: 64 })
        {
            for chunk in buffer[..sent.size].chunks(sent.segment) {
                all.push((sent.remote, chunk.to_vec()));
            }
        }
        all
    }

    pub fn greet(&mut self, from: SocketAddr, grant: u32) -> Option<Greeted> {
        let mut packet = [0; GREET_LEN];
        Greet { nonce: *b"12345678", grant }.write(&mut Writer::new(&mut packet));
        let sent = self.put(from, &packet);
        let (to, bytes) = sent.first()?;
        assert_eq!(*to, from);
        Greeted::read(bytes).ok()
    }

    pub fn clock(&self) -> RelayClock {
        RelayClock::new(UNIX * 1000, Instant::ZERO)
    }

    pub fn word(&self, id: u32, terms: Terms) -> Word {
        self.relay.issue(Grant { id, terms }, vec![relay_v4(), relay_v6()]).unwrap()
    }

    /// A hop all of whose papers are in order.
    pub fn hop(&mut self, word: &Word, from: SocketAddr, to: SocketAddr) -> Hop {
        let id = word.grant().id;
        let cookie = self.greet(from, id).unwrap().cookie;
        let greeted = self.greet(to, id).unwrap();
        assert_eq!(greeted.address, to);
        let mut hop = Hop::new(word, relay_v4(), to, greeted.consent, self.clock());
        hop.set_cookie(cookie);
        hop
    }

    /// A hop without asking the receiver.
    pub fn hop_with(&mut self, word: &Word, to: SocketAddr, consent: Consent) -> Hop {
        Hop::new(word, relay_v4(), to, consent, self.clock())
    }
}

pub fn seal(hop: &Hop, now: Instant, inner: &[u8]) -> Vec<u8> {
    let mut packet = vec![0xaa; hop.room()];
    packet.extend(inner);
    assert!(hop.seal(now, &mut packet));
    packet
}

pub fn narrowed(word: &Word, branch: u8, change: impl FnOnce(&mut Terms)) -> Word {
    let mut terms = *word.terms();
    change(&mut terms);
    word.narrow(Caveat { branch, terms }).unwrap()
}
