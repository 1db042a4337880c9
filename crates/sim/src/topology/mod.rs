//! Networks as data: named nodes, edges that carry a pipe in each direction, and static routes. A
//! [`Graph`] is written by hand, or made by [`named`]. [`Graph::way`] finds routes.
//! [`Graph::build`] makes the links in a [`World`](crate::World).
//!
//! ```
//! use byway_sim::topology::{Parameters, named};
//! use byway_sim::World;
//! use byway_wire::Duration;
//!
//! let graph = named("harp-t1", &Parameters::new(1).with("mbit", 20.0))?;
//! let (direct, relayed) = (graph.way("S1", "R1", &[])?, graph.way("S1", "R1", &["T2"])?);
//! assert_eq!(graph.bottleneck(&relayed), Some(20_000_000));
//! assert_eq!(graph.base_rtt(&direct, &graph.way("R1", "S1", &[])?), Duration::from_millis(24));
//!
//! let mut world = World::new(1);
//! let built = graph.build(&mut world);
//! let (sender, receiver) = (([10, 0, 0, 1], 4000), ([10, 0, 0, 2], 4000));
//! let receiver: std::net::SocketAddr = receiver.into();
//! built.route(&mut world, std::net::SocketAddr::from(sender), receiver.ip(), &relayed)?;
//! assert_eq!(world.counters(built.link("T2", "T3")?).sent, 0);
//! # Ok::<(), byway_sim::topology::TopologyError>(())
//! ```

mod bmc;
mod build;
mod direction;
mod dumbbell;
mod error;
mod graph;
mod harp;
mod hir;
mod internet;
mod measure;
mod mpath;
mod parameters;
mod random_graph;
mod registry;
mod route_cache;
mod routing;
mod wang;

pub use build::Built;
pub use direction::Direction;
pub use dumbbell::{BundlePath, bundle, dumbbell};
pub use error::TopologyError;
pub use graph::Graph;
pub use internet::{Internet, internet};
pub use measure::{MEMORY_PER_PACKET, Traffic, bdp_packets};
pub use parameters::{Parameter, Parameters};
pub use random_graph::{LinkRanges, TransitStub, transit_stub, waxman};
pub use registry::{KNOWN_TOPOLOGIES, NamedTopology, named};
pub use wang::{Overlay, wang};
