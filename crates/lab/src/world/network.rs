//! The network of a variant: a named topology, what the plan says otherwise, and what changes
//! during the run.

use super::run_error::RunError;
use crate::setup::{Changed, Network, Setup};
use byway_sim::PipeConfig;
use byway_sim::pipe::{Change, Step};
use byway_sim::topology::{Graph, Parameters, named};
use byway_wire::Instant;
use std::collections::BTreeMap;

/// Makes the network of `setup`, with the times at which its links change. Some topologies have
/// random parts, which `seed` decides.
///
/// # Errors
/// [`RunError::Network`] and [`RunError::OneWay`].
pub fn graph(setup: &Setup, seed: u64) -> Result<Graph, RunError> {
    let mut graph = match &setup.network.named {
        Some((name, values)) => {
            let mut parameters = Parameters::new(seed);
            for (key, value) in values {
                parameters.set(key, *value);
            }
            named(name, &parameters)?
        }
        None => Graph::new(),
    };
    add_lines(&mut graph, &setup.network)?;
    for change in &setup.changes {
        let Changed::Link { from, to, rate, delay, loss, up, mtu: _ } = &change.what else { continue };
        let at = Instant::ZERO + change.at;
        let pipe = graph.config_mut(from, to)?;
        let up = up.map(|up| if up { Change::Up } else { Change::Down });
        let changes =
            [rate.map(|rate| Change::Rate(Some(rate))), delay.map(Change::Delay), loss.map(Change::Loss), up];
        pipe.schedule.extend(changes.into_iter().flatten().map(|change| Step { at, change }));
    }
    Ok(graph)
}

/// Changes the lines that exist, and adds the others.
fn add_lines(graph: &mut Graph, network: &Network) -> Result<(), RunError> {
    // Both directions of a new line are needed before it can be added.
    let mut fresh: BTreeMap<(&str, &str), PipeConfig> = BTreeMap::new();
    for line in &network.links {
        let ends = (line.from.as_str(), line.to.as_str());
        if graph.direction(ends.0, ends.1).is_ok() {
            let pipe = graph.config_mut(ends.0, ends.1)?;
            *pipe = line.spec.over(pipe.clone());
            continue;
        }
        let before = fresh.remove(&ends).unwrap_or_default();
        fresh.insert(ends, line.spec.over(before));
    }
    while let Some(((from, to), there)) = fresh.pop_first() {
        let Some(back) = fresh.remove(&(to, from)) else {
            return Err(RunError::OneWay { from: from.to_owned(), to: to.to_owned() });
        };
        for node in [from, to] {
            if !graph.contains(node) {
                graph.add_node(node)?;
            }
        }
        graph.add_edge(from, to, there, back)?;
    }
    Ok(())
}
