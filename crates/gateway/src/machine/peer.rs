//! Other gateways: connects to them, announces the served networks, and connects again after a
//! loss.

use super::config;
use super::dedicated_limit::DedicatedLimit;
use super::index_vec::{IndexVec, PeerIdx, TunnelIdx};
use crate::encap::Label;
use crate::joining::is_request;
use crate::serves::Directory;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use byway_control::{ControllerChoice, SenderKind, controller};
use byway_engine::handshake::PublicKey;
use byway_engine::{Admission, Admit, Connect, Endpoint, Handle};
use byway_wire::{Duration, Instant};
use core::cmp::Reverse;
use core::net::{IpAddr, SocketAddr};
use core::sync::atomic::{AtomicU64, Ordering};

/// The first pause before the next attempt. Each further pause is twice as long, up to
/// [`MAX_PAUSE`].
const MIN_PAUSE: Duration = Duration::from_millis(500);
/// The longest pause before dialling again.
const MAX_PAUSE: Duration = Duration::from_secs(8);
/// The application data in the handshake of a session for all flows.
pub(super) const FOR_SITE: &[u8] = b"byway gateway 1";
/// The application data in the handshake of a session for one flow. Older gateways close such a
/// session.
pub(super) const FOR_FLOW: &[u8] = b"byway gateway 1, a flow";
/// Time between the first [`EARLY_ANNOUNCEMENTS`] announcements of a session, because one may be
/// lost.
const EARLY_INTERVAL: Duration = Duration::from_secs(1);
/// Announcements that come soon after a session began.
const EARLY_ANNOUNCEMENTS: u32 = 5;
/// Time between later announcements.
const ANNOUNCEMENT_INTERVAL: Duration = Duration::from_secs(60);

/// The repetition of announcements to a peer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Announcing {
    pub at: Instant,
    told: u32,
}

/// Another gateway: its state and its tunnels.
#[derive(Debug)]
pub(super) struct Peer {
    pub config: config::PeerConfig,
    /// The tunnel to the peer that serves all flows.
    pub site: TunnelIdx,
    /// The addresses of the peer, as other gateways report them.
    learned: Vec<SocketAddr>,
    retry_at: Option<Instant>,
    pause: Duration,
    pub announcing: Option<Announcing>,
    /// Why the last session or attempt ended, if no session has lasted since.
    pub trouble: Option<String>,
    /// The label to give next.
    pub label: Label,
    pub carried: u64,
    pub carried_bytes: u64,
    /// Number of prefixes in the peer's last announcement that it may not announce.
    pub refused: usize,
    /// The limit on the peer's flows with tunnels of their own.
    pub dedicated_limit: DedicatedLimit,
}

impl Peer {
    pub fn new(config: config::PeerConfig, first: Label, site: TunnelIdx) -> Self {
        Self {
            retry_at: (!config.addresses.is_empty()).then_some(Instant::ZERO),
            config,
            site,
            learned: Vec::new(),
            pause: MIN_PAUSE,
            announcing: None,
            trouble: None,
            label: first,
            carried: 0,
            carried_bytes: 0,
            refused: 0,
            dedicated_limit: DedicatedLimit::default(),
        }
    }

    /// When the peer next needs attention: dialling or an announcement.
    pub fn deadline(&self) -> Option<Instant> {
        [self.retry_at, self.announcing.map(|announcing| announcing.at)].into_iter().flatten().min()
    }

    /// Dials the peer if an attempt is due. `busy`: whether there is a session, or an attempt at
    /// one.
    pub fn dial(
        &mut self,
        now: Instant,
        busy: bool,
        endpoint: &mut Endpoint,
        (congestion, seed): (&ControllerChoice, u64),
    ) -> Option<Handle> {
        if self.retry_at.is_none_or(|at| at > now) || busy {
            return None;
        }
        self.retry_at = None;
        let connect = self.connect(self.addresses(), FOR_SITE, (congestion, seed))?;
        let handle = endpoint.connect(now, connect).ok();
        if handle.is_none() {
            self.retry(now);
        }
        handle
    }

    /// The addresses at which the peer may be reached.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        let learned = self.learned.iter().filter(|address| !self.config.addresses.contains(address));
        self.config.addresses.iter().chain(learned).copied().collect()
    }

    /// Learns from other gateways at which addresses the peer is. New addresses are dialled at
    /// once, unless the peer is `busy`: it has a session, or a session is being opened.
    pub fn learn(&mut self, now: Instant, addresses: &[SocketAddr], busy: bool) {
        let news = self.learned != addresses;
        self.learned = addresses.to_vec();
        if self.retry_at.is_none() && !busy && news && !addresses.is_empty() {
            self.retry_at = Some(now);
        }
    }

    /// Forgets the addresses that other gateways reported of the peer.
    pub fn unlearn(&mut self) {
        self.learned.clear();
        self.retry_at = self.retry_at.filter(|_| !self.config.addresses.is_empty());
    }

    /// The parameters of a connection to the peer.
    pub fn connect(
        &self,
        addresses: Vec<SocketAddr>,
        said: &[u8],
        (congestion, seed): (&ControllerChoice, u64),
    ) -> Option<Connect> {
        let controller = controller(congestion, SenderKind::Session, seed).ok()?;
        Some(Connect { peer: self.config.key, addresses, application: said.to_vec(), controller })
    }

    /// Counts a packet that is carried to the peer.
    pub const fn on_carried(&mut self, bytes: usize) {
        self.carried += 1;
        self.carried_bytes += bytes as u64;
    }

    /// Whether the peer may announce this host.
    pub fn speaks_for(&self, host: IpAddr) -> bool {
        self.config.allowed.iter().any(|prefix| prefix.contains(host))
    }

    fn retry(&mut self, now: Instant) {
        if !self.addresses().is_empty() {
            self.retry_at = Some(now + self.pause);
            self.pause = (self.pause * 2).min(MAX_PAUSE);
        }
    }

    /// Notes that a session for all flows is established.
    pub fn on_session(&mut self, now: Instant) {
        self.retry_at = None;
        self.announcing = Some(Announcing { at: now, told: 0 });
    }

    /// Announces again soon, because the announcement has changed.
    pub fn announce_anew(&mut self, now: Instant) {
        if let Some(announcing) = &mut self.announcing {
            *announcing = Announcing { at: now, told: 0 };
        }
    }

    /// Enters that the session for all flows is over, or that the attempt at one failed, and why.
    pub fn on_gone(&mut self, now: Instant, why: String) {
        // To whom there is no session nothing is announced.
        self.announcing = None;
        self.trouble = Some(why).filter(|why| !why.is_empty());
        self.retry(now);
    }

    /// Notes that the announcement was sent.
    pub fn on_announced(&mut self, now: Instant) {
        if let Some(announcing) = &mut self.announcing {
            announcing.told = announcing.told.saturating_add(1);
            announcing.at = now
                + if announcing.told < EARLY_ANNOUNCEMENTS { EARLY_INTERVAL } else { ANNOUNCEMENT_INTERVAL };
            // A peer that does not want us ends the session sooner, and is not asked again and
            // again at once.
            if announcing.told > 1 {
                (self.pause, self.trouble) = (MIN_PAUSE, None);
            }
        }
    }
}

/// The peer that serves a host: the one that has announced the host and port, or else one that may
/// serve the host and has announced nothing yet, perhaps because it is down.
pub(super) fn behind(
    directory: &Directory<PeerIdx>,
    peers: &IndexVec<PeerIdx, Peer>,
    (host, port): (IpAddr, u16),
) -> Option<PeerIdx> {
    let silent = |index: PeerIdx| directory.served_by(index).next().is_none();
    directory.find(host, port).or_else(|| speaker(peers, host, silent))
}

/// The one of some peers that may speak for a host. It is the one with the longest prefix, and of
/// several the first.
pub(super) fn speaker(
    peers: &IndexVec<PeerIdx, Peer>,
    host: IpAddr,
    some: impl Fn(PeerIdx) -> bool,
) -> Option<PeerIdx> {
    let may = peers.iter().filter(|(index, _)| some(*index)).flat_map(|(index, peer)| {
        let covers = peer.config.allowed.iter().filter(|prefix| prefix.contains(host));
        covers.map(move |prefix| (prefix.length(), Reverse(index)))
    });
    may.max().map(|(_, Reverse(index))| index)
}

/// Takes the gateways that are known, and hosts that may ask to be served.
pub(super) struct KnownPeers {
    pub keys: Vec<PublicKey>,
    /// Hosts that may ask to be served, and a count of the hosts that may not.
    pub guests: Vec<PublicKey>,
    pub strangers: Arc<AtomicU64>,
    pub congestion: ControllerChoice,
}

impl Admission for KnownPeers {
    fn admit(&mut self, peer: PublicKey, said: &[u8]) -> Admit {
        let reject = |code, reason: &str| Admit::Reject { code, reason: reason.into() };
        if is_request(said) {
            if !self.guests.contains(&peer) {
                self.strangers.fetch_add(1, Ordering::Relaxed);
                return reject(6, "this gateway does not know your key: it must be among its guests");
            }
            let controller = controller(&self.congestion, SenderKind::Session, 0);
            return controller.map_or_else(|_| reject(1, "no controller"), Admit::Accept);
        }
        if said != FOR_SITE && said != FOR_FLOW {
            return reject(2, "this is a gateway, which takes no transfers");
        }
        let Some(index) = self.keys.iter().position(|key| *key == peer) else {
            return reject(6, "this gateway does not know your key: it must be among its peers");
        };
        let controller = controller(&self.congestion, SenderKind::Session, index as u64);
        controller.map_or_else(|_| reject(1, "no controller"), Admit::Accept)
    }
}
