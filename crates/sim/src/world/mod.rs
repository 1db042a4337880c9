//! Nodes, routes, and the event loop. The loop drives each node's `Machine` as a driver with real
//! sockets does. In the cases of this table, the loop panics, and names the node or link:
//!
//! | subject | case |
//! |---|---|
//! | link | its counters do not balance, or its queue exceeds its bound |
//! | link | it reorders packets although its `may_reorder` is false |
//! | time | it would go back |
//! | deadline | it stays in the past after `wake` and `transmit` |
//! | `transmit` | it has no end, or writes what [`Transmit`](byway_wire::Transmit) does not allow |
//! | needless wake | it changes something ([`World::wake_spuriously`]) |

mod audit;
mod driven_node;
mod event_loop;
mod eventless_links;
mod events;
mod feeder;
mod interventions;
mod link_id;
mod nat_filter;
mod network;
mod observers;
mod trace;

pub use driven_node::{Handle, Node, NodeId};
pub use link_id::LinkId;
pub use network::StrayCounters;
pub use observers::{CaptureDirection, Captured, LinkEvent, LinkFact};

use crate::clock::Clock;
use crate::counters::LinkCounters;
use crate::link::{Link, Occupancy};
use crate::pipe::{Pipe, PipeConfig};
use crate::random::Random;
use byway_wire::{Ecn, Instant, Local};
use core::fmt;
use core::marker::PhantomData;
use core::net::{IpAddr, SocketAddr};
use core::ops::Index;
use driven_node::DrivenNode;
use nat_filter::NatFilter;
use network::{AddressOwner, EdgeLink, Network};
use observers::Capture;
use std::collections::BTreeMap;

/// Bytes for one run of a machine's datagrams: the most that one UDP call takes.
const SCRATCH_BYTES: usize = 65_536;

/// The source of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteSource {
    /// Packets whose source has this IP address.
    Address(IpAddr),
    /// Packets from this socket of this node, whatever its address. Takes precedence over
    /// [`RouteSource::Address`].
    Socket(NodeId, Local),
}

impl From<SocketAddr> for RouteSource {
    fn from(address: SocketAddr) -> Self {
        Self::Address(address.ip())
    }
}

impl From<IpAddr> for RouteSource {
    fn from(address: IpAddr) -> Self {
        Self::Address(address)
    }
}

impl<N: Into<NodeId>> From<(N, Local)> for RouteSource {
    fn from((node, local): (N, Local)) -> Self {
        Self::Socket(node.into(), local)
    }
}

/// A datagram that enters the network. A tap may read and change it.
#[derive(Debug)]
pub struct TappedDatagram<'a> {
    /// The simulated time.
    pub now: Instant,
    /// The sender of the datagram. `from` may be forged.
    pub from: &'a mut SocketAddr,
    /// The destination. The route is already chosen.
    pub to: &'a mut SocketAddr,
    /// The ECN mark of the datagram.
    pub ecn: &'a mut Ecn,
    /// The bytes of the datagram.
    pub payload: &'a mut Vec<u8>,
    /// Bytes beyond the payload that are only a length.
    pub phantom: usize,
}

/// The decision about a tapped datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TapVerdict {
    /// The datagram continues, changed or not.
    Pass,
    /// The packet is taken away.
    Drop,
}

type Tap = Box<dyn FnMut(TappedDatagram<'_>) -> TapVerdict>;
type Router = Box<dyn FnMut(IpAddr, IpAddr) -> Option<Vec<LinkId>>>;

#[derive(Debug)]
struct Socket {
    /// The address that the machine knows.
    told: SocketAddr,
    /// The address that other nodes see. Behind a NAT it is another one.
    seen: SocketAddr,
    up: bool,
    /// The largest UDP payload of the socket in bytes.
    largest: usize,
    /// The NAT in front of the socket, which lets in only replies. `None`: it lets in everything.
    filter: Option<NatFilter>,
    /// Routes looked up before, in order of address.
    routes: Vec<Route>,
    /// The route that was used last.
    last_route: usize,
}

/// The route from a socket to an address.
#[derive(Debug)]
struct Route {
    to: SocketAddr,
    /// The beginning of the route's chain of links. `None`: there is no route.
    chain: Option<u32>,
    /// The owner of the address, as of the latest look-up.
    owner: Option<AddressOwner>,
}

impl Socket {
    fn forget_routes(&mut self) {
        (self.routes, self.last_route) = (Vec::new(), 0);
    }
}

struct NodeSlot {
    name: String,
    node: Box<dyn DrivenNode>,
    clock: Clock,
    sockets: Vec<Socket>,
    frozen: bool,
    /// Whether the node has not run since it was made or resumed.
    fresh: bool,
    /// The node's earliest wake-up in the queue of events. Later ones are stale.
    wake_at: Instant,
}

/// Random early wakes, which test that a wake before the deadline changes nothing.
struct SpuriousWakes {
    probability: f64,
    random: Random,
}

/// A simulated world.
///
/// *Building*: [`add`](Self::add), [`link`](Self::link), [`route`](Self::route),
/// [`route_by`](Self::route_by), [`connect`](Self::connect). *Running*:
/// [`run_until`](Self::run_until), [`run_for`](Self::run_for), [`run_while`](Self::run_while).
/// *Looking*: `world[handle]`, [`counters`](Self::counters), [`waiting`](Self::waiting),
/// [`stray`](Self::stray), [`trace`](Self::trace), [`observe`](Self::observe),
/// [`capture`](Self::capture). *Meddling*: [`act`](Self::act), [`inject`](Self::inject),
/// [`tap`](Self::tap), [`rebind`](Self::rebind), [`move_local`](Self::move_local),
/// [`set_up`](Self::set_up), [`set_largest`](Self::set_largest), [`freeze`](Self::freeze),
/// [`crash`](Self::crash), [`restart`](Self::restart), [`replace`](Self::replace),
/// [`pipe`](Self::pipe).
pub struct World {
    now: Instant,
    seed: u64,
    slots: Vec<NodeSlot>,
    owners: BTreeMap<SocketAddr, (u32, u16)>,
    /// Changes whenever the owners do.
    generation: u32,
    network: Network,
    router: Option<Router>,
    tap: Option<Tap>,
    capture: Option<Capture>,
    spurious: Option<SpuriousWakes>,
    scratch: Vec<u8>,
    max_segments: usize,
    events: u64,
    events_now: u64,
}

impl World {
    /// An empty simulation. `seed` determines everything random in it.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            now: Instant::ZERO,
            seed,
            slots: Vec::new(),
            owners: BTreeMap::new(),
            generation: 0,
            network: Network::new(),
            router: None,
            tap: None,
            capture: None,
            spurious: None,
            scratch: vec![0; SCRATCH_BYTES],
            max_segments: 64,
            events: 0,
            events_now: 0,
        }
    }

    /// The stream of random numbers of a component of this world. Names of links are taken by the
    /// links.
    #[must_use]
    pub fn random(&self, component: &str) -> Random {
        Random::component(self.seed, component)
    }

    // Building.

    /// Adds a node with a socket for each address. The node is told of its sockets at once, but
    /// acts only when the world runs.
    ///
    /// # Panics
    /// If an address is taken.
    pub fn add<T: Node>(&mut self, name: &str, node: T, addresses: &[SocketAddr]) -> Handle<T> {
        let id = self.slots.len() as u32;
        let sockets: Vec<Socket> = addresses
            .iter()
            .map(|&address| Socket {
                told: address,
                seen: address,
                up: true,
                largest: usize::MAX,
                filter: None,
                routes: Vec::new(),
                last_route: 0,
            })
            .collect();
        for (local, &address) in addresses.iter().enumerate() {
            let taken = self.owners.insert(address, (id, local as u16));
            assert!(taken.is_none(), "{name}: {address} is taken");
        }
        self.generation += 1;
        self.slots.push(NodeSlot {
            name: name.to_owned(),
            node: Box::new(node),
            clock: Clock::new(),
            sockets,
            frozen: false,
            fresh: true,
            wake_at: Instant::FAR_FUTURE,
        });
        self.introduce(id);
        Handle { id: NodeId(id), kind: PhantomData }
    }

    /// Gives a node a clock of its own. Call this before the world runs, since the clock of a
    /// machine must never go back.
    ///
    /// # Panics
    /// If the new clock shows an earlier time than the old one.
    pub fn set_clock(&mut self, node: impl Into<NodeId>, clock: Clock) {
        let now = self.now;
        let id = node.into();
        let slot = self.slot_mut(id);
        assert!(clock.local(now) >= slot.clock.local(now), "{}: its clock would go back", slot.name);
        slot.clock = clock;
        self.wake_soon(id.0);
    }

    /// Adds a pipe. Its faults follow from the world's seed and its name.
    ///
    /// # Panics
    /// If another link has this name.
    pub fn link(&mut self, name: &str, config: PipeConfig) -> LinkId {
        let random = self.random(name);
        self.link_with(name, Pipe::new(config, random))
    }

    /// Adds a link of another kind.
    ///
    /// # Panics
    /// If another link has this name.
    pub fn link_with(&mut self, name: &str, link: impl Link) -> LinkId {
        self.network.add(name, EdgeLink::new(link))
    }

    /// Sends packets from `from` to the IP address `to` over `links`, one after the other. Several
    /// routes may share a link. If `links` is empty, packets arrive at once. A later route with the
    /// same ends replaces this route.
    pub fn route(&mut self, from: impl Into<RouteSource>, to: IpAddr, links: &[LinkId]) {
        let chain = self.network.chain(self.now, links);
        match from.into() {
            RouteSource::Address(from) => self.network.route_address(from, to, chain),
            RouteSource::Socket(node, local) => self.network.route_local(node.0, local.0, to, chain),
        }
        self.forget_routes();
    }

    /// Sets a function that finds routes on demand, for worlds with many possible routes. When no
    /// [route](Self::route) from one IP address to another is known, `router` returns the links of
    /// a route, or `None` if there is none.
    pub fn route_by(&mut self, router: impl FnMut(IpAddr, IpAddr) -> Option<Vec<LinkId>> + 'static) {
        self.router = Some(Box::new(router));
        self.forget_routes();
    }

    fn forget_routes(&mut self) {
        for socket in self.slots.iter_mut().flat_map(|slot| &mut slot.sockets) {
            socket.forget_routes();
        }
    }

    /// Joins the hosts of two addresses by a pipe in each direction. The links are called after the
    /// IP addresses, for example "10.0.0.1>10.0.0.2".
    ///
    /// # Panics
    /// If the hosts are joined already.
    pub fn connect(
        &mut self,
        a: SocketAddr,
        b: SocketAddr,
        there: PipeConfig,
        back: PipeConfig,
    ) -> (LinkId, LinkId) {
        let there = self.link(&format!("{}>{}", a.ip(), b.ip()), there);
        let back = self.link(&format!("{}>{}", b.ip(), a.ip()), back);
        self.route(a, b.ip(), &[there]);
        self.route(b, a.ip(), &[back]);
        (there, back)
    }

    /// Sets the most datagrams that a machine sends in one run: by default 64. With 1, there is no
    /// segmentation.
    pub fn set_max_segments(&mut self, segments: usize) {
        self.max_segments = segments.max(1);
    }

    /// Stops the trace: no hash of every byte, for speed.
    pub fn stop_trace(&mut self) {
        self.network.stop_trace();
    }

    /// Sets whether the world may skip events where this changes no result (default: yes).
    /// [`run_while`](Self::run_while) ends the skipping on all links. [`observe`](Self::observe)
    /// and [`pipe`](Self::pipe) end it only on the link that they are given.
    pub fn save_events(&mut self, may: bool) {
        self.network.look_ahead(may);
    }

    /// Between events, wakes a random node with this probability. Such a wake must change nothing:
    /// the world asserts that the node sends nothing and that its deadline does not move.
    pub fn wake_spuriously(&mut self, probability: f64) {
        let random = self.random("spurious wakes");
        self.spurious = Some(SpuriousWakes { probability, random });
    }

    // Looking.

    /// The simulated time.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.now
    }

    /// The books of a link.
    #[must_use]
    pub fn counters(&self, link: LinkId) -> LinkCounters {
        self.network.counters(self.now, link)
    }

    /// The counts of packets that were dropped outside of links.
    #[must_use]
    pub fn stray(&self) -> StrayCounters {
        self.network.stray
    }

    /// The queue of a link at present.
    #[must_use]
    pub fn waiting(&self, link: LinkId) -> Occupancy {
        self.network.waiting(self.now, link)
    }

    /// A hash of all packets that were offered to links, to compare runs. It covers times of offer
    /// and arrival, size, ECN mark and bytes of a packet, or why it was dropped. It is 0 after
    /// `stop_trace`.
    #[must_use]
    pub fn trace(&self) -> u64 {
        self.network.trace()
    }

    /// Calls `observer` for all that happens to packets on a link, in order of time. A link without
    /// observers costs no extra time.
    pub fn observe(&mut self, link: LinkId, observer: impl FnMut(&LinkFact) + 'static) {
        self.network.observe(link, Box::new(observer));
    }

    /// Calls `capture` for every datagram that a node sends or receives, like a packet capture at
    /// the sockets of all nodes.
    pub fn capture(&mut self, capture: impl FnMut(&Captured<'_>) + 'static) {
        self.capture = Some(Box::new(capture));
    }

    /// Returns the number of events so far.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.events
    }

    fn slot(&self, id: NodeId) -> &NodeSlot {
        self.slots.get(id.0 as usize).unwrap_or_else(|| panic!("{id:?} is not of this world"))
    }

    fn slot_mut(&mut self, id: NodeId) -> &mut NodeSlot {
        self.slots.get_mut(id.0 as usize).unwrap_or_else(|| panic!("{id:?} is not of this world"))
    }

    fn socket(&mut self, id: NodeId, local: Local) -> &mut Socket {
        let slot = self.slot_mut(id);
        let name = &slot.name;
        slot.sockets.get_mut(usize::from(local.0)).unwrap_or_else(|| panic!("{name} has no {local}"))
    }
}

impl<T: Node> Index<Handle<T>> for World {
    type Output = T;

    fn index(&self, handle: Handle<T>) -> &T {
        match self.slot(handle.id).node.any().downcast_ref() {
            Some(node) => node,
            None => panic!("{:?} is not of this world", handle.id),
        }
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World")
            .field("now", &self.now)
            .field("seed", &self.seed)
            .field("nodes", &self.slots.iter().map(|slot| &slot.name).collect::<Vec<_>>())
            .field("network", &self.network)
            .finish_non_exhaustive()
    }
}
