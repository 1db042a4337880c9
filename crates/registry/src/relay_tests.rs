//! Tests of relays, before they are listed and when clients complain. The registry sends itself a
//! packet through each address of the relay. A relay forwards the packet only if the relay's own
//! key was enrolled. So nobody can enrol another's relay.

use crate::message::Failure;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec;
use alloc::vec::Vec;
use byway_wire::relay::{
    Consent, Delivered, GREET_LEN, Greet, Greeted, Hop, Notice, Reason, RelayClock, Word, canonical,
};
use byway_wire::{ConnectionChange, Duration, Instant, Local, TcpRequest, Writer};
use core::net::SocketAddr;

/// The time for one try of a test.
const TRY_TIMEOUT: Duration = Duration::from_millis(700);
/// Tries of a greeting, and of a packet, at most.
const MAX_TRIES: u32 = 3;
/// Time that a relay may take to accept a TCP connection. The kernel has repeated the SYN once by
/// then.
const DIAL_TIMEOUT: Duration = Duration::from_millis(2_500);
/// Addresses that are tested at once, at most.
const MAX_CONCURRENT_TESTS: usize = 512;
/// Addresses that wait for a test at most.
const MAX_WAITING_ADDRESSES: usize = 4_096;
/// Bytes of a test packet: a byte with which no session's packet begins, and then bytes that only
/// the registry knows.
const PROBE_LEN: usize = 17;
/// The first byte of the packets that test forwarding.
const PROBE_BYTE: u8 = 0x72;

/// Identifies a test, as the caller numbers its tests.
pub type Key = u64;

/// A datagram to send, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sending {
    /// The socket to send from.
    pub local: Local,
    /// The address to send to.
    pub to: SocketAddr,
    /// The datagram's bytes.
    pub bytes: Vec<u8>,
}

/// The transports over which a relay passed its test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passed {
    /// Over TCP, and not over UDP alone.
    pub tcp: bool,
}

#[derive(Debug)]
enum TestState {
    /// A TCP connection is being opened.
    Dialing,
    Greeting {
        nonce: [u8; 8],
    },
    Packet {
        probe: [u8; PROBE_LEN],
        destination: SocketAddr,
        consent: Consent,
        clock: RelayClock,
        cookie: u64,
    },
}

#[derive(Debug)]
struct RunningTest {
    word: Word,
    local: Local,
    address: SocketAddr,
    state: TestState,
    tries: u32,
    /// The reason that the relay gave for not forwarding. `None`: it gave none.
    refused: Option<Failure>,
    /// Whether the relay passed over UDP, and is tested over TCP.
    over_tcp: bool,
    at: Instant,
}

/// The tests of all relays. A relay forwards a packet only with a token, the destination's consent.
/// The relay gives this token to the destination in the answer to a greeting. Here the registry is
/// the destination: it greets the relay first.
#[derive(Debug)]
pub struct RelayTests {
    secret: [u8; 32],
    serial: u64,
    running: BTreeMap<Key, RunningTest>,
    /// The running tests by the nonce of their greeting. The next fields: by the packet through the
    /// relay, and by its consent.
    greetings: BTreeMap<[u8; 8], Key>,
    probes: BTreeMap<[u8; PROBE_LEN], Key>,
    consents: BTreeMap<(SocketAddr, [u8; 8]), Key>,
    /// When each is due.
    due: BTreeSet<(Instant, Key)>,
    waiting: VecDeque<(Key, Word, Local, SocketAddr)>,
    sending: VecDeque<Sending>,
    ends: VecDeque<(Key, Result<Passed, Failure>)>,
    /// Whether TCP is tried too.
    with_tcp: bool,
    asks: VecDeque<TcpRequest>,
}

impl RelayTests {
    /// With 32 bytes of entropy.
    #[must_use]
    pub const fn new(secret: [u8; 32]) -> Self {
        Self {
            secret,
            serial: 0,
            running: BTreeMap::new(),
            greetings: BTreeMap::new(),
            probes: BTreeMap::new(),
            consents: BTreeMap::new(),
            due: BTreeSet::new(),
            waiting: VecDeque::new(),
            sending: VecDeque::new(),
            ends: VecDeque::new(),
            with_tcp: false,
            asks: VecDeque::new(),
        }
    }

    /// Has tests try TCP too, after UDP has passed. The driver must open connections as it is
    /// [asked](Self::next_ask).
    pub const fn try_tcp(&mut self) {
        self.with_tcp = true;
    }

    /// Whether no more can be begun.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.waiting.len() >= MAX_WAITING_ADDRESSES
    }

    /// Begins the test of an address from a socket. Earlier tests come first.
    pub fn begin(&mut self, now: Instant, key: Key, word: Word, local: Local, address: SocketAddr) {
        self.waiting.push_back((key, word, local, address));
        self.start(now);
    }

    fn start(&mut self, now: Instant) {
        while self.running.len() < MAX_CONCURRENT_TESTS
            && let Some((key, word, local, address)) = self.waiting.pop_front()
        {
            let nonce = self.nonce();
            let state = TestState::Greeting { nonce };
            let running = RunningTest {
                word,
                local,
                address,
                state,
                tries: 0,
                refused: None,
                over_tcp: false,
                at: now,
            };
            self.greetings.insert(nonce, key);
            self.running.insert(key, running);
            self.again(now, key);
        }
    }

    /// Returns eight bytes that others cannot guess.
    fn nonce(&mut self) -> [u8; 8] {
        self.serial += 1;
        let hash = blake3::keyed_hash(&self.secret, &self.serial.to_be_bytes());
        let [a, b, c, d, e, f, g, h, ..] = *hash.as_bytes();
        [a, b, c, d, e, f, g, h]
    }

    fn end(&mut self, now: Instant, key: Key, mut outcome: Result<Passed, Failure>) {
        if let Some(running) = self.running.remove(&key) {
            self.leave(&running, key);
            if running.over_tcp {
                // Whatever comes of TCP, it passed over UDP.
                outcome = Ok(Passed { tcp: outcome.is_ok() });
                if running.local.is_connection() {
                    self.asks.push_back(TcpRequest::Close(running.local));
                }
            } else if outcome.is_ok() && self.with_tcp {
                self.dial(now, key, running);
                return;
            }
        }
        self.ends.push_back((key, outcome));
        self.start(now);
    }

    /// Removes the entries by which a test's present stage finds its packets.
    fn leave(&mut self, running: &RunningTest, key: Key) {
        self.due.remove(&(running.at, key));
        match &running.state {
            TestState::Dialing => {}
            TestState::Greeting { nonce } => drop(self.greetings.remove(nonce)),
            TestState::Packet { probe, consent, .. } => {
                self.probes.remove(probe);
                self.consents.remove(&(running.address, consent.tag.to_be_bytes()));
            }
        }
    }

    /// Begins the same over TCP.
    fn dial(&mut self, now: Instant, key: Key, mut running: RunningTest) {
        (running.over_tcp, running.state, running.tries) = (true, TestState::Dialing, MAX_TRIES);
        // A little more than the driver has: it says so itself.
        running.at = now + DIAL_TIMEOUT + TRY_TIMEOUT;
        self.due.insert((running.at, key));
        self.asks.push_back(TcpRequest::Dial { peer: running.address, patience: DIAL_TIMEOUT });
        self.running.insert(key, running);
    }

    /// The tests that wait for a TCP connection to this address.
    fn dialing(&self, peer: SocketAddr) -> Vec<Key> {
        let waits =
            |it: &RunningTest| matches!(it.state, TestState::Dialing) && it.address == canonical(peer);
        self.running.iter().filter(|(_, running)| waits(running)).map(|(key, _)| *key).collect()
    }

    /// Handles a TCP connection that came or went. Returns false if it belongs to no test.
    pub fn on_connection(&mut self, now: Instant, change: &ConnectionChange) -> bool {
        if !change.open {
            let of = |(key, running): (&Key, &RunningTest)| (running.local == change.local).then_some(*key);
            let Some(key) = self.running.iter().find_map(of) else { return false };
            self.end(now, key, Err(Failure::NoPacket));
            return true;
        }
        let Some(key) = self.dialing(change.peer).first().copied() else { return false };
        let nonce = self.nonce();
        if let Some(running) = self.running.get_mut(&key) {
            (running.local, running.state, running.tries) = (change.local, TestState::Greeting { nonce }, 0);
            self.greetings.insert(nonce, key);
            self.again(now, key);
        }
        true
    }

    /// Handles that no TCP connection to this address could be opened. Returns whether a test
    /// waited for it.
    pub fn on_not_dialed(&mut self, now: Instant, peer: SocketAddr) -> bool {
        let Some(key) = self.dialing(peer).first().copied() else { return false };
        self.end(now, key, Err(Failure::NoAnswer));
        true
    }

    /// The next request about TCP connections.
    pub fn next_ask(&mut self) -> Option<TcpRequest> {
        self.asks.pop_front()
    }

    /// Sends once more, or gives up.
    fn again(&mut self, now: Instant, key: Key) {
        let Some(running) = self.running.get_mut(&key) else { return };
        if running.tries >= MAX_TRIES {
            let failure = match running.state {
                TestState::Dialing | TestState::Greeting { .. } => Failure::NoAnswer,
                TestState::Packet { .. } => running.refused.unwrap_or(Failure::NoPacket),
            };
            return self.end(now, key, Err(failure));
        }
        running.tries += 1;
        self.due.remove(&(running.at, key));
        running.at = now + TRY_TIMEOUT;
        self.due.insert((running.at, key));
        let bytes = match &running.state {
            TestState::Dialing => return,
            TestState::Greeting { nonce } => {
                let mut bytes = vec![0; GREET_LEN];
                Greet { nonce: *nonce, grant: running.word.grant().id }.write(&mut Writer::new(&mut bytes));
                bytes
            }
            TestState::Packet { probe, destination, consent, clock, cookie } => {
                let mut hop = Hop::new(&running.word, running.address, *destination, *consent, *clock);
                hop.set_cookie(*cookie);
                let mut bytes = vec![0; hop.room()];
                bytes.extend_from_slice(probe);
                if !hop.seal(now, &mut bytes) {
                    return;
                }
                bytes
            }
        };
        self.sending.push_back(Sending { local: running.local, to: running.address, bytes });
    }

    /// Handles an answer to a greeting. Returns whether a test waited for it.
    pub fn on_greeted(&mut self, now: Instant, from: SocketAddr, packet: &[u8]) -> bool {
        let Ok(greeted) = Greeted::read(packet) else { return false };
        let Some(key) = self.greetings.get(&greeted.nonce).copied() else { return false };
        let is_its = |running: &&RunningTest| running.address == canonical(from);
        if self.running.get(&key).filter(is_its).is_none() {
            return false;
        }
        self.greetings.remove(&greeted.nonce);
        let (first, second) = (self.nonce(), self.nonce());
        let Some(running) = self.running.get_mut(&key) else { return false };
        let mut probe = [PROBE_BYTE; PROBE_LEN];
        probe[1..9].copy_from_slice(&first);
        probe[9..].copy_from_slice(&second);
        // An answer to an earlier try makes the round trip seem longer: wrong by less than the
        // clocks may differ.
        let sent = Instant::from_nanos(running.at.as_nanos().saturating_sub(TRY_TIMEOUT.as_nanos() as u64));
        self.probes.insert(probe, key);
        self.consents.insert((running.address, greeted.consent.tag.to_be_bytes()), key);
        running.state = TestState::Packet {
            probe,
            destination: greeted.address,
            consent: greeted.consent,
            clock: RelayClock::learn(greeted.unix_millis, sent, now),
            cookie: greeted.cookie,
        };
        running.tries = 0;
        self.again(now, key);
        true
    }

    /// Handles a packet that came through a relay. Returns whether a test waited for it.
    pub fn on_delivered(&mut self, now: Instant, packet: &[u8]) -> bool {
        let Ok(delivered) = Delivered::read(packet) else { return false };
        let Some(inner) = packet.get(delivered.inner..) else { return false };
        if inner.len() != PROBE_LEN || inner.first() != Some(&PROBE_BYTE) {
            return false;
        }
        if let Some(key) = self.probes.get(inner).copied() {
            self.end(now, key, Ok(Passed { tcp: false }));
        }
        true
    }

    /// Handles a relay's notice that it did not forward a test packet.
    pub fn on_notice(&mut self, from: SocketAddr, packet: &[u8]) {
        let Ok(notice) = Notice::read(packet) else { return };
        let key = self.consents.get(&(canonical(from), notice.echo));
        if let Some(running) = key.and_then(|key| self.running.get_mut(key)) {
            // The grant is good for a day from now on.
            let is_ahead = notice.reason == Reason::Expired;
            running.refused = Some(if is_ahead { Failure::Clock } else { Failure::Refused });
        }
    }

    /// Ends a test that cannot be begun.
    pub fn fail(&mut self, key: Key, failure: Failure) {
        self.ends.push_back((key, Err(failure)));
    }

    /// Handles timeouts that are due.
    pub fn wake(&mut self, now: Instant) {
        while let Some((at, key)) = self.due.first().copied()
            && at <= now
        {
            self.due.remove(&(at, key));
            self.again(now, key);
        }
    }

    /// When something is due.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at)
    }

    /// The next datagram to send.
    pub fn next_sending(&mut self) -> Option<Sending> {
        self.sending.pop_front()
    }

    /// The next test that is over.
    pub fn next_end(&mut self) -> Option<(Key, Result<Passed, Failure>)> {
        self.ends.pop_front()
    }
}
