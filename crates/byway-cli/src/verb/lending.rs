//! `--also-relay`: what this host relays for others while a transfer runs.

use super::relay::shown;
use crate::args::Global;
use crate::args::lending::Lending as Arguments;
use crate::exit::{Exit, Failure, sentence};
use crate::messages;
use crate::output::{Event, Fields, LendingReport, Output};
use crate::signals::Signals;
use anyhow::Result;
use byway_net::Clock;
use byway_registry::word::{RegistryWord, WordKind};
use byway_transfer::address::Endpoint;
use byway_transfer::lending::{Lending, LendingEvent, LendingPlan};
use byway_wire::{Duration, Instant};

/// Time between two reads of the lending's counters.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// Time between two lines of counters for a program.
const STATISTICS_INTERVAL: Duration = Duration::from_secs(10);

/// The running lending of this host, if any, and its last counters.
pub(super) struct LendingStatus {
    lending: Option<Lending>,
    clock: Clock,
    looked: Instant,
    told: Instant,
    /// Whether the counters were asked for, and not yet printed.
    asked: bool,
    lends: Option<LendingReport>,
}

impl LendingStatus {
    /// Starts relaying for others if `--also-relay` asks for it. A host that cannot relay only
    /// warns, and transfers all the same.
    pub fn start(
        global: &Global,
        arguments: &Arguments,
        words: &[RegistryWord],
        advertise: &[Endpoint],
        output: &mut Output,
    ) -> Result<Self> {
        let (clock, looked, told) = (Clock::new(), Instant::ZERO, Instant::ZERO);
        let nothing = Self { lending: None, clock, looked, told, asked: false, lends: None };
        let Some(quota) = arguments.also_relay else { return Ok(nothing) };
        let Some(registry) = words.iter().find(|word| word.kind == WordKind::Join).cloned() else {
            return Err(Failure::new(Exit::Usage, messages::lending::NO_WORD_FOR_JOINING).into());
        };
        let plan = LendingPlan {
            quota,
            rate: arguments.lend,
            registry,
            advertise: advertise.to_vec(),
            allow: arguments.allow_destination.clone(),
        };
        let lending = match Lending::start(&global.state()?, plan) {
            Ok(lending) => {
                let terms = lending.terms();
                output.say(&terms);
                output.emit(&Event::Told { event: "lends", fields: Fields::one("terms", &terms) });
                Some(lending)
            }
            Err(error) => {
                let message = messages::lending::cannot_relay(sentence(&error.into()));
                output.emit(&Event::Warning { message });
                None
            }
        };
        Ok(Self { lending, ..nothing })
    }

    /// Prints the lending's events, and its counters if someone asked. `busy`: this host has a
    /// transfer of its own.
    pub fn look(&mut self, busy: bool, signals: &Signals, output: &mut Output) {
        let Some(lending) = &mut self.lending else { return };
        lending.set_busy(busy);
        let now = self.clock.now();
        if signals.take_report() || output.is_json() && now.since(self.told) >= STATISTICS_INTERVAL {
            (self.told, self.asked, self.looked) = (now, true, Instant::ZERO);
        }
        if now.since(self.looked) >= LOOK_INTERVAL {
            self.looked = now;
            lending.ask();
        }
        while let Some(news) = lending.look() {
            match news {
                LendingEvent::Listed(addresses) => {
                    let texts: Vec<String> = addresses.iter().map(ToString::to_string).collect();
                    output.say(&messages::lending::listed(&texts));
                    output.emit(&Event::Told { event: "enrolled", fields: Fields::one("addresses", &texts) });
                }
                LendingEvent::Told(message) => output.emit(&Event::Warning { message }),
                LendingEvent::Relayed(relayed) => {
                    let counters = shown(&relayed);
                    self.lends.clone_from(&counters.lends);
                    if std::mem::take(&mut self.asked) {
                        output.emit(&Event::Counters(counters));
                    }
                }
            }
        }
    }

    /// Whether this host relays for others.
    pub const fn is_lending(&self) -> bool {
        self.lending.is_some()
    }

    /// Returns the rate that this host lends and relays now.
    pub fn lends(&self) -> Option<LendingReport> {
        self.lends.clone()
    }

    /// Stops relaying and prints the totals. Returns the bytes relayed in both directions.
    pub fn stop(self, output: &mut Output) -> Option<u64> {
        match self.lending?.stop() {
            Ok(relayed) => {
                let shown = shown(&relayed);
                output.say(&messages::lending::relayed(&shown));
                output.emit(&Event::told("lent", &shown));
                Some(shown.forwarded_bytes + shown.returned_bytes)
            }
            Err(error) => {
                output.emit(&Event::Warning { message: error.to_string() });
                None
            }
        }
    }
}
