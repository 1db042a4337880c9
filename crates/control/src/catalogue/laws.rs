//! Makes the controllers of papers and of others, which only a build with the feature `laws` has.

use super::make::{each, mpath_with, reno, start};
use super::request::{ControllerRequest, SenderKind};
use crate::bmc::{Bmc, BmcOptions};
use crate::bundle::{Coupled, Law};
use crate::mpath::MPathOptions;
use crate::papers::harp::{Coupling, DelayRule, Harp, HarpOptions};
use crate::rivals::{bbr, bbr3, cubic, ledbat, ledbat_pp, lia, nice, proteus, tcp_lp};
use crate::{Controller, wang};
use alloc::borrow::ToOwned as _;
use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

pub(super) fn bbr(request: &mut ControllerRequest<'_>) -> Box<dyn Controller> {
    let (initial, _) = start(request, (cubic::CubicOptions::BYWAY.initial, 0.0));
    let seed = request.seed;
    each(request.name, move |opened| bbr::Bbr::new(opened, initial, seed))
}

pub(super) fn bbr3(request: &mut ControllerRequest<'_>) -> Box<dyn Controller> {
    let (initial, _) = start(request, (cubic::CubicOptions::BYWAY.initial, 0.0));
    let seed = request.seed;
    each(request.name, move |opened| bbr3::Bbr3::new(opened, initial, seed))
}

pub(super) fn bmc(request: &mut ControllerRequest<'_>) -> Box<dyn Controller> {
    bmc_with(request, BmcOptions::RECOMMENDED)
}

pub(super) fn bmc_literal(request: &mut ControllerRequest<'_>) -> Box<dyn Controller> {
    bmc_with(request, BmcOptions::LITERAL)
}

pub(super) fn cubic(request: &mut ControllerRequest<'_>) -> Box<dyn Controller> {
    let mut options = cubic::CubicOptions::BYWAY;
    let mut hystart = matches!(request.sender, SenderKind::Linux { .. });
    let read = &mut request.options;
    read.switch("hystart", &mut hystart);
    if hystart {
        options.slow_start = cubic::SlowStart::HyStart;
    }
    read.number("c", &mut options.c, [0.0, 100.0]);
    read.part("beta", &mut options.beta);
    read.switch("fast_convergence", &mut options.fast_convergence);
    (options.initial, options.limit) = start(request, (options.initial, options.limit));
    each(request.name, move |opened| cubic::Cubic::with_options(opened, options))
}

pub(super) fn harp_adaptive(request: &mut ControllerRequest<'_>) -> Box<dyn Controller> {
    harp_with(request, HarpOptions::literal(Coupling::Adaptive))
}

pub(super) fn harp_independent(request: &mut ControllerRequest<'_>) -> Box<dyn Controller> {
    harp_with(request, HarpOptions::literal(Coupling::Independent))
}

pub(super) fn harp_joint(request: &mut ControllerRequest<'_>) -> Box<dyn Controller> {
    harp_with(request, HarpOptions::literal(Coupling::Joint))
}

pub(super) fn hir(request: &mut ControllerRequest<'_>) -> Box<dyn Controller> {
    harp_with(request, HarpOptions::averaged(true))
}

pub(super) fn hir_literal(request: &mut ControllerRequest<'_>) -> Box<dyn Controller> {
    harp_with(request, HarpOptions::averaged(false))
}

pub(super) fn ledbat(request: &mut ControllerRequest<'_>) -> Box<dyn Controller> {
    let (mut options, read) = (ledbat::LedbatOptions::RFC6817, &mut request.options);
    read.time("target_ms", &mut options.target);
    read.number("gain", &mut options.gain, [0.0, 100.0]);
    read.packets("initial", &mut options.initial);
    each(request.name, move |opened| ledbat::Ledbat::with_options(opened, options))
}

pub(super) fn ledbat_pp(request: &mut ControllerRequest<'_>) -> Box<dyn Controller> {
    let mut options = ledbat_pp::LedbatPpOptions::DRAFT;
    request.options.time("target_ms", &mut options.target);
    each(request.name, move |opened| ledbat_pp::LedbatPp::with_options(opened, options))
}

pub(super) fn lia(request: &mut ControllerRequest<'_>) -> Box<dyn Controller> {
    coupled(request, lia::Lia)
}

pub(super) fn mpath_literal(request: &mut ControllerRequest<'_>) -> Box<dyn Controller> {
    mpath_with(request, MPathOptions::LITERAL)
}

pub(super) fn nice(request: &mut ControllerRequest<'_>) -> Box<dyn Controller> {
    let (mut options, read) = (nice::NiceOptions::RECOMMENDED, &mut request.options);
    read.part("threshold", &mut options.threshold);
    read.part("fraction", &mut options.fraction);
    read.time("least_range_ms", &mut options.least_range);
    read.packets("initial", &mut options.initial);
    each(request.name, move |opened| nice::Nice::with_options(opened, options))
}

pub(super) fn proteus_s(request: &mut ControllerRequest<'_>) -> Box<dyn Controller> {
    let mut options = proteus::ProteusOptions::SCAVENGER;
    (options.initial, _) = start(request, (options.initial, 0.0));
    let (seed, read) = (request.seed, &mut request.options);
    read.number("deviation", &mut options.utility.deviation, [0.0, 1e6]);
    read.number("gradient", &mut options.utility.gradient, [0.0, 1e6]);
    read.number("least_mbit", &mut options.least_mbit, [1e-3, 1e3]);
    each(request.name, move |opened| proteus::Proteus::new(opened, options, seed))
}

pub(super) fn tcp_lp(request: &mut ControllerRequest<'_>) -> Box<dyn Controller> {
    let (mut options, read) = (tcp_lp::TcpLpOptions::RECOMMENDED, &mut request.options);
    read.part("threshold", &mut options.threshold);
    read.part("smoothing", &mut options.smoothing);
    read.time("least_range_ms", &mut options.least_range);
    (options.initial, options.limit) = start(request, (options.initial, options.limit));
    each(request.name, move |opened| tcp_lp::TcpLp::with_options(opened, options))
}

pub(super) fn wang(request: &mut ControllerRequest<'_>) -> Box<dyn Controller> {
    let seed = request.seed;
    coupled(request, wang::Wang::new(seed))
}

fn coupled<L: Law + 'static>(request: &mut ControllerRequest<'_>, law: L) -> Box<dyn Controller> {
    let options = reno(request);
    Box::new(Coupled::with_options(request.name, law, options))
}

/// With `weight`, or `weight_1`, `weight_2` and so on, the weights of the paths in turn are fixed.
fn bmc_with(request: &mut ControllerRequest<'_>, usual: BmcOptions) -> Box<dyn Controller> {
    let (mut options, read) = (usual, &mut request.options);
    read.part("hysteresis", &mut options.hysteresis);
    read.part("floor", &mut options.floor);
    let mut weights = Vec::new();
    for place in 0..=8 {
        let key = if place == 0 { "weight".to_owned() } else { format!("weight_{place}") };
        let mut weight = 0.0;
        read.part(&key, &mut weight);
        if weight > 0.0 {
            weights.push(weight);
        }
    }
    let law = if weights.is_empty() { Bmc::new(options) } else { Bmc::fixed(&weights) };
    coupled(request, law)
}

fn harp_with(request: &mut ControllerRequest<'_>, usual: HarpOptions) -> Box<dyn Controller> {
    let (mut options, read) = (usual, &mut request.options);
    read.part("alpha", &mut options.alpha);
    read.part("beta", &mut options.beta);
    read.packets("initial", &mut options.initial);
    read.packets("floor", &mut options.floor);
    read.switch("choke", &mut options.choke);
    match &mut options.delay {
        DelayRule::Relative { delta, fraction, least_range, range } => {
            read.part("delta", delta);
            read.part("fraction", fraction);
            read.time("least_range_ms", least_range);
            let mut given = range.unwrap_or_default();
            read.time("range_ms", &mut given);
            *range = (!given.is_zero()).then_some(given);
        }
        DelayRule::Averaged { delta, packets, capped, exponential, least_range } => {
            read.part("delta", delta);
            read.small("packets", packets);
            read.switch("capped", capped);
            read.switch("exponential", exponential);
            read.time("least_range_ms", least_range);
        }
    }
    Box::new(Harp::new(request.name, options))
}
