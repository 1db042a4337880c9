//! Named nodes, and what joins them.

use super::direction::Direction;
use super::error::TopologyError;
use super::route_cache::RouteCache;
use crate::pipe::PipeConfig;
use byway_wire::time::nanos;
use std::collections::BTreeMap;

/// A direction of an edge, with its pipe.
#[derive(Clone, Debug)]
pub(super) struct DirectedEdge {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) config: PipeConfig,
    cost: Option<u64>,
}

impl DirectedEdge {
    /// The cost of this direction for routing.
    pub(super) fn cost(&self) -> u64 {
        self.cost.unwrap_or_else(|| nanos(self.config.delay))
    }
}

/// A network as data: named nodes and undirected edges that carry a [`PipeConfig`] per direction.
///
/// *Making*: [`add_node`](Self::add_node), [`add_edge`](Self::add_edge),
/// [`config_mut`](Self::config_mut), [`set_cost`](Self::set_cost). *Routing*: [`way`](Self::way).
/// *Measuring*: [`propagation`](Self::propagation), [`transit`](Self::transit),
/// [`base_rtt`](Self::base_rtt), [`bottleneck`](Self::bottleneck),
/// [`memory_bound`](Self::memory_bound). *Using*: [`build`](Self::build).
#[derive(Clone, Debug, Default)]
pub struct Graph {
    names: Vec<String>,
    by_name: BTreeMap<String, u32>,
    /// Directions: number 2i is the direction in which edge i was added, 2i + 1 the opposite one.
    lanes: Vec<DirectedEdge>,
    leaving: Vec<Vec<Direction>>,
    between: BTreeMap<(u32, u32), Direction>,
    regions: BTreeMap<u32, u8>,
    pub(super) trees: RouteCache,
}

/// The most names that an error lists.
const MAX_LISTED_NAMES: usize = 12;

impl Graph {
    /// An empty network.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a node.
    ///
    /// # Errors
    /// [`TopologyError::BadName`], [`TopologyError::DuplicateNode`].
    pub fn add_node(&mut self, name: &str) -> Result<(), TopologyError> {
        if name.is_empty() || name.contains(|c: char| c == '>' || c.is_whitespace()) {
            return Err(TopologyError::BadName { name: name.to_owned() });
        }
        if self.by_name.contains_key(name) {
            return Err(TopologyError::DuplicateNode { name: name.to_owned() });
        }
        self.trees = RouteCache::default();
        self.by_name.insert(name.to_owned(), self.names.len() as u32);
        self.names.push(name.to_owned());
        self.leaving.push(Vec::new());
        Ok(())
    }

    /// Joins two nodes by a pipe from `a` to `b` and one back.
    ///
    /// # Errors
    /// [`TopologyError::UnknownNode`], [`TopologyError::DuplicateEdge`], [`TopologyError::Loop`],
    /// [`TopologyError::ZeroRate`].
    pub fn add_edge(
        &mut self,
        a: &str,
        b: &str,
        there: PipeConfig,
        back: PipeConfig,
    ) -> Result<(), TopologyError> {
        let (from, to) = (self.node(a)?, self.node(b)?);
        if from == to {
            return Err(TopologyError::Loop { name: a.to_owned() });
        }
        if self.between.contains_key(&(from, to)) {
            return Err(TopologyError::DuplicateEdge { a: a.to_owned(), b: b.to_owned() });
        }
        for (config, from, to) in [(&there, a, b), (&back, b, a)] {
            if config.rate == Some(0) {
                return Err(TopologyError::ZeroRate { from: from.to_owned(), to: to.to_owned() });
            }
        }
        self.trees = RouteCache::default();
        for (from, to, config) in [(from, to, there), (to, from, back)] {
            let direction = Direction(self.lanes.len() as u32);
            self.lanes.push(DirectedEdge { from, to, config, cost: None });
            self.between.insert((from, to), direction);
            if let Some(leaving) = self.leaving.get_mut(from as usize) {
                leaving.push(direction);
            }
        }
        Ok(())
    }

    /// Joins two nodes by the same pipe in both directions. Adds the nodes if they are new.
    ///
    /// # Errors
    /// As [`add_node`](Self::add_node) and [`add_edge`](Self::add_edge).
    pub fn join(&mut self, a: &str, b: &str, both: &PipeConfig) -> Result<(), TopologyError> {
        for name in [a, b] {
            if !self.contains(name) {
                self.add_node(name)?;
            }
        }
        self.add_edge(a, b, both.clone(), both.clone())
    }

    /// Sets the cost of the link between two neighbours, in both directions. Routes have the least
    /// sum of costs. Without this call, the cost is the link's propagation delay in nanoseconds.
    /// With other costs, routes may not be the fastest, as on the Internet.
    ///
    /// # Errors
    /// [`TopologyError::UnknownNode`], [`TopologyError::NoEdge`].
    pub fn set_cost(&mut self, a: &str, b: &str, cost: u64) -> Result<(), TopologyError> {
        let direction = self.direction(a, b)?;
        self.trees = RouteCache::default();
        for direction in [direction, direction.reversed()] {
            self.lane_mut(direction).cost = Some(cost);
        }
        Ok(())
    }

    /// Returns the pipe from a node to its neighbour, for a change.
    ///
    /// # Errors
    /// [`TopologyError::UnknownNode`], [`TopologyError::NoEdge`].
    pub fn config_mut(&mut self, from: &str, to: &str) -> Result<&mut PipeConfig, TopologyError> {
        let direction = self.direction(from, to)?;
        self.trees = RouteCache::default();
        Ok(&mut self.lane_mut(direction).config)
    }

    /// Says in which part of the world a node is.
    ///
    /// # Errors
    /// [`TopologyError::UnknownNode`].
    pub fn set_region(&mut self, name: &str, region: u8) -> Result<(), TopologyError> {
        let node = self.node(name)?;
        self.regions.insert(node, region);
        Ok(())
    }

    /// Returns the part of the world of a node, if the network defines such parts.
    #[must_use]
    pub fn region(&self, name: &str) -> Option<u8> {
        self.regions.get(self.by_name.get(name)?).copied()
    }

    /// Whether a node has this name.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// Returns the names of all nodes, in the order in which they were added.
    pub fn nodes(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// The neighbours of a node, in the order in which the edges were added.
    ///
    /// # Errors
    /// [`TopologyError::UnknownNode`].
    pub fn neighbours(&self, name: &str) -> Result<impl Iterator<Item = &str>, TopologyError> {
        let node = self.node(name)?;
        Ok(self.leaving(node).iter().map(|&direction| self.name(self.lane(direction).to)))
    }

    /// Returns every direction of every edge, in the order in which they were added.
    pub fn directions(&self) -> impl Iterator<Item = Direction> + use<> {
        (0..self.lanes.len() as u32).map(Direction)
    }

    /// Returns the direction from a node to its neighbour.
    ///
    /// # Errors
    /// [`TopologyError::UnknownNode`], [`TopologyError::NoEdge`].
    pub fn direction(&self, from: &str, to: &str) -> Result<Direction, TopologyError> {
        let pair = (self.node(from)?, self.node(to)?);
        let none = || TopologyError::NoEdge { from: from.to_owned(), to: to.to_owned() };
        self.between.get(&pair).copied().ok_or_else(none)
    }

    /// The nodes at which a direction begins and ends.
    ///
    /// # Panics
    /// If it is of another graph.
    #[must_use]
    pub fn ends(&self, direction: Direction) -> (&str, &str) {
        let lane = self.lane(direction);
        (self.name(lane.from), self.name(lane.to))
    }

    /// The pipe of a direction.
    ///
    /// # Panics
    /// If it is of another graph.
    #[must_use]
    pub fn config(&self, direction: Direction) -> &PipeConfig {
        &self.lane(direction).config
    }

    pub(super) fn size(&self) -> usize {
        self.names.len()
    }

    /// The name of a node. Only this graph numbers nodes, so every number is a valid index.
    pub(super) fn name(&self, node: u32) -> &str {
        &self.names[node as usize]
    }

    pub(super) fn leaving(&self, node: u32) -> &[Direction] {
        &self.leaving[node as usize]
    }

    pub(super) fn node(&self, name: &str) -> Result<u32, TopologyError> {
        self.by_name.get(name).copied().ok_or_else(|| {
            let mut known: Vec<&str> =
                self.by_name.keys().take(MAX_LISTED_NAMES).map(String::as_str).collect();
            if self.by_name.len() > MAX_LISTED_NAMES {
                known.push("…");
            }
            TopologyError::UnknownNode { name: name.to_owned(), known: known.join(", ") }
        })
    }

    pub(super) fn lane(&self, direction: Direction) -> &DirectedEdge {
        self.lanes.get(direction.0 as usize).unwrap_or_else(|| panic!("{direction:?} is not of this graph"))
    }

    fn lane_mut(&mut self, direction: Direction) -> &mut DirectedEdge {
        let lane = self.lanes.get_mut(direction.0 as usize);
        lane.unwrap_or_else(|| panic!("{direction:?} is not of this graph"))
    }
}
