//! Relays at nodes of the network, one for all sessions that go through there.

use super::lending_relay::{LendingRelay, NodeCounters};
use super::registry::{REGISTRY_RANGE, RegistryBuilder, START_UNIX_SECONDS};
use super::run_error::RunError;
use crate::setup::LendLimit;
use byway_registry::registry_client::MAX_ASKED_RELAYS;
use byway_relay::{Config, LendingConfig, Policy, Relay};
use byway_sim::tcp::{FrameBytes, ServerConfig, TcpCarried, TcpConfig};
use byway_sim::topology::{Built, Graph};
use byway_sim::{Handle, Random, World};
use byway_wire::relay::{Grant, Minute, QuotaClass, RateClass, Scope, Terms, Word};
use byway_wire::{Duration, Instant, Prefix, time::nanos};
use core::net::{Ipv4Addr, SocketAddr};
use std::collections::BTreeMap;

/// The port of relays, for who reads a trace.
pub(super) const RELAY_PORT: u16 = 4748;
/// The validity of relay words, unless the plan sets another.
const WORD_LIFETIME_SECONDS: u64 = 365 * 86_400;
/// The most bytes that wait to leave a relay between two rounds. A world brings datagrams one by
/// one.
const QUEUE_BYTES: usize = 64 << 10;
/// The most datagrams that wait to leave a relay between two rounds.
const QUEUE_DATAGRAMS: usize = 64;
/// Time between heartbeats, and the longest until the first.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(10);

/// The relays of a world, by node.
#[derive(Debug, Default)]
pub(super) struct RelayNodes {
    at: BTreeMap<String, RelayNode>,
    /// The nodes of the enrolled relays, in order.
    enrolled: Vec<String>,
    /// The lending of enrolled relays, if they are end hosts.
    lend: Option<LendLimit>,
}

/// A relay at a node.
#[derive(Clone, Debug)]
struct RelayNode {
    address: SocketAddr,
    key: [u8; 32],
    /// Number of grants that the relay, or a registry in its name, has given.
    grants: u32,
    /// The registry at which the relay is enrolled, and the time of its first heartbeat there.
    enrolled: Option<(SocketAddr, Duration)>,
    /// The line that the relay lends, and the limit.
    line: Option<(NodeCounters, LendLimit)>,
    handle: Option<RelayHandle>,
    /// The bytes of TCP connections, if the relay also takes these.
    tcp: Option<FrameBytes>,
}

/// A relay in the world, on a host with TCP or without.
#[derive(Clone, Copy, Debug)]
enum RelayHandle {
    Udp(Handle<LendingRelay>),
    Tcp(Handle<TcpCarried<LendingRelay>>),
}

impl RelayNode {
    /// Makes the relay as it starts at `now`, with no state but its key.
    fn relay(&self, now: Instant) -> Relay {
        let mut config =
            Config::new(self.key, START_UNIX_SECONDS * 1_000 + nanos(now.since(Instant::ZERO)) / 1_000_000);
        config.policy = Policy::public().allow(Prefix::of(Ipv4Addr::new(10, 0, 0, 0).into(), 8));
        config.accounts = (self.grants as usize * 2).next_power_of_two().max(16);
        (config.queue_bytes, config.queue_datagrams) = (QUEUE_BYTES, QUEUE_DATAGRAMS);
        // In a simulation everybody greets at the same instant.
        config.greetings_per_second = 1_000_000;
        config.lend = self.line.as_ref().map(|(_, lent)| match lent {
            LendLimit::Climb => LendingConfig { rate: None, measured: true },
            LendLimit::Rate(bits) => LendingConfig { rate: Some(bits / 8), measured: true },
        });
        let mut relay = Relay::new(&config, now);
        if let Some((registry, first)) = self.enrolled {
            relay.set_epoch(now, REGISTRY_RANGE, 1, Duration::ZERO);
            // It beats for no other.
            let _ = relay.watch(now, REGISTRY_RANGE, vec![registry], first);
        }
        relay
    }

    /// Makes the relay as it starts at `now` on a host with TCP, if it takes TCP connections.
    fn carried(&self, now: Instant) -> Option<TcpCarried<LendingRelay>> {
        let bytes = self.tcp.as_ref()?;
        let options = TcpConfig { no_delay: true, ..TcpConfig::linux() };
        let serve = ServerConfig { options, ..ServerConfig::default() };
        let seed = u64::from_le_bytes(core::array::from_fn(|at| self.key[at]));
        Some(TcpCarried::new(self.stand(now), 1, bytes, seed, serve))
    }

    fn stand(&self, now: Instant) -> LendingRelay {
        LendingRelay::new(self.relay(now), self.line.as_ref().map(|(line, _)| line.clone()))
    }
}

impl RelayNodes {
    /// Makes an empty set of relays, which lend by `lend` when they are enrolled.
    pub(super) fn lending(lend: Option<LendLimit>) -> Self {
        Self { lend, ..Self::default() }
    }

    /// Makes a relay word for the relay at `node`, for one sender and valid for `holds`. `address`
    /// is called if the relay is new.
    pub(super) fn word(
        &mut self,
        node: &str,
        seed: u64,
        holds: Option<Duration>,
        address: impl FnOnce() -> SocketAddr,
    ) -> Option<Word> {
        let site = self.site(node, seed, address);
        site.grants += 1;
        let terms = Terms {
            expiry: Minute::from_unix(
                START_UNIX_SECONDS + holds.map_or(WORD_LIFETIME_SECONDS, |time| time.as_secs()),
            ),
            rate: RateClass::UNLIMITED,
            quota: QuotaClass::UNLIMITED,
            scope: Scope::ALL,
        };
        let grant = Grant { id: site.grants, terms };
        site.relay(Instant::ZERO).issue(grant, vec![site.address]).ok()
    }

    /// Enrols the relay at `node` with a registry. `address`: as above.
    pub(super) fn enrol(
        &mut self,
        node: &str,
        seed: u64,
        address: impl FnOnce() -> SocketAddr,
        registry_builder: &mut RegistryBuilder,
    ) -> SocketAddr {
        let first = Random::component(seed, &format!("heartbeats of {node}")).up_to(HEARTBEAT_INTERVAL);
        let registry = registry_builder.address();
        let lend = self.lend;
        let site = self.site(node, seed, address);
        site.enrolled = Some((registry, first));
        site.line = lend.map(|lent| (NodeCounters::default(), lent));
        registry_builder.enrol(node, &site.relay(Instant::ZERO), site.address);
        let address = site.address;
        self.enrolled.push(node.to_owned());
        address
    }

    /// Returns the nodes of the relays that are enrolled with a registry, in the order of
    /// enrolment.
    pub(super) fn enrolled(&self) -> &[String] {
        &self.enrolled
    }

    /// Reserves memory for grants (permissions to send through a relay) at every enrolled relay.
    /// With `MAX_ASKED_RELAYS` relays per client, a relay has `clients * MAX_ASKED_RELAYS / relays`
    /// clients on average.
    /// Each gets room for four times as many grants plus 64, at most one per client.
    pub(super) fn expect(&mut self, clients: u32) {
        let named = u64::from(clients) * MAX_ASKED_RELAYS as u64 / self.enrolled.len().max(1) as u64;
        let clients = clients.min(u32::try_from(4 * named + 64).unwrap_or(u32::MAX));
        for site in self.at.values_mut().filter(|site| site.enrolled.is_some()) {
            site.grants += clients;
        }
    }

    fn site(&mut self, node: &str, seed: u64, address: impl FnOnce() -> SocketAddr) -> &mut RelayNode {
        self.at.entry(node.to_owned()).or_insert_with(|| {
            let mut key = [0; 32];
            Random::component(seed, &format!("relay at {node}")).fill(&mut key);
            RelayNode {
                address: address(),
                key,
                grants: 0,
                enrolled: None,
                line: None,
                handle: None,
                tcp: None,
            }
        })
    }

    /// Puts the relays into the world, once all relay words are given.
    pub(super) fn add(&mut self, world: &mut World) {
        for (node, site) in &mut self.at {
            let name = format!("relay at {node}");
            site.handle = Some(match site.carried(Instant::ZERO) {
                Some(carried) => {
                    let addresses = TcpCarried::<LendingRelay>::addresses(&[site.address]);
                    RelayHandle::Tcp(world.add(&name, carried, &addresses))
                }
                None => {
                    let stand = site.stand(Instant::ZERO);
                    RelayHandle::Udp(world.add(&name, stand, &[site.address]))
                }
            });
        }
    }

    /// Begins to count the bytes on the lines that are lent.
    pub(super) fn watch(&self, world: &mut World, graph: &Graph, built: &Built) -> Result<(), RunError> {
        for (node, site) in &self.at {
            let Some((line, _)) = &site.line else { continue };
            let mut neighbours = graph.neighbours(node)?;
            let (Some(neighbour), None) = (neighbours.next(), neighbours.next()) else {
                return Err(RunError::Lines { node: node.clone() });
            };
            line.watch(world, built.link(node, neighbour)?, built.link(neighbour, node)?);
        }
        Ok(())
    }

    /// The relay at `node` also takes TCP connections. Their bytes are kept in `bytes`.
    pub(super) fn take_tcp(&mut self, node: &str, bytes: &FrameBytes) {
        if let Some(site) = self.at.get_mut(node) {
            site.tcp = Some(bytes.clone());
        }
    }

    /// The addresses of all relays.
    pub(super) fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.at.values().map(|site| site.address)
    }

    /// Whether there is a relay at `node`.
    pub(super) fn is_at(&self, node: &str) -> bool {
        self.at.contains_key(node)
    }

    /// Returns the number of relays.
    pub(super) fn count(&self) -> usize {
        self.at.len()
    }

    /// The relay at `node`, which [is there](Self::is_at), crashes, or starts again with nothing in
    /// memory but its key.
    pub(super) fn set_up(&self, world: &mut World, node: &str, up: bool) {
        let site = &self.at[node];
        debug_assert!(site.handle.is_some(), "the relay at {node} was never put into the world");
        let Some(handle) = site.handle else { return };
        match handle {
            RelayHandle::Udp(handle) if up => drop(world.replace(handle, site.stand(world.now()))),
            RelayHandle::Udp(handle) => world.freeze(handle, true),
            RelayHandle::Tcp(handle) if up => {
                if let Some(fresh) = site.carried(world.now()) {
                    world.replace(handle, fresh);
                }
            }
            RelayHandle::Tcp(handle) => world.freeze(handle, true),
        }
    }
}
