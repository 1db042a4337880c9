//! A socket for each address of the host, beside one that is bound to all of them. An answer leaves
//! from the address that was asked, because the socket that brought the question sends it. From a
//! socket bound to all addresses the system chooses the source, which a NAT or a firewall in front
//! of the asker drops if it is another address.
//!
//! The machine is not told of these sockets, so it begins nothing by them. A packet costs nothing
//! more: the system looks up the socket by the packet's destination in any case.

use crate::address_changes::AddressChanges;
use crate::interfaces::interfaces;
use crate::socket::Socket;
use byway_wire::{Duration, Instant, Local};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Time between two lookups of the host's addresses, at least. A lookup takes up to some hundred
/// microseconds.
const LOOKUP_INTERVAL: Duration = Duration::from_secs(2);
/// The most sockets of single addresses.
const MAX_SOCKETS: usize = 64;

/// The sockets bound to all addresses, with the sockets of single addresses beside them.
#[derive(Debug)]
pub(crate) struct AddressSockets {
    all: Vec<Beside>,
    /// When the next lookup may be.
    look_at: Instant,
    need: Need,
    /// `None`: the kernel does not tell of changes.
    changes: Option<AddressChanges>,
}

/// Whether a lookup would bring anything new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    /// No check: the kernel would have reported a change.
    None,
    /// Perhaps a check: at the next event.
    Maybe,
    /// The kernel reported a change.
    Changed,
}

/// A socket that is bound to all addresses.
#[derive(Debug)]
struct Beside {
    socket: Local,
    is_v4: bool,
    /// The only address that there was first: the system sends from there, and goes on so.
    home: Option<IpAddr>,
    /// Whether the addresses were looked up before.
    is_known: bool,
    /// The sockets of single addresses.
    own: BTreeMap<IpAddr, Local>,
}

/// A change in the sockets of single addresses.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AddressChange {
    /// A new address needs a socket, with the port of the first one.
    Bind(Local, IpAddr),
    /// The address of this socket is gone, so the socket is to be closed.
    Close(Local),
}

impl AddressSockets {
    pub(crate) fn new() -> Self {
        let changes = AddressChanges::open().ok();
        Self { all: Vec::new(), look_at: Instant::ZERO, need: Need::Maybe, changes }
    }

    /// Returns the descriptor that the driver is to watch. It calls [`on_change`](Self::on_change)
    /// when that is ready.
    pub(crate) const fn changes(&self) -> Option<&AddressChanges> {
        self.changes.as_ref()
    }

    /// The host's addresses changed.
    pub(crate) const fn on_change(&mut self) {
        self.need = Need::Changed;
    }

    /// When the driver is to look although nothing else happens.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        (self.need == Need::Changed && !self.all.is_empty()).then_some(self.look_at)
    }

    /// Looks after a socket from now on.
    pub(crate) fn add(&mut self, socket: Local, bound: &Socket) {
        if bound.answers_by_address() && bound.address().ip().is_unspecified() {
            let is_v4 = bound.address().is_ipv4();
            self.all.push(Beside { socket, is_v4, home: None, is_known: false, own: BTreeMap::new() });
            (self.look_at, self.need) = (Instant::ZERO, Need::Maybe);
        }
    }

    /// Whether the next [`look`](Self::look) is due.
    #[inline]
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        !self.all.is_empty() && self.need != Need::None && self.look_at <= now
    }

    /// Looks the host's addresses up.
    pub(crate) fn look(&mut self, now: Instant) -> Vec<AddressChange> {
        self.look_at = now + LOOKUP_INTERVAL;
        // What changes from here on is told anew.
        let told = self.changes.as_ref().map(AddressChanges::take);
        self.need = told.map_or(Need::Maybe, |_| Need::None);
        // Without the list everything stays as it is.
        let Ok(interfaces) = interfaces() else { return Vec::new() };
        let own: BTreeSet<IpAddr> = interfaces.into_iter().map(|interface| interface.address).collect();
        let changes: Vec<_> = self.all.iter_mut().flat_map(|beside| beside.compare(&own)).collect();
        if !changes.is_empty() {
            // One may fail, and be tried again.
            self.need = Need::Maybe;
        }
        changes
    }

    /// Enters which socket an address has. One that could not be bound is tried at the next look:
    /// an IPv6 address cannot be bound in its first second (RFC 4862 section 5.4).
    pub(crate) fn bound(&mut self, beside: Local, ip: IpAddr, socket: Local) {
        if let Some(beside) = self.all.iter_mut().find(|it| it.socket == beside) {
            beside.own.insert(ip, socket);
        }
    }
}

impl Beside {
    fn compare(&mut self, own: &BTreeSet<IpAddr>) -> Vec<AddressChange> {
        let fitting: Vec<IpAddr> = own.iter().copied().filter(|ip| ip.is_ipv4() == self.is_v4).collect();
        if let ([only], false) = (&fitting[..], self.is_known) {
            self.home = Some(*only);
        }
        // Once it is gone the system sends from another, also after it has come back.
        self.home = self.home.filter(|home| own.contains(home));
        self.is_known |= !fitting.is_empty();
        let mut changes = Vec::new();
        self.own.retain(|ip, socket| {
            let is_there = own.contains(ip);
            if !is_there {
                changes.push(AddressChange::Close(*socket));
            }
            is_there
        });
        let room = MAX_SOCKETS.saturating_sub(self.own.len());
        let new = fitting.into_iter().filter(|ip| self.home != Some(*ip) && !self.own.contains_key(ip));
        changes.extend(new.take(room).map(|ip| AddressChange::Bind(self.socket, ip)));
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_with_one_address_needs_no_second_socket_and_others_one_for_each() {
        let ip = |last: u8| IpAddr::from([192, 0, 2, last]);
        let v6: IpAddr = "2001:db8::1".parse().unwrap();
        let own = |all: &[IpAddr]| all.iter().copied().collect::<BTreeSet<_>>();
        let beside = || AddressSockets {
            all: vec![Beside {
                socket: Local(0),
                is_v4: true,
                home: None,
                is_known: false,
                own: BTreeMap::new(),
            }],
            ..AddressSockets::new()
        };
        let bind = |last: u8| AddressChange::Bind(Local(0), ip(last));
        // One address, then a floating one beside it, which goes again.
        let mut sockets = beside();
        assert_eq!(sockets.all[0].compare(&own(&[])), []);
        assert_eq!(sockets.all[0].compare(&own(&[ip(1), v6])), []);
        assert_eq!(sockets.all[0].compare(&own(&[ip(1), ip(7), v6])), [bind(7)]);
        sockets.bound(Local(0), ip(7), Local(16_384));
        assert_eq!(sockets.all[0].compare(&own(&[ip(1), ip(7), v6])), []);
        assert_eq!(sockets.all[0].compare(&own(&[ip(1), v6])), [AddressChange::Close(Local(16_384))]);
        assert_eq!(sockets.all[0].compare(&own(&[ip(1), v6])), []);
        // Two from the start; one cannot be bound, and is tried again.
        let mut sockets = beside();
        assert_eq!(sockets.all[0].compare(&own(&[ip(1), ip(2)])), [bind(1), bind(2)]);
        sockets.bound(Local(0), ip(2), Local(16_385));
        assert_eq!(sockets.all[0].compare(&own(&[ip(1), ip(2)])), [bind(1)]);
        assert_eq!(
            sockets.all[0].compare(&own(&(1..=200).map(ip).collect::<Vec<_>>())).len(),
            MAX_SOCKETS - 1
        );
        // The only address goes, as a lease that has expired, and comes back beside another.
        let mut sockets = beside();
        assert_eq!(sockets.all[0].compare(&own(&[ip(1)])), []);
        assert_eq!(sockets.all[0].compare(&own(&[ip(2)])), [bind(2)]);
        sockets.bound(Local(0), ip(2), Local(16_386));
        assert_eq!(sockets.all[0].compare(&own(&[ip(1), ip(2)])), [bind(1)]);
    }
}
