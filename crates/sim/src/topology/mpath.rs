//! The networks of figures 7, 10 and 13 in the paper on mPath, which uses a direct path and paths
//! through proxies at once.
//!
//! | what | value | source |
//! |---|---|---|
//! | core link (slowest of the direct path) | 10 Mbit/s | paper |
//! | sender's access link | 20 Mbit/s; figure 10: 6 | paper; figure 10: reconstructed |
//! | path of proxy 2 | 15 Mbit/s | two cross flows leave 1 Mbit/s (reconstructed) |
//! | path of proxy 3 | 5 Mbit/s | paper |
//! | cross flows of figure 13 | 6, 8 and 10 Mbit/s | paper; third: reconstructed |
//! | round trip, direct | 100 ms | reconstructed |
//! | round trip by proxies 1, 2, 3 | 110, 120, 130 ms | reconstructed |
//! | queue before a core link | 1 packet | gives TCP alone the paper's 7.21 Mbit/s |
//! | queue before the access link | 50 packets; figure 10: 1 | reconstructed |

use super::error::TopologyError;
use super::graph::Graph;
use super::parameters::{Parameter, Values, line, millis, parameter};
use crate::pipe::PipeConfig;

const QUEUE_PARAMETER: Parameter =
    parameter("queue", 1.0, [0.0, 1e6], "packets that wait before a core link (by TCP alone: 7.21 of 10)");
const RTT_PARAMETER: Parameter =
    parameter("rtt_ms", 100.0, [4.0, 1e4], "direct round trip, ms (reconstructed)");

macro_rules! figure_7_and {
    ($($more:expr),*) => { &[
        parameter("access_mbit", 20.0, [0.001, 1e5], "Mbit/s of the sender's access link (paper)"),
        parameter("core_mbit", 10.0, [0.001, 1e5], "Mbit/s of the core link, direct and proxy 1 (paper)"),
        parameter("proxy2_mbit", 15.0, [0.001, 1e5], "Mbit/s of proxy 2's path (reconstructed)"),
        parameter("proxy3_mbit", 5.0, [0.001, 1e5], "Mbit/s of proxy 3's path (paper)"),
        RTT_PARAMETER,
        QUEUE_PARAMETER,
        parameter("access_queue", 50.0, [0.0, 1e6], "packets that wait before the access link (reconstructed)"),
        $($more),*
    ] };
}

pub(super) const FIG7_PARAMETERS: &[Parameter] = figure_7_and!();

pub(super) const FIG13_PARAMETERS: &[Parameter] = figure_7_and!(
    parameter("cross1_mbit", 6.0, [0.001, 1e5], "Mbit/s of the access link of A1 (paper)"),
    parameter("cross2_mbit", 8.0, [0.001, 1e5], "Mbit/s of the access link of A2 (paper)"),
    parameter("cross3_mbit", 10.0, [0.001, 1e5], "Mbit/s of the access link of A3 (reconstructed)")
);

pub(super) const FIG10_PARAMETERS: &[Parameter] = &[
    parameter("access_mbit", 6.0, [0.001, 1e5], "Mbit/s of the sender's access link (reconstructed)"),
    RTT_PARAMETER,
    parameter("queue", 1.0, [0.0, 1e6], "packets that wait before the access link (by TCP alone)"),
];

/// Milliseconds of the access links on both sides, together.
const ACCESS_MS: f64 = 2.0;

/// Figure 7 of the mPath paper: sender S, receiver D, proxies P1 to P3, routers R1 to R4. The
/// direct path and the path through P1 share the core link from R1 to R2. The picture gives rates
/// in Mbit/s.
///
/// ```text
///            P1
///            │
///  S ──20── R1 ════════10════════ R2 ─── D
///            ├─ P2 ─ R3 ══15══ R4 ─┤
///            └─ P3 ═══════5════════┘
/// ```
pub(super) fn fig7(values: &Values) -> Result<Graph, TopologyError> {
    let core =
        |rate: &str, ms: f64| PipeConfig::new(values.mbit(rate), millis(ms)).queue(values.count("queue"));
    // One-way delays from R1 to R2: `direct` on the core link; 5, 10 and 15 ms more through P1, P2
    // and P3. The shortest routes from P2 and P3 to R2 do not lead back to R1.
    let direct = values.get("rtt_ms") / 2.0 - ACCESS_MS;
    let mut graph = Graph::new();
    let access = PipeConfig::new(values.mbit("access_mbit"), millis(ACCESS_MS / 2.0));
    graph.join("S", "R1", &access.queue(values.count("access_queue")))?;
    graph.join("R2", "D", &line(100.0, ACCESS_MS / 2.0))?;
    graph.join("R1", "R2", &core("core_mbit", direct))?;
    graph.join("R1", "P1", &line(100.0, 2.5))?;
    graph.join("R1", "P2", &line(100.0, 6.0))?;
    graph.join("P2", "R3", &line(100.0, 2.0))?;
    graph.join("R3", "R4", &core("proxy2_mbit", direct))?;
    graph.join("R4", "R2", &line(100.0, 2.0))?;
    graph.join("R1", "P3", &line(100.0, 9.0))?;
    graph.join("P3", "R2", &core("proxy3_mbit", direct + 6.0))?;
    Ok(graph)
}

/// Figure 13 of the mPath paper: figure 7 and six hosts. A1, A2 and A3 at router R3 send to B1, B2
/// and B3 at R4. Their traffic crosses the link from R3 to R4, which is the bottleneck of proxy
/// P2's path.
pub(super) fn fig13(values: &Values) -> Result<Graph, TopologyError> {
    let mut graph = fig7(values)?;
    for cross in 1..=3 {
        let rate = values.get(&format!("cross{cross}_mbit"));
        graph.join(&format!("A{cross}"), "R3", &line(rate, 1.0).queue(values.count("queue")))?;
        graph.join("R4", &format!("B{cross}"), &line(100.0, 1.0))?;
    }
    Ok(graph)
}

/// Figure 10: the access link of S is the only bottleneck, and the proxy P of no use.
///
/// ```text
///  S ──6── R1 ─────────── R2 ─── D
///           └───── P ──────┘
/// ```
pub(super) fn fig10(values: &Values) -> Result<Graph, TopologyError> {
    let direct = values.get("rtt_ms") / 2.0 - ACCESS_MS;
    let mut graph = Graph::new();
    let access = PipeConfig::new(values.mbit("access_mbit"), millis(ACCESS_MS / 2.0));
    graph.join("S", "R1", &access.queue(values.count("queue")))?;
    graph.join("R2", "D", &line(100.0, ACCESS_MS / 2.0))?;
    graph.join("R1", "R2", &line(100.0, direct))?;
    graph.join("R1", "P", &line(100.0, 2.5))?;
    graph.join("P", "R2", &line(100.0, direct + 2.5))?;
    Ok(graph)
}
