//! Both hosts of an exchange in a world: how their processes start, what happens to them, and what
//! they say of the transfer.

use super::caller::{Caller, CallerTask};
use super::disk::SharedState;
use super::host::{ExchangeHost, HostSetup};
use super::relay_ticket::RelayTicket;
use crate::record::TransferRecord;
use crate::setup::{ClockSetup, EndChange, EndChoice, ExchangeOptions};
use crate::world::gateways::GatewayPair;
use crate::world::transfer_sample::{PathSample, TransferProbe, TransferSample, glance};
use byway_engine::Config;
use byway_engine::connection::path::PathState;
use byway_engine::handshake::Identity;
use byway_sim::tcp::{FrameBytes, ServerConfig, TcpCarried, TcpConfig, tcp_address};
use byway_sim::{Clock, Handle, Random, World};
use byway_wire::packet::BASE_DATAGRAM;
use byway_wire::relay::Word;
use byway_wire::{Duration, Instant, Local};
use core::net::SocketAddr;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Payload of a TCP segment in bytes: as much as fits where an IP packet has the least size that
/// IPv6 guarantees, 1280 bytes, less 60 for headers and options.
const HOST_MSS: u32 = 1_220;
/// Number of ports that a NAT gives one socket, one after the other.
const NAT_PORTS: u16 = 1_000;
/// Time after which a NAT forgets to whom a socket sent. RFC 4787, requirement 5: two minutes.
const NAT_LIFETIME: Duration = Duration::from_secs(120);

/// The addresses and names of the hosts of an exchange.
pub(in crate::world) struct ExchangeSites<'a> {
    /// The transfer's name.
    pub(in crate::world) name: &'a str,
    pub(in crate::world) options: &'a ExchangeOptions,
    /// The addresses of the sender. Its first socket moves to `sender_elsewhere`.
    pub(in crate::world) sender: Vec<SocketAddr>,
    pub(in crate::world) sender_elsewhere: SocketAddr,
    pub(in crate::world) receiver: SocketAddr,
    /// The index of each route, by the first address to which its packets are sent.
    pub(in crate::world) firsts: BTreeMap<SocketAddr, usize>,
    /// Relays through which the receiver is reached when there is no direct route.
    pub(in crate::world) standing: Vec<Word>,
    /// The bytes of all TCP connections of the world.
    pub(in crate::world) bytes: FrameBytes,
}

/// A host's place, where processes come and go.
struct HostSeat {
    setup: HostSetup,
    task: Option<CallerTask>,
    sockets: Vec<SocketAddr>,
    elsewhere: Option<SocketAddr>,
    bytes: FrameBytes,
    random: Random,
    /// Number of processes that the host has had.
    processes: Cell<u32>,
    reads: Cell<bool>,
    /// Number of ports that a NAT gave the first socket. `moved`: whether its address changed.
    ports: Cell<u16>,
    moved: Cell<bool>,
}

impl HostSeat {
    /// A new process of this host.
    fn process(&self) -> TcpCarried<ExchangeHost> {
        let number = self.processes.get();
        self.processes.set(number + 1);
        let mut random = Random::component(self.random.clone().next_u64(), &format!("process {number}"));
        let is_over = self.setup.state().is_stopped();
        let tcp = self.setup.options().tcp;
        let caller = self.task.as_ref().map(|task| Caller::new(task, tcp, is_over));
        let host = ExchangeHost::new(&self.setup, caller, self.reads.get(), &mut random);
        let options = TcpConfig { no_delay: true, mss: HOST_MSS, ..TcpConfig::linux() };
        let serve = ServerConfig { options, ..ServerConfig::default() };
        let sockets = u16::try_from(self.sockets.len()).unwrap_or(1);
        let mut carried = TcpCarried::new(host, sockets, &self.bytes, random.next_u64(), serve);
        carried.refuse(!tcp);
        carried
    }

    /// The address of the first socket now.
    fn first(&self) -> Option<SocketAddr> {
        let home = self.elsewhere.filter(|_| self.moved.get()).or(self.sockets.first().copied())?;
        Some(SocketAddr::new(home.ip(), home.port() + self.ports.get()))
    }
}

/// See the module.
#[derive(Clone)]
pub(in crate::world) struct ExchangeHosts {
    sender: Handle<TcpCarried<ExchangeHost>>,
    receiver: Handle<TcpCarried<ExchangeHost>>,
    seats: Rc<[HostSeat; 2]>,
    firsts: BTreeMap<SocketAddr, usize>,
}

impl core::fmt::Debug for ExchangeHosts {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.debug_struct("ExchangeHosts").field("firsts", &self.firsts).finish_non_exhaustive()
    }
}

impl ExchangeHosts {
    /// Puts both hosts into the world. `task` makes the sender's task from the receiver's key and
    /// the ticket.
    pub(in crate::world) fn add(
        world: &mut World,
        sites: ExchangeSites<'_>,
        mut random: Random,
        task: impl FnOnce(byway_engine::handshake::PublicKey, RelayTicket, Clock) -> CallerTask,
    ) -> Self {
        let options = Rc::new(sites.options.clone());
        let state = SharedState::new(&options);
        let ticket = RelayTicket::default();
        let mut config =
            Config { max_datagram: options.datagram.unwrap_or(BASE_DATAGRAM), ..Config::default() };
        let sending = Config { path_rule: options.path_rule, ..config.clone() };
        if let Some(memory) = options.memory {
            config.incoming.memory = usize::try_from(memory).unwrap_or(usize::MAX);
        }
        let (mut sender_secret, mut receiver_secret) = ([0; 32], [0; 32]);
        random.fill(&mut sender_secret);
        random.fill(&mut receiver_secret);
        let key = Identity::from_secret(receiver_secret).public();
        let (sender_clock, receiver_clock) = (clock(&options.sender_clock), clock(&options.receiver_clock));
        let mut seat = |side, secret, config, standing, task, sockets, elsewhere| HostSeat {
            setup: HostSetup::new(
                Rc::clone(&options),
                state.clone(),
                side,
                secret,
                config,
                standing,
                ticket.clone(),
            ),
            task,
            sockets,
            elsewhere,
            bytes: sites.bytes.clone(),
            random: Random::new(random.next_u64()),
            processes: Cell::new(0),
            reads: Cell::new(true),
            ports: Cell::new(0),
            moved: Cell::new(false),
        };
        let task = task(key, ticket.clone(), sender_clock.clone());
        let receiver = seat(
            EndChoice::Receiver,
            receiver_secret,
            config,
            sites.standing,
            None,
            vec![sites.receiver],
            None,
        );
        let sender = seat(
            EndChoice::Sender,
            sender_secret,
            sending,
            Vec::new(),
            Some(task),
            sites.sender,
            Some(sites.sender_elsewhere),
        );
        let mut add = |name: String, seat: &HostSeat, clock: Clock| {
            let addresses = TcpCarried::<ExchangeHost>::addresses(&seat.sockets);
            let handle = world.add(&name, seat.process(), &addresses);
            world.set_clock(handle, clock);
            handle
        };
        let receiver_handle = add(format!("receiver of {}", sites.name), &receiver, receiver_clock);
        let sender_handle = add(format!("sender of {}", sites.name), &sender, sender_clock);
        Self {
            sender: sender_handle,
            receiver: receiver_handle,
            seats: Rc::new([sender, receiver]),
            firsts: sites.firsts,
        }
    }

    fn state(&self) -> &SharedState {
        self.seats[0].setup.state()
    }

    /// Lets something happen to an end.
    pub(in crate::world) fn change(&self, world: &mut World, end: EndChoice, what: EndChange) {
        let (handle, seat) = match end {
            EndChoice::Sender => (self.sender, &self.seats[0]),
            EndChoice::Receiver => (self.receiver, &self.seats[1]),
        };
        match what {
            EndChange::Restart => drop(world.restart(handle, seat.process())),
            EndChange::Freeze(frozen) => world.freeze(handle, frozen),
            EndChange::Socket { number, up } if usize::from(number) < seat.sockets.len() => {
                world.set_up(handle, Local(number), up);
            }
            EndChange::Socket { .. } => {}
            EndChange::Rebind => {
                seat.ports.set((seat.ports.get() + 1) % NAT_PORTS);
                if let Some(address) = seat.first() {
                    world.rebind(handle, Local(0), address);
                }
            }
            EndChange::NatFilter(filters) => {
                world.set_nat_filter(handle, Local(0), filters.then_some(NAT_LIFETIME));
            }
            EndChange::Move if seat.elsewhere.is_some() => {
                seat.moved.set(!seat.moved.get());
                if let Some(address) = seat.first() {
                    world.move_local(handle, Local(0), address);
                    let tcp = Local(seat.sockets.len() as u16);
                    world.move_local(handle, tcp, tcp_address(address));
                }
            }
            EndChange::Move => {}
            EndChange::Reads(reads) => {
                seat.reads.set(reads);
                world.act(handle, |host, _| host.node_mut().set_reads(reads));
            }
            EndChange::Reset => world.act(handle, |host, now| {
                let all: Vec<Local> = host.connections().map(|(local, _)| local).collect();
                all.into_iter().for_each(|local| host.reset(now, local));
            }),
        }
    }
}

/// The clock of a host.
fn clock(setup: &ClockSetup) -> Clock {
    let clock = Clock::new().with_offset(setup.ahead).with_drift_ppm(setup.drift_ppm);
    match setup.step {
        Some((at, by)) => clock.with_step(Instant::ZERO + at, by),
        None => clock,
    }
}

impl TransferProbe for ExchangeHosts {
    fn look(&self, world: &World, _gateways: &[GatewayPair]) -> TransferSample {
        let received = self.state().received(self.seats[0].setup.options());
        let status = world[self.sender].node().session().map(|session| session.status());
        let mut paths = Vec::new();
        for path in status.into_iter().flat_map(|status| status.paths) {
            let totals = path.totals;
            let is_sound = totals.acked + totals.lost <= totals.packets
                && totals.acked_bytes + totals.lost_bytes <= totals.bytes
                && path.in_flight <= totals.bytes;
            if !is_sound {
                self.state()
                    .blame(format!("path {} counts {totals:?}, {} in flight", path.id.0, path.in_flight));
            }
            if path.route.local.is_connection() && totals.acked_bytes > 0 {
                self.state().note(|notes| notes.over_tcp = true);
            }
            let Some(way) = self.firsts.get(&path.route.remote).copied() else { continue };
            paths.push(PathSample {
                path: path.id,
                way,
                bytes: totals.acked_bytes,
                lost: totals.lost,
                usable: path.state != PathState::Probing,
                send_state: glance(path.state, path.window, path.datagram, path.srtt),
            });
        }
        TransferSample { received, paths, ..TransferSample::default() }
    }

    fn is_over(&self, _: &World) -> bool {
        self.state().is_stopped()
    }

    fn finish(&self, world: &World, record: &mut TransferRecord) {
        record.finished = self.state().finished().map(Instant::as_secs_f64);
        record.exchange = Some(self.state().notes());
        record.order_waits = world[self.receiver].node().order_waits();
    }
}
