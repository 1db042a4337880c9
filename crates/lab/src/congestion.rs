//! Controllers by name, with what each of them leaves open as numbers by name: what `congestion` and `options` of a plan say.

use crate::setup::Congestion;
use byway_control::bundle::{Coupled, Each, Law};
use byway_control::harp::{self, Coupling, DelayRule, Harp, LossRule};
use byway_control::mpath::{self, Growth, MPath};
use byway_control::{Controller, NAMES, Opened, Single, by_name};
use byway_control::{balia, bmc, cubic, ledbat, ledbat_pp, lia, newreno, nice, olia, tcp_lp, wang, wvegas};
use byway_wire::Duration;
use std::collections::BTreeMap;

/// Who is to be governed: hosts differ in how large a window they begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// A session of byway's.
    Session,
    /// Reference TCP hosts.
    Tcp {
        /// In packets; what loss-based controllers begin with unless `initial` says otherwise.
        initial_window: u32,
    },
}

/// What is wrong with what a plan says of a controller.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CongestionError {
    /// There is none of that name.
    #[error("there is no controller called {name}; there are {known}")]
    UnknownName {
        /// The name that was asked for.
        name: String,
        /// All that there are.
        known: String,
    },
    /// It does not leave that open.
    #[error("{name} has no option {option}; it has {known}")]
    UnknownOption {
        /// The controller.
        name: String,
        /// The option that was given.
        option: String,
        /// All that it has.
        known: String,
    },
    /// A value that the option cannot have.
    #[error("{name}: {option} = {value}, but it must be {expected}")]
    BadValue {
        /// The controller.
        name: String,
        /// The option.
        option: String,
        /// The value that was given.
        value: f64,
        /// What would do.
        expected: String,
    },
}

/// A controller that a plan may name.
#[derive(Clone, Debug, PartialEq)]
pub struct Named {
    /// Its name.
    pub name: &'static str,
    /// What it is, in one line.
    pub about: &'static str,
    /// Its options, and what holds if they are not set, in a session.
    pub options: Vec<(String, f64)>,
}

/// Every controller and its options.
#[must_use]
pub fn names() -> Vec<Named> {
    let of = |(name, about): &(&'static str, &'static str)| {
        let nothing = BTreeMap::new();
        let mut knobs = Knobs::new(&nothing);
        let _ = make(name, &mut knobs, Carrier::Session, 0);
        Named { name, about, options: knobs.known }
    };
    NAMES.iter().map(of).collect()
}

/// The controller that `asked` describes. Two of the same seed do the same.
///
/// # Errors
/// [`CongestionError`]: each says what would do.
pub fn controller(
    asked: &Congestion,
    carrier: Carrier,
    seed: u64,
) -> Result<Box<dyn Controller>, CongestionError> {
    let name = asked.name.clone();
    let mut knobs = Knobs::new(&asked.options);
    let Some(made) = make(&asked.name, &mut knobs, carrier, seed) else {
        let known: Vec<_> = NAMES.iter().map(|(name, _)| *name).collect();
        return Err(CongestionError::UnknownName { name, known: known.join(", ") });
    };
    if let Some((option, value, expected)) = knobs.wrong {
        return Err(CongestionError::BadValue { name, option, value, expected });
    }
    let unknown = |option: &&String| !knobs.known.iter().any(|(known, _)| known == *option);
    match asked.options.keys().find(unknown) {
        None => Ok(made),
        Some(option) => {
            let known: Vec<_> = knobs.known.iter().map(|(name, _)| name.as_str()).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            Err(CongestionError::UnknownOption { name, option: option.clone(), known })
        }
    }
}

/// Options that were given, and those that were asked for.
#[derive(Debug)]
struct Knobs<'a> {
    given: &'a BTreeMap<String, f64>,
    known: Vec<(String, f64)>,
    /// The first that cannot be: option, value, what was expected.
    wrong: Option<(String, f64, String)>,
}

impl<'a> Knobs<'a> {
    const fn new(given: &'a BTreeMap<String, f64>) -> Self {
        Self { given, known: Vec::new(), wrong: None }
    }

    fn number(&mut self, name: &str, value: &mut f64, [least, most]: [f64; 2]) {
        self.known.push((name.to_owned(), *value));
        let Some(given) = self.given.get(name).copied() else { return };
        // Written so that what is no number fails too.
        if given >= least && given <= most {
            *value = given;
        } else if self.wrong.is_none() {
            self.wrong = Some((name.to_owned(), given, format!("a number from {least} to {most}")));
        }
    }

    /// Packets.
    fn packets(&mut self, name: &str, value: &mut f64) {
        self.number(name, value, [0.0, 1e8]);
    }

    /// A part of something.
    fn part(&mut self, name: &str, value: &mut f64) {
        self.number(name, value, [0.0, 1.0]);
    }

    /// Milliseconds.
    fn time(&mut self, name: &str, value: &mut Duration) {
        let mut millis = value.as_secs_f64() * 1e3;
        self.number(name, &mut millis, [0.0, 1e6]);
        *value = Duration::from_nanos(libm::round(millis * 1e6) as u64);
    }

    fn count(&mut self, name: &str, value: &mut usize, most: f64) {
        let mut number = *value as f64;
        self.number(name, &mut number, [0.0, most]);
        *value = number as usize;
    }

    fn small(&mut self, name: &str, value: &mut u32) {
        let mut number = f64::from(*value);
        self.number(name, &mut number, [0.0, 1e6]);
        *value = number as u32;
    }

    /// 0 or 1.
    fn switch(&mut self, name: &str, value: &mut bool) {
        let mut number = f64::from(u8::from(*value));
        self.part(name, &mut number);
        *value = number >= 0.5;
    }
}

/// The controller of this name; what it leaves open is asked of `knobs`.
fn make(name: &str, knobs: &mut Knobs<'_>, carrier: Carrier, seed: u64) -> Option<Box<dyn Controller>> {
    let literal = harp::Options::literal;
    Some(match name {
        "harp" => harp("harp", harp::Options::production(Coupling::Adaptive), knobs, seed),
        "harp-adaptive" => harp("harp-adaptive", literal(Coupling::Adaptive), knobs, seed),
        "harp-independent" => harp("harp-independent", literal(Coupling::Independent), knobs, seed),
        "harp-joint" => harp("harp-joint", literal(Coupling::Joint), knobs, seed),
        "hir" => harp("hir", harp::Options::averaged(true), knobs, seed),
        "hir-literal" => harp("hir-literal", harp::Options::averaged(false), knobs, seed),
        "mpath" => mpath("mpath", mpath::Options::PRODUCTION, knobs, seed),
        "mpath-literal" => mpath("mpath-literal", mpath::Options::LITERAL, knobs, seed),
        "newreno" => {
            let options = reno(knobs, carrier);
            each("newreno", move |opened| newreno::NewReno::with_options(opened, options))
        }
        "lia" => coupled("lia", lia::Lia, knobs, carrier),
        "olia" => coupled("olia", olia::Olia, knobs, carrier),
        "balia" => coupled("balia", balia::Balia, knobs, carrier),
        "wvegas" => coupled("wvegas", wvegas::WVegas, knobs, carrier),
        "wang" => coupled("wang", wang::Wang::new(seed), knobs, carrier),
        "bmc" => bmc("bmc", bmc::Options::RECOMMENDED, knobs, carrier),
        "bmc-literal" => bmc("bmc-literal", bmc::Options::LITERAL, knobs, carrier),
        "cubic" => {
            let mut options = cubic::Options::BYWAY;
            knobs.number("c", &mut options.c, [0.0, 100.0]);
            knobs.part("beta", &mut options.beta);
            knobs.switch("fast_convergence", &mut options.fast_convergence);
            (options.initial, options.limit) = start(knobs, carrier, (options.initial, options.limit));
            each("cubic", move |opened| cubic::Cubic::with_options(opened, options))
        }
        "ledbat" => {
            let mut options = ledbat::Options::RFC6817;
            knobs.time("target_ms", &mut options.target);
            knobs.number("gain", &mut options.gain, [0.0, 100.0]);
            knobs.packets("initial", &mut options.initial);
            each("ledbat", move |opened| ledbat::Ledbat::with_options(opened, options))
        }
        "ledbat++" => {
            let mut options = ledbat_pp::Options::DRAFT;
            knobs.time("target_ms", &mut options.target);
            each("ledbat++", move |opened| ledbat_pp::LedbatPp::with_options(opened, options))
        }
        "nice" => {
            let mut options = nice::Options::RECOMMENDED;
            knobs.part("threshold", &mut options.threshold);
            knobs.part("fraction", &mut options.fraction);
            knobs.time("least_range_ms", &mut options.least_range);
            knobs.packets("initial", &mut options.initial);
            each("nice", move |opened| nice::Nice::with_options(opened, options))
        }
        "tcp-lp" => {
            let mut options = tcp_lp::Options::RECOMMENDED;
            knobs.part("threshold", &mut options.threshold);
            knobs.part("smoothing", &mut options.smoothing);
            knobs.time("least_range_ms", &mut options.least_range);
            (options.initial, options.limit) = start(knobs, carrier, (options.initial, options.limit));
            each("tcp-lp", move |opened| tcp_lp::TcpLp::with_options(opened, options))
        }
        // Whatever has no options.
        other => return by_name(other, seed),
    })
}

fn each<C: Single + 'static>(
    name: &'static str,
    make: impl Fn(&Opened) -> C + Send + 'static,
) -> Box<dyn Controller> {
    Box::new(Each::new(name, make))
}

/// Initial window and L of RFC 3465, in packets.
fn start(knobs: &mut Knobs<'_>, carrier: Carrier, session: (f64, f64)) -> (f64, f64) {
    let (mut initial, mut limit) = match carrier {
        Carrier::Session => session,
        Carrier::Tcp { initial_window } => (f64::from(initial_window), newreno::Options::TCP.limit),
    };
    knobs.packets("initial", &mut initial);
    knobs.packets("limit", &mut limit);
    (initial, limit)
}

fn reno(knobs: &mut Knobs<'_>, carrier: Carrier) -> newreno::Options {
    let newreno::Options { initial, limit } = newreno::Options::BYWAY;
    let (initial, limit) = start(knobs, carrier, (initial, limit));
    newreno::Options { initial, limit }
}

fn coupled<L: Law + 'static>(
    name: &'static str,
    law: L,
    knobs: &mut Knobs<'_>,
    carrier: Carrier,
) -> Box<dyn Controller> {
    let options = reno(knobs, carrier);
    Box::new(Coupled::with_options(name, law, options))
}

/// With `weight`, or `weight_1`, `weight_2` and so on, the weights of the paths in turn are fixed.
fn bmc(
    name: &'static str,
    mut options: bmc::Options,
    knobs: &mut Knobs<'_>,
    carrier: Carrier,
) -> Box<dyn Controller> {
    knobs.part("hysteresis", &mut options.hysteresis);
    knobs.part("floor", &mut options.floor);
    let mut weights = Vec::new();
    for place in 0..=8 {
        let key = if place == 0 { "weight".to_owned() } else { format!("weight_{place}") };
        let mut weight = 0.0;
        knobs.part(&key, &mut weight);
        if weight > 0.0 {
            weights.push(weight);
        }
    }
    let law = if weights.is_empty() { bmc::Bmc::new(options) } else { bmc::Bmc::fixed(&weights) };
    coupled(name, law, knobs, carrier)
}

fn harp(
    name: &'static str,
    mut options: harp::Options,
    knobs: &mut Knobs<'_>,
    seed: u64,
) -> Box<dyn Controller> {
    knobs.part("alpha", &mut options.alpha);
    knobs.part("beta", &mut options.beta);
    knobs.packets("initial", &mut options.initial);
    knobs.packets("floor", &mut options.floor);
    knobs.part("forget", &mut options.forget);
    knobs.switch("agile", &mut options.agile);
    knobs.switch("company", &mut options.company);
    knobs.switch("choke", &mut options.choke);
    match &mut options.delay {
        DelayRule::Relative { delta, fraction, least_range, range } => {
            knobs.part("delta", delta);
            knobs.part("fraction", fraction);
            knobs.time("least_range_ms", least_range);
            let mut given = range.unwrap_or_default();
            knobs.time("range_ms", &mut given);
            *range = (!given.is_zero()).then_some(given);
        }
        DelayRule::Averaged { delta, packets, capped, least_range } => {
            knobs.part("delta", delta);
            knobs.small("packets", packets);
            knobs.switch("capped", capped);
            knobs.time("least_range_ms", least_range);
        }
        DelayRule::Absolute { threshold } => knobs.time("threshold_ms", threshold),
    }
    if let LossRule::ByDelay { gentle, tolerated } = &mut options.loss {
        knobs.packets("gentle", gentle);
        knobs.part("tolerated", tolerated);
    }
    Box::new(Harp::new(name, options, seed))
}

fn mpath(
    name: &'static str,
    mut options: mpath::Options,
    knobs: &mut Knobs<'_>,
    seed: u64,
) -> Box<dyn Controller> {
    knobs.part("alpha", &mut options.alpha);
    knobs.part("beta", &mut options.beta);
    knobs.packets("initial", &mut options.initial);
    knobs.packets("initial_proxied", &mut options.initial_proxied);
    knobs.switch("start_everywhere", &mut options.start_everywhere);
    knobs.count("open_at_start", &mut options.open_at_start, 1e6);
    knobs.small("evidence", &mut options.evidence);
    knobs.small("patience", &mut options.patience);
    let mut lot = options.growth == Growth::Lot;
    knobs.switch("lot", &mut lot);
    options.growth = if lot { Growth::Lot } else { Growth::Shares };
    Box::new(MPath::new(name, options, seed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use byway_wire::{Instant, PathId};

    fn asked(name: &str, options: &[(&str, f64)]) -> Congestion {
        let options = options.iter().map(|(key, value)| ((*key).to_owned(), *value)).collect();
        Congestion { name: name.to_owned(), options }
    }

    #[test]
    fn every_name_makes_the_controller_of_that_name() {
        for named in names() {
            for carrier in [Carrier::Session, Carrier::Tcp { initial_window: 2 }] {
                let made = controller(&asked(named.name, &[]), carrier, 1).expect(named.name);
                assert_eq!(made.name(), named.name);
            }
        }
    }

    #[test]
    fn without_options_it_is_the_one_of_the_catalogue() {
        for (name, _) in NAMES {
            let mut both = [
                controller(&asked(name, &[]), Carrier::Session, 7).expect(name),
                by_name(name, 7).expect(name),
            ];
            let opened = Opened { now: Instant::ZERO, proxied: false, packet_size: 1_500, rtt: None };
            both.iter_mut().for_each(|made| made.open(PathId(0), &opened));
            let [made, catalogued] = both.map(|made| format!("{made:?}"));
            assert_eq!(made, catalogued);
        }
    }

    #[test]
    fn options_reach_the_controller() {
        let harp = asked("harp-joint", &[("delta", 0.25), ("range_ms", 40.0), ("choke", 0.0)]);
        let made = format!("{:?}", controller(&harp, Carrier::Session, 1).expect("known options"));
        assert!(made.contains("delta: 0.25") && made.contains("range: Some(40ms)"), "{made}");
        assert!(made.contains("choke: false") && made.contains("alpha: 0.03"), "{made}");
        let lia = asked("lia", &[("initial", 4.0)]);
        let made = format!("{:?}", controller(&lia, Carrier::Tcp { initial_window: 2 }, 1).expect("known"));
        assert!(made.contains("initial: 4.0, limit: 2.0"), "{made}");
    }

    #[test]
    fn what_is_not_known_is_refused_with_what_is() {
        let wrong = |asked: &Congestion| {
            controller(asked, Carrier::Session, 1).expect_err("must be refused").to_string()
        };
        assert!(
            wrong(&asked("reno", &[])).starts_with("there is no controller called reno; there are balia, ")
        );
        assert_eq!(
            wrong(&asked("newreno", &[("delta", 1.0)])),
            "newreno has no option delta; it has initial, limit"
        );
        let value = wrong(&asked("harp", &[("beta", 1.5)]));
        assert_eq!(value, "harp: beta = 1.5, but it must be a number from 0 to 1");
        assert!(wrong(&asked("harp", &[("beta", f64::NAN)])).starts_with("harp: beta = NaN"));
    }
}
