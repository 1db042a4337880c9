//! The addresses and relays over which a receiver is tried, and the replies that came back from
//! each.

use super::name_lookup::NoAddress;
use crate::host_name::NamedAddress;
use crate::sockets::is_private;
use byway_engine::RelayTrouble;
use byway_net::{IcmpError, IcmpProbe, source_for};
use byway_wire::packet::BASE_DATAGRAM;
use byway_wire::relay::Word;
use byway_wire::{Duration, Instant};
use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// Time after the start until a silent receiver's host is first probed for the reason. Most
/// receivers have answered by then.
const FIRST_KNOCK_DELAY: Duration = Duration::from_millis(1_000);
/// Time between two knocks at one address. Hosts send about one refusal a second (Linux:
/// `icmp_ratelimit`).
const KNOCK_INTERVAL: Duration = Duration::from_millis(1_000);
/// Time that a sender waits for a receiver that may be starting, although its host replies that
/// nothing listens.
const STARTUP_TIMEOUT: Duration = Duration::from_secs(5);
/// The number of refusals in a row after which nothing is assumed to listen at the address.
const REFUSAL_THRESHOLD: u32 = 2;

/// The address or name at which a receiver was tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttemptPlace {
    /// The address to which datagrams went first.
    Address(SocketAddr),
    /// A name that leads to no address.
    Name(NamedAddress),
}

impl From<SocketAddr> for AttemptPlace {
    fn from(address: SocketAddr) -> Self {
        Self::Address(address)
    }
}

impl fmt::Display for AttemptPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Name(host) => host.fmt(f),
        }
    }
}

/// One path to the receiver that was tried, and the reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptResult {
    /// The address or name at which the receiver was tried.
    pub place: AttemptPlace,
    /// The reply to the attempt.
    pub heard: AttemptReply,
}

/// The reply to an attempt to connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttemptReply {
    /// The reply of the address: nothing, or a refusal.
    Direct(Option<IcmpError>),
    /// The address accepted a TCP connection, and does not speak byway's protocol.
    OtherOverTcp,
    /// The reply through a relay: nothing, or why the relay is of no use.
    Relay(Option<RelayTrouble>),
    /// The resolver's reason why the name leads to no address.
    NoAddress(NoAddress),
}

impl AttemptResult {
    /// An attempt by a name that leads to no address.
    pub(crate) const fn of_name(host: NamedAddress, why: NoAddress) -> Self {
        Self { place: AttemptPlace::Name(host), heard: AttemptReply::NoAddress(why) }
    }

    /// Returns the address that was tried. `None`: it was a name.
    pub(crate) const fn address(&self) -> Option<SocketAddr> {
        match self.place {
            AttemptPlace::Address(address) => Some(address),
            AttemptPlace::Name(_) => None,
        }
    }

    /// Whether the address is private, so that only the receiver's own network leads there.
    pub(crate) fn is_private(&self) -> bool {
        matches!(self.heard, AttemptReply::Direct(_) | AttemptReply::OtherOverTcp)
            && self.address().is_some_and(|address| is_private(address.ip()))
    }
}

/// The attempts to reach a receiver on all paths.
pub struct ConnectAttempts {
    begun: Option<Instant>,
    knock_at: Instant,
    direct: Vec<DirectAttempt>,
    relays: Vec<(Word, Option<RelayTrouble>)>,
    /// The local addresses that this side sends from.
    locals: Vec<SocketAddr>,
}

struct DirectAttempt {
    address: SocketAddr,
    probe: Option<IcmpProbe>,
    heard: Option<IcmpError>,
    /// Refusals in a row, the last knock's included.
    refusals: u32,
    /// Whether an error came back since the last probe.
    answered: bool,
    /// Whether the address accepted a TCP connection.
    over_tcp: bool,
}

impl ConnectAttempts {
    /// Makes attempts at a receiver's own addresses, and through the relays that it names. `locals`
    /// are the local addresses to send from.
    pub fn new(addresses: &[SocketAddr], relays: impl Iterator<Item = Word>, locals: &[SocketAddr]) -> Self {
        Self {
            begun: None,
            knock_at: Instant::ZERO,
            direct: addresses.iter().copied().map(DirectAttempt::new).collect(),
            relays: relays.map(|word| (word, None)).collect(),
            locals: locals.to_vec(),
        }
    }

    /// Adds the addresses that are new.
    pub fn learn(&mut self, addresses: &[SocketAddr]) {
        for address in addresses {
            if !self.direct.iter().any(|way| way.address == *address) {
                self.direct.push(DirectAttempt::new(*address));
            }
        }
    }

    /// Sends probes that are due, and reads the replies. Call this regularly while the receiver
    /// does not answer.
    pub fn look(&mut self, now: Instant) {
        if self.begun.is_none() {
            self.begun = Some(now);
            self.knock_at = now + FIRST_KNOCK_DELAY;
        }
        self.listen();
        if now >= self.knock_at {
            self.knock_at = now + KNOCK_INTERVAL;
            self.knock();
        }
    }

    /// Whether nothing listens at any address, and no relay is left to wait for.
    pub fn are_hopeless(&self, now: Instant) -> bool {
        self.begun.is_some_and(|begun| now.since(begun) >= STARTUP_TIMEOUT)
            && !self.direct.is_empty()
            && self.direct.iter().all(|way| way.refusals >= REFUSAL_THRESHOLD)
            && self.relays.iter().all(|(_, trouble)| trouble.is_some())
    }

    /// Notes why a relay does not work.
    pub fn on_relay(&mut self, relay: SocketAddr, trouble: RelayTrouble) {
        for (word, known) in &mut self.relays {
            if word.relays().contains(&relay) {
                *known = Some(trouble);
            }
        }
    }

    /// Notes that TCP connections were accepted at these addresses.
    pub fn on_tcp(&mut self, addresses: impl Iterator<Item = SocketAddr>) {
        for address in addresses {
            self.direct.iter_mut().filter(|way| way.address == address).for_each(|way| way.over_tcp = true);
        }
    }

    /// The reply on each path, after no session was established.
    pub fn tried(&mut self) -> Vec<AttemptResult> {
        if self.direct.iter().any(|way| way.probe.is_none()) {
            // At least what the system says at once.
            self.knock();
        }
        self.listen();
        let result = |address: SocketAddr, heard| AttemptResult { place: address.into(), heard };
        let direct = self.direct.iter().map(|way| result(way.address, way.reply()));
        let relays = self.relays.iter().filter_map(|(word, trouble)| {
            Some(result(*word.relays().first()?, AttemptReply::Relay(*trouble)))
        });
        direct.chain(relays).collect()
    }

    fn listen(&mut self) {
        for way in &mut self.direct {
            if let Some(echo) = way.probe.as_mut().and_then(IcmpProbe::listen) {
                way.hear(echo);
            }
        }
    }

    fn knock(&mut self) {
        for way in &mut self.direct {
            if !std::mem::take(&mut way.answered) {
                way.refusals = 0;
            }
            if way.probe.is_none() {
                match IcmpProbe::new(way.address, from(&self.locals, way.address)) {
                    Ok(probe) => way.probe = Some(probe),
                    Err(echo) => way.hear(echo),
                }
            }
            if let Some(echo) = way.probe.as_mut().and_then(|probe| probe.knock(&[0; BASE_DATAGRAM])) {
                way.hear(echo);
            }
        }
    }
}

impl DirectAttempt {
    const fn new(address: SocketAddr) -> Self {
        Self { address, probe: None, heard: None, refusals: 0, answered: false, over_tcp: false }
    }

    const fn reply(&self) -> AttemptReply {
        match self.heard {
            None if self.over_tcp => AttemptReply::OtherOverTcp,
            heard => AttemptReply::Direct(heard),
        }
    }

    fn hear(&mut self, echo: IcmpError) {
        self.heard = Some(echo);
        self.answered = true;
        self.refusals = if echo == IcmpError::PortUnreachable { self.refusals + 1 } else { 0 };
    }
}

/// Returns the local address to probe `to` from. `None`: the address that the system chooses, which
/// the transfer also uses.
fn from(locals: &[SocketAddr], to: SocketAddr) -> Option<IpAddr> {
    let mut fitting = locals.iter().map(SocketAddr::ip).filter(|ip| ip.is_ipv4() == to.is_ipv4()).peekable();
    let first = fitting.peek().copied()?;
    let chosen = source_for(to.ip());
    let is_used = fitting.any(|ip| ip.is_unspecified() || Some(ip) == chosen);
    (!is_used).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    /// Looks, and waits for `refusals` refusals in a row.
    fn look(ways: &mut ConnectAttempts, now: Instant, refusals: u32) {
        ways.look(now);
        for _ in 0..10_000 {
            if ways.direct[0].refusals >= refusals {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
            ways.listen();
        }
        panic!("no refusal comes");
    }

    #[test]
    fn a_receiver_that_is_being_started_is_waited_for() {
        let address = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut ways = ConnectAttempts::new(&[address], std::iter::empty(), &[]);
        ways.look(at(10));
        assert!(ways.direct[0].probe.is_none(), "most answer by themselves");
        for (second, refusals) in [(11, 1), (12, 2), (13, 3)] {
            look(&mut ways, at(second), refusals);
            assert!(!ways.are_hopeless(at(14)));
        }
        assert!(ways.are_hopeless(at(15)));
        let started = UdpSocket::bind(address).unwrap();
        ways.look(at(16));
        ways.look(at(17));
        assert!(!ways.are_hopeless(at(17)), "somebody listens by now");
        drop(started);
        let tried = [AttemptResult {
            place: address.into(),
            heard: AttemptReply::Direct(Some(IcmpError::PortUnreachable)),
        }];
        assert_eq!(ways.tried(), tried, "what was heard is not forgotten");
    }

    #[test]
    fn who_knows_a_relay_that_may_answer_goes_on() {
        use byway_wire::relay::{Grant, Minute, QuotaClass, RateClass, RelayKey, Scope, Terms};
        let terms = Terms {
            expiry: Minute::from_unix(u64::from(u32::MAX)),
            rate: RateClass::UNLIMITED,
            quota: QuotaClass::UNLIMITED,
            scope: Scope::ALL,
        };
        let relay: SocketAddr = "198.51.100.9:4748".parse().unwrap();
        let word = RelayKey::new(&[1; 32]).issue(Grant { id: 1, terms }, vec![relay]).unwrap();
        let address = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut ways = ConnectAttempts::new(&[address], std::iter::once(word), &[]);
        ways.look(at(0));
        look(&mut ways, at(1), 1);
        look(&mut ways, at(2), 2);
        assert!(!ways.are_hopeless(at(6)));
        ways.on_relay(relay, RelayTrouble::Silent);
        assert!(ways.are_hopeless(at(6)));
        assert_eq!(
            ways.tried()[1],
            AttemptResult { place: relay.into(), heard: AttemptReply::Relay(Some(RelayTrouble::Silent)) }
        );
    }
}
