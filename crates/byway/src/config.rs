//! The options of an endpoint.

use byway_engine::Config as SessionConfig;
use byway_transfer::Identity;
use byway_transfer::application_protocol::{Protocol, ProtocolNameError};
use byway_transfer::identity::PublicKey;
use byway_transfer::{Secret, default_dscp, receiving_config};
use byway_wire::relay::Word;
use std::net::SocketAddr;
use std::time::Duration;

pub use byway_control::Class as Priority;

/// The default silence of the peer after which a connection counts as lost.
const DEFAULT_IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// The default limit of streams that a peer may have open.
const DEFAULT_MAX_STREAMS: u32 = 1024;
/// The default limit of connections at once.
const DEFAULT_MAX_PEERS: usize = 1024;

/// The options of an endpoint. Each method sets one option. Every option has a default that suits
/// most applications.
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

/// The settings of an endpoint.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The key pair of this host.
    pub identity: Option<Identity>,
    /// The secret in the endpoint's tickets. `None`: a new one is drawn.
    pub permission: Option<Secret<[u8; 16]>>,
    /// The peers that a listener admits. Empty: every holder of its ticket.
    pub allow: Vec<PublicKey>,
    /// The application protocol that both sides must speak.
    pub protocol: Protocol,
    /// Local addresses to bind. If empty, a listener binds all addresses, and a connecting side
    /// those that lead to the listener.
    pub bind: Vec<SocketAddr>,
    /// Relays through which a listener is reached, and through which this side connects.
    pub relays: Vec<Word>,
    /// The priority of the data that this side sends.
    pub priority: Priority,
    /// Silence after which a connection is lost.
    pub idle_timeout: Duration,
    /// Streams that each peer may have open.
    pub streams: u32,
    /// The most connections at once.
    pub peers: usize,
    /// Whether TCP may take the place of UDP.
    pub tcp: bool,
    /// Bytes of memory for received data. `None`: half of the machine's memory.
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
    /// Makes the default options: a new identity, every address of this host that leads to the
    /// peer, and no relays.
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
            idle_timeout: DEFAULT_IDLE_TIMEOUT,
            streams: DEFAULT_MAX_STREAMS,
            peers: DEFAULT_MAX_PEERS,
            tcp: true,
            memory: None,
            limit: None,
        })
    }

    /// The name of the application's protocol, for instance `chat/1`; empty by default. Endpoints
    /// with different names refuse each other.
    ///
    /// # Errors
    /// The name is longer than 32 bytes, or contains a space or a character outside printable
    /// ASCII.
    pub fn protocol(mut self, name: &str) -> Result<Self, ProtocolNameError> {
        self.0.protocol = name.parse()?;
        Ok(self)
    }

    /// Sets the key pair of this host, by which peers know it. By default, each endpoint has a new
    /// one.
    #[must_use]
    pub fn identity(mut self, identity: Identity) -> Self {
        self.0.identity = Some(identity);
        self
    }

    /// A secret in a listener's tickets that a peer must show to connect. By default each listener
    /// has a new secret. Tickets of an earlier listener are valid at a new one with the same
    /// secret, identity and addresses.
    #[must_use]
    pub fn permission(mut self, permission: Secret<[u8; 16]>) -> Self {
        self.0.permission = Some(permission);
        self
    }

    /// Sets the only peers that a listener admits, if they also hold its ticket. By default, every
    /// holder of the ticket is admitted.
    #[must_use]
    pub fn allow(mut self, keys: impl IntoIterator<Item = PublicKey>) -> Self {
        self.0.allow = keys.into_iter().collect();
        self
    }

    /// The local addresses to use. Each address adds a path. Port 0 stands for any free port. By
    /// default a listener uses all addresses of this host, and the connecting side uses those that
    /// lead to the listener.
    #[must_use]
    pub fn bind(mut self, addresses: impl IntoIterator<Item = SocketAddr>) -> Self {
        self.0.bind = addresses.into_iter().collect();
        self
    }

    /// Relays to use, each given by its relay word: a secret text that names the relay and permits
    /// its use. A listener names these relays in its ticket. The connecting side uses them as
    /// additional paths.
    #[must_use]
    pub fn relays(mut self, words: impl IntoIterator<Item = Word>) -> Self {
        self.0.relays = words.into_iter().collect();
        self
    }

    /// How the traffic that this side sends shares the network with other traffic. The default,
    /// [`Priority::Normal`], shares fairly, as one TCP connection on the best path would.
    /// [`Priority::Background`] yields to all other traffic.
    #[must_use]
    pub fn priority(mut self, priority: Priority) -> Self {
        self.0.priority = priority;
        self
    }

    /// A connection is lost if nothing arrives from the peer for this long. The default is 30
    /// seconds. Probes are sent when there is no data, so an idle connection stays alive.
    #[must_use]
    pub fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.0.idle_timeout = timeout;
        self
    }

    /// Uses UDP alone. By default a listener also accepts TCP connections at its ports. The
    /// connecting side uses TCP where UDP brings no answer, or is far slower than TCP.
    #[must_use]
    pub fn udp_only(mut self) -> Self {
        self.0.tcp = false;
        self
    }

    /// Streams that each peer may have open at once. A peer that wants more waits. 1024, unless it
    /// is set, and 16384 at most.
    #[must_use]
    pub fn streams(mut self, streams: u32) -> Self {
        self.0.streams = streams.min(crate::session::MAX_STREAMS);
        self
    }

    /// Sets the most connections of an endpoint at once; others are refused. The default is 1024.
    #[must_use]
    pub fn peers(mut self, peers: usize) -> Self {
        self.0.peers = peers;
        self
    }

    /// Bytes of memory for data that arrived and that the application has not read, for all
    /// connections of the endpoint together. The default is half of the computer's memory, and the
    /// minimum is 4 MiB.
    #[must_use]
    pub fn memory(mut self, bytes: u64) -> Self {
        self.0.memory = Some(bytes);
        self
    }

    /// Bytes per second that this side sends to each peer at most, over all paths together. By
    /// default there is no limit.
    #[must_use]
    pub fn bandwidth_limit(mut self, bytes_per_second: u64) -> Self {
        self.0.limit = Some(bytes_per_second);
        self
    }

    /// The settings of the endpoint.
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
        config.datagrams = crate::datagrams::MAX_QUEUED_DATAGRAMS;
        config.dscp = default_dscp(self.priority.default_name());
        // What is over there may not be over here yet; and the stream of what the libraries say.
        config.incoming.streams = 2 * self.streams as usize + 2;
        config
    }
}
