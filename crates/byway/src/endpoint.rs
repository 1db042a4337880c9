//! An endpoint: sockets, a key, and a thread that runs all connections over them.

use crate::config::{Config, Settings};
use crate::error::{ConnectError, ConnectionError, Error, StartError};
use crate::event_loop::{ConnectionDefaults, EventLoop};
use crate::listener_access::ListenerAccess;
use crate::loop_commands::{
    AcceptQueue, Command, Connecting, ConnectionGuard, Core, EndpointGuard, ListenerRelays, PeerCell,
};
use crate::peer::Peer;
use byway_engine::handshake;
use byway_engine::seal::Suites;
use byway_engine::{Admission, EndpointConfig};
use byway_net::{Clock, Control, Socket};
use byway_transfer::sockets;
use byway_transfer::{Entrance, Identity, Secret, TcpUse, Ticket, Uplinks};
use byway_wire::relay::Word;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::thread::Builder;
use std::time::Duration;

/// Time that a new listener waits for its relays to answer.
const GREETING_TIMEOUT: Duration = Duration::from_secs(3);

/// A local endpoint: sockets, a key pair, and one thread for all its connections. It accepts
/// connections, and connects to other listeners.
///
/// If it is dropped, it no longer listens. Its connections stay open until their last handles are
/// dropped.
///
/// ```
/// use byway::{Config, Endpoint};
/// use std::io::{Read, Write};
///
/// let config = Config::new().protocol("echo/1")?.bind(["127.0.0.1:0".parse()?]);
/// let listener = Endpoint::listen(config.clone())?;
/// let ticket = listener.ticket();
/// let server = std::thread::spawn(move || -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
///     let peer = listener.accept()?;
///     let (mut receiving, mut sending) = peer.accept_stream()?.split();
///     std::io::copy(&mut receiving, &mut sending)?;
///     sending.finish()?;
///     Ok(())
/// });
///
/// let peer = byway::connect_with(&ticket, config)?;
/// let mut stream = peer.open_stream()?;
/// stream.write_all(b"who is there?")?;
/// stream.shutdown()?;
/// let mut answer = String::new();
/// stream.read_to_string(&mut answer)?;
/// assert_eq!(answer, "who is there?");
/// peer.close()?;
/// server.join().unwrap()?;
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
pub struct Endpoint {
    endpoint_guard: Arc<EndpointGuard>,
    /// The ticket of a listener. `None`: the endpoint does not listen.
    ticket: Option<Ticket>,
    relays: Vec<Word>,
}

impl Endpoint {
    /// Begins to listen. Every holder of the [`ticket`](Self::ticket) may connect. If relays are
    /// configured, this first waits for their answers, for three seconds at most.
    ///
    /// # Errors
    /// An address cannot be bound, or the system gives no thread, descriptor or randomness.
    pub fn listen(config: Config) -> Result<Self, Error> {
        let mut settings = config.into_settings();
        let sockets = sockets::listening(&settings.bind, None).map_err(StartError::from)?;
        let identity = identity_of(&mut settings)?;
        let permission = match settings.permission.take() {
            Some(permission) => permission,
            None => Secret::new(byway_net::seed().map_err(StartError::from)?),
        };
        let ticket = Ticket {
            key: identity.public(),
            permission,
            addresses: sockets::reachable_at(&sockets),
            relays: Vec::new(),
            names: Vec::new(),
        };
        let words = settings.relays.len();
        let endpoint = Self::start(settings, &identity, Some(ticket), sockets, None)?;
        // Those that do not answer in time are left out of the ticket for now.
        let all = |standing: &mut ListenerRelays| (standing.greeted.len() == words).then_some(());
        endpoint.endpoint_guard.0.listener_relays.wait(Some(GREETING_TIMEOUT), all);
        Ok(endpoint)
    }

    /// Returns the ticket with which a peer connects: this endpoint's addresses, its public key,
    /// and a secret. So its text must be kept secret.
    ///
    /// # Panics
    /// Never: each endpoint from [`listen`](Self::listen) has a ticket. Endpoints without one exist
    /// only inside the library.
    #[must_use]
    pub fn ticket(&self) -> Ticket {
        match &self.ticket {
            Some(ticket) => {
                let relays = self.endpoint_guard.0.listener_relays.with(|standing| standing.greeted.clone());
                Ticket { relays, ..ticket.clone() }
            }
            None => unreachable!("only a listener is handed out"),
        }
    }

    /// Problems of the relays through which this listener is reached, each as a sentence.
    #[must_use]
    pub fn relay_troubles(&self) -> Vec<String> {
        self.endpoint_guard.0.listener_relays.with(|standing| standing.troubles.clone())
    }

    /// Waits for the next peer to connect.
    ///
    /// # Errors
    /// [`Error::Over`] if the endpoint's event loop ended.
    pub fn accept(&self) -> Result<Peer, Error> {
        let cell =
            self.endpoint_guard.0.accept_queue.wait(None, AcceptQueue::next).unwrap_or(Err(Error::Over))?;
        Ok(self.peer(cell))
    }

    /// Connects to the listener that gave `ticket`, from this endpoint's sockets and with its key.
    /// Returns when the listener has accepted the connection.
    ///
    /// # Errors
    /// The listener refuses, or does not answer within 20 seconds: [`ConnectError`] tells which.
    pub fn connect(&self, ticket: &Ticket) -> Result<Peer, ConnectError> {
        let answer = self.ask_to_connect(ticket)?;
        let cell =
            answer.wait(None, Option::take).unwrap_or_else(|| Err(ConnectionError::EndpointOver.into()))?;
        Ok(self.peer(cell))
    }

    /// The async form of [`accept`](Self::accept).
    ///
    /// # Errors
    /// As there.
    #[cfg(feature = "tokio")]
    pub async fn accept_async(&self) -> Result<Peer, Error> {
        let cell = self.endpoint_guard.0.accept_queue.ready(AcceptQueue::next).await?;
        Ok(self.peer(cell))
    }

    /// The async form of [`connect`](Self::connect).
    ///
    /// # Errors
    /// As there.
    #[cfg(feature = "tokio")]
    pub async fn connect_async(&self, ticket: &Ticket) -> Result<Peer, ConnectError> {
        let answer = self.ask_to_connect(ticket)?;
        let cell = answer.ready(Option::take).await?;
        Ok(self.peer(cell))
    }

    fn ask_to_connect(&self, ticket: &Ticket) -> Result<Arc<Connecting>, ConnectError> {
        let answer = Arc::new(Connecting::default());
        let relays = self.relays.clone();
        let command =
            Command::Connect { ticket: Box::new(ticket.clone()), relays, answer: Arc::clone(&answer) };
        self.endpoint_guard.0.ask(command).map_err(|_| ConnectionError::EndpointOver)?;
        Ok(answer)
    }

    fn peer(&self, cell: Arc<PeerCell>) -> Peer {
        Peer::new(Arc::new(ConnectionGuard { cell, endpoint_guard: Arc::clone(&self.endpoint_guard) }))
    }

    /// An endpoint that does not listen, with sockets that lead to the ticket's `destinations`.
    pub(crate) fn towards(
        ticket: &Ticket,
        config: Config,
        destinations: fn(&Ticket, &[Word]) -> Vec<IpAddr>,
    ) -> Result<Self, StartError> {
        let mut settings = config.into_settings();
        let destinations = destinations(ticket, &settings.relays);
        let sockets = sockets::sending(&settings.bind, &destinations)?;
        let locals: Vec<SocketAddr> = sockets.iter().map(Socket::address).collect();
        let uplinks = settings.bind.is_empty().then(|| Uplinks::new(&locals, destinations));
        let identity = identity_of(&mut settings)?;
        Self::start(settings, &identity, None, sockets, uplinks)
    }

    fn start(
        settings: Settings,
        identity: &Identity,
        ticket: Option<Ticket>,
        sockets: Vec<Socket>,
        uplinks: Option<Uplinks>,
    ) -> Result<Self, StartError> {
        let control = Control::new().map_err(StartError::Descriptor)?;
        let core = Arc::new(Core::new(control.waker().clone(), ticket.is_some()));
        let seed = u64::from_be_bytes(byway_net::seed()?);
        let admission = ticket.as_ref().map(|ticket| -> Box<dyn Admission> {
            Box::new(ListenerAccess {
                permission: ticket.permission.clone(),
                allow: settings.allow.clone(),
                protocol: settings.protocol,
                priority: settings.priority,
                seed,
                core: Arc::clone(&core),
            })
        });
        let machine = byway_engine::Endpoint::new(EndpointConfig {
            identity: handshake::Identity::from_secret(*identity.secret().expose()),
            suites: Suites::SECURE,
            seed: byway_net::seed()?,
            connection: settings.session(),
            admission,
            greeting: Vec::new(),
        });
        let serves = ticket.is_some() && settings.tcp;
        let listeners = if serves { sockets::listeners(&sockets) } else { Vec::new() };
        let plan = ConnectionDefaults {
            entrance: Entrance::new(control.watch(), listeners).map_err(StartError::Descriptor)?,
            control: control.clone(),
            tcp: if settings.tcp { TcpUse::BesideUdp } else { TcpUse::Never },
            protocol: settings.protocol,
            priority: settings.priority,
            streams: settings.streams,
            peers: settings.peers,
            locals: sockets.iter().map(Socket::address).collect(),
            stand: if ticket.is_some() { settings.relays.clone() } else { Vec::new() },
            permission: ticket.as_ref().map_or(Secret::new([0; 16]), |ticket| ticket.permission.clone()),
            uplinks,
            seed: seed.rotate_left(32),
        };
        let owner = EventLoop::new(Arc::clone(&core), plan);
        let run = move || drop(byway_net::run(machine, owner, sockets, Clock::new(), &control));
        Builder::new().name("byway".into()).spawn(run).map_err(StartError::Thread)?;
        Ok(Self { endpoint_guard: Arc::new(EndpointGuard(core)), ticket, relays: settings.relays })
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        let core = &self.endpoint_guard.0;
        core.stop_listening();
        for cell in core.accept_queue.change(|arrivals| std::mem::take(&mut arrivals.peers)) {
            let _ = core.ask(Command::Abort(cell.handle, 0, String::from("nobody listens here any more")));
        }
    }
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let addresses = self.ticket.as_ref().map(|ticket| &ticket.addresses);
        f.debug_struct("Endpoint").field("addresses", &addresses).finish_non_exhaustive()
    }
}

fn identity_of(settings: &mut Settings) -> Result<Identity, StartError> {
    settings.identity.take().map_or_else(Identity::generate, Ok)
}
