//! The routes that a graph caches until it changes.

use super::direction::Direction;
use std::sync::OnceLock;

/// An edge for Dijkstra's algorithm: a compact copy of the graph's data. It makes searches faster,
/// since a graph of thousands of nodes is searched hundreds of times.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arc {
    pub(super) to: u32,
    pub(super) cost: u64,
    pub(super) direction: Direction,
}

/// The node from which a node is reached, and the direction between them.
pub(super) type Reached = Option<(u32, Direction)>;

/// The routes found so far. They are computed on demand, and forgotten when the network changes.
#[derive(Clone, Debug)]
struct Routes {
    /// For each node, its edges to neighbours.
    arcs: Vec<Vec<Arc>>,
    /// Per root, how each node is reached.
    trees: Vec<OnceLock<Vec<Reached>>>,
}

/// The cache of a graph's routes.
#[derive(Clone, Debug, Default)]
pub(super) struct RouteCache(OnceLock<Routes>);

impl RouteCache {
    /// The tree of a root, out of `nodes` nodes. `arcs` gives the steps from a node, and `grow`
    /// makes the tree from those of all nodes. Both are called only for what is not known yet.
    pub(super) fn tree(
        &self,
        root: u32,
        nodes: usize,
        arcs: impl Fn(u32) -> Vec<Arc>,
        grow: impl FnOnce(&[Vec<Arc>]) -> Vec<Reached>,
    ) -> &[Reached] {
        let routes = self.0.get_or_init(|| Routes {
            arcs: (0..nodes as u32).map(arcs).collect(),
            trees: vec![OnceLock::new(); nodes],
        });
        routes.trees[root as usize].get_or_init(|| grow(&routes.arcs))
    }
}
