//! Makes controllers by name; what each of them leaves open is asked of the knobs.

use super::SenderKind;
use super::option_reader::OptionReader;
use crate::bundle::{Coupled, Law, UncoupledPaths};
use crate::mpath::{self, Growth, MPath};
use crate::papers::harp::{self, Coupling, DelayRule, Harp};
use crate::rivals::{bbr, cubic, ledbat, ledbat_pp, lia, nice, tcp_lp};
use crate::{Controller, Opened, PathController, background, bmc, newreno, wang};
use alloc::borrow::ToOwned as _;
use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

/// Makes the controller with this name. `None`: there is none.
pub(super) fn make(
    name: &str,
    knobs: &mut OptionReader<'_>,
    sender: SenderKind,
    seed: u64,
) -> Option<Box<dyn Controller>> {
    let literal = harp::HarpOptions::literal;
    Some(match name {
        "background" => Box::new(background::Background::new("background")),
        "harp-adaptive" => harp("harp-adaptive", literal(Coupling::Adaptive), knobs),
        "harp-independent" => harp("harp-independent", literal(Coupling::Independent), knobs),
        "harp-joint" => harp("harp-joint", literal(Coupling::Joint), knobs),
        "hir" => harp("hir", harp::HarpOptions::averaged(true), knobs),
        "hir-literal" => harp("hir-literal", harp::HarpOptions::averaged(false), knobs),
        "mpath" => mpath("mpath", mpath::MPathOptions::PRODUCTION, knobs, seed),
        "mpath-literal" => mpath("mpath-literal", mpath::MPathOptions::LITERAL, knobs, seed),
        "newreno" => {
            let options = reno(knobs, sender);
            each("newreno", move |opened| newreno::NewReno::with_options(opened, options))
        }
        "lia" => coupled("lia", lia::Lia, knobs, sender),
        "wang" => coupled("wang", wang::Wang::new(seed), knobs, sender),
        "bbr" => {
            let (initial, _) = start(knobs, sender, (cubic::CubicOptions::BYWAY.initial, 0.0));
            each("bbr", move |opened| bbr::Bbr::new(opened, initial, seed))
        }
        "bmc" => bmc("bmc", bmc::BmcOptions::RECOMMENDED, knobs, sender),
        "bmc-literal" => bmc("bmc-literal", bmc::BmcOptions::LITERAL, knobs, sender),
        "cubic" => {
            let mut options = cubic::CubicOptions::BYWAY;
            let mut hystart = matches!(sender, SenderKind::Linux { .. });
            knobs.switch("hystart", &mut hystart);
            if hystart {
                options.slow_start = cubic::SlowStart::HyStart;
            }
            knobs.number("c", &mut options.c, [0.0, 100.0]);
            knobs.part("beta", &mut options.beta);
            knobs.switch("fast_convergence", &mut options.fast_convergence);
            (options.initial, options.limit) = start(knobs, sender, (options.initial, options.limit));
            each("cubic", move |opened| cubic::Cubic::with_options(opened, options))
        }
        "ledbat" => {
            let mut options = ledbat::LedbatOptions::RFC6817;
            knobs.time("target_ms", &mut options.target);
            knobs.number("gain", &mut options.gain, [0.0, 100.0]);
            knobs.packets("initial", &mut options.initial);
            each("ledbat", move |opened| ledbat::Ledbat::with_options(opened, options))
        }
        "ledbat++" => {
            let mut options = ledbat_pp::LedbatPpOptions::DRAFT;
            knobs.time("target_ms", &mut options.target);
            each("ledbat++", move |opened| ledbat_pp::LedbatPp::with_options(opened, options))
        }
        "nice" => {
            let mut options = nice::NiceOptions::RECOMMENDED;
            knobs.part("threshold", &mut options.threshold);
            knobs.part("fraction", &mut options.fraction);
            knobs.time("least_range_ms", &mut options.least_range);
            knobs.packets("initial", &mut options.initial);
            each("nice", move |opened| nice::Nice::with_options(opened, options))
        }
        "tcp-lp" => {
            let mut options = tcp_lp::TcpLpOptions::RECOMMENDED;
            knobs.part("threshold", &mut options.threshold);
            knobs.part("smoothing", &mut options.smoothing);
            knobs.time("least_range_ms", &mut options.least_range);
            (options.initial, options.limit) = start(knobs, sender, (options.initial, options.limit));
            each("tcp-lp", move |opened| tcp_lp::TcpLp::with_options(opened, options))
        }
        _ => return None,
    })
}

fn each<C: PathController + 'static>(
    name: &'static str,
    make: impl Fn(&Opened) -> C + Send + 'static,
) -> Box<dyn Controller> {
    Box::new(UncoupledPaths::new(name, make))
}

/// Initial window and L of RFC 3465, in packets.
fn start(knobs: &mut OptionReader<'_>, sender: SenderKind, session: (f64, f64)) -> (f64, f64) {
    let (mut initial, mut limit) = match sender {
        SenderKind::Session => session,
        SenderKind::Tcp { initial_window } => (f64::from(initial_window), newreno::NewRenoOptions::TCP.limit),
        // Linux counts all that an ACK tells of.
        SenderKind::Linux { initial_window } => (f64::from(initial_window), 1e6),
    };
    knobs.packets("initial", &mut initial);
    knobs.packets("limit", &mut limit);
    (initial, limit)
}

fn reno(knobs: &mut OptionReader<'_>, sender: SenderKind) -> newreno::NewRenoOptions {
    let newreno::NewRenoOptions { initial, limit } = newreno::NewRenoOptions::BYWAY;
    let (initial, limit) = start(knobs, sender, (initial, limit));
    newreno::NewRenoOptions { initial, limit }
}

fn coupled<L: Law + 'static>(
    name: &'static str,
    law: L,
    knobs: &mut OptionReader<'_>,
    sender: SenderKind,
) -> Box<dyn Controller> {
    let options = reno(knobs, sender);
    Box::new(Coupled::with_options(name, law, options))
}

/// With `weight`, or `weight_1`, `weight_2` and so on, the weights of the paths in turn are fixed.
fn bmc(
    name: &'static str,
    mut options: bmc::BmcOptions,
    knobs: &mut OptionReader<'_>,
    sender: SenderKind,
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
    coupled(name, law, knobs, sender)
}

fn harp(
    name: &'static str,
    mut options: harp::HarpOptions,
    knobs: &mut OptionReader<'_>,
) -> Box<dyn Controller> {
    knobs.part("alpha", &mut options.alpha);
    knobs.part("beta", &mut options.beta);
    knobs.packets("initial", &mut options.initial);
    knobs.packets("floor", &mut options.floor);
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
    }
    Box::new(Harp::new(name, options))
}

fn mpath(
    name: &'static str,
    mut options: mpath::MPathOptions,
    knobs: &mut OptionReader<'_>,
    seed: u64,
) -> Box<dyn Controller> {
    knobs.part("alpha", &mut options.alpha);
    knobs.part("beta", &mut options.beta);
    knobs.packets("initial", &mut options.initial);
    knobs.packets("initial_proxied", &mut options.initial_proxied);
    knobs.switch("start_everywhere", &mut options.start_everywhere);
    knobs.count("open_at_start", &mut options.open_at_start, 1e6);
    knobs.switch("last_lost", &mut options.last_lost);
    knobs.small("evidence", &mut options.evidence);
    knobs.small("patience", &mut options.patience);
    let mut lot = options.growth == Growth::Lot;
    knobs.switch("lot", &mut lot);
    options.growth = if lot { Growth::Lot } else { Growth::Shares };
    Box::new(MPath::new(name, options, seed))
}
