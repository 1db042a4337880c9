//! Jitter where hosts enter the network. Drop-tail queues can lock flows to each other, so that one
//! of them loses every time. Real hosts and their lines vary enough to prevent it.

use super::layout::PlacedTransfer;
use super::run_error::RunError;
use crate::setup::Setup;
use byway_sim::topology::Graph;

/// Adds jitter to the first link behind every end of a transfer or of requests: at most
/// `setup.access_jitter` of that link's delay. A link that has more keeps it, and packets stay in
/// order.
pub(super) fn add(graph: &mut Graph, setup: &Setup, seed: u64) -> Result<(), RunError> {
    if setup.access_jitter == 0.0 {
        return Ok(());
    }
    for transfer in &setup.transfers {
        let placed = PlacedTransfer::new(transfer, graph, seed)?;
        between(graph, &placed.from, &placed.to, setup.access_jitter)?;
    }
    for requests in &setup.requests {
        between(graph, &requests.client, &requests.server, setup.access_jitter)?;
    }
    Ok(())
}

fn between(graph: &mut Graph, a: &str, b: &str, share: f64) -> Result<(), RunError> {
    let there = graph.way(a, b, &[])?;
    let back: Vec<_> = there.iter().rev().map(|direction| direction.reversed()).collect();
    for first in [there.first(), back.first()].into_iter().flatten() {
        let (from, to) = graph.ends(*first);
        let (from, to) = (from.to_owned(), to.to_owned());
        let config = graph.config_mut(&from, &to)?;
        config.jitter = config.jitter.max(config.delay.mul_f64(share));
    }
    Ok(())
}
