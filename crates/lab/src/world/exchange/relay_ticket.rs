//! The part of an exchange's ticket that names relays.

use byway_engine::RelayRoute;
use byway_wire::relay::{Consent, Word};
use core::net::SocketAddr;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// The part of a ticket about relays: the receiver's address as each relay sees it, and the
/// receiver's consent. Both hosts share it, as if a person had passed it on.
#[derive(Clone, Debug, Default)]
pub(in crate::world) struct RelayTicket(Rc<RefCell<TicketState>>);

#[derive(Debug, Default)]
struct TicketState {
    entries: BTreeMap<SocketAddr, (SocketAddr, Consent)>,
    /// Number of changes of the ticket.
    version: u32,
}

impl RelayTicket {
    /// The receiver can be reached through a relay.
    pub(super) fn reach(&self, relay: SocketAddr, address: SocketAddr, consent: Consent) {
        let mut state = self.0.borrow_mut();
        state.entries.insert(relay, (address, consent));
        state.version += 1;
    }

    /// Returns the number of changes of the ticket.
    pub(super) fn version(&self) -> u32 {
        self.0.borrow().version
    }

    /// Returns the route to the receiver through the relay of a relay word, if the ticket names it.
    pub(super) fn route(&self, word: &Word) -> Option<RelayRoute> {
        let state = self.0.borrow();
        let (destination, consent) = word.relays().first().and_then(|relay| state.entries.get(relay))?;
        let reach = Some((*destination, *consent));
        Some(RelayRoute { word: word.clone(), reach, location_key: None })
    }
}
