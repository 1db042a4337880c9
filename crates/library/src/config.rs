//! What an endpoint is made with.

use byway_engine::Config as SessionConfig;
use byway_transfer::Identity;
use byway_transfer::application_protocol::{Protocol, ProtocolNameError};
use byway_transfer::identity::PublicKey;
use byway_transfer::{Secret, default_dscp, receiving_config};
use byway_wire::relay::Word;
use std::net::SocketAddr;
use std::time::Duration;

pub use byway_control::Class as Priority;

/// Silence after which a connection is lost, unless told otherwise.
const IDLE: Duration = Duration::from_secs(30);
/// Streams that a peer may have open, unless told otherwise.
const STREAMS: u32 = 1024;
/// Connections at once, unless told otherwise.
const PEERS: usize = 1024;

/// How an endpoint is made. Each method sets one thing, and what is not set has a value that fits
/// most.
///
/// ```
/// use byway::{Config, Priority};
/// use std::time::Duration;
///
/// let config = Config::new()
///     .protocol("chat/1")?
///     .bind(["127.0.0.1:0".parse()?])
///     .priority(Priority::Background)
///     .idle_timeout(Duration::from_secs(10));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Config(Settings);

/// What is set.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The key pair of this host.
    pub identity: Option<Identity>,
    /// What its tickets say.
    pub permission: Option<Secret<[u8; 16]>>,
    /// Whom a listener admits; empty: whoever holds its ticket.
    pub allow: Vec<PublicKey>,
    /// What is spoken.
    pub protocol: Protocol,
    /// What to bind; empty: what leads to the others.
    pub bind: Vec<SocketAddr>,
    /// Relays: a listener stands at them, and who connects goes through them too.
    pub relays: Vec<Word>,
    /// What governs what is sent.
    pub priority: Priority,
    /// Silence after which a connection is lost.
    pub idle_timeout: Duration,
    /// Streams that each peer may have open.
    pub streams: u32,
    /// How many connections there are at once, at most.
    pub peers: usize,
    /// Whether TCP may take the place of UDP.
    pub tcp: bool,
    /// Bytes of memory for what arrives; `None`: half of the machine's.
    pub memory: Option<u64>,
    /// Bytes per second that are sent to each peer at most.
    pub limit: Option<u64>,
}

impl Default for Config {
    fn default() -> Self {
        Self::new()
    }
}

impl Config {
    /// What fits most: a new identity, every address of this host that leads to the other side, and
    /// no relays.
    #[must_use]
    pub fn new() -> Self {
        Self(Settings {
            identity: None,
            permission: None,
            allow: Vec::new(),
            protocol: Protocol::default(),
            bind: Vec::new(),
            relays: Vec::new(),
            priority: Priority::Normal,
            idle_timeout: IDLE,
            streams: STREAMS,
            peers: PEERS,
            tcp: true,
            memory: None,
            limit: None,
        })
    }

    /// The name of what the application speaks, for instance `chat/1`. Two endpoints that name
    /// different protocols refuse each other. Unless it is set, it is empty.
    ///
    /// # Errors
    /// It is longer than 32 bytes, or has other characters than printable ones of ASCII without
    /// spaces.
    pub fn protocol(mut self, name: &str) -> Result<Self, ProtocolNameError> {
        self.0.protocol = name.parse()?;
        Ok(self)
    }

    /// The key pair of this host, by which peers know it. Unless it is set, each endpoint has a new
    /// one.
    #[must_use]
    pub fn identity(mut self, identity: Identity) -> Self {
        self.0.identity = Some(identity);
        self
    }

    /// The secret by which a listener knows its own tickets. With the same identity, addresses and
    /// permission a ticket outlives its listener. Unless it is set, each listener has a new one.
    #[must_use]
    pub fn permission(mut self, permission: Secret<[u8; 16]>) -> Self {
        self.0.permission = Some(permission);
        self
    }

    /// The only peers that a listener admits, if they hold its ticket too. Unless it is set,
    /// whoever holds the ticket is admitted.
    #[must_use]
    pub fn allow(mut self, keys: impl IntoIterator<Item = PublicKey>) -> Self {
        self.0.allow = keys.into_iter().collect();
        self
    }

    /// The local addresses to use: each is a path more. Port 0 stands for any. Unless they are set,
    /// a listener uses all addresses of this host, and who connects uses those that lead to the
    /// listener.
    #[must_use]
    pub fn bind(mut self, addresses: impl IntoIterator<Item = SocketAddr>) -> Self {
        self.0.bind = addresses.into_iter().collect();
        self
    }

    /// Words of relays. A listener can be reached through them, and names them in its ticket. Who
    /// connects uses them as paths beside the direct ones.
    #[must_use]
    pub fn relays(mut self, words: impl IntoIterator<Item = Word>) -> Self {
        self.0.relays = words.into_iter().collect();
        self
    }

    /// How what this side sends shares the network with others: [`Priority::Normal`], unless it is
    /// set, is fair to TCP on the best path, and [`Priority::Background`] yields to all others.
    #[must_use]
    pub fn priority(mut self, priority: Priority) -> Self {
        self.0.priority = priority;
        self
    }

    /// How long nothing may be heard of a peer before its connection is lost. 30 seconds, unless it
    /// is set. A silent peer is asked in time, so a connection without data lives on.
    #[must_use]
    pub fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.0.idle_timeout = timeout;
        self
    }

    /// Uses UDP alone. Unless this is set, a listener takes TCP connections at its ports too. Who
    /// connects uses TCP where UDP brings no answer, or far less than TCP.
    #[must_use]
    pub fn udp_only(mut self) -> Self {
        self.0.tcp = false;
        self
    }

    /// Streams that each peer may have open at once. A peer that wants more waits. 1024, unless it
    /// is set, and 16384 at most.
    #[must_use]
    pub fn streams(mut self, streams: u32) -> Self {
        self.0.streams = streams.min(crate::session::MOST_STREAMS);
        self
    }

    /// Connections that an endpoint has at once; others are refused. 1024, unless it is set.
    #[must_use]
    pub fn peers(mut self, peers: usize) -> Self {
        self.0.peers = peers;
        self
    }

    /// Bytes of memory for what arrived and the application has not read, of all connections of the
    /// endpoint together. Half of the machine's memory, unless it is set; at least 4 MiB.
    #[must_use]
    pub fn memory(mut self, bytes: u64) -> Self {
        self.0.memory = Some(bytes);
        self
    }

    /// Bytes per second that this side sends at most to each peer, over all paths together. As many
    /// as the paths carry, unless it is set.
    #[must_use]
    pub fn bandwidth_limit(mut self, bytes_per_second: u64) -> Self {
        self.0.limit = Some(bytes_per_second);
        self
    }

    /// What is set.
    pub(crate) fn into_settings(self) -> Settings {
        self.0
    }
}

impl Settings {
    /// How the sessions of the endpoint behave.
    pub fn session(&self) -> SessionConfig {
        let mut config = receiving_config(None, self.memory);
        config.idle_timeout = self.idle_timeout;
        config.cap = self.limit;
        config.datagrams = crate::datagrams::MOST;
        config.dscp = default_dscp(self.priority.default_name());
        // What is over there may not be over here yet; and the stream of what the libraries say.
        config.incoming.streams = 2 * self.streams as usize + 2;
        config
    }
}
