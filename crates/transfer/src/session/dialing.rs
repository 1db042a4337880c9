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
/// A connection is there for so long and the session hears nothing: the way may lose large packets.
/// The next connections have small segments.
pub(crate) const NARROW_AFTER: Duration = Duration::from_secs(3);
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

impl ReplyState {
    /// Whether nothing was heard for so long that a connection should have helped.
    pub const fn is_unheard(&self) -> bool {
        !self.connected || self.silence.as_nanos() >= NARROW_AFTER.as_nanos()
    }
}

/// Whether the way to an address seems to lose large TCP segments: a connection is accepted, and
/// nothing is heard by it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NarrowWay {
    over_tcp_since: Option<Instant>,
    is_narrow: bool,
}

impl NarrowWay {
    /// Takes in whether there is a connection, and whether the session hears nothing. Returns
    /// whether the address is to be dialled now with small segments, which happens once.
    pub fn look(&mut self, now: Instant, over_tcp: bool, is_unheard: bool) -> bool {
        if !over_tcp {
            self.over_tcp_since = None;
            return false;
        }
        let since = *self.over_tcp_since.get_or_insert(now);
        let is_due = !self.is_narrow && is_unheard && now.since(since) >= NARROW_AFTER;
        self.is_narrow |= is_due;
        is_due
    }

    /// Whether connections have small segments.
    pub const fn is_narrow(self) -> bool {
        self.is_narrow
    }

    /// Dials the address.
    pub fn begin(self, address: SocketAddr) -> std::io::Result<Dialing> {
        match self.is_narrow {
            true => Dialing::begin_narrow(address, None),
            false => Dialing::begin(address, None),
        }
    }
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
    narrow: NarrowWay,
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
            narrow: NarrowWay::default(),
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
        if self.narrow.look(now, answers.over_tcp, answers.is_unheard()) {
            self.hang_up();
            self.dial(now);
        }
        if self.narrow.is_narrow && answers.over_tcp && answers.is_unheard() && now < self.give_up_at {
            return;
        }
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
            let Ok(dialing) = self.narrow.begin(*address) else { continue };
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
        self.narrow = NarrowWay::default();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_by_which_nothing_is_heard_is_followed_by_a_narrow_one() {
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let mut way = NarrowWay::default();
        assert!(!way.look(at(1), false, true) && !way.look(at(60), true, true));
        // It is heard, and then nothing more.
        assert!(!way.look(at(70), true, false) && !way.is_narrow);
        assert!(way.look(at(71), true, true) && way.is_narrow);
        assert!(!way.look(at(90), true, true), "once");
        assert!(!way.look(at(91), false, true) && way.is_narrow, "the next are narrow too");
    }

    #[test]
    fn a_new_connection_has_three_seconds() {
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let mut way = NarrowWay::default();
        assert!(
            !way.look(at(10), true, true) && !way.look(at(12), true, true) && way.look(at(13), true, true)
        );
    }
}
