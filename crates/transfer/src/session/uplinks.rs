//! Local addresses that come and go while a transfer runs. The sender starts to use an address that
//! the host gets. It stops using an address that the host lost, until the address is back.

use crate::sockets::{DEFAULT_MAX_SOCKETS, uplinks};
use byway_net::{AddressChanges, Socket};
use byway_wire::{Duration, Instant, LinkChange, Local};
use std::net::{IpAddr, SocketAddr};

/// The shortest time between two checks of the host's addresses. A check takes some tenths of a
/// millisecond.
const ADDRESS_CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// The most destinations after which no more are added.
const MAX_DESTINATIONS: usize = 256;

/// The sockets of a sender whose local addresses were not chosen by the user.
pub struct Uplinks {
    /// The address of each socket by its number, and whether the host still has that address.
    sockets: Vec<(SocketAddr, bool)>,
    /// The addresses to which datagrams may be sent first.
    destinations: Vec<IpAddr>,
    look_at: Option<Instant>,
    /// `None`: the kernel does not tell of changes.
    changes: Option<AddressChanges>,
    /// Whether the next look may find something that the kernel does not tell of.
    is_unsure: bool,
    opened: Vec<Socket>,
}

/// A change in the host's addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    /// The host lost the address of the socket with this index.
    Left(usize),
    Returned(usize),
    /// The host has a new address, which no socket has yet.
    Came(IpAddr),
}

impl Uplinks {
    /// Makes the uplinks of a sender with these sockets. Its first datagrams go to one of
    /// `destinations`.
    #[must_use]
    pub fn new(sockets: &[SocketAddr], destinations: Vec<IpAddr>) -> Self {
        let sockets = sockets.iter().map(|address| (*address, true)).collect();
        let changes = AddressChanges::open().ok();
        Self { sockets, destinations, look_at: None, changes, is_unsure: false, opened: Vec::new() }
    }

    /// Adds destinations of datagrams, such as the results of a name lookup.
    pub fn lead_to(&mut self, found: impl Iterator<Item = IpAddr>) {
        for ip in found {
            if !self.destinations.contains(&ip) && self.destinations.len() < MAX_DESTINATIONS {
                self.destinations.push(ip);
                (self.look_at, self.is_unsure) = (Some(Instant::ZERO), true);
            }
        }
    }

    /// The changes of known sockets to report to the machine. New sockets are then returned by
    /// [`opened`](Self::opened).
    pub fn look(&mut self, now: Instant) -> Vec<LinkChange> {
        if self.look_at.replace(now + ADDRESS_CHECK_INTERVAL).is_none() {
            return Vec::new(); // the sockets are new
        }
        let is_told = self.changes.as_ref().is_none_or(AddressChanges::take);
        if !std::mem::take(&mut self.is_unsure) && !is_told {
            return Vec::new();
        }
        // What cannot be read has not changed.
        let Ok(found) = uplinks(&self.destinations) else {
            self.is_unsure = true;
            return Vec::new();
        };
        let mut told = Vec::new();
        for change in changes(&self.sockets, &found, &self.destinations) {
            match change {
                Change::Left(index) | Change::Returned(index) => {
                    let Some((address, there)) = self.sockets.get_mut(index) else { continue };
                    *there = !*there;
                    let Ok(number) = u16::try_from(index) else { continue };
                    told.push(LinkChange { local: Local(number), address: *address, up: *there });
                }
                // An address that is not to be had yet is tried again.
                Change::Came(ip) => match Socket::bind(SocketAddr::new(ip, 0)) {
                    Ok(socket) => {
                        self.sockets.push((socket.address(), true));
                        self.opened.push(socket);
                    }
                    Err(_) => self.is_unsure = true,
                },
            }
        }
        told
    }

    /// Whether the next [`look`](Self::look) is due.
    #[must_use]
    pub fn is_due(&self, now: Instant) -> bool {
        self.look_at.is_none_or(|at| now >= at)
    }

    /// Returns sockets for new addresses. Their numbers continue those of the existing sockets.
    pub fn opened(&mut self) -> Vec<Socket> {
        std::mem::take(&mut self.opened)
    }
}

/// The differences between the sockets and the host's addresses. Only addresses that may lead to
/// one of `destinations` count.
fn changes(sockets: &[(SocketAddr, bool)], found: &[IpAddr], destinations: &[IpAddr]) -> Vec<Change> {
    let of_an_uplink = |ip: IpAddr| !ip.is_unspecified() && !ip.is_loopback();
    let mut changes = Vec::new();
    for (index, (address, there)) in sockets.iter().enumerate() {
        match (there, found.contains(&address.ip())) {
            (true, false) if of_an_uplink(address.ip()) => changes.push(Change::Left(index)),
            (false, true) => changes.push(Change::Returned(index)),
            _ => {}
        }
    }
    let room = DEFAULT_MAX_SOCKETS.saturating_sub(sockets.len());
    let leads_there = |ip: &IpAddr| {
        destinations.iter().any(|to| to.is_ipv4() == ip.is_ipv4() && !to.is_loopback())
            // One for all addresses sends from new ones by itself.
            && !sockets.iter().any(|(own, _)| own.ip() == *ip || own.ip().is_unspecified() && own.is_ipv4() == ip.is_ipv4())
    };
    changes.extend(found.iter().filter(|ip| leads_there(ip)).take(room).map(|ip| Change::Came(*ip)));
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn sockets(addresses: &[(&str, bool)]) -> Vec<(SocketAddr, bool)> {
        addresses.iter().map(|(address, there)| (SocketAddr::new(ip(address), 5_000), *there)).collect()
    }

    #[test]
    fn addresses_come_go_and_come_back() {
        let known = sockets(&[("10.0.0.1", true), ("10.1.0.1", true), ("10.2.0.1", false)]);
        let far = [ip("192.0.2.1")];
        assert_eq!(changes(&known, &[ip("10.0.0.1"), ip("10.1.0.1")], &far), []);
        let found = [ip("10.2.0.1"), ip("10.0.0.1"), ip("10.3.0.1"), ip("2001:db8::1")];
        let expected = [Change::Left(1), Change::Returned(2), Change::Came(ip("10.3.0.1"))];
        assert_eq!(changes(&known, &found, &far), expected);
        let both = [ip("192.0.2.1"), ip("2001:db8::9")];
        assert!(changes(&known, &found, &both).contains(&Change::Came(ip("2001:db8::1"))));
    }

    #[test]
    fn an_address_that_is_found_later_is_looked_at_soon() {
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let mut uplinks = Uplinks::new(&[], vec![ip("192.0.2.1")]);
        uplinks.look(at(100));
        uplinks.lead_to([ip("192.0.2.1")].into_iter());
        assert!(!uplinks.is_due(at(101)), "it was known");
        uplinks.lead_to([ip("198.51.100.1")].into_iter());
        assert!(uplinks.is_due(at(101)));
        uplinks.lead_to((0..1_000).map(|n: u16| IpAddr::from([10, 0, (n >> 8) as u8, n as u8])));
        assert_eq!(uplinks.destinations.len(), MAX_DESTINATIONS);
    }

    #[test]
    fn what_leads_nowhere_or_is_used_already_is_left_alone() {
        let far = [ip("192.0.2.1")];
        // Loopback and the unspecified address are no uplinks, and the latter is all of its family.
        let any = sockets(&[("0.0.0.0", true), ("127.0.0.1", true)]);
        assert_eq!(changes(&any, &[ip("10.0.0.1")], &far), []);
        let one = sockets(&[("127.0.0.1", true)]);
        assert_eq!(changes(&one, &[ip("10.0.0.1")], &[ip("127.0.0.1")]), []);
        let many: Vec<IpAddr> = (1..=9).map(|host| IpAddr::from([10, 0, 0, host])).collect();
        assert_eq!(changes(&one, &many, &far).len(), DEFAULT_MAX_SOCKETS - 1);
    }
}
