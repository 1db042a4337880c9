//! Looks up the names of a ticket, in threads: the system's resolver waits, and the event loop must
//! not.

use crate::host_name::{HostName, NamedAddress};
use byway_net::{Clock, Waker};
use byway_wire::{Duration, Instant};
use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, channel};
use std::thread::Builder;
use thiserror::Error;

/// The most addresses to which one name leads.
pub(crate) const MAX_ADDRESSES_PER_NAME: usize = 8;
/// Time to wait for a name's addresses, if there is nothing else to try.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// The shortest time between two questions for a name before a session is begun.
const ASK_INTERVAL: Duration = Duration::from_secs(5);
/// The silence of the peer after which its names are looked up again in a session.
const SILENCE_THRESHOLD: Duration = Duration::from_secs(3);
/// The shortest time between two questions for a name in a session.
const SILENT_ASK_INTERVAL: Duration = Duration::from_secs(10);
/// The most threads of this process that look names up. A resolver that hangs holds its threads.
const MAX_THREADS: usize = 16;

/// Threads of this process that look names up now.
static RUNNING_THREADS: AtomicUsize = AtomicUsize::new(0);

/// Why a name leads to no address.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NoAddress {
    /// The resolver knows no address. The text is its message.
    #[error("no address: {0}")]
    Unknown(String),
    /// No address is that of another host. The text has the first one.
    #[error("no address: it leads to {0}, which is no address of another host")]
    Forbidden(IpAddr),
    /// The resolver has not answered in time.
    #[error("no address: the resolver does not answer")]
    Unanswered,
}

/// A step in looking a name up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameStep {
    /// The system was asked.
    Asked(HostName),
    /// The name leads to these addresses.
    Found(HostName, Vec<IpAddr>),
    /// The name leads to no address.
    NotFound(HostName, NoAddress),
}

type LookUp = fn(&HostName) -> io::Result<Vec<IpAddr>>;
type Found = Result<Vec<IpAddr>, NoAddress>;

/// The names of one receiver, and their addresses.
pub(crate) struct NameLookup {
    names: Vec<KnownName>,
    look_up: LookUp,
    sender: mpsc::Sender<(HostName, Found)>,
    answers: Receiver<(HostName, Found)>,
    waker: Waker,
}

/// The state of the last lookup of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Question {
    /// There was none, or it has ended.
    Answered,
    /// It waits for a free thread.
    Waits,
    /// A thread waits for the resolver.
    UnderWay,
}

/// A name, and the answers so far.
struct KnownName {
    name: HostName,
    ports: Vec<u16>,
    asked_at: Option<Instant>,
    question: Question,
    /// The addresses from the last lookup that found any.
    found: Vec<IpAddr>,
    /// Why the last lookup found no addresses. `None`: it found some, or no lookup has ended
    /// yet.
    trouble: Option<NoAddress>,
    /// The last trouble of which a person was warned.
    warned: Option<NoAddress>,
    /// The steps of the last lookup that were not reported yet: its start and its result.
    untold: [Option<NameStep>; 2],
}

impl NameLookup {
    /// Makes the lookup of names that were not looked up yet. Each result wakes `waker`.
    pub fn new(names: &[NamedAddress], waker: &Waker) -> Self {
        Self::with(names, waker, ask_system)
    }

    fn with(names: &[NamedAddress], waker: &Waker, look_up: LookUp) -> Self {
        let mut known: Vec<KnownName> = Vec::new();
        for NamedAddress { name, port } in names {
            match known.iter_mut().find(|known| known.name == *name) {
                Some(known) => known.ports.push(*port),
                None => known.push(KnownName {
                    name: name.clone(),
                    ports: vec![*port],
                    asked_at: None,
                    question: Question::Answered,
                    found: Vec::new(),
                    trouble: None,
                    warned: None,
                    untold: [None, None],
                }),
            }
        }
        let (sender, answers) = channel();
        Self { names: known, look_up, sender, answers, waker: waker.clone() }
    }

    /// The number of names.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Looks up the names, except those whose lookup runs or ended a moment ago.
    pub fn ask(&mut self, now: Instant) {
        self.ask_after(ASK_INTERVAL, now);
    }

    /// Takes in answers. After a `silence` of the peer it also asks again. Returns whether there
    /// was an answer.
    pub fn look(&mut self, silence: Option<Duration>, now: Instant) -> bool {
        if silence.is_some_and(|silence| silence >= SILENCE_THRESHOLD) {
            self.ask_after(SILENT_ASK_INTERVAL, now);
        }
        self.begin_questions();
        let mut is_answered = false;
        while let Ok((name, found)) = self.answers.try_recv() {
            is_answered = true;
            for known in self.names.iter_mut().filter(|known| known.name == name) {
                known.question = Question::Answered;
                known.untold[1] = Some(match &found {
                    Ok(found) => NameStep::Found(name.clone(), found.clone()),
                    Err(trouble) => NameStep::NotFound(name.clone(), trouble.clone()),
                });
                match &found {
                    Ok(found) => (known.found, known.trouble) = (found.clone(), None),
                    Err(trouble) => known.trouble = Some(trouble.clone()),
                }
            }
        }
        is_answered
    }

    /// Returns the addresses from the last lookups. A name that is not found now keeps its earlier
    /// addresses.
    pub fn addresses(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        self.names.iter().flat_map(|known| {
            let found = known.found.iter();
            found.flat_map(|ip| known.ports.iter().map(|port| SocketAddr::new(*ip, *port)))
        })
    }

    /// Whether an answer may come soon.
    pub fn are_awaited(&self, now: Instant) -> bool {
        self.names.iter().any(|known| known.is_awaited(now))
    }

    /// Names without an address, and why.
    pub fn troubles(&self) -> impl Iterator<Item = (NamedAddress, NoAddress)> + '_ {
        self.names.iter().filter_map(|known| {
            let unanswered = known.question != Question::Answered && known.found.is_empty();
            let trouble = known.trouble.clone().or(unanswered.then_some(NoAddress::Unanswered))?;
            Some((NamedAddress { name: known.name.clone(), port: *known.ports.first()? }, trouble))
        })
    }

    /// The next sentence about a name without an address. Each is given once.
    pub fn next_warning(&mut self) -> Option<String> {
        let untold = |known: &&mut KnownName| known.trouble.is_some() && known.trouble != known.warned;
        let known = self.names.iter_mut().find(untold)?;
        known.warned.clone_from(&known.trouble);
        known.trouble.as_ref().map(|trouble| format!("{}: {trouble}", known.name))
    }

    /// Returns the next step that was not reported yet.
    pub fn next_step(&mut self) -> Option<NameStep> {
        self.names.iter_mut().flat_map(|known| &mut known.untold).find_map(Option::take)
    }

    fn ask_after(&mut self, interval: Duration, now: Instant) {
        for known in &mut self.names {
            let is_due = known.asked_at.is_none_or(|at| now.since(at) >= interval);
            if is_due && known.question != Question::UnderWay {
                (known.asked_at, known.question) = (Some(now), Question::Waits);
            }
        }
        self.begin_questions();
    }

    fn begin_questions(&mut self) {
        for known in self.names.iter_mut().filter(|known| known.question == Question::Waits) {
            let (sender, waker) = (self.sender.clone(), self.waker.clone());
            let tell = move |name, found| {
                // Without a receiver the keeper is gone, and nobody waits.
                let _ = sender.send((name, found));
                waker.wake();
            };
            if begin(&known.name, self.look_up, tell) {
                known.question = Question::UnderWay;
                known.untold[0] = Some(NameStep::Asked(known.name.clone()));
            }
        }
    }
}

impl KnownName {
    fn is_awaited(&self, now: Instant) -> bool {
        self.question != Question::Answered && self.asked_at.is_some_and(|at| now.since(at) < ANSWER_TIMEOUT)
    }
}

/// A place among [`RUNNING_THREADS`].
struct ThreadPermit;

impl ThreadPermit {
    fn take() -> Option<Self> {
        let permit = Self;
        let before = RUNNING_THREADS.fetch_add(1, Ordering::AcqRel);
        (before < MAX_THREADS).then_some(permit)
    }
}

impl Drop for ThreadPermit {
    fn drop(&mut self) {
        RUNNING_THREADS.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Looks up a name in a thread of its own. No other thread waits for it. `false`: no thread is
/// free.
fn begin(name: &HostName, look_up: LookUp, tell: impl FnOnce(HostName, Found) + Send + 'static) -> bool {
    let Some(permit) = ThreadPermit::take() else { return false };
    let asked = name.clone();
    let work = move || {
        let found = look_up(&asked).map_err(|error| NoAddress::Unknown(error.to_string()));
        let found = found.and_then(|found| usable(&asked, found));
        drop(permit);
        tell(asked, found);
    };
    Builder::new().name("byway names".into()).spawn(work).is_ok()
}

fn ask_system(name: &HostName) -> io::Result<Vec<IpAddr>> {
    // It has these without asking anybody (RFC 6761, section 6.3).
    if name.is_localhost() {
        return Ok(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]);
    }
    let found = (name.as_str(), 0).to_socket_addrs()?;
    Ok(found.map(|address| address.ip()).collect())
}

/// Addresses to which a name may lead, of those that a resolver gave: each once, IPv6 and IPv4 in
/// turn (RFC 8305, section 4), and at most [`MAX_ADDRESSES_PER_NAME`]. Whoever answers for a name
/// must not lead a sender to services of its own host.
fn usable(name: &HostName, found: Vec<IpAddr>) -> Found {
    let first = found.first().copied();
    let mut seen = BTreeSet::new();
    let is_usable = |ip: &IpAddr| is_of_a_host(*ip) && (!ip.is_loopback() || name.is_localhost());
    let distinct =
        found.into_iter().map(|ip| ip.to_canonical()).filter(is_usable).filter(|ip| seen.insert(*ip));
    let (v6, v4): (Vec<IpAddr>, Vec<IpAddr>) = distinct.partition(IpAddr::is_ipv6);
    let (mut v6, mut v4) = (v6.into_iter(), v4.into_iter());
    let mut usable = Vec::new();
    while usable.len() < MAX_ADDRESSES_PER_NAME {
        let before = usable.len();
        usable.extend(v6.next());
        usable.extend(v4.next());
        if usable.len() == before {
            break;
        }
    }
    match (usable.is_empty(), first) {
        (false, _) => Ok(usable),
        (true, Some(first)) => Err(NoAddress::Forbidden(first)),
        (true, None) => Err(NoAddress::Unknown(String::from("the name has none"))),
    }
}

/// Whether an address is that of one host, and has a meaning without an interface.
const fn is_of_a_host(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(v4) => !v4.is_unspecified() && !v4.is_multicast() && !v4.is_broadcast(),
        // A link-local one needs an interface beside it, which a name does not give.
        IpAddr::V6(v6) => !v6.is_unspecified() && !v6.is_multicast() && !v6.is_unicast_link_local(),
    }
}

/// Looks names up for a caller that can wait, for 5 s at most: the addresses that were found.
pub(crate) fn look_up_all(names: &[NamedAddress]) -> Vec<IpAddr> {
    let distinct: BTreeSet<&HostName> = names.iter().map(|host| &host.name).collect();
    let (sender, answers) = channel();
    for name in distinct {
        let sender = sender.clone();
        // Without a thread there is no answer, as from a resolver that knows nothing.
        let _ = begin(name, ask_system, move |_, found| drop(sender.send(found)));
    }
    // The channel ends with the last thread that answers.
    drop(sender);
    let clock = Clock::new();
    let until = clock.now() + ANSWER_TIMEOUT;
    let mut addresses = Vec::new();
    while let Ok(found) = answers.recv_timeout(until.since(clock.now())) {
        addresses.extend(found.into_iter().flatten());
    }
    addresses
}

#[cfg(test)]
mod tests {
    use super::*;
    use byway_net::Control;

    fn ips(texts: &[&str]) -> Vec<IpAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn host(name: &str, port: u16) -> NamedAddress {
        NamedAddress { name: name.parse().unwrap(), port }
    }

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    /// Takes in answers until there is one.
    fn answered(lookup: &mut NameLookup, now: Instant) {
        for _ in 0..10_000 {
            if lookup.look(None, now) {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        panic!("no answer comes");
    }

    #[test]
    fn a_name_leads_to_other_hosts_alone() {
        let nas: HostName = "nas.example.org".parse().unwrap();
        let leads = |found: &[&str]| usable(&nas, ips(found));
        let found = ["192.0.2.1", "192.0.2.2", "::ffff:192.0.2.1", "2001:db8::1", "2001:db8::1", "192.0.2.3"];
        assert_eq!(leads(&found), Ok(ips(&["2001:db8::1", "192.0.2.1", "192.0.2.2", "192.0.2.3"])));
        let bad = [
            "0.0.0.0",
            "::",
            "224.0.0.1",
            "ff02::1",
            "127.0.0.1",
            "127.8.8.8",
            "::1",
            "::ffff:127.0.0.1",
            "fe80::1",
        ];
        assert_eq!(leads(&bad), Err(NoAddress::Forbidden("0.0.0.0".parse().unwrap())));
        let mixed = [&bad[..], &["10.0.0.1"]].concat();
        assert_eq!(leads(&mixed), Ok(ips(&["10.0.0.1"])));
        assert!(matches!(leads(&[]), Err(NoAddress::Unknown(_))));
        let many: Vec<IpAddr> = (0..20)
            .flat_map(|n| {
                [IpAddr::from([10, 0, 0, n]), IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, n.into()])]
            })
            .collect();
        let kept = usable(&nas, many).unwrap();
        assert_eq!((kept.len(), kept.iter().filter(|ip| ip.is_ipv4()).count()), (8, 4));
    }

    #[test]
    fn loopback_is_for_localhost() {
        let leads = |name: &str| usable(&name.parse().unwrap(), ips(&["127.0.0.1", "::1", "0.0.0.0"]));
        let own = Ok(ips(&["::1", "127.0.0.1"]));
        assert_eq!((leads("localhost"), leads("a.localhost")), (own.clone(), own));
        assert!(leads("localhost.example.org").is_err());
    }

    #[test]
    fn each_answer_replaces_the_one_before_and_a_failure_replaces_none() {
        static TURN: AtomicUsize = AtomicUsize::new(0);
        let look_up: LookUp = |_| match TURN.fetch_add(1, Ordering::AcqRel) {
            0 => Ok(ips(&["192.0.2.1"])),
            1 => Ok(ips(&["192.0.2.2"])),
            _ => Err(io::Error::other("out of order")),
        };
        let control = Control::new().unwrap();
        let names = [host("nas.example.org", 1), host("nas.example.org", 2)];
        let mut lookup = NameLookup::with(&names, control.waker(), look_up);
        let addresses = |lookup: &NameLookup| lookup.addresses().map(|it| it.to_string()).collect::<Vec<_>>();
        let nas = || names[0].name.clone();
        lookup.ask(at(1));
        assert_eq!(lookup.next_step(), Some(NameStep::Asked(nas())));
        assert_eq!(lookup.next_step(), None);
        answered(&mut lookup, at(1));
        assert_eq!(addresses(&lookup), ["192.0.2.1:1", "192.0.2.1:2"], "one question for both");
        assert_eq!(lookup.next_step(), Some(NameStep::Found(nas(), ips(&["192.0.2.1"]))));
        lookup.ask(at(2));
        assert!(!lookup.are_awaited(at(2)), "too soon");
        assert!(!lookup.look(Some(Duration::from_secs(2)), at(20)) && !lookup.are_awaited(at(20)));
        lookup.look(Some(Duration::from_secs(3)), at(20));
        if addresses(&lookup) == ["192.0.2.1:1", "192.0.2.1:2"] {
            answered(&mut lookup, at(20));
        }
        assert_eq!(addresses(&lookup), ["192.0.2.2:1", "192.0.2.2:2"]);
        assert!(lookup.troubles().next().is_none() && lookup.next_warning().is_none());
        lookup.ask(at(30));
        answered(&mut lookup, at(30));
        assert_eq!(addresses(&lookup), ["192.0.2.2:1", "192.0.2.2:2"]);
        let trouble = NoAddress::Unknown("out of order".into());
        let steps: Vec<NameStep> = std::iter::from_fn(|| lookup.next_step()).collect();
        assert_eq!(steps, [NameStep::Asked(nas()), NameStep::NotFound(nas(), trouble.clone())]);
        assert_eq!(lookup.troubles().collect::<Vec<_>>(), [(names[0].clone(), trouble)]);
        assert_eq!(lookup.next_warning().as_deref(), Some("nas.example.org: no address: out of order"));
        assert_eq!(lookup.next_warning(), None);
    }

    #[test]
    fn a_resolver_that_hangs_has_one_question_of_each_name() {
        static ASKED: AtomicUsize = AtomicUsize::new(0);
        let hang: LookUp = |_| {
            ASKED.fetch_add(1, Ordering::AcqRel);
            loop {
                std::thread::park();
            }
        };
        let control = Control::new().unwrap();
        let mut lookup = NameLookup::with(&[host("nas.example.org", 1)], control.waker(), hang);
        for second in 0..100 {
            lookup.ask(at(second));
            assert!(!lookup.look(Some(Duration::from_secs(9)), at(second)));
            assert_eq!(lookup.are_awaited(at(second)), second < 5);
        }
        assert!(ASKED.load(Ordering::Acquire) <= 1);
        let troubles: Vec<_> = lookup.troubles().map(|(_, trouble)| trouble).collect();
        assert_eq!(troubles, [NoAddress::Unanswered]);
    }
}
