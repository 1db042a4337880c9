//! A simulated network: links with queues and faults, clocks that drift, and nodes that own a
//! [`Machine`](byway_wire::Machine).
//!
//! The simulated code is the code that ships: `byway-net` runs the same machines on sockets.
//! Everything in a world is a function of one seed. Each component, such as a link or a workload,
//! draws from a random stream of its own. The stream is derived from the world's seed and the
//! component's name, so an added node changes nobody else's draws.
//!
//! * [`random`]: the seeded generator.
//! * [`link`]: what a link is.
//! * [`pipe`]: the kind of link that most worlds are made of.
//! * [`aqm`]: how a queue decides what to drop or mark (active queue management).
//! * [`presets`]: named real links.
//! * [`counters`]: packet counters that must balance.
//! * [`clock`]: what time it is on a node.
//! * [`world`]: nodes, routes and the event loop, which asserts its own laws.
//! * [`tcp`]: reference TCP hosts, web clients and plain cross traffic.
//! * [`topology`]: networks as data, routes over them, generators and the papers' networks.
//! * [`shaper`]: a pipe as a machine between two sockets, for the simulated world and the real one.
//!
//! A test makes a world, puts machines into it, joins them and looks:
//!
//! ```
//! use byway_sim::{PipeConfig, Shaper, ShaperConfig, World};
//! use byway_wire::{Duration, Ecn, Instant};
//!
//! let (alice, front, bob) = ([10, 0, 0, 1], [10, 0, 0, 2], [10, 0, 0, 3]);
//! let [alice, front, bob] = [alice, front, bob].map(|ip| (ip, 4000).into());
//! let back = ([10, 0, 0, 2], 4001).into();
//! let mut world = World::new(42);
//! let slow = PipeConfig::new(1_000_000, Duration::from_millis(5)).queue(10);
//! // Any machine is a node: here one that forwards to bob, slowly.
//! let shaper = world.add("shaper", Shaper::new(ShaperConfig::new(bob, slow.clone(), slow)), &[front, back]);
//! let (there, _) = world.connect(back, bob, PipeConfig::default(), PipeConfig::default());
//! world.inject(Instant::from_millis(1), alice, front, Ecn::NotEct, b"hello");
//! assert!(world.run_while(|world| world.counters(there).sent == 0, Instant::from_millis(1_000)));
//! // 33 bytes with headers at 1 Mbit/s, and 5 ms.
//! assert_eq!(world.now(), Instant::from_micros(6_264));
//! assert_eq!(world[shaper].counters().clients, 1);
//! ```

pub mod aqm;
pub mod clock;
pub mod counters;
pub mod link;
pub mod pipe;
pub mod presets;
pub mod random;
pub mod shaper;
pub mod tcp;
pub mod topology;

pub mod world;

pub use aqm::Discipline;
pub use clock::Clock;
pub use counters::LinkCounters;
pub use link::{Delivery, DropReason, Link, Occupancy, Offer, PacketOutcome};
pub use pipe::{Pipe, PipeConfig};
pub use random::Random;

pub use shaper::{Shaper, ShaperConfig, ShaperCounters, Sharing};
pub use world::{
    CaptureDirection, Captured, Handle, LinkEvent, LinkFact, LinkId, Node, NodeId, RouteSource,
    StrayCounters, TapVerdict, TappedDatagram, World,
};
