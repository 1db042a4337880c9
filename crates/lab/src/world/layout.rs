//! The places of hosts: their addresses, and the routes between them.

use super::run_error::RunError;
use crate::setup::{NodeChoice, PathChoice, RegistrySetup, Transfer};
use byway_sim::topology::{Built, Direction, Graph};
use byway_sim::{PipeConfig, Random, World};
use core::net::{IpAddr, SocketAddr};
use std::collections::{BTreeMap, BTreeSet};

/// The name of the way that routers choose.
pub(super) const DIRECT_WAY: &str = "direct";

/// Gives out addresses, and remembers which way leads from which to which.
#[derive(Debug)]
pub(super) struct Layout<'a> {
    graph: &'a Graph,
    given: u32,
    routes: Vec<(IpAddr, IpAddr, Vec<Direction>)>,
    used: BTreeSet<Direction>,
    /// The nodes of hosts whose routes are found when needed.
    free: BTreeMap<IpAddr, String>,
}

impl<'a> Layout<'a> {
    pub(super) fn new(graph: &'a Graph) -> Self {
        Self { graph, given: 0, routes: Vec::new(), used: BTreeSet::new(), free: BTreeMap::new() }
    }

    /// Returns an address in 10.0.0.0/8 that no other host has.
    pub(super) fn address(&mut self, port: u16) -> SocketAddr {
        self.given += 1;
        let [_, a, b, c] = self.given.to_be_bytes();
        ([10, a, b, c], port).into()
    }

    /// Lets the host `a` at one node and the host `b` at another reach each other, through a node
    /// perhaps; back as there.
    pub(super) fn join(
        &mut self,
        (a, at): (SocketAddr, &str),
        (b, to): (SocketAddr, &str),
        through: Option<&str>,
    ) -> Result<Vec<Direction>, RunError> {
        let there = self.graph.way(at, to, through.as_slice())?;
        let back: Vec<Direction> = there.iter().rev().map(|direction| direction.reversed()).collect();
        self.used.extend(there.iter().chain(&back));
        self.routes.push((a.ip(), b.ip(), there.clone()));
        self.routes.push((b.ip(), a.ip(), back));
        Ok(there)
    }

    /// Lets the host at this node reach every other of that kind, and be reached.
    pub(super) fn place(&mut self, host: SocketAddr, at: &str) {
        self.free.insert(host.ip(), at.to_owned());
    }

    /// The network.
    pub(super) const fn graph(&self) -> &'a Graph {
        self.graph
    }

    /// Returns the routes between hosts, by their ends.
    pub(super) fn ways(&self) -> impl Iterator<Item = ((IpAddr, IpAddr), &[Direction])> {
        self.routes.iter().map(|(from, to, way)| ((*from, *to), way.as_slice()))
    }

    /// Every direction on a way.
    pub(super) const fn used(&self) -> &BTreeSet<Direction> {
        &self.used
    }

    /// Makes the links that are used, and the routes.
    pub(super) fn build(&self, world: &mut World) -> Result<Built, RunError> {
        let make = |world: &mut World, name: &str, config: &PipeConfig| world.link(name, config.clone());
        let built = if self.free.is_empty() {
            self.graph.build_with(world, self.used.iter().copied(), make)
        } else {
            self.graph.build_with(world, self.graph.directions(), make)
        };
        for (from, to, way) in &self.routes {
            built.route(world, *from, *to, way)?;
        }
        if !self.free.is_empty() {
            let (graph, built, free) = (self.graph.clone(), built.clone(), self.free.clone());
            world.route_by(move |from, to| {
                // Back as there.
                let back = from > to;
                let (first, last) = if back { (to, from) } else { (from, to) };
                let mut way = graph.way(free.get(&first)?, free.get(&last)?, &[]).ok()?;
                if back {
                    way.reverse();
                    way.iter_mut().for_each(|direction| *direction = direction.reversed());
                }
                built.links(&way).ok()
            });
        }
        Ok(built)
    }
}

/// A transfer whose ends and ways are chosen.
#[derive(Clone, Debug)]
pub(super) struct PlacedTransfer {
    pub(super) from: String,
    pub(super) to: String,
    /// The node of each way; `None`: as the routers route. No two are the same.
    pub(super) ways: Vec<Option<String>>,
    /// Whether the registry names more.
    by_registry: bool,
}

impl PlacedTransfer {
    /// Chooses the nodes that the plan leaves to chance, by the seed.
    pub(super) fn new(transfer: &Transfer, graph: &Graph, seed: u64) -> Result<Self, RunError> {
        let mut random = Random::component(seed, &format!("ends of {}", transfer.name));
        let taken = |end: &NodeChoice| match end {
            NodeChoice::Node(node) => node.clone(),
            NodeChoice::Any(_) => String::new(),
        };
        let from = choose(&transfer.from, &taken(&transfer.to), graph, &mut random)
            .ok_or_else(|| none(transfer, &transfer.from))?;
        let to =
            choose(&transfer.to, &from, graph, &mut random).ok_or_else(|| none(transfer, &transfer.to))?;
        let mut placed = Self { from, to, ways: Vec::new(), by_registry: false };
        let mut random = Random::component(seed, &format!("ways of {}", transfer.name));
        for way in &transfer.paths {
            match way {
                PathChoice::Direct => placed.ways.push(None),
                PathChoice::Through(node) => {
                    placed.check(transfer, graph, node)?;
                    placed.ways.push(Some(node.clone()));
                }
                PathChoice::Any(prefix, count) => {
                    let chosen = some(&transfer.name, prefix, *count, graph, &mut random, |node| {
                        placed.is_free(node)
                    })?;
                    placed.ways.extend(chosen.into_iter().map(Some));
                }
                PathChoice::Registry => placed.by_registry = true,
            }
        }
        Ok(placed)
    }

    /// Whether the registry names more ways.
    pub(super) const fn asks(&self) -> bool {
        self.by_registry
    }

    fn check(&self, transfer: &Transfer, graph: &Graph, node: &str) -> Result<(), RunError> {
        if self.is_free(node) {
            // From a node to itself the way is empty; that there is such a node is found all the
            // same.
            return graph.way(node, node, &[]).map(drop).map_err(RunError::from);
        }
        Err(RunError::OwnRelay { transfer: transfer.name.clone(), node: node.to_owned() })
    }

    fn is_free(&self, node: &str) -> bool {
        node != self.from && node != self.to && !self.ways.iter().flatten().any(|taken| taken == node)
    }
}

/// The nodes of a registry's relays.
pub(super) fn enrolled(registry: &RegistrySetup, graph: &Graph, seed: u64) -> Result<Vec<String>, RunError> {
    let mut random = Random::component(seed, "relays of the registry");
    let mut nodes: Vec<String> = Vec::new();
    for way in &registry.relays {
        match way {
            PathChoice::Through(node) => {
                graph.way(node, node, &[])?;
                nodes.push(node.clone());
            }
            PathChoice::Any(prefix, count) => {
                let chosen = some("registry", prefix, *count, graph, &mut random, |node| {
                    !nodes.iter().any(|it| it == node)
                })?;
                nodes.extend(chosen);
            }
            // A plan that says so is refused.
            PathChoice::Direct | PathChoice::Registry => {}
        }
    }
    Ok(nodes)
}

/// Chooses `count` of the nodes that begin with `prefix` and `fit`.
fn some(
    who: &str,
    prefix: &str,
    count: usize,
    graph: &Graph,
    random: &mut Random,
    fit: impl Fn(&str) -> bool,
) -> Result<Vec<String>, RunError> {
    let free = |node: &&str| node.starts_with(prefix) && fit(node);
    let mut nodes: Vec<String> = graph.nodes().filter(free).map(str::to_owned).collect();
    if nodes.len() < count {
        let (transfer, prefix) = (who.to_owned(), prefix.to_owned());
        return Err(RunError::TooFew { transfer, prefix, wanted: count, there: nodes.len() });
    }
    let draw = |_| nodes.swap_remove(random.below(nodes.len() as u64) as usize);
    Ok((0..count).map(draw).collect())
}

fn choose(end: &NodeChoice, other: &str, graph: &Graph, random: &mut Random) -> Option<String> {
    match end {
        NodeChoice::Node(node) => Some(node.clone()),
        NodeChoice::Any(prefix) => {
            let fits = |node: &&str| node.starts_with(prefix.as_str()) && *node != other;
            let nodes: Vec<&str> = graph.nodes().filter(fits).collect();
            nodes.get(random.below(nodes.len() as u64) as usize).map(|node| (*node).to_owned())
        }
    }
}

fn none(transfer: &Transfer, end: &NodeChoice) -> RunError {
    let (NodeChoice::Node(prefix) | NodeChoice::Any(prefix)) = end;
    RunError::TooFew { transfer: transfer.name.clone(), prefix: prefix.clone(), wanted: 1, there: 0 }
}
