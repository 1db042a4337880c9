//! Hosts that asked to be served here, with a key that the configuration file names. A host is
//! served only at its session's source address, until it leaves, or `LEASE_TIME` after its session
//! was lost.

use super::config;
use super::status::{Counters, GuestStatus};
use crate::joining::{LEASE_TIME, asked};
use crate::serves::{Served, announce};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use alloc::{format, string::ToString as _};
use byway_engine::handshake::PublicKey;
use byway_engine::{Connection, Endpoint, Handle, Via};
use byway_wire::{Duration, Instant};
use core::net::IpAddr;
use core::sync::atomic::{AtomicU64, Ordering};

/// The shortest time between announcements. It keeps serial numbers below the seconds of Unix time.
const MIN_TELL_INTERVAL: Duration = Duration::from_secs(1);

/// Number of timeouts in a row after which a path no longer proves its host's address.
const SILENT_TIMEOUTS: u32 = 3;
/// Time between two checks of the hosts' addresses.
const ORIGIN_CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// A host that is served.
#[derive(Clone, Debug)]
struct GuestLease {
    served: Served,
    session: Option<Handle>,
    /// When the lease ends if there is no session.
    until: Instant,
}

/// Hosts that asked to be served here.
#[derive(Debug)]
pub(super) struct Guests {
    known: Vec<config::GuestConfig>,
    /// The networks that the file serves.
    serves: Vec<Served>,
    /// The leases by the host's index in the configuration file.
    leases: BTreeMap<usize, GuestLease>,
    serial: u32,
    /// Whether the served hosts changed since the last announcement.
    changed: bool,
    told_at: Instant,
    look_at: Instant,
    /// Counts changes. `taken`: the count at the last call of `take_news`.
    version: u64,
    taken: u64,
    /// Hosts with keys that the file does not have.
    strangers: Arc<AtomicU64>,
    counters: Counters,
}

impl Guests {
    /// Makes a list without guests. `serves`: the networks in the file. `serial`: the serial number
    /// of their announcement.
    pub fn new(
        known: Vec<config::GuestConfig>,
        serves: Vec<Served>,
        serial: u32,
        strangers: Arc<AtomicU64>,
    ) -> Self {
        Self {
            known,
            serves,
            leases: BTreeMap::new(),
            serial,
            changed: false,
            told_at: Instant::ZERO,
            look_at: Instant::ZERO,
            version: 0,
            taken: 0,
            strangers,
            counters: Counters::default(),
        }
    }

    /// The counts so far.
    pub fn counters(&self) -> Counters {
        let strangers = self.strangers.load(Ordering::Relaxed);
        Counters { refused_guests: self.counters.refused_guests + strangers, ..self.counters }
    }

    /// Grows with each change.
    pub const fn version(&self) -> u64 {
        self.version
    }

    /// Whether something changed since the last call.
    pub fn take_news(&mut self) -> bool {
        core::mem::replace(&mut self.taken, self.version) != self.version
    }

    /// The keys of hosts that may ask.
    pub fn keys(&self) -> Vec<PublicKey> {
        self.known.iter().map(|guest| guest.key).collect()
    }

    /// The hosts that are served.
    pub fn hosts(&self) -> BTreeSet<IpAddr> {
        self.leases.values().map(|lease| lease.served.hosts.address()).collect()
    }

    /// Handles a host's new session. Returns its earlier session, which is to be closed. An error:
    /// why the host is refused.
    pub fn on_session(&mut self, handle: Handle, connection: &Connection) -> Result<Option<Handle>, String> {
        let admitted = self.admit(connection.peer(), connection.application(), &comes_from(connection));
        let (place, served) = admitted.inspect_err(|_| self.counters.refused_guests += 1)?;
        let fresh = self.leases.get(&place).is_none_or(|lease| lease.served != served);
        let lease = GuestLease { served, session: Some(handle), until: Instant::FAR_FUTURE };
        let before = self.leases.insert(place, lease);
        if fresh {
            self.counters.guests += 1;
            self.note();
        }
        Ok(before.and_then(|before| before.session))
    }

    /// Decides whether a host with these addresses is served. Returns its index in the file, and
    /// the hosts and ports served.
    fn admit(&mut self, key: PublicKey, said: &[u8], from: &[IpAddr]) -> Result<(usize, Served), String> {
        let served = asked(said).map_err(|error| format!("what is asked for {error}"))?;
        let found = self.known.iter().enumerate().find(|(_, guest)| guest.key == key);
        let (place, guest) =
            found.ok_or("this gateway does not know your key: it must be among its guests")?;
        let host = served.hosts.address();
        if !from.contains(&host) {
            self.counters.foreign_guests += 1;
            let from: Vec<String> = from.iter().map(IpAddr::to_string).collect();
            return Err(format!("{host} is not your address here: you come from {}", from.join(", ")));
        }
        if !guest.hosts.is_empty() && !guest.hosts.iter().any(|prefix| prefix.contains(host)) {
            return Err(format!("this gateway does not serve you at {host}"));
        }
        let may = |asked: &crate::Ports| {
            let within = |own: &crate::Ports| own.first() <= asked.first() && asked.last() <= own.last();
            guest.ports.iter().any(within)
        };
        let ports = match (guest.ports.is_empty(), served.ports.is_empty()) {
            (true, _) => served.ports,
            // Who does not say which gets those that it may have.
            (false, true) => guest.ports.clone(),
            (false, false) if served.ports.iter().all(may) => served.ports,
            (false, false) => return Err("this gateway does not serve you at these ports".into()),
        };
        let served = Served { hosts: served.hosts, ports };
        let other =
            |(other, lease): (&usize, &GuestLease)| *other != place && lease.served.hosts == served.hosts;
        if self.leases.iter().any(other) {
            return Err(format!("another guest is served at {host}"));
        }
        let others = self.leases.iter().filter(|(other, _)| **other != place).map(|(_, lease)| &lease.served);
        let all: Vec<Served> = self.serves.iter().chain(others).chain([&served]).cloned().collect();
        if announce(self.serial, &all).is_none() {
            return Err("this gateway serves as many hosts as it can announce".into());
        }
        Ok((place, served))
    }

    /// Ends the service of hosts whose packets come from another address. Returns their sessions,
    /// which are to be closed.
    pub fn take_moved(&mut self, now: Instant, endpoint: &Endpoint) -> Vec<Handle> {
        if self.leases.is_empty() || now < self.look_at {
            return Vec::new();
        }
        self.look_at = now + ORIGIN_CHECK_INTERVAL;
        let moved = |lease: &GuestLease| {
            lease.session.filter(|session| {
                let from = endpoint.connection(*session).map(comes_from).unwrap_or_default();
                !from.is_empty() && !from.contains(&lease.served.hosts.address())
            })
        };
        let moved: Vec<Handle> = self.leases.values().filter_map(moved).collect();
        if !moved.is_empty() {
            self.leases.retain(|_, lease| lease.session.is_none_or(|session| !moved.contains(&session)));
            self.counters.expired_guests += moved.len() as u64;
            self.note();
        }
        moved
    }

    /// Handles the end of a session. `left`: its host closed it. Returns whether it was a guest's.
    pub fn on_gone(&mut self, now: Instant, session: Handle, left: bool) -> bool {
        let found = self.leases.iter_mut().find(|(_, lease)| lease.session == Some(session));
        let Some((place, lease)) = found.map(|(place, lease)| (*place, lease)) else { return false };
        (lease.session, lease.until) = (None, now + LEASE_TIME);
        if left {
            self.leases.remove(&place);
            self.note();
        }
        true
    }

    /// Ends leases that are over. Returns the new announcement, if it changed.
    pub fn tend(&mut self, now: Instant) -> Option<Vec<Vec<u8>>> {
        let before = self.leases.len();
        self.leases.retain(|_, lease| lease.session.is_some() || lease.until > now);
        if self.leases.len() < before {
            self.counters.expired_guests += (before - self.leases.len()) as u64;
            self.note();
        }
        if !self.changed || now < self.told_at {
            return None;
        }
        (self.changed, self.told_at) = (false, now + MIN_TELL_INTERVAL);
        self.serial = self.serial.wrapping_add(1);
        let leased = self.leases.values().map(|lease| &lease.served);
        let all: Vec<Served> = self.serves.iter().chain(leased).cloned().collect();
        let told = announce(self.serial, &all);
        debug_assert!(told.is_some(), "nobody is admitted who finds no room");
        told
    }

    /// When [`tend`](Self::tend) has something to do.
    pub fn deadline(&self) -> Option<Instant> {
        let ends = self.leases.values().filter(|lease| lease.session.is_none()).map(|lease| lease.until);
        let looks = (!self.leases.is_empty()).then_some(self.look_at);
        ends.chain(looks).chain(self.changed.then_some(self.told_at)).min()
    }

    fn note(&mut self) {
        (self.changed, self.version) = (true, self.version + 1);
    }

    /// The guests that are served.
    pub fn status(&self) -> Vec<GuestStatus> {
        let guest = |(place, lease): (&usize, &GuestLease)| {
            let name = self.known.get(*place).map(|guest| guest.name.clone()).unwrap_or_default();
            GuestStatus { name, served: lease.served.clone(), up: lease.session.is_some() }
        };
        self.leases.iter().map(guest).collect()
    }
}

/// Returns the addresses from which a session's host sends, as far as it has proved them.
fn comes_from(connection: &Connection) -> Vec<IpAddr> {
    let status = connection.status();
    let lives = status.paths.iter().filter(|path| path.silent < SILENT_TIMEOUTS);
    let direct = lives.filter(|path| matches!(path.route.via, Via::Direct));
    direct.map(|path| path.route.remote.ip().to_canonical()).collect()
}
