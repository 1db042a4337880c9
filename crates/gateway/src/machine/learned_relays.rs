//! Relays that the configuration file does not name: other gateways announce relays beside them, or
//! a registry offers relays. A relay beside a gateway is used to reach all other gateways, but not
//! that gateway. A session keeps a relay until the relay no longer answers.

use super::index_vec::PeerIdx;
use super::peer::Peer;
use crate::encap::Message;
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use byway_engine::{Endpoint, Handle};
use byway_wire::relay::Word;
use byway_wire::{Duration, Instant, Writer};

/// The most relays of a registry that are kept.
const MAX_FOUND: usize = 400;

/// The least time before a peer may name another relay: each is greeted from here, and takes a
/// place in every session.
const MIN_NAMING_INTERVAL: Duration = Duration::from_secs(60);

/// The session to which relays are added.
#[derive(Clone, Copy, Debug)]
pub(super) struct SessionRef {
    pub handle: Handle,
    pub peer: PeerIdx,
}

/// Relays that no file names.
#[derive(Debug)]
pub(super) struct LearnedRelays {
    /// Whether relays that other gateways announce are used.
    used: bool,
    /// The relay word for the relay beside this gateway that each peer gets.
    lent: BTreeMap<PeerIdx, Word>,
    /// The relay word that each peer gave for its relay, and whether its session is still open.
    heard: BTreeMap<PeerIdx, (Word, bool)>,
    /// When a peer named another relay than before.
    named: BTreeMap<PeerIdx, Instant>,
    /// The relay words of relays that a registry offers.
    found: Vec<Word>,
}

impl LearnedRelays {
    /// A list without detours yet.
    pub const fn new(used: bool) -> Self {
        Self {
            used,
            lent: BTreeMap::new(),
            heard: BTreeMap::new(),
            named: BTreeMap::new(),
            found: Vec::new(),
        }
    }

    /// Sets the relay word for the relay beside this gateway that a peer gets.
    pub fn lend(&mut self, to: PeerIdx, word: Word) {
        self.lent.insert(to, word);
    }

    /// Returns the message that gives a peer its relay word. `None`: the peer gets none.
    pub fn announcement(&self, to: PeerIdx) -> Option<Vec<u8>> {
        let word = self.lent.get(&to)?.to_bytes();
        let mut datagram = vec![0; word.len() + 1];
        Message::Relay { word: &word }.write(&mut Writer::new(&mut datagram));
        Some(datagram)
    }

    /// Whether a peer has given a relay word for its relay in the present session.
    pub fn has_heard(&self, of: PeerIdx) -> bool {
        self.heard.get(&of).is_some_and(|(_, lives)| *lives)
    }

    /// Handles a relay word from a peer. Returns the word if it is new and is to be used. An error:
    /// the word is malformed.
    pub fn on_word(&mut self, now: Instant, from: PeerIdx, word: &[u8]) -> Result<Option<Word>, ()> {
        let word = Word::from_bytes(word).map_err(|_| ())?;
        let known = self.heard.get(&from);
        if known.is_some_and(|(known, lives)| *known == word && *lives) {
            return Ok(None);
        }
        if !known.is_some_and(|(known, _)| is_same(known, &word)) {
            if self.named.get(&from).is_some_and(|at| now.since(*at) < MIN_NAMING_INTERVAL) {
                return Ok(None);
            }
            self.named.insert(from, now);
        }
        self.heard.insert(from, (word.clone(), true));
        Ok(Some(word).filter(|_| self.used))
    }

    /// Adds relay words from a registry. Returns those that are new.
    pub fn on_found(&mut self, words: Vec<Word>) -> Vec<Word> {
        let mut fresh = Vec::new();
        for word in words {
            match self.found.iter_mut().find(|known| is_same(known, &word)) {
                Some(known) if *known == word => continue,
                Some(known) => *known = word.clone(),
                None => {
                    if self.found.len() == MAX_FOUND {
                        self.found.remove(0);
                    }
                    self.found.push(word.clone());
                }
            }
            fresh.push(word);
        }
        fresh
    }

    /// Notes that the session with a peer ended.
    pub fn forget(&mut self, peer: PeerIdx) {
        if let Some((_, lives)) = self.heard.get_mut(&peer) {
            *lives = false;
        }
    }

    /// Adds to a new session all relays that lead to its peer.
    pub fn lead(&self, now: Instant, session: SessionRef, peer: &Peer, endpoint: &mut Endpoint) {
        for (word, reach) in &peer.config.relays {
            endpoint.add_relay(now, session.handle, word, reach.as_ref());
        }
        let heard = self.heard.iter().filter(|(of, (_, lives))| self.used && *lives && **of != session.peer);
        for word in heard.map(|(_, (word, _))| word).chain(&self.found) {
            endpoint.add_relay(now, session.handle, word, None);
        }
    }
}

/// Whether two relay words are of the same grant at the same relay.
fn is_same(one: &Word, other: &Word) -> bool {
    one.relays() == other.relays() && one.grant().id == other.grant().id
}

#[cfg(test)]
mod tests {
    use super::super::index_vec::TypedIndex as _;
    use super::*;
    use byway_wire::relay::{Grant, Minute, QuotaClass, RateClass, RelayKey, Scope, Terms};
    use core::net::SocketAddr;

    fn word(id: u32, expires: u64) -> Word {
        let terms = Terms {
            expiry: Minute::from_unix(expires),
            rate: RateClass::UNLIMITED,
            quota: QuotaClass::UNLIMITED,
            scope: Scope::ALL,
        };
        let address = SocketAddr::from(([192, 0, 2, 1], 4748));
        RelayKey::new(&[1; 32]).issue(Grant { id, terms }, vec![address]).unwrap()
    }

    #[test]
    fn a_word_is_news_once() {
        let mut detours = LearnedRelays::new(true);
        let (a, b, now) = (PeerIdx::at(0), PeerIdx::at(1), Instant::from_millis(5));
        let first = word(1, 1_900_000_000);
        assert_eq!(detours.on_word(now, a, &first.to_bytes()), Ok(Some(first.clone())));
        assert_eq!(detours.on_word(now, a, &first.to_bytes()), Ok(None));
        let renewed = word(1, 1_900_086_400);
        assert_eq!(detours.on_word(now, a, &renewed.to_bytes()), Ok(Some(renewed)));
        assert_eq!(detours.on_word(now, a, b"a word"), Err(()));
        assert!(detours.has_heard(a) && !detours.has_heard(b));
        detours.forget(a);
        assert!(!detours.has_heard(a));
        let renewed = word(1, 1_900_086_400);
        assert_eq!(detours.on_word(now, a, &renewed.to_bytes()), Ok(Some(renewed)), "in another session");
        assert_eq!(LearnedRelays::new(false).on_word(now, a, &first.to_bytes()), Ok(None), "not used");
    }

    #[test]
    fn a_peer_names_another_relay_once_a_minute() {
        let mut detours = LearnedRelays::new(true);
        let a = PeerIdx::at(0);
        let taken = (0..300).filter(|second| {
            let word = word(*second, 1_900_000_000).to_bytes();
            detours.on_word(Instant::from_millis(u64::from(*second) * 1_000), a, &word).unwrap().is_some()
        });
        assert_eq!(taken.collect::<Vec<_>>(), [0, 60, 120, 180, 240]);
    }

    #[test]
    fn each_peer_is_told_its_own_word() {
        let mut detours = LearnedRelays::new(true);
        let (a, b) = (PeerIdx::at(0), PeerIdx::at(1));
        detours.lend(a, word(1, 1_900_000_000));
        let told = detours.announcement(a).unwrap();
        let expected = word(1, 1_900_000_000).to_bytes();
        assert_eq!(Message::read(&told), Ok(Message::Relay { word: &expected }));
        assert_eq!(detours.announcement(b), None);
    }

    #[test]
    fn what_a_registry_offers_is_bounded_and_renewed() {
        let mut detours = LearnedRelays::new(true);
        let many: Vec<Word> = (0..500).map(|id| word(id, 1_900_000_000)).collect();
        assert_eq!(detours.on_found(many.clone()).len(), 500);
        assert_eq!(detours.found.len(), MAX_FOUND);
        assert_eq!(detours.on_found(many[450..].to_vec()), []);
        let renewed = word(470, 1_900_086_400);
        assert_eq!(detours.on_found(vec![renewed.clone()]), [renewed]);
        assert_eq!(detours.found.len(), MAX_FOUND);
    }
}
