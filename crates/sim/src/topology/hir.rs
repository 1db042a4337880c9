//! The network of the experiments in the paper on HIR (section 6), which sends TCP flows between
//! two gateways over two or three relays. Round trips of 20, 30 and 40 ms and a queue of 50 packets
//! are reconstructed.
//!
//! | experiment | rate of a path in the paper |
//! |---|---|
//! | 1, set 1 | 200 KB/s (1.6 Mbit/s) |
//! | 1, sets 2 and 3 | 500 KB/s (4 Mbit/s) |
//! | 2 | 100 KB/s (0.8 Mbit/s) |
//! | 3 | 1.25 MB/s (10 Mbit/s) |

use super::dumbbell::{BundlePath, bundle};
use super::error::TopologyError;
use super::graph::Graph;
use super::parameters::{Parameter, Values, line, millis, parameter};
use crate::pipe::PipeConfig;

pub(super) const HIR_PARAMETERS: &[Parameter] = &[
    parameter("relays", 3.0, [1.0, 1_000.0], "number of relays between the gateways"),
    parameter("hosts", 2.0, [1.0, 10_000.0], "number of hosts behind each gateway"),
    parameter("mbit", 1.6, [0.001, 100_000.0], "Mbit/s of each path, behind its relay (paper, table 3)"),
    parameter("ms", 10.0, [0.0, 1e4], "one-way delay of the first path, ms (reconstructed)"),
    parameter("step_ms", 5.0, [0.0, 1e4], "by how much each further path is longer, ms (reconstructed)"),
    parameter("queue", 50.0, [0.0, 1e6], "packets that wait behind each relay (reconstructed)"),
];

/// Paths through relays between two gateways: a [`bundle`] without a direct path. Experiment 3 of
/// the paper on HIR has other traffic on the lines behind the relays. Senders `F1, F2, ...` at the
/// relays `T1, T2, ...` send it to the receiver Q.
pub(super) fn hir(values: &Values) -> Result<Graph, TopologyError> {
    let access = line(100.0, 0.0);
    let relays = values.count("relays");
    let path = |number: usize| {
        let half = (values.get("ms") + values.get("step_ms") * number as f64) / 2.0;
        let second = PipeConfig::new(values.mbit("mbit"), millis(half)).queue(values.count("queue"));
        BundlePath { first: line(100.0, half), second }
    };
    let mut graph = bundle(values.count("hosts"), &access, None, &(0..relays).map(path).collect::<Vec<_>>())?;
    graph.join("X", "Q", &access)?;
    for relay in 1..=relays {
        graph.join(&format!("F{relay}"), &format!("T{relay}"), &access)?;
    }
    Ok(graph)
}
