//! A relay beside the gateway: peers get words of their own, a registry lists it, and another
//! offers the gateway relays.

use crate::config_file::{GatewayConfig, RELAY_PORT, RelayConfig};
use crate::gateway_process::RunningGateway;
use byway_gateway::Prefix;
use byway_gateway::report::RelayReport;
use byway_net::Clock;
use byway_relay::Policy;
use byway_transfer::identity::{Identity, PublicKey};
use byway_transfer::registry::{EnrolEvent, Enrolling, EnrollingPlan, FindEvent, FindPlan, RelayDiscovery};
use byway_transfer::state_directory::StateDir;
use byway_transfer::{Error, RelayRunEvent, RelaySummary, Relaying, RelayingPlan, sockets};
use byway_wire::relay::MAX_ADDRESSES;
use byway_wire::{Duration, Instant};
use std::path::Path;

/// The validity of a peer's relay word.
const WORD_LIFETIME: Duration = Duration::from_secs(30 * 86_400);
/// Time until a peer's relay word is renewed.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(86_400);
/// Time between two readings of the relay's counters.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// News about the relay, for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LendEvent {
    /// The registry lists the relay, or does not; as a sentence.
    Said(String),
    /// Something does not work for now; as a sentence.
    Warning(String),
}

/// The relay beside the gateway, and the search for other relays by a registry.
pub struct GatewayRelays {
    relay: Option<RunningRelay>,
    finding: Option<RelayDiscovery>,
    clock: Clock,
}

struct RunningRelay {
    relaying: Relaying,
    report: RelayReport,
    ask_at: Instant,
    enrolling: Option<Enrolling>,
    peers: Vec<PublicKey>,
    renew_at: Instant,
}

impl GatewayRelays {
    /// Starts the relay if `config` has one. Asks the registry for relays if `config` names a
    /// registry. `state`: the state directory that the command line names.
    ///
    /// # Errors
    /// No state directory is known; an address cannot be bound; keys cannot be read; a thread
    /// cannot start.
    pub fn start(config: &GatewayConfig, identity: &Identity, state: Option<&Path>) -> Result<Self, Error> {
        let clock = Clock::new();
        if config.relay.is_none() && config.registry.is_none() {
            return Ok(Self { relay: None, finding: None, clock });
        }
        let state = StateDir::locate(state, |name| std::env::var_os(name))?;
        let start = |relay| RunningRelay::start(config, relay, &state, clock.now());
        let relay = config.relay.as_ref().map(start).transpose()?;
        let cache = Some(state.registries());
        let plan = config.registry.clone().map(|word| FindPlan::new(word, cache));
        let finding = plan.map(|plan| RelayDiscovery::start(identity, plan)).transpose()?;
        Ok(Self { relay, finding, clock })
    }

    /// The relay's counters of at most a second ago. `None`: there is no relay.
    #[must_use]
    pub fn report(&self) -> Option<RelayReport> {
        self.relay.as_ref().map(|relay| relay.report.clone())
    }

    /// Runs the relays' due work, and passes their relay words to the gateway. To be called a few
    /// times a second.
    pub fn turn(&mut self, gating: &RunningGateway) -> Vec<LendEvent> {
        let mut told = Vec::new();
        let now = self.clock.now();
        if let Some(relay) = &mut self.relay {
            relay.turn(now, gating, &mut told);
        }
        match self.finding.as_ref().and_then(RelayDiscovery::look) {
            Some(FindEvent::Relays(words)) => gating.add_relays(words),
            Some(FindEvent::Useless(why)) => {
                let message = format!("the registry does not help now, and is asked again: {why}");
                told.push(LendEvent::Warning(message));
            }
            None => {}
        }
        told
    }

    /// Makes the relay refuse new relay words, and tell registries that it ends soon.
    pub fn drain(&self) {
        if let Some(relay) = &self.relay {
            relay.relaying.drain();
        }
    }

    /// Stops the relay, and returns its counters. `None`: there is no relay.
    ///
    /// # Errors
    /// The relay broke before.
    pub fn stop(self) -> Result<Option<RelaySummary>, Error> {
        self.relay.map(|relay| relay.relaying.stop()).transpose()
    }
}

impl RunningRelay {
    fn start(
        config: &GatewayConfig,
        relay: &RelayConfig,
        state: &StateDir,
        now: Instant,
    ) -> Result<Self, Error> {
        let sockets = sockets::answering(sockets::serving(&relay.listen, RELAY_PORT)?);
        let listen = sockets.iter().map(|socket| socket.address().to_string()).collect();
        let report = RelayReport { listen, ..RelayReport::default() };
        let mut addresses = match relay.advertise.as_slice() {
            [] => sockets::reachable_at(&sockets),
            told => told.to_vec(),
        };
        addresses.truncate(MAX_ADDRESSES);
        let file = relay.key.as_deref();
        let key = state.relay_key(file)?;
        let enrolling = relay.registry.clone().map(|word| EnrollingPlan {
            key: key.clone(),
            word,
            rate: relay.rate,
            quota: relay.quota,
            operator: relay.operator.clone(),
            region: relay.region.clone(),
            addresses: addresses.clone(),
            seen: false,
        });
        let relaying = Relaying::start(RelayingPlan {
            key,
            policy: policy(config, relay),
            sockets,
            listeners: Vec::new(),
            tcp_congestion: byway_net::TcpCongestion::Cubic,
            tcp_buffer: None,
            addresses,
            expires: WORD_LIFETIME,
            rate: relay.rate,
            quota: relay.quota,
            per_day: relay.per_day,
            per_month: relay.per_month,
            accounts: None,
            words: None,
            keep: Some(state.relay_kept_path(file)),
            registries: enrolling.iter().map(|plan| plan.word.key.0).collect(),
            lend: None,
        })?;
        let enrolling = enrolling.map(|plan| Enrolling::start(&relaying, plan)).transpose()?;
        let peers = config.peers.iter().map(|peer| peer.key).collect();
        Ok(Self { relaying, report, ask_at: now, enrolling, peers, renew_at: now })
    }

    fn turn(&mut self, now: Instant, gating: &RunningGateway, told: &mut Vec<LendEvent>) {
        if now >= self.renew_at {
            self.renew_at = now + RENEWAL_INTERVAL;
            for peer in &self.peers {
                if let Some(word) = self.relaying.word_for(&peer.0, WORD_LIFETIME) {
                    gating.lend(*peer, word);
                }
            }
        }
        if now >= self.ask_at {
            self.ask_at = now + REPORT_INTERVAL;
            self.relaying.ask();
        }
        match self.relaying.next(Duration::ZERO) {
            Some(RelayRunEvent::Relayed(relayed)) => self.on_relayed(&relayed),
            Some(RelayRunEvent::NotKept(error)) => told.push(LendEvent::Warning(format!(
                "cannot write down what was carried: {error}; a restart would forget it"
            ))),
            Some(RelayRunEvent::KeptAgain) => {
                told.push(LendEvent::Said("what was carried is written down again".into()));
            }
            // A gateway's relay has no words with names.
            Some(
                RelayRunEvent::Dropped(_)
                | RelayRunEvent::Lends(_)
                | RelayRunEvent::WordsRead { .. }
                | RelayRunEvent::WordsUnread(_),
            )
            | None => {}
        }
        let news = self.enrolling.as_mut().and_then(|enrolling| enrolling.look(&self.relaying));
        told.extend(news.map(enrolled).unwrap_or_default());
    }
}

impl RunningRelay {
    fn on_relayed(&mut self, relayed: &RelaySummary) {
        let counters = &relayed.counters;
        self.report.bytes = counters.forwarded_bytes + counters.returned_bytes;
        self.report.today_bytes = relayed.used.today;
        self.report.month_bytes = relayed.used.this_month;
    }
}

/// Returns an event of the relay's enrolment at its registry, for a person.
fn enrolled(news: EnrolEvent) -> Vec<LendEvent> {
    match news {
        EnrolEvent::Epoch { .. } => Vec::new(),
        EnrolEvent::Enrolled { passed, failed, .. } => {
            let texts: Vec<String> = passed.iter().map(ToString::to_string).collect();
            let listed = format!("the registry lists the relay at {}", texts.join(" "));
            let not = failed.iter().map(|(address, why)| {
                LendEvent::Said(format!("the registry does not list it at {address}: {why}"))
            });
            [LendEvent::Said(listed)].into_iter().chain(not).collect()
        }
        EnrolEvent::Failed { error, again } => {
            let again = again.as_secs();
            vec![LendEvent::Warning(format!("not enrolled: {error}; tried again in {again} s"))]
        }
    }
}

/// Returns the policy for destinations: public addresses, peers and those that the operator allows,
/// never this host's own addresses.
fn policy(config: &GatewayConfig, relay: &RelayConfig) -> Policy {
    let peers = config.peers.iter().flat_map(|peer| &peer.addresses);
    let peers = peers.map(|address| Prefix::of(address.ip(), 128));
    let allowed = peers.chain(relay.allow_destination.iter().copied());
    sockets::own_addresses().into_iter().fold(allowed.fold(Policy::public(), Policy::allow), Policy::own)
}
