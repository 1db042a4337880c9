//! The plainest networks: a dumbbell, and a bundle of paths side by side.

use super::error::TopologyError;
use super::graph::Graph;
use crate::pipe::PipeConfig;

/// Hosts on two sides of one bottleneck. The nodes are `l1` to `l{left}`, `west`, `east`, and `r1`
/// to `r{right}`.
///
/// ```text
/// l1 ─┐                          ┌─ r1
/// l2 ─┼─ west ══bottleneck══ east ┼─ r2
/// …  ─┘                          └─ …
/// ```
///
/// # Errors
/// [`TopologyError::ZeroRate`].
pub fn dumbbell(
    left: usize,
    right: usize,
    access: &PipeConfig,
    bottleneck: &PipeConfig,
) -> Result<Graph, TopologyError> {
    let mut graph = Graph::new();
    graph.join("west", "east", bottleneck)?;
    for host in 1..=left {
        graph.join(&format!("l{host}"), "west", access)?;
    }
    for host in 1..=right {
        graph.join("east", &format!("r{host}"), access)?;
    }
    Ok(graph)
}

/// A path of a [`bundle`].
#[derive(Clone, Debug, PartialEq)]
pub struct BundlePath {
    /// The line from the entry to the relay, and back.
    pub first: PipeConfig,
    /// The line from the relay to the exit, and back.
    pub second: PipeConfig,
}

/// `hosts` senders S1, S2, ... at the entry E, and as many receivers R1, R2, ... at the exit X.
/// From E to X there is a path through each relay T1, T2, ... and, with `direct`, a direct path.
///
/// ```text
///  S1 ─┐   ┌─first─ T1 ─second─┐   ┌─ R1
///      ├─ E ───────direct─────── X ─┤
///  S2 ─┘   └─first─ T2 ─second─┘   └─ R2
/// ```
///
/// Each of these paths' links costs 1 in routing, whatever its delay. So the route from E to T1 is
/// the link between them, even if a detour through T2 has less delay.
///
/// # Errors
/// [`TopologyError::ZeroRate`].
pub fn bundle(
    hosts: usize,
    access: &PipeConfig,
    direct: Option<&PipeConfig>,
    relayed: &[BundlePath],
) -> Result<Graph, TopologyError> {
    let mut graph = Graph::new();
    graph.add_node("E")?;
    graph.add_node("X")?;
    for host in 1..=hosts {
        graph.join(&format!("S{host}"), "E", access)?;
        graph.join("X", &format!("R{host}"), access)?;
    }
    if let Some(direct) = direct {
        graph.join("E", "X", direct)?;
        graph.set_cost("E", "X", 1)?;
    }
    for (number, path) in relayed.iter().enumerate() {
        let relay = format!("T{}", number + 1);
        graph.join("E", &relay, &path.first)?;
        graph.join(&relay, "X", &path.second)?;
        graph.set_cost("E", &relay, 1)?;
        graph.set_cost(&relay, "X", 1)?;
    }
    Ok(graph)
}
