//! A relay forwards between a thousand pairs of TCP connections. At first the connections are idle.
//! Then the destination does not read, so the relay's buffers fill.
//!
//! ```text
//!   relay 10.83.0.1 ─── senders 198.18.0.1 …, and their destination 198.18.255.1, on one host
//! ```
//!
//! Needs root and `ip`.

use crate::common::machine::{PATIENCE, missing, test, wait_for};
use crate::common::peak::memory;
use crate::common::spaces::Spaces;
use crate::hands::{Hand, greeting, nonce};
use byway_net::Clock;
use byway_transfer::state_directory::StateDir;
use byway_wire::relay::{
    Grant, GrantId, Greeted, Hop, Minute, QuotaClass, RateClass, RelayClock, RelayKey, Scope, Terms, Word,
};
use libtest_mimic::{Failed, Trial};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, UdpSocket};
use std::path::Path;
use std::time::{Duration, Instant};

const RELAY: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 83, 0, 1), 4748);
const DESTINATION: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(198, 18, 255, 1), 7_000);
const PATHS: usize = 1_000;
/// Paths of one word, and senders of one network: fewer than a relay takes.
const OF_WORD: usize = 250;
const OF_NETWORK: usize = 50;
/// Resident memory that the relay may have.
const MEMORY: u64 = 64_000_000;
/// Bytes that a sender sends in a packet.
const INNER: usize = 8_000;

pub fn tests() -> Vec<Trial> {
    let lacks = missing(Spaces::possible(&[]), "it needs root and the program ip");
    vec![test("relay_crowd::a_thousand_paths_over_tcp_take_little_memory", lacks, crowd)]
}

/// A word of the relay's.
fn word(key: &RelayKey, number: usize) -> Word {
    let expiry = Minute::from_unix(byway_net::unix_seconds() + 86_400);
    let terms = Terms { expiry, rate: RateClass::UNLIMITED, quota: QuotaClass::UNLIMITED, scope: Scope::ALL };
    let grant = Grant { id: GrantId::own(number as u32 + 1), terms };
    key.issue(grant, vec![RELAY.into()]).unwrap()
}

/// The destination's consent to be reached under a word.
fn consent(socket: &UdpSocket, word: &Word) -> Greeted {
    let grant = word.grant().id;
    let mut answer = [0; 200];
    // A datagram may be lost. So a greeting is repeated, and an answer may come twice.
    let received = wait_for(PATIENCE, || {
        socket.send_to(&greeting(grant), RELAY).unwrap();
        let size = socket.recv(&mut answer).ok()?;
        Some(Greeted::read(&answer[..size]).unwrap()).filter(|greeted| greeted.nonce == nonce(grant))
    });
    let greeted = received.expect("the relay answers");
    assert_eq!(greeted.address, SocketAddr::from(DESTINATION));
    greeted
}

/// Pairs of connections that the relay joins: those of senders, with their ways, and those of the
/// destination.
struct Pairs {
    senders: Vec<(Hand, Hop)>,
    destination: Vec<Hand>,
    clock: Clock,
}

impl Pairs {
    fn new(state: &Path) -> Self {
        let state = StateDir::locate(Some(state), |_| None).unwrap();
        let key = RelayKey::new(state.relay_key(None).unwrap().expose());
        let clock = Clock::new();
        let socket = UdpSocket::bind(DESTINATION).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
        let listener = TcpListener::bind(DESTINATION).unwrap();
        let mut pairs = Self { senders: Vec::new(), destination: Vec::new(), clock };
        // A relay drops greetings beyond its limit per second. Each pair greets it twice.
        let limit = byway_relay::Config::new([0; 32], 0).greetings_per_second;
        let pause = Duration::from_secs(2) / u32::try_from(limit).unwrap();
        for number in 0..PATHS {
            std::thread::sleep(pause);
            let word = word(&key, number / OF_WORD);
            let consented = consent(&socket, &word);
            let from = Ipv4Addr::new(198, 18, (number / OF_NETWORK) as u8, (number % OF_NETWORK) as u8 + 1);
            let mut sender = Hand::connect(from, RELAY).unwrap();
            let greeted = sender.greet(word.grant().id);
            let clock = RelayClock::new(greeted.unix_millis, pairs.clock.now());
            let mut hop = Hop::new(&word, RELAY.into(), DESTINATION.into(), consented.consent, clock);
            hop.set_cookie(greeted.cookie);
            sender.put(&pairs.packet(&hop, 100));
            let mut taken = Hand::of(listener.accept().unwrap().0);
            assert!(taken.get().len() > 100);
            pairs.senders.push((sender, hop));
            pairs.destination.push(taken);
        }
        pairs
    }

    fn packet(&self, hop: &Hop, inner: usize) -> Vec<u8> {
        let mut packet = vec![7; hop.room() + inner];
        assert!(hop.seal(self.clock.now(), &mut packet));
        packet
    }

    /// Sends by all until nothing is taken for two seconds. Bytes that were.
    fn fill(&mut self) -> usize {
        let (mut all, mut at) = (0, Instant::now());
        while at.elapsed() < Duration::from_secs(2) {
            let mut senders = std::mem::take(&mut self.senders);
            for (sender, hop) in &mut senders {
                let taken = sender.fill(|| self.packet(hop, INNER));
                if taken > 0 {
                    (all, at) = (all + taken, Instant::now());
                }
            }
            self.senders = senders;
            std::thread::sleep(Duration::from_millis(20));
        }
        all
    }
}

fn crowd() -> Result<(), Failed> {
    byway_net::allow_descriptors(8_192);
    let spaces = Spaces::new("rc", &["relay", "many"]);
    spaces.line([("relay", "eth0", "10.83.0.1"), ("many", "eth0", "10.83.0.2")]);
    spaces.wait("relay", "eth0");
    spaces.wait("many", "eth0");
    spaces.says("many", &["ip", "route", "add", "local", "198.18.0.0/16", "dev", "lo"]);
    spaces.says("relay", &["ip", "route", "add", "198.18.0.0/16", "via", "10.83.0.2"]);
    for host in ["relay", "many"] {
        // What the kernel takes of what nobody reads is not what is looked at.
        for buffers in ["rmem", "wmem"] {
            spaces.says(host, &["sysctl", "-qw", &format!("net.ipv4.tcp_{buffers}=4096 16384 32768")]);
        }
    }
    let directory = tempfile::tempdir()?;
    let state = directory.path().join("relay");
    let listen = RELAY.to_string();
    let arguments = ["relay", "--listen", &listen, "--allow-destination", "198.18.0.0/16"];
    let mut relay = spaces.byway("relay", &state, &arguments);
    relay.event("ready");
    let memory = |what: &str| memory(relay.id(), what).unwrap();
    let before = memory("VmRSS");
    let mut pairs = spaces.at("many", || Pairs::new(&state));
    let idle = memory("VmRSS");
    let sent = pairs.fill();
    let (full, most) = (memory("VmRSS"), memory("VmHWM"));
    println!(
        "{PATHS} paths over TCP: {:.1} MB idle, {:.1} MB when {:.1} MB wait for who does not read, {:.1} MB at most; {:.1} MB without any",
        idle as f64 / 1e6,
        full as f64 / 1e6,
        sent as f64 / 1e6,
        most as f64 / 1e6,
        before as f64 / 1e6
    );
    assert!(sent > PATHS * INNER, "{sent} bytes were taken");
    assert!(most <= MEMORY, "{most} bytes");
    Ok(())
}
