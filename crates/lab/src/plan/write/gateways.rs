//! `[[gateways]]`: what a plan can say of them.

use super::traffic::congestion;
use super::values::{Keys, list, node_ways, number, size, text, time};
use crate::setup::Gateways;
use byway_gateway::machine::Settings;
use byway_gateway::path_selection::Policy;
use byway_gateway::receive_window;
use byway_gateway::reorder::Timer;

pub(super) fn gateways(gateways: &Gateways) -> Keys {
    let mut keys = Keys::default();
    keys.set("name", text(&gateways.name));
    keys.set("between", list([text(&gateways.between.0), text(&gateways.between.1)]));
    keys.set("paths", list(node_ways(&gateways.paths)));
    congestion(&gateways.congestion, &mut keys);
    settings(&gateways.settings, &mut keys);
    keys
}

/// The keys of settings that a plan gives by name, and the names.
const fn named(settings: &Settings) -> [(&'static str, &'static str); 4] {
    [
        ("loss", settings.loss.name()),
        ("window", receive_window::name(settings.window)),
        ("relays", settings.policy.relays.name()),
        ("bundle", settings.bundle.name()),
    ]
}

fn settings(settings: &Settings, keys: &mut Keys) {
    let mut usual = Settings::default();
    let headroom = settings.headroom_percent;
    keys.set_if(headroom != usual.headroom_percent, "headroom", || text(&format!("{headroom} %")));
    if settings.policy.over_window {
        keys.set("choice", text("literal"));
        usual.policy = Policy::LITERAL;
    }
    for ((key, name), (_, usual)) in named(settings).into_iter().zip(named(&usual)) {
        keys.set_if(name != usual, key, || text(name));
    }
    keys.set_if(settings.timer != usual.timer, "timer", || timer(settings.timer));
    keys.set_if(settings.cache.is_some(), "cache", || "true".to_owned());
    let entry = settings.entry.flow_bytes;
    keys.set_if(entry != usual.entry.flow_bytes, "entry", || size(entry as u64));
}

fn timer(timer: Timer) -> String {
    let mut keys = Keys::default();
    keys.set("rule", text(timer.name()));
    match timer {
        Timer::Harp { rho } | Timer::HarpRelative { rho } => keys.set("rho", number(rho)),
        Timer::Hir { cap } | Timer::HirRelative { cap } | Timer::Peak { cap } => keys.set("cap", time(cap)),
    }
    keys.table()
}
