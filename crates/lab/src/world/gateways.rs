//! byway's gateways at nodes of the simulated network; they run the code of real gateways. Each TCP
//! host behind a gateway has a door (`HostPort`), which turns the host's simulated segments into IP
//! packets and back.

use super::layout::Layout;
use super::relays::{RELAY_PORT, RelayNodes};
use super::run_error::RunError;
use crate::setup::{Gateways, PathChoice};
use byway_engine::handshake::Identity;
use byway_engine::seal::Suites;
use byway_gateway::machine::{
    Bundle, Gateway, HEADROOM_BYTES, MachineConfig, PacketBuffer, PathStatus, PeerConfig,
};
use byway_gateway::rules::{Action, Rule, Rules};
use byway_gateway::serves::Served;
use byway_gateway::{ChecksumState, Prefix};
use byway_sim::tcp::Packets;
use byway_sim::topology::Direction;
use byway_sim::{Handle, Random, World};
use byway_wire::relay::Word;
use byway_wire::{Dscp, Ecn, Input, Instant, Local, Machine, Transmit, TransmitBuffer};
use core::net::{IpAddr, SocketAddr, SocketAddrV4};
use std::collections::{BTreeMap, VecDeque};

const SESSION_LOCAL: Local = Local(0);
const GATEWAY_PORT: u16 = 4749;
const DOOR_PORT: u16 = 1;
/// The segment size in bytes of hosts behind gateways. A real gateway lowers the MSS option to this
/// value if a path goes through a relay. Simulated hosts ignore the option, so they start with this
/// size.
pub(super) const HOST_MSS: u32 = 1_300;
/// The receive window in bytes of hosts behind gateways, unless the plan sets another. It is the
/// largest window that Linux uses by default. The hosts' window scale follows from this value.
pub(super) const HOST_RECEIVE_WINDOW: u64 = 6 << 20;

/// A gateway, and an adapter for each host behind it.
pub(super) struct GatewayNode {
    pub(super) gateway: Gateway,
    doors: Vec<HostPort>,
    out: VecDeque<OutgoingPacket>,
    /// Packets that went by the plain route.
    pub(super) plain: u64,
}

/// The port at which a host's segments enter a gateway.
struct HostPort {
    host: SocketAddr,
    /// The address of the peer's port at the other gateway.
    beyond: SocketAddr,
    packets: Packets,
}

struct OutgoingPacket {
    local: Local,
    remote: SocketAddr,
    bytes: Vec<u8>,
    data: usize,
}

impl GatewayNode {
    /// Lets packets pass between gateway, doors and plain route until none is left.
    fn shuffle(&mut self) {
        while let Some(parcel) = self.gateway.next_packet() {
            let address = |at: usize| {
                let four = parcel.packet().get(at..)?.first_chunk::<4>()?;
                Some(IpAddr::from(*four))
            };
            let (from, to) = (address(12), address(16));
            let of = |ip: Option<IpAddr>| self.doors.iter().position(|door| Some(door.host.ip()) == ip);
            if let Some(index) = of(to) {
                self.deliver(index, parcel.packet());
            } else if let Some((index, door)) =
                of(from).and_then(|index| Some((index, self.doors.get(index)?)))
            {
                self.plain += 1;
                let (remote, bytes) = (door.beyond, parcel.packet().to_vec());
                self.out.push_back(OutgoingPacket { local: local(index), remote, bytes, data: 0 });
            }
            self.gateway.recycle(parcel.into_buffer());
        }
    }

    /// Hands a packet to the host behind a door.
    fn deliver(&mut self, index: usize, packet: &[u8]) {
        let door = &self.doors[index];
        let mut bytes = Vec::new();
        if let Some(data) = door.packets.unpack(packet, &mut bytes) {
            self.out.push_back(OutgoingPacket { local: local(index), remote: door.host, bytes, data });
        }
    }

    fn at_door(&mut self, now: Instant, index: usize, remote: SocketAddr, bytes: &[u8], data: usize) {
        let door = &mut self.doors[index];
        if remote == door.beyond {
            return self.deliver(index, bytes);
        }
        let mut buffer = self.gateway.buffer();
        buffer.clear();
        buffer.resize(HEADROOM_BYTES, 0);
        if remote == door.host && door.packets.pack(bytes, data, &mut buffer) {
            self.gateway.packet(now, PacketBuffer::new(buffer), ChecksumState::Full);
        }
    }
}

const fn local(door: usize) -> Local {
    Local(door as u16 + 1)
}

impl Machine for GatewayNode {
    fn handle(&mut self, now: Instant, input: Input<'_>) {
        match input {
            Input::Datagram(datagram) if datagram.local != SESSION_LOCAL => {
                let index = usize::from(datagram.local.0) - 1;
                self.at_door(now, index, datagram.remote, datagram.payload, datagram.phantom);
            }
            Input::Link(change) if change.local != SESSION_LOCAL => {}
            Input::SendError(error) if error.local != SESSION_LOCAL => {}
            other => self.gateway.handle(now, other),
        }
        self.shuffle();
    }

    fn wake(&mut self, now: Instant) {
        self.gateway.wake(now);
        self.shuffle();
    }

    fn transmit(&mut self, now: Instant, out: &mut TransmitBuffer<'_>) -> Option<Transmit> {
        while let Some(OutgoingPacket { local, remote, bytes, data }) = self.out.pop_front() {
            let size = bytes.len();
            debug_assert!(size <= out.buffer.len(), "a host's packet of {size} bytes finds no room");
            let Some(room) = out.buffer.get_mut(..size) else { continue };
            room.copy_from_slice(&bytes);
            return Some(Transmit {
                local,
                remote,
                ecn: Ecn::NotEct,
                dscp: Dscp::BestEffort,
                size,
                segment: size,
                phantom: data,
            });
        }
        self.gateway.transmit(now, out)
    }

    fn deadline(&self) -> Option<Instant> {
        self.gateway.deadline()
    }
}

/// Two gateways that will be put into a world once all hosts behind them are known.
pub(super) struct PlannedGateways {
    gateways: Gateways,
    addresses: [SocketAddr; 2],
    words: [Vec<Word>; 2],
    firsts: BTreeMap<SocketAddr, usize>,
    ways: Vec<Vec<Direction>>,
    doors: [Vec<HostPort>; 2],
    door_addresses: [Vec<SocketAddr>; 2],
}

/// Two gateways in a world.
#[derive(Clone, Debug)]
pub(super) struct GatewayPair {
    /// The name of the gateways in the plan.
    pub(super) name: String,
    pub(super) entry: Handle<GatewayNode>,
    pub(super) exit: Handle<GatewayNode>,
    /// The route of a path, by the first address to which its packets are sent.
    pub(super) firsts: BTreeMap<SocketAddr, usize>,
}

impl GatewayPair {
    /// Returns the paths on which the flows of a sender travel: the site's paths, or those of the
    /// flow's own session.
    pub(super) fn paths(&self, world: &World, from: IpAddr) -> Vec<PathStatus> {
        let gateway = &world[self.entry].gateway;
        let peers = gateway.status().peers.into_iter();
        match gateway.bundle() {
            Bundle::Site => peers.flat_map(|peer| peer.paths).collect(),
            Bundle::Flow => {
                let own = peers.flat_map(|peer| peer.bundles).filter(|bundle| bundle.key.source == from);
                own.flat_map(|bundle| bundle.paths).collect()
            }
        }
    }
}

impl PlannedGateways {
    pub(super) fn new(
        gateways: &Gateways,
        seed: u64,
        layout: &mut Layout<'_>,
        relays: &mut RelayNodes,
    ) -> Result<Self, RunError> {
        let (a, b) = (gateways.between.0.as_str(), gateways.between.1.as_str());
        let (here, there) = (layout.address(GATEWAY_PORT), layout.address(GATEWAY_PORT));
        let (mut words, mut firsts, mut ways) = ([Vec::new(), Vec::new()], BTreeMap::new(), Vec::new());
        for way in &gateways.paths {
            let PathChoice::Through(node) = way else {
                firsts.insert(there, ways.len());
                ways.push(layout.join((here, a), (there, b), None)?);
                continue;
            };
            for words in &mut words {
                words.extend(relays.word(node, seed, None, || layout.address(RELAY_PORT)));
            }
            let relay = words.iter().flatten().last().and_then(|word| word.relays().first().copied());
            let Some(relay) = relay else {
                let why = "its relay gives no word";
                return Err(RunError::Carrier { transfer: gateways.name.clone(), why });
            };
            let mut links = layout.join((here, a), (relay, node), None)?;
            links.extend(layout.join((relay, node), (there, b), None)?);
            firsts.insert(relay, ways.len());
            ways.push(links);
        }
        Ok(Self {
            gateways: gateways.clone(),
            addresses: [here, there],
            words,
            firsts,
            ways,
            doors: [Vec::new(), Vec::new()],
            door_addresses: [Vec::new(), Vec::new()],
        })
    }

    /// The name of the gateways in the plan.
    pub(super) fn name(&self) -> &str {
        &self.gateways.name
    }

    /// Puts one host behind each gateway, and adds the routes between them.
    pub(super) fn admit(
        &mut self,
        (from, at): (SocketAddr, &str),
        (to, beyond): (SocketAddr, &str),
        layout: &mut Layout<'_>,
    ) -> Result<([SocketAddr; 2], Vec<Vec<Direction>>), RunError> {
        let (a, b) = (self.gateways.between.0.as_str(), self.gateways.between.1.as_str());
        let doors = [layout.address(DOOR_PORT), layout.address(DOOR_PORT)];
        let enters = layout.join((from, at), (doors[0], a), None)?;
        layout.join((doors[0], a), (doors[1], b), None)?;
        let leaves = layout.join((doors[1], b), (to, beyond), None)?;
        let hosts = [from, to];
        for (side, other) in [(0, 1), (1, 0)] {
            let (Some(&host), Some(&peer)) = (hosts.get(side), hosts.get(other)) else { continue };
            let packets = Packets::new(v4(host), v4(peer), HOST_MSS as u16);
            let beyond = doors.get(other).copied().unwrap_or(host);
            if let (Some(list), Some(addresses)) =
                (self.doors.get_mut(side), self.door_addresses.get_mut(side))
            {
                list.push(HostPort { host, beyond, packets });
                addresses.extend(doors.get(side));
            }
        }
        let whole = |way: &Vec<Direction>| [enters.as_slice(), way, leaves.as_slice()].concat();
        Ok((doors, self.ways.iter().map(whole).collect()))
    }

    /// Puts both into the world.
    pub(super) fn build(self, seed: u64, world: &mut World) -> Result<GatewayPair, RunError> {
        let mut random = Random::component(seed, &format!("gateways {}", self.name()));
        let mut secrets = [[0; 32]; 2];
        secrets.iter_mut().for_each(|secret| random.fill(secret));
        let identities = secrets.map(Identity::from_secret);
        let hosts =
            self.doors.each_ref().map(|doors| doors.iter().map(|door| Prefix::of(door.host.ip(), 32)));
        let hosts = hosts.map(Iterator::collect::<Vec<_>>);
        let group = self.gateways.name.clone();
        let mut handles = Vec::new();
        let [doors_a, doors_b] = self.doors;
        let sides = [(0, 1, doors_a), (1, 0, doors_b)];
        for (side, other, doors) in sides {
            let mut entropy = [0; 32];
            random.fill(&mut entropy);
            let of = |side: usize| hosts.get(side).cloned().unwrap_or_default();
            let (Some(identity), Some(peer), Some(words)) =
                (identities.get(side), identities.get(other), self.words.get(side))
            else {
                continue;
            };
            let peer = PeerConfig {
                name: "the other".to_owned(),
                key: peer.public(),
                // The one of the senders dials.
                addresses: self.addresses.get(1).copied().filter(|_| side == 0).into_iter().collect(),
                allowed: of(other),
                relays: words.iter().map(|word| (word.clone(), None)).collect(),
            };
            let config = MachineConfig {
                identity: identity.clone(),
                suites: Suites::INSECURE_SIMULATION,
                seed: entropy,
                connection: byway_engine::Config::default(),
                congestion: self.gateways.congestion.clone(),
                peers: vec![peer],
                rules: Rules { rules: vec![Rule { action: Action::Background, ..Rule::default() }] },
                serves: of(side).into_iter().map(|hosts| Served { hosts, ports: Vec::new() }).collect(),
                serial: 1,
                guests: Vec::new(),
                settings: self.gateways.settings,
            };
            let Ok(gateway) = Gateway::new(config) else {
                let why = "its gateways cannot be made: too many hosts are behind them";
                return Err(RunError::Carrier { transfer: group, why });
            };
            let gate = GatewayNode { gateway, doors, out: VecDeque::new(), plain: 0 };
            let own = self.addresses.get(side).copied();
            let doors = self.door_addresses.get(side).into_iter().flatten().copied();
            let addresses: Vec<SocketAddr> = own.into_iter().chain(doors).collect();
            let name = format!("gateway {} of {}", if side == 0 { "in" } else { "out" }, group);
            handles.push(world.add(&name, gate, &addresses));
        }
        match handles.as_slice() {
            &[entry, exit] => Ok(GatewayPair { name: group, entry, exit, firsts: self.firsts }),
            _ => Err(RunError::Carrier { transfer: group, why: "its gateways cannot be made" }),
        }
    }
}

/// The IPv4 address and port of a host. All hosts of a world have one.
const fn v4(address: SocketAddr) -> SocketAddrV4 {
    match address {
        SocketAddr::V4(v4) => v4,
        SocketAddr::V6(v6) => SocketAddrV4::new(core::net::Ipv4Addr::UNSPECIFIED, v6.port()),
    }
}
