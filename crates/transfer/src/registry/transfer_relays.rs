//! Gets relays for a transfer from a registry: at the start, and again when the transfer has tried
//! all. The registry is told which relays did not work. The transfer neither waits for the registry
//! nor fails with it.

use super::cache;
use byway_engine::{Endpoint, EndpointEvent, RelayStatus};
use byway_net::unix_seconds;
use byway_registry::complaints::Complaints;
use byway_registry::message::{Answer, MAX_RELAYS, RelayList, RelayQuery, Request};
use byway_registry::registry_client::{
    AskError, ClientExchange, FIRST_ASK_RELAYS, MAX_ASKED_RELAYS, NEXT_ASK_RELAYS,
};
use byway_registry::word::RegistryWord;
use byway_wire::{Duration, Instant, relay};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The delay after a first failure until the registry is asked again. Each further failure doubles
/// the delay, up to `MAX_RETRY_DELAY`.
const RETRY_DELAY: Duration = Duration::from_secs(15);
/// The longest delay after a failure.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(300);
/// A registry that has no relays is asked again after this time.
const EMPTY_RETRY_DELAY: Duration = Duration::from_secs(60);
/// Seconds before their expiry at which grants are renewed, but not before half of their life has
/// passed.
const RENEWAL_LEAD_SECONDS: u64 = 1_800;
/// The delay between a relay's report that its epoch ended and the request for new grants. A grant
/// ends with its epoch.
const EPOCH_REQUEST_DELAY: Duration = Duration::from_secs(5);
/// Time between two requests for new grants after the end of an epoch.
const EPOCH_REQUEST_INTERVAL: Duration = Duration::from_secs(15);
/// Requests for new grants after the end of an epoch. A new grant restarts only paths that have
/// failed, and some fail only after the first request.
const EPOCH_REQUEST_COUNT: u32 = 3;
/// Time after a reported end of an epoch for which further reports are ignored.
const MIN_EPOCH_INTERVAL: Duration = Duration::from_secs(60);

/// The registry to ask, and the number of relays.
#[derive(Clone, Debug)]
pub struct FindPlan {
    /// The registry word for use.
    pub word: RegistryWord,
    /// The directory for the last list of relays. `None`: the list is not stored.
    pub cache: Option<PathBuf>,
    /// Number of relays to ask for at first and at each renewal, at most 100.
    pub first: usize,
}

impl FindPlan {
    /// Makes a plan for as many relays as a transfer tries at first.
    #[must_use]
    pub const fn new(word: RegistryWord, cache: Option<PathBuf>) -> Self {
        Self { word, cache, first: FIRST_ASK_RELAYS }
    }

    /// Returns the last list of the registry, if it was saved and its relay words are still valid.
    #[must_use]
    pub fn last_list(&self) -> Option<RelayList> {
        let directory = self.cache.as_ref()?;
        cache::read(&cache::path_of(directory, &self.word), unix_seconds())
    }
}

/// Asks a registry for relays, and complains of relays.
pub(crate) struct Finder {
    word: RegistryWord,
    cache: Option<PathBuf>,
    exchange: Option<ClientExchange>,
    /// Whether the request is a complaint, whose answer does not matter.
    complains: bool,
    complaints: Complaints,
    /// First addresses of relays that forward over TCP, as the registry reported.
    tcp: BTreeSet<SocketAddr>,
    /// Number of relays of the draw that have been received.
    had: usize,
    /// Number of relays to ask for at first.
    first: usize,
    /// Number of relays of its list that the registry skipped in the last request.
    skip: usize,
    most: usize,
    /// Whether the registry has more relays.
    more: bool,
    /// Whether all relays were tried since the registry was last asked for more.
    used_up: bool,
    /// When to ask next.
    next: Option<Instant>,
    failures: u32,
    /// The last failure of the registry, until the user is told.
    trouble: Option<String>,
    told: bool,
    /// No sooner are grants asked for again because an epoch ended.
    renew_from: Instant,
    /// Number of renewals of the relay words that are still due.
    renewals: u32,
}

/// The sentence for the user when a registry failed and the transfer goes on. `trouble`: the cause.
pub(crate) fn goes_on_without(trouble: &str) -> String {
    format!("the registry does not help now: {trouble}; byway goes on without it")
}

/// The result of one look for relays.
#[derive(Default)]
pub(crate) struct FoundRelays {
    /// The relay words of the relays to try.
    pub words: Vec<relay::Word>,
    /// Why the registry failed. Each failure is returned once.
    pub trouble: Option<String>,
}

impl Finder {
    /// A finder, and the relays of the last stored list.
    pub fn new(plan: FindPlan) -> (Self, Vec<relay::Word>) {
        let list = plan.last_list();
        let cache = plan.cache.map(|directory| cache::path_of(&directory, &plan.word));
        let mut complaints = Complaints::default();
        list.iter().for_each(|list| complaints.learn(list));
        let mut tcp = BTreeSet::new();
        list.iter().for_each(|list| learn_tcp(&mut tcp, list));
        let kept: Vec<relay::Word> =
            list.into_iter().flat_map(|list| list.relays).map(|it| it.word).collect();
        let finder = Self {
            word: plan.word,
            cache,
            exchange: None,
            complains: false,
            complaints,
            tcp,
            had: 0,
            skip: 0,
            first: plan.first,
            most: plan.first,
            more: true,
            used_up: false,
            next: Some(Instant::ZERO),
            failures: 0,
            trouble: None,
            told: false,
            renew_from: Instant::ZERO,
            renewals: 0,
        };
        (finder, kept)
    }

    /// Whether the registry reported that this relay forwards over TCP.
    pub fn serves_tcp(&self, word: &relay::Word) -> bool {
        word.relays().first().is_some_and(|address| self.tcp.contains(address))
    }

    /// Whether relays are asked for, and the registry has not answered yet.
    pub const fn is_asking(&self) -> bool {
        self.exchange.is_some() && !self.complains
    }

    /// Notes that all relays were tried. More are requested once the present request is over.
    pub const fn ask_for_more(&mut self) {
        self.used_up = true;
    }

    /// Takes in how far the relays of the transfer are.
    pub fn on_relays(&mut self, now: Instant, relays: &[RelayStatus]) {
        self.complaints.look(now, relays);
    }

    /// Notes that a relay reported the end of its grant's epoch. New grants of all relays are then
    /// requested.
    pub fn on_epoch_over(&mut self, now: Instant) {
        if now >= self.renew_from && self.failures == 0 {
            (self.renew_from, self.renewals) = (now + MIN_EPOCH_INTERVAL, EPOCH_REQUEST_COUNT);
            (self.skip, self.most) = (0, self.had.max(self.first));
            self.ask_by(now + EPOCH_REQUEST_DELAY);
        }
    }

    fn ask_by(&mut self, at: Instant) {
        self.next = Some(self.next.map_or(at, |next| next.min(at)));
    }

    /// Handles an event of the endpoint. Returns whether it was about the registry.
    pub fn on_event(&mut self, event: &EndpointEvent, now: Instant) -> bool {
        let Some(exchange) = &mut self.exchange else { return false };
        match exchange.on_event(event) {
            Ok(about) => about,
            Err(error) => {
                self.fail(&error, now);
                true
            }
        }
    }

    /// Sends a request if one is due, and returns the results of the reply.
    pub fn look(&mut self, endpoint: &mut Endpoint, now: Instant) -> FoundRelays {
        let mut found = FoundRelays::default();
        if let Some(request) = self.exchange.is_none().then(|| self.request(now)).flatten() {
            match ClientExchange::begin(endpoint, now, &self.word) {
                Ok(mut exchange) => {
                    exchange.ask(&request);
                    exchange.finish();
                    self.exchange = Some(exchange);
                }
                Err(error) => self.fail(&error, now),
            }
        }
        let Some(exchange) = &mut self.exchange else { return self.told(found) };
        match exchange.drive(endpoint, now) {
            Ok(None) => {}
            Ok(Some(Answer::Heard)) if self.complains => self.end(endpoint, now),
            Ok(Some(Answer::List(list))) if !self.complains => {
                self.end(endpoint, now);
                found.words = self.take(list, now);
            }
            Ok(Some(_)) => {
                self.end(endpoint, now);
                self.fail(&AskError::Closed("it answers something else".into()), now);
            }
            Err(error) => {
                self.end(endpoint, now);
                self.fail(&error, now);
            }
        }
        self.told(found)
    }

    /// The request that is due now. It asks for relays, or for tests of relays that failed.
    fn request(&mut self, now: Instant) -> Option<Request> {
        let due = self.next.is_some_and(|next| next <= now);
        let more = !due && self.used_up && self.more && self.had < MAX_ASKED_RELAYS && self.failures == 0;
        self.complains = !due && !more;
        if self.complains {
            let relays = self.complaints.take(now);
            let complain = |relays| Request::Complain { proof: self.word.proof.clone(), relays };
            return Some(relays).filter(|relays| !relays.is_empty()).map(complain);
        }
        if more {
            // The time for the next renewal stays: what is here ends when it would.
            (self.skip, self.most) = (self.had, NEXT_ASK_RELAYS);
        } else {
            self.next = None;
        }
        let most = u8::try_from(self.most.min(MAX_RELAYS)).unwrap_or(u8::MAX);
        let skip = u16::try_from(self.skip).unwrap_or(u16::MAX);
        Some(Request::Ask(RelayQuery { proof: self.word.proof.clone(), most, skip }))
    }

    /// Says once that the registry is of no use.
    fn told(&mut self, found: FoundRelays) -> FoundRelays {
        if self.failures == 0 || self.told {
            return found;
        }
        self.told = true;
        FoundRelays { trouble: self.trouble.take(), ..found }
    }

    fn end(&mut self, endpoint: &mut Endpoint, now: Instant) {
        if let Some(exchange) = self.exchange.take() {
            exchange.end(endpoint, now);
        }
    }

    fn fail(&mut self, error: &AskError, now: Instant) {
        self.exchange = None;
        if self.complains {
            return;
        }
        self.failures += 1;
        self.trouble = Some(error.to_string());
        (self.skip, self.most) = (0, self.had.max(self.first));
        let later = RETRY_DELAY * 2_u32.saturating_pow(self.failures.min(8) - 1);
        // What it refuses now it refuses later, mostly: a word that was taken back comes back with
        // another name.
        let wait = if matches!(error, AskError::Refused(reason) if !reason.passes()) {
            MAX_RETRY_DELAY
        } else {
            later
        };
        self.next = Some(now + wait.min(MAX_RETRY_DELAY));
    }

    fn take(&mut self, list: RelayList, now: Instant) -> Vec<relay::Word> {
        (self.failures, self.told) = (0, false);
        self.complaints.learn(&list);
        learn_tcp(&mut self.tcp, &list);
        self.used_up &= self.skip == 0;
        self.more = list.more;
        self.had = self.had.max(self.skip + list.relays.len());
        let left = list.until.saturating_sub(unix_seconds());
        let renew = left.saturating_sub(RENEWAL_LEAD_SECONDS).max(left / 2).max(60);
        self.ask_by(now + Duration::from_secs(renew));
        self.renewals = self.renewals.saturating_sub(1);
        if self.renewals > 0 {
            self.ask_by(now + EPOCH_REQUEST_INTERVAL);
        }
        if self.had == 0 {
            self.ask_by(now + EMPTY_RETRY_DELAY);
        }
        if self.skip == 0
            && let Some(path) = self.cache.clone()
        {
            let list = list.clone();
            // A disk that is slow holds nothing up. What is not kept is asked for again.
            let keep = move || drop(cache::write(&path, &list));
            let _ = std::thread::Builder::new().name("byway list".into()).spawn(keep);
        }
        // The next time all are renewed, at most as many as one answer holds.
        (self.skip, self.most) = (0, self.had.max(self.first));
        list.relays.into_iter().map(|listed| listed.word).collect()
    }
}

/// Notes which relays of a list forward over TCP.
fn learn_tcp(tcp: &mut BTreeSet<SocketAddr>, list: &RelayList) {
    for listed in &list.relays {
        let Some(address) = listed.word.relays().first() else { continue };
        if listed.tcp {
            tcp.insert(*address);
        } else {
            tcp.remove(address);
        }
    }
}
