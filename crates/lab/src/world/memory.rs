//! What a world may need, before it runs.

use super::actors::Actors;
use super::layout::Layout;
use super::transfers::TransferHosts;
use super::{RunError, network, recorder};
use crate::setup::{Carrier, Setup};
use byway_engine::data::IncomingLimits;
use byway_registry::registry_client::MAX_ASKED_RELAYS;
use byway_sim::World;
use byway_sim::topology::{Direction, Graph, MEMORY_PER_PACKET, Traffic};
use byway_wire::time::nanos;

/// Bytes on the wire of a packet, and those that it has where its payload is only a length.
const PACKET: u64 = 1_500;
const HEADERS: u64 = 128;
/// What a session, a TCP connection and a relay keep beside packets.
const SESSION: u64 = 2 << 20;
const CONNECTION: u64 = 64 << 10;
const RELAY: u64 = 128 << 10;
/// Clients that ask without waiting for answers may have so many requests open.
const OPEN_REQUESTS: u64 = 1_000;
/// Bytes of a sample: of a way, of a transfer, of a link.
const WAY_SAMPLE: u64 = 8 + 4 + 4 + 4 + 1;
const TRANSFER_SAMPLE: u64 = 8;
const LINK_SAMPLE: u64 = 8 + 4 + 4;

/// An upper bound of the bytes of memory that running a variant takes: packets in flight, what
/// hosts store of them, and the recorded samples.
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
    let carried =
        if setup.transfers.iter().any(|transfer| real(&transfer.carrier)) { PACKET } else { HEADERS };
    let under_way = in_links(graph, layout).min(in_windows(setup, graph, actors));
    // What is under way is remembered by its sender too.
    let packets = under_way.saturating_mul(carried + 2 * MEMORY_PER_PACKET);
    let samples = nanos(setup.duration) / nanos(setup.sample).max(1) + 2;
    let hosts = actors.transfers.iter().map(|moving| {
        let listed =
            if moving.placed.asks() { actors.relays.enrolled().len().min(MAX_ASKED_RELAYS) } else { 0 };
        let ways = (moving.ways.len() + listed) as u64;
        let host = match moving.ends {
            TransferHosts::Session(_) | TransferHosts::Exchange(_) => SESSION + ways * CONNECTION,
            TransferHosts::Tcp(_) => ways * CONNECTION,
            TransferHosts::Relayed(_) => 3 * ways * CONNECTION,
            TransferHosts::Behind(_) => 2 * SESSION + ways * CONNECTION,
        };
        host + samples * (TRANSFER_SAMPLE + ways * WAY_SAMPLE)
    });
    let clients =
        actors.requests.iter().map(|asking| asking.most.map_or(OPEN_REQUESTS, u64::from) * CONNECTION);
    let links = recorder::watched(graph, actors, layout).len() as u64 * samples * LINK_SAMPLE;
    let relays = actors.relays.count() as u64 * RELAY;
    hosts.chain(clients).chain([links, relays]).fold(packets, u64::saturating_add)
}

/// The packets that fit into the links: full queues and full lines.
fn in_links(graph: &Graph, layout: &Layout<'_>) -> u64 {
    let traffic = Traffic { flows: 1, window: u64::MAX, packet: PACKET as u32 };
    graph.memory_bound(layout.used().iter().copied(), traffic) / (PACKET + MEMORY_PER_PACKET)
}

/// The packets that hosts send before ACKs or losses stop them: twice what fills a way and the
/// queues before its slowest links.
fn in_windows(setup: &Setup, graph: &Graph, actors: &Actors) -> u64 {
    let moving = setup.transfers.iter().zip(&actors.transfers).map(|(transfer, moving)| {
        let most = match &transfer.carrier {
            Carrier::Session(_) | Carrier::Exchange(_) => Some(IncomingLimits::default().memory as u64),
            Carrier::Tcp(tcp) | Carrier::TcpRelays(tcp) | Carrier::Gateways(tcp, _) => tcp.receive_window,
        };
        let most = most.map_or(u64::MAX, |bytes| bytes / PACKET + 1);
        if moving.placed.asks() {
            return most;
        }
        moving.ways.iter().map(|way| fills(graph, way).min(most)).fold(0, u64::saturating_add)
    });
    let asking = actors.requests.iter().map(|asking| fills(graph, &asking.way));
    let cross = actors.cross.iter().map(|crossing| fills(graph, &crossing.way));
    moving.chain(asking).chain(cross).fold(0, u64::saturating_add).saturating_mul(2)
}

/// The packets that fill a way: those that propagate in a round trip, and those that wait before
/// its slowest links.
fn fills(graph: &Graph, way: &[Direction]) -> u64 {
    let back: Vec<Direction> = way.iter().map(|link| link.reversed()).collect();
    let Some(rate) = graph.bottleneck(way) else { return u64::MAX };
    let bits = u128::from(rate) * u128::from(nanos(graph.base_rtt(way, &back))) / 1_000_000_000;
    let flying = u64::try_from(bits / 8).unwrap_or(u64::MAX) / PACKET + 1;
    let waiting = way.iter().map(|link| graph.config(*link)).filter(|pipe| pipe.rate == Some(rate));
    let waiting = waiting.map(|pipe| (pipe.queue_packets as u64).min(pipe.queue_bytes / PACKET) + 1);
    waiting.fold(flying, u64::saturating_add)
}
