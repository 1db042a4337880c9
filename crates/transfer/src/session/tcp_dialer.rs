//! Dials addresses over TCP, each again and again while it is wanted, and hands over the
//! connections.

use byway_net::{Carrier, Dialing, Ready, TcpCarrier, Token, Watch};
use byway_wire::relay::Word;
use byway_wire::{Duration, Instant};
use std::net::{IpAddr, SocketAddr};
use std::sync::Weak;

/// Time that a SYN may remain unanswered. The kernel has repeated it twice by then.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The wait after a connection that served and is gone.
const RENEW_DELAY: Duration = Duration::from_millis(500);
/// The time between two checks of which addresses are to be dialled.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);
/// Time without any data on an open connection after which its path is assumed to lose large
/// segments. The next connections use small ones.
pub(crate) const NARROW_TIMEOUT: Duration = Duration::from_secs(3);
/// The most relays that one dialer dials.
const MAX_RELAYS: usize = 64;
/// The first token of a dialer of relays alone. The owner's other descriptors have smaller tokens,
/// and listeners larger ones.
const FIRST_RELAY_TOKEN: u32 = 1 << 29;

/// The waits between attempts: the first, which doubles with each failure, and the longest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryDelays {
    /// The wait after the first failure.
    pub first: Duration,
    /// The longest wait between two attempts.
    pub max: Duration,
}

impl RetryDelays {
    /// The delays for TCP in place of UDP. They are long, as a network that refuses a connection
    /// does so for long.
    pub(crate) const TCP: Self = Self { first: Duration::from_secs(5), max: Duration::from_secs(30) };

    /// The wait after `failures` failures in a row and one more.
    #[must_use]
    pub fn after(self, failures: u32) -> Duration {
        self.first.saturating_mul(1 << failures.min(16)).min(self.max)
    }
}

/// Whether an address is to be dialled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DialNeed {
    /// The address is not to be dialled. An attempt under way is given up.
    Unwanted,
    /// The address is to be dialled.
    Wanted,
    /// The address already has a connection.
    Served,
}

/// Dials addresses over TCP.
pub struct TcpDialer {
    watch: Watch,
    /// The token of the first target. Later targets have the following numbers.
    first_token: u32,
    max_targets: usize,
    delays: RetryDelays,
    targets: Vec<DialTarget>,
    look_at: Instant,
    opened: Vec<TcpCarrier>,
    warnings: Vec<String>,
}

/// A remote address to dial, with the local address to dial from.
pub(crate) struct DialTarget {
    /// The local address; `None`: the system's choice.
    from: Option<IpAddr>,
    pub address: SocketAddr,
    /// The present attempt, and its timeout.
    under_way: Option<(Dialing, Instant)>,
    next_at: Instant,
    failures: u32,
    narrow: NarrowWay,
    is_accepted: bool,
    /// Whether the address is of no use any more. Another may take its place.
    is_retired: bool,
    /// Lives while the last connection is open.
    open: Weak<()>,
    is_warned: bool,
}

impl DialTarget {
    const fn new(from: Option<IpAddr>, address: SocketAddr) -> Self {
        Self {
            from,
            address,
            under_way: None,
            next_at: Instant::ZERO,
            failures: 0,
            narrow: NarrowWay { open_since: None, is_narrow: false },
            is_accepted: false,
            is_retired: false,
            open: Weak::new(),
            is_warned: false,
        }
    }

    /// Whether the last connection to this target is still open.
    pub fn is_open(&self) -> bool {
        self.open.strong_count() > 0
    }

    fn dial(&mut self, now: Instant, watch: &Watch, token: Token) -> std::io::Result<()> {
        self.under_way = None;
        let dialing = match self.narrow.is_narrow {
            true => Dialing::begin_narrow(self.address, self.from)?,
            false => Dialing::begin(self.address, self.from)?,
        };
        watch.add(&dialing, token)?;
        self.under_way = Some((dialing, now + CONNECT_TIMEOUT));
        Ok(())
    }
}

impl TcpDialer {
    /// Makes a dialer without targets, which takes at most `max_targets`.
    pub(crate) fn new(watch: &Watch, first_token: u32, max_targets: usize, delays: RetryDelays) -> Self {
        Self {
            watch: watch.clone(),
            first_token,
            max_targets,
            delays,
            targets: Vec::new(),
            look_at: Instant::ZERO,
            opened: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Makes a dialer for the relays of these relay words, for an endpoint that is reached through
    /// them.
    pub fn of_relays<'a>(watch: &Watch, words: impl Iterator<Item = &'a Word>) -> Self {
        let mut dialer = Self::new(watch, FIRST_RELAY_TOKEN, MAX_RELAYS, RetryDelays::TCP);
        words.for_each(|word| dialer.add_relay(word, &[]));
        dialer
    }

    /// Dials an address from each address of `from` in its family. If `from` is empty, the system
    /// chooses.
    pub(crate) fn add(&mut self, address: SocketAddr, from: &[IpAddr]) {
        let fits = |from: &&IpAddr| from.is_ipv4() == address.is_ipv4();
        match from.is_empty() {
            true => self.add_from(None, address),
            false => from.iter().filter(fits).for_each(|from| self.add_from(Some(*from), address)),
        }
    }

    /// Adds a relay. It is dialled at its first address of each family.
    pub(crate) fn add_relay(&mut self, word: &Word, from: &[IpAddr]) {
        for address in dialled_addresses(word) {
            self.add(address, from);
        }
    }

    fn add_from(&mut self, from: Option<IpAddr>, address: SocketAddr) {
        let is_same = |target: &&mut DialTarget| (target.from, target.address) == (from, address);
        if let Some(known) = self.targets.iter_mut().find(is_same) {
            known.is_retired = false;
        } else if let Some(place) = self.targets.iter_mut().find(|target| target.is_retired) {
            *place = DialTarget::new(from, address);
        } else if self.targets.len() < self.max_targets {
            self.targets.push(DialTarget::new(from, address));
        }
    }

    /// Restricts dialling to these addresses. Open connections stay open.
    pub(crate) fn retain(&mut self, addresses: &[SocketAddr]) {
        for target in &mut self.targets {
            target.is_retired = !addresses.contains(&target.address);
        }
    }

    /// Dials relays while UDP brings no answer. `is_served`: whether a connection leads to one, or
    /// none is needed.
    pub fn look_at_relays(&mut self, now: Instant, wanted: bool, is_served: impl Fn(SocketAddr) -> bool) {
        self.look(now, false, |target| match (is_served(target.address), wanted) {
            (true, _) => DialNeed::Served,
            (false, true) => DialNeed::Wanted,
            (false, false) => DialNeed::Unwanted,
        });
    }

    /// Dials the targets that are needed. `is_unheard`: whether the session of the connections
    /// receives nothing.
    pub(crate) fn look(&mut self, now: Instant, is_unheard: bool, need: impl Fn(&DialTarget) -> DialNeed) {
        if now < self.look_at {
            return;
        }
        self.look_at = now + LOOK_INTERVAL;
        for (target, number) in self.targets.iter_mut().zip(self.first_token..) {
            let need = if target.is_retired { DialNeed::Unwanted } else { need(target) };
            if target.narrow.look(now, need == DialNeed::Served, is_unheard) {
                // An attempt that fails at once leaves what is open.
                let _ = target.dial(now, &self.watch, Token(number));
                continue;
            }
            let is_late = target.under_way.as_ref().is_some_and(|(_, until)| now >= *until);
            if need == DialNeed::Served {
                // A narrow connection follows one by which nothing is heard.
                let waits = is_unheard && target.narrow.is_narrow && target.under_way.is_some() && !is_late;
                if !waits {
                    // Closed, it is watched no more.
                    (target.under_way, target.failures) = (None, 0);
                    target.next_at = target.next_at.min(now + RENEW_DELAY);
                }
                continue;
            }
            target.under_way.take_if(|_| is_late || need == DialNeed::Unwanted);
            if need == DialNeed::Unwanted || target.under_way.is_some() || now < target.next_at {
                continue;
            }
            target.next_at = now + self.delays.after(target.failures);
            target.failures = target.failures.saturating_add(1);
            // Where the system knows no way, another address may lead there.
            if let Err(error) = target.dial(now, &self.watch, Token(number))
                && let Some(from) = target.from.filter(|_| !std::mem::replace(&mut target.is_warned, true))
            {
                let to = target.address;
                self.warnings.push(format!("cannot connect from {from} to {to}, will try again: {error}"));
            }
        }
    }

    /// Starts again for a new session.
    pub(crate) fn begin(&mut self) {
        self.look_at = Instant::ZERO;
        for target in &mut self.targets {
            (target.narrow, target.is_accepted) = (NarrowWay::default(), false);
        }
    }

    /// The addresses that are dialled.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        self.targets.iter().filter(|target| !target.is_retired).map(|target| target.address)
    }

    /// Whether addresses are dialled from this local address.
    pub(crate) fn dials_from(&self, from: IpAddr) -> bool {
        self.targets.iter().any(|target| target.from == Some(from))
    }

    /// Returns the addresses that have accepted a connection since the session began.
    pub(crate) fn accepted(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        self.targets.iter().filter(|target| target.is_accepted).map(|target| target.address)
    }

    /// The next sentence that a person should read.
    pub(crate) fn next_warning(&mut self) -> Option<String> {
        self.warnings.pop()
    }

    /// Handles a ready descriptor. Returns whether it belongs to this dialer.
    pub fn ready(&mut self, ready: Ready) -> bool {
        let at = ready.token.0.checked_sub(self.first_token).and_then(|at| usize::try_from(at).ok());
        let Some(target) = at.and_then(|at| self.targets.get_mut(at)) else { return false };
        if let Some((dialing, _)) = target.under_way.take_if(|_| ready.writable) {
            let _ = self.watch.remove(&dialing);
            // If another host answers there, the handshake tells.
            if let Ok(connection) = dialing.finish() {
                (target.open, target.is_accepted) = (connection.lifetime(), true);
                self.opened.push(connection);
            }
        }
        true
    }

    /// Connections for the driver.
    pub fn opened(&mut self) -> impl Iterator<Item = Carrier> + '_ {
        self.opened.drain(..).map(Carrier::from)
    }
}

/// The addresses at which a relay is dialled: its first one of each family.
pub fn dialled_addresses(word: &Word) -> impl Iterator<Item = SocketAddr> + '_ {
    let first = |v4| word.relays().iter().find(|address| address.is_ipv4() == v4).copied();
    [true, false].into_iter().filter_map(first)
}

/// Detects that large TCP segments to an address are lost: it accepts a connection, but nothing
/// arrives.
#[derive(Clone, Copy, Debug, Default)]
struct NarrowWay {
    open_since: Option<Instant>,
    is_narrow: bool,
}

impl NarrowWay {
    /// Takes in whether there is a connection, and whether the session hears nothing. Returns
    /// whether the address is to be dialled now with small segments, which happens once.
    fn look(&mut self, now: Instant, is_open: bool, is_unheard: bool) -> bool {
        if !is_open {
            self.open_since = None;
            return false;
        }
        let since = *self.open_since.get_or_insert(now);
        let is_due = !self.is_narrow && is_unheard && now.since(since) >= NARROW_TIMEOUT;
        self.is_narrow |= is_due;
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use byway_net::Control;
    use std::net::TcpListener;

    #[test]
    fn a_connection_by_which_nothing_is_heard_is_followed_by_a_narrow_one() {
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let mut way = NarrowWay::default();
        assert!(!way.look(at(1), false, true) && !way.look(at(60), true, true));
        // It is heard, and then nothing more.
        assert!(!way.look(at(70), true, false) && !way.is_narrow);
        assert!(way.look(at(71), true, true) && way.is_narrow);
        assert!(!way.look(at(90), true, true), "once");
        assert!(!way.look(at(91), false, true) && way.is_narrow, "the next are narrow too");
    }

    #[test]
    fn a_new_connection_has_three_seconds() {
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let mut way = NarrowWay::default();
        assert!(
            !way.look(at(10), true, true) && !way.look(at(12), true, true) && way.look(at(13), true, true)
        );
    }

    #[test]
    fn waits_double_up_to_the_longest() {
        let waits = [0, 1, 2, 3, 40].map(|failures| RetryDelays::TCP.after(failures).as_secs());
        assert_eq!(waits, [5, 10, 20, 30, 30]);
    }

    #[test]
    fn an_address_of_no_more_use_makes_place_for_another() {
        let control = Control::new().unwrap();
        let mut dialer = TcpDialer::new(control.watch(), 7, 2, RetryDelays::TCP);
        let [old, kept, new]: [SocketAddr; 3] = [1, 2, 3].map(|port| ([127, 0, 0, 1], port).into());
        let dialled = |dialer: &TcpDialer| dialer.addresses().collect::<Vec<_>>();
        dialer.add(old, &[]);
        dialer.add(kept, &[]);
        dialer.retain(&[kept, new]);
        assert_eq!(dialled(&dialer), [kept]);
        dialer.look(Instant::ZERO, false, |target| {
            assert_eq!(target.address, kept, "the other is not dialled");
            DialNeed::Unwanted
        });
        dialer.add(new, &[]);
        assert_eq!(dialled(&dialer), [new, kept]);
        dialer.retain(&[kept]);
        dialer.retain(&[new, kept]);
        assert_eq!(dialled(&dialer), [new, kept], "it is back");
    }

    #[test]
    fn an_address_is_dialled_while_it_is_wanted_and_again_after_the_wait() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let control = Control::new().unwrap();
        let delays = RetryDelays { first: Duration::from_secs(1), max: Duration::from_secs(4) };
        let mut dialer = TcpDialer::new(control.watch(), 7, 1, delays);
        dialer.add(address, &[]);
        dialer.add(address, &[]);
        dialer.add("127.0.0.1:1".parse().unwrap(), &[]);
        assert_eq!(dialer.addresses().collect::<Vec<_>>(), [address], "each once, and one at most");
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        dialer.look(at(0), false, |_| DialNeed::Unwanted);
        assert!(dialer.targets[0].under_way.is_none());
        dialer.look(at(100), false, |_| DialNeed::Wanted);
        assert!(dialer.targets[0].under_way.is_some());
        dialer.look(at(200), false, |_| DialNeed::Unwanted);
        assert!(dialer.targets[0].under_way.is_none(), "it is not wanted any more");
        dialer.look(at(1_000), false, |_| DialNeed::Wanted);
        assert!(dialer.targets[0].under_way.is_none(), "too soon");
        dialer.look(at(1_100), false, |_| DialNeed::Wanted);
        listener.accept().unwrap();
        assert!(dialer.ready(Ready { token: Token(7), readable: false, writable: true }));
        assert!(!dialer.ready(Ready { token: Token(8), readable: false, writable: true }));
        assert_eq!(dialer.accepted().collect::<Vec<_>>(), [address]);
        assert!(dialer.targets[0].is_open());
        assert_eq!(dialer.opened().count(), 1);
        assert!(!dialer.targets[0].is_open(), "the driver has dropped it");
        dialer.begin();
        assert_eq!(dialer.accepted().count(), 0);
    }
}
