//! Random worlds, each made from a seed, with transfers as the product's users have them and
//! troubles as networks and hosts have them. No invariant may break, and every transfer ends in
//! time, with exactly what was sent. Every tenth seed runs twice, and must give the same record.
//!
//! | module | what it holds |
//! |---|---|
//! | `network` | lines and relays |
//! | `traffic` | transfers, requests and cross traffic |
//! | `troubles` | what happens to lines, middleboxes, hosts and relays |
//! | `laws` | what must hold of a record |
//! | `pace` | how long a transfer may take |
//! | `kinds` | which kinds of world a world belongs to |
//! | `world_facts` | what a setup says of its exchanges and troubles |

mod draw;
mod kinds;
mod laws;
mod network;
mod pace;
mod traffic;
mod troubles;
mod world_facts;

use crate::record::Record;
use crate::runner::run_caught;
use crate::setup::{Attack, Carrier, Changed, LendLimit, Network, PathChoice, RegistrySetup, Setup};
use crate::world::RunError;
use byway_sim::Random;
use byway_wire::Duration;
use core::sync::atomic::AtomicBool;
pub use kinds::WorldKind;
use network::NetworkDraw;
use serde::Serialize;
use troubles::Troubles;
use world_facts::TROUBLE_END_SECONDS;

/// A world with unfinished transfers ends this many seconds after the last trouble.
const MAX_RUN_SECONDS: u64 = 1_200;

/// The oldest consent with which relays forward packets to a host (`byway_wire::relay`).
const MAX_CONSENT_AGE: Duration = Duration::from_secs(byway_wire::relay::CONSENT_LIFE);

/// A broken law, and the seed of the world in which it was broken.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// The seed: run it again with `byway lab fuzz --first SEED --seeds 1`.
    pub seed: u64,
    /// The violated invariant in one sentence.
    pub what: String,
}

/// Runs the world of `seed`, and judges it.
///
/// # Errors
/// The law that was broken.
pub fn judge(seed: u64) -> Result<Record, Finding> {
    let setup = setup(seed);
    let wrong = |what: String| Finding { seed, what };
    let run = |setup: &Setup| {
        run_caught(setup, seed, &AtomicBool::new(false))
            .map_err(wrong)?
            .map_err(|error: RunError| wrong(error.to_string()))
    };
    let record = run(&setup)?;
    laws::hold(&setup, &record).map_err(wrong)?;
    if let Some(alone) = laws::alone(&setup) {
        laws::requests_hardly_wait(&record, &run(&alone)?).map_err(wrong)?;
    }
    // Each tenth is done again: the same seed does the same.
    if seed.is_multiple_of(10) && run(&setup)? != record {
        return Err(wrong("the second run of this seed did something else".into()));
    }
    Ok(record)
}

/// The world of a seed.
#[must_use]
pub fn setup(seed: u64) -> Setup {
    let mut random = Random::component(seed, "a random world");
    let random = &mut random;
    let network = NetworkDraw::new(random);
    // One at least that lives as hosts do.
    let mut transfers = vec![traffic::exchange(0, &network, random)];
    for number in 1..1 + random.below(3) {
        transfers.push(traffic::any(number, &network, random));
    }
    let registry = (!network.lenders().is_empty()).then(|| {
        transfers.push(traffic::by_registry(9, random));
        let relays = network.lenders().iter().map(|lender| PathChoice::Through(lender.clone())).collect();
        let lend = random.chance(0.7).then(|| match random.below(2) {
            0 => LendLimit::Climb,
            _ => LendLimit::Rate(draw::rate(random)),
        });
        RegistrySetup { at: if random.chance(0.5) { "A" } else { "B" }.to_owned(), relays, lend }
    });
    let requests = if random.chance(0.3) { vec![traffic::requests(random)] } else { Vec::new() };
    let cross = if random.chance(0.2) { vec![traffic::cross(random)] } else { Vec::new() };
    let is_needed = !(requests.is_empty() && cross.is_empty());
    let changes = Troubles::draw(&network, &transfers, is_needed, random);
    let last = changes.last().map_or(Duration::ZERO, |change| change.at);
    let trouble_end = last.max(Duration::from_secs(TROUBLE_END_SECONDS));
    let is_long = trouble_end > Duration::from_secs(MAX_RUN_SECONDS);
    let attacked = random.chance(0.12);
    let mut setup = Setup {
        registry,
        axes: Vec::new(),
        duration: trouble_end + Duration::from_secs(MAX_RUN_SECONDS),
        until_done: true,
        cut: Duration::ZERO,
        // Who sleeps for days is looked at less often.
        sample: Duration::from_secs(if is_long { 60 } else { 1 }),
        gateways: Vec::new(),
        network: Network { named: None, links: network.into_links() },
        access_jitter: 0.0,
        changes,
        transfers,
        requests,
        cross,
        early_wakes: if random.chance(0.1) { random.unit() * 0.3 } else { 0.0 },
        attack: if attacked {
            Attack { replayed: random.unit() * 0.05, forged: random.unit() * 0.05 }
        } else {
            Attack::default()
        },
        memory: 4_000_000_000,
    };
    keep_promises(&mut setup);
    setup
}

/// Removes changes from a world that no transfer could survive.
fn keep_promises(setup: &mut Setup) {
    if !pace::is_reachable(setup) {
        setup.changes.retain(|change| !matches!(change.what, Changed::Link { up: Some(_), .. }));
    }
    // A ticket's consents hold for a day. Who sleeps longer is reached directly.
    let is_long = setup.changes.iter().any(|change| change.at >= MAX_CONSENT_AGE);
    if is_long {
        setup.changes.retain(|change| !matches!(change.what, Changed::Link { up: Some(_), .. }));
    }
    // A relay's answer to a greeting bears no proof. The simulator has no UDP checksum, which keeps
    // damaged answers out. Who has no other way is cut off by one that is damaged or forged.
    let is_damaged = setup.network.links.iter().any(|link| link.spec.corruption.is_some());
    if is_long || is_damaged || setup.attack.forged > 0.0 {
        for transfer in &mut setup.transfers {
            let is_exchange = matches!(transfer.carrier, Carrier::Exchange(_));
            if is_exchange && !transfer.paths.contains(&PathChoice::Direct) {
                transfer.paths.insert(0, PathChoice::Direct);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_seed_is_a_world_and_another_is_another() {
        let text = |seed| format!("{:?}", setup(seed));
        assert_eq!(text(7), text(7));
        assert_ne!(text(7), text(8));
    }

    #[test]
    fn a_dozen_worlds_keep_the_laws() {
        for seed in 1..=12 {
            if let Err(finding) = judge(seed) {
                panic!("seed {}: {}", finding.seed, finding.what);
            }
        }
    }

    /// A kind of world that hardly occurs is hardly tested.
    #[test]
    fn every_kind_of_world_occurs() {
        const WORLDS: u64 = 1_000;
        let mut counts: BTreeMap<WorldKind, u64> = BTreeMap::new();
        for seed in 0..WORLDS {
            for kind in WorldKind::of(&setup(seed)) {
                *counts.entry(kind).or_default() += 1;
            }
        }
        for kind in WorldKind::ALL {
            let (count, least) = (counts.get(&kind).copied().unwrap_or_default(), kind.least_share());
            println!("{kind:?}: {:.1} %", 100.0 * count as f64 / WORLDS as f64);
            assert!(count as f64 >= least * WORLDS as f64, "{kind:?} occurs in {count} of {WORLDS} worlds");
        }
    }
}
