//! The status of a gateway's peers.

use super::carried_flow::CarriedFlows;
use super::index_vec::PeerIdx;
use super::peer::Peer;
use super::status::{BundleStatus, PathStatus, PeerState, PeerStatus};
use super::tunnel_sessions::Tunnel;
use super::tunnels::PeerSessions;
use alloc::vec::Vec;
use byway_engine::Connection;

/// The status of each peer.
pub(super) fn peers(links: &PeerSessions, flows: &CarriedFlows) -> Vec<PeerStatus> {
    let peer = |(index, peer): (PeerIdx, &Peer)| {
        let site = &links.tunnels[peer.site];
        let tunnels =
            || links.tunnels.iter().map(|(_, tunnel)| tunnel).filter(move |tunnel| tunnel.peer == index);
        PeerStatus {
            name: peer.config.name.clone(),
            up: connection(links, site).is_some(),
            trouble: peer.trouble.clone(),
            paths: paths(links, site),
            bundles: tunnels().filter_map(|tunnel| own_bundle(links, tunnel, flows)).collect(),
            flows: flows.iter().filter(|flow| flow.data.peer == index).count(),
            flow_limit: site.way.flow_limit,
            waiting: tunnels().map(|tunnel| tunnel.entry.bytes()).sum(),
            entry: tunnels().map(|tunnel| tunnel.entry.counters()).sum(),
            reorder_wait: site.way.reorder_wait,
            carried: peer.carried,
            carried_bytes: peer.carried_bytes,
            serves: links.directory.served_by(index).cloned().collect(),
            refused: peer.refused,
            relays: links.detours.has_heard(index),
        }
    };
    links.peers.iter().map(peer).collect()
}

/// The state of each peer: up or not.
pub(super) fn states(links: &PeerSessions) -> Vec<PeerState> {
    let state = |(_, peer): (PeerIdx, &Peer)| PeerState {
        name: peer.config.name.clone(),
        up: links.tunnels[peer.site].session().is_some(),
        trouble: peer.trouble.clone(),
    };
    links.peers.iter().map(state).collect()
}

fn connection<'a>(links: &'a PeerSessions, tunnel: &Tunnel) -> Option<&'a Connection> {
    tunnel.session().and_then(|session| links.endpoint.connection(session))
}

fn paths(links: &PeerSessions, tunnel: &Tunnel) -> Vec<PathStatus> {
    connection(links, tunnel).map(|connection| connection.status().paths).unwrap_or_default()
}

/// The bundle of a single flow that is known.
fn own_bundle(links: &PeerSessions, tunnel: &Tunnel, flows: &CarriedFlows) -> Option<BundleStatus> {
    let key = flows.get(tunnel.dedicated?.flow?)?.key;
    Some(BundleStatus { key, paths: paths(links, tunnel) })
}
