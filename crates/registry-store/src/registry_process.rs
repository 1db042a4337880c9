//! A registry that runs: the machine on sockets, and a thread that asks its store.

use crate::operator_store::{OperatorStore, StoreError, Words, standard};
use byway_engine::seal::Suites;
use byway_net::{Clock, Control, LoopControl, Owner, Socket, Waker, unix_millis, unix_seconds};
use byway_registry::message::carriers;
use byway_registry::registry::{LogEvent, RegistryCounters};
use byway_registry::store::{StoreReply, StoreRequest};
use byway_registry::word::RegistryWord;
use byway_registry::{Registry, RegistryConfig};
use byway_wire::heartbeat::RelayId;
use byway_wire::{Duration, Instant};
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use thiserror::Error;

/// Requests that wait for the store at most: more than a registry has at once.
const MAX_QUEUED_REQUESTS: usize = 2_048;
/// Events that wait for the program at most.
const MAX_QUEUED_EVENTS: usize = 64;
/// Time between two comparisons of the registry's clock with the system's, which may be set.
const CLOCK_CHECK_INTERVAL: Duration = Duration::from_secs(10);
/// Time between two updates of the registry's [`View`].
const STATUS_INTERVAL: Duration = Duration::from_secs(1);

/// How to run a registry.
pub struct RegistryPlan {
    /// The store of the registry.
    pub keeper: Box<dyn OperatorStore>,
    /// The sockets to listen on, one for each address family.
    pub sockets: Vec<Socket>,
    /// The registry's addresses, which its words contain: one to four.
    pub addresses: Vec<SocketAddr>,
    /// Addresses of additional sockets, used only to test relays. None is in
    /// [`addresses`](Self::addresses).
    pub probe_from: Vec<IpAddr>,
}

/// Why a registry does not run.
#[derive(Debug, Error)]
pub enum RegistryError {
    /// The registry's store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The system gives no randomness.
    #[error(transparent)]
    Entropy(#[from] byway_net::EntropyError),
    /// The system gives no thread or no descriptor.
    #[error("the system gives no thread: {0}")]
    Thread(#[from] io::Error),
    /// The event loop failed.
    #[error(transparent)]
    Driver(#[from] byway_net::DriverError),
    /// The event loop panicked.
    #[error(transparent)]
    Panicked(#[from] byway_net::Panicked),
}

/// A relay, as shown to the operator.
#[derive(Clone, Debug)]
pub struct RelayView {
    /// The relay's name.
    pub relay: RelayId,
    /// The name of the relay's operator.
    pub operator: String,
    /// The relay's region, as its operator named it.
    pub region: String,
    /// The addresses and ports of the relay.
    pub addresses: Vec<SocketAddr>,
    /// The transports over which the relay forwards: `udp`, `tcp`.
    pub carriers: &'static [&'static str],
    /// Seconds since the relay's last heartbeat. `None`: there was none since the registry started.
    pub seen: Option<u64>,
    /// Bytes per second that the relay forwards.
    pub load: u64,
    /// Whether the registry lists the relay for senders.
    pub listed: bool,
}

/// The state of a registry, as shown to its operator.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// The registry's counters since its start.
    pub counters: RegistryCounters,
    /// The number of the registry's epoch.
    pub epoch: u32,
    /// Relays that are enrolled.
    pub relays: Vec<RelayView>,
    /// Whether the store carried out the latest request.
    pub store_answers: bool,
}

/// A registry that runs.
pub struct Running {
    driver: byway_net::Handle<Operator>,
    store: Option<JoinHandle<Box<dyn OperatorStore>>>,
    events: Receiver<LogEvent>,
    view: Arc<Mutex<View>>,
    join: RegistryWord,
    ask: RegistryWord,
}

impl Running {
    /// Starts.
    ///
    /// # Errors
    /// The store does not answer; the system gives no thread.
    pub fn start(plan: RegistryPlan) -> Result<Self, RegistryError> {
        let RegistryPlan { mut keeper, sockets, addresses, probe_from } = plan;
        keeper.set_addresses(&addresses)?;
        let [join, ask] = standard(&mut *keeper, unix_seconds())?;
        let words = Words::of(&mut *keeper)?;
        let clock = Clock::new();
        let config = RegistryConfig {
            secret: *keeper.secret()?,
            seed: byway_net::seed()?,
            unix_millis: unix_millis(),
            suites: Suites::SECURE,
            begin: keeper.everything()?,
        };
        let mut registry = Registry::new(config, clock.now());
        registry.probe_from(probe_from);
        registry.try_tcp();
        let control = Control::new()?;
        let (requests, asked) = sync_channel(MAX_QUEUED_REQUESTS);
        let (answered, replies) = sync_channel(MAX_QUEUED_REQUESTS);
        let waker = control.waker().clone();
        let store = Builder::new()
            .name("byway store".into())
            .spawn(move || ask_store(keeper, &asked, &answered, &waker))?;
        let (events, told) = sync_channel(MAX_QUEUED_EVENTS);
        let view = Arc::new(Mutex::new(View { store_answers: true, ..View::default() }));
        let owner = Operator {
            requests: Some(requests),
            replies,
            events,
            view: Arc::clone(&view),
            store_answers: true,
            clock_at: clock.now() + CLOCK_CHECK_INTERVAL,
            show_at: clock.now(),
        };
        let driver = byway_net::spawn_with(control, "byway registry", registry, owner, sockets, clock)?;
        let (join, ask) = (words.word(&join), words.word(&ask));
        Ok(Self { driver, store: Some(store), events: told, view, join, ask })
    }

    /// Returns the registry word with which any number of relays enrol.
    #[must_use]
    pub const fn join_word(&self) -> &RegistryWord {
        &self.join
    }

    /// Returns the registry word with which any client asks.
    #[must_use]
    pub const fn use_word(&self) -> &RegistryWord {
        &self.ask
    }

    /// The next thing that happened; `None` if nothing did within `patience`.
    pub fn next(&self, patience: Duration) -> Option<LogEvent> {
        self.events.recv_timeout(patience).ok()
    }

    /// The registry's state, at most a second old.
    #[must_use]
    pub fn view(&self) -> Arc<Mutex<View>> {
        Arc::clone(&self.view)
    }

    /// Whether the registry ended by itself, because its event loop failed.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.driver.is_finished()
    }

    /// Stops the registry, and writes its last data to the store. Returns its counters.
    ///
    /// # Errors
    /// The event loop broke before.
    pub fn stop(mut self) -> Result<RegistryCounters, RegistryError> {
        self.driver.stop();
        let mut finished = self.driver.join()?;
        finished.outcome?;
        // The thread ends with the last of those who ask it.
        drop(finished.owner);
        if let Some(store) = self.store.take()
            && let Ok(mut keeper) = store.join()
        {
            finished.machine.flush(Clock::new().now());
            while let Some((_, request)) = finished.machine.next_request() {
                keeper.answer(request);
            }
        }
        Ok(finished.machine.counters().clone())
    }
}

/// Passes requests to the store, one after the other, until the registry ends.
fn ask_store(
    mut keeper: Box<dyn OperatorStore>,
    requests: &Receiver<(u64, StoreRequest)>,
    replies: &SyncSender<(u64, StoreReply)>,
    waker: &Waker,
) -> Box<dyn OperatorStore> {
    while let Ok((number, request)) = requests.recv() {
        let reply = keeper.answer(request);
        if replies.send((number, reply)).is_err() {
            break;
        }
        waker.wake();
    }
    keeper
}

/// The owner of a registry.
struct Operator {
    requests: Option<SyncSender<(u64, StoreRequest)>>,
    replies: Receiver<(u64, StoreReply)>,
    events: SyncSender<LogEvent>,
    view: Arc<Mutex<View>>,
    store_answers: bool,
    clock_at: Instant,
    show_at: Instant,
}

impl Owner for Operator {
    type Machine = Registry;

    fn turn(&mut self, registry: &mut Registry, now: Instant) -> LoopControl {
        if now >= self.clock_at {
            self.clock_at = now + CLOCK_CHECK_INTERVAL;
            registry.set_clock(now, unix_millis());
        }
        loop {
            match self.replies.try_recv() {
                Ok((number, reply)) => {
                    self.store_answers = reply != StoreReply::Gone;
                    registry.answer(now, number, reply);
                }
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return LoopControl::Stop,
            }
        }
        while let Some((number, request)) = registry.next_request() {
            let taken =
                self.requests.as_ref().is_some_and(|requests| requests.try_send((number, request)).is_ok());
            if !taken {
                registry.answer(now, number, StoreReply::Gone);
            }
        }
        // News that nobody takes are not worth waiting for; every refusal is counted too.
        while let Some(event) = registry.next_event() {
            let _ = self.events.try_send(event);
        }
        if now >= self.show_at {
            self.show_at = now + STATUS_INTERVAL;
            *self.view.lock().unwrap_or_else(PoisonError::into_inner) = self.look(registry, now);
        }
        LoopControl::Continue
    }
}

impl Operator {
    fn look(&self, registry: &Registry, now: Instant) -> View {
        let shown = |(relay, listed): (&byway_registry::relay_directory::KnownRelay, bool)| RelayView {
            relay: relay.row.relay,
            operator: relay.row.operator.to_string(),
            region: relay.row.region.to_string(),
            addresses: relay.row.addresses.clone(),
            carriers: carriers(relay.row.tcp),
            seen: relay.seen.map(|seen| now.since(seen).as_secs()),
            load: relay.load,
            listed,
        };
        View {
            counters: registry.counters().clone(),
            epoch: registry.epoch().number,
            relays: registry.book().iter(now).map(shown).collect(),
            store_answers: self.store_answers,
        }
    }
}

/// The number of listed relays of each operator.
#[must_use]
pub fn by_operator(view: &View) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for relay in view.relays.iter().filter(|relay| relay.listed) {
        *counts.entry(relay.operator.as_str()).or_default() += 1;
    }
    counts
}
