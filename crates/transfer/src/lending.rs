//! An end host that relays for others beside its own transfers: within a quota, behind its own
//! traffic, and found by a registry.

use crate::address::Endpoint;
use crate::error::Error;
use crate::registry::{EnrolEvent, Enrolling, EnrollingPlan};
use crate::relaying::{LendLine, RelayRunEvent, RelaySummary, Relaying, RelayingPlan};
use crate::secret::Secret;
use crate::sockets;
use crate::state_directory::{StateDir, StateError};
use crate::units::{Bytes, Rate, UnitError, parse_size};
use byway_net::Clock;
use byway_registry::word::RegistryWord;
use byway_relay::{LendingTrouble, Policy};
use byway_wire::relay::MAX_ADDRESSES;
use byway_wire::{Duration, Instant, Prefix};
use rustix::fs::{FlockOperation, flock};
use std::fmt;
use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr};
use std::str::FromStr;

/// The port that a lent relay listens on, if the port is free.
pub const LENDING_PORT: u16 = 4748;
/// Time between two checks of this host's addresses.
const ADDRESS_CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// The validity of the relay word that a relay makes for itself. Nobody receives that word.
const WORD_LIFETIME: Duration = Duration::from_secs(60);

/// The most bytes that a host relays for others per day or month.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quota {
    /// The most bytes a day (UTC).
    Day(u64),
    /// The most bytes a month (UTC).
    Month(u64),
}

impl FromStr for Quota {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let wrong = || UnitError::Quota(text.to_owned());
        let (bytes, time) = text.split_once('/').ok_or_else(wrong)?;
        match (parse_size(bytes)?, time.trim()) {
            (0, _) => Err(wrong()),
            (bytes, "day") => Ok(Self::Day(bytes)),
            (bytes, "month") => Ok(Self::Month(bytes)),
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Day(bytes) => write!(f, "{} a day", Bytes(*bytes)),
            Self::Month(bytes) => write!(f, "{} a month", Bytes(*bytes)),
        }
    }
}

/// The settings of a host that relays for others, and the registry that lists it.
pub struct LendingPlan {
    /// The most bytes that the host relays for others.
    pub quota: Quota,
    /// Bytes per second of either direction; `None`: as many as the line has shown.
    pub rate: Option<u64>,
    /// The registry word for joining.
    pub registry: RegistryWord,
    /// Public addresses that lead to this host. Those without a port get the port on which the
    /// relay listens.
    pub advertise: Vec<Endpoint>,
    /// Networks that may be forwarded to besides the public Internet.
    pub allow: Vec<Prefix>,
}

/// An event of a host that relays for others.
#[derive(Debug)]
pub enum LendingEvent {
    /// The registry lists this host as a relay at these addresses.
    Listed(Vec<SocketAddr>),
    /// Something a person should know.
    Told(String),
    /// The counters of the relay, as requested.
    Relayed(Box<RelaySummary>),
}

/// An end host that relays.
pub struct Lending {
    relaying: Relaying,
    enrolling: Enrolling,
    plan: LendingPlan,
    key: Secret<[u8; 32]>,
    /// The addresses to which the sockets are bound.
    bound: Vec<SocketAddr>,
    addresses: Vec<SocketAddr>,
    clock: Clock,
    looked: Instant,
    told: Option<String>,
    busy: bool,
    waiting: Vec<LendingEvent>,
    /// A lock, held while the host lends: only one process at a time uses the quota.
    _lock: File,
}

impl Lending {
    /// Starts to relay for others, with the key and the counts in the state directory.
    ///
    /// # Errors
    /// Another process lends with this state directory; or as for a relay.
    pub fn start(state: &StateDir, plan: LendingPlan) -> Result<Self, Error> {
        let path = state.lending_key_path();
        let key = state.relay_key(Some(&path))?;
        let lock = lock(&path)?;
        let loopback = plan.registry.addresses.iter().all(|address| address.ip().is_loopback());
        let sockets = match loopback {
            true => sockets::listening(&[SocketAddr::from((Ipv4Addr::LOCALHOST, 0))], None)?,
            false => sockets::serving(&[], LENDING_PORT).or_else(|_| sockets::listening(&[], None))?,
        };
        let sockets = sockets::answering(sockets);
        let bound: Vec<SocketAddr> = sockets.iter().map(byway_net::Socket::address).collect();
        let addresses = addresses(&plan, &bound);
        let policy = plan.allow.iter().copied().fold(Policy::public(), Policy::allow);
        let (per_day, per_month) = match plan.quota {
            Quota::Day(bytes) => (Some(bytes), None),
            Quota::Month(bytes) => (None, Some(bytes)),
        };
        let towards = plan.registry.addresses.first().map_or(Ipv4Addr::LOCALHOST.into(), SocketAddr::ip);
        let relaying = Relaying::start(RelayingPlan {
            key: key.clone(),
            policy: sockets::own_addresses().into_iter().fold(policy, Policy::own),
            sockets,
            listeners: Vec::new(),
            tcp_congestion: byway_net::TcpCongestion::Cubic,
            tcp_buffer: None,
            addresses: addresses.clone(),
            expires: WORD_LIFETIME,
            rate: None,
            quota: None,
            per_day,
            per_month,
            accounts: None,
            words: None,
            keep: Some(state.relay_kept_path(Some(&path))),
            registries: vec![plan.registry.key.0],
            lend: Some(LendLine { rate: plan.rate, towards }),
        })?;
        let enrolling = enrol(&relaying, &plan, &key, &addresses)?;
        let (clock, told, waiting, busy) = (Clock::new(), None, Vec::new(), false);
        let looked = clock.now();
        Ok(Self {
            relaying,
            enrolling,
            plan,
            key,
            bound,
            addresses,
            clock,
            looked,
            told,
            busy,
            waiting,
            _lock: lock,
        })
    }

    /// A sentence that says how much is lent, to whom, and until when.
    #[must_use]
    pub fn terms(&self) -> String {
        let rate = match self.plan.rate {
            Some(rate) => Rate::of(rate, 1.0).to_string(),
            None => "what the line has shown".into(),
        };
        let registries: Vec<String> = self.plan.registry.addresses.iter().map(ToString::to_string).collect();
        let ports: Vec<String> = self.bound.iter().map(|address| address.port().to_string()).collect();
        format!(
            "relays for others at UDP port {}, behind its own traffic: up to {rate} and {}, for senders whom the registry at {} sends, \
             until this command ends",
            ports.first().map_or("", String::as_str),
            self.plan.quota,
            registries.join(" or "),
        )
    }

    /// Sets whether this host has a transfer of its own. Registries then prefer other relays.
    pub fn set_busy(&mut self, busy: bool) {
        if busy != self.busy && self.relaying.set_busy(busy) {
            self.busy = busy;
        }
    }

    /// Asks for [`LendingEvent::Relayed`].
    pub fn ask(&self) {
        self.relaying.ask();
    }

    /// The next thing that happened, if anything did. Does not wait. To be called a few times a
    /// second.
    pub fn look(&mut self) -> Option<LendingEvent> {
        let now = self.clock.now();
        if now.since(self.looked) >= ADDRESS_CHECK_INTERVAL {
            self.looked = now;
            self.move_on();
        }
        if let Some(news) = self.waiting.pop() {
            return Some(news);
        }
        if let Some(news) = self.enrolling.look(&self.relaying) {
            return self.enrolled(news);
        }
        match self.relaying.next(Duration::ZERO)? {
            RelayRunEvent::Relayed(relayed) => Some(LendingEvent::Relayed(relayed)),
            RelayRunEvent::Dropped(_) => None,
            RelayRunEvent::NotKept(error) => Some(LendingEvent::Told(format!(
                "cannot write down what was relayed: {error}; a restart would forget it"
            ))),
            RelayRunEvent::KeptAgain => {
                Some(LendingEvent::Told("what was relayed is written down again".into()))
            }
            RelayRunEvent::WordsRead { .. } | RelayRunEvent::WordsUnread(_) => None,
            RelayRunEvent::Lends(trouble) => Some(LendingEvent::Told(lends(trouble))),
        }
    }

    /// Enrols again at the registry if this host's addresses have changed.
    fn move_on(&mut self) {
        let addresses = addresses(&self.plan, &self.bound);
        if addresses != self.addresses
            && let Ok(enrolling) = enrol(&self.relaying, &self.plan, &self.key, &addresses)
        {
            (self.addresses, self.enrolling) = (addresses, enrolling);
        }
    }

    fn enrolled(&mut self, news: EnrolEvent) -> Option<LendingEvent> {
        match news {
            EnrolEvent::Epoch { .. } => None,
            EnrolEvent::Enrolled { passed, failed, .. } => {
                let not = failed.into_iter().map(|(address, why)| {
                    LendingEvent::Told(format!("the registry does not list this host at {address}: {why}"))
                });
                self.waiting.extend(not);
                self.told = None;
                Some(LendingEvent::Listed(passed))
            }
            EnrolEvent::Failed { error, again } => {
                let mut text = format!("this host is not listed: {error}");
                if self.addresses.iter().all(|address| sockets::is_private(address.ip())) {
                    let port = self.bound.first().map_or(LENDING_PORT, SocketAddr::port);
                    text += &format!(
                        "; all its addresses are private: if a router forwards UDP port {port} to it, name the outside address with \
                         --advertise"
                    );
                }
                let text = format!("{text}; tried again in {} s", again.as_secs());
                // The same again is no news, whenever it is tried.
                let sentence = error.to_string();
                (self.told.replace(sentence.clone()) != Some(sentence)).then_some(LendingEvent::Told(text))
            }
        }
    }

    /// Tells registries that the relay ends, stops it, and returns its counters.
    ///
    /// # Errors
    /// The event loop broke before.
    pub fn stop(self) -> Result<RelaySummary, Error> {
        self.relaying.drain();
        self.relaying.stop()
    }
}

fn lends(trouble: Option<LendingTrouble>) -> String {
    match trouble {
        Some(trouble) => format!("nothing is lent now: {trouble}"),
        None => "the line is lent again".into(),
    }
}

/// Takes the lock that lets only one process use the quota.
fn lock(path: &std::path::Path) -> Result<File, Error> {
    let file = File::open(path).map_err(|source| StateError::Io {
        what: "lock the relay key in".into(),
        path: path.to_owned(),
        source,
    })?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|_| Error::AlreadyLending)?;
    Ok(file)
}

/// Returns the addresses at which other hosts find this one: the advertised ones, or else its own.
fn addresses(plan: &LendingPlan, bound: &[SocketAddr]) -> Vec<SocketAddr> {
    let port = bound.first().map_or(LENDING_PORT, SocketAddr::port);
    let mut addresses = match plan.advertise.as_slice() {
        [] => sockets::reachable(bound.iter().copied()),
        told => told.iter().map(|endpoint| endpoint.or_port(port)).collect(),
    };
    addresses.truncate(MAX_ADDRESSES);
    addresses
}

fn enrol(
    relaying: &Relaying,
    plan: &LendingPlan,
    key: &Secret<[u8; 32]>,
    addresses: &[SocketAddr],
) -> Result<Enrolling, Error> {
    Enrolling::start(
        relaying,
        EnrollingPlan {
            key: key.clone(),
            word: plan.registry.clone(),
            rate: plan.rate,
            quota: None,
            operator: String::new(),
            region: String::new(),
            addresses: addresses.to_vec(),
            seen: plan.advertise.is_empty(),
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_names_its_time() {
        let parse = |text: &str| text.parse::<Quota>();
        assert_eq!(parse("20G/month"), Ok(Quota::Month(20 << 30)));
        assert_eq!(parse("500M/day"), Ok(Quota::Day(500 << 20)));
        assert_eq!(Quota::Day(500 << 20).to_string(), "500 MiB a day");
        for text in ["", "20G", "20G/", "20G/year", "0/day", "/day", "x/day", "1G/day/day"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
