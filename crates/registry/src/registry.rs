//! The machine: sessions, heartbeats and tests on one port, and requests for a store.

mod applicants;
mod counters;
mod datagram;
mod endpoint;
mod epoch_notices;
mod question;
mod relay_tester;
mod retests;
mod session_places;
mod sessions;
mod shared_limit;
mod store_queue;
mod words;

pub use counters::{LogEvent, RegistryCounters};

use crate::grant_minting;
use crate::message::{self, Answer, Enrol, Reason, Request};
use crate::relay_directory::{HeartbeatResult, RelayDirectory};
use crate::secrets::Secrets;
use crate::store::{self, AuditEntry, Changes, Epoch, RelayRow, StoreReply};
use crate::word::{WordKind, WordProof};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use applicants::{Applicant, TestOutcome};
use byway_engine::handshake::PublicKey;
use byway_engine::seal::Suites;
use byway_engine::{Endpoint, EndpointEvent, Handle};
use byway_wire::heartbeat::{ANSWERED_LEN, BEAT_TYPE, Heartbeat, HeartbeatOrders, RelayId};
use byway_wire::relay::{self, canonical};
use byway_wire::{
    Datagram, Duration, Input, Instant, Local, Machine, NetworkPrefix, TcpRequest, Transmit, TransmitBuffer,
};
use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use datagram::{send, written};
use endpoint::endpoint;
use epoch_notices::EpochNotices;
use question::list;
use relay_tester::RelayTester;
use sessions::{SessionStep, Sessions};
use store_queue::{PendingReply, StoreQueue};
use words::Words;

/// Time between two requests for the changes in the store.
const REFRESH_INTERVAL: Duration = Duration::from_secs(1);
/// Time between two reports to the store of which relays sent heartbeats.
const FLUSH_INTERVAL: Duration = Duration::from_secs(5);
/// Draws of relays per registry word and hour. Hosts that share a word are divided among them, so
/// that sharing reveals no more relays.
const DRAW_SLOTS: u8 = 16;
/// The shortest time from a notice of a new epoch to the relay's next heartbeat.
const EPOCH_HEARTBEAT_DELAY: Duration = Duration::from_secs(1);
/// Answers to heartbeats that wait to be sent at most.
const MAX_QUEUED_ANSWERS: usize = 4_096;
/// Seconds before the start of a registry. A relay whose last heartbeat came in this time counts as
/// alive until it misses heartbeats.
const RECENT_SECONDS: u64 = 600;

/// The configuration of a registry.
pub struct RegistryConfig {
    /// The secret from which all keys of the registry are derived: 32 random bytes, kept in the
    /// store.
    pub secret: [u8; 32],
    /// Fresh entropy, or a simulation's seed.
    pub seed: [u8; 32],
    /// Unix time in ms now.
    pub unix_millis: u64,
    /// The ciphers that the registry's sessions may use.
    pub suites: Suites,
    /// The content of the store at the start.
    pub begin: Changes,
}

/// A registry as a machine without clock and disk.
pub struct Registry {
    endpoint: Endpoint,
    unix_millis: u64,
    started: Instant,
    locals: BTreeMap<Local, SocketAddr>,
    words: Words,
    epoch: Epoch,
    directory: RelayDirectory,
    sessions: Sessions,
    tester: RelayTester,
    probe_from: Vec<IpAddr>,
    store_queue: StoreQueue,
    answers: VecDeque<(Local, SocketAddr, [u8; ANSWERED_LEN])>,
    epoch_notices: EpochNotices,
    counters: RegistryCounters,
    refresh_at: Instant,
    flush_at: Instant,
}

impl Registry {
    /// Makes a registry with the content of its store.
    #[must_use]
    pub fn new(config: RegistryConfig, now: Instant) -> Self {
        let secrets = Secrets::new(&config.secret);
        let endpoint = endpoint(secrets.identity(), config.suites, config.seed);
        let unix = config.unix_millis / 1_000;
        let mut registry = Self {
            endpoint,
            unix_millis: config.unix_millis,
            started: now,
            locals: BTreeMap::new(),
            words: Words::new(secrets),
            epoch: Epoch::default(),
            directory: RelayDirectory::default(),
            sessions: Sessions::default(),
            tester: RelayTester::new(*blake3::hash(&config.seed).as_bytes()),
            probe_from: Vec::new(),
            store_queue: StoreQueue::default(),
            answers: VecDeque::new(),
            epoch_notices: EpochNotices::new(now),
            counters: RegistryCounters::default(),
            refresh_at: now + REFRESH_INTERVAL,
            flush_at: now + FLUSH_INTERVAL,
        };
        let seen = config.begin.seen.clone();
        registry.learn(config.begin, None);
        for seen in &seen {
            registry.directory.remember(seen);
            if seen.at.saturating_add(RECENT_SECONDS) >= unix {
                registry.directory.found_alive(now, seen.relay);
            }
        }
        registry
    }

    /// Sets the local addresses from which relays are tested. Call this before the driver adds
    /// their sockets. Relays must not know these addresses: a packet from a relay would open the
    /// relay's NAT. Then the test passes although other hosts cannot reach the relay.
    pub fn probe_from(&mut self, addresses: Vec<IpAddr>) {
        self.probe_from = addresses;
    }

    /// Relays are tested over TCP too, from now on. The driver must open connections as the machine
    /// asks.
    pub const fn try_tcp(&mut self) {
        self.tester.tests().try_tcp();
    }

    /// The registry's public key.
    #[must_use]
    pub fn public_key(&self) -> PublicKey {
        self.endpoint.public_key()
    }

    /// The counters since the start.
    #[must_use]
    pub const fn counters(&self) -> &RegistryCounters {
        &self.counters
    }

    /// Returns the number of sessions, including those being established.
    pub fn sessions(&self) -> usize {
        self.endpoint.handles().count()
    }

    /// The relays that the registry knows.
    #[must_use]
    pub const fn book(&self) -> &RelayDirectory {
        &self.directory
    }

    /// The present epoch.
    #[must_use]
    pub const fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Sets the Unix time: it is `unix_millis` at `now`.
    pub const fn set_clock(&mut self, now: Instant, unix_millis: u64) {
        (self.unix_millis, self.started) = (unix_millis, now);
    }

    /// The next thing for the log.
    pub fn next_event(&mut self) -> Option<LogEvent> {
        self.counters.next_event()
    }

    /// Returns the next request for the store, and its number. The owner passes its reply to
    /// [`answer`](Self::answer).
    pub fn next_request(&mut self) -> Option<(u64, store::StoreRequest)> {
        self.store_queue.next_request()
    }

    /// Asks that everything not written yet be written: before the end.
    pub fn flush(&mut self, now: Instant) {
        let seen = self.directory.take_seen(now, self.unix(now));
        self.store_queue.note(seen);
    }

    /// Takes the store's answer to a request.
    pub fn answer(&mut self, now: Instant, number: u64, reply: StoreReply) {
        let Some(pending) = self.store_queue.take(number) else { return };
        match (pending, reply) {
            (PendingReply::Changes, StoreReply::Changes(changes)) => self.learn(changes, Some(now)),
            (PendingReply::Roll, StoreReply::Changes(changes)) => self.set_epoch(changes.epoch),
            (PendingReply::Enrol(applicant), reply) => {
                let handle = applicant.handle;
                match reply {
                    StoreReply::Enrolled(outcome) => self.enrolled(now, *applicant, outcome),
                    _ => self.refuse(handle, Reason::StoreGone),
                }
                self.serve(now, handle);
            }
            (PendingReply::Note(entries), StoreReply::Gone) => {
                self.counters.store_gone += 1;
                self.store_queue.keep(entries);
            }
            (PendingReply::Note(_), _) => {}
            (PendingReply::Changes | PendingReply::Roll, _) => self.counters.store_gone += 1,
        }
        self.attend(now);
    }

    fn unix(&self, now: Instant) -> u64 {
        self.unix_millis.saturating_add_signed(now.signed_nanos_since(self.started) / 1_000_000) / 1_000
    }

    /// Applies changes from the store. `now` is `None` for the content at the start.
    fn learn(&mut self, changes: Changes, now: Option<Instant>) {
        self.store_queue.set_revision(changes.revision);
        self.set_epoch(changes.epoch);
        changes.words.into_iter().for_each(|word| self.words.enter(word));
        for relay in changes.relays {
            let name = relay.relay;
            // Another registry has just tested it; its heartbeats come here too.
            if let (true, Some(now)) = (self.directory.enter(relay), now) {
                self.directory.found_alive(now, name);
            }
        }
    }

    fn set_epoch(&mut self, epoch: Epoch) {
        if epoch.number > self.epoch.number {
            self.directory.set_epoch(epoch.number);
            self.epoch_notices.set(self.directory.names());
        }
        if epoch.number >= self.epoch.number {
            self.epoch = epoch;
        }
    }

    fn log(&mut self, now: Instant, what: &'static str, who: String, detail: String) {
        let at = self.unix(now);
        self.store_queue.log(AuditEntry { at, what, who, detail });
    }

    fn on_beat(&mut self, now: Instant, local: Local, remote: SocketAddr, packet: &[u8]) {
        let Ok(beat) = Heartbeat::read(packet) else {
            self.counters.malformed += 1;
            return;
        };
        self.tester.see(now, &beat, remote, &self.epoch);
        let (heard, key) = self.directory.hear(now, (local, remote), &beat);
        let (HeartbeatResult::Taken { next, listed }, Some(key)) = (heard, key) else {
            self.counters.beat_refused(heard);
            return;
        };
        self.counters.beats += 1;
        let name = beat.report.relay;
        if self.directory.get(name).is_some_and(crate::relay_directory::KnownRelay::has_failed) {
            self.retest(now, name);
        }
        if self.answers.len() < MAX_QUEUED_ANSWERS {
            let orders = self.orders(now, beat.report.counter, next, listed);
            self.answers.push_back((local, remote, written(orders, &key)));
        }
    }

    fn orders(&self, now: Instant, counter: u64, next: Duration, listed: bool) -> HeartbeatOrders {
        HeartbeatOrders {
            counter,
            next_millis: u32::try_from(next.as_millis()).unwrap_or(u32::MAX),
            epoch: self.epoch.number,
            last_holds: self.last_holds(now),
            flags: if listed { HeartbeatOrders::LISTED } else { 0 },
        }
    }

    /// Answers the last heartbeat of a relay a second time, to announce a new epoch: a number that
    /// the registry raises to revoke older relay words. The answer also asks for the next heartbeat
    /// soon, because that heartbeat confirms that the relay knows the epoch.
    fn tell_epoch(&self, now: Instant, name: RelayId) -> Option<(Local, SocketAddr, [u8; ANSWERED_LEN])> {
        let relay = self.directory.get(name)?;
        let (local, remote, key) = relay.way()?;
        let next = EPOCH_HEARTBEAT_DELAY + Duration::from_millis(u64::from(name.0[0]) * 16);
        Some((local, remote, written(self.orders(now, relay.counter, next, false), key)))
    }

    fn last_holds(&self, now: Instant) -> u32 {
        u32::try_from(self.epoch.last_until.saturating_sub(self.unix(now))).unwrap_or(u32::MAX)
    }

    /// Handles changes: new and ended sessions, sessions with data to read, and tests that have
    /// ended.
    fn attend(&mut self, now: Instant) {
        while let Some(event) = self.endpoint.next_event() {
            match event {
                EndpointEvent::Accepted(handle) => self.admit(now, handle),
                EndpointEvent::Closed(handle) => {
                    self.sessions.end(handle);
                    self.endpoint.forget(handle);
                }
                _ => {}
            }
        }
        while let Some(handle) = self.endpoint.next_with_streams() {
            self.serve(now, handle);
        }
        self.take_tests(now);
    }

    /// A session begins, perhaps in the place of another.
    fn admit(&mut self, now: Instant, handle: Handle) {
        let Some(network) = self.endpoint.network_of(handle) else { return };
        if let Some(dismissed) = self.sessions.begin(now, handle, network) {
            self.counters.dismissed += 1;
            self.tester.forget(dismissed);
            self.endpoint.dismiss(now, dismissed, 1, "the registry has as many sessions as it may");
        }
    }

    /// The network of a session's client. All clients that are gone share one network.
    fn network_of(&self, handle: Handle) -> NetworkPrefix {
        let network = self.endpoint.network_of(handle);
        network.unwrap_or(NetworkPrefix::of(IpAddr::V4(Ipv4Addr::UNSPECIFIED)))
    }

    /// Reads the requests of a session, and answers those that can be answered at once.
    fn serve(&mut self, now: Instant, handle: Handle) {
        loop {
            let Some(connection) = self.endpoint.connection_mut(handle) else { return };
            let peer = connection.peer();
            match self.sessions.step(handle, connection) {
                SessionStep::Wait => return,
                SessionStep::Request(request) => self.on_request(now, handle, peer, request),
                SessionStep::Malformed => {
                    self.sessions.stop(handle);
                    self.refuse(handle, Reason::Malformed);
                }
            }
        }
    }

    fn reply(&mut self, handle: Handle, answer: &Answer) {
        if let Some(connection) = self.endpoint.connection_mut(handle) {
            self.sessions.reply(handle, connection, &answer.to_bytes());
        }
    }

    fn refuse(&mut self, handle: Handle, reason: Reason) {
        self.counters.refuse(reason);
        let retry = if reason.passes() { 10 } else { 0 };
        self.reply(handle, &Answer::Refused { reason, retry });
    }

    fn on_request(&mut self, now: Instant, handle: Handle, peer: PublicKey, request: Request) {
        let refused = match request {
            Request::Enrol(enrol) => self.on_enrol(now, handle, peer, *enrol),
            Request::Ready => self.on_ready(now, handle),
            Request::Ask(ask) => self.on_ask(now, handle, peer, &ask),
            Request::Complain { proof, relays } => self.on_complaint(now, handle, &proof, &relays),
        };
        if let Err(reason) = refused {
            self.refuse(handle, reason);
        }
    }

    fn on_ask(
        &mut self,
        now: Instant,
        handle: Handle,
        peer: PublicKey,
        ask: &message::RelayQuery,
    ) -> Result<(), Reason> {
        let unix = self.unix(now);
        let word = self.words.find(&ask.proof, WordKind::Use, unix)?.clone();
        self.words.may_ask(now, word.number, self.network_of(handle))?;
        self.counters.questions += 1;
        let slot = blake3::hash(&peer.0).as_bytes()[0] % DRAW_SLOTS;
        let seed = self.words.secrets().draw(word.number, slot, unix / 3_600);
        let list = list(&mut self.directory, &self.epoch, &word, ask, seed, (now, unix));
        self.counters.grants += list.relays.len() as u64;
        self.reply(handle, &Answer::List(list));
        Ok(())
    }

    fn on_enrol(
        &mut self,
        now: Instant,
        handle: Handle,
        peer: PublicKey,
        mut enrol: Enrol,
    ) -> Result<(), Reason> {
        let word = self.words.find(&enrol.proof, WordKind::Join, self.unix(now))?;
        let known = self.directory.get(enrol.relay).filter(|relay| !relay.row.revoked);
        if known.is_some_and(|relay| relay.row.key != peer) {
            return Err(Reason::OtherKey);
        }
        if known.is_none() && word.uses == Some(0) {
            return Err(Reason::UsedUp);
        }
        if self.tester.is_full() {
            return Err(Reason::Busy);
        }
        enrol.addresses.iter_mut().for_each(|address| *address = canonical(*address));
        enrol.addresses.sort_unstable();
        enrol.addresses.dedup();
        let row = RelayRow {
            relay: enrol.relay,
            key: peer,
            word: enrol.proof.number,
            range: enrol.range,
            range_key: enrol.range_key,
            rate: enrol.rate,
            quota: enrol.quota,
            operator: enrol.operator,
            region: enrol.region,
            addresses: enrol.addresses,
            tcp: false,
            revoked: false,
        };
        self.tester.enter(handle, row, enrol.seen);
        let answer = Answer::Epoch { epoch: self.epoch.number, last_holds: self.last_holds(now) };
        self.reply(handle, &answer);
        Ok(())
    }

    /// Handles a relay's message that it knows the epoch, and starts its tests.
    fn on_ready(&mut self, now: Instant, handle: Handle) -> Result<(), Reason> {
        let tested = self.tester.test(now, handle, &self.epoch, &self.locals);
        if tested { Ok(()) } else { Err(Reason::Malformed) }
    }

    /// Takes in tests that are over.
    fn take_tests(&mut self, now: Instant) {
        while let Some(tested) = self.tester.next_end(&mut self.counters.tests) {
            match tested {
                None => {}
                Some(TestOutcome::Applicant(applicant)) => {
                    let handle = applicant.handle;
                    self.tested(now, *applicant);
                    self.serve(now, handle);
                }
                Some(TestOutcome::Again(relay, Some(passed))) => self.directory.passed(relay, passed.tcp),
                Some(TestOutcome::Again(relay, None)) => {
                    self.counters.tests_failed += 1;
                    self.directory.failed(relay);
                    self.log(now, "refused", relay.to_string(), "it failed a test".to_string());
                }
            }
        }
    }

    /// Handles a client's complaint about relays. A relay leaves the list only by the registry's
    /// own test.
    fn on_complaint(
        &mut self,
        now: Instant,
        handle: Handle,
        proof: &WordProof,
        relays: &[RelayId],
    ) -> Result<(), Reason> {
        let number = self.words.find(proof, WordKind::Use, self.unix(now))?.number;
        self.words.may_complain(now, number, self.network_of(handle), relays.len())?;
        self.counters.complaints += 1;
        for relay in relays {
            self.retest(now, *relay);
        }
        self.reply(handle, &Answer::Heard);
        Ok(())
    }

    /// Tests a relay again that is in.
    fn retest(&mut self, now: Instant, name: RelayId) {
        if let Some(relay) = self.directory.get(name).filter(|relay| !relay.row.revoked) {
            self.tester.retest(now, &relay.row, &self.epoch, &self.locals);
        }
    }

    /// Handles the end of all tests of a relay that wants to enrol.
    fn tested(&mut self, now: Instant, mut applicant: Applicant) {
        if applicant.row.addresses.is_empty() {
            self.counters.tests_failed += 1;
            let failures: Vec<String> =
                applicant.failed.iter().map(|(address, why)| alloc::format!("{address}: {why}")).collect();
            self.log(now, "refused", applicant.row.relay.to_string(), failures.join("; "));
            return self.refuse(applicant.handle, applicant.refusal());
        }
        // Whoever is reached where it said so need not know what a NAT does.
        applicant.failed.retain(|(_, why)| !applicants::is_of_nat(*why));
        let at = self.unix(now);
        self.store_queue.enrol(applicant, at);
    }

    /// Handles the store's answer to an enrolment: it is written or refused.
    fn enrolled(&mut self, now: Instant, applicant: Applicant, outcome: Result<(), store::EnrolRefusal>) {
        let Applicant { handle, row, failed, .. } = applicant;
        let reason = match outcome {
            Ok(()) => None,
            Err(store::EnrolRefusal::Word) => Some(Reason::UnknownWord),
            Err(store::EnrolRefusal::UsedUp) => Some(Reason::UsedUp),
            Err(store::EnrolRefusal::Crowded) => Some(Reason::Crowded),
            Err(store::EnrolRefusal::OtherKey) => Some(Reason::OtherKey),
        };
        let (name, passed) = (row.relay, row.addresses.clone());
        if let Some(reason) = reason {
            self.log(now, "refused", name.to_string(), reason.to_string());
            return self.refuse(handle, reason);
        }
        let known = self.directory.get(name).is_some();
        let addresses: Vec<String> = passed.iter().map(ToString::to_string).collect();
        let carriers = if row.tcp { "UDP and TCP" } else { "UDP" };
        let detail = alloc::format!(
            "operator {:?}, over {carriers} at {}",
            row.operator.as_str(),
            addresses.join(" ")
        );
        self.log(now, if known { "changed" } else { "enrolled" }, name.to_string(), detail);
        self.directory.enter(row);
        self.directory.set_epoch_of(name, self.epoch.number);
        self.directory.found_alive(now, name);
        self.counters.enrolled += 1;
        let beat_millis = u32::try_from(self.directory.interval().as_millis()).unwrap_or(u32::MAX);
        self.reply(handle, &Answer::Enrolled { beat_millis, passed, failed });
    }

    /// Runs the work that is due now.
    fn tend(&mut self, now: Instant) {
        self.tester.tests().wake(now);
        self.epoch_notices.wake(now);
        while let Some(handle) = self.sessions.next_overdue(now) {
            self.counters.overdue += 1;
            self.tester.forget(handle);
            self.endpoint.dismiss(now, handle, 1, "the registry waits no longer");
        }
        if self.refresh_at <= now {
            self.refresh_at = now + REFRESH_INTERVAL;
            self.directory.sweep(now);
            self.store_queue.refresh();
            let unix = self.unix(now);
            let due = self.epoch.began.saturating_add(grant_minting::EPOCH_LIFE);
            if unix >= due {
                // On time, if it is not late by more than a minute: then the grants of the last
                // epoch keep their end.
                self.store_queue.roll(self.epoch.number, if unix - due < 60 { due } else { unix });
            }
        }
        if self.flush_at <= now {
            self.flush_at = now + FLUSH_INTERVAL;
            self.flush(now);
        }
    }

    /// Passes a datagram to its part: a session, a heartbeat or a test.
    fn on_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        let Datagram { local, remote, .. } = datagram;
        let first = datagram.payload.first().copied();
        match first.and_then(relay::MessageType::of) {
            _ if first == Some(BEAT_TYPE) && !self.tester.is_probe(local) => {
                self.on_beat(now, local, remote, datagram.payload)
            }
            Some(relay::MessageType::Greeted) => {
                let known = self.tester.tests().on_greeted(now, remote, datagram.payload);
                self.counters.malformed += u64::from(!known);
            }
            Some(relay::MessageType::Notice) => self.tester.tests().on_notice(remote, datagram.payload),
            Some(relay::MessageType::Delivered)
                if self.tester.tests().on_delivered(now, datagram.payload) => {}
            // Nobody has business there.
            _ if self.tester.is_probe(local) => self.counters.malformed += 1,
            _ => self.endpoint.handle(now, Input::Datagram(datagram)),
        }
    }
}

impl Machine for Registry {
    fn handle(&mut self, now: Instant, input: Input<'_>) {
        match input {
            Input::Datagram(datagram) => self.on_datagram(now, datagram),
            Input::Link(change) if self.probe_from.contains(&change.address.ip()) => {
                self.tester.set_probe(change);
            }
            Input::Link(change) => {
                if change.up {
                    self.locals.insert(change.local, change.address);
                } else {
                    self.locals.remove(&change.local);
                }
                self.endpoint.handle(now, Input::Link(change));
            }
            Input::SendError(error) => self.endpoint.handle(now, Input::SendError(error)),
            Input::Room(change) => self.endpoint.handle(now, Input::Room(change)),
            Input::Connection(change) if self.tester.tests().on_connection(now, &change) => {}
            Input::Connection(change) => self.endpoint.handle(now, Input::Connection(change)),
            Input::NotDialed(peer) if self.tester.tests().on_not_dialed(now, peer) => {}
            Input::NotDialed(peer) => self.endpoint.handle(now, Input::NotDialed(peer)),
        }
        self.attend(now);
    }

    fn wake(&mut self, now: Instant) {
        self.endpoint.wake(now);
        self.tend(now);
        self.attend(now);
    }

    fn transmit(&mut self, now: Instant, out: &mut TransmitBuffer<'_>) -> Option<Transmit> {
        if let Some((local, remote, bytes)) = self.answers.pop_front() {
            return send(local, remote, &bytes, out);
        }
        while let Some(name) = self.epoch_notices.next(now) {
            if let Some((local, remote, bytes)) = self.tell_epoch(now, name) {
                return send(local, remote, &bytes, out);
            }
        }
        if let Some(sending) = self.tester.tests().next_sending() {
            return send(sending.local, sending.to, &sending.bytes, out);
        }
        self.endpoint.transmit(now, out)
    }

    fn ask(&mut self, now: Instant) -> Option<TcpRequest> {
        self.tester.tests().next_ask().or_else(|| self.endpoint.ask(now))
    }

    fn deadline(&self) -> Option<Instant> {
        let own = [
            self.endpoint.deadline(),
            self.tester.deadline(),
            self.sessions.deadline(),
            self.epoch_notices.deadline(),
        ];
        let own = own.into_iter().flatten().min();
        let regular = self.refresh_at.min(self.flush_at);
        Some(own.map_or(regular, |own| own.min(regular)))
    }
}
