//! A relay that runs: the machine of `byway-relay` on sockets, and the handle by which a program runs it.

use crate::error::Error;
use crate::secret::Secret;
use byway_net::{Clock, Control, Flow, Owner, Socket, unix_seconds};
use byway_relay::{Config, Counters, Event, Policy, Relay};
use byway_wire::relay::{Grant, GrantId, Minute, QuotaClass, RateClass, Scope, Terms, Word};
use byway_wire::{Duration, Instant};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{SystemTime, UNIX_EPOCH};

/// Events that wait for the program.
const NEWS: usize = 64;

/// How to relay.
pub struct RelayingPlan {
    /// What all words follow from.
    pub key: Secret<[u8; 32]>,
    /// Where it sends.
    pub policy: Policy,
    /// To listen on: one per address family.
    pub sockets: Vec<Socket>,
    /// Where senders find it: one to four addresses.
    pub addresses: Vec<SocketAddr>,
    /// How long the word is good for.
    pub expires: Duration,
    /// Bytes per second that the word may use.
    pub rate: Option<u64>,
    /// Bytes per day that the word may use.
    pub quota: Option<u64>,
}

/// What a relay tells.
#[derive(Debug)]
pub enum RelayNews {
    /// What it did so far, as was asked.
    Counters(Box<Counters>),
    /// A datagram was dropped.
    Dropped(Event),
}

/// A relay that runs.
pub struct Relaying {
    driver: byway_net::Handle<Operator>,
    news: Receiver<RelayNews>,
    ask: Arc<AtomicBool>,
    word: Word,
}

impl Relaying {
    /// Starts.
    ///
    /// # Errors
    /// The addresses make no word; the system gives no thread.
    pub fn start(plan: RelayingPlan) -> Result<Self, Error> {
        let clock = Clock::new();
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut config = Config::new(*plan.key.expose(), u64::try_from(unix.as_millis()).unwrap_or(u64::MAX));
        config.policy = plan.policy;
        let relay = Relay::new(&config, clock.now());
        let terms = Terms {
            expiry: Minute::from_unix(unix_seconds().saturating_add(plan.expires.as_secs())),
            rate: plan.rate.map_or(RateClass::UNLIMITED, RateClass::at_most),
            quota: plan.quota.map_or(QuotaClass::UNLIMITED, QuotaClass::at_most),
            scope: Scope::ALL,
        };
        let grant = Grant { id: GrantId::own(u32::from_be_bytes(byway_net::seed()?)), terms };
        let word = relay.issue(grant, plan.addresses).map_err(Error::RelayWord)?;
        let (news, inbox) = sync_channel(NEWS);
        let ask = Arc::new(AtomicBool::new(false));
        let owner = Operator { news, ask: Arc::clone(&ask) };
        let control = Control::new().map_err(Error::Descriptor)?;
        let driver = byway_net::spawn_with(control, "byway relay", relay, owner, plan.sockets, clock)
            .map_err(Error::Thread)?;
        Ok(Self { driver, news: inbox, ask, word })
    }

    /// The word for senders.
    #[must_use]
    pub const fn word(&self) -> &Word {
        &self.word
    }

    /// Asks for [`RelayNews::Counters`].
    pub fn ask(&self) {
        self.ask.store(true, Ordering::Release);
        self.driver.waker().wake();
    }

    /// The next thing that happened; `None` if nothing did within `patience`.
    pub fn next(&self, patience: Duration) -> Option<RelayNews> {
        self.news.recv_timeout(patience).ok()
    }

    /// Whether it ended by itself: the event loop broke.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.driver.is_finished()
    }

    /// Stops it, and says what it did.
    ///
    /// # Errors
    /// The event loop broke before.
    pub fn stop(self) -> Result<Counters, Error> {
        self.driver.stop();
        let finished = self.driver.join()?;
        finished.outcome?;
        Ok(*finished.machine.counters())
    }
}

/// The owner of a relay.
struct Operator {
    news: SyncSender<RelayNews>,
    ask: Arc<AtomicBool>,
}

impl Owner for Operator {
    type Machine = Relay;

    fn turn(&mut self, relay: &mut Relay, _now: Instant) -> Flow {
        // News that nobody takes are not worth waiting for; every drop is counted too.
        while let Some(event) = relay.next_event() {
            let _ = self.news.try_send(RelayNews::Dropped(event));
        }
        if self.ask.swap(false, Ordering::AcqRel) {
            let _ = self.news.try_send(RelayNews::Counters(Box::new(*relay.counters())));
        }
        Flow::Continue
    }
}
