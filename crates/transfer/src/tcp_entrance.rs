//! Where TCP connections come in that carry datagrams.

use byway_net::{Carrier, Listener, Ready, TcpCarrier, Token, Watch};
use std::io;

/// Tokens of listeners count down from here.
const LISTENERS: u32 = u32::MAX;

/// Listeners, and the connections that they took.
pub struct Entrance {
    listeners: Vec<Listener>,
    /// Indices of the listeners at which connections may wait.
    waiting: Vec<usize>,
    /// Connections for the driver.
    accepted: Vec<TcpCarrier>,
}

impl Entrance {
    /// Has these listeners watched.
    ///
    /// # Errors
    /// What the system says: no descriptor is left to watch.
    pub fn new(watch: &Watch, listeners: Vec<Listener>) -> io::Result<Self> {
        for (listener, number) in listeners.iter().zip(0..) {
            watch.add(listener, Token(LISTENERS - number))?;
        }
        Ok(Self { listeners, waiting: Vec::new(), accepted: Vec::new() })
    }

    /// Takes in that a descriptor is ready. Whether it is one of these.
    pub fn ready(&mut self, ready: Ready) -> bool {
        let listener = usize::try_from(LISTENERS - ready.token.0).ok();
        let own = listener.filter(|listener| *listener < self.listeners.len());
        self.waiting.extend(own);
        own.is_some()
    }

    /// Takes connections that wait, for one turn. Whether more may wait.
    pub fn turn(&mut self) -> bool {
        let Self { listeners, waiting, accepted } = self;
        waiting.retain(|at| listeners.get(*at).is_some_and(|listener| listener.accept(accepted)));
        !self.waiting.is_empty()
    }

    /// Connections for the driver.
    pub fn opened(&mut self) -> impl Iterator<Item = Carrier> + '_ {
        self.accepted.drain(..).map(Carrier::from)
    }
}
