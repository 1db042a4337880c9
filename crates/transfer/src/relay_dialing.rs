//! TCP to relays, where networks drop UDP: when each is dialled.

use byway_net::{Carrier, Dialing, Ready, TcpCarrier, Token, Watch};
use byway_wire::relay::Word;
use byway_wire::{Duration, Instant};
use std::net::SocketAddr;

/// A relay may take so long to answer a SYN: the kernel has repeated it twice by then.
const ANSWER: Duration = Duration::from_secs(5);
/// After a failure a relay is dialled again so much later, and ever later.
const AGAIN: Duration = Duration::from_secs(2);
/// One that served and is gone is dialled again so much later.
const RENEW: Duration = Duration::from_millis(500);
/// Relays dialled at most.
const MOST: usize = 64;
/// How often it is looked at which relays are served.
const LOOK: Duration = Duration::from_millis(50);
/// Tokens begin here: other descriptors of an owner have smaller ones, and listeners larger.
const TOKENS: u32 = 1 << 29;

/// Dials relays over TCP while UDP brings no answer.
pub struct RelayDialer {
    watch: Watch,
    relays: Vec<Dialed>,
    look_at: Instant,
    opened: Vec<TcpCarrier>,
}

struct Dialed {
    address: SocketAddr,
    under_way: Option<(Dialing, Instant)>,
    next_at: Instant,
    failures: u32,
}

impl RelayDialer {
    /// Dials some of the relays that these words name, at the first address of each family.
    pub fn new<'a>(watch: &Watch, words: impl Iterator<Item = &'a Word>) -> Self {
        let mut relays = Vec::new();
        for word in words {
            for v4 in [true, false] {
                relays.extend(word.relays().iter().find(|address| address.is_ipv4() == v4).copied());
            }
        }
        relays.sort();
        relays.dedup();
        relays.truncate(MOST);
        let dialed = |address| Dialed { address, under_way: None, next_at: Instant::ZERO, failures: 0 };
        let relays = relays.into_iter().map(dialed).collect();
        Self { watch: watch.clone(), relays, look_at: Instant::ZERO, opened: Vec::new() }
    }

    /// Dials what is wanted. `is_served`: whether a relay need not be dialled, or no more.
    pub fn look(&mut self, now: Instant, wanted: bool, is_served: impl Fn(SocketAddr) -> bool) {
        if now < self.look_at {
            return;
        }
        self.look_at = now + LOOK;
        for (relay, number) in self.relays.iter_mut().zip(TOKENS..) {
            if is_served(relay.address) {
                (relay.under_way, relay.failures) = (None, 0);
                relay.next_at = relay.next_at.min(now + RENEW);
                continue;
            }
            // Closed, it is watched no more.
            relay.under_way.take_if(|(_, until)| *until <= now);
            if !wanted || relay.under_way.is_some() || now < relay.next_at {
                continue;
            }
            relay.next_at = now + ANSWER.max(AGAIN * (1 << relay.failures.min(4)));
            relay.failures += 1;
            let Ok(dialing) = Dialing::begin(relay.address, None) else { continue };
            if self.watch.add(&dialing, Token(number)).is_ok() {
                relay.under_way = Some((dialing, now + ANSWER));
            }
        }
    }

    /// Takes in that a descriptor is ready. Whether it is one of these.
    pub fn ready(&mut self, ready: Ready) -> bool {
        let at = ready.token.0.checked_sub(TOKENS).and_then(|at| usize::try_from(at).ok());
        let Some(relay) = at.and_then(|at| self.relays.get_mut(at)) else { return false };
        if let Some((dialing, _)) = relay.under_way.take_if(|_| ready.writable) {
            let _ = self.watch.remove(&dialing);
            self.opened.extend(dialing.finish().ok());
        }
        true
    }

    /// Connections for the driver.
    pub fn opened(&mut self) -> impl Iterator<Item = Carrier> + '_ {
        self.opened.drain(..).map(Carrier::from)
    }
}
