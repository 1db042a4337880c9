//! A rate that all holders of a word share, so that none of them uses it up for the others.

use crate::message::Reason;
use alloc::collections::BTreeMap;
use byway_wire::{Instant, Meter, NetworkPrefix};

/// The divisor of the limit for one network, once half of the burst is used.
const NETWORK_SHARE: u64 = 4;
/// The most networks with a rate limit of their own.
const MAX_NETWORKS: usize = 64;

/// The limits of a shared rate: units per second, and units at once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Units in a second.
    pub per_second: u64,
    /// Units at once.
    pub at_once: u64,
}

impl Limits {
    /// Whether a meter has room within one part in `share` of the burst.
    fn has_room(self, meter: &Meter, now: Instant, share: u64) -> bool {
        meter.wait(now, self.at_once / share * (1_000_000_000 / self.per_second)) == 0
    }
}

/// A rate limit shared by all networks, and the use of each.
#[derive(Debug)]
pub(super) struct SharedLimit {
    limits: Limits,
    all: Meter,
    networks: BTreeMap<NetworkPrefix, Meter>,
}

impl SharedLimit {
    /// A limit of which nothing is used yet.
    pub const fn new(limits: Limits) -> Self {
        Self { limits, all: Meter::FULL, networks: BTreeMap::new() }
    }

    /// Uses `units` units for a client in `network`. An error: its limit is reached.
    pub fn spend(&mut self, now: Instant, network: NetworkPrefix, units: u64) -> Result<(), Reason> {
        let Limits { per_second, at_once } = self.limits;
        let share = Limits { per_second: per_second / NETWORK_SHARE, at_once: at_once / NETWORK_SHARE };
        let is_scarce = !self.limits.has_room(&self.all, now, 2);
        let own = self.networks.get(&network).copied().unwrap_or_default();
        if !self.limits.has_room(&self.all, now, 1) || is_scarce && !share.has_room(&own, now, 1) {
            return Err(Reason::TooOften);
        }
        self.all.take(now, units, per_second);
        if self.networks.len() >= MAX_NETWORKS {
            self.networks.retain(|_, meter| !meter.is_full(now));
        }
        if self.networks.len() < MAX_NETWORKS || self.networks.contains_key(&network) {
            self.networks.entry(network).or_default().take(now, units, share.per_second);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use byway_wire::Duration;
    use std::net::IpAddr;
    use std::vec::Vec;

    const LIMITS: Limits = Limits { per_second: 50, at_once: 500 };

    fn network(number: u8) -> NetworkPrefix {
        NetworkPrefix::of(IpAddr::from([10, 0, number, 1]))
    }

    /// Asks as often as `from` says in each of 20 seconds: how many are answered.
    fn ask(limit: &mut SharedLimit, begin: u64, from: &[(u8, u32)]) -> BTreeMap<u8, u32> {
        let mut answered = BTreeMap::new();
        for millis in 0..20_000_u64 {
            let now = Instant::ZERO + Duration::from_millis(begin + millis);
            for (number, per_second) in from {
                if millis % (1_000 / u64::from(*per_second)) == 0
                    && limit.spend(now, network(*number), 1).is_ok()
                {
                    *answered.entry(*number).or_default() += 1;
                }
            }
        }
        answered
    }

    #[test]
    fn who_asks_without_end_leaves_the_others_of_his_word_their_answers() {
        let mut limit = SharedLimit::new(LIMITS);
        let flood = ask(&mut limit, 0, &[(1, 200)]);
        assert!((1_200..1_501).contains(&flood[&1]), "alone it has all: {flood:?}");
        let both = ask(&mut limit, 20_000, &[(1, 200), (2, 10), (3, 1)]);
        assert_eq!((both[&2], both[&3]), (200, 20), "{both:?}");
        assert!(both[&1] > 700, "what they leave is its: {both:?}");
    }

    #[test]
    fn all_together_have_what_the_word_has() {
        let mut limit = SharedLimit::new(LIMITS);
        let many: Vec<(u8, u32)> = (0..100).map(|number| (number, 10)).collect();
        let answered: u32 = ask(&mut limit, 0, &many).values().sum();
        assert!((1_490..=1_501).contains(&answered), "{answered}");
        assert!(limit.networks.len() <= MAX_NETWORKS);
    }
}
