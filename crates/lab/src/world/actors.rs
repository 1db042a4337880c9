//! A plan's transfers, requests and cross traffic as nodes of a world.

use super::exchange::{CallerTask, ExchangeHosts, ExchangeSites};
use super::gateways::{self, GatewayPair, PlannedGateways};
use super::layout::{self, DIRECT_WAY, Layout, PlacedTransfer};
use super::registry::{RegistryBuilder, RegistryClient, RegistryNode, SharedOffers};
use super::relays::{RELAY_PORT, RelayNodes};
use super::run_error::RunError;
use super::session::{SendTask, SessionReceiver, SessionSender, SessionSetup, Ticket};
use super::supply::Supply;
use super::tcp;
use super::transfers::{GatewayedTcp, SessionHosts, Tcp, TransferHosts};
use super::wang::{RelayedTcp, WangSetup, WangSource};
use crate::setup::{
    Carrier, Cross, ExchangeOptions, Gateways, RegistrySetup, Requests, SessionOptions, Setup, TcpOptions,
    Transfer,
};
use byway_engine::Config;
use byway_engine::config::{AckPathRule, Pnack, Tau};
use byway_sim::tcp::web::Clients;
use byway_sim::tcp::{self as sim, Cbr, Flow, FrameBytes, ServerConfig, Subflow, TcpHost, newreno};
use byway_sim::topology::Direction;
use byway_sim::{Handle, Random, World};
use byway_wire::packet::BASE_DATAGRAM;
use byway_wire::{Duration, Instant, Local};
use core::net::{IpAddr, SocketAddr};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Without a rate, the plain TCP of each hop decides.
const UNKNOWN_HOP_CONTROLLER: &str = "TCP to relays is governed by newreno or cubic, without options";
/// The UDP port of simulated senders. Each role has its own, for traces.
const SENDER_PORT: u16 = 5000;
const RECEIVER_PORT: u16 = 4000;
const HTTP_PORT: u16 = 80;
const REGISTRY_PORT: u16 = 4750;

/// All hosts and relays of a world.
#[derive(Debug)]
pub(super) struct Actors {
    pub(super) transfers: Vec<TransferActor>,
    pub(super) requests: Vec<RequestActor>,
    pub(super) cross: Vec<CrossActor>,
    pub(super) relays: RelayNodes,
    /// The sources of the transfers over TCP to relays.
    pub(super) sources: Vec<WangSource>,
    pub(super) gateways: Vec<GatewayPair>,
    /// The addresses of hosts and relays that speak byway's protocol.
    byway_hosts: BTreeSet<IpAddr>,
    registry: Option<Handle<RegistryNode>>,
}

/// A transfer in a world.
#[derive(Debug)]
pub(super) struct TransferActor {
    pub(super) placed: PlacedTransfer,
    /// When the transfer begins.
    pub(super) start: Instant,
    /// The links of each route, in the direction of the data.
    pub(super) ways: Vec<Vec<Direction>>,
    pub(super) ends: TransferHosts,
}

/// Requests in a world.
#[derive(Debug)]
pub(super) struct RequestActor {
    pub(super) clients: Handle<Clients>,
    /// The most clients that wait at the same time. `None`: no limit.
    pub(super) most: Option<u32>,
    /// The links from the server to the clients.
    pub(super) way: Vec<Direction>,
}

/// Cross traffic in a world.
#[derive(Debug)]
pub(super) struct CrossActor {
    pub(super) source: Handle<Cbr>,
    pub(super) sink: Handle<Cbr>,
    /// The links that the traffic takes.
    pub(super) way: Vec<Direction>,
}

impl TransferActor {
    /// The names of the routes.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.placed.ways.iter().map(|way| way.as_deref().unwrap_or(DIRECT_WAY))
    }
}

/// The builder that puts hosts into the world.
struct WorldBuilder<'a, 'b> {
    seed: u64,
    end: Instant,
    layout: &'a mut Layout<'b>,
    world: &'a mut World,
    relays: RelayNodes,
    registry: Option<RegistryActor>,
    sources: Vec<WangSource>,
    gateways: &'a [Gateways],
    planned_gateways: Vec<PlannedGateways>,
    /// The bytes of all TCP connections that carry datagrams.
    bytes: FrameBytes,
    byway_hosts: BTreeSet<IpAddr>,
}

impl Actors {
    /// The addresses of hosts and relays that speak byway's protocol.
    pub(super) const fn byway_hosts(&self) -> &BTreeSet<IpAddr> {
        &self.byway_hosts
    }

    /// The registry. `None`: the plan has none.
    pub(super) const fn registry(&self) -> Option<Handle<RegistryNode>> {
        self.registry
    }

    /// Adds all hosts to the world, and asks the layout for the routes between them.
    pub(super) fn new(
        setup: &Setup,
        seed: u64,
        layout: &mut Layout<'_>,
        world: &mut World,
    ) -> Result<Self, RunError> {
        let end = Instant::ZERO + setup.duration;
        let mut stage = WorldBuilder {
            seed,
            end,
            layout,
            world,
            relays: RelayNodes::lending(setup.registry.as_ref().and_then(|registry| registry.lend)),
            registry: None,
            sources: Vec::new(),
            gateways: &setup.gateways,
            planned_gateways: Vec::new(),
            bytes: FrameBytes::default(),
            byway_hosts: BTreeSet::new(),
        };
        if let Some(registry) = &setup.registry {
            stage.registry = Some(stage.registry(registry)?);
        }
        let transfers =
            setup.transfers.iter().map(|transfer| stage.transfer(transfer)).collect::<Result<_, _>>()?;
        let requests =
            setup.requests.iter().map(|requests| stage.requests(requests)).collect::<Result<_, _>>()?;
        let cross = setup.cross.iter().map(|cross| stage.cross(cross)).collect::<Result<_, _>>()?;
        let WorldBuilder {
            mut relays,
            registry: listing,
            sources,
            planned_gateways,
            world,
            mut byway_hosts,
            ..
        } = stage;
        let mut registry = None;
        if let Some(RegistryActor { builder, .. }) = listing {
            relays.expect(builder.clients());
            let address = builder.address();
            registry = Some(world.add("registry", builder.open(seed), &[address]));
        }
        let gateways =
            planned_gateways.into_iter().map(|draft| draft.build(seed, world)).collect::<Result<_, _>>()?;
        relays.add(world);
        byway_hosts.extend(relays.addresses().map(|relay| relay.ip()));
        Ok(Self { transfers, requests, cross, relays, sources, gateways, byway_hosts, registry })
    }
}

/// A registry and its relays while the world is built.
struct RegistryActor {
    builder: RegistryBuilder,
    /// The number of each relay, by its address.
    numbers: Rc<BTreeMap<SocketAddr, usize>>,
}

impl WorldBuilder<'_, '_> {
    fn registry(&mut self, registry: &RegistrySetup) -> Result<RegistryActor, RunError> {
        let nodes = layout::enrolled(registry, self.layout.graph(), self.seed)?;
        self.layout.graph().way(&registry.at, &registry.at, &[])?;
        let address = self.layout.address(REGISTRY_PORT);
        self.layout.place(address, &registry.at);
        let mut builder = RegistryBuilder::new(address, self.seed);
        let mut numbers = BTreeMap::new();
        for (number, node) in nodes.iter().enumerate() {
            let Self { layout, relays, seed, .. } = &mut *self;
            let relay = relays.enrol(node, *seed, || layout.address(RELAY_PORT), &mut builder);
            layout.place(relay, node);
            numbers.insert(relay, number);
        }
        Ok(RegistryActor { builder, numbers: Rc::new(numbers) })
    }

    /// Adds a host at the sender's node that asks the registry for relays. Returns the relays
    /// offered, and the relays at either end, which are no detour. `None` if the transfer does not
    /// ask the registry.
    fn offers(
        &mut self,
        transfer: &Transfer,
        placed: &PlacedTransfer,
        ends: [SocketAddr; 2],
        start: Instant,
    ) -> Option<(SharedOffers, Vec<SocketAddr>)> {
        let mut random = self.random("question", &transfer.name);
        let listing = self.registry.as_mut().filter(|_| placed.asks())?;
        let (word, nodes) = (listing.builder.word(), self.relays.enrolled());
        let at_ends = listing.numbers.iter().filter(|(_, number)| {
            nodes.get(**number).is_some_and(|node| *node == placed.from || *node == placed.to)
        });
        let passed = at_ends.map(|(relay, _)| *relay).collect();
        let offers = SharedOffers::default();
        let asker = RegistryClient::new(word, offers.clone(), start, &mut random);
        let here = self.layout.address(SENDER_PORT);
        for (host, node) in [(here, &placed.from), (ends[0], &placed.from), (ends[1], &placed.to)] {
            self.layout.place(host, node);
        }
        let _: Handle<RegistryClient> =
            self.world.add(&format!("asker of {}", transfer.name), asker, &[here]);
        Some((offers, passed))
    }

    fn random(&self, what: &str, name: &str) -> Random {
        Random::component(self.seed, &format!("{what} of {name}"))
    }

    fn transfer(&mut self, transfer: &Transfer) -> Result<TransferActor, RunError> {
        let placed = PlacedTransfer::new(transfer, self.layout.graph(), self.seed)?;
        let late = self.random("start", &transfer.name).up_to(transfer.start_jitter);
        let start = Instant::ZERO + transfer.start + late;
        let (ends, ways) = match &transfer.carrier {
            Carrier::Session(options) => self.session(transfer, options, &placed, start)?,
            Carrier::Exchange(options) => self.exchange(transfer, options, &placed, start)?,
            Carrier::Tcp(options) => self.tcp(transfer, options, &placed, start)?,
            Carrier::TcpRelays(options) => self.relayed(transfer, options, &placed, start)?,
            Carrier::Gateways(options, by) => self.behind(transfer, options, by, &placed, start)?,
        };
        Ok(TransferActor { placed, start, ways, ends })
    }

    fn session(
        &mut self,
        transfer: &Transfer,
        options: &SessionOptions,
        placed: &PlacedTransfer,
        start: Instant,
    ) -> Result<(TransferHosts, Vec<Vec<Direction>>), RunError> {
        let (from, to) = (placed.from.as_str(), placed.to.as_str());
        let (here, there) = (self.layout.address(SENDER_PORT), self.layout.address(RECEIVER_PORT));
        self.byway_hosts.extend([here.ip(), there.ip()]);
        let (mut firsts, mut ways, mut direct) = (BTreeMap::new(), Vec::new(), None);
        let mut words = BTreeMap::new();
        for way in &placed.ways {
            let Some(node) = way else {
                firsts.insert(there, ways.len());
                ways.push(self.layout.join((here, from), (there, to), None)?);
                direct = Some(there);
                continue;
            };
            let Self { layout, relays, seed, .. } = &mut *self;
            let word = relays.word(node, *seed, None, || layout.address(RELAY_PORT));
            let Some((relay, word)) = word.and_then(|word| Some((*word.relays().first()?, word))) else {
                let why = "its relay gives no word";
                return Err(RunError::Carrier { transfer: transfer.name.clone(), why });
            };
            let mut links = self.layout.join((here, from), (relay, node), None)?;
            links.extend(self.layout.join((relay, node), (there, to), None)?);
            firsts.insert(relay, ways.len());
            ways.push(links);
            words.insert(relay, word);
        }
        let seed = self.random("choices", &transfer.name).next_u64();
        let controller =
            byway_control::controller(&transfer.congestion, byway_control::SenderKind::Session, seed)
                .map_err(|error| RunError::Congestion { of: transfer.name.clone(), error })?;
        let manner = SessionSetup { config: config(options), real_bytes: options.real_bytes };
        let ticket = Ticket::default();
        // Where there is a direct way relays are offered over it. Without one, the receiver has to
        // be met at them.
        let standing = if direct.is_some() { Vec::new() } else { words.values().cloned().collect() };
        let mut random = self.random("receiver", &transfer.name);
        let receiver = SessionReceiver::new(&manner, standing, ticket.clone(), &mut random);
        let offers = self.offers(transfer, placed, [here, there], start);
        let listed = offers.as_ref().and(self.registry.as_ref()).map(|listing| Rc::clone(&listing.numbers));
        let task = SendTask {
            peer: receiver.key(),
            direct,
            words,
            ticket,
            offers,
            supply: Supply::new(&transfer.demand),
            controller,
            start,
            stop: transfer.stop.map(|stop| Instant::ZERO + stop),
        };
        let sender = SessionSender::new(&manner, task, &mut self.random("sender", &transfer.name));
        let receiver = self.world.add(&format!("receiver of {}", transfer.name), receiver, &[there]);
        let sender = self.world.add(&format!("sender of {}", transfer.name), sender, &[here]);
        Ok((TransferHosts::Session(SessionHosts::new(sender, receiver, firsts, listed)), ways))
    }

    fn exchange(
        &mut self,
        transfer: &Transfer,
        options: &ExchangeOptions,
        placed: &PlacedTransfer,
        start: Instant,
    ) -> Result<(TransferHosts, Vec<Vec<Direction>>), RunError> {
        let there = self.layout.address(RECEIVER_PORT);
        let home = (self.layout.address(SENDER_PORT), placed.from.as_str());
        let elsewhere = (self.layout.address(SENDER_PORT), placed.from.as_str());
        let uplinks: Vec<_> =
            options.uplinks.iter().map(|node| (self.layout.address(SENDER_PORT), node.as_str())).collect();
        let (mut firsts, mut ways, mut words, mut direct) = (BTreeMap::new(), Vec::new(), Vec::new(), None);
        for way in &placed.ways {
            let (target, at) = match way {
                None => {
                    direct = Some(there);
                    (there, placed.to.as_str())
                }
                Some(node) => {
                    let Self { layout, relays, seed, .. } = &mut *self;
                    let word = relays.word(node, *seed, options.words_hold, || layout.address(RELAY_PORT));
                    let Some((relay, word)) = word.and_then(|word| Some((*word.relays().first()?, word)))
                    else {
                        let why = "its relay gives no word";
                        return Err(RunError::Carrier { transfer: transfer.name.clone(), why });
                    };
                    if options.tcp {
                        self.relays.take_tcp(node, &self.bytes);
                    }
                    words.push(word);
                    (relay, node.as_str())
                }
            };
            firsts.insert(target, ways.len());
            let mut links = self.layout.join(home, (target, at), None)?;
            for other in uplinks.iter().chain([&elsewhere]) {
                self.layout.join(*other, (target, at), None)?;
            }
            if way.is_some() {
                links.extend(self.layout.join((target, at), (there, &placed.to), None)?);
            }
            ways.push(links);
        }
        let seed = self.random("choices", &transfer.name).next_u64();
        byway_control::controller(&transfer.congestion, byway_control::SenderKind::Session, seed)
            .map_err(|error| RunError::Congestion { of: transfer.name.clone(), error })?;
        let sites = ExchangeSites {
            name: &transfer.name,
            options,
            sender: [home].iter().chain(&uplinks).map(|place| place.0).collect(),
            sender_elsewhere: elsewhere.0,
            receiver: there,
            firsts,
            standing: if direct.is_some() && !options.ticket_names_relays {
                Vec::new()
            } else {
                words.clone()
            },
            bytes: self.bytes.clone(),
        };
        self.byway_hosts.extend([there.ip(), elsewhere.0.ip()]);
        self.byway_hosts.extend(sites.sender.iter().map(SocketAddr::ip));
        let random = self.random("hosts", &transfer.name);
        let hosts = ExchangeHosts::add(self.world, sites, random, |peer, ticket, clock| CallerTask {
            peer,
            direct,
            words,
            ticket,
            congestion: transfer.congestion.clone(),
            seed,
            start: clock.local(start),
            stop: transfer.stop.map(|stop| clock.local(Instant::ZERO + stop)),
            clock,
        });
        Ok((TransferHosts::Exchange(hosts), ways))
    }

    fn tcp(
        &mut self,
        transfer: &Transfer,
        options: &TcpOptions,
        placed: &PlacedTransfer,
        start: Instant,
    ) -> Result<(TransferHosts, Vec<Vec<Direction>>), RunError> {
        let there = self.layout.address(RECEIVER_PORT);
        let (mut subflows, mut locals, mut ways) = (Vec::new(), Vec::new(), Vec::new());
        for (number, way) in placed.ways.iter().enumerate() {
            let here = self.layout.address(SENDER_PORT);
            let through = way.as_deref();
            ways.push(self.layout.join((here, &placed.from), (there, &placed.to), through)?);
            subflows.push(Subflow { local: Local(number as u16), remote: there, proxied: way.is_some() });
            locals.push(here);
        }
        let mut random = self.random("choices", &transfer.name);
        let controller = tcp::controller(&transfer.name, options, &transfer.congestion, random.next_u64())?;
        let (demand, send_buffer) = tcp::demand(&transfer.demand);
        let mut flow = Flow::new(subflows, controller).demand(demand).start(start);
        flow.options = tcp::options(options);
        flow.options.send_buffer = send_buffer;
        flow.stop = transfer.stop.map(|stop| Instant::ZERO + stop);
        let mut receiver = TcpHost::new(random.next_u64());
        receiver.serve(ServerConfig { options: tcp::options(options), ..ServerConfig::default() });
        let mut sender = TcpHost::new(random.next_u64());
        let flow = sender.open(flow);
        let receiver = self.world.add(&format!("receiver of {}", transfer.name), receiver, &[there]);
        let sender = self.world.add(&format!("sender of {}", transfer.name), sender, &locals);
        Ok((TransferHosts::Tcp(Tcp { sender, receiver, flow, mss: options.mss }), ways))
    }

    fn behind(
        &mut self,
        transfer: &Transfer,
        options: &TcpOptions,
        by: &str,
        placed: &PlacedTransfer,
        start: Instant,
    ) -> Result<(TransferHosts, Vec<Vec<Direction>>), RunError> {
        let Some(gateways) = self.gateways.iter().find(|gateways| gateways.name == by) else {
            let why = "there are no such gateways";
            return Err(RunError::Carrier { transfer: transfer.name.clone(), why });
        };
        let known = self.planned_gateways.iter().position(|draft| draft.name() == by);
        let pair = match known {
            Some(pair) => pair,
            None => {
                let draft = PlannedGateways::new(gateways, self.seed, self.layout, &mut self.relays)?;
                self.planned_gateways.push(draft);
                self.planned_gateways.len() - 1
            }
        };
        let (here, there) = (self.layout.address(SENDER_PORT), self.layout.address(RECEIVER_PORT));
        let draft = &mut self.planned_gateways[pair];
        let ([near, _], ways) = draft.admit((here, &placed.from), (there, &placed.to), self.layout)?;
        let mut random = self.random("choices", &transfer.name);
        let options = TcpOptions {
            mss: options.mss.min(gateways::HOST_MSS),
            receive_window: options.receive_window.or(Some(gateways::HOST_RECEIVE_WINDOW)),
            ..options.clone()
        };
        let controller = tcp::controller(&transfer.name, &options, &transfer.congestion, random.next_u64())?;
        let (demand, send_buffer) = tcp::demand(&transfer.demand);
        let mut flow = Flow::new(vec![Subflow::direct(near)], controller).demand(demand).start(start);
        flow.options = tcp::options(&options);
        flow.options.send_buffer = send_buffer;
        flow.stop = transfer.stop.map(|stop| Instant::ZERO + stop);
        let mut receiver = TcpHost::new(random.next_u64());
        receiver.serve(ServerConfig { options: tcp::options(&options), ..ServerConfig::default() });
        let mut sender = TcpHost::new(random.next_u64());
        let flow = sender.open(flow);
        let receiver = self.world.add(&format!("receiver of {}", transfer.name), receiver, &[there]);
        let sender = self.world.add(&format!("sender of {}", transfer.name), sender, &[here]);
        Ok((TransferHosts::Behind(GatewayedTcp { sender, receiver, flow, pair, from: here.ip() }), ways))
    }

    fn relayed(
        &mut self,
        transfer: &Transfer,
        options: &TcpOptions,
        placed: &PlacedTransfer,
        start: Instant,
    ) -> Result<(TransferHosts, Vec<Vec<Direction>>), RunError> {
        let wanted = WangSetup::of(transfer, options)?;
        let controller = match wanted {
            Some(_) => None,
            None => Some(tcp::answering(&transfer.congestion).ok_or_else(|| RunError::Carrier {
                transfer: transfer.name.clone(),
                why: UNKNOWN_HOP_CONTROLLER,
            })?),
        };
        let (here, there) = (self.layout.address(SENDER_PORT), self.layout.address(RECEIVER_PORT));
        let mut random = self.random("choices", &transfer.name);
        let mut sender = TcpHost::new(random.next_u64());
        let (mut flows, mut relays, mut ways, mut delay) =
            (Vec::new(), Vec::new(), Vec::new(), Duration::ZERO);
        for (number, way) in placed.ways.iter().enumerate() {
            let Some(node) = way else {
                let why = "over TCP to relays all its ways go through relays";
                return Err(RunError::Carrier { transfer: transfer.name.clone(), why });
            };
            let between = self.layout.address(RELAY_PORT);
            let mut links = self.layout.join((here, &placed.from), (between, node), None)?;
            let back: Vec<Direction> = links.iter().map(|link| link.reversed()).collect();
            let rtt = self.layout.graph().base_rtt(&links, &back);
            links.extend(self.layout.join((between, node), (there, &placed.to), None)?);
            delay = delay.max(self.layout.graph().base_rtt(&links, &[]));
            ways.push(links);
            let config = tcp::options(options);
            let law = controller.map_or_else(newreno, |law| law(random.next_u64(), &config));
            let mut flow = Flow::new(vec![Subflow::direct(between)], law).start(start);
            flow.options = config;
            if let Some(wanted) = &wanted {
                flow = flow.demand(sim::Demand::paced(wanted.initial(number) as u64));
                flow.options.send_buffer = Some(wanted.backlog(options, rtt));
            }
            flow.stop = transfer.stop.map(|stop| Instant::ZERO + stop);
            flows.push(sender.open(flow));
            let onward = Subflow::direct(there);
            let mut relay =
                sim::TcpRelay::new(random.next_u64(), onward, options.relay_packets, &tcp::options(options));
            if let Some(law) = controller {
                relay = relay.controller(law);
            }
            let name = format!("relay of {} at {node}", transfer.name);
            relays.push(self.world.add(&name, relay, &[between]));
        }
        let mut receiver = TcpHost::new(random.next_u64());
        receiver.serve(ServerConfig { options: tcp::options(options), ..ServerConfig::default() });
        let receiver = self.world.add(&format!("receiver of {}", transfer.name), receiver, &[there]);
        let sender = self.world.add(&format!("sender of {}", transfer.name), sender, &[here]);
        let hops = RelayedTcp { sender, receiver, flows, relays, mss: options.mss };
        if let Some(wanted) = &wanted {
            // Sources do not keep time with each other.
            let first = start + random.up_to(wanted.interval());
            self.sources.push(WangSource::new(hops.clone(), wanted, delay, first, random.next_u64()));
        }
        Ok((TransferHosts::Relayed(hops), ways))
    }

    fn requests(&mut self, requests: &Requests) -> Result<RequestActor, RunError> {
        let (client, server) = (self.layout.address(SENDER_PORT), self.layout.address(HTTP_PORT));
        let way = self.layout.join((server, &requests.server), (client, &requests.client), None)?;
        let mut random = self.random("requests", &requests.name);
        let list = tcp::list(requests, random.next_u64(), self.end);
        let mut host = TcpHost::new(random.next_u64());
        host.serve(tcp::serve(requests)?);
        let start = Instant::ZERO + requests.start;
        let clients = Clients::new(server, &list, start, tcp::options(&requests.tcp));
        self.world.add(&format!("server of {}", requests.name), host, &[server]);
        let clients = self.world.add(&format!("clients of {}", requests.name), clients, &[client]);
        let most = match requests.arrivals {
            crate::setup::Arrivals::Closed { clients, .. } => Some(clients),
            crate::setup::Arrivals::Open { .. } => None,
        };
        Ok(RequestActor { clients, most, way })
    }

    fn cross(&mut self, cross: &Cross) -> Result<CrossActor, RunError> {
        let (from, to) = (self.layout.address(SENDER_PORT), self.layout.address(RECEIVER_PORT));
        let way = self.layout.join((from, &cross.from), (to, &cross.to), None)?;
        let headers = way.first().map_or(0, |link| self.layout.graph().config(*link).overhead);
        let payload = cross.packet.saturating_sub(headers).max(1);
        let rate = u128::from(cross.rate) * u128::from(payload) / u128::from(cross.packet.max(1));
        let start = Instant::ZERO + cross.start;
        let stop = cross.stop.map_or(Instant::FAR_FUTURE, |stop| Instant::ZERO + stop);
        let mut source = Cbr::source(to, rate as u64, payload as usize, start, stop);
        if cross.poisson {
            source = source.poisson(self.random("gaps", &cross.name));
        }
        if cross.delays {
            source = source.numbered();
        }
        let source = self.world.add(&format!("source of {}", cross.name), source, &[from]);
        let sink = self.world.add(&format!("sink of {}", cross.name), Cbr::sink(), &[to]);
        Ok(CrossActor { source, sink, way })
    }
}

/// Returns the configuration of a session with these options.
fn config(options: &SessionOptions) -> Config {
    Config {
        pnack: if options.pnack_first_gap { Pnack::FirstGap } else { Pnack::default() },
        ack_way: if options.ack_direct { AckPathRule::Direct } else { AckPathRule::default() },
        tau: options.tau.map_or(Tau::default(), |tau| Tau::Direct(libm::round(tau * 100.0) as u32)),
        max_datagram: options.datagram.unwrap_or(BASE_DATAGRAM),
        ..Config::default()
    }
}
