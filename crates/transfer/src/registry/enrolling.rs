//! A relay enrols at a registry, and again now and then: from a socket of its own, beside the
//! relay.

use crate::endpoint::endpoint;
use crate::error::Error;
use crate::identity::Identity;
use crate::relaying::Relaying;
use crate::secret::Secret;
use crate::sockets;
use byway_engine::{Config, Endpoint, EndpointEvent, Handle};
use byway_net::{Clock, Control, LoopControl, Owner};
use byway_registry::message::{Answer, Enrol, Failure, Label, Request};
use byway_registry::registry_client::{AskError, ClientExchange};
use byway_registry::word::RegistryWord;
use byway_wire::relay::{QuotaClass, RateClass};
use byway_wire::{Duration, Instant};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Events that wait for the program.
const MAX_QUEUED_EVENTS: usize = 16;
/// The delay after a first failure until the relay tries again. Each further failure doubles the
/// delay, up to `MAX_RETRY_DELAY`.
const RETRY_DELAY: Duration = Duration::from_secs(2);
/// The longest delay after a failure.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(300);
/// Time between two enrolments of a relay. A new one helps if the registry lost the relay or its
/// addresses changed.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(6 * 3_600);

/// How to enrol.
pub struct EnrollingPlan {
    /// The relay's key. The relay's name at registries and its key pair there follow from it.
    pub key: Secret<[u8; 32]>,
    /// The registry word for joining.
    pub word: RegistryWord,
    /// Bytes per second that the relay grants to a client. `None`: no limit.
    pub rate: Option<u64>,
    /// Bytes per day that the relay grants to a client. `None`: no limit.
    pub quota: Option<u64>,
    /// The name of the relay's operator. Registries spread their answers over operators.
    pub operator: String,
    /// The region of the relay, for a person.
    pub region: String,
    /// The addresses and ports of the relay.
    pub addresses: Vec<SocketAddr>,
    /// Whether the relay may be behind a NAT. The registry then tests and lists the source address
    /// of its heartbeats.
    pub seen: bool,
}

/// An event of a relay's enrolment at a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnrolEvent {
    /// The relay now forwards for grants of this epoch, and the registry tests it.
    Epoch {
        /// The number of the epoch.
        epoch: u32,
        /// Time for which relay words of the previous epoch stay valid.
        last_holds: Duration,
    },
    /// The registry has enrolled the relay.
    Enrolled {
        /// When the first heartbeat is due.
        beat: Duration,
        /// The addresses at which the registry lists the relay.
        passed: Vec<SocketAddr>,
        /// The addresses at which the registry does not list the relay, and why.
        failed: Vec<(SocketAddr, Failure)>,
    },
    /// The relay is not enrolled for now.
    Failed {
        /// Why the registry did not enrol the relay.
        error: AskError,
        /// The time until the next attempt.
        again: Duration,
    },
}

/// An enrolment that is kept up.
pub struct Enrolling {
    driver: byway_net::Handle<Enroller>,
    news: Receiver<EnrolEvent>,
    ready: Arc<AtomicBool>,
    range: u8,
    /// The addresses of the registry that heartbeats go to.
    registry: Vec<SocketAddr>,
    beats: bool,
    /// Whether the registry must see the source address of heartbeats before it lists the relay.
    seen: bool,
}

impl Enrolling {
    /// Starts the enrolment of a relay. The relay must have been started with the registry's key.
    ///
    /// # Errors
    /// The system gives no socket or thread.
    pub fn start(relaying: &Relaying, plan: EnrollingPlan) -> Result<Self, Error> {
        let enrolment = relaying.enrolment(&plan.word.key.0).ok_or(Error::NoRange)?.clone();
        let secret = blake3::derive_key("byway relay v1 key pair at registries", plan.key.expose());
        let identity = Identity::new(Secret::new(secret));
        let destinations: Vec<_> = plan.word.addresses.iter().map(SocketAddr::ip).collect();
        let request = Request::Enrol(Box::new(Enrol {
            proof: plan.word.proof.clone(),
            relay: enrolment.relay,
            range: enrolment.range,
            range_key: enrolment.key,
            rate: plan.rate.map_or(RateClass::UNLIMITED, RateClass::at_most),
            quota: plan.quota.map_or(QuotaClass::UNLIMITED, QuotaClass::at_most),
            operator: Label::new(&plan.operator),
            region: Label::new(&plan.region),
            addresses: plan.addresses,
            seen: plan.seen,
        }));
        let (news, inbox) = sync_channel(MAX_QUEUED_EVENTS);
        let ready = Arc::new(AtomicBool::new(false));
        let registry = plan.word.addresses.clone();
        let owner = Enroller {
            word: plan.word,
            request,
            exchange: None,
            next: Instant::ZERO,
            failures: 0,
            ready: Arc::clone(&ready),
            news,
        };
        let control = Control::new().map_err(Error::Descriptor)?;
        let endpoint = endpoint(&identity, Config::default(), None)?;
        let sockets = sockets::sending(&[], &destinations)?;
        let driver = byway_net::spawn_with(control, "byway enrol", endpoint, owner, sockets, Clock::new())
            .map_err(Error::Thread)?;
        let (range, seen) = (enrolment.range, plan.seen);
        Ok(Self { driver, news: inbox, ready, range, registry, beats: false, seen })
    }

    /// Returns the next event, if there is one, and applies it to the relay. To be called a few
    /// times a second.
    pub fn look(&mut self, relaying: &Relaying) -> Option<EnrolEvent> {
        self.driver.waker().wake();
        let news = self.news.try_recv().ok()?;
        match &news {
            EnrolEvent::Epoch { epoch, last_holds } => {
                relaying.enrolled(self.range, *epoch, *last_holds);
                if self.seen && !self.beats {
                    relaying.watch(self.range, self.registry.clone(), Duration::ZERO);
                }
                // It carries what is minted in the epoch: it may be tested.
                self.ready.store(true, Ordering::Release);
                self.driver.waker().wake();
            }
            EnrolEvent::Enrolled { beat, .. } if !self.beats => {
                self.beats = relaying.watch(self.range, self.registry.clone(), *beat);
            }
            EnrolEvent::Enrolled { .. } | EnrolEvent::Failed { .. } => {}
        }
        Some(news)
    }
}

struct Enroller {
    word: RegistryWord,
    request: Request,
    exchange: Option<ClientExchange>,
    next: Instant,
    failures: u32,
    ready: Arc<AtomicBool>,
    news: SyncSender<EnrolEvent>,
}

impl Enroller {
    fn step(&mut self, endpoint: &mut Endpoint, now: Instant) -> Result<(), AskError> {
        let mut closed = Vec::new();
        let stepped = self.ask(endpoint, now, &mut closed);
        // Only now: until then a session that the registry ended says why.
        closed.into_iter().for_each(|handle| endpoint.forget(handle));
        stepped
    }

    /// Moves the enrolment on, and notes which sessions are over.
    fn ask(
        &mut self,
        endpoint: &mut Endpoint,
        now: Instant,
        closed: &mut Vec<Handle>,
    ) -> Result<(), AskError> {
        if self.exchange.is_none() && self.next <= now {
            let mut exchange = ClientExchange::begin(endpoint, now, &self.word)?;
            exchange.ask(&self.request);
            self.ready.store(false, Ordering::Release);
            self.exchange = Some(exchange);
        }
        while let Some(event) = endpoint.next_event() {
            if let EndpointEvent::Closed(handle) = event {
                closed.push(handle);
            }
            if let Some(exchange) = &mut self.exchange {
                exchange.on_event(&event)?;
            }
        }
        let Some(exchange) = &mut self.exchange else { return Ok(()) };
        if self.ready.swap(false, Ordering::AcqRel) {
            exchange.ask(&Request::Ready);
            exchange.finish();
        }
        match exchange.drive(endpoint, now)? {
            None => {}
            Some(Answer::Epoch { epoch, last_holds }) => {
                let last_holds = Duration::from_secs(last_holds.into());
                let _ = self.news.try_send(EnrolEvent::Epoch { epoch, last_holds });
            }
            Some(Answer::Enrolled { beat_millis, passed, failed }) => {
                if let Some(exchange) = self.exchange.take() {
                    exchange.end(endpoint, now);
                }
                (self.failures, self.next) = (0, now + RENEWAL_INTERVAL);
                let beat = Duration::from_millis(beat_millis.into());
                let _ = self.news.try_send(EnrolEvent::Enrolled { beat, passed, failed });
            }
            Some(_) => return Err(AskError::Closed("it answers something else".into())),
        }
        Ok(())
    }
}

impl Owner for Enroller {
    type Machine = Endpoint;

    fn turn(&mut self, endpoint: &mut Endpoint, now: Instant) -> LoopControl {
        if let Err(error) = self.step(endpoint, now) {
            if let Some(exchange) = self.exchange.take() {
                exchange.end(endpoint, now);
            }
            let later = RETRY_DELAY * 2_u32.saturating_pow(self.failures.min(8));
            let soon = !matches!(&error, AskError::Refused(reason) if !reason.passes());
            let again = if soon { later.min(MAX_RETRY_DELAY) } else { MAX_RETRY_DELAY };
            self.failures += 1;
            self.next = now + again;
            let _ = self.news.try_send(EnrolEvent::Failed { error, again });
        }
        LoopControl::Continue
    }
}
