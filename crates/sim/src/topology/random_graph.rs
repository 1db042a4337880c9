//! Random networks of routers by the models of the generator GT-ITM (Zegura, Calvert and
//! Bhattacharjee, "How to model an internetwork", INFOCOM 1996). Further links connect a graph that
//! falls apart, so that every seed gives a network.

use super::error::TopologyError;
use super::graph::Graph;
use super::measure::bdp_packets;
use super::parameters::{between, bits, dice, millis};
use crate::pipe::PipeConfig;

/// The ranges from which the links of a random network are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkRanges {
    /// The smallest and largest rate in Mbit/s. Rates are uniformly distributed.
    pub rate: [f64; 2],
    /// The smallest and largest one-way delay in milliseconds.
    pub delay: [f64; 2],
    /// The round trip in milliseconds that the queue of a link is made for: it holds a
    /// bandwidth-delay product.
    pub rtt: f64,
    /// The least queue of a line, in packets.
    pub queue: usize,
}

impl Default for LinkRanges {
    /// Rates, delays and queues of the links in Topology3 of the paper on Harp. Only the rates (in
    /// Mbit/s) are from the paper. A queue holds the bandwidth-delay product for a round trip of 60
    /// ms, but at least 50 packets.
    fn default() -> Self {
        Self { rate: [10.0, 100.0], delay: [1.0, 20.0], rtt: 60.0, queue: 50 }
    }
}

impl LinkRanges {
    /// The line between two nodes: its rate is drawn from a stream that has the names of both.
    fn between(&self, seed: u64, a: &str, b: &str, ms: f64) -> PipeConfig {
        let rate = bits(between(&mut dice(seed, &format!("rate {a} {b}")), self.rate));
        let queue = bdp_packets(rate, millis(self.rtt), 1_500).max(self.queue);
        PipeConfig::new(rate, millis(ms)).queue(queue)
    }
}

/// Waxman's random graph of routers `n1, n2, ...` in the unit square with diagonal L. Routers at
/// distance d are joined with probability `alpha × exp(-d / (beta × L))`. Delays grow linearly with
/// d within `lines.delay`.
///
/// # Errors
/// [`TopologyError::ZeroRate`].
pub fn waxman(
    seed: u64,
    routers: usize,
    alpha: f64,
    beta: f64,
    lines: &LinkRanges,
) -> Result<Graph, TopologyError> {
    let mut graph = Graph::new();
    let mut places = Vec::new();
    for router in 1..=routers {
        let name = format!("n{router}");
        graph.add_node(&name)?;
        let mut random = dice(seed, &format!("place {name}"));
        places.push((name, random.unit(), random.unit()));
    }
    let diagonal = libm::sqrt(2.0);
    let mut missing = Vec::new();
    let mut parts = DisjointSets::new(routers);
    for (i, (a, ax, ay)) in places.iter().enumerate() {
        for (j, (b, bx, by)) in places.iter().enumerate().skip(i + 1) {
            let distance = libm::sqrt((ax - bx) * (ax - bx) + (ay - by) * (ay - by));
            let probability = alpha * libm::exp(-distance / (beta * diagonal));
            let ms = lines.delay[0] + (lines.delay[1] - lines.delay[0]) * distance / diagonal;
            if dice(seed, &format!("join {a} {b}")).chance(probability) {
                graph.join(a, b, &lines.between(seed, a, b, ms))?;
                parts.unite(i, j);
            } else {
                missing.push((distance, i, j, ms));
            }
        }
    }
    missing.sort_by(|one, other| one.0.total_cmp(&other.0));
    for (_, i, j, ms) in missing {
        if let (true, Some((a, ..)), Some((b, ..))) = (parts.unite(i, j), places.get(i), places.get(j)) {
            graph.join(a, b, &lines.between(seed, a, b, ms))?;
        }
    }
    Ok(graph)
}

/// The shape of a transit-stub network. The default is GT-ITM's customary one of 100 routers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TransitStub {
    /// Transit domains, the backbone.
    pub domains: usize,
    /// Routers of each transit domain.
    pub transit: usize,
    /// Stub domains at each transit router.
    pub stubs: usize,
    /// Routers of each stub domain.
    pub stub: usize,
    /// Probability that two routers of one transit domain are joined; transit domains are all
    /// joined to each other.
    pub transit_edges: f64,
    /// Probability that two routers of the same stub are joined.
    pub stub_edges: f64,
    /// The number of extra links from transit routers to stub domains of other transit routers.
    /// They add to the one link from each stub domain to its own transit router. With extra links,
    /// a route may pass through a stub domain, unlike in GT-ITM.
    pub extra_up: usize,
    /// Links beyond the tree between stubs.
    pub extra_across: usize,
}

impl Default for TransitStub {
    fn default() -> Self {
        Self {
            domains: 1,
            transit: 4,
            stubs: 3,
            stub: 8,
            transit_edges: 0.6,
            stub_edges: 0.42,
            extra_up: 0,
            extra_across: 0,
        }
    }
}

/// The part of the delay range for each kind of link, from the shortest delay.
const WITHIN_STUB_RANGE: [f64; 2] = [0.0, 0.2];
const TO_STUB_RANGE: [f64; 2] = [0.1, 0.5];
const TRANSIT_RANGE: [f64; 2] = [0.25, 1.0];

/// A transit-stub network. Transit domains form the backbone, with routers such as `t1.2` (domain,
/// router). One link joins each stub domain to a transit router. Stub router `s1.2.3.4` is router 4
/// of stub 3 at `t1.2`.
///
/// # Errors
/// [`TopologyError::ZeroRate`].
pub fn transit_stub(seed: u64, shape: &TransitStub, lines: &LinkRanges) -> Result<Graph, TopologyError> {
    let mut net = RandomBuilder { graph: Graph::new(), seed, lines };
    let mut domains: Vec<Vec<String>> = Vec::new();
    let mut stubs: Vec<(String, Vec<String>)> = Vec::new();
    for domain in 1..=shape.domains {
        let routers: Vec<String> = (1..=shape.transit).map(|router| format!("t{domain}.{router}")).collect();
        net.domain(&routers, shape.transit_edges, TRANSIT_RANGE)?;
        for (number, above) in routers.iter().enumerate() {
            for stub in 1..=shape.stubs {
                let member = |router| format!("s{domain}.{}.{stub}.{router}", number + 1);
                let members: Vec<String> = (1..=shape.stub).map(member).collect();
                net.domain(&members, shape.stub_edges, WITHIN_STUB_RANGE)?;
                if let Some(gate) = net.pick(&format!("gate {above} {stub}"), &members) {
                    net.join(above, gate, TO_STUB_RANGE)?;
                }
                stubs.push((above.clone(), members));
            }
        }
        domains.push(routers);
    }
    for (i, one) in domains.iter().enumerate() {
        for (j, other) in domains.iter().enumerate().skip(i + 1) {
            let ends = (net.pick(&format!("peer {i} {j}"), one), net.pick(&format!("peer {j} {i}"), other));
            if let (Some(one), Some(other)) = ends {
                net.join(one, other, TRANSIT_RANGE)?;
            }
        }
    }
    let transit: Vec<String> = domains.concat();
    for extra in 0..shape.extra_up {
        let name = format!("extra up {extra}");
        let Some((above, members)) = net.pick(&name, &stubs) else { break };
        let others: Vec<String> = transit.iter().filter(|&router| router != above).cloned().collect();
        net.join_new(&name, &others, members, TO_STUB_RANGE)?;
    }
    for extra in 0..shape.extra_across {
        let name = format!("extra across {extra}");
        let Some((_, members)) = net.pick(&name, &stubs) else { break };
        let strange = stubs.iter().filter(|(_, others)| others != members);
        let others: Vec<String> = strange.flat_map(|(_, others)| others.iter().cloned()).collect();
        net.join_new(&name, &others, members, TO_STUB_RANGE)?;
    }
    Ok(net.graph)
}

/// A network that grows.
struct RandomBuilder<'a> {
    graph: Graph,
    seed: u64,
    lines: &'a LinkRanges,
}

impl RandomBuilder<'_> {
    /// Adds routers, and joins each two of them with this probability. Parts without a connection
    /// get one more link each.
    fn domain(&mut self, routers: &[String], probability: f64, kind: [f64; 2]) -> Result<(), TopologyError> {
        for name in routers {
            self.graph.add_node(name)?;
        }
        let mut parts = DisjointSets::new(routers.len());
        for (i, a) in routers.iter().enumerate() {
            for (j, b) in routers.iter().enumerate().skip(i + 1) {
                if dice(self.seed, &format!("join {a} {b}")).chance(probability) {
                    self.join(a, b, kind)?;
                    parts.unite(i, j);
                }
            }
        }
        for (j, b) in routers.iter().enumerate().skip(1) {
            let before = routers.get(..j).unwrap_or_default();
            let at = dice(self.seed, &format!("bridge {b}")).below(before.len() as u64) as usize;
            if let (true, Some(a)) = (parts.unite(0, j), before.get(at)) {
                // All before it hang together by now, so any of them will do.
                self.join(a, b, kind)?;
            }
        }
        Ok(())
    }

    fn join(&mut self, a: &str, b: &str, [low, high]: [f64; 2]) -> Result<(), TopologyError> {
        let [least, most] = self.lines.delay;
        let range = [least + (most - least) * low, least + (most - least) * high];
        let ms = between(&mut dice(self.seed, &format!("delay {a} {b}")), range);
        self.graph.join(a, b, &self.lines.between(self.seed, a, b, ms))
    }

    /// Joins a random node of `ones` with a random node of `others`, unless they are joined
    /// already.
    fn join_new(
        &mut self,
        draw: &str,
        ones: &[String],
        others: &[String],
        kind: [f64; 2],
    ) -> Result<(), TopologyError> {
        let ends = (self.pick(&format!("{draw} from"), ones), self.pick(&format!("{draw} to"), others));
        match ends {
            (Some(a), Some(b)) if self.graph.direction(a, b).is_err() => self.join(a, b, kind),
            _ => Ok(()),
        }
    }

    fn pick<'b, T>(&self, draw: &str, among: &'b [T]) -> Option<&'b T> {
        among.get(dice(self.seed, draw).below(among.len() as u64) as usize)
    }
}

/// A forest that shows which nodes are connected. Each node points toward the root of its tree.
pub(super) struct DisjointSets(Vec<usize>);

impl DisjointSets {
    pub(super) fn new(nodes: usize) -> Self {
        Self((0..nodes).collect())
    }

    fn speaker(&mut self, node: usize) -> usize {
        let (mut node, mut above) = (node, self.0[node]);
        while node != above {
            self.0[node] = self.0[above];
            (node, above) = (above, self.0[above]);
        }
        node
    }

    /// Merges the parts of two nodes. Returns whether they were separate.
    pub(super) fn unite(&mut self, one: usize, other: usize) -> bool {
        let (one, other) = (self.speaker(one), self.speaker(other));
        self.0[other] = one;
        one != other
    }
}
