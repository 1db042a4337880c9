//! TCP beside UDP for one session: its peer and its relays are dialled where UDP brings no answer,
//! or far less than TCP.

use crate::session::dialing::{Dialer, MOST, ReplyState, SILENCE};
use crate::session::relay_dialing::RelayDialer;
use byway_engine::{Endpoint, Handle};
use byway_net::{Carrier, Ready, Watch};
use byway_wire::relay::Word;
use byway_wire::{Duration, Instant};
use std::net::SocketAddr;

/// Tokens of these begin here: other descriptors of an owner have smaller ones, and listeners
/// larger.
const TOKENS: u32 = 1 << 30;
/// Tokens of one session's: those of its peer's addresses, then those of relays.
const EACH: u32 = 128;

/// What dials for one session.
pub struct Dialers {
    /// The first of its tokens.
    first: u32,
    peer: Dialer,
    relays: RelayDialer,
}

impl Dialers {
    /// Makes TCP connections for one session: to the peer's `addresses` and to relays. Each item of
    /// `relays` is a relay word, which contains the addresses of one relay. `number` is different
    /// for each session of the same event loop.
    pub fn new<'a>(
        watch: &Watch,
        number: u16,
        addresses: &[SocketAddr],
        relays: impl Iterator<Item = &'a Word>,
    ) -> Self {
        let first = TOKENS + u32::from(number) * EACH;
        let relays = RelayDialer::new(watch, relays).with_tokens(first + MOST as u32);
        Self { first, peer: Dialer::new(watch, first, addresses), relays }
    }

    /// Dials nobody.
    #[must_use]
    pub fn never(watch: &Watch) -> Self {
        Self { first: TOKENS, peer: Dialer::new(watch, TOKENS, &[]), relays: RelayDialer::never(watch) }
    }

    /// Dials one more relay.
    pub fn add(&mut self, relay: &Word) {
        self.relays.add(relay);
    }

    /// Another session with the same peer begins: nobody has answered it yet.
    pub fn begin(&mut self) {
        self.peer.begin();
    }

    /// Opens TCP connections when UDP brings no answer. If both work, makes the session prefer the
    /// one that carries more. `silence`: how long the session has waited for an answer, or `None`
    /// if there is no session yet.
    pub fn look(&mut self, endpoint: &mut Endpoint, handle: Handle, silence: Option<Duration>, now: Instant) {
        let over_tcp = self.peer.addresses().iter().any(|address| endpoint.leads_to(*address));
        let (connected, waited) = (silence.is_some(), silence.unwrap_or_default());
        let answers = ReplyState { connected, silence: waited, over_tcp };
        self.peer.look(now, answers);
        let wanted = match connected {
            true => waited >= SILENCE || endpoint.goes_over_tcp(handle),
            false => self.peer.is_patient_no_more(now),
        };
        self.relays.look_for(now, wanted, answers.is_unheard(), |relay| endpoint.leads_to(relay));
        if let Some(connection) = endpoint.connection_mut(handle).filter(|_| connected) {
            self.peer.compare(now, connection);
        }
    }

    /// The addresses of the peer at which a TCP connection was accepted since the session was
    /// begun, by whomever.
    #[must_use]
    pub fn accepted(&self) -> &[SocketAddr] {
        self.peer.accepted()
    }

    /// Takes in that a descriptor is ready. Whether it is one of these.
    pub fn ready(&mut self, ready: Ready) -> bool {
        let own = (self.first..self.first + EACH).contains(&ready.token.0);
        own && (self.peer.ready(ready) || self.relays.ready(ready))
    }

    /// Connections for the driver.
    pub fn opened(&mut self) -> impl Iterator<Item = Carrier> + '_ {
        self.peer.opened().chain(self.relays.opened())
    }
}
