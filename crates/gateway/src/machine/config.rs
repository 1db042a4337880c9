//! What a gateway is made with.

use crate::cache;
use crate::entry;
use crate::flow;
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

/// What a gateway is made with.
#[derive(Clone, Debug)]
pub struct MachineConfig {
    /// The key of this gateway.
    pub identity: Identity,
    /// Ciphers, as offered and as taken.
    pub suites: Suites,
    /// Fresh entropy, or a simulation's seed.
    pub seed: [u8; 32],
    /// What sessions are made with. Datagrams are taken whatever it says, and a silent peer is
    /// given up after [`Settings::dead_after`].
    pub connection: byway_engine::Config,
    /// The controller of each session.
    pub congestion: ControllerChoice,
    /// The gateways with which it has sessions.
    pub peers: Vec<PeerConfig>,
    /// The rules that say which flows are background.
    pub rules: Rules,
    /// Hosts behind this gateway.
    pub serves: Vec<Served>,
    /// The serial number of what is [served](crate::serves::AnnouncementPart::serial).
    pub serial: u32,
    /// Hosts that may ask to be served.
    pub guests: Vec<GuestConfig>,
    /// The settings of the gateway.
    pub settings: Settings,
}

/// A host that may ask to be served, at the address from which it comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestConfig {
    /// What people call it.
    pub name: String,
    /// The public key of the guest.
    pub key: PublicKey,
    /// Addresses at which it may be served; none: any.
    pub hosts: Vec<Prefix>,
    /// Ports at which it may be served; none: all.
    pub ports: Vec<Ports>,
}

/// Another gateway, as the file names it.
#[derive(Clone, Debug)]
pub struct PeerConfig {
    /// What people call it.
    pub name: String,
    /// The public key of the peer.
    pub key: PublicKey,
    /// Where it may be reached; none: it connects to us.
    pub addresses: Vec<SocketAddr>,
    /// Hosts for which it may speak: whom it may announce, and whose packets it may send.
    pub allowed: Vec<Prefix>,
    /// Relays to reach it through, each perhaps with what is known about how to.
    pub relays: Vec<(Word, Option<RelayRoute>)>,
}

/// What a bundle of paths is for. Who takes a flow in decides; both kinds are taken from any peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bundle {
    /// All flows between two sites, which share its windows (HIR).
    #[default]
    Site,
    /// One flow (Harp, section III). How bundles share a line is their controllers' doing.
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
    /// Changes nothing, and counts what would be carried.
    pub observe: bool,
    /// Packets of carried flows wait for the session rather than go by the plain route while it is
    /// down.
    pub fail_closed: bool,
    /// A peer of which nothing is heard for this long is dead.
    pub dead_after: Duration,
    /// The limits of the flow table.
    pub flows: flow::FlowTableLimits,
    /// What waits for the paths to one peer.
    pub entry: entry::EntryLimits,
    /// What waits to be put in order.
    pub exit: ExitLimits,
    /// How long that waits.
    pub timer: Timer,
    /// How paths are chosen.
    pub policy: Policy,
    /// Whether relays beside other gateways are used, of which these tell.
    pub detours: bool,
    /// Whether peers are told of each other.
    pub introduce: bool,
    /// How receive windows are rewritten; `None`: not at all.
    pub window: Option<WindowRule>,
    /// Bytes that flows may have in flight beyond the paths' congestion windows, in percent of
    /// these windows. At most half of `EntryLimits::flow_bytes`. They wait at the entry gateway and
    /// keep the windows full, because only full windows grow.
    pub headroom_percent: u32,
    /// The rule that finds what paths lose, and so tells the controller. With packet numbers of the
    /// paths, the session does it.
    pub loss: crate::loss::LossRuleKind,
    /// Packets are kept until they are acknowledged, and lost ones sent again from here; `None`:
    /// that is left to the hosts.
    pub cache: Option<cache::CacheLimits>,
    /// What a bundle of paths, with its controller, is for.
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
            flows: flow::FlowTableLimits::default(),
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
