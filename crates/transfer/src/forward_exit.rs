//! Sessions in which senders ask a receiver to connect their programs to targets.

use crate::close::CloseCode;
use crate::identity::PublicKey;
use byway_engine::connection::Event;
use byway_engine::{Endpoint, Handle};
use byway_forward::allow_rules::Allow;
use byway_forward_host::Exit;
use byway_net::{Control, Ready, Waker};
use byway_wire::Instant;
use byway_wire::fair_share::may_take;
use std::collections::BTreeMap;

/// Sessions with forwards at once, of all senders. One sender has half of these at most.
const MAX_SESSIONS: usize = 64;

/// Who asks, and the name of the program that does.
type ProgramId = (PublicKey, [u8; 16]);

/// The sessions, and the connections that are made for them.
pub(crate) struct Exits {
    exit: Exit,
    waker: Waker,
    sessions: BTreeMap<Handle, ProgramId>,
    /// Connections made so far, as far as was looked.
    made: u64,
    served: Option<PublicKey>,
}

impl Exits {
    /// `control` is that of the driver to come.
    pub fn new(allow: Allow, most: usize, control: &Control) -> Self {
        let (exit, waker) = (Exit::new(allow, most, control), control.waker().clone());
        Self { exit, waker, sessions: BTreeMap::new(), made: 0, served: None }
    }

    pub fn ready(&mut self, ready: Ready) {
        self.exit.ready(ready);
    }

    /// A session begins. One that the same program began before is over: it has lost it.
    pub fn accept(&mut self, endpoint: &mut Endpoint, handle: Handle, asker: ProgramId, now: Instant) {
        let before = self.sessions.iter().find(|(_, known)| **known == asker).map(|(handle, _)| *handle);
        if let Some(before) = before {
            self.leave(before);
            endpoint.close(now, before, CloseCode::Failed.number(), "the same program began another session");
        }
        let own = self.sessions.values().filter(|(sender, _)| *sender == asker.0).count();
        if !may_take(own, MAX_SESSIONS.saturating_sub(self.sessions.len())) {
            let reason = "the receiver serves as many senders as it may: try again later";
            endpoint.close(now, handle, CloseCode::Failed.number(), reason);
            return;
        }
        self.sessions.insert(handle, asker);
        self.exit.join(handle, asker.0.0);
    }

    /// Whether a program has a session.
    pub fn knows(&self, asker: &ProgramId) -> bool {
        self.sessions.values().any(|known| known == asker)
    }

    /// A session is over.
    pub fn leave(&mut self, handle: Handle) {
        if self.sessions.remove(&handle).is_some() {
            self.exit.leave(handle);
        }
    }

    /// Moves what can be moved.
    pub fn turn(&mut self, endpoint: &mut Endpoint, now: Instant) {
        if self.sessions.is_empty() {
            return;
        }
        for handle in self.sessions.keys().copied().collect::<Vec<_>>() {
            let mut over = false;
            if let Some(connection) = endpoint.connection_mut(handle) {
                while let Some(event) = connection.next_event() {
                    over |= matches!(event, Event::Closed { .. });
                }
            }
            if over {
                self.leave(handle);
            }
        }
        if self.exit.turn(endpoint, now) {
            self.waker.wake();
        }
        let (_, made) = self.exit.count();
        if std::mem::replace(&mut self.made, made) < made {
            self.served = self.sessions.values().next().map(|(peer, _)| *peer);
        }
    }

    /// Who was connected to a target since this was asked last: the ticket is theirs.
    pub const fn take_served(&mut self) -> Option<PublicKey> {
        self.served.take()
    }
}
