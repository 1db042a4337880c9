//! Limits how much work strangers may cause. For each HELLO this side multiplies on an elliptic
//! curve, before the sender has proved anything. No other work without proof costs as much, and a
//! forged HELLO costs its sender nothing.

use alloc::collections::BTreeMap;
use byway_wire::{Duration, Instant, Meter, NetworkPrefix};

/// The most HELLOs in a burst before cookies are required.
const BURST_HELLOS: u32 = 64;
/// The most additional HELLOs in a burst whose senders showed a cookie.
const MAX_COOKIE_HELLOS: u32 = 1_024;
/// The divisor of the whole rate for one network, once cookies are required. So no single network
/// uses up the rate.
const NETWORK_DIVISOR: u32 = 4;
/// The most HELLOs of one network that may arrive at once.
const NETWORK_BURST_HELLOS: u32 = 16;
/// The most networks with a rate limit of their own.
const MAX_NETWORKS: usize = 1_024;

/// The reaction to an unread HELLO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HelloDecision {
    /// The HELLO is computed on.
    None,
    /// Compute on the HELLO only if its sender shows a valid cookie.
    Cookie,
    /// The HELLO is dropped.
    Drop,
}

/// Meters of HELLOs computed on.
#[derive(Debug)]
pub(super) struct HelloLimiter {
    /// Time that must pass for each HELLO computed on.
    pace: Duration,
    /// The meter of all senders.
    all: Meter,
    /// The rate limits of networks whose senders have proved that they receive there.
    networks: BTreeMap<NetworkPrefix, Meter>,
}

impl HelloLimiter {
    /// A limit of `per_second` HELLOs a second that are computed on.
    pub(super) fn new(per_second: u32) -> Self {
        let pace = Duration::from_secs(1) / per_second.max(1);
        Self { pace, all: Meter::default(), networks: BTreeMap::new() }
    }

    /// The decision about a HELLO at this time. `shown`: the sender's network, if it shows a
    /// cookie.
    pub(super) fn care(&self, now: Instant, shown: Option<NetworkPrefix>) -> HelloDecision {
        let debt = self.all.debt(now);
        if debt < self.pace * BURST_HELLOS {
            return HelloDecision::None;
        }
        let own = shown.and_then(|network| self.networks.get(&network)).map(|meter| meter.debt(now));
        if debt >= self.pace * (BURST_HELLOS + MAX_COOKIE_HELLOS)
            || own.is_some_and(|own| own >= self.pace * NETWORK_DIVISOR * NETWORK_BURST_HELLOS)
        {
            return HelloDecision::Drop;
        }
        HelloDecision::Cookie
    }

    /// Counts a HELLO that was computed on.
    pub(super) fn spend(&mut self, now: Instant, shown: Option<NetworkPrefix>) {
        self.all.lend(now, self.pace);
        let Some(network) = shown else { return };
        if self.networks.len() >= MAX_NETWORKS && !self.networks.contains_key(&network) {
            self.networks.retain(|_, meter| !meter.is_full(now));
        }
        // With `MAX_NETWORKS` networks at once, the meter of all has to do.
        if self.networks.len() < MAX_NETWORKS || self.networks.contains_key(&network) {
            self.networks.entry(network).or_default().lend(now, self.pace * NETWORK_DIVISOR);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACE: Duration = Duration::from_millis(5);

    fn network(number: u32) -> Option<NetworkPrefix> {
        Some(NetworkPrefix::of((number << 8).to_be_bytes().into()))
    }

    #[test]
    fn a_burst_is_free_then_cookies_then_nothing_and_rest_helps() {
        let mut hello_limiter = HelloLimiter::new(200);
        let mut now = Instant::from_millis(1_000);
        for spent in 0..BURST_HELLOS + MAX_COOKIE_HELLOS {
            let care = hello_limiter.care(now, network(spent / 8));
            assert_eq!(care, if spent < BURST_HELLOS { HelloDecision::None } else { HelloDecision::Cookie });
            hello_limiter.spend(now, network(spent / 8));
        }
        assert_eq!(hello_limiter.care(now, network(5_000)), HelloDecision::Drop);
        now += PACE;
        assert_eq!(hello_limiter.care(now, network(5_000)), HelloDecision::Cookie);
        now += PACE * MAX_COOKIE_HELLOS;
        assert_eq!(hello_limiter.care(now, None), HelloDecision::None);
    }

    #[test]
    fn one_network_does_not_use_up_what_there_is_for_all() {
        let mut hello_limiter = HelloLimiter::new(200);
        let mut dropped = 0;
        for millis in 0..60_000 {
            let now = Instant::from_millis(millis);
            match hello_limiter.care(now, network(1)) {
                HelloDecision::Drop => dropped += 1,
                _ => hello_limiter.spend(now, network(1)),
            }
            assert_ne!(hello_limiter.care(now, network(2)), HelloDecision::Drop);
            assert_ne!(hello_limiter.care(now, None), HelloDecision::Drop);
        }
        assert!(dropped > 45_000, "{dropped}");
        (0..100_000).for_each(|number| hello_limiter.spend(Instant::from_millis(60_000), network(number)));
        assert!(hello_limiter.networks.len() <= MAX_NETWORKS);
    }
}
