//! The invented world: links with queues and faults, clocks that drift, nodes that own a [`Machine`](byway_wire::Machine).
//!
//! The code that is simulated is the code that ships: `byway-net` runs the same machines on sockets. Everything here is
//! a function of one seed. Each component (link, tap, workload) draws from a stream of its own that is derived from the
//! world's seed and the component's name, so that adding a node shifts nobody's draws.
//!
//! * [`random`]: the seeded generator.
//! * [`link`]: what a link is; [`pipe`]: the one that most worlds are made of; [`presets`]: named real links.
//! * [`counters`]: books that must balance.
//! * [`clock`]: what time it is on a node.
//! * [`world`]: nodes, routes and the loop that asserts its own laws.
//! * [`shaper`]: a pipe as a machine between two sockets, for the simulated world and the real one.

pub mod clock;
pub mod counters;
pub mod link;
pub mod pipe;
pub mod presets;
pub mod random;
pub mod shaper;

pub mod world;

pub use clock::Clock;
pub use counters::Counters;
pub use link::{Delivery, DropReason, Fate, Link, Occupancy, Offer};
pub use pipe::{Pipe, PipeConfig};
pub use random::Random;

pub use shaper::{Shaper, ShaperConfig, ShaperCounters, Sharing};
pub use world::{Handle, LinkId, Node, NodeId, Seen, Source, Stray, Verdict, World};
