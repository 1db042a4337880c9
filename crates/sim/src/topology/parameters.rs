//! Numbers by name, and what a network says of those that it takes.

use super::error::TopologyError;
use crate::pipe::PipeConfig;
use crate::random::Random;
use byway_wire::Duration;
use std::collections::BTreeMap;

/// The parameters of a named network: a seed, and numbers by name. Missing ones have their
/// defaults.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parameters {
    /// The seed of random networks. Fixed networks ignore it.
    pub seed: u64,
    values: BTreeMap<String, f64>,
}

impl Parameters {
    /// Parameters with a seed and defaults only.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { seed, values: BTreeMap::new() }
    }

    /// Sets a parameter.
    #[must_use]
    pub fn with(mut self, name: &str, value: f64) -> Self {
        self.set(name, value);
        self
    }

    /// Sets a parameter.
    pub fn set(&mut self, name: &str, value: f64) {
        self.values.insert(name.to_owned(), value);
    }

    /// The given parameters, ordered by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, f64)> {
        self.values.iter().map(|(name, &value)| (name.as_str(), value))
    }
}

/// A parameter of a named network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameter {
    /// The name of the parameter.
    pub name: &'static str,
    /// The value if the parameter is not given.
    pub default: f64,
    /// The smallest permitted value.
    pub least: f64,
    /// The largest permitted value.
    pub most: f64,
    /// The parameter's meaning and unit.
    pub about: &'static str,
}

impl Parameter {
    /// Whether the parameter is a count, and must be a whole number.
    #[must_use]
    pub fn counts(&self) -> bool {
        self.about.starts_with("number of") || self.about.starts_with("packets")
    }
}

/// Declares a parameter, for the tables of the registry.
pub(super) const fn parameter(
    name: &'static str,
    default: f64,
    [least, most]: [f64; 2],
    about: &'static str,
) -> Parameter {
    Parameter { name, default, least, most, about }
}

/// The values of all parameters of a network, checked.
#[derive(Debug)]
pub(super) struct Values {
    pub(super) seed: u64,
    known: BTreeMap<&'static str, f64>,
}

impl Values {
    /// Returns the values of all parameters: the given ones, and defaults for the rest.
    pub(super) fn new(
        topology: &str,
        table: &[Parameter],
        given: &Parameters,
    ) -> Result<Self, TopologyError> {
        for (name, value) in given.iter() {
            let Some(parameter) = table.iter().find(|parameter| parameter.name == name) else {
                let known: Vec<_> = table.iter().map(|parameter| parameter.name).collect();
                return Err(TopologyError::UnknownParameter {
                    topology: topology.to_owned(),
                    name: name.to_owned(),
                    known: known.join(", "),
                });
            };
            let whole = !parameter.counts() || value == libm::trunc(value);
            // Written so that what is no number fails too.
            if !(value >= parameter.least && value <= parameter.most && whole) {
                let kind = if parameter.counts() { "a whole number" } else { "a number" };
                return Err(TopologyError::BadParameter {
                    topology: topology.to_owned(),
                    name: name.to_owned(),
                    value,
                    expected: format!(
                        "{kind} from {} to {}: {}",
                        parameter.least, parameter.most, parameter.about
                    ),
                });
            }
        }
        let known = table
            .iter()
            .map(|parameter| {
                let given = given.values.get(parameter.name).copied();
                (parameter.name, given.unwrap_or(parameter.default))
            })
            .collect();
        Ok(Self { seed: given.seed, known })
    }

    /// The value of the parameter `name`.
    ///
    /// # Panics
    /// If the network has no such parameter. This is a mistake in this module, and a test of all
    /// networks finds it.
    pub(super) fn get(&self, name: &str) -> f64 {
        self.known.get(name).copied().unwrap_or_else(|| panic!("no parameter is called {name}"))
    }

    /// A parameter that counts something.
    pub(super) fn count(&self, name: &str) -> usize {
        self.get(name) as usize
    }

    /// The value of a parameter in milliseconds.
    pub(super) fn ms(&self, name: &str) -> Duration {
        millis(self.get(name))
    }

    /// A parameter in Mbit/s, as bits per second.
    pub(super) fn mbit(&self, name: &str) -> u64 {
        bits(self.get(name))
    }
}

/// Milliseconds, to the nearest nanosecond.
pub(super) fn millis(ms: f64) -> Duration {
    Duration::from_nanos(libm::round(ms * 1e6) as u64)
}

/// Mbit/s as bits per second.
pub(super) fn bits(mbit: f64) -> u64 {
    libm::round(mbit * 1e6) as u64
}

/// A line of this many Mbit/s and milliseconds, with the queue that every line has that is no
/// bottleneck.
pub(super) fn line(mbit: f64, ms: f64) -> PipeConfig {
    PipeConfig::new(bits(mbit), millis(ms))
}

/// A stream of random numbers of a component of a network.
pub(super) fn dice(seed: u64, component: &str) -> Random {
    Random::component(seed, component)
}

/// A number from `low` to `high`, each equally likely.
pub(super) fn between(random: &mut Random, [low, high]: [f64; 2]) -> f64 {
    low + random.unit() * (high - low)
}
