//! The networks of the paper on BMC, a multipath congestion control: the dumbbell (section 4) and
//! figure 2. RED's parameters are reconstructed: thresholds at a quarter and three quarters of the
//! queue limit, the rest as in `RedConfig::new`.

use super::error::TopologyError;
use super::graph::Graph;
use super::parameters::{Parameter, Values, line, millis, parameter};
use crate::aqm::{Discipline, RedConfig};
use crate::pipe::PipeConfig;

const RED_PARAMETER: Parameter =
    parameter("red", 1.0, [0.0, 1.0], "number of RED queues before a bottleneck: 1, or 0 for drop-tail");

pub(super) const DUMBBELL_PARAMETERS: &[Parameter] = &[
    parameter("flows", 2.0, [1.0, 1_000.0], "number of WAIMD senders, and of TCP senders (paper: 2 to 64)"),
    parameter("mbit", 60.0, [0.001, 1e5], "Mbit/s of the bottleneck (paper)"),
    parameter("ms", 20.0, [0.0, 1e4], "one-way delay of the bottleneck, ms (paper)"),
    // The bandwidth-delay product of 60 Mbit/s and a round trip of 60 ms.
    parameter("queue", 300.0, [4.0, 1e6], "packets that wait before the bottleneck (reconstructed)"),
    RED_PARAMETER,
];

pub(super) const FIG2_PARAMETERS: &[Parameter] = &[
    parameter("first_mbit", 12.0, [0.001, 1e5], "Mbit/s of the first bottleneck (paper)"),
    parameter("second_mbit", 18.0, [0.001, 1e5], "Mbit/s of the second bottleneck (paper)"),
    parameter("ms", 20.0, [0.0, 1e4], "one-way delay of each bottleneck, ms (reconstructed)"),
    parameter("queue", 100.0, [4.0, 1e6], "packets that wait before each bottleneck (reconstructed)"),
    RED_PARAMETER,
];

/// The dumbbell. Senders `w1, w2, ...` (WAIMD, the paper's congestion control) send to
/// `x1, x2, ...`. TCP senders `t1, t2, ...` send to `u1, u2, ...`. The n-th receivers have lines of
/// n/3 ms, so that flows do not synchronise.
pub(super) fn dumbbell(values: &Values) -> Result<Graph, TopologyError> {
    let mut graph = Graph::new();
    graph.join("west", "east", &bottleneck(values, "mbit"))?;
    for flow in 1..=values.count("flows") {
        for (sender, receiver) in [("w", "x"), ("t", "u")] {
            graph.join(&format!("{sender}{flow}"), "west", &line(100.0, 2.0))?;
            graph.join("east", &format!("{receiver}{flow}"), &line(100.0, flow as f64 / 3.0))?;
        }
    }
    Ok(graph)
}

/// Figure 2 of the BMC paper. s2 sends to d2 over two paths: the default path through routers A and
/// B, and a path through routers C and E. All delays are equal.
///
/// ```text
///  s1 ──── A ══12══ B ──── d1
///      ┌───┘        └───┐
///  s2 ─┤                ├─ d2
///      └───┐        ┌───┘
///  s3 ──── C ══18══ E ──── d3
/// ```
///
/// The names A, B, C and E are not from the paper.
pub(super) fn fig2(values: &Values) -> Result<Graph, TopologyError> {
    let access = line(100.0, 1.0);
    let mut graph = Graph::new();
    for (rate, [a, b], [sender, receiver]) in
        [("first_mbit", ["A", "B"], ["s1", "d1"]), ("second_mbit", ["C", "E"], ["s3", "d3"])]
    {
        graph.join(a, b, &bottleneck(values, rate))?;
        for sender in [sender, "s2"] {
            graph.join(sender, a, &access)?;
        }
        for receiver in [receiver, "d2"] {
            graph.join(b, receiver, &access)?;
        }
    }
    Ok(graph)
}

fn bottleneck(values: &Values, rate: &str) -> PipeConfig {
    let limit = values.get("queue");
    let pipe = PipeConfig::new(values.mbit(rate), millis(values.get("ms"))).queue(values.count("queue"));
    if values.get("red") > 0.0 {
        pipe.discipline(Discipline::Red(RedConfig::new(limit / 4.0, limit * 3.0 / 4.0)))
    } else {
        pipe
    }
}
