//! A host that asks a gateway to carry the flows of its address (Harp, III.G: association). The
//! session's handshake holds the request and authenticates the host:
//!
//! ```text
//! "byway gateway 1, a guest", address as a prefix of full length, number of port ranges (1; none: all ports), first (2) and last (2) of each
//! ```
//!
//! After a lost session, the gateway serves the host for at most [`LEASE_TIME`] longer.

use crate::serves::Served;
use alloc::string::{String, ToString as _};
use alloc::vec;
use alloc::vec::Vec;
use byway_control::{ChoiceError, ControllerChoice, SenderKind, controller};
use byway_engine::connection::Event;
use byway_engine::handshake::{Identity, PublicKey};
use byway_engine::seal::Suites;
use byway_engine::{Config, Connect, Connection, Endpoint, EndpointConfig, EndpointEvent, Handle};
use byway_wire::{DecodeError, Duration, Input, Instant, Machine, Reader, Transmit, TransmitBuffer, Writer};
use core::net::SocketAddr;

/// Time without a sign of life after which a host is no longer served.
pub const LEASE_TIME: Duration = Duration::from_secs(60);
/// The beginning of a host's application data in the handshake, before its request.
const FOR_GUEST: &[u8] = b"byway gateway 1, a guest";
/// The code with which a gateway closes a session that it does not allow.
pub const NOT_ALLOWED: u64 = 6;
/// The first pause before the next request. Each further pause is twice as long, up to `MAX_PAUSE`.
const MIN_PAUSE: Duration = Duration::from_millis(500);
const MAX_PAUSE: Duration = Duration::from_secs(8);
/// The silence of a gateway after which the host asks it again.
const IDLE_TIMEOUT: Duration = Duration::from_secs(5);

/// The application data of a host that wants to be served.
#[must_use]
pub fn request(served: &Served) -> Vec<u8> {
    let mut said = vec![0; FOR_GUEST.len() + Served::MAX_BYTES];
    let mut writer = Writer::new(&mut said);
    writer.bytes(FOR_GUEST);
    served.write(&mut writer);
    let length = writer.len();
    said.truncate(length);
    said
}

/// Whether a peer with this application data is a host that wants to be served.
#[must_use]
pub fn is_request(said: &[u8]) -> bool {
    said.starts_with(FOR_GUEST)
}

/// The request in a host's application data.
///
/// # Errors
/// What is wrong with it: it may ask for one address.
pub fn asked(said: &[u8]) -> Result<Served, DecodeError> {
    let mut reader = Reader::new(said.strip_prefix(FOR_GUEST).ok_or(DecodeError::Range("no request"))?);
    let served = Served::read(&mut reader)?;
    let whole = if served.hosts.address().is_ipv4() { 32 } else { 128 };
    match served.hosts.length() == whole && reader.is_empty() {
        true => Ok(served),
        false => Err(DecodeError::Range("one address")),
    }
}

/// The configuration of a host that wants to be served.
#[derive(Clone, Debug)]
pub struct JoiningConfig {
    /// The key pair of the host.
    pub identity: Identity,
    /// The ciphers that the host offers.
    pub suites: Suites,
    /// Fresh entropy, or a simulation's seed.
    pub seed: [u8; 32],
    /// The public key of the gateway.
    pub gateway: PublicKey,
    /// The addresses of the gateway.
    pub addresses: Vec<SocketAddr>,
    /// The host's own address, and the ports to be served. No ports: all.
    pub served: Served,
}

/// The state of a host's association with its gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JoinState {
    /// The gateway has not answered.
    Asking,
    /// The gateway serves the host.
    Joined,
    /// The gateway refuses the host, for this reason.
    Refused(String),
    /// The session was lost, for this reason. The host connects again.
    Lost(String),
    /// The host has left.
    Left,
}

/// A host that wants to be served.
pub struct Joining {
    endpoint: Endpoint,
    config: JoiningConfig,
    congestion: ControllerChoice,
    session: Option<Handle>,
    retry_at: Option<Instant>,
    pause: Duration,
    standing: JoinState,
}

impl Joining {
    /// Makes a host that sends its request as soon as it is driven.
    ///
    /// # Errors
    /// Never with the controllers that there are.
    pub fn new(config: JoiningConfig) -> Result<Self, ChoiceError> {
        let congestion: ControllerChoice = "background".parse()?;
        controller(&congestion, SenderKind::Session, 0)?;
        let endpoint = Endpoint::new(EndpointConfig {
            identity: config.identity.clone(),
            suites: config.suites,
            seed: config.seed,
            connection: Config { idle_timeout: IDLE_TIMEOUT, ..Config::default() },
            admission: None,
            greeting: Vec::new(),
        });
        Ok(Self {
            endpoint,
            config,
            congestion,
            session: None,
            retry_at: Some(Instant::ZERO),
            pause: MIN_PAUSE,
            standing: JoinState::Asking,
        })
    }

    /// The state of the association.
    #[must_use]
    pub const fn standing(&self) -> &JoinState {
        &self.standing
    }

    /// Leaves the gateway, and closes the session.
    pub fn leave(&mut self, now: Instant) {
        (self.retry_at, self.standing) = (None, JoinState::Left);
        if let Some(session) = self.session.take() {
            self.endpoint.close(now, session, 0, "the host leaves");
        }
    }

    fn attend(&mut self, now: Instant) {
        while let Some(event) = self.endpoint.next_event() {
            match event {
                EndpointEvent::Failed(handle, error) if self.session == Some(handle) => {
                    self.lost(now, JoinState::Lost(error.to_string()));
                }
                EndpointEvent::Closed(handle) => {
                    let why = self.endpoint.connection_mut(handle).map(why_closed);
                    self.endpoint.forget(handle);
                    if self.session == Some(handle) {
                        self.lost(now, why.unwrap_or_else(|| JoinState::Lost(String::new())));
                    }
                }
                _ => {}
            }
        }
        // A gateway that does not want a host closes instead of acknowledging.
        let connection = self.session.and_then(|session| self.endpoint.connection(session));
        if connection.is_some_and(Connection::is_acknowledged) {
            (self.standing, self.pause) = (JoinState::Joined, MIN_PAUSE);
        }
        if self.retry_at.is_some_and(|at| at <= now) {
            self.dial(now);
        }
    }

    fn dial(&mut self, now: Instant) {
        self.retry_at = None;
        let Ok(controller) = controller(&self.congestion, SenderKind::Session, 0) else { return };
        let connect = Connect {
            peer: self.config.gateway,
            addresses: self.config.addresses.clone(),
            application: request(&self.config.served),
            controller,
        };
        match self.endpoint.connect(now, connect) {
            Ok(session) => self.session = Some(session),
            Err(error) => self.lost(now, JoinState::Lost(error.to_string())),
        }
    }

    fn lost(&mut self, now: Instant, standing: JoinState) {
        self.session = None;
        self.retry_at = Some(now + self.pause).filter(|_| !matches!(standing, JoinState::Refused(_)));
        self.pause = (self.pause * 2).min(MAX_PAUSE);
        self.standing = standing;
    }
}

/// Returns the state of the association after its session was closed.
fn why_closed(connection: &mut Connection) -> JoinState {
    let closed = core::iter::from_fn(|| connection.next_event()).find_map(|event| match event {
        Event::Closed { code, reason, by_peer } => Some((code, reason, by_peer)),
        _ => None,
    });
    match closed {
        Some((NOT_ALLOWED, reason, true)) => JoinState::Refused(reason),
        Some((_, reason, _)) => JoinState::Lost(reason),
        None => JoinState::Lost(String::new()),
    }
}

impl Machine for Joining {
    fn handle(&mut self, now: Instant, input: Input<'_>) {
        self.endpoint.handle(now, input);
        self.attend(now);
    }

    fn wake(&mut self, now: Instant) {
        self.endpoint.wake(now);
        self.attend(now);
    }

    fn transmit(&mut self, now: Instant, out: &mut TransmitBuffer<'_>) -> Option<Transmit> {
        self.endpoint.transmit(now, out)
    }

    fn deadline(&self) -> Option<Instant> {
        [self.endpoint.deadline(), self.retry_at].into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::Ports;
    use byway_wire::Prefix;

    fn served(hosts: &str, ports: &[&str]) -> Served {
        Served {
            hosts: hosts.parse().unwrap(),
            ports: ports.iter().map(|ports| ports.parse().unwrap()).collect(),
        }
    }

    #[test]
    fn in_hex() {
        let said = request(&served("10.1.2.3", &["80"]));
        assert_eq!(said, [FOR_GUEST, &[32, 10, 1, 2, 3, 1, 0, 80, 0, 80]].concat());
        assert_eq!(asked(&said), Ok(served("10.1.2.3", &["80"])));
        assert!(is_request(&said) && !is_request(b"byway gateway 1"));
    }

    #[test]
    fn one_address_alone_may_be_asked_for() {
        for (hosts, good) in
            [("10.1.2.3", true), ("10.1.2.0/31", false), ("2001:db8::1", true), ("2001:db8::/127", false)]
        {
            assert_eq!(asked(&request(&served(hosts, &[]))).is_ok(), good, "{hosts}");
        }
        let mut long = request(&served("10.1.2.3", &[]));
        long.push(0);
        assert_eq!(asked(&long), Err(DecodeError::Range("one address")));
        assert_eq!(asked(b"byway gateway 1"), Err(DecodeError::Range("no request")));
        assert_eq!(asked(FOR_GUEST), Err(DecodeError::Truncated));
    }

    #[test]
    fn as_many_ports_as_fit() {
        let ports = (0..16).filter_map(|port| Ports::new(port, port)).collect();
        let most = Served { hosts: Prefix::of([0x20; 16].into(), 128), ports };
        assert_eq!(asked(&request(&most)), Ok(most));
    }
}
