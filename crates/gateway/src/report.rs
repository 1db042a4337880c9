//! The report of a gateway, as its socket and `byway gateway status --json` give it.

use crate::bypass::BypassReason;
use crate::gateway_options::{GATEWAY_OPTIONS, GatewayOption};
use crate::key::FlowKey;
use crate::machine::{
    BundleStatus, FlowStatus, GuestStatus, PathStatus, PeerStatus, RuleStatus, Settings, Status,
};
use crate::rules::Action;
use crate::serves::Served;
use alloc::borrow::ToOwned as _;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use byway_engine::connection::path::PathState;
use byway_engine::route::Via;
use core::net::SocketAddr;
use serde::{Deserialize, Serialize};

/// The status report of a gateway. Sizes are in bytes, and times in seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GatewayReport {
    /// Seconds since the gateway started.
    pub uptime: f64,
    /// Whether the gateway only observes.
    pub observing: bool,
    /// The options with their values, including defaults. Options that are off are left out.
    #[serde(default)]
    pub options: Vec<OptionReport>,
    /// The reports of the other gateways.
    pub peers: Vec<PeerReport>,
    /// Hosts that asked to be served, and are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub guests: Vec<GuestReport>,
    /// Flows that are carried now.
    pub flows: usize,
    /// The counts of each rule, in order. The last entry has no number: flows that only peers'
    /// rules carry.
    #[serde(default)]
    pub rules: Vec<RuleReport>,
    /// The largest flows that the gateway carries or, while it only observes, would carry.
    #[serde(default)]
    pub largest: Vec<FlowReport>,
    /// The counters by name, see [`machine::Counters`](crate::machine::Counters) and
    /// [`flow_table::FlowCounters`](crate::flow_table::FlowCounters).
    pub counters: BTreeMap<String, u64>,
    /// Why packets were left alone, by reason.
    pub passed: BTreeMap<String, u64>,
    /// Share of packets that waited less than 20 ms to be put in order.
    pub waited_under_20ms: f64,
    /// The share of packets that waited for an earlier one which never arrived.
    pub waited_in_vain: f64,
    /// The rule that finds losses.
    #[serde(default)]
    pub loss: String,
    /// For each of the newest losses, the seconds from sending the packet to finding the loss.
    /// Always empty with the loss rule `PathNumbers` and no retransmission cache. The connections
    /// to the peers then find the losses, and the gateway does not time them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub found_after: Vec<f64>,
    /// The cache of unacknowledged packets. `None`: it is off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheReport>,
    /// The report of the relay beside the gateway. `None`: no relay runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relay: Option<RelayReport>,
}

/// A host that asked to be served.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestReport {
    /// The name of the guest.
    pub name: String,
    /// The address of the guest.
    pub host: String,
    /// The ports of the guest. An empty list means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<String>,
    /// Whether a session with the guest is open. Without one, it is served for a minute more.
    pub up: bool,
}

/// The report of a relay beside a gateway. Bytes are those of datagrams.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RelayReport {
    /// The addresses and ports that the relay listens on.
    pub listen: Vec<String>,
    /// Bytes that the relay carried since its start.
    pub bytes: u64,
    /// Bytes that the relay carried today, over restarts.
    pub today_bytes: u64,
    /// Bytes that the relay carried in this month.
    pub month_bytes: u64,
}

/// The value of an option.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OptionReport {
    /// The name of the option.
    pub name: String,
    /// The value of the option, as written in the file.
    pub value: String,
    /// Whether the value is the default.
    pub usual: bool,
    /// The option's help text.
    pub help: String,
}

/// A rule: its flows so far, and their bytes in both directions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleReport {
    /// The number of the rule, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<usize>,
    /// The name of the rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// `background` or `pass`.
    pub action: String,
    /// Flows about which the rule decided.
    pub flows: u64,
    /// Bytes of the flows that the gateway carries or, while it only observes, would carry.
    pub bytes: u64,
}

/// A flow that the gateway carries or, while it only observes, would carry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowReport {
    /// Address and port of the host that opened the flow.
    pub from: String,
    /// Address and port to which the flow was opened.
    pub to: String,
    /// The number of the rule, from 1. `None`: the peer decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<usize>,
    /// The name of the gateway at the flow's other end.
    pub peer: String,
    /// Bytes from the host here.
    pub sent_bytes: u64,
    /// Bytes to the host here.
    pub received_bytes: u64,
}

/// The cache of unacknowledged packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheReport {
    /// Bytes kept now.
    pub bytes: usize,
    /// Packets that were not kept, because the cache was full.
    pub unkept: u64,
    /// Packets sent again.
    pub resent: u64,
    /// Duplicate ACKs kept from senders.
    pub suppressed: u64,
}

/// The report on a peer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PeerReport {
    /// The name of the peer.
    pub name: String,
    /// Whether a session with the peer is open.
    pub up: bool,
    /// Why no session is open, or why there was none until a moment ago. `None`: no trouble is
    /// known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// The paths to the peer in the session for all flows.
    pub paths: Vec<PathReport>,
    /// Flows with a bundle of paths of their own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bundles: Vec<BundleReport>,
    /// The number of flows to and from the peer.
    pub flows: usize,
    /// Bytes that wait for the paths to the peer.
    pub waiting: usize,
    /// Packets dropped since too many waited.
    pub dropped: u64,
    /// Bytes that each flow may have in flight. `None`: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow_limit: Option<u64>,
    /// Bytes that were to be carried to the peer.
    pub carried_bytes: u64,
    /// The networks of hosts that the peer serves.
    pub serves: Vec<String>,
    /// Prefixes that the peer announces, but may not speak for.
    #[serde(default)]
    pub refused: usize,
    /// Whether the peer offers a relay beside it.
    #[serde(default)]
    pub relays: bool,
}

/// A flow's own bundle of paths.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BundleReport {
    /// Address and port of the host that opened the flow.
    pub from: String,
    /// Address and port to which the flow was opened.
    pub to: String,
    /// The paths of the bundle. Empty while there is no session.
    pub paths: Vec<PathReport>,
}

/// A path to a gateway.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PathReport {
    /// Number of the path.
    pub path: u32,
    /// The path's remote address, or the relay through which it goes.
    pub route: String,
    /// `active`, `choked`, `available` or `probing`.
    pub state: String,
    /// Why the path carries no data. `None`: it carries data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The largest datagram in bytes (UDP payload) that the path is known to carry.
    #[serde(default)]
    pub datagram: u64,
    /// The congestion window in bytes.
    pub window: u64,
    /// Bytes in flight.
    pub in_flight: u64,
    /// Smoothed round trip in seconds. `None`: none was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub srtt: Option<f64>,
    /// The queueing delay on the path in seconds. `None`: no delay was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queueing: Option<f64>,
    /// The number of bytes sent.
    pub sent_bytes: u64,
    /// The number of packets lost.
    pub lost: u64,
}

impl GatewayReport {
    /// Makes the report of a gateway's status, `uptime` seconds after the gateway started.
    #[must_use]
    pub fn of(status: &Status, uptime: f64) -> Self {
        let table = [
            ("opened", status.table.taken),
            ("pushed_out", status.table.pushed_out),
            ("made_room", status.table.made_room),
            ("expired", status.table.expired),
        ];
        let counters = status.counters.each().chain(table);
        let reasons = BypassReason::ALL.into_iter().map(|reason| (reason, status.passed.of(reason)));
        Self {
            uptime,
            observing: status.settings.observe,
            options: options(&status.settings),
            peers: status.peers.iter().map(PeerReport::of).collect(),
            guests: status.guests.iter().map(GuestReport::of).collect(),
            flows: status.flows,
            rules: rules(status),
            largest: largest(status),
            counters: counters.map(|(name, count)| (name.to_owned(), count)).collect(),
            passed: reasons
                .filter(|(_, count)| *count > 0)
                .map(|(reason, count)| (reason.name().to_owned(), count))
                .collect(),
            waited_under_20ms: status.waits.share_within(20),
            waited_in_vain: status.waits.share_timed_out(),
            loss: status.settings.loss.name().to_owned(),
            found_after: status.found.after().map(|after| after.as_secs_f64()).collect(),
            cache: status.cache.map(|(counters, bytes)| CacheReport {
                bytes,
                unkept: counters.unkept,
                resent: counters.resent,
                suppressed: counters.suppressed,
            }),
            relay: None,
        }
    }
}

impl GuestReport {
    fn of(guest: &GuestStatus) -> Self {
        let Served { hosts, ports } = &guest.served;
        let ports = ports.iter().map(|ports| ports.to_string()).collect();
        Self { name: guest.name.clone(), host: hosts.to_string(), ports, up: guest.up }
    }
}

fn options(settings: &Settings) -> Vec<OptionReport> {
    let usual = Settings::default();
    let told = |option: &GatewayOption| {
        Some(OptionReport {
            name: option.name.to_owned(),
            value: option.get(settings)?.to_string(),
            usual: !option.differs(settings, &usual),
            help: option.explained(),
        })
    };
    GATEWAY_OPTIONS.iter().filter_map(told).collect()
}

fn rules(status: &Status) -> Vec<RuleReport> {
    let rule = |(place, rule): (usize, &RuleStatus)| RuleReport {
        rule: Some(place + 1),
        name: rule.name.clone(),
        action: match rule.action {
            Action::Background => "background".to_owned(),
            Action::Pass => "pass".to_owned(),
        },
        flows: rule.tally.flows,
        bytes: rule.tally.bytes,
    };
    let others = RuleReport {
        action: "background".to_owned(),
        flows: status.others.flows,
        bytes: status.others.bytes,
        ..RuleReport::default()
    };
    let others = Some(others).filter(|others| others.flows > 0);
    status.rules.iter().enumerate().map(rule).chain(others).collect()
}

fn largest(status: &Status) -> Vec<FlowReport> {
    let flow = |flow: &FlowStatus| {
        let [from, to] = ends(&flow.key);
        debug_assert!(flow.peer < status.peers.len(), "{flow:?}");
        FlowReport {
            from,
            to,
            rule: flow.rule.map(|rule| rule + 1),
            peer: status.peers.get(flow.peer).map(|peer| peer.name.clone()).unwrap_or_default(),
            sent_bytes: flow.sent,
            received_bytes: flow.received,
        }
    };
    status.largest.iter().map(flow).collect()
}

/// Returns the host that opened a flow, and the host to which the flow was opened.
fn ends(key: &FlowKey) -> [String; 2] {
    [(key.source, key.source_port), (key.destination, key.destination_port)]
        .map(|(address, port)| SocketAddr::new(address, port).to_string())
}

impl PeerReport {
    fn of(peer: &PeerStatus) -> Self {
        Self {
            name: peer.name.clone(),
            up: peer.up,
            trouble: peer.trouble.clone(),
            paths: peer.paths.iter().map(PathReport::of).collect(),
            bundles: peer.bundles.iter().map(BundleReport::of).collect(),
            flows: peer.flows,
            waiting: peer.waiting,
            dropped: peer.entry.dropped + peer.entry.dropped_of_flow,
            flow_limit: Some(peer.flow_limit).filter(|limit| *limit != u64::MAX),
            carried_bytes: peer.carried_bytes,
            serves: peer.serves.iter().map(|served| served.hosts.to_string()).collect(),
            refused: peer.refused,
            relays: peer.relays,
        }
    }
}

impl BundleReport {
    fn of(bundle: &BundleStatus) -> Self {
        let [from, to] = ends(&bundle.key);
        Self { from, to, paths: bundle.paths.iter().map(PathReport::of).collect() }
    }

    /// Whether the bundle's flow was opened to this port.
    #[must_use]
    pub fn is_to(&self, port: u16) -> bool {
        self.to.parse().is_ok_and(|to: SocketAddr| to.port() == port)
    }
}

impl PathReport {
    fn of(path: &PathStatus) -> Self {
        let (state, why) = match path.state {
            PathState::Probing => ("probing", Some("nothing sent on it was acknowledged yet")),
            PathState::Available => ("available", Some("it works, and is not needed")),
            PathState::Active if path.silent > 0 => ("active", Some("nothing comes back")),
            PathState::Active => ("active", None),
            PathState::Choked => {
                ("choked", Some("others need it: it delays packets, and its window fell below one"))
            }
        };
        let through = match &path.route.via {
            Via::Direct => "",
            _ => " (relay)",
        };
        Self {
            path: path.id.0,
            route: format!("{}{through}", path.route.remote),
            state: state.to_owned(),
            why: why.map(str::to_owned),
            datagram: path.datagram as u64,
            window: path.window,
            in_flight: path.in_flight,
            srtt: path.is_rtt_measured.then_some(path.srtt.as_secs_f64()),
            queueing: path.queueing.map(|queueing| queueing.as_secs_f64()),
            sent_bytes: path.totals.bytes,
            lost: path.totals.lost,
        }
    }
}
