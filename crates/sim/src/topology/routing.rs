//! Which way packets go: the cheapest, the same on every machine and in whatever order the network
//! was written down.

use super::direction::Direction;
use super::error::TopologyError;
use super::graph::Graph;
use super::route_cache::{Arc, Reached};
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

impl Graph {
    /// The route of least propagation delay, or least [cost](Self::set_cost) where set. Among equal
    /// routes, the fewest links win, then the alphabetically earlier names. Between waypoints in
    /// `through`, each part is the best by itself.
    ///
    /// # Errors
    /// [`TopologyError::UnknownNode`], [`TopologyError::Unreachable`].
    pub fn way(&self, from: &str, to: &str, through: &[&str]) -> Result<Vec<Direction>, TopologyError> {
        let mut way = Vec::new();
        let mut here = self.node(from)?;
        for stop in through.iter().copied().chain([to]) {
            let stop = self.node(stop)?;
            self.walk(here, stop, &mut way)?;
            here = stop;
        }
        Ok(way)
    }

    fn walk(&self, from: u32, to: u32, way: &mut Vec<Direction>) -> Result<(), TopologyError> {
        // A leaf has no choice but its neighbour, whose tree it shares with all leaves there.
        let (mut root, begun) = (from, way.len());
        if let [only] = self.leaving(from)
            && from != to
        {
            way.push(*only);
            root = self.lane(*only).to;
        }
        let start = way.len();
        let tree = self.tree(root);
        let mut node = to;
        while node != root {
            let Some((before, direction)) = tree[node as usize] else {
                way.truncate(begun);
                let [from, to] = [from, to].map(|node| self.name(node).to_owned());
                return Err(TopologyError::Unreachable { from, to });
            };
            way.push(direction);
            node = before;
        }
        if let Some(found) = way.get_mut(start..) {
            found.reverse();
        }
        Ok(())
    }

    /// The tree of a root. Nodes are numbered by this graph alone, so every number is an index.
    fn tree(&self, root: u32) -> &[Reached] {
        self.trees.tree(root, self.size(), |node| self.arcs(node), |arcs| self.grow(arcs, root))
    }

    fn arcs(&self, node: u32) -> Vec<Arc> {
        let arc = |&direction: &Direction| {
            let lane = self.lane(direction);
            Arc { to: lane.to, cost: lane.cost(), direction }
        };
        self.leaving(node).iter().map(arc).collect()
    }

    /// Dijkstra's algorithm. Of two routes with the same cost, the one with fewer hops wins. If the
    /// hops are equal too, the route whose node names come first in the alphabet wins.
    fn grow(&self, arcs: &[Vec<Arc>], root: u32) -> Vec<Reached> {
        let mut reached: Vec<Reached> = vec![None; self.size()];
        let mut best = vec![(u64::MAX, u32::MAX); self.size()];
        best[root as usize] = (0, 0);
        let mut line = BinaryHeap::from([Reverse((0_u64, 0_u32, root))]);
        while let Some(Reverse((cost, hops, node))) = line.pop() {
            if best[node as usize] != (cost, hops) {
                continue;
            }
            for &Arc { to, cost: step, direction } in &arcs[node as usize] {
                let offer = (cost.saturating_add(step), hops + 1);
                let place = to as usize;
                match offer.cmp(&best[place]) {
                    Ordering::Less => {
                        best[place] = offer;
                        reached[place] = Some((node, direction));
                        // A leaf leads nowhere else.
                        if arcs[place].len() > 1 {
                            line.push(Reverse((offer.0, offer.1, to)));
                        }
                    }
                    Ordering::Equal => {
                        if let Some((former, _)) = reached[place]
                            && self.comes_first(&reached, node, former)
                        {
                            reached[place] = Some((node, direction));
                        }
                    }
                    Ordering::Greater => {}
                }
            }
        }
        reached
    }

    /// For two nodes at the same depth of a tree: whether the route to the first precedes the route
    /// to the second.
    fn comes_first(&self, reached: &[Reached], first: u32, second: u32) -> bool {
        let above = |node: u32| reached[node as usize].map(|(before, _)| before);
        let (mut first, mut second) = (first, second);
        while above(first) != above(second) {
            let (Some(up), Some(other)) = (above(first), above(second)) else { break };
            (first, second) = (up, other);
        }
        self.name(first) < self.name(second)
    }
}
