//! The overlay of Wang et al. and their testbed. There are sources, each with a few of the relays,
//! and one receiver.

use super::error::TopologyError;
use super::graph::Graph;
use super::parameters::{Parameter, Values, bits, dice, line, millis, parameter};
use crate::pipe::PipeConfig;

/// The parameters of the overlay. The defaults are the paper's, at 1.2 Mbit/s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Overlay {
    /// The number of sources, named s1, s2, and so on.
    pub sources: usize,
    /// The number of relays, named r1, r2, and so on.
    pub relays: usize,
    /// The number of relays that each source gets at random. If there are fewer, it gets all.
    pub k: usize,
    /// The sum of the bandwidths from the relays to the receiver, over the sum of the sources'
    /// demands.
    pub f: f64,
    /// The skew factor, 0 to 1: the bandwidth of relay j is proportional to 1 / j^b.
    pub b: f64,
    /// The demand of each source in Mbit/s.
    pub demand: f64,
    /// Round trip of each logical hop in milliseconds: 20 at 1.2 Mbit/s, 5 at 6.
    pub hop_rtt: f64,
    /// Mbit/s from a source to a relay: never scarce (reconstructed).
    pub first: f64,
    /// Packets that wait before a relay's link to the receiver (reconstructed).
    pub queue: usize,
}

impl Default for Overlay {
    fn default() -> Self {
        Self {
            sources: 100,
            relays: 100,
            k: 2,
            f: 1.0,
            b: 0.0,
            demand: 1.2,
            hop_rtt: 20.0,
            first: 100.0,
            queue: 50,
        }
    }
}

pub(super) const OVERLAY_PARAMETERS: &[Parameter] = &[
    parameter("sources", 100.0, [1.0, 10_000.0], "number of sources (paper: 100)"),
    parameter("relays", 100.0, [1.0, 10_000.0], "number of relays (paper: 100)"),
    parameter("k", 2.0, [1.0, 100.0], "number of relays of each source (paper: 2, 3, 4)"),
    parameter("f", 1.0, [0.001, 1_000.0], "relays' bandwidth over sources' demand (paper: 0.6 to 3)"),
    parameter("b", 0.0, [0.0, 1.0], "skew: bandwidth of relay j is proportional to 1 / j^b (paper: 0 to 1)"),
    parameter("demand_mbit", 1.2, [0.001, 1e5], "Mbit/s that each source wants (paper: 1.2 or 6)"),
    parameter(
        "hop_rtt_ms",
        20.0,
        [0.0, 1e4],
        "round trip of each logical hop, ms (paper: 20, at 6 Mbit/s 5)",
    ),
    parameter("first_mbit", 100.0, [0.001, 1e5], "Mbit/s from a source to a relay (reconstructed)"),
    parameter("queue", 50.0, [0.0, 1e6], "packets that wait behind each relay (reconstructed)"),
];

pub(super) fn overlay_of(values: &Values) -> Result<Graph, TopologyError> {
    let overlay = Overlay {
        sources: values.count("sources"),
        relays: values.count("relays"),
        k: values.count("k"),
        f: values.get("f"),
        b: values.get("b"),
        demand: values.get("demand_mbit"),
        hop_rtt: values.get("hop_rtt_ms"),
        first: values.get("first_mbit"),
        queue: values.count("queue"),
    };
    wang(values.seed, &overlay)
}

/// The overlay of Wang et al. (section IV). Sources `s1, s2, ...` are joined to `overlay.k` random
/// relays each, and relays `r1, r2, ...` to the receiver d.
///
/// # Errors
/// [`TopologyError::ZeroRate`], if a relay's rate is below 1 bit/s.
pub fn wang(seed: u64, overlay: &Overlay) -> Result<Graph, TopologyError> {
    let hop = overlay.hop_rtt / 2.0;
    let mut graph = Graph::new();
    graph.add_node("d")?;
    let share = |relay: usize| libm::pow(relay as f64, -overlay.b);
    let shares: f64 = (1..=overlay.relays).map(share).sum();
    let total = overlay.f * overlay.demand * overlay.sources as f64;
    for relay in 1..=overlay.relays {
        let rate = bits(total * share(relay) / shares);
        graph.join(&format!("r{relay}"), "d", &PipeConfig::new(rate, millis(hop)).queue(overlay.queue))?;
    }
    let first = line(overlay.first, hop);
    for source in 1..=overlay.sources {
        let source = format!("s{source}");
        graph.add_node(&source)?;
        // Each source has its own random stream, so an added source does not change the relays of
        // others.
        let mut random = dice(seed, &format!("relays of {source}"));
        let mut relays: Vec<usize> = (1..=overlay.relays).collect();
        for choice in 0..overlay.k.min(overlay.relays) {
            let left = (overlay.relays - choice) as u64;
            relays.swap(choice, choice + random.below(left) as usize);
            graph.join(&source, &format!("r{}", relays[choice]), &first)?;
        }
    }
    Ok(graph)
}

pub(super) const TESTBED_PARAMETERS: &[Parameter] = &[
    parameter("r1_kbit", 256.0, [0.1, 1e6], "kbit/s from r1 to the receiver (paper)"),
    parameter("r2_kbit", 256.0, [0.1, 1e6], "kbit/s from r2 to the receiver (paper)"),
    parameter("r3_kbit", 56.0, [0.1, 1e6], "kbit/s from r3 to the receiver (paper)"),
    parameter("hop_rtt_ms", 2.0, [0.0, 1e4], "round trip of each hop without queues, ms (reconstructed)"),
    parameter("queue", 10.0, [0.0, 1e6], "packets that wait behind each relay (reconstructed)"),
];

/// The testbed of Wang et al. (section V of their paper). Source s1 has the relays r1 and r2,
/// source s2 has r2 and r3. Only the links from the relays to the receiver d are slow.
pub(super) fn testbed(values: &Values) -> Result<Graph, TopologyError> {
    let hop = values.get("hop_rtt_ms") / 2.0;
    let mut graph = Graph::new();
    for relay in ["r1", "r2", "r3"] {
        let rate = bits(values.get(&format!("{relay}_kbit")) / 1_000.0);
        graph.join(relay, "d", &PipeConfig::new(rate, millis(hop)).queue(values.count("queue")))?;
    }
    for (source, relay) in [("s1", "r1"), ("s1", "r2"), ("s2", "r2"), ("s2", "r3")] {
        graph.join(source, relay, &line(100.0, hop))?;
    }
    Ok(graph)
}
