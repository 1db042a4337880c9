//! What a gateway is doing, for people and their programs.

use super::config::Settings;
use super::rule_counters::{FlowStatus, RuleCount};
use crate::bypass::BypassCounters;
use crate::cache;
use crate::counters::counters;
use crate::entry;
use crate::flow;
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
    /// TCP packets by the plain route whose flow was under way when it was first seen.
    mid_life,
    /// TCP packets by the plain route for which the flow table had no room.
    full,
    /// Packets of carried flows that went by the plain route, since there was no session.
    failed_open,
    /// Packets of flows that are carried, or would be, dropped since there was no session.
    held,
    /// Packets that no path could take: they went by the plain route, or their hosts were told to
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
    /// Packets of peers from or to hosts that they may not speak for, dropped.
    forbidden,
    /// Datagrams of peers that say nothing, dropped.
    malformed,
    /// Packets that the hosts' side took too late, dropped.
    overrun,
    /// Times that the last session with a peer was lost.
    lost_sessions,
    /// Sessions of single flows that began, opened here or by peers.
    bundles,
    /// Sessions of single flows that were opened here, and could not be made, or were lost while
    /// their flow needed them.
    lost_bundles,
    /// Packets that were found lost between the gateways. Counted only with the loss rules of the
    /// papers Harp and HIR, or with a cache of sent packets. In other cases only the session knows
    /// the losses.
    lost,
    /// Packets held for lost that arrived after all.
    spurious,
    /// Losses of which the controller was told from here: one per path and epoch.
    penalties,
    /// Hosts that asked to be served, and are.
    guests,
    /// Hosts that asked to be served and were refused, for whatever reason.
    refused_guests,
    /// Hosts refused because they asked for an address that is not their own.
    foreign_guests,
    /// Hosts that are not served any more, since nothing was heard of them, or they came from
    /// another address.
    expired_guests,
    /// Parts of what peers announced, passed on to others.
    passed_on,
    /// Parts of what gateways announced that the file does not name, dropped.
    unknown_origins,
}

/// A path to a peer.
pub type PathStatus = SessionPath;

/// Whether a peer is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerState {
    /// What people call it.
    pub name: String,
    /// Whether there is a session.
    pub up: bool,
    /// Why there is none, or was none until a moment ago.
    pub trouble: Option<String>,
}

/// What a gateway knows of a peer.
#[derive(Clone, Debug)]
pub struct PeerStatus {
    /// What people call it.
    pub name: String,
    /// Whether there is a session.
    pub up: bool,
    /// Why there is none, or was none until a moment ago.
    pub trouble: Option<String>,
    /// The paths to it of the session for all flows.
    pub paths: Vec<PathStatus>,
    /// The bundles of single flows.
    pub bundles: Vec<BundleStatus>,
    /// Flows that are carried to or from it.
    pub flows: usize,
    /// What each flow may have in flight that goes by the session for all, bytes; `u64::MAX`: there
    /// is no limit.
    pub flow_limit: u64,
    /// Bytes that wait for its paths, of all bundles.
    pub waiting: usize,
    /// What became of what waited.
    pub entry: entry::Counters,
    /// How long its packets would wait to be put in order now.
    pub reorder_wait: Duration,
    /// Packets that were to be carried to it.
    pub carried: u64,
    /// Bytes of the packets that were to be carried to it.
    pub carried_bytes: u64,
    /// The hosts that it serves.
    pub serves: Vec<Served>,
    /// Prefixes that it says it serves, and may not speak for.
    pub refused: usize,
    /// Whether a relay runs beside it that it lets us use.
    pub relays: bool,
}

/// A host that asked to be served.
#[derive(Clone, Debug)]
pub struct GuestStatus {
    /// What people call it.
    pub name: String,
    /// The address and ports of the guest.
    pub served: Served,
    /// Whether there is a session with it. Without one it is served for a while.
    pub up: bool,
}

/// A bundle of paths for one flow.
#[derive(Clone, Debug)]
pub struct BundleStatus {
    /// The flow, in the direction in which it was opened.
    pub key: FlowKey,
    /// The paths of the bundle. There are none yet while it is dialled.
    pub paths: Vec<PathStatus>,
}

/// What a rule did so far.
#[derive(Clone, Debug)]
pub struct RuleStatus {
    /// What people call it.
    pub name: Option<String>,
    /// What becomes of flows that match.
    pub action: Action,
    /// What it has decided.
    pub tally: RuleCount,
}

/// What a gateway is doing.
#[derive(Clone, Debug)]
pub struct Status {
    /// How it behaves.
    pub settings: Settings,
    /// Peers, in the order of the configuration.
    pub peers: Vec<PeerStatus>,
    /// Hosts that asked to be served, and are.
    pub guests: Vec<GuestStatus>,
    /// Flows in the table.
    pub flows: usize,
    /// What became of flows.
    pub table: flow::FlowCounters,
    /// What happened so far.
    pub counters: Counters,
    /// What the rules decided, in their order.
    pub rules: Vec<RuleStatus>,
    /// What peers carry that no rule here calls background.
    pub others: RuleCount,
    /// The largest flows that are carried, or would be.
    pub largest: Vec<FlowStatus>,
    /// Why packets were left to the plain route.
    pub passed: BypassCounters,
    /// How long packets waited to be put in order.
    pub waits: WaitStats,
    /// Bytes that wait to be put in order.
    pub reordering: usize,
    /// How long after they were sent packets were held for lost, if that is judged by the gateway
    /// and not left to its sessions.
    pub found: DetectionDelays,
    /// What the cache did, and the bytes that it holds, if there is one.
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
