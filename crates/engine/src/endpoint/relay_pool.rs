//! The relays by which a connection's peer may be reached: a thousand words cost memory, and no
//! packet before a relay's turn comes.

use super::relay_addresses::AddressProblem;
use crate::connection::{RelayAttempt, RelayId, RelayState};
use crate::route::Route;
use alloc::sync::Arc;
use alloc::vec::Vec;
use byway_wire::relay::{Consent, LocationKey, Reason, Word};
use byway_wire::{Duration, Instant, Local};
use core::net::SocketAddr;

/// The most relays of a connection. A relay counts once for each local socket that reaches it.
pub const MAX_RELAYS: usize = 4096;

/// The route through a relay to a peer, from a ticket.
#[derive(Clone, Debug)]
pub struct RelayRoute {
    /// The relay word: the relay's addresses and the grant.
    pub word: Word,
    /// The peer's address as the relay saw it, and the peer's consent. `None`: only the relay knows
    /// them.
    pub reach: Option<(SocketAddr, Consent)>,
    /// Asks the relay where the peer is. `None`: the relay is not asked.
    pub location_key: Option<Arc<LocationKey>>,
}

/// Why a relay is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RelayTrouble {
    /// The relay does not answer.
    #[error("it does not answer")]
    Silent,
    /// The relay refuses this side, or this route, for this reason.
    #[error("it refuses: {0}")]
    Refused(Reason),
    /// The peer could not greet the relay, or did not answer.
    #[error("the peer cannot reach it")]
    PeerCannot,
    /// No local socket can reach the relay.
    #[error("no local socket can reach it")]
    NoRoute,
    /// The session has the largest permitted number of relays.
    #[error("there are as many relays as there is room for")]
    TooMany,
    /// The host is already greeting the most relays that it may.
    #[error("too many relays are greeted at once")]
    Busy,
    /// No relay can be at the address.
    #[error("no relay can be there: {0}")]
    Unfit(AddressProblem),
}

/// A relay, with the local socket that reaches it.
#[derive(Debug)]
struct Pooled {
    word: Word,
    local: Local,
    address: SocketAddr,
    /// The peer's address and consent behind the relay, if the ticket has them.
    reach: Option<(SocketAddr, Consent)>,
    location_key: Option<Arc<LocationKey>>,
    /// When the relay was last asked for. `trouble`: why it did not work then.
    asked_at: Instant,
    trouble: Option<RelayTrouble>,
}

/// A relay to greet.
#[derive(Clone, Debug)]
pub(super) struct GreetingRequest {
    pub way: (Local, SocketAddr),
    /// The id of the grant under which the relay is greeted.
    pub grant: u32,
    pub reach: Option<(SocketAddr, Consent)>,
    pub location_key: Option<Arc<LocationKey>>,
}

/// The state of a relay that may lead to a connection's peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelayStatus {
    /// The address of the relay.
    pub relay: SocketAddr,
    /// The local socket that reaches the relay.
    pub local: Local,
    /// The state of the relay.
    pub standing: RelayState,
    /// Why the relay is [unusable](RelayState::Unusable). `None`: it did not answer two probes.
    pub trouble: Option<RelayTrouble>,
    /// RTT of the latest probe that the relay answered, without the queueing delay that packets of
    /// every path had then.
    pub rtt: Option<Duration>,
    /// Whether that RTT is within the limit for relays (mPath's τ). False if no probe was answered.
    pub in_time: bool,
    /// The highest rate in bytes per second that the relay carried while in use; zero if it never
    /// was.
    pub goodput: u64,
    /// Number of times that the relay's path fell silent since it last answered a probe.
    pub silences: u32,
}

/// The relays of a connection or attempt, by their numbers.
#[derive(Debug, Default)]
pub(super) struct RelayPool(Vec<Pooled>);

impl RelayPool {
    fn get(&self, id: RelayId) -> Option<&Pooled> {
        self.0.get(usize::try_from(id.0).ok()?)
    }

    fn get_mut(&mut self, id: RelayId) -> Option<&mut Pooled> {
        self.0.get_mut(usize::try_from(id.0).ok()?)
    }

    /// Returns the relay word of the relay with this id.
    pub fn word(&self, id: RelayId) -> Option<&Word> {
        self.get(id).map(|pooled| &pooled.word)
    }

    /// Returns all relay words, once for each local socket, with the routes that the ticket has.
    pub fn words(&self) -> impl Iterator<Item = (&Word, Option<RelayRoute>)> {
        self.0.iter().map(|pooled| {
            let Pooled { word, reach, location_key, .. } = pooled;
            let is_known = reach.is_some() || location_key.is_some();
            let route =
                || RelayRoute { word: word.clone(), reach: *reach, location_key: location_key.clone() };
            (word, is_known.then(route))
        })
    }

    /// Returns the ids of all relays, with the local sockets that reach them.
    pub fn numbers(&self) -> impl Iterator<Item = (RelayId, Local)> + '_ {
        (0..).zip(&self.0).map(|(number, pooled)| (RelayId(number), pooled.local))
    }

    /// Adds a relay. If the relay is known under the same grant, the word that expires later is
    /// kept. `word`: a secret text with the relay's addresses and a grant (permission to use it).
    /// `None`: the pool is full.
    pub fn enter(
        &mut self,
        now: Instant,
        (local, address): (Local, SocketAddr),
        word: &Word,
        route: Option<&RelayRoute>,
    ) -> Option<RelayId> {
        let same =
            |it: &Pooled| it.local == local && it.address == address && it.word.grant().id == word.grant().id;
        let index = self.0.iter().position(same).unwrap_or(self.0.len());
        if index == MAX_RELAYS {
            return None;
        }
        if let Some(known) = self.0.get_mut(index) {
            if known.word.terms().expiry < word.terms().expiry {
                known.word = word.clone();
            }
        } else {
            self.0.push(Pooled {
                word: word.clone(),
                local,
                address,
                reach: route.and_then(|route| route.reach),
                location_key: route.and_then(|route| route.location_key.clone()),
                asked_at: now,
                trouble: None,
            });
        }
        u32::try_from(index).ok().map(RelayId)
    }

    /// The number of the relay that a route leads through.
    pub fn of(&self, route: &Route) -> Option<RelayId> {
        let leads = |it: &Pooled| it.local == route.local && it.address == route.remote;
        let index = self.0.iter().position(|it| route.is_proxied() && leads(it))?;
        u32::try_from(index).ok().map(RelayId)
    }

    /// A relay is asked for now.
    pub fn ask(&mut self, now: Instant, id: RelayId) -> Option<GreetingRequest> {
        let pooled = self.get_mut(id)?;
        pooled.asked_at = now;
        let way = (pooled.local, pooled.address);
        Some(GreetingRequest {
            way,
            grant: pooled.word.grant().id,
            reach: pooled.reach,
            location_key: pooled.location_key.clone(),
        })
    }

    /// Notes that a relay does not lead to the peer. Returns its address, and when it was greeted.
    pub fn on_trouble(&mut self, id: RelayId, trouble: RelayTrouble) -> Option<(SocketAddr, Instant)> {
        let pooled = self.get_mut(id)?;
        pooled.trouble = Some(trouble);
        Some((pooled.address, pooled.asked_at))
    }

    /// The status of a relay. `tried`: its state in the connection.
    pub fn status(&self, tried: RelayAttempt) -> Option<RelayStatus> {
        let RelayAttempt { relay, standing, rtt, in_time, goodput, silences } = tried;
        let pooled = self.get(relay)?;
        let trouble = pooled.trouble.filter(|_| standing == RelayState::Unusable);
        Some(RelayStatus {
            relay: pooled.address,
            local: pooled.local,
            standing,
            trouble,
            rtt,
            in_time,
            goodput,
            silences,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use byway_wire::relay::{Grant, Minute, QuotaClass, RateClass, RelayKey, Scope, Terms};

    #[test]
    fn a_relay_is_entered_once_for_each_socket_and_the_pool_is_full_at_its_limit() {
        let terms = Terms {
            expiry: Minute::from_unix(1_900_000_000),
            rate: RateClass::UNLIMITED,
            quota: QuotaClass::UNLIMITED,
            scope: Scope::ALL,
        };
        let word = |id| {
            let address = SocketAddr::from(([192, 0, 2, 1], 4748));
            RelayKey::new(&[1; 32]).issue(Grant { id, terms }, vec![address]).unwrap()
        };
        let (mut pool, now) = (RelayPool::default(), Instant::ZERO);
        let way = |local| (Local(local), SocketAddr::from(([192, 0, 2, 1], 4748)));
        assert_eq!(pool.enter(now, way(0), &word(1), None), Some(RelayId(0)));
        assert_eq!(pool.enter(now, way(1), &word(1), None), Some(RelayId(1)));
        assert_eq!(pool.enter(now, way(0), &word(1), None), Some(RelayId(0)));
        for id in 2..MAX_RELAYS as u32 {
            assert_eq!(pool.enter(now, way(0), &word(id), None), Some(RelayId(id)));
        }
        assert_eq!(pool.enter(now, way(0), &word(1), None), Some(RelayId(0)), "known");
        assert_eq!(pool.enter(now, way(2), &word(1), None), None, "full");
    }

    #[test]
    fn a_word_that_holds_for_longer_replaces_the_one_before() {
        let word = |expires| {
            let terms = Terms {
                expiry: Minute::from_unix(expires),
                rate: RateClass::UNLIMITED,
                quota: QuotaClass::UNLIMITED,
                scope: Scope::ALL,
            };
            let address = SocketAddr::from(([192, 0, 2, 1], 4748));
            RelayKey::new(&[1; 32]).issue(Grant { id: 1, terms }, vec![address]).unwrap()
        };
        let way = (Local(0), SocketAddr::from(([192, 0, 2, 1], 4748)));
        let mut pool = RelayPool::default();
        for (expires, holds) in
            [(1_900_000_000, 1_900_000_000), (1_800_000_000, 1_900_000_000), (1_950_000_000, 1_950_000_000)]
        {
            let id = pool.enter(Instant::ZERO, way, &word(expires), None).unwrap();
            assert_eq!(pool.word(id), Some(&word(holds)));
        }
        assert_eq!(pool.words().count(), 1);
    }
}
