//! The networks of the paper on Harp, a multipath controller for background transfers. Names,
//! paths, and the rates of figure 3 are from the paper. Other rates, delays and queues of
//! bottlenecks are reconstructed, since the drawings are lost.

use super::error::TopologyError;
use super::graph::Graph;
use super::parameters::{Parameter, Values, dice, line, millis, parameter};
use super::random_graph::{LinkRanges, TransitStub, transit_stub, waxman};
use crate::pipe::PipeConfig;

const MBIT_PARAMETER: Parameter =
    parameter("mbit", 10.0, [0.001, 100_000.0], "Mbit/s of each bottleneck (reconstructed)");
const QUEUE_PARAMETER: Parameter =
    parameter("queue", 50.0, [0.0, 1e6], "packets that wait before a bottleneck (reconstructed)");
const ACCESS_PARAMETER: Parameter =
    parameter("access_mbit", 100.0, [0.001, 100_000.0], "Mbit/s of the other lines");

pub(super) const T1_PARAMETERS: &[Parameter] = &[
    MBIT_PARAMETER,
    parameter("ms", 10.0, [0.0, 1e4], "one-way delay of the direct bottleneck, ms (reconstructed)"),
    QUEUE_PARAMETER,
    parameter("factor", 1.0, [1.0, 100.0], "by how much the delay through T2 is longer (figure 7a)"),
    ACCESS_PARAMETER,
];

pub(super) const T2_PARAMETERS: &[Parameter] = &[MBIT_PARAMETER, QUEUE_PARAMETER, ACCESS_PARAMETER];
pub(super) const T4_PARAMETERS: &[Parameter] = &[MBIT_PARAMETER, QUEUE_PARAMETER, ACCESS_PARAMETER];

pub(super) const FIG3_PARAMETERS: &[Parameter] = &[
    parameter("direct_mbit", 10.0, [0.001, 100_000.0], "Mbit/s of the link of S1 alone (paper, figure 3)"),
    parameter("shared_mbit", 8.0, [0.001, 100_000.0], "Mbit/s of the link of both (paper, figure 3)"),
    QUEUE_PARAMETER,
    ACCESS_PARAMETER,
];

/// Harp's Topology1: two paths from T1 to T3, direct and through T2, each with one bottleneck. Web
/// servers W1 (at T1) and W2 (at T2) send over these bottlenecks to their clients C1 and C2 (at
/// T3).
///
/// ```text
///            W1          C1
///             │           │
///  S1 ────── T1 ═════════ T3 ────── R1
///             └─── T2 ═════┘
///              W2 ─┘      └─ C2
/// ```
pub(super) fn t1(values: &Values) -> Result<Graph, TopologyError> {
    let (rest, half) = (values.get("access_mbit"), values.get("ms") / 2.0 * values.get("factor"));
    let access = line(rest, 1.0);
    let mut graph = Graph::new();
    graph.join("S1", "T1", &access)?;
    graph.join("T3", "R1", &access)?;
    graph.join("T1", "T3", &bottleneck(values, "mbit", values.get("ms")))?;
    graph.join("T1", "T2", &line(rest, half))?;
    graph.join("T2", "T3", &bottleneck(values, "mbit", half))?;
    for (host, at) in [("W1", "T1"), ("C1", "T3"), ("W2", "T2"), ("C2", "T3")] {
        graph.join(host, at, &access)?;
    }
    Ok(graph)
}

/// Topology2 of the paper on Harp: four paths from router T1 to router T3, with one-way delays of
/// 10, 12, 14 and 16 ms. Each path has a bottleneck (double line). Host S2 sends to host R2 over
/// the bottleneck of the path through T2.
///
/// ```text
///  S1 ─── T1 ═══════════════ T3 ─── R1
///         ├──── T2 ── X ══════┤└── R2
///         │      S2 ──┘       │
///         ├──── T4 ═══════════┤
///         └──── T5 ═══════════┘
/// ```
pub(super) fn t2(values: &Values) -> Result<Graph, TopologyError> {
    let rest = values.get("access_mbit");
    let access = line(rest, 1.0);
    let mut graph = Graph::new();
    for (a, b) in [("S1", "T1"), ("T3", "R1"), ("S2", "X"), ("T3", "R2")] {
        graph.join(a, b, &access)?;
    }
    graph.join("T1", "T3", &bottleneck(values, "mbit", 10.0))?;
    graph.join("T1", "T2", &line(rest, 5.0))?;
    graph.join("T2", "X", &line(rest, 1.0))?;
    graph.join("X", "T3", &bottleneck(values, "mbit", 6.0))?;
    for (relay, half) in [("T4", 7.0), ("T5", 8.0)] {
        graph.join("T1", relay, &line(rest, half))?;
        graph.join(relay, "T3", &bottleneck(values, "mbit", half))?;
    }
    Ok(graph)
}

/// Topology4 of Harp's technical report. The three relayed paths from T1 to T6, and S2's path to
/// R2, share the bottleneck from T2 to T6.
///
/// ```text
///  S1 ─── T1 ══════════════════ T6 ─── R1
///         ├── T3 ──┐             ║└─── R2
///         ├── T4 ──┼─── T2 ══════╝
///         └── T5 ──┘    └── S2
/// ```
///
/// The name T6 is not from the report.
pub(super) fn t4(values: &Values) -> Result<Graph, TopologyError> {
    let rest = values.get("access_mbit");
    let access = line(rest, 1.0);
    let mut graph = Graph::new();
    for (a, b) in [("S1", "T1"), ("T6", "R1"), ("S2", "T2"), ("T6", "R2")] {
        graph.join(a, b, &access)?;
    }
    graph.join("T1", "T6", &bottleneck(values, "mbit", 10.0))?;
    graph.join("T2", "T6", &bottleneck(values, "mbit", 5.0))?;
    for (relay, delay) in [("T3", 4.0), ("T4", 5.0), ("T5", 6.0)] {
        graph.join("T1", relay, &line(rest, delay))?;
        graph.join(relay, "T2", &line(rest, 2.0))?;
    }
    Ok(graph)
}

/// Figure 3 of the Harp paper: S1 sends to R1 directly, and through the relay T1. S2 sends to R2
/// over the link from T1 to T2 (8 Mbit/s), which the relayed path uses too.
///
/// ```text
///  S1 ─── A ════10════ B ─── R1
///         └─ T1 ═8═ T2 ┘
///     S2 ────┘       └──── R2
/// ```
///
/// The names of the routers A, B and T2 and of the relay are not from the paper.
pub(super) fn fig3(values: &Values) -> Result<Graph, TopologyError> {
    let rest = values.get("access_mbit");
    let access = line(rest, 1.0);
    let mut graph = Graph::new();
    for (a, b) in [("S1", "A"), ("B", "R1"), ("S2", "T1"), ("T2", "R2")] {
        graph.join(a, b, &access)?;
    }
    graph.join("A", "B", &bottleneck(values, "direct_mbit", 10.0))?;
    graph.join("A", "T1", &line(rest, 2.0))?;
    graph.join("T1", "T2", &bottleneck(values, "shared_mbit", 8.0))?;
    graph.join("T2", "B", &line(rest, 2.0))?;
    Ok(graph)
}

const GATEWAYS_PARAMETER: Parameter =
    parameter("gateways", 20.0, [1.0, 1_000.0], "number of gateways and relays (paper)");
const HOSTS_PARAMETER: Parameter =
    parameter("hosts", 40.0, [0.0, 10_000.0], "number of clients, and of servers (reconstructed)");
const MIN_MBIT_PARAMETER: Parameter =
    parameter("least_mbit", 10.0, [0.001, 1e5], "least Mbit/s between routers (paper)");
const MAX_MBIT_PARAMETER: Parameter =
    parameter("most_mbit", 100.0, [0.001, 1e5], "greatest Mbit/s between routers (paper)");

pub(super) const T3_PARAMETERS: &[Parameter] = &[
    parameter("routers", 100.0, [2.0, 1_000.0], "number of routers (paper)"),
    parameter("alpha", 0.25, [0.0, 1.0], "Waxman's alpha: how many links there are (reconstructed)"),
    parameter("beta", 0.15, [0.001, 1.0], "Waxman's beta: how far they reach (reconstructed)"),
    GATEWAYS_PARAMETER,
    HOSTS_PARAMETER,
    MIN_MBIT_PARAMETER,
    MAX_MBIT_PARAMETER,
    ACCESS_PARAMETER,
];

pub(super) const T3_STUBS_PARAMETERS: &[Parameter] = &[
    parameter("domains", 1.0, [1.0, 20.0], "number of transit domains (GT-ITM's customary 100 routers)"),
    parameter("transit", 4.0, [1.0, 50.0], "number of routers in each transit domain"),
    parameter("stubs", 3.0, [0.0, 50.0], "number of stubs at each transit router"),
    parameter("stub", 8.0, [1.0, 50.0], "number of routers in each stub"),
    parameter("extra_up", 0.0, [0.0, 1_000.0], "number of further links from transit routers to stubs"),
    parameter("extra_across", 0.0, [0.0, 1_000.0], "number of links between stubs"),
    GATEWAYS_PARAMETER,
    HOSTS_PARAMETER,
    MIN_MBIT_PARAMETER,
    MAX_MBIT_PARAMETER,
    ACCESS_PARAMETER,
];

/// Harp's Topology3 over a random graph of routers `n1, n2, ...`. Gateways and relays `G1, G2, ...`
/// are at random routers, one per router at most. Clients `C1, C2, ...` and servers `V1, V2, ...`
/// may share a router.
pub(super) fn t3(values: &Values) -> Result<Graph, TopologyError> {
    let (alpha, beta) = (values.get("alpha"), values.get("beta"));
    inhabited(values, waxman(values.seed, values.count("routers"), alpha, beta, &lines(values))?)
}

/// Harp's Topology3 over a transit-stub graph. By default, one link joins a stub domain to the
/// backbone, so all paths between two gateways share the links of their stubs. So relays help less
/// than in [`t3`].
pub(super) fn t3_stubs(values: &Values) -> Result<Graph, TopologyError> {
    let shape = TransitStub {
        domains: values.count("domains"),
        transit: values.count("transit"),
        stubs: values.count("stubs"),
        stub: values.count("stub"),
        extra_up: values.count("extra_up"),
        extra_across: values.count("extra_across"),
        ..TransitStub::default()
    };
    inhabited(values, transit_stub(values.seed, &shape, &lines(values))?)
}

fn lines(values: &Values) -> LinkRanges {
    let (one, other) = (values.get("least_mbit"), values.get("most_mbit"));
    LinkRanges { rate: [one.min(other), one.max(other)], ..LinkRanges::default() }
}

fn inhabited(values: &Values, mut graph: Graph) -> Result<Graph, TopologyError> {
    let access = line(values.get("access_mbit"), 1.0);
    let mut routers: Vec<String> = graph.nodes().map(str::to_owned).collect();
    let pick =
        |name: &str, among: usize| dice(values.seed, &format!("place {name}")).below(among as u64) as usize;
    for host in 1..=values.count("hosts") {
        for name in [format!("C{host}"), format!("V{host}")] {
            let at = pick(&name, routers.len());
            graph.join(&name, &routers[at], &access)?;
        }
    }
    for gateway in 1..=values.count("gateways").min(routers.len()) {
        let name = format!("G{gateway}");
        let at = pick(&name, routers.len());
        graph.join(&name, &routers.swap_remove(at), &access)?;
    }
    Ok(graph)
}

fn bottleneck(values: &Values, rate: &str, ms: f64) -> PipeConfig {
    PipeConfig::new(values.mbit(rate), millis(ms)).queue(values.count("queue"))
}
