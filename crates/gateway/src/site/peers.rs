//! Other gateways and the sessions with them: dialled, accepted, lost and dialled again.
//!
//! Both ends may dial. A packet goes by the newest session and is taken from any, so two that cross each other do no harm; of more
//! than two the oldest is closed.

use super::config;
use super::holes::Holes;
use super::judge::Judge;
use super::parcel::Parcel;
use crate::encap::{Label, Message};
use crate::entry::EntryQueue;
use crate::epoch::Epochs;
use crate::flow::FlowId;
use crate::pick::Want;
use crate::reorder::{Lateness, PathDelay, PathDelays};
use crate::serves::Directory;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;
use byway_control::by_name;
use byway_engine::handshake::PublicKey;
use byway_engine::{Admission, Admit, Connect, Endpoint, Handle};
use byway_wire::{Duration, Instant, PathId};
use core::cmp::Reverse;
use core::net::IpAddr;

/// The first pause before dialling again; it doubles up to [`LONGEST_PAUSE`].
const SHORTEST_PAUSE: Duration = Duration::from_millis(500);
/// The longest pause before dialling again.
const LONGEST_PAUSE: Duration = Duration::from_secs(8);
/// What a gateway says in the handshake.
pub(super) const GREETING: &[u8] = b"byway gateway 1";
/// Announcements after a session began come this often, [`EAGER`] times, since one may be lost; then rarely.
const SOON: Duration = Duration::from_secs(1);
const EAGER: u32 = 5;
const RARELY: Duration = Duration::from_secs(60);
/// A path of which nothing came for this long delays nobody.
const DELAY_COUNTS: Duration = Duration::from_secs(2);
/// The largest packet that is carried before paths are known to take more.
const LEAST_PACKET: usize = 1_000;
/// Sessions with one peer.
const MOST_SESSIONS: usize = 2;

/// A packet that waits at the entry.
#[derive(Debug)]
pub(super) struct Waiting {
    pub flow: FlowId,
    pub parcel: Parcel,
    /// What it asks of its path.
    pub want: Want,
    /// The sequence numbers of TCP that it fills: the first, and one past the last.
    pub range: (u32, u32),
}

/// What is told to the peer again and again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Announcing {
    pub at: Instant,
    told: u32,
}

/// The way to a peer and back, all paths together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    /// Until when this holds.
    pub until: Instant,
    /// Bytes that each flow may have in flight.
    pub flow_limit: u64,
    /// The largest IP packet that a path carries.
    pub largest: usize,
    /// The IP packets that hosts had better send.
    pub best: usize,
    /// Round trip of the fastest path.
    pub rtt: Duration,
    /// Round trip of the slowest path.
    pub longest: Duration,
    /// How long a packet that comes may wait for those before it.
    pub reorder_wait: Duration,
}

impl Default for Way {
    fn default() -> Self {
        Self {
            until: Instant::ZERO,
            flow_limit: u64::MAX,
            largest: LEAST_PACKET,
            best: LEAST_PACKET,
            rtt: Duration::ZERO,
            longest: Duration::ZERO,
            reorder_wait: Duration::ZERO,
        }
    }
}

/// Another gateway.
#[derive(Debug)]
pub(super) struct Peer {
    pub config: config::Peer,
    /// Live sessions, the newest last.
    pub sessions: Vec<Handle>,
    dialling: Option<Handle>,
    retry_at: Option<Instant>,
    pause: Duration,
    pub announcing: Option<Announcing>,
    /// Why the last session, or the last attempt at one, is over, if none has held since.
    pub trouble: Option<String>,
    /// What waits for its paths.
    pub entry: EntryQueue<Waiting>,
    /// Datagrams that a path gave back: they go first, as they are.
    pub returned: VecDeque<Vec<u8>>,
    /// What is known of the delays on its paths to us.
    delays: BTreeMap<(Handle, PathId), (Instant, PathDelays)>,
    /// By how much its packets are late.
    pub lateness: Lateness,
    /// The label to give next.
    pub label: Label,
    /// What is known of the way to it, worked out anew now and then.
    pub way: Way,
    pub carried: u64,
    pub carried_bytes: u64,
    /// Flows of which data was carried to it of late, and perhaps some that are gone.
    pub sending: Vec<FlowId>,
    /// Whether it is among the peers for whose paths something waits.
    pub waits: bool,
    /// Watches what is sent, if that is wanted.
    pub judge: Option<Judge>,
    /// When its paths were last penalised by what is found here.
    pub epochs: Epochs,
    /// What is missing of what it sent, by its maps.
    pub holes: Holes,
    /// Whether it understands short headers, as far as this side does.
    pub speaks: bool,
    /// Sessions with it that began: who is at the other end may have forgotten what was told in one before.
    pub begun: u32,
    /// The flows of which examples were sent to it.
    pub labels: BTreeMap<Label, FlowId>,
    /// Prefixes of what it announced last that it may not speak for.
    pub refused: usize,
    /// When it was last told of a template that is not known here.
    pub complained: Option<Instant>,
}

impl Peer {
    pub fn new(
        config: config::Peer,
        limits: crate::entry::Limits,
        first: Label,
        judge: Option<Judge>,
    ) -> Self {
        Self {
            retry_at: (!config.addresses.is_empty()).then_some(Instant::ZERO),
            config,
            sessions: Vec::new(),
            dialling: None,
            pause: SHORTEST_PAUSE,
            announcing: None,
            trouble: None,
            entry: EntryQueue::new(limits),
            returned: VecDeque::new(),
            delays: BTreeMap::new(),
            lateness: Lateness::default(),
            label: first,
            way: Way::default(),
            carried: 0,
            carried_bytes: 0,
            sending: Vec::new(),
            waits: false,
            judge,
            epochs: Epochs::new(),
            holes: Holes::default(),
            speaks: false,
            begun: 0,
            labels: BTreeMap::new(),
            refused: 0,
            complained: None,
        }
    }

    /// The session that packets go by.
    pub fn session(&self) -> Option<Handle> {
        self.sessions.last().copied()
    }

    /// What the next datagram for its paths asks of them, and its bytes, if `header` stands before a packet; `None`: nothing waits.
    pub fn next_want(&mut self, header: usize) -> Option<(Want, usize)> {
        match self.returned.front() {
            Some(datagram) if Message::is_urgent(datagram) => Some((Want::Soon, datagram.len())),
            Some(datagram) => Some((Want::Room, datagram.len())),
            None => {
                let (_, waiting) = self.entry.peek()?;
                Some((waiting.want, waiting.parcel.len() + header))
            }
        }
    }

    /// When something is to be done about it.
    pub fn deadline(&self) -> Option<Instant> {
        [self.retry_at, self.announcing.map(|announcing| announcing.at)].into_iter().flatten().min()
    }

    /// Dials if it is time.
    pub fn dial(&mut self, now: Instant, endpoint: &mut Endpoint, congestion: &str, seed: u64) {
        if self.retry_at.is_none_or(|at| at > now) || self.dialling.is_some() || !self.sessions.is_empty() {
            return;
        }
        self.retry_at = None;
        let Some(controller) = by_name(congestion, seed) else { return };
        let connect = Connect {
            peer: self.config.key,
            addresses: self.config.addresses.clone(),
            application: GREETING.to_vec(),
            controller,
        };
        match endpoint.connect(now, connect) {
            Ok(handle) => self.dialling = Some(handle),
            Err(_) => self.retry(now),
        }
    }

    fn retry(&mut self, now: Instant) {
        if !self.config.addresses.is_empty() && self.sessions.is_empty() {
            self.retry_at = Some(now + self.pause);
            self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// A session is there.
    pub fn on_session(&mut self, now: Instant, handle: Handle, endpoint: &mut Endpoint) {
        if self.dialling == Some(handle) {
            self.dialling = None;
        }
        self.sessions.push(handle);
        (self.speaks, self.begun) = (false, self.begun.wrapping_add(1));
        self.new_paths();
        if self.sessions.len() > MOST_SESSIONS {
            let oldest = self.sessions.remove(0);
            endpoint.close(now, oldest, 0, "a newer session took its place");
        }
        for (word, reach) in &self.config.relays {
            endpoint.add_relay(now, handle, word, reach.as_ref());
        }
        self.retry_at = None;
        self.announcing = Some(Announcing { at: now, told: 0 });
    }

    /// A session, or the attempt at one, is over, and why. Whether there is none now, and was one.
    pub fn on_gone(&mut self, now: Instant, handle: Handle, why: String) -> bool {
        let before = self.sessions.len();
        self.sessions.retain(|session| *session != handle);
        self.new_paths();
        let lost = self.sessions.len() < before;
        if self.dialling == Some(handle) {
            self.dialling = None;
        }
        self.delays.retain(|(session, _), _| *session != handle);
        if self.sessions.is_empty() {
            // To whom there is no session nothing is announced.
            self.announcing = None;
            self.trouble = Some(why).filter(|why| !why.is_empty());
        }
        self.retry(now);
        lost && self.sessions.is_empty()
    }

    /// Packets go by other paths from now on, whose names may be those of others before.
    fn new_paths(&mut self) {
        self.epochs = Epochs::new();
        if let Some(judge) = &mut self.judge {
            judge.clear();
        }
    }

    /// Whether the handle is a session or an attempt of this peer's.
    pub fn has(&self, handle: Handle) -> bool {
        self.dialling == Some(handle) || self.sessions.contains(&handle)
    }

    /// The announcement was sent.
    pub fn on_announced(&mut self, now: Instant) {
        if let Some(announcing) = &mut self.announcing {
            announcing.told = announcing.told.saturating_add(1);
            announcing.at = now + if announcing.told < EAGER { SOON } else { RARELY };
            // A peer that does not want us ends the session sooner, and is not asked again and again at once.
            if announcing.told > 1 {
                (self.pause, self.trouble) = (SHORTEST_PAUSE, None);
            }
        }
    }

    /// A packet of the peer's came by `path` with this delay.
    pub fn on_delay(&mut self, now: Instant, session: Handle, path: PathId, delay: i64) {
        let rtt = self.way.rtt;
        let (last, delays) = self.delays.entry((session, path)).or_insert_with(|| (now, PathDelays::new()));
        *last = now;
        delays.on_packet(now, delay, rtt);
    }

    /// The delays of the paths by which packets come now.
    pub fn delays(&self, now: Instant) -> impl Iterator<Item = PathDelay> + Clone + '_ {
        let fresh = move |(last, _): &&(Instant, PathDelays)| now.since(*last) <= DELAY_COUNTS;
        self.delays.values().filter(fresh).filter_map(|(_, delays)| delays.view())
    }

    /// Forgets paths by which nothing came for long.
    pub fn forget_delays(&mut self, now: Instant) {
        self.delays.retain(|_, (last, _)| now.since(*last) <= DELAY_COUNTS * 16);
    }
}

/// Behind which peer a host is: the one that has announced it, or else, among those that have announced nothing (since when they are
/// down nobody knows what they serve), the one that may speak for it.
pub(super) fn behind(
    directory: &Directory<usize>,
    peers: &[Peer],
    (host, port): (IpAddr, u16),
) -> Option<usize> {
    let silent = |index: usize| directory.served_by(index).next().is_none();
    directory.find(host, port).or_else(|| speaker(peers, host, silent))
}

/// Which of some peers may speak for a host: the one with the longest prefix, and of several the first.
pub(super) fn speaker(peers: &[Peer], host: IpAddr, some: impl Fn(usize) -> bool) -> Option<usize> {
    let may = peers.iter().enumerate().filter(|(index, _)| some(*index)).flat_map(|(index, peer)| {
        let covers = peer.config.allowed.iter().filter(|prefix| prefix.contains(host));
        covers.map(move |prefix| (prefix.length(), Reverse(index)))
    });
    may.max().map(|(_, Reverse(index))| index)
}

/// Takes the gateways that are known.
pub(super) struct Known {
    pub keys: Vec<PublicKey>,
    pub congestion: &'static str,
}

impl Admission for Known {
    fn admit(&mut self, peer: PublicKey, said: &[u8]) -> Admit {
        let reject = |code, reason: &str| Admit::Reject { code, reason: reason.into() };
        if said != GREETING {
            return reject(2, "this is a gateway, which takes no transfers");
        }
        let Some(index) = self.keys.iter().position(|key| *key == peer) else {
            return reject(6, "this gateway does not know your key: it must be among its peers");
        };
        let controller: Option<Box<dyn byway_control::Controller>> = by_name(self.congestion, index as u64);
        controller.map_or_else(|| reject(1, "no controller"), Admit::Accept)
    }
}
