//! TCP to relays, where networks drop UDP: when each is dialled.

use crate::session::dialing::NarrowWay;
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
/// Tokens begin here unless others are told: an owner's other descriptors have smaller ones, and
/// listeners larger.
const TOKENS: u32 = 1 << 29;

/// Dials relays over TCP while UDP brings no answer.
pub struct RelayDialer {
    watch: Watch,
    /// The token of the first relay.
    first: u32,
    relays: Vec<Dialed>,
    /// How many are dialled at most.
    most: usize,
    look_at: Instant,
    opened: Vec<TcpCarrier>,
}

struct Dialed {
    address: SocketAddr,
    under_way: Option<(Dialing, Instant)>,
    next_at: Instant,
    failures: u32,
    narrow: NarrowWay,
}

impl Dialed {
    fn new(address: SocketAddr) -> Self {
        let (next_at, narrow) = (Instant::ZERO, NarrowWay::default());
        Self { address, under_way: None, next_at, failures: 0, narrow }
    }

    fn dial(&mut self, now: Instant, watch: &Watch, token: Token) {
        let Ok(dialing) = self.narrow.begin(self.address) else { return };
        if watch.add(&dialing, token).is_ok() {
            self.under_way = Some((dialing, now + ANSWER));
        }
    }
}

impl RelayDialer {
    /// Dials some of the relays that these words name, at the first address of each family.
    pub fn new<'a>(watch: &Watch, words: impl Iterator<Item = &'a Word>) -> Self {
        let mut dialer = Self { most: MOST, ..Self::never(watch) };
        words.for_each(|word| dialer.add(word));
        dialer
    }

    /// Numbers the descriptors of its connections from `first` on. Must be called before it dials.
    pub(crate) const fn with_tokens(mut self, first: u32) -> Self {
        self.first = first;
        self
    }

    /// Dials nobody.
    #[must_use]
    pub fn never(watch: &Watch) -> Self {
        let (relays, opened) = (Vec::new(), Vec::new());
        Self { watch: watch.clone(), first: TOKENS, relays, most: 0, look_at: Instant::ZERO, opened }
    }

    /// Dials one more, unless it is one of them or there are too many.
    pub fn add(&mut self, word: &Word) {
        for v4 in [true, false] {
            let Some(address) = word.relays().iter().find(|address| address.is_ipv4() == v4) else {
                continue;
            };
            let is_new = self.relays.iter().all(|relay| relay.address != *address);
            if is_new && self.relays.len() < self.most {
                self.relays.push(Dialed::new(*address));
            }
        }
    }

    /// Dials what is wanted. `is_served`: whether a relay need not be dialled, or no more.
    pub fn look(&mut self, now: Instant, wanted: bool, is_served: impl Fn(SocketAddr) -> bool) {
        self.look_for(now, wanted, false, is_served);
    }

    /// The same. `is_unheard`: whether the session that the relays are to serve hears nothing.
    pub(crate) fn look_for(
        &mut self,
        now: Instant,
        wanted: bool,
        is_unheard: bool,
        is_served: impl Fn(SocketAddr) -> bool,
    ) {
        if now < self.look_at {
            return;
        }
        self.look_at = now + LOOK;
        for (relay, number) in self.relays.iter_mut().zip(self.first..) {
            let is_there = is_served(relay.address);
            if relay.narrow.look(now, is_there, is_unheard) {
                relay.dial(now, &self.watch, Token(number));
                continue;
            }
            let waits = is_unheard && relay.narrow.is_narrow();
            if is_there && waits && relay.under_way.as_ref().is_some_and(|(_, until)| now < *until) {
                continue;
            }
            if is_there {
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
            relay.dial(now, &self.watch, Token(number));
        }
    }

    /// Takes in that a descriptor is ready. Whether it is one of these.
    pub fn ready(&mut self, ready: Ready) -> bool {
        let at = ready.token.0.checked_sub(self.first).and_then(|at| usize::try_from(at).ok());
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
