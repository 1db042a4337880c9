//! Reads the counters of a running relay, from any thread.

use super::named_words::WordName;
use super::run_event::RelaySummary;
use byway_net::Waker;
use byway_relay::Relay;
use byway_wire::{Duration, Instant};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// The use of a named relay word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WordUse {
    /// The name.
    pub name: WordName,
    /// Bytes that the relay carried for the relay word, in both directions, over restarts.
    pub carried_bytes: u64,
    /// Whether the relay word was revoked.
    pub is_revoked: bool,
}

/// The counters of a relay, and the use of each named relay word.
#[derive(Clone, Debug, Default)]
pub struct RelayReport {
    /// The counters.
    pub summary: RelaySummary,
    /// The use of the named relay words, at most [`MAX_NAMED_WORDS`](super::MAX_NAMED_WORDS).
    pub words: Vec<WordUse>,
}

/// The last report, and how many were made.
#[derive(Debug, Default)]
struct LastReport {
    made: u64,
    report: RelayReport,
}

/// The place for a relay's reports. The relay makes a report if another thread asked since its last
/// turn.
#[derive(Debug, Default)]
pub(super) struct ReportDesk {
    is_asked: AtomicBool,
    last: Mutex<LastReport>,
    made: Condvar,
    /// The names of relay words by the ids of their grants.
    names: Mutex<BTreeMap<u32, WordName>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ReportDesk {
    /// Replaces the names of relay words.
    pub(super) fn set_names(&self, names: BTreeMap<u32, WordName>) {
        *locked(&self.names) = names;
    }

    /// Makes a report if another thread asked. `not_kept`: how often the counts could not be
    /// written to disk.
    pub(super) fn turn(&self, relay: &mut Relay, now: Instant, not_kept: u64) {
        if !self.is_asked.load(Ordering::Acquire) {
            return;
        }
        self.is_asked.store(false, Ordering::Release);
        let mut last = locked(&self.last);
        let summary = RelaySummary::of(relay, now, not_kept);
        let names = locked(&self.names);
        let words = relay.named_words().iter().filter_map(|word| {
            let name = names.get(&word.grant)?.clone();
            Some(WordUse { name, carried_bytes: word.carried, is_revoked: word.is_revoked })
        });
        last.report = RelayReport { summary, words: words.collect() };
        last.made += 1;
        self.made.notify_all();
    }
}

/// Asks a running relay for its counters, from any thread.
#[derive(Clone)]
pub struct CountersReader {
    desk: Arc<ReportDesk>,
    waker: Waker,
}

impl CountersReader {
    pub(super) const fn new(desk: Arc<ReportDesk>, waker: Waker) -> Self {
        Self { desk, waker }
    }

    /// A report that the relay makes after this call. Blocks until then. `None`: the relay makes
    /// none within `patience`, because it ended or has too much to do.
    #[must_use]
    pub fn report(&self, patience: Duration) -> Option<RelayReport> {
        let last = locked(&self.desk.last);
        let before = last.made;
        self.desk.is_asked.store(true, Ordering::Release);
        self.waker.wake();
        let is_old = |last: &mut LastReport| last.made == before;
        let waited = self.desk.made.wait_timeout_while(last, patience, is_old);
        let (last, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        (!waited.timed_out()).then(|| last.report.clone())
    }
}
