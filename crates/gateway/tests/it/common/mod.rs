//! Two sites, each with a gateway and a host behind it; between them paths for the session, and the
//! plain route.

pub mod host;

use byway_engine::handshake::Identity;
use byway_engine::seal::Suites;
use byway_gateway::ip_header::Ip;
use byway_gateway::machine::{Gateway, GuestConfig, MachineConfig, PacketBuffer, PeerConfig, Settings};
use byway_gateway::rules::{Action, Rule, Rules};
use byway_gateway::serves::Served;
use byway_gateway::{ChecksumState, Prefix, Segment};
use byway_relay::{Config as RelayConfig, Policy, Relay};
use byway_sim::{Handle, LinkId, PipeConfig, World};
use byway_wire::relay::{Grant, Minute, QuotaClass, RateClass, Scope, Terms, Word};
use byway_wire::{Datagram, Dscp, Ecn, Input, Instant, Local, Machine, Transmit, TransmitBuffer};
use host::Host;
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

/// The plain route between the sites, as a datagram around each packet.
const PLAIN: Local = Local(0);

/// A gateway, and the host behind it.
pub struct Site {
    pub gateway: Gateway,
    pub host: Host,
    plain: VecDeque<Vec<u8>>,
    plain_to: SocketAddr,
    /// Packets that the host got and sent by the plain route.
    pub plain_packets: u64,
    alarm: Option<Instant>,
    /// Does not carry anything: the gateway is dead, and the kernel routes by itself.
    pub dead: bool,
    /// What the host sends is lost before it comes to the gateway.
    pub mute: bool,
}

impl Site {
    /// Lets packets pass between host, gateway and plain route until none is left.
    fn shuffle(&mut self, now: Instant) {
        loop {
            self.host.run(now.as_micros());
            let mut moved = false;
            while let Some(packet) = self.host.give() {
                moved = true;
                if self.mute {
                    continue;
                }
                if self.dead {
                    self.plain.push_back(packet);
                    continue;
                }
                let buffer = self.gateway.buffer();
                self.gateway.packet(now, PacketBuffer::copy(buffer, &packet), ChecksumState::Full);
            }
            while let Some(parcel) = self.gateway.next_packet() {
                moved = true;
                let packet = parcel.packet();
                // However it came here, and whether it is carried or not.
                let told = Ip::read(packet).is_ok_and(|ip| [1, 58].contains(&ip.protocol));
                assert!(
                    told || Segment::read(packet, ChecksumState::Full).is_ok(),
                    "{packet:?} is not what a host sent, nor ICMP"
                );
                let to = match packet[0] >> 4 {
                    4 => IpAddr::from(<[u8; 4]>::try_from(&packet[16..20]).expect("an address")),
                    _ => IpAddr::from(<[u8; 16]>::try_from(&packet[24..40]).expect("an address")),
                };
                if to == self.host.address {
                    self.host.take(packet);
                } else {
                    self.plain.push_back(packet.to_vec());
                    self.plain_packets += 1;
                }
                self.gateway.recycle(parcel.into_buffer());
            }
            if !moved {
                break;
            }
        }
        let micros = self.host.alarm(now.as_micros());
        self.alarm = micros.map(|micros| Instant::from_micros(micros.max(now.as_micros() + 1)));
    }
}

impl Machine for Site {
    fn handle(&mut self, now: Instant, input: Input<'_>) {
        match input {
            Input::Datagram(Datagram { local: PLAIN, payload, .. }) => self.host.take(payload),
            Input::Link(change) if change.local == PLAIN => {}
            other if !self.dead => self.gateway.handle(now, other),
            _ => {}
        }
        self.shuffle(now);
    }

    fn wake(&mut self, now: Instant) {
        if !self.dead {
            self.gateway.wake(now);
        }
        self.shuffle(now);
    }

    fn transmit(&mut self, now: Instant, out: &mut TransmitBuffer<'_>) -> Option<Transmit> {
        if let Some(packet) = self.plain.pop_front() {
            out.buffer[..packet.len()].copy_from_slice(&packet);
            return Some(Transmit {
                local: PLAIN,
                remote: self.plain_to,
                ecn: Ecn::NotEct,
                dscp: Dscp::BestEffort,
                size: packet.len(),
                segment: packet.len(),
                phantom: 0,
            });
        }
        if self.dead { None } else { self.gateway.transmit(now, out) }
    }

    fn deadline(&self) -> Option<Instant> {
        let gateway = if self.dead { None } else { self.gateway.deadline() };
        [gateway, self.alarm].into_iter().flatten().min()
    }
}

const UNIX: u64 = 1_800_057_600;

fn relay_at(index: usize) -> SocketAddr {
    socket(format!("10.3.0.{}:4748", index + 1))
}

fn relay() -> Relay {
    let mut config = RelayConfig::new([5; 32], UNIX * 1_000);
    config.policy = Policy::public().allow(Prefix::of(IpAddr::from([10, 0, 0, 0]), 8));
    Relay::new(&config, Instant::ZERO)
}

fn word(index: usize, id: u32) -> Word {
    word_until(index, id, 40 * 86_400)
}

/// A word that ends so many seconds after a simulation begins.
pub fn word_until(index: usize, id: u32, seconds: u64) -> Word {
    let expiry = Minute::from_unix(UNIX + seconds);
    let terms = Terms { expiry, rate: RateClass::UNLIMITED, quota: QuotaClass::UNLIMITED, scope: Scope::ALL };
    relay().issue(Grant { id, terms }, vec![relay_at(index)]).expect("a word")
}

pub fn identity(seed: u8) -> Identity {
    Identity::from_secret([seed; 32])
}

/// What the two sites are made of.
pub struct Plan {
    pub v6: bool,
    /// Words for this many relays are in both gateways' configuration.
    pub relays: usize,
    pub settings: Settings,
    /// What is different at Bob's site, if something is.
    pub of_bob: Option<Settings>,
    pub congestion: &'static str,
    pub seed: u64,
    /// Whether both know a third gateway.
    pub third: bool,
    /// Hosts that Alice's gateway serves once they ask, and nobody else.
    pub guests: Vec<GuestConfig>,
}

/// Where the third gateway is.
const THIRD: &str = "10.3.1.1:4749";

impl Default for Plan {
    fn default() -> Self {
        Self {
            v6: false,
            relays: 0,
            settings: Settings::default(),
            of_bob: None,
            congestion: "background",
            seed: 1,
            third: false,
            guests: Vec::new(),
        }
    }
}

pub struct Sites {
    pub world: World,
    pub alice: Handle<Site>,
    pub bob: Handle<Site>,
    pub there: Vec<LinkId>,
    pub back: Vec<LinkId>,
    pub plan: Plan,
}

fn socket(text: String) -> SocketAddr {
    text.parse().expect("an address")
}

impl Sites {
    /// Alice's gateway has a socket for each path, and each pipe leads to Bob's; the plain route
    /// takes `plain`.
    pub fn new(plan: Plan, paths: &[PipeConfig], plain: &PipeConfig) -> Self {
        let mut world = World::new(plan.seed);
        let mut at: Vec<SocketAddr> = vec![socket("10.9.0.1:9".into())];
        at.extend((0..paths.len()).map(|path| socket(format!("10.1.0.{}:4000", path + 1))));
        let of_bob = [socket("10.9.0.2:9".into()), socket("10.2.0.1:4000".into())];
        let alice = world.add("alice", plan.site(0, of_bob[0], &of_bob[1..]), &at);
        let bob = world.add("bob", plan.site(1, at[0], &[]), &of_bob);
        world.connect(at[0], of_bob[0], plain.clone(), plain.clone());
        let (mut there, mut back) = (Vec::new(), Vec::new());
        for (local, pipe) in at[1..].iter().zip(paths) {
            let (a, b) = world.connect(*local, of_bob[1], pipe.clone(), pipe.clone());
            there.push(a);
            back.push(b);
        }
        Self { world, alice, bob, there, back, plan }
    }

    #[allow(dead_code, reason = "not all tests have relays")]
    /// As [`new`](Self::new), with one direct path, and detours: for each relay its lines to
    /// Alice's gateway and to Bob's.
    pub fn with_relays(plan: Plan, direct: PipeConfig, ways: &[[PipeConfig; 2]], plain: &PipeConfig) -> Self {
        let mut sites = Self::new(Plan { relays: ways.len(), ..plan }, &[direct], plain);
        let [alice, bob] = ["10.1.0.1:4000", "10.2.0.1:4000"].map(|at| socket(at.into()));
        for (index, [near, far]) in ways.iter().enumerate() {
            let at = relay_at(index);
            sites.world.add(&format!("relay {index}"), relay(), &[at]);
            sites.world.connect(alice, at, near.clone(), near.clone());
            sites.world.connect(at, bob, far.clone(), far.clone());
        }
        sites
    }

    #[allow(dead_code, reason = "not all tests have a third gateway")]
    /// Like [`new`](Self::new), with a third gateway that serves other hosts, and a relay beside
    /// it. `ways`: the lines from the relay to Alice's and Bob's gateways. `meets`: the lines from
    /// the third gateway to these two.
    pub fn with_third(
        plan: Plan,
        direct: PipeConfig,
        ways: [PipeConfig; 2],
        meets: [PipeConfig; 2],
        plain: &PipeConfig,
    ) -> (Self, Handle<Gateway>) {
        let mut sites = Self::new(Plan { third: true, ..plan }, &[direct], plain);
        let [alice, bob, third] =
            ["10.1.0.1:4000", "10.2.0.1:4000", THIRD].map(|address| socket(address.into()));
        let at = relay_at(0);
        sites.world.add("relay", relay(), &[at]);
        let mut config = sites.plan.config(0, &[]);
        let peer = |site: u8| PeerConfig {
            name: format!("site {site}"),
            key: identity(site + 1).public(),
            addresses: Vec::new(),
            allowed: vec![Prefix::of(sites.plan.host(site), 24)],
            relays: Vec::new(),
        };
        config.peers = vec![peer(0), peer(1)];
        config.identity = identity(3);
        config.serves = vec![Served { hosts: Prefix::of(sites.plan.host(2), 24), ports: Vec::new() }];
        config.seed = [77; 32];
        let handle = sites.world.add("third", Gateway::new(config).expect("a gateway"), &[third]);
        for ((end, way), meet) in [alice, bob].into_iter().zip(ways).zip(meets) {
            sites.world.connect(end, at, way.clone(), way);
            sites.world.connect(end, third, meet.clone(), meet);
        }
        (sites, handle)
    }

    pub fn run(&mut self, millis: u64) {
        self.world.run_until(Instant::from_millis(millis));
    }
}

impl Plan {
    pub fn host(&self, site: u8) -> IpAddr {
        if self.v6 {
            IpAddr::from([0xfd00, u16::from(site) + 1, 0, 0, 0, 0, 0, 7])
        } else {
            IpAddr::from([192, 168, site + 1, 7])
        }
    }

    pub fn config(&self, site: u8, peer_at: &[SocketAddr]) -> MachineConfig {
        let prefix = |site| Prefix::of(self.host(site), if self.v6 { 32 } else { 24 });
        let third = self.third.then(|| PeerConfig {
            name: "the third".into(),
            key: identity(3).public(),
            addresses: vec![socket(THIRD.into())],
            allowed: vec![prefix(2)],
            relays: Vec::new(),
        });
        let mut config = MachineConfig {
            identity: identity(site + 1),
            suites: Suites::SECURE,
            seed: [site + 9; 32],
            connection: byway_engine::Config::default(),
            congestion: self.congestion.parse().expect("a controller"),
            peers: vec![PeerConfig {
                name: "the other".into(),
                key: identity(2 - site).public(),
                addresses: peer_at.to_vec(),
                allowed: vec![prefix(1 - site)],
                relays: (0..self.relays)
                    .map(|index| (word(index, 2 * index as u32 + u32::from(site)), None))
                    .collect(),
            }],
            rules: Rules { rules: vec![Rule { action: Action::Background, ..Rule::default() }] },
            serves: vec![Served { hosts: prefix(site), ports: Vec::new() }],
            serial: 1,
            guests: Vec::new(),
            settings: self.of_bob.filter(|_| site == 1).unwrap_or(self.settings),
        };
        config.peers.extend(third);
        if site == 0 && !self.guests.is_empty() {
            (config.serves, config.guests) = (Vec::new(), self.guests.clone());
        }
        config
    }

    fn site(&self, site: u8, plain_to: SocketAddr, peer_at: &[SocketAddr]) -> Site {
        Site {
            gateway: Gateway::new(self.config(site, peer_at)).expect("a gateway"),
            host: Host::new(self.host(site)),
            plain: VecDeque::new(),
            plain_to,
            plain_packets: 0,
            alarm: None,
            dead: false,
            mute: false,
        }
    }
}

/// Holds that gateways carried every packet, and that none was wrong.
pub fn carried_all(sites: &Sites) {
    for site in [sites.alice, sites.bob] {
        let site = &sites.world[site];
        let counters = site.gateway.counters();
        assert_eq!(site.plain_packets, 0, "{counters:?}");
        assert_eq!((counters.forbidden, counters.malformed, counters.overrun), (0, 0, 0), "{counters:?}");
    }
}
