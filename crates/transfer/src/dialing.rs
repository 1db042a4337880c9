//! TCP in place of UDP, where networks drop UDP or most of it: when the receiver's addresses are
//! dialled, and what comes of it.

use byway_engine::Connection;
use byway_engine::carrier_trials::{self, Sight, Trials};
use byway_net::{Carrier, Dialing, Ready, TcpCarrier, Token, Watch};
use byway_wire::{Duration, Instant};
use std::net::SocketAddr;

/// TCP is dialled so long after the first datagram if nothing was answered. Many networks take no
/// longer for two round trips.
pub(crate) const PATIENCE: Duration = Duration::from_millis(500);
/// A path that was in use may be silent for so long: most outages that are none are over by then.
pub(crate) const SILENCE: Duration = Duration::from_secs(1);
/// An address may take so long to answer a SYN: the kernel has repeated it twice by then.
const ANSWER: Duration = Duration::from_secs(5);
/// After a failure all addresses are dialled again so much later, and ever later.
const AGAIN: Duration = Duration::from_secs(2);
const AGAIN_AT_MOST: Duration = Duration::from_secs(30);
/// After a connection that served and is gone.
const RENEW: Duration = Duration::from_millis(500);
/// Addresses dialled, of those that a ticket names.
pub(crate) const MOST: usize = 8;

/// What is known of how the receiver answers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReplyState {
    /// Whether there is a session.
    pub connected: bool,
    /// For how long nothing was heard though something was waited for.
    pub silence: Duration,
    /// Whether a TCP connection carries datagrams, or may soon.
    pub over_tcp: bool,
}

/// Dials the receiver over TCP while UDP brings no answer, or far less than TCP.
pub(crate) struct Dialer {
    watch: Watch,
    /// The token of the first address.
    first: u32,
    addresses: Vec<SocketAddr>,
    begun: Option<Instant>,
    under_way: Vec<(Token, Dialing)>,
    give_up_at: Instant,
    next_at: Instant,
    failures: u32,
    opened: Vec<TcpCarrier>,
    /// Addresses at which a connection was accepted.
    accepted: Vec<SocketAddr>,
    trials: Trials,
    compared_at: Instant,
}

impl Dialer {
    /// Dials some of these addresses, [`MOST`] at most. None: never. Its tokens go on from `first`.
    pub fn new(watch: &Watch, first: u32, addresses: &[SocketAddr]) -> Self {
        Self {
            watch: watch.clone(),
            first,
            addresses: addresses.iter().copied().take(MOST).collect(),
            begun: None,
            under_way: Vec::new(),
            give_up_at: Instant::ZERO,
            next_at: Instant::ZERO,
            failures: 0,
            opened: Vec::new(),
            accepted: Vec::new(),
            trials: Trials::default(),
            compared_at: Instant::ZERO,
        }
    }

    /// Looks at how a session does, and has it prefer the carrier that carries more.
    pub fn compare(&mut self, now: Instant, connection: &mut Connection) {
        if now < self.compared_at || self.addresses.is_empty() {
            return;
        }
        self.compared_at = now + carrier_trials::EVERY;
        let carriage = self.trials.look(now, Sight::of(&connection.status()));
        connection.prefer(now, carriage);
    }

    /// Dials if it is time to.
    pub fn look(&mut self, now: Instant, answers: ReplyState) {
        let begun = *self.begun.get_or_insert(now);
        if answers.over_tcp {
            self.failures = 0;
            self.next_at = self.next_at.min(now + RENEW);
            return self.hang_up();
        }
        let is_wanted = match answers.connected {
            true => answers.silence >= SILENCE || self.trials.wants_tcp(),
            false => now.since(begun) >= PATIENCE,
        };
        if !self.under_way.is_empty() {
            if is_wanted && now < self.give_up_at {
                return;
            }
            self.hang_up();
        }
        if is_wanted && now >= self.next_at {
            self.dial(now);
        }
    }

    /// The addresses that it dials.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Where a connection was accepted since the session was begun.
    pub fn accepted(&self) -> &[SocketAddr] {
        &self.accepted
    }

    /// Whether so much time has passed since the beginning that an answer should have come.
    pub fn is_patient_no_more(&self, now: Instant) -> bool {
        self.begun.is_some_and(|begun| now.since(begun) >= PATIENCE)
    }

    fn dial(&mut self, now: Instant) {
        let wait = AGAIN.saturating_mul(1 << self.failures.min(4)).min(AGAIN_AT_MOST);
        self.failures = self.failures.saturating_add(1);
        (self.give_up_at, self.next_at) = (now + ANSWER, now + ANSWER.max(wait));
        for (address, number) in self.addresses.iter().zip(self.first..) {
            // Where the system knows no way, another address may lead there.
            let Ok(dialing) = Dialing::begin(*address, None) else { continue };
            let token = Token(number);
            if self.watch.add(&dialing, token).is_ok() {
                self.under_way.push((token, dialing));
            }
        }
    }

    fn hang_up(&mut self) {
        // Closed, they are watched no more.
        self.under_way.clear();
    }

    /// Another session is begun: nobody has answered it yet.
    pub fn begin(&mut self) {
        (self.begun, self.trials) = (None, Trials::default());
        self.accepted.clear();
    }

    /// Takes in that a descriptor is ready. Whether it is one of these.
    pub fn ready(&mut self, ready: Ready) -> bool {
        if !(self.first..self.first + MOST as u32).contains(&ready.token.0) {
            return false;
        }
        let at = self.under_way.iter().position(|(token, _)| *token == ready.token);
        if let Some(at) = at.filter(|_| ready.writable) {
            let (_, dialing) = self.under_way.swap_remove(at);
            let _ = self.watch.remove(&dialing);
            // If another host answers there, the handshake tells.
            if let Ok(carrier) = dialing.finish() {
                if !self.accepted.contains(&carrier.peer()) {
                    self.accepted.push(carrier.peer());
                }
                self.opened.push(carrier);
            }
        }
        true
    }

    /// Connections for the driver.
    pub fn opened(&mut self) -> impl Iterator<Item = Carrier> + '_ {
        self.opened.drain(..).map(Carrier::from)
    }
}
