//! Estimates the memory of a world before it runs.

use super::actors::Actors;
use super::layout::Layout;
use super::run_error::RunError;
use super::transfers::TransferHosts;
use super::{network, recorder};
use crate::setup::{Carrier, Setup};
use byway_engine::data::IncomingLimits;
use byway_registry::registry_client::MAX_ASKED_RELAYS;
use byway_sim::World;
use byway_sim::topology::{Direction, Graph, MEMORY_PER_PACKET, Traffic};
use byway_wire::time::nanos;

/// Bytes of a packet on the wire.
const PACKET_BYTES: u64 = 1_500;
/// Bytes of a packet whose payload is only a length.
const HEADER_BYTES: u64 = 128;
/// Bytes that a session keeps beside packets.
const SESSION_BYTES: u64 = 2 << 20;
/// Bytes that a TCP connection keeps beside packets.
const CONNECTION_BYTES: u64 = 64 << 10;
/// Bytes that a relay keeps beside packets.
const RELAY_BYTES: u64 = 128 << 10;
/// Open requests of clients that ask without waiting for answers, at most.
const OPEN_REQUESTS: u64 = 1_000;
/// Bytes of a way's sample.
const WAY_SAMPLE_BYTES: u64 = 8 + 4 + 4 + 4 + 1;
/// Bytes of a transfer's sample.
const TRANSFER_SAMPLE_BYTES: u64 = 8;
/// Bytes of a link's sample.
const LINK_SAMPLE_BYTES: u64 = 8 + 4 + 4;

/// Returns an upper bound of the memory in bytes for running a variant: packets in flight, the
/// state that hosts keep of them, and the recorded samples.
///
/// # Errors
/// [`RunError`]: what in the plan is wrong.
pub fn memory_bound(setup: &Setup) -> Result<u64, RunError> {
    let graph = network::graph(setup, 0)?;
    let mut layout = Layout::new(&graph);
    let actors = Actors::new(setup, 0, &mut layout, &mut World::new(0))?;
    Ok(estimate(setup, &graph, &actors, &layout))
}

pub(super) fn estimate(setup: &Setup, graph: &Graph, actors: &Actors, layout: &Layout<'_>) -> u64 {
    let real = |carrier: &Carrier| match carrier {
        Carrier::Session(options) => options.real_bytes,
        // What they carry are whole packets.
        Carrier::Gateways(..) | Carrier::Exchange(_) => true,
        Carrier::Tcp(_) | Carrier::TcpRelays(_) => false,
    };
    let carried = if setup.transfers.iter().any(|transfer| real(&transfer.carrier)) {
        PACKET_BYTES
    } else {
        HEADER_BYTES
    };
    let under_way = in_links(graph, layout).min(in_windows(setup, graph, actors));
    // What is under way is remembered by its sender too.
    let packets = under_way.saturating_mul(carried + 2 * MEMORY_PER_PACKET);
    let samples = nanos(setup.duration) / nanos(setup.sample).max(1) + 2;
    let hosts = actors.transfers.iter().map(|moving| {
        let listed =
            if moving.placed.asks() { actors.relays.enrolled().len().min(MAX_ASKED_RELAYS) } else { 0 };
        let ways = (moving.ways.len() + listed) as u64;
        let host = match moving.ends {
            TransferHosts::Session(_) | TransferHosts::Exchange(_) => SESSION_BYTES + ways * CONNECTION_BYTES,
            TransferHosts::Tcp(_) => ways * CONNECTION_BYTES,
            TransferHosts::Relayed(_) => 3 * ways * CONNECTION_BYTES,
            TransferHosts::Behind(_) => 2 * SESSION_BYTES + ways * CONNECTION_BYTES,
        };
        host + samples * (TRANSFER_SAMPLE_BYTES + ways * WAY_SAMPLE_BYTES)
    });
    let clients =
        actors.requests.iter().map(|asking| asking.most.map_or(OPEN_REQUESTS, u64::from) * CONNECTION_BYTES);
    let links = recorder::watched(graph, actors, layout).len() as u64 * samples * LINK_SAMPLE_BYTES;
    let relays = actors.relays.count() as u64 * RELAY_BYTES;
    hosts.chain(clients).chain([links, relays]).fold(packets, u64::saturating_add)
}

/// The packets that fit into the links: full queues and full lines.
fn in_links(graph: &Graph, layout: &Layout<'_>) -> u64 {
    let traffic = Traffic { flows: 1, window: u64::MAX, packet: PACKET_BYTES as u32 };
    graph.memory_bound(layout.used().iter().copied(), traffic) / (PACKET_BYTES + MEMORY_PER_PACKET)
}

/// Returns the packets that hosts send before ACKs or losses stop them: twice the capacity of a
/// route and of the queues before its slowest links.
fn in_windows(setup: &Setup, graph: &Graph, actors: &Actors) -> u64 {
    let moving = setup.transfers.iter().zip(&actors.transfers).map(|(transfer, moving)| {
        let most = match &transfer.carrier {
            Carrier::Session(_) | Carrier::Exchange(_) => Some(IncomingLimits::default().memory as u64),
            Carrier::Tcp(tcp) | Carrier::TcpRelays(tcp) | Carrier::Gateways(tcp, _) => tcp.receive_window,
        };
        let most = most.map_or(u64::MAX, |bytes| bytes / PACKET_BYTES + 1);
        if moving.placed.asks() {
            return most;
        }
        moving.ways.iter().map(|way| fills(graph, way).min(most)).fold(0, u64::saturating_add)
    });
    let asking = actors.requests.iter().map(|asking| fills(graph, &asking.way));
    let cross = actors.cross.iter().map(|crossing| fills(graph, &crossing.way));
    moving.chain(asking).chain(cross).fold(0, u64::saturating_add).saturating_mul(2)
}

/// Returns the packets that fill a route: those in flight during a round trip, and those in the
/// queues before its slowest links.
fn fills(graph: &Graph, way: &[Direction]) -> u64 {
    let back: Vec<Direction> = way.iter().map(|link| link.reversed()).collect();
    let Some(rate) = graph.bottleneck(way) else { return u64::MAX };
    let bits = u128::from(rate) * u128::from(nanos(graph.base_rtt(way, &back))) / 1_000_000_000;
    let flying = u64::try_from(bits / 8).unwrap_or(u64::MAX) / PACKET_BYTES + 1;
    let waiting = way.iter().map(|link| graph.config(*link)).filter(|pipe| pipe.rate == Some(rate));
    let waiting = waiting.map(|pipe| (pipe.queue_packets as u64).min(pipe.queue_bytes / PACKET_BYTES) + 1);
    waiting.fold(flying, u64::saturating_add)
}
