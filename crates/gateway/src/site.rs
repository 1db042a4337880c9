//! A gateway: an entry for what leaves its site and an exit for what comes, at once, with as many peers as there are.
//!
//! It is a [`Machine`]: its datagrams are those of the sessions with other gateways. IP packets of the hosts of its own site go in by
//! [`packet`](Gateway::packet), and what is for them comes out by [`next_packet`](Gateway::next_packet), also packets that are left to
//! the plain route. Whoever drives it does both before asking for datagrams to send.
//!
//! Fail-open: a flow is taken in only while there is a session with the gateway of its other end; when there is none any more, its
//! packets go by the plain route, unharmed.

mod carry;
mod config;
mod deliver;
mod holes;
mod judge;
mod mend;
mod own;
mod parcel;
mod peers;
mod places;
mod status;
mod tally;
mod tunnel;

pub use carry::Taken;
pub use config::{Bundle, Config, Peer, Settings};
pub use parcel::{HEADROOM, Parcel};
pub use status::{BundleStatus, Counters, PathStatus, PeerStatus, RuleStatus, Status};
pub use tally::{FlowStatus, Tally};

use crate::cache::Cache;
use crate::encap::Label;
use crate::flow::FlowTable;
use crate::loss::{Found, Rule};
use crate::pass::Passed;
use crate::reorder::Exit;
use crate::rules::Rules;
use crate::serves::{Directory, Served, announce};
use crate::{pick, window};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use byway_control::{Choice, ChoiceError, Sender, controller};
use byway_engine::connection::Event;
use byway_engine::{Connection, Endpoint, EndpointConfig, EndpointEvent, Handle};
use byway_wire::{Input, Instant, Machine, Out, Transmit};
use carry::Carriage;
use places::{PeerIdx, Places, TunnelIdx};

/// Buffers that are kept for packets to come.
const SPARE: usize = 256;

/// The name of one direction of a flow that comes in: the peer, and its label.
type Incoming = (PeerIdx, Label);

/// How a datagram came.
#[derive(Clone, Copy, Debug)]
struct By {
    peer: PeerIdx,
    tunnel: TunnelIdx,
}

/// A gateway.
pub struct Gateway {
    endpoint: Endpoint,
    settings: Settings,
    congestion: Choice,
    rules: Rules,
    serves: Vec<Served>,
    announcement: Vec<Vec<u8>>,
    peers: Places<PeerIdx, peers::Peer>,
    /// The ways to peers: one to each for all flows, and those of single flows.
    tunnels: Places<TunnelIdx, tunnel::Tunnel>,
    /// Which tunnel a session is of.
    sessions: BTreeMap<Handle, TunnelIdx>,
    /// Tunnels for whose paths something waits.
    waiting: Vec<TunnelIdx>,
    /// When the next peer is to be dialled, or told something, or a tunnel looked at.
    due: Option<Instant>,
    directory: Directory<PeerIdx>,
    flows: FlowTable<Carriage>,
    exit: Exit<Incoming, Parcel>,
    cache: Option<Cache<mend::Kept>>,
    out: VecDeque<Parcel>,
    passed: Passed,
    counters: Counters,
    tallies: tally::Tallies,
    found: Found,
    /// Flows that would be carried, where it only observes.
    watch: tally::Watch,
    spare: Vec<Vec<u8>>,
    dials: u64,
    /// Scratch space.
    views: Vec<pick::PathView>,
    lost: Vec<judge::Lost>,
    windows: Vec<window::PathWindow>,
    receivers: Vec<u64>,
}

/// Why a gateway cannot be made of its configuration.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Impossible {
    /// There is no such controller, or it has no such options.
    #[error(transparent)]
    Congestion(#[from] ChoiceError),
    /// What it serves cannot be announced.
    #[error("more hosts and ports are served than can be announced; use wider prefixes")]
    Serves,
}

impl Gateway {
    /// A gateway without sessions yet.
    ///
    /// # Errors
    /// See [`Impossible`].
    pub fn new(config: Config) -> Result<Self, Impossible> {
        controller(&config.congestion, Sender::Session, 0)?;
        let announcement = announce(config.serial, &config.serves).ok_or(Impossible::Serves)?;
        let Settings { dead_after, flows, exit, entry, loss, cache, .. } = config.settings;
        let watches = Self::watches(&config.settings);
        let connection = byway_engine::Config {
            idle_timeout: dead_after,
            datagrams: config.settings.outbox,
            datagram_fates: watches,
            owner_judges_losses: loss != Rule::PathNumbers,
            ..config.connection
        };
        let known = peers::Known {
            keys: config.peers.iter().map(|peer| peer.key).collect(),
            congestion: config.congestion.clone(),
        };
        let endpoint = Endpoint::new(EndpointConfig {
            identity: config.identity,
            suites: config.suites,
            seed: config.seed,
            connection,
            admission: Some(alloc::boxed::Box::new(known)),
            greeting: peers::FOR_SITE.to_vec(),
        });
        // A gateway that begins anew gives other labels than before it did.
        let first = Label::new(config.serial.wrapping_mul(0x9e37_79b1) >> 8);
        let judge = || watches.then(|| judge::Judge::new(loss));
        let (mut peers, mut tunnels) = (Places::new(), Places::new());
        for peer in config.peers {
            // Each has a tunnel for all flows.
            let site = tunnels.next();
            let index = peers.push(peers::Peer::new(peer, first, site));
            tunnels.push(tunnel::Tunnel::new(index, entry, judge()));
        }
        Ok(Self {
            endpoint,
            settings: config.settings,
            congestion: config.congestion,
            tallies: tally::Tallies::new(&config.rules),
            found: Found::new(),
            watch: tally::Watch::new(flows.flows),
            rules: config.rules,
            serves: config.serves,
            announcement,
            due: peers.iter().filter_map(|(_, peer)| peer.deadline()).min(),
            peers,
            tunnels,
            sessions: BTreeMap::new(),
            waiting: Vec::new(),
            directory: Directory::new(),
            flows: FlowTable::new(flows),
            exit: Exit::new(exit),
            cache: cache.map(Cache::new),
            out: VecDeque::new(),
            passed: Passed::default(),
            counters: Counters::default(),
            spare: Vec::new(),
            dials: 0,
            views: Vec::new(),
            lost: Vec::new(),
            windows: Vec::new(),
            receivers: Vec::new(),
        })
    }

    /// What its bundles of paths are for.
    #[must_use]
    pub const fn bundle(&self) -> Bundle {
        self.settings.bundle
    }

    /// The sessions, for relays at which this side [stands](Endpoint::stand_at).
    pub const fn endpoint(&mut self) -> &mut Endpoint {
        &mut self.endpoint
    }

    /// The next packet for the hosts' side: that of a flow from elsewhere, or one that is left to the plain route.
    pub fn next_packet(&mut self) -> Option<Parcel> {
        self.out.pop_front()
    }

    /// A buffer for a packet, perhaps one that was used before.
    pub fn buffer(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }

    /// Gives back the buffer of a packet.
    pub fn recycle(&mut self, buffer: Vec<u8>) {
        if self.spare.len() < SPARE {
            self.spare.push(buffer);
        }
    }

    /// Puts a packet out on the hosts' side. If they do not take what there is, the oldest goes, as on any link.
    fn put_out(&mut self, parcel: Parcel) {
        self.out.push_back(parcel);
        self.trim_out();
    }

    fn trim_out(&mut self) {
        while self.out.len() > self.settings.outbox.max(1)
            && let Some(oldest) = self.out.pop_front()
        {
            self.counters.overrun += 1;
            self.recycle(oldest.into_buffer());
        }
    }

    /// What sessions say: who came, who went.
    fn attend(&mut self, now: Instant) {
        while let Some(event) = self.endpoint.next_event() {
            match event {
                EndpointEvent::Connected(handle) | EndpointEvent::Accepted(handle) => {
                    self.on_session(now, handle);
                    self.note_due();
                }
                EndpointEvent::Failed(handle, error) => self.session_gone(now, handle, error.to_string()),
                EndpointEvent::Closed(handle) => {
                    let why = self.endpoint.connection_mut(handle).and_then(why_closed).unwrap_or_default();
                    self.session_gone(now, handle, why);
                    self.endpoint.forget(handle);
                }
                EndpointEvent::RelayTrouble(..)
                | EndpointEvent::Reachable { .. }
                | EndpointEvent::StandingTrouble(..) => {}
            }
        }
    }

    fn on_session(&mut self, now: Instant, handle: Handle) {
        if let Some(place) = self.sessions.get(&handle) {
            return self.begin_own(now, handle, *place);
        }
        let Some(connection) = self.endpoint.connection(handle) else { return };
        let (key, single) = (connection.peer(), connection.application() == peers::FOR_FLOW);
        let known = self.peers.iter().find(|(_, peer)| peer.config.key == key);
        let Some((index, _)) = known else { return self.endpoint.close(now, handle, 6, "not a peer") };
        if single {
            return self.on_own_accepted(now, handle, index);
        }
        let peer = &mut self.peers[index];
        peer.on_session(now);
        self.tunnels[peer.site].on_session(now, handle, &peer.config, &mut self.endpoint);
        self.sessions.insert(handle, peer.site);
        // Who makes another may have begun anew, and knows nothing of what stood beside the one before.
        self.close_all_own(now, index);
        // What came before it was known whose it is.
        self.collect_from(now, handle);
    }

    fn session_gone(&mut self, now: Instant, handle: Handle, why: String) {
        // Of attempts only those at tunnels of single flows are among the sessions.
        let known = self.sessions.remove(&handle);
        let place = known.or_else(|| {
            let mut sites = self.peers.iter().map(|(_, peer)| peer.site);
            sites.find(|site| self.tunnels[*site].dialling == Some(handle))
        });
        let Some(place) = place.filter(|place| self.tunnels[*place].has(handle)) else { return };
        let tunnel = &mut self.tunnels[place];
        if tunnel.is_dedicated() {
            self.on_own_gone(now, place);
            return self.note_due();
        }
        let (lost, index) = (tunnel.on_gone(handle), tunnel.peer);
        if tunnel.sessions.is_empty() {
            self.peers[index].on_gone(now, why);
        }
        if lost {
            self.counters.lost_sessions += 1;
            self.directory.forget(index);
            let out = &mut self.out;
            self.exit.forget(now, |(peer, _)| *peer == index, &mut |_, parcel| out.push_back(parcel));
            self.trim_out();
            self.close_all_own(now, index);
            if !self.settings.fail_closed {
                self.release(place);
            }
        }
        self.note_due();
    }

    fn note_due(&mut self) {
        let peers = self.peers.iter().filter_map(|(_, peer)| peer.deadline());
        self.due = peers.chain(self.tunnels.iter().filter_map(|(_, tunnel)| tunnel.deadline())).min();
    }

    /// What is due at peers: dialling, announcing.
    fn tend(&mut self, now: Instant) {
        if self.due.is_none_or(|due| due > now) {
            return;
        }
        for index in self.peers.numbers() {
            let peer = &mut self.peers[index];
            let site = peer.site;
            let tunnel = &mut self.tunnels[site];
            self.dials += 1;
            let busy = tunnel.dialling.is_some() || !tunnel.sessions.is_empty();
            let dialled = peer.dial(now, busy, &mut self.endpoint, (&self.congestion, self.dials));
            tunnel.dialling = dialled.or(tunnel.dialling);
            if peer.announcing.is_some_and(|announcing| announcing.at <= now) {
                peer.on_announced(now);
                tunnel.forget_delays(now);
                self.announce(site);
            }
        }
        self.tend_own(now);
        self.note_due();
    }

    fn expire(&mut self, now: Instant) {
        let out = &mut self.out;
        self.exit.expire(now, &mut |_, parcel| out.push_back(parcel));
        self.trim_out();
        self.flows.expire(now);
        self.clear_gone(now);
    }
}

/// Why a session is over, in its own words.
fn why_closed(connection: &mut Connection) -> Option<String> {
    core::iter::from_fn(|| connection.next_event()).find_map(|event| match event {
        Event::Closed { reason, .. } => Some(reason),
        _ => None,
    })
}

impl Machine for Gateway {
    fn handle(&mut self, now: Instant, input: Input<'_>) {
        self.endpoint.handle(now, input);
        self.attend(now);
        self.collect(now);
    }

    fn wake(&mut self, now: Instant) {
        self.endpoint.wake(now);
        self.attend(now);
        self.collect(now);
        self.tend(now);
        self.expire(now);
    }

    fn transmit(&mut self, now: Instant, out: &mut Out<'_>) -> Option<Transmit> {
        self.collect(now);
        self.pump(now);
        self.endpoint.transmit(now, out)
    }

    fn deadline(&self) -> Option<Instant> {
        let own = [self.endpoint.deadline(), self.exit.deadline(), self.flows.deadline(), self.due];
        own.into_iter().flatten().min()
    }
}
