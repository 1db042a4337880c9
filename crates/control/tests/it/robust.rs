//! Whatever happens in whatever order: every controller keeps its contract.

use byway_control::{by_name, contract_check, controller_names};

/// How many times it happens to each controller.
const SEED_COUNT: u64 = 400;

#[test]
fn any_sequence_of_events_leaves_a_bundle_that_moves() {
    for name in controller_names() {
        for seed in 0..SEED_COUNT {
            let made = |seed| by_name(name, seed).unwrap();
            contract_check::check(made, seed).unwrap_or_else(|why| panic!("{name}: {why}"));
        }
    }
}

#[test]
fn a_relayed_path_stays_relayed_when_its_route_changes() {
    for name in controller_names() {
        let made = |seed| by_name(name, seed).unwrap();
        contract_check::check_route_change(made).unwrap_or_else(|why| panic!("{name}: {why}"));
    }
}
