//! Sessions in which senders ask a receiver to connect their programs to targets.

use crate::close::CloseCode;
use crate::identity::PublicKey;
use crate::session_seats::network_of;
use byway_engine::connection::Event;
use byway_engine::{Endpoint, Handle};
use byway_forward::allow_rules::Allow;
use byway_forward_host::Exit;
use byway_net::{Control, Ready, Waker};
use byway_wire::fair_share::may_take;
use byway_wire::{Instant, NetworkPrefix};
use std::collections::BTreeMap;

/// Sessions with forwards at once, of all senders. Each `forward --stdio` has one, so that a person
/// needs many. One sender has half of these at most, and so has one network: who holds the ticket
/// may have many keys. An idle session takes some 100 KB.
const MAX_SESSIONS: usize = 512;

/// The sender's key, and the id of its program.
type ProgramId = (PublicKey, [u8; 16]);

/// The sender of a session.
#[derive(Clone, Copy, Debug)]
struct SessionOwner {
    program: ProgramId,
    /// The network of the sender's host. `None`: it is this host.
    network: Option<NetworkPrefix>,
}

impl SessionOwner {
    /// Whether another session of this owner may begin beside `sessions`.
    fn may_begin<'a>(&self, sessions: impl Iterator<Item = &'a Self> + Clone) -> bool {
        let free = MAX_SESSIONS.saturating_sub(sessions.clone().count());
        let of_sender = sessions.clone().filter(|other| other.program.0 == self.program.0).count();
        let of_network = sessions.filter(|other| other.network == self.network).count();
        may_take(of_sender, free) && (self.network.is_none() || may_take(of_network, free))
    }
}

/// All sessions that ask for forwarded connections, and their connections to targets.
pub(crate) struct Exits {
    exit: Exit,
    waker: Waker,
    sessions: BTreeMap<Handle, SessionOwner>,
    /// The number of connections made at the last look.
    made: u64,
    served: Option<PublicKey>,
}

impl Exits {
    /// Makes an exit without sessions. `control` belongs to the event loop that will drive the
    /// exit.
    pub fn new(allow: Allow, most: usize, control: &Control) -> Self {
        let (exit, waker) = (Exit::new(allow, most, control), control.waker().clone());
        Self { exit, waker, sessions: BTreeMap::new(), made: 0, served: None }
    }

    pub fn ready(&mut self, ready: Ready) {
        self.exit.ready(ready);
    }

    /// A session begins. One that the same program began before is over: it has lost it.
    pub fn accept(&mut self, endpoint: &mut Endpoint, handle: Handle, asker: ProgramId, now: Instant) {
        let known = self.sessions.iter().find(|(_, known)| known.program == asker);
        let before = known.map(|(handle, _)| *handle);
        if let Some(before) = before {
            self.leave(endpoint, before, now);
            endpoint.close(now, before, CloseCode::Failed.number(), "the same program began another session");
        }
        let owner = SessionOwner { program: asker, network: network_of(endpoint, handle) };
        if !owner.may_begin(self.sessions.values()) {
            let reason = "the receiver serves as many senders as it may: try again later";
            endpoint.close(now, handle, CloseCode::Failed.number(), reason);
            return;
        }
        self.sessions.insert(handle, owner);
        self.exit.join(handle, asker.0.0);
    }

    /// Whether a program has a session.
    pub fn knows(&self, asker: &ProgramId) -> bool {
        self.sessions.values().any(|known| known.program == *asker)
    }

    /// Ends the connections of a session that ended, before the endpoint forgets the session.
    pub fn leave(&mut self, endpoint: &mut Endpoint, handle: Handle, now: Instant) {
        if self.sessions.remove(&handle).is_some() {
            self.exit.leave(handle, endpoint.connection_mut(handle), now);
        }
    }

    /// Moves bytes of all sessions, as far as possible without waiting.
    pub fn turn(&mut self, endpoint: &mut Endpoint, now: Instant) {
        for handle in self.sessions.keys().copied().collect::<Vec<_>>() {
            let mut over = false;
            if let Some(connection) = endpoint.connection_mut(handle) {
                while let Some(event) = connection.next_event() {
                    over |= matches!(event, Event::Closed { .. });
                }
            }
            if over {
                self.leave(endpoint, handle, now);
            }
        }
        if self.exit.turn(endpoint, now) {
            self.waker.wake();
        }
        let (_, made) = self.exit.count();
        if std::mem::replace(&mut self.made, made) < made {
            self.served = self.sessions.values().next().map(|owner| owner.program.0);
        }
    }

    /// Whether no session has a connection.
    pub fn is_idle(&self) -> bool {
        self.exit.is_idle()
    }

    /// Returns the sender that was connected to a target since the last call. It becomes the owner
    /// of the ticket.
    pub const fn take_served(&mut self) -> Option<PublicKey> {
        self.served.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    fn network(number: u8) -> Option<NetworkPrefix> {
        Some(NetworkPrefix::of(IpAddr::from([198, 51, number, 7])))
    }

    /// Begins sessions with a new key for each number of the range. Returns how many of them are
    /// admitted.
    fn begin(
        sessions: &mut Vec<SessionOwner>,
        keys: std::ops::Range<u16>,
        network: Option<NetworkPrefix>,
    ) -> usize {
        let before = sessions.len();
        for key in keys {
            let mut secret = [0; 32];
            secret[..2].copy_from_slice(&key.to_be_bytes());
            let owner = SessionOwner { program: (PublicKey(secret), [0; 16]), network };
            if owner.may_begin(sessions.iter()) {
                sessions.push(owner);
            }
        }
        sessions.len() - before
    }

    #[test]
    fn one_network_with_many_keys_takes_half_of_the_sessions_at_most() {
        let mut sessions = Vec::new();
        let most = MAX_SESSIONS as u16;
        assert_eq!(begin(&mut sessions, 0..most, network(1)), MAX_SESSIONS / 2);
        assert_eq!(begin(&mut sessions, 0..most, network(2)), MAX_SESSIONS / 4);
        assert_eq!(begin(&mut sessions, most..most + 1, network(3)), 1);
        // Programs of this host may have the rest.
        assert_eq!(begin(&mut sessions, most + 1..3 * most, None), MAX_SESSIONS / 4 - 1);
    }

    #[test]
    fn one_key_takes_half_of_the_sessions_at_most_wherever_it_is() {
        let mut sessions = Vec::new();
        let networks = (0..MAX_SESSIONS).map(|number| network(number as u8));
        let begun: usize = networks.map(|network| begin(&mut sessions, 7..8, network)).sum();
        assert_eq!(begun, MAX_SESSIONS / 2);
        assert_eq!(begin(&mut sessions, 7..8, None), 0);
    }
}
