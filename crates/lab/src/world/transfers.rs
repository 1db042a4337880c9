//! The hosts that carry a transfer in a world, by kind of carrier, and their samples.

use super::exchange::ExchangeHosts;
use super::gateways::GatewayPair;
use super::session::{SessionReceiver, SessionSender};
use super::transfer_sample::{PathSample, SendState, TransferProbe, TransferSample, glance};
use super::wang::RelayedTcp;
use crate::record::TransferRecord;
use byway_engine::connection::path::PathState;
use byway_sim::tcp::{FlowId, SubflowState, TcpHost};
use byway_sim::{Handle, World};
use byway_wire::{Instant, PathId};
use core::net::{IpAddr, SocketAddr};
use std::collections::BTreeMap;
use std::rc::Rc;

/// The hosts of a transfer.
#[derive(Clone, Debug)]
pub(super) enum TransferHosts {
    /// The transfer is a session of byway.
    Session(SessionHosts),
    /// The transfer is a TCP connection.
    Tcp(Tcp),
    /// TCP to relays, and on from there.
    Relayed(RelayedTcp),
    /// TCP through a pair of gateways.
    Behind(GatewayedTcp),
    /// Sessions between hosts that live as hosts do.
    Exchange(ExchangeHosts),
}

impl TransferHosts {
    /// The transfer's carrier, as something that can be measured.
    pub(super) fn carrier(&self) -> &dyn TransferProbe {
        match self {
            Self::Session(session) => session,
            Self::Tcp(tcp) => tcp,
            Self::Relayed(hops) => hops,
            Self::Behind(behind) => behind,
            Self::Exchange(hosts) => hosts,
        }
    }
}

/// The hosts of a session of byway.
#[derive(Clone, Debug)]
pub(super) struct SessionHosts {
    pub(super) sender: Handle<SessionSender>,
    pub(super) receiver: Handle<SessionReceiver>,
    /// The index of each path, by the first address to which its packets are sent.
    firsts: BTreeMap<SocketAddr, usize>,
    /// For a transfer that asks the registry: the index of each relay of the registry, by the
    /// relay's address. Paths through these relays are numbered after the configured paths in
    /// `firsts`. So relay i has the path index `firsts.len() + i`.
    listed: Option<Rc<BTreeMap<SocketAddr, usize>>>,
}

impl SessionHosts {
    pub(super) const fn new(
        sender: Handle<SessionSender>,
        receiver: Handle<SessionReceiver>,
        firsts: BTreeMap<SocketAddr, usize>,
        listed: Option<Rc<BTreeMap<SocketAddr, usize>>>,
    ) -> Self {
        Self { sender, receiver, firsts, listed }
    }

    fn way(&self, first: &SocketAddr) -> Option<usize> {
        let listed = || Some(self.firsts.len() + self.listed.as_ref()?.get(first)?);
        self.firsts.get(first).copied().or_else(listed)
    }
}

/// TCP between two hosts.
#[derive(Clone, Debug)]
pub(super) struct Tcp {
    pub(super) sender: Handle<TcpHost>,
    pub(super) receiver: Handle<TcpHost>,
    pub(super) flow: FlowId,
    /// Bytes of a segment.
    pub(super) mss: u32,
}

/// TCP through a pair of gateways.
#[derive(Clone, Debug)]
pub(super) struct GatewayedTcp {
    pub(super) sender: Handle<TcpHost>,
    pub(super) receiver: Handle<TcpHost>,
    pub(super) flow: FlowId,
    /// The pair's number.
    pub(super) pair: usize,
    /// The address of the sender.
    pub(super) from: IpAddr,
}

/// Returns the bytes of a flow that have arrived at the receiver.
fn received(world: &World, sender: Handle<TcpHost>, receiver: Handle<TcpHost>, flow: FlowId) -> u64 {
    let received = world[sender].tag(flow).and_then(|tag| world[receiver].received(tag));
    received.map_or(0, |received| received.bytes)
}

/// When a flow's last byte was acknowledged, in seconds.
fn finished(world: &World, sender: Handle<TcpHost>, flow: FlowId) -> Option<f64> {
    world[sender].report(flow)?.finished.map(Instant::as_secs_f64)
}

/// Returns why a TCP flow will never end: all its connections were given up. `None`: it may still
/// end.
fn given_up(world: &World, sender: Handle<TcpHost>, flow: FlowId) -> Option<String> {
    let report = world[sender].report(flow)?;
    let mut states = report.subflows.iter().map(|path| path.state);
    let over = !report.subflows.is_empty() && states.all(|state| state == SubflowState::Closed);
    let failed = over && report.finished.is_none();
    failed.then(|| "TCP gave up: there were too many timeouts in a row".to_owned())
}

/// Whether a flow is done, or given up.
fn is_over(world: &World, sender: Handle<TcpHost>, flow: FlowId) -> bool {
    finished(world, sender, flow).is_some() || given_up(world, sender, flow).is_some()
}

impl TransferProbe for SessionHosts {
    fn look(&self, world: &World, _gateways: &[GatewayPair]) -> TransferSample {
        let sender = &world[self.sender];
        let (paths, over) = sender.paths();
        let seen = paths.into_iter().filter_map(|path| {
            Some(PathSample {
                path: path.id,
                way: self.way(&path.route.remote)?,
                bytes: path.totals.acked_bytes,
                lost: path.totals.lost,
                usable: path.state != PathState::Probing,
                send_state: glance(path.state, path.window, path.datagram, path.srtt).filter(|_| !over),
            })
        });
        let available = sender.available(world.now()).into_iter().filter_map(|relay| self.way(&relay));
        TransferSample {
            received: world[self.receiver].received,
            paths: seen.collect(),
            available: Some(available.collect()),
            together: Some(sender.acked),
        }
    }

    fn is_over(&self, world: &World) -> bool {
        world[self.sender].finished.is_some() || world[self.sender].failed.is_some()
    }

    fn finish(&self, world: &World, record: &mut TransferRecord) {
        let host = &world[self.sender];
        record.finished = host.finished.map(Instant::as_secs_f64);
        record.failed = host.failed.clone();
        record.reorder = world[self.receiver].reorder;
    }
}

impl TransferProbe for Tcp {
    fn look(&self, world: &World, _gateways: &[GatewayPair]) -> TransferSample {
        let report = world[self.sender].report(self.flow).unwrap_or_default();
        let seen = report.subflows.into_iter().enumerate().map(|(number, path)| {
            let usable = matches!(path.state, SubflowState::Active | SubflowState::Choked);
            PathSample {
                path: PathId(number as u32),
                way: path.place,
                bytes: path.acked,
                lost: path.losses,
                usable,
                send_state: usable.then(|| SendState {
                    window: path.window as f64 / f64::from(self.mss),
                    window_bytes: path.window,
                    rtt: path.srtt,
                    choked: path.state == SubflowState::Choked,
                }),
            }
        });
        TransferSample {
            // What went out twice, over two subflows, is one thing to the application.
            received: received(world, self.sender, self.receiver, self.flow).min(report.written),
            paths: seen.collect(),
            ..TransferSample::default()
        }
    }

    fn is_over(&self, world: &World) -> bool {
        is_over(world, self.sender, self.flow)
    }

    fn finish(&self, world: &World, record: &mut TransferRecord) {
        record.finished = finished(world, self.sender, self.flow);
        record.failed = given_up(world, self.sender, self.flow);
    }
}

impl TransferProbe for GatewayedTcp {
    fn look(&self, world: &World, gateways: &[GatewayPair]) -> TransferSample {
        let bytes = received(world, self.sender, self.receiver, self.flow);
        let pair = gateways.get(self.pair);
        let seen = pair.into_iter().flat_map(|pair| {
            pair.paths(world, self.from).into_iter().filter_map(|path| {
                Some(PathSample {
                    path: path.id,
                    way: *pair.firsts.get(&path.route.remote)?,
                    bytes: path.totals.acked_bytes,
                    lost: path.totals.lost,
                    usable: path.state != PathState::Probing,
                    send_state: glance(path.state, path.window, path.datagram, path.srtt),
                })
            })
        });
        // Its share of what the paths carry for all.
        TransferSample {
            received: bytes,
            paths: seen.collect(),
            together: Some(bytes),
            ..TransferSample::default()
        }
    }

    fn is_over(&self, world: &World) -> bool {
        is_over(world, self.sender, self.flow)
    }

    fn finish(&self, world: &World, record: &mut TransferRecord) {
        record.finished = finished(world, self.sender, self.flow);
        record.failed = given_up(world, self.sender, self.flow);
    }
}

impl TransferProbe for RelayedTcp {
    fn look(&self, world: &World, _gateways: &[GatewayPair]) -> TransferSample {
        let arrived = self.arrived(world);
        let received = arrived.iter().sum();
        let seen = self.flows.iter().zip(arrived).enumerate().filter_map(|(way, (flow, bytes))| {
            let report = world[self.sender].report(*flow).unwrap_or_default();
            let path = report.subflows.first()?;
            let usable = path.state == SubflowState::Active;
            Some(PathSample {
                path: PathId(way as u32),
                way,
                bytes,
                lost: path.losses,
                usable,
                send_state: usable.then(|| SendState {
                    window: path.window as f64 / f64::from(self.mss),
                    window_bytes: path.window,
                    rtt: path.srtt,
                    choked: false,
                }),
            })
        });
        TransferSample { received, paths: seen.collect(), ..TransferSample::default() }
    }

    /// Notes nothing, because the traffic has a rate, and no end.
    fn is_over(&self, world: &World) -> bool {
        self.flows.iter().all(|flow| is_over(world, self.sender, *flow))
    }

    fn finish(&self, _world: &World, _record: &mut TransferRecord) {}
}
