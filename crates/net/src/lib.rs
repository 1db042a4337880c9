//! The real world for machines: sockets, a clock, entropy, and the loop that drives a [`Machine`](byway_wire::Machine)
//! with them. Its twin, `byway-sim`, invents all of these; a machine cannot tell the two apart.
//!
//! Bind [`Socket`]s first. Then give a machine and its [`Owner`] to [`spawn`] (a thread of its own) or [`run`] (this thread). Other
//! threads talk to the owner through bounded channels and its [`Waker`]. Needs Linux (eventfd, `epoll`, UDP segmentation).
//!
//! ```
//! use byway_net::{Clock, Flow, Owner, Socket, spawn};
//! # use byway_wire::{Input, Machine, Out, Transmit};
//! use byway_wire::Instant;
//! use std::sync::mpsc;
//! # #[derive(Default)] struct Session(Vec<String>);
//! # impl Session { fn say(&mut self, word: String) { self.0.push(word); } }
//! # impl Machine for Session {
//! #     fn handle(&mut self, _: Instant, _: Input<'_>) {}
//! #     fn wake(&mut self, _: Instant) {}
//! #     fn transmit(&mut self, _: Instant, _: &mut Out<'_>) -> Option<Transmit> { None }
//! #     fn deadline(&self) -> Option<Instant> { None }
//! # }
//!
//! struct Sayer(mpsc::Receiver<String>);
//! impl Owner for Sayer {
//!     type Machine = Session;
//!     fn turn(&mut self, session: &mut Session, _now: Instant) -> Flow {
//!         self.0.try_iter().for_each(|word| session.say(word));
//!         Flow::Continue
//!     }
//! }
//!
//! let (words, inbox) = mpsc::sync_channel(64);
//! let socket = Socket::bind("127.0.0.1:0".parse()?)?;
//! let driver = spawn("session", Session::default(), Sayer(inbox), vec![socket], Clock::new())?;
//! words.send("hello".to_owned())?;
//! driver.waker().wake();
//! driver.stop();
//! assert_eq!(driver.join()?.machine.0, ["hello"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod asked;
mod capabilities;
mod carrier;
mod clock;
mod connections;
mod control;
mod depth;
mod device;
mod driver;
mod entropy;
mod interfaces;
mod knock;
mod links;
mod listener;
mod outbox;
mod receive;
mod send;
mod service;
mod socket;
mod statistics;
mod tcp;
mod traffic;
#[cfg(feature = "tun")]
mod tun;
mod wait;
mod waker;
mod watch;
mod ways_out;

pub use capabilities::{allow_descriptors, has_net_admin, keep_net_admin};
pub use carrier::Carrier;
pub use clock::{Clock, unix_seconds};
pub use control::{Control, Handle, Panicked, spawn, spawn_with};
pub use depth::{Depth, TcpCongestion};
pub use device::DeviceSource;
pub use driver::{DriverError, Finished, Flow, Owner, run};
pub use entropy::{EntropyError, seed};
pub use interfaces::{Interface, interfaces, source_for};
pub use knock::{Echo, Knock};
pub use listener::Listener;
pub use service::{READY, STOPPING, notify};
pub use socket::{BUFFER_BYTES, BindError, Buffers, Socket};
pub use statistics::Statistics;
pub use tcp::{Dialing, TcpCarrier};
pub use traffic::Traffic;
#[cfg(feature = "tun")]
pub use tun::{Tun, TunError};
pub use waker::Waker;
pub use watch::{Ready, Token, Watch};
pub use ways_out::way_out;
