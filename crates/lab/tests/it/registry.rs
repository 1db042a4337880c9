//! Senders that ask a registry in their network.

use crate::world::{both, congestion, go, goodput, node, refused, seconds, session, setup};
use byway_lab::setup::{Change, Changed, LendLimit, PathChoice, RegistrySetup, Setup};
use byway_lab::world::RunError;

/// S reaches D over a direct line of 10 Mbit/s, and over three detours of 10 Mbit/s each, through
/// R1, R2 and R3. A registry at G knows relays at R1, R2, R3 and S.
fn asking(paths: &[PathChoice]) -> Setup {
    let mut lines = [both("S", "D", 10, 10), both("S", "G", 100, 20)].concat();
    for relay in ["R1", "R2", "R3"] {
        lines.extend(both("S", relay, 10, 5));
        lines.extend(both(relay, "D", 100, 5));
    }
    let relays = vec![PathChoice::Any("R".into(), 3), PathChoice::Through("S".into())];
    Setup {
        registry: Some(RegistrySetup { at: "G".into(), relays, lend: None }),
        transfers: vec![session("bulk", "S", "D", paths, "background")],
        ..setup(40.0, lines)
    }
}

const BY_REGISTRY: [PathChoice; 2] = [PathChoice::Direct, PathChoice::Registry];

#[test]
fn a_sender_uses_the_relays_that_a_registry_names() {
    let record = go(&asking(&BY_REGISTRY), 3);
    let bulk = &record.transfers[0];
    let mut names: Vec<&str> = bulk.paths.iter().map(|path| path.name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["R1", "R2", "R3", "direct"], "a relay at one's own host is no detour");
    assert!(bulk.paths.iter().all(|path| path.acked.len() == bulk.received.len()));
    let known =
        [vec![PathChoice::Direct], ["R1", "R2", "R3"].map(|it| PathChoice::Through(it.into())).to_vec()]
            .concat();
    let told = go(&Setup { registry: None, ..asking(&known) }, 3);
    let (asked, told) = (goodput(&record, bulk, 20.0, 40.0), goodput(&told, &told.transfers[0], 20.0, 40.0));
    assert!(asked > 0.97 * told, "{asked} beside {told} with the relays in the plan");
    assert_eq!(go(&asking(&BY_REGISTRY), 3).trace, record.trace);
}

#[test]
fn without_the_registry_a_transfer_goes_on_and_finds_relays_once_it_is_back() {
    let cut = |at: f64, up: bool| {
        let ends = [("S", "G"), ("G", "S")];
        ends.map(|(from, to)| Change {
            at: seconds(at),
            what: Changed::Link {
                from: from.into(),
                to: to.into(),
                rate: None,
                delay: None,
                loss: None,
                up: Some(up),
                mtu: None,
            },
        })
    };
    let changes = [cut(0.0, false), cut(50.0, true)].concat();
    let mut setup = Setup { changes, ..asking(&BY_REGISTRY) };
    setup.duration = seconds(120.0);
    setup.transfers[0].congestion = congestion("mpath");
    let record = go(&setup, 5);
    let bulk = &record.transfers[0];
    let (without, with) = (goodput(&record, bulk, 20.0, 50.0), goodput(&record, bulk, 90.0, 120.0));
    assert!(without > 8.0 && with > 1.5 * without, "{without} and then {with}");
}

#[test]
fn two_senders_share_relays_that_run_at_hosts() {
    let mut setup = asking(&BY_REGISTRY);
    let mut other = session("other", "R1", "D", &BY_REGISTRY, "background");
    other.to = node("S");
    setup.transfers.push(other);
    let record = go(&setup, 7);
    let names = |transfer: usize| record.transfers[transfer].paths.iter().map(|path| path.name.as_str());
    assert!(names(1).all(|name| name != "R1" && name != "S") && names(1).count() > 1);
    assert!(names(0).any(|name| name == "R1"), "R1 sends, and relays");
}

/// S and D with a direct line of 4 Mbit/s, and a host H behind a line of its own that relays for
/// them.
fn lending(lend: Option<LendLimit>, own: bool) -> Setup {
    let mut lines = [both("S", "A", 100, 1), both("D", "B", 100, 1), both("A", "B", 4, 2)].concat();
    for (one, other, rate) in [("H", "C", 10), ("A", "C", 100), ("B", "C", 100), ("A", "G", 100)] {
        lines.extend(both(one, other, rate, 2));
    }
    let relays = vec![PathChoice::Through("H".into())];
    let mut transfers = vec![session("bulk", "S", "D", &BY_REGISTRY, "mpath")];
    if own {
        transfers.push(session("own", "H", "B", &[PathChoice::Direct], "mpath"));
    }
    Setup { registry: Some(RegistrySetup { at: "G".into(), relays, lend }), transfers, ..setup(40.0, lines) }
}

#[test]
fn a_host_that_lends_its_line_does_so_behind_its_own_traffic() {
    let by_host = |setup: &Setup| {
        let record = go(setup, 3);
        let path = record.transfers[0].paths.iter().find(|path| path.name == "H");
        let late = path.map(|path| path.acked[path.acked.len() - 1] - path.acked[path.acked.len() / 2]);
        let own = record.transfers.get(1).map(|own| goodput(&record, own, 20.0, 40.0));
        (late.unwrap_or_default() as f64 * 8e-6 / 20.0, own)
    };
    let (idle, _) = by_host(&lending(Some(LendLimit::Climb), false));
    assert!(idle > 3.0, "an idle host lent {idle} Mbit/s of 10");
    let (capped, _) = by_host(&lending(Some(LendLimit::Rate(1_000_000)), false));
    assert!(capped > 0.3 && capped < 1.05, "with 1 Mbit/s it lent {capped}");
    let (busy, own) = by_host(&lending(Some(LendLimit::Climb), true));
    let (_, alone) = by_host(&Setup { registry: None, ..direct_only(lending(None, true)) });
    let (own, alone) = (own.unwrap_or_default(), alone.unwrap_or_default());
    assert!(own > 0.93 * alone, "{own} beside a stranger's {busy}, alone {alone}");
    let (taken, beside) = by_host(&lending(None, true));
    assert!(taken > busy, "a relay that does not lend carries {taken}, one that does {busy}");
    assert!(beside.unwrap_or_default() < own, "and its host has less: {beside:?}");
}

/// The same without the stranger's detour.
fn direct_only(mut setup: Setup) -> Setup {
    setup.transfers[0].paths = vec![PathChoice::Direct];
    setup
}

#[test]
fn a_host_with_two_lines_cannot_lend() {
    let mut setup = lending(Some(LendLimit::Climb), false);
    setup.network.links.extend(both("H", "A", 10, 2));
    assert_eq!(refused(&setup), RunError::Lines { node: "H".into() });
}
