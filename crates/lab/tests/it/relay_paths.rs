//! Sessions of the class `background` whose relays share lines with the direct path.

use crate::world::{both, go, goodput, seconds, session, setup};
use byway_lab::setup::{LinkSetup, LinkSpec, PathChoice, QueueLimit, Setup, Transfer};
use byway_wire::Duration;

const RELAYS: usize = 8;

/// The direct path, and one by each of eight relays.
fn all_paths() -> Vec<PathChoice> {
    let relays = (1..=RELAYS).map(|relay| PathChoice::Through(format!("P{relay}")));
    [PathChoice::Direct].into_iter().chain(relays).collect()
}

/// A link in both directions.
fn line(from: &str, to: &str, rate: u64, millis: u64, packets: usize) -> [LinkSetup; 2] {
    let spec = LinkSpec {
        rate: Some(rate),
        delay: Some(Duration::from_millis(millis)),
        queue: Some(QueueLimit::Packets(packets)),
        ..LinkSpec::default()
    };
    let link = |from: &str, to: &str| LinkSetup { from: from.into(), to: to.into(), spec: spec.clone() };
    [link(from, to), link(to, from)]
}

/// S reaches D over A and B. The relays have lines of their own to `hub`, which are no limit.
fn network(duration: f64, hub: &str, between: &[[LinkSetup; 2]]) -> Setup {
    let spurs = (1..=RELAYS).map(|relay| both(hub, &format!("P{relay}"), 100, 1));
    let links = between.iter().cloned().chain(spurs).flatten().collect();
    Setup { access_jitter: 0.01, ..setup(duration, links) }
}

#[test]
fn eight_relays_over_the_line_of_the_direct_path_do_not_empty_it() {
    let rate = |paths: Vec<PathChoice>| {
        let between = [
            line("S", "A", 10_000_000, 1, 40),
            line("A", "B", 50_000_000, 16, 100),
            line("B", "D", 10_000_000, 1, 40),
        ];
        let transfers = vec![session("bulk", "S", "D", &paths, "background")];
        let record = go(&Setup { transfers, ..network(60.0, "A", &between) }, 1);
        goodput(&record, &record.transfers[0], 20.0, 60.0)
    };
    let (alone, relays) = (rate(vec![PathChoice::Direct]), rate(all_paths()));
    assert!(relays > 0.9 * alone, "{relays} with relays, {alone} without, in Mbit/s");
}

/// Packets that a line of 1.5 Mbit/s drops in 20 s while eight transfers begin, over those that it
/// can carry.
fn dropped_share(paths: &[PathChoice]) -> f64 {
    let between = [
        line("S", "A", 10_000_000, 40, 200),
        line("A", "B", 1_500_000, 40, 20),
        line("B", "D", 10_000_000, 40, 200),
    ];
    let transfers = (1..=8)
        .map(|number| {
            let one = session(&format!("bulk{number}"), "S", "D", paths, "background");
            Transfer { start_jitter: seconds(5.0), ..one }
        })
        .collect();
    let record = go(&Setup { transfers, ..network(20.0, "B", &between) }, 1);
    let narrow = record.links.iter().find(|link| link.from == "A" && link.to == "B");
    let dropped = narrow.and_then(|link| link.dropped.last().copied()).expect("the narrow line");
    dropped as f64 / (1_500_000.0 * 20.0 / 12_000.0)
}

#[test]
fn transfers_that_begin_over_relays_do_not_flood_a_narrow_line() {
    let relays = dropped_share(&all_paths());
    assert!(relays < 1.8, "{relays} packets are dropped for each that the line can carry");
}
