//! Writes a variant as a plan that reads back as the same [`Setup`].

mod gateways;
mod network;
mod traffic;
mod values;

use crate::setup::{Attack, RegistrySetup, Setup};
use values::{Keys, list, node_ways, number, rate, size, text, time};

/// A plan with one variant: `setup`. Its labels of axes are left out, since the plan has no sweep.
///
/// Times that are no whole seconds are exact up to a week, rates up to 10 Tbit/s, and sizes up
/// to 1 PB. In a title and in the names of nodes `$` would stand for an axis of a sweep; the title
/// is written without it.
#[must_use]
pub fn plan_text(title: &str, setup: &Setup) -> String {
    let mut keys = Keys::default();
    keys.set("title", text(&title.replace('$', "")));
    keys.set("duration", time(setup.duration));
    keys.set("cut", time(setup.cut));
    keys.set("sample", time(setup.sample));
    keys.set("memory", size(setup.memory));
    keys.set_if(setup.until_done, "until_done", || "true".to_owned());
    keys.set_if(setup.access_jitter != 0.0, "access_jitter", || number(setup.access_jitter));
    keys.set_if(setup.early_wakes != 0.0, "early_wakes", || number(setup.early_wakes));
    let mut plan = keys.lines();
    let mut section = |heading: &str, keys: &Keys| {
        plan += &format!("\n{heading}\n{}", keys.lines());
    };
    if setup.attack != Attack::default() {
        section("[attack]", &attack(setup.attack));
    }
    if let Some((name, parameters)) = &setup.network.named {
        section("[topology]", &network::topology(name, parameters));
    }
    if let Some(registry) = &setup.registry {
        section("[registry]", &self::registry(registry));
    }
    for keys in network::links(&setup.network.links) {
        section("[[link]]", &keys);
    }
    for keys in network::changes(&setup.changes) {
        section("[[change]]", &keys);
    }
    for pair in &setup.gateways {
        section("[[gateways]]", &gateways::gateways(pair));
    }
    for transfer in &setup.transfers {
        section("[[transfer]]", &traffic::transfer(transfer));
        if let Some(options) = traffic::exchange(&transfer.carrier) {
            section("[transfer.exchange]", &options);
        }
    }
    for requests in &setup.requests {
        section("[[requests]]", &traffic::requests(requests));
    }
    for cross in &setup.cross {
        section("[[cross]]", &traffic::cross(cross));
    }
    plan
}

fn attack(attack: Attack) -> Keys {
    let mut keys = Keys::default();
    keys.set("replayed", number(attack.replayed));
    keys.set("forged", number(attack.forged));
    keys
}

fn registry(registry: &RegistrySetup) -> Keys {
    use crate::setup::LendLimit;
    let mut keys = Keys::default();
    keys.set("at", text(&registry.at));
    keys.set("relays", list(node_ways(&registry.relays)));
    match registry.lend {
        None => {}
        Some(LendLimit::Climb) => keys.set("lend", text("climb")),
        Some(LendLimit::Rate(bits)) => keys.set("lend", rate(bits)),
    }
    keys
}
