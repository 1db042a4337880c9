//! Where TCP connections come in that carry datagrams.

use byway_net::{Backlog, Carrier, Listener, Ready, TcpCarrier, Token, Watch};
use byway_wire::{Duration, Instant};
use std::io;

/// The token of the first listener. Later listeners have the preceding numbers.
const FIRST_LISTENER_TOKEN: u32 = u32::MAX;

/// Time for which listeners pause after a failure for want of descriptors or memory.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// TCP listeners, and the connections that they accepted.
pub struct Entrance {
    listeners: Vec<Listener>,
    /// Indices of the listeners at which connections may wait.
    waiting: Vec<usize>,
    /// The end of the listeners' pause.
    rest_until: Option<Instant>,
    /// Connections for the driver.
    accepted: Vec<TcpCarrier>,
}

impl Entrance {
    /// Makes an entrance with these listeners, and adds them to the event loop's watched sockets.
    ///
    /// # Errors
    /// What the system says: no descriptor is left to watch.
    pub fn new(watch: &Watch, listeners: Vec<Listener>) -> io::Result<Self> {
        for (listener, number) in listeners.iter().zip(0..) {
            watch.add(listener, Token(FIRST_LISTENER_TOKEN - number))?;
        }
        Ok(Self { listeners, waiting: Vec::new(), rest_until: None, accepted: Vec::new() })
    }

    /// Handles a ready descriptor. Returns whether it is one of the listeners.
    pub fn ready(&mut self, ready: Ready) -> bool {
        let listener = usize::try_from(FIRST_LISTENER_TOKEN - ready.token.0).ok();
        let own = listener.filter(|listener| *listener < self.listeners.len());
        // One that waits already is looked at anyway.
        self.waiting.extend(own.filter(|at| !self.waiting.contains(at)));
        own.is_some()
    }

    /// Takes connections that wait, for one turn. Returns whether more may be taken in another turn
    /// at once. If descriptors or memory are short, the next turn is due at the
    /// [`deadline`](Self::deadline).
    pub fn turn(&mut self, now: Instant) -> bool {
        if self.rest_until.is_some_and(|until| now < until) {
            return false;
        }
        self.rest_until = None;
        let Self { listeners, waiting, rest_until, accepted } = self;
        waiting.retain(|at| {
            let left = listeners.get(*at).map_or(Backlog::Empty, |listener| listener.accept(accepted));
            if left == Backlog::OutOfResources {
                *rest_until = Some(now + ACCEPT_RETRY_DELAY);
            }
            left != Backlog::Empty
        });
        !self.waiting.is_empty() && self.rest_until.is_none()
    }

    /// When listeners that pause are tried again. `None`: none pause.
    pub const fn deadline(&self) -> Option<Instant> {
        self.rest_until
    }

    /// Connections for the driver.
    pub fn opened(&mut self) -> impl Iterator<Item = Carrier> + '_ {
        self.accepted.drain(..).map(Carrier::from)
    }
}
