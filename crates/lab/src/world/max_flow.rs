//! The most that sources could push through relays, where that is defined.

use super::actors::Actors;
use super::run_error::RunError;
use crate::setup::{Carrier, Demand, Setup};
use byway_control::wang::max_flow::largest_sum;
use byway_sim::topology::Graph;
use std::collections::BTreeMap;

/// The largest possible sum of the transfers' goodput, in bits of payload per second. The limits
/// are each transfer's offered rate and the rates of the lines from relays to the destination.
/// `None` if other limits may exist, such as several destinations.
pub(super) fn optimum(setup: &Setup, graph: &Graph, actors: &Actors) -> Result<Option<f64>, RunError> {
    let (mut demands, mut capacities, mut choices) = (Vec::new(), Vec::new(), Vec::new());
    let mut relays: BTreeMap<&str, usize> = BTreeMap::new();
    let mut destination = None;
    for (transfer, moving) in setup.transfers.iter().zip(&actors.transfers) {
        let Demand::Rate(steps) = &transfer.demand else { return Ok(None) };
        let to = moving.placed.to.as_str();
        if *destination.get_or_insert(to) != to || moving.placed.ways.iter().any(Option::is_none) {
            return Ok(None);
        }
        let wants = steps.last().map_or(0, |step| step.1) as f64;
        let part = |rate: Option<u64>| rate.map_or(f64::INFINITY, |rate| payload(rate, &transfer.carrier));
        let mut chosen = Vec::new();
        for node in moving.placed.ways.iter().flatten() {
            if part(graph.bottleneck(&graph.way(&moving.placed.from, node, &[])?)) < wants {
                return Ok(None);
            }
            let onward = part(graph.bottleneck(&graph.way(node, to, &[])?));
            chosen.push(*relays.entry(node).or_insert_with(|| {
                capacities.push(onward);
                capacities.len() - 1
            }));
        }
        demands.push(wants);
        choices.push(chosen);
    }
    Ok(destination.map(|_| largest_sum(&demands, &capacities, &choices)))
}

/// Returns the payload part of a line's rate.
fn payload(rate: u64, carrier: &Carrier) -> f64 {
    let (payload, wire) = match carrier {
        Carrier::Tcp(tcp) | Carrier::TcpRelays(tcp) | Carrier::Gateways(tcp, _) => (tcp.mss, tcp.mss + 52),
        // A session's packets over a relay. They are 1 500 bytes less the headers of IP, UDP,
        // relay, session and data.
        Carrier::Session(_) | Carrier::Exchange(_) => (1_380, 1_500),
    };
    rate as f64 * f64::from(payload) / f64::from(wire)
}
