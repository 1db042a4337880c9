//! The status of a gateway, for people and programs.

use super::config::Settings;
use super::rule_counters::{FlowStatus, RuleCount};
use crate::bypass::BypassCounters;
use crate::cache;
use crate::counters::counters;
use crate::entry;
use crate::flow_table;
use crate::key::FlowKey;
use crate::loss::DetectionDelays;
use crate::reorder::WaitStats;
use crate::rules::Action;
use crate::serves::Served;
use alloc::string::String;
use alloc::vec::Vec;
use byway_engine::connection::status::PathStatus as SessionPath;
use byway_wire::Duration;

counters! {
    /// Flows that the rules call background and a peer serves.
    flows,
    /// Background flows that were left alone, because there was no session, or the gateway only
    /// observes.
    flows_left,
    /// TCP packets that went by the plain route.
    passed,
    /// TCP packets that went by the plain route because their flow's SYN was not seen.
    mid_life,
    /// TCP packets by the plain route for which the flow table had no room.
    full,
    /// Packets of carried flows that went by the plain route, since there was no session.
    failed_open,
    /// Packets dropped because there was no session, of flows that the gateway carries, or would
    /// carry with one.
    held,
    /// Packets too large for every path. They took the plain route, or their hosts were told to
    /// send smaller ones.
    too_large,
    /// SYNs whose maximum segment size was lowered.
    clamped,
    /// ACKs whose window was lowered.
    rewritten,
    /// Packets of peers handed to hosts.
    delivered,
    /// Bytes of the packets of peers that were handed to hosts.
    delivered_bytes,
    /// Dropped packets of peers, from a host that the peer may not announce, or to one that is not
    /// served here.
    forbidden,
    /// Dropped datagrams of peers that were malformed.
    malformed,
    /// Packets that the hosts' side took too late, dropped.
    overrun,
    /// Times that the last session with a peer was lost.
    lost_sessions,
    /// Sessions of single flows that began, opened here or by peers.
    bundles,
    /// Sessions of single flows that were opened here, and failed while their flow needed them.
    lost_bundles,
    /// Packets that were found lost between the gateways. Counted only with the loss rules of the
    /// papers Harp and HIR, or with a cache of sent packets. In other cases only the session knows
    /// the losses.
    lost,
    /// Packets held for lost that arrived after all.
    spurious,
    /// Losses that the gateway reported to the controller: one per path and epoch.
    penalties,
    /// Hosts that asked to be served, and are.
    guests,
    /// Hosts that asked to be served and were refused, for whatever reason.
    refused_guests,
    /// Hosts that were refused because they asked for an address from which they do not send.
    foreign_guests,
    /// Hosts that are no longer served, because they were silent or came from another address.
    expired_guests,
    /// Parts of announcements that were passed on to other peers.
    passed_on,
    /// Dropped parts of announcements of gateways that the file does not name.
    unknown_origins,
}

/// A path to a peer.
pub type PathStatus = SessionPath;

/// The state of a peer: up or not, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerState {
    /// The peer's name, for people.
    pub name: String,
    /// Whether a session with the peer is open.
    pub up: bool,
    /// Why no session is open, or why there was none until a moment ago. `None`: no trouble is
    /// known.
    pub trouble: Option<String>,
}

/// The status of a peer.
#[derive(Clone, Debug)]
pub struct PeerStatus {
    /// The peer's name, for people.
    pub name: String,
    /// Whether a session with the peer is open.
    pub up: bool,
    /// Why no session is open, or why there was none until a moment ago. `None`: no trouble is
    /// known.
    pub trouble: Option<String>,
    /// The paths to the peer in the session for all flows.
    pub paths: Vec<PathStatus>,
    /// The bundles of single flows.
    pub bundles: Vec<BundleStatus>,
    /// Flows that are carried to or from the peer.
    pub flows: usize,
    /// Bytes that each flow in the session for all flows may have in flight. `u64::MAX`: no limit.
    pub flow_limit: u64,
    /// Bytes of all bundles that wait for paths to the peer.
    pub waiting: usize,
    /// The counts of the queue for the peer's paths.
    pub entry: entry::Counters,
    /// The time that a packet from the peer may wait in a reorder queue at present.
    pub reorder_wait: Duration,
    /// Packets that were to be carried to the peer.
    pub carried: u64,
    /// Bytes of the packets that were to be carried to the peer.
    pub carried_bytes: u64,
    /// The networks of hosts that the peer serves.
    pub serves: Vec<Served>,
    /// Prefixes that the peer announces, but may not speak for.
    pub refused: usize,
    /// Whether the peer offers a relay beside it.
    pub relays: bool,
}

/// A host that asked to be served.
#[derive(Clone, Debug)]
pub struct GuestStatus {
    /// The guest's name, for people.
    pub name: String,
    /// The address and ports of the guest.
    pub served: Served,
    /// Whether a session with the guest is open. Without one, it is served for a while.
    pub up: bool,
}

/// The status of a bundle of paths for one flow.
#[derive(Clone, Debug)]
pub struct BundleStatus {
    /// The key of the flow in the direction of its opening.
    pub key: FlowKey,
    /// The paths of the bundle. Empty while it is being dialled.
    pub paths: Vec<PathStatus>,
}

/// A rule with its counts.
#[derive(Clone, Debug)]
pub struct RuleStatus {
    /// The rule's name, for people.
    pub name: Option<String>,
    /// The action on matching flows.
    pub action: Action,
    /// The counts of the rule.
    pub tally: RuleCount,
}

/// The status of a gateway.
#[derive(Clone, Debug)]
pub struct Status {
    /// The settings of the gateway.
    pub settings: Settings,
    /// Peers, in the order of the configuration.
    pub peers: Vec<PeerStatus>,
    /// Hosts that asked to be served, and are.
    pub guests: Vec<GuestStatus>,
    /// Flows in the table.
    pub flows: usize,
    /// The counts of the flow table.
    pub table: flow_table::FlowCounters,
    /// The counts of the gateway.
    pub counters: Counters,
    /// The counts of each rule, in order.
    pub rules: Vec<RuleStatus>,
    /// The counts of flows that only the peers' rules carry.
    pub others: RuleCount,
    /// The largest flows that the gateway carries or, while it only observes, would carry.
    pub largest: Vec<FlowStatus>,
    /// Why packets were left to the plain route.
    pub passed: BypassCounters,
    /// The times that packets waited to be put in order.
    pub waits: WaitStats,
    /// Bytes that wait to be put in order.
    pub reordering: usize,
    /// The times from sending to detection of lost packets. Empty if the sessions find them.
    pub found: DetectionDelays,
    /// The counters of the cache, and the bytes in it. `None`: the cache is off.
    pub cache: Option<(cache::CacheCounters, usize)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up() {
        let part = Counters { flows: 1, overrun: 2, penalties: 3, ..Counters::default() };
        let sum: Counters = [part, Counters { flows: 4, ..Counters::default() }].into_iter().sum();
        assert_eq!(sum, Counters { flows: 5, overrun: 2, penalties: 3, ..Counters::default() });
    }
}
