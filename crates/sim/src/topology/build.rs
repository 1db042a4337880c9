//! A graph becomes links of a world.

use super::direction::Direction;
use super::error::TopologyError;
use super::graph::Graph;
use crate::pipe::PipeConfig;
use crate::world::{LinkId, RouteSource, World};
use core::net::IpAddr;
use std::collections::{BTreeMap, BTreeSet};

/// The links of a world that were made from a [`Graph`]. The caller adds the hosts, and connects
/// each host to a node by routes. A route between two hosts at the same node has no links.
#[derive(Clone, Debug)]
pub struct Built {
    /// The name and link of every direction of the graph, in the graph's order.
    links: Vec<(String, Option<LinkId>)>,
    names: BTreeMap<String, LinkId>,
}

impl Graph {
    /// Makes a link for each direction of each edge, called "A>B" after the nodes. A link's random
    /// faults are seeded from its name, so added nodes do not change the faults of other links.
    ///
    /// # Panics
    /// If the world has a link of such a name.
    pub fn build(&self, world: &mut World) -> Built {
        self.build_with(world, self.directions(), |world, name, config| world.link(name, config.clone()))
    }

    /// Like `build`, but only for the directions in `used`. `make` adds a link of any kind for one
    /// direction to the world, under the given name.
    ///
    /// # Panics
    /// If the name is taken, or a direction is of another graph.
    pub fn build_with(
        &self,
        world: &mut World,
        used: impl IntoIterator<Item = Direction>,
        mut make: impl FnMut(&mut World, &str, &PipeConfig) -> LinkId,
    ) -> Built {
        let named = self.directions().map(|direction| {
            let (from, to) = self.ends(direction);
            (format!("{from}>{to}"), None)
        });
        let mut built = Built { links: named.collect(), names: BTreeMap::new() };
        // In the graph's order, whatever the order of use: so the links' numbers follow from what
        // is used alone.
        for direction in used.into_iter().collect::<BTreeSet<_>>() {
            let config = self.config(direction);
            let (name, place) = &mut built.links[direction.0 as usize];
            let link = make(world, name, config);
            *place = Some(link);
            built.names.insert(name.clone(), link);
        }
        built
    }
}

impl Built {
    /// Returns the link from a node to its neighbour.
    ///
    /// # Errors
    /// [`TopologyError::NotBuilt`].
    pub fn link(&self, from: &str, to: &str) -> Result<LinkId, TopologyError> {
        let link = format!("{from}>{to}");
        self.names.get(&link).copied().ok_or(TopologyError::NotBuilt { link })
    }

    /// The links of a route.
    ///
    /// # Errors
    /// [`TopologyError::NotBuilt`].
    ///
    /// # Panics
    /// If the way is of another graph.
    pub fn links(&self, way: &[Direction]) -> Result<Vec<LinkId>, TopologyError> {
        let find = |direction: &Direction| {
            let (name, link) = &self.links[direction.0 as usize];
            link.ok_or_else(|| TopologyError::NotBuilt { link: name.clone() })
        };
        way.iter().map(find).collect()
    }

    /// Routes packets from `from` to the IP address `to` along this way.
    ///
    /// # Errors
    /// [`TopologyError::NotBuilt`].
    pub fn route(
        &self,
        world: &mut World,
        from: impl Into<RouteSource>,
        to: IpAddr,
        way: &[Direction],
    ) -> Result<(), TopologyError> {
        world.route(from, to, &self.links(way)?);
        Ok(())
    }
}
