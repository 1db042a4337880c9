//! The largest sum of rates at which sources can send through relays to one destination, computed
//! as a maximum flow. It is problem P of Wang et al. with two hops: source to relay, relay to
//! destination.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

/// The part of the largest capacity below which a flow is rounding.
const ROUNDING_SHARE: f64 = 1e-12;

/// The largest sum of rates of sources with the given `demands`, over relays with the given
/// `capacities`, all in one unit, for example bytes per second. Source s may use the relays
/// `choices[s]`; unknown relays are ignored.
#[must_use]
pub fn largest_sum(demands: &[f64], capacities: &[f64], choices: &[Vec<usize>]) -> f64 {
    let (sources, relays) = (demands.len(), capacities.len());
    let (origin, destination) = (sources + relays, sources + relays + 1);
    let mut network = FlowNetwork { edges: Vec::new(), from: vec![Vec::new(); destination + 1] };
    for (source, demand) in demands.iter().enumerate() {
        network.edge(origin, source, *demand);
        for relay in choices.get(source).into_iter().flatten().filter(|relay| **relay < relays) {
            network.edge(source, sources + relay, *demand);
        }
    }
    for (relay, capacity) in capacities.iter().enumerate() {
        network.edge(sources + relay, destination, *capacity);
    }
    let scale = demands.iter().chain(capacities).copied().fold(0.0, f64::max);
    // Dinic's algorithm (Soviet Mathematics Doklady 11, 1970).
    network.flow(origin, destination, ROUNDING_SHARE * scale)
}

/// An edge and its free capacity. Its reverse is beside it, at the index with the last bit flipped.
struct Edge {
    to: usize,
    left: f64,
}

struct FlowNetwork {
    edges: Vec<Edge>,
    from: Vec<Vec<usize>>,
}

impl FlowNetwork {
    fn edge(&mut self, from: usize, to: usize, capacity: f64) {
        self.from[from].push(self.edges.len());
        self.edges.push(Edge { to, left: capacity });
        self.from[to].push(self.edges.len());
        self.edges.push(Edge { to: from, left: 0.0 });
    }

    fn flow(&mut self, origin: usize, destination: usize, nothing: f64) -> f64 {
        let mut sum = 0.0;
        loop {
            let levels = self.levels(origin, nothing);
            if levels[destination].is_none() {
                return sum;
            }
            let mut next = vec![0; self.from.len()];
            while let Some(pushed) = self.push(origin, destination, &levels, &mut next, nothing) {
                sum += pushed;
            }
        }
    }

    /// Returns the distance of each node from `origin`, in edges with free capacity. `None`: no
    /// such edges lead to it.
    fn levels(&self, origin: usize, nothing: f64) -> Vec<Option<usize>> {
        let mut levels = vec![None; self.from.len()];
        levels[origin] = Some(0);
        let mut queue = VecDeque::from([(origin, 0)]);
        while let Some((node, level)) = queue.pop_front() {
            for edge in self.from[node].iter().map(|edge| &self.edges[*edge]) {
                if edge.left > nothing && levels[edge.to].is_none() {
                    levels[edge.to] = Some(level + 1);
                    queue.push_back((edge.to, level + 1));
                }
            }
        }
        levels
    }

    /// Sends as much as one shortest route can still carry. `next` remembers which edges of a node
    /// lead nowhere.
    fn push(
        &mut self,
        origin: usize,
        destination: usize,
        levels: &[Option<usize>],
        next: &mut [usize],
        nothing: f64,
    ) -> Option<f64> {
        let (mut way, mut node) = (Vec::new(), origin);
        while node != destination {
            let onward = self.from[node].get(next[node]).copied();
            match (onward, way.pop()) {
                (Some(edge), last) => {
                    way.extend(last);
                    let Edge { to, left } = self.edges[edge];
                    if left > nothing && levels[to] == levels[node].map(|level| level + 1) {
                        way.push(edge);
                        node = to;
                    } else {
                        next[node] += 1;
                    }
                }
                // A dead end: one back, and not here again.
                (None, Some(last)) => {
                    node = self.edges[last ^ 1].to;
                    next[node] += 1;
                }
                (None, None) => return None,
            }
        }
        let least = way.iter().map(|edge| self.edges[*edge].left).fold(f64::INFINITY, f64::min);
        for edge in way {
            self.edges[edge].left -= least;
            self.edges[edge ^ 1].left += least;
        }
        Some(least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seeded_random::Random;

    #[test]
    fn the_testbed_of_section_5_can_carry_550_kbit_s() {
        let choices = [vec![0, 1], vec![1, 2]];
        let sum = largest_sum(&[250.0, 300.0], &[256.0, 256.0, 56.0], &choices);
        assert!((sum - 550.0).abs() < 1e-9, "{sum}");
        assert!((largest_sum(&[250.0, 400.0], &[256.0, 256.0, 56.0], &choices) - 562.0).abs() < 1e-9);
        assert_eq!(largest_sum(&[], &[1.0], &[]), 0.0);
        assert_eq!(largest_sum(&[1.0], &[], &[vec![0]]), 0.0);
    }

    #[test]
    fn it_is_what_no_subset_of_sources_can_exceed() {
        // Max-flow min-cut: the flow equals the smallest cut over all subsets of sources. A cut is
        // the demands of all sources outside the subset, plus the capacities of all relays that
        // sources inside may use.
        for seed in 0..200 {
            let mut random = Random::new(seed);
            let mut pick = |below: usize| (random.bits() % below as u64) as usize;
            let (sources, relays) = (1 + pick(6), 1 + pick(5));
            let demands: Vec<f64> = (0..sources).map(|_| pick(20) as f64).collect();
            let capacities: Vec<f64> = (0..relays).map(|_| pick(20) as f64).collect();
            let choices: Vec<Vec<usize>> =
                (0..sources).map(|_| (0..=pick(3)).map(|_| pick(relays)).collect()).collect();
            let least = (0..1_usize << sources)
                .map(|subset| {
                    let inside = |source: &usize| subset >> source & 1 == 1;
                    let out: f64 = (0..sources).filter(|s| !inside(s)).map(|s| demands[s]).sum();
                    let used = |relay: &usize| (0..sources).any(|s| inside(&s) && choices[s].contains(relay));
                    out + (0..relays).filter(used).map(|relay| capacities[relay]).sum::<f64>()
                })
                .fold(f64::INFINITY, f64::min);
            let sum = largest_sum(&demands, &capacities, &choices);
            assert!((sum - least).abs() < 1e-9, "{seed}: {sum}, cut {least}");
        }
    }
}
