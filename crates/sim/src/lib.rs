//! A simulated network: links with queues and faults, clocks that drift, and nodes that own a
//! [`Machine`](byway_wire::Machine). `byway-net` runs the same machines on sockets. All that
//! happens in a world follows from one seed. A component's random numbers follow from the seed and
//! the component's name.
//!
//! | module | content |
//! |---|---|
//! | [`random`] | the seeded generator of random numbers |
//! | [`link`] | the trait of all links |
//! | [`pipe`] | the usual link, with a queue, a rate, a delay and faults |
//! | [`aqm`] | active queue management, which decides what a queue drops or marks |
//! | [`presets`] | links named after access technologies, such as `dsl` |
//! | [`counters`] | the packet counters of a link |
//! | [`clock`] | the time that a node sees |
//! | [`world`] | nodes, routes and the event loop |
//! | [`tcp`] | reference TCP hosts, web clients and UDP cross traffic |
//! | [`topology`] | networks as graphs, their routes, generators, and the networks of papers |
//! | [`shaper`] | a link emulator between two sockets, simulated or real |
//!
//! A test makes a world, adds machines, connects them and checks the outcome:
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
