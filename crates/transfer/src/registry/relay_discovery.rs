//! Relays that a registry offers, for whoever runs for long: asked for from a socket of its own,
//! and again before they end.

use super::transfer_relays::{FindPlan, Finder};
use crate::endpoint::endpoint;
use crate::error::Error;
use crate::identity::Identity;
use crate::sockets;
use byway_engine::{Config, Endpoint, EndpointEvent};
use byway_net::{Clock, Control, LoopControl, Owner};
use byway_wire::{Instant, relay};
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

/// Lists that wait for the program.
const MAX_QUEUED_LISTS: usize = 8;

/// The result of a request to a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FindEvent {
    /// Relays to try. Known relays may be among them, with relay words that are valid for longer.
    Relays(Vec<relay::Word>),
    /// The registry does not help for now, for this reason. It is asked again later.
    Useless(String),
}

/// A registry that is asked again and again.
pub struct RelayDiscovery {
    driver: byway_net::Handle<Seeker>,
    news: Receiver<FindEvent>,
}

impl RelayDiscovery {
    /// Starts to ask the registry. The first event has the relays of the last list, if that was
    /// saved.
    ///
    /// # Errors
    /// The system gives no socket or thread.
    pub fn start(identity: &Identity, plan: FindPlan) -> Result<Self, Error> {
        let destinations: Vec<_> = plan.word.addresses.iter().map(SocketAddr::ip).collect();
        let (finder, kept) = Finder::new(plan);
        let (news, inbox) = sync_channel(MAX_QUEUED_LISTS);
        let owner = Seeker { finder, waiting: Some(FindEvent::Relays(kept)), news };
        let control = Control::new().map_err(Error::Descriptor)?;
        let endpoint = endpoint(identity, Config::default(), None)?;
        let sockets = sockets::sending(&[], &destinations)?;
        let driver = byway_net::spawn_with(control, "byway find", endpoint, owner, sockets, Clock::new())
            .map_err(Error::Thread)?;
        Ok(Self { driver, news: inbox })
    }

    /// The next thing that happened, if anything did. To be called a few times a second.
    pub fn look(&self) -> Option<FindEvent> {
        self.driver.waker().wake();
        self.news.try_recv().ok()
    }
}

struct Seeker {
    finder: Finder,
    /// An event that did not fit into the program's queue.
    waiting: Option<FindEvent>,
    news: SyncSender<FindEvent>,
}

impl Owner for Seeker {
    type Machine = Endpoint;

    fn turn(&mut self, endpoint: &mut Endpoint, now: Instant) -> LoopControl {
        while let Some(event) = endpoint.next_event() {
            let is_known = self.finder.on_event(&event, now);
            if let (EndpointEvent::Closed(handle), false) = (event, is_known) {
                endpoint.forget(handle);
            }
        }
        if self.waiting.is_none() {
            let found = self.finder.look(endpoint, now);
            if !found.words.is_empty() {
                self.waiting = Some(FindEvent::Relays(found.words));
            } else {
                self.waiting = found.trouble.map(FindEvent::Useless);
            }
        }
        if let Some(news) = self.waiting.take() {
            let empty = matches!(&news, FindEvent::Relays(words) if words.is_empty());
            if !empty && let Err(TrySendError::Full(news)) = self.news.try_send(news) {
                self.waiting = Some(news);
            }
        }
        LoopControl::Continue
    }
}
