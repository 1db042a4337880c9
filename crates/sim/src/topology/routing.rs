//! Which way packets go: the cheapest, the same on every machine and in whatever order the network was written down.

use super::error::Error;
use super::graph::{Direction, Graph};
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::sync::OnceLock;

/// By which direction each node is reached from a root.
#[derive(Clone, Debug)]
struct Tree {
    via: Vec<Option<Direction>>,
}

/// The trees that were needed so far, one per root. Made when first asked for, forgotten when the network changes.
#[derive(Clone, Debug, Default)]
pub(super) struct Trees(OnceLock<Vec<OnceLock<Tree>>>);

impl Graph {
    /// The way from a node to another: the least sum of propagation delays (or of [costs](Self::set_cost), where they are
    /// set); among equals the fewest links; among those the one whose node names come first in order, the first node that
    /// differs deciding. With waypoints, the way to the first of them, then from there to the next, and on to the end.
    /// From a node to itself: an empty way.
    ///
    /// The first call for a node (as a beginning or a waypoint) costs a run of Dijkstra's algorithm, later ones only the walk.
    ///
    /// # Errors
    /// [`Error::UnknownNode`], [`Error::Unreachable`].
    pub fn way(&self, from: &str, to: &str, through: &[&str]) -> Result<Vec<Direction>, Error> {
        let mut way = Vec::new();
        let mut here = self.node(from)?;
        for stop in through.iter().copied().chain([to]) {
            let stop = self.node(stop)?;
            self.walk(here, stop, &mut way)?;
            here = stop;
        }
        Ok(way)
    }

    fn walk(&self, from: u32, to: u32, way: &mut Vec<Direction>) -> Result<(), Error> {
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
            let Some(direction) = tree.via.get(node as usize).copied().flatten() else {
                way.truncate(begun);
                let [from, to] = [from, to].map(|node| self.name(node).to_owned());
                return Err(Error::Unreachable { from, to });
            };
            way.push(direction);
            node = self.lane(direction).from;
        }
        if let Some(found) = way.get_mut(start..) {
            found.reverse();
        }
        Ok(())
    }

    /// The tree of a root. Roots are nodes of this graph, so the index is proven.
    fn tree(&self, root: u32) -> &Tree {
        let trees = self.trees.0.get_or_init(|| vec![OnceLock::new(); self.size()]);
        trees[root as usize].get_or_init(|| self.grow(root))
    }

    /// Dijkstra's algorithm over (cost, hops). Both grow strictly along a way (cost may stand still, hops do not), so when a
    /// node is taken up, all that could precede it are final, and equal ways can be told apart by their names.
    fn grow(&self, root: u32) -> Tree {
        let mut via = vec![None; self.size()];
        let mut best = vec![(u64::MAX, u32::MAX); self.size()];
        best[root as usize] = (0, 0);
        let mut line = BinaryHeap::from([Reverse((0_u64, 0_u32, root))]);
        while let Some(Reverse((cost, hops, node))) = line.pop() {
            if best[node as usize] != (cost, hops) {
                continue;
            }
            for &direction in self.leaving(node) {
                let lane = self.lane(direction);
                let offer = (cost.saturating_add(lane.cost()), hops + 1);
                let place = lane.to as usize;
                match offer.cmp(&best[place]) {
                    Ordering::Less => {
                        best[place] = offer;
                        via[place] = Some(direction);
                        line.push(Reverse((offer.0, offer.1, lane.to)));
                    }
                    Ordering::Equal => {
                        if let Some(former) = via[place]
                            && self.comes_first(&via, node, self.lane(former).from)
                        {
                            via[place] = Some(direction);
                        }
                    }
                    Ordering::Greater => {}
                }
            }
        }
        Tree { via }
    }

    /// Of two nodes at the same depth of a tree: whether the way to the first comes before the way to the second.
    fn comes_first(&self, via: &[Option<Direction>], first: u32, second: u32) -> bool {
        let above = |node: u32| via.get(node as usize).copied().flatten().map(|up| self.lane(up).from);
        let (mut first, mut second) = (first, second);
        while above(first) != above(second) {
            let (Some(up), Some(other)) = (above(first), above(second)) else { break };
            (first, second) = (up, other);
        }
        self.name(first) < self.name(second)
    }
}
