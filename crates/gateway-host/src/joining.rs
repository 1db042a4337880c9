//! `byway gateway join`: this host asks a gateway to be served, on sockets.

use crate::GatewayError;
use byway_engine::handshake;
use byway_engine::seal::Suites;
use byway_gateway::joining::{JoinState, Joining, JoiningConfig};
use byway_gateway::serves::{MAX_PORTS, Served};
use byway_gateway::{Ports, Prefix};
use byway_net::{Clock, Control, LoopControl, Owner, Socket};
use byway_transfer::address::Endpoint;
use byway_transfer::identity::{Identity, PublicKey};
use byway_transfer::{Error, sockets};
use byway_wire::Instant;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;
use thiserror::Error as ThisError;

/// The most news that wait for the program.
const MAX_NEWS: usize = 16;
/// Time for which leaving waits, so that the gateway learns that the host leaves.
const FAREWELL_TIME: Duration = Duration::from_millis(300);

/// A gateway to be asked: `KEY@ADDRESS`, with or without a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GatewayAt {
    /// The gateway's public key.
    pub key: PublicKey,
    /// The gateway's address.
    pub address: SocketAddr,
}

/// Why a text names no gateway.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
pub enum NoGateway {
    /// The text has no `@`.
    #[error("a gateway is named by its key and its address: byway-key-…@198.51.100.7:4749")]
    Form,
    /// The text before the `@` is no key.
    #[error("before the @: {0}")]
    Key(String),
    /// The text after the `@` is no address.
    #[error("behind the @: {0}")]
    Address(String),
}

impl FromStr for GatewayAt {
    type Err = NoGateway;

    fn from_str(text: &str) -> Result<Self, NoGateway> {
        let (key, address) = text.split_once('@').ok_or(NoGateway::Form)?;
        let key = key.parse().map_err(|error| NoGateway::Key(format!("{error}")))?;
        let address: Endpoint = address.parse().map_err(|error| NoGateway::Address(format!("{error}")))?;
        let address = address.or_port(crate::config_file::GATEWAY_PORT);
        if address.ip().is_unspecified() || address.ip().is_multicast() || address.port() == 0 {
            return Err(NoGateway::Address(format!("{address} is none that can be reached")));
        }
        Ok(Self { key, address })
    }
}

impl fmt::Display for GatewayAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.key, self.address)
    }
}

/// A host that asks, and asks again when the session is lost.
pub struct Association {
    driver: byway_net::Handle<JoinWatcher>,
    news: Receiver<JoinState>,
    leaving: Arc<AtomicBool>,
    host: IpAddr,
}

impl Association {
    /// Asks the gateway to carry this host's TCP flows on `ports` (if empty, all ports). The flows
    /// must use the host address that reaches the gateway.
    ///
    /// # Errors
    /// `ports` has too many ranges; the gateway is unreachable; no thread starts.
    pub fn start(identity: &Identity, gateway: GatewayAt, ports: Vec<Ports>) -> Result<Self, GatewayError> {
        if ports.len() > MAX_PORTS {
            return Err(GatewayError::Ports);
        }
        let mut sockets = sockets::sending(&[], &[gateway.address.ip()]).map_err(Error::Bind)?;
        sockets.truncate(1);
        let host = sockets.first().map(|socket: &Socket| socket.address().ip().to_canonical());
        let unreachable = || Error::Descriptor(io::Error::from(io::ErrorKind::NetworkUnreachable));
        let host = host.filter(|host| !host.is_unspecified()).ok_or_else(unreachable)?;
        let joining = Joining::new(JoiningConfig {
            identity: handshake::Identity::from_secret(*identity.secret().expose()),
            suites: Suites::SECURE,
            seed: byway_net::seed()?,
            gateway: handshake::PublicKey(gateway.key.0),
            addresses: vec![gateway.address],
            served: Served { hosts: Prefix::of(host, 128), ports },
        });
        let joining = joining.map_err(|error| GatewayError::Impossible(error.into()))?;
        let (news, inbox) = sync_channel(MAX_NEWS);
        let leaving = Arc::new(AtomicBool::new(false));
        let owner = JoinWatcher { news, told: JoinState::Asking, leaving: Arc::clone(&leaving) };
        let control = Control::new().map_err(Error::Descriptor)?;
        let driver = byway_net::spawn_with(control, "byway join", joining, owner, sockets, Clock::new())
            .map_err(Error::Thread)?;
        Ok(Self { driver, news: inbox, leaving, host })
    }

    /// The address that is asked for.
    #[must_use]
    pub const fn host(&self) -> IpAddr {
        self.host
    }

    /// The next change of the association's state, if there is one within `patience`.
    pub fn next(&self, patience: Duration) -> Option<JoinState> {
        self.news.recv_timeout(patience).ok()
    }

    /// Whether the association's thread has ended by itself, on an error.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.driver.is_finished()
    }

    /// Leaves the gateway.
    pub fn leave(self) {
        self.leaving.store(true, Ordering::Release);
        self.driver.waker().wake();
        std::thread::sleep(FAREWELL_TIME);
    }
}

struct JoinWatcher {
    news: SyncSender<JoinState>,
    told: JoinState,
    leaving: Arc<AtomicBool>,
}

impl Owner for JoinWatcher {
    type Machine = Joining;

    fn turn(&mut self, joining: &mut Joining, now: Instant) -> LoopControl {
        if self.leaving.swap(false, Ordering::AcqRel) {
            joining.leave(now);
        }
        if *joining.standing() != self.told && self.news.try_send(joining.standing().clone()).is_ok() {
            self.told = joining.standing().clone();
        }
        LoopControl::Continue
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "byway-key-mfrggzdfmztwq2lknnwg23tpobyxe43uov3ho6dzpiydcmrtgq2qpgjcuu";

    #[test]
    fn a_gateway_is_named_by_key_and_address() {
        for (address, expected) in [
            ("198.51.100.7", "198.51.100.7:4749"),
            ("198.51.100.7:99", "198.51.100.7:99"),
            ("2001:db8::1", "[2001:db8::1]:4749"),
        ] {
            let gateway: GatewayAt = format!("{KEY}@{address}").parse().unwrap();
            assert_eq!(gateway.to_string(), format!("{KEY}@{expected}"));
        }
        let wrong = |text: &str| text.parse::<GatewayAt>().unwrap_err().to_string();
        assert!(wrong(KEY).starts_with("a gateway is named by"));
        assert!(wrong("key@198.51.100.7").starts_with("before the @"));
        assert!(wrong(&format!("{KEY}@nowhere")).starts_with("behind the @"));
        assert!(wrong(&format!("{KEY}@0.0.0.0")).contains("none that can be reached"));
    }
}
