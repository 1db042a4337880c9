//! Direct paths that are opened from both sides: for peers that no direct path leads to, because
//! NATs or firewalls of both let in only what answers.
//!
//! | step | host | does |
//! |---|---|---|
//! | 1 | initiator | tells the peer, through a relay, at which addresses relays see it |
//! | 2 | responder | sends a few small packets there, which opens its own NAT, and answers with its own addresses |
//! | 3 | initiator | tries these addresses as direct paths, which opens its NAT |
//!
//! A NAT that gives each destination another port (symmetric) cannot be opened so. Then the relays
//! stay.

use super::handle::Handle;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use byway_wire::{Duration, Instant, Local};
use core::net::SocketAddr;

/// The number in packets that open a NAT.
pub(super) type OpeningToken = [u8; 8];

/// Packets to each address. More of a peer's addresses than this are left out: see
/// [`MAX_LISTED_ADDRESSES`](byway_wire::frame::MAX_LISTED_ADDRESSES).
const MAX_PACKETS: u32 = 5;
/// Time between the first two packets to an address. Each further pause is twice as long.
const PACKET_INTERVAL: Duration = Duration::from_millis(100);
/// Time after which a session with only relayed paths asks its peer first. Most direct paths answer
/// earlier.
const FIRST_DELAY: Duration = Duration::from_millis(500);
/// Time after which a question without an answer is repeated, up to `MAX_REPEATS` times.
const REPEAT_INTERVAL: Duration = Duration::from_secs(1);
const MAX_REPEATS: u32 = 2;
/// Time after which a peer that no direct path leads to is asked anew. It doubles up to
/// `MAX_RETRY_DELAY`.
const RETRY_DELAY: Duration = Duration::from_secs(10);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(160);
/// Time between two checks whether a session still has a direct path.
const CHECK_INTERVAL: Duration = Duration::from_secs(30);
/// The most peers for which ways are opened at once.
const MAX_PEERS: usize = 64;

/// A peer that is asked for a direct path.
#[derive(Clone, Copy, Debug)]
struct AskedPeer {
    token: OpeningToken,
    next_at: Instant,
    /// Questions since the last answer.
    repeats: u32,
    /// Whether an answer is waited for: each question takes one.
    is_waiting: bool,
    /// Number of times that no direct path opened.
    failures: u32,
}

/// A peer for which this side opens its NAT.
#[derive(Debug)]
struct OpenedPeer {
    handle: Handle,
    token: OpeningToken,
    targets: Vec<(Local, SocketAddr)>,
    /// The number of the next packet, over all targets.
    next: usize,
    next_at: Instant,
}

/// A question that is due for a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DueQuestion {
    pub handle: Handle,
    pub token: OpeningToken,
}

/// All direct paths of an endpoint that are being opened.
#[derive(Debug, Default)]
pub(super) struct Openings {
    asked: BTreeMap<Handle, AskedPeer>,
    opened: Vec<OpenedPeer>,
    due: Option<Instant>,
}

impl Openings {
    /// Begins to ask a peer to open its NAT for a direct path, unless a path opens soon.
    pub fn begin(&mut self, now: Instant, handle: Handle, token: OpeningToken) {
        let next_at = now + FIRST_DELAY;
        self.asked.insert(handle, AskedPeer { token, next_at, repeats: 0, is_waiting: false, failures: 0 });
        self.find_due();
    }

    /// A connection has ended.
    pub fn forget(&mut self, handle: Handle) {
        self.asked.remove(&handle);
        self.opened.retain(|peer| peer.handle != handle);
        self.find_due();
    }

    /// When something is due.
    pub const fn due(&self) -> Option<Instant> {
        self.due
    }

    /// The next peer to ask. `is_direct`: whether a direct path leads to a peer, so that it need
    /// not be asked.
    pub fn next_question(&mut self, now: Instant, is_direct: impl Fn(Handle) -> bool) -> Option<DueQuestion> {
        let mut question = None;
        for (handle, peer) in self.asked.iter_mut().filter(|(_, peer)| peer.next_at <= now) {
            if is_direct(*handle) {
                (peer.repeats, peer.failures, peer.next_at) = (0, 0, now + CHECK_INTERVAL);
            } else {
                question = Some(DueQuestion { handle: *handle, token: peer.token });
                (peer.repeats, peer.is_waiting) = (peer.repeats + 1, true);
                peer.next_at = now + REPEAT_INTERVAL;
                if peer.repeats > MAX_REPEATS {
                    peer.rest(now);
                }
                break;
            }
        }
        self.find_due();
        question
    }

    /// Handles a peer's answer. Returns whether it is one to this side's question.
    pub fn on_answer(&mut self, now: Instant, handle: Handle, token: OpeningToken) -> bool {
        let is_answered = |peer: &&mut AskedPeer| peer.token == token && peer.is_waiting;
        let Some(peer) = self.asked.get_mut(&handle).filter(is_answered) else { return false };
        peer.is_waiting = false;
        peer.rest(now);
        self.find_due();
        true
    }

    /// The peer whose packet came with this token.
    pub fn peer_of(&self, token: OpeningToken) -> Option<Handle> {
        self.asked.iter().find(|(_, peer)| peer.token == token).map(|(handle, _)| *handle)
    }

    /// Opens this host's NAT for a peer at these addresses, each by a local socket.
    pub fn open(
        &mut self,
        now: Instant,
        handle: Handle,
        token: OpeningToken,
        targets: Vec<(Local, SocketAddr)>,
    ) {
        self.opened.retain(|peer| peer.handle != handle);
        if !targets.is_empty() && self.opened.len() < MAX_PEERS {
            self.opened.push(OpenedPeer { handle, token, targets, next: 0, next_at: now });
        }
        self.find_due();
    }

    /// The next packet that opens a way: by which socket, where to, and its token.
    pub fn next_packet(&mut self, now: Instant) -> Option<(Local, SocketAddr, OpeningToken)> {
        let index = self.opened.iter().position(|peer| peer.next_at <= now)?;
        let peer = self.opened.get_mut(index)?;
        let count = peer.targets.len();
        let packet = peer.targets.get(peer.next % count).map(|(local, to)| (*local, *to, peer.token));
        peer.next += 1;
        if peer.next.is_multiple_of(count) {
            let round = u32::try_from(peer.next / count).unwrap_or(MAX_PACKETS);
            peer.next_at = now + PACKET_INTERVAL * (1 << round.min(MAX_PACKETS));
            if round == MAX_PACKETS {
                self.opened.remove(index);
            }
        }
        self.find_due();
        packet
    }

    fn find_due(&mut self) {
        let asked = self.asked.values().map(|peer| peer.next_at);
        self.due = asked.chain(self.opened.iter().map(|peer| peer.next_at)).min();
    }
}

impl AskedPeer {
    fn rest(&mut self, now: Instant) {
        let delay = RETRY_DELAY.saturating_mul(1 << self.failures.min(4)).min(MAX_RETRY_DELAY);
        (self.repeats, self.next_at) = (0, now + delay);
        self.failures = self.failures.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    const TOKEN: OpeningToken = *b"TOKEN678";

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    fn address(port: u16) -> SocketAddr {
        ([192, 0, 2, 1], port).into()
    }

    #[test]
    fn a_peer_without_a_direct_path_is_asked_and_ever_more_rarely() {
        let (mut openings, handle) = (Openings::default(), Handle::new(1));
        openings.begin(at(0), handle, TOKEN);
        let mut asked = Vec::new();
        while asked.len() < 8 {
            let due = openings.due().unwrap();
            if openings.next_question(due, |_| false).is_some() {
                asked.push(due.as_nanos() / 1_000_000);
            }
        }
        assert_eq!(asked, [500, 1_500, 2_500, 12_500, 13_500, 14_500, 34_500, 35_500]);
        assert!(openings.on_answer(at(35_600), handle, TOKEN));
        assert!(!openings.on_answer(at(35_600), handle, TOKEN), "one answer for a question");
        assert_eq!(openings.due(), Some(at(75_600)));
        assert_eq!(openings.next_question(at(75_600), |_| true), None);
        assert_eq!(openings.due(), Some(at(105_600)), "it has one now");
        openings.forget(handle);
        assert_eq!(openings.due(), None);
    }

    #[test]
    fn five_packets_go_to_each_address() {
        let mut openings = Openings::default();
        let targets = vec![(Local(0), address(1)), (Local(1), address(2))];
        openings.open(at(0), Handle::new(1), TOKEN, targets);
        let mut sent = Vec::new();
        while let Some(due) = openings.due() {
            while let Some((_, to, token)) = openings.next_packet(due) {
                assert_eq!(token, TOKEN);
                sent.push((due.as_nanos() / 1_000_000, to.port()));
            }
        }
        let times = [0, 200, 600, 1_400, 3_000];
        let expected: Vec<(u64, u16)> = times.into_iter().flat_map(|at| [(at, 1), (at, 2)]).collect();
        assert_eq!(sent, expected);
        // Of one peer or of many, no more than there is room for.
        for number in 0..100 {
            openings.open(at(0), Handle::new(number), TOKEN, vec![(Local(0), address(1))]);
        }
        assert_eq!(openings.opened.len(), MAX_PEERS);
    }
}
