//! The configuration of a gateway.

use crate::cache;
use crate::entry;
use crate::flow_table;
use crate::path_selection::Policy;
use crate::ports::Ports;
use crate::receive_window::WindowRule;
use crate::reorder::{ExitLimits, Timer};
use crate::rules::Rules;
use crate::serves::Served;
use alloc::string::String;
use alloc::vec::Vec;
use byway_control::ControllerChoice;
use byway_engine::endpoint::RelayRoute;
use byway_engine::handshake::{Identity, PublicKey};
use byway_engine::seal::Suites;
use byway_wire::relay::Word;
use byway_wire::{Duration, Prefix};
use core::net::SocketAddr;

/// The configuration of a gateway's machine.
#[derive(Clone, Debug)]
pub struct MachineConfig {
    /// The key pair of this gateway.
    pub identity: Identity,
    /// Ciphers, as offered and as taken.
    pub suites: Suites,
    /// Fresh entropy, or a simulation's seed.
    pub seed: [u8; 32],
    /// The settings of sessions. Datagrams are always enabled, and a silent peer is given up after
    /// [`Settings::dead_after`].
    pub connection: byway_engine::Config,
    /// The controller of each session.
    pub congestion: ControllerChoice,
    /// The gateways with which this one has sessions.
    pub peers: Vec<PeerConfig>,
    /// The rules that say which flows are background.
    pub rules: Rules,
    /// The networks of the hosts behind this gateway.
    pub serves: Vec<Served>,
    /// The serial number of the announcement of the
    /// [served](crate::serves::AnnouncementPart::serial) hosts.
    pub serial: u32,
    /// Hosts that may ask to be served.
    pub guests: Vec<GuestConfig>,
    /// The settings of the gateway.
    pub settings: Settings,
}

/// A host that may ask to be served, at the address from which it sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestConfig {
    /// The guest's name, for people.
    pub name: String,
    /// The public key of the guest.
    pub key: PublicKey,
    /// Networks in which the guest may be served. Empty: any address.
    pub hosts: Vec<Prefix>,
    /// Ports at which the guest may be served. Empty: all ports.
    pub ports: Vec<Ports>,
}

/// Another gateway, as the configuration file names it.
#[derive(Clone, Debug)]
pub struct PeerConfig {
    /// The peer's name, for people.
    pub name: String,
    /// The public key of the peer.
    pub key: PublicKey,
    /// The peer's addresses and ports. Empty: only the peer connects.
    pub addresses: Vec<SocketAddr>,
    /// Hosts that the peer may announce, and whose packets it may send.
    pub allowed: Vec<Prefix>,
    /// Relays that lead to the peer, each with its route if that is known.
    pub relays: Vec<(Word, Option<RelayRoute>)>,
}

/// The flows that a bundle of paths serves. The gateway that accepts a flow decides. Bundles of
/// both kinds are accepted from peers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bundle {
    /// One bundle serves all flows between two sites, which share its windows (HIR).
    #[default]
    Site,
    /// Each flow has its own bundle (Harp, section III). Their controllers share a line.
    Flow,
}

impl Bundle {
    /// Both kinds of bundles.
    pub const ALL: [Self; 2] = [Self::Site, Self::Flow];

    /// The name of the kind.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Site => "site",
            Self::Flow => "flow",
        }
    }
}

/// How a gateway behaves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Whether the gateway changes nothing, and only counts the flows that it would carry.
    pub observe: bool,
    /// Whether packets of carried flows wait while the session is down, instead of taking the plain
    /// route.
    pub fail_closed: bool,
    /// The silence after which a peer counts as dead.
    pub dead_after: Duration,
    /// The limits of the flow table.
    pub flows: flow_table::FlowTableLimits,
    /// The limits of the queue for the paths to one peer.
    pub entry: entry::EntryLimits,
    /// The limits of the reorder queues.
    pub exit: ExitLimits,
    /// The time that a packet may wait in a reorder queue.
    pub timer: Timer,
    /// How paths are chosen.
    pub policy: Policy,
    /// Whether relays that other gateways announce are used.
    pub detours: bool,
    /// Whether this gateway tells peers of each other.
    pub introduce: bool,
    /// How receive windows are rewritten; `None`: not at all.
    pub window: Option<WindowRule>,
    /// Bytes that flows may have in flight beyond the paths' congestion windows, in percent of
    /// these windows. At most half of `EntryLimits::flow_bytes`. They wait at the entry gateway and
    /// keep the windows full, because only full windows grow.
    pub headroom_percent: u32,
    /// The rule that finds lost packets and reports them to the controller. With path packet
    /// numbers, the session does so itself.
    pub loss: crate::loss::LossRuleKind,
    /// The cache that keeps packets until they are acknowledged, and sends lost ones again. `None`:
    /// hosts repeat their packets themselves.
    pub cache: Option<cache::CacheLimits>,
    /// The flows that a bundle of paths serves.
    pub bundle: Bundle,
    /// The most sessions for single flows that this gateway opens to one peer. All other flows
    /// share one session. Twice as many are accepted, because this gateway may learn of a closed
    /// session later than of the next one.
    pub bundles: usize,
    /// Packets that wait for the hosts' side at most.
    pub outbox: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            observe: false,
            fail_closed: false,
            dead_after: Duration::from_millis(2_500),
            flows: flow_table::FlowTableLimits::default(),
            entry: entry::EntryLimits::default(),
            exit: ExitLimits::default(),
            timer: Timer::default(),
            policy: Policy::default(),
            detours: true,
            introduce: true,
            window: Some(WindowRule::Delivered),
            // 50 is too little for a flow with its own session, because its host sends in bursts.
            headroom_percent: 100,
            loss: crate::loss::LossRuleKind::PathNumbers,
            cache: None,
            bundle: Bundle::Site,
            bundles: 256,
            outbox: 4_096,
        }
    }
}
