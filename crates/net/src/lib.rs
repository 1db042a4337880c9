//! Runs a [`Machine`](byway_wire::Machine), a protocol without I/O of its own, with real sockets, a
//! real clock and the system's entropy. `byway-sim` simulates the same machine.
//!
//! Give [`Socket`]s, a machine and its [`Owner`] (the application's code on top of the machine) to
//! [`spawn`] (a thread of its own) or [`run`] (this thread). Other threads send messages to the
//! owner by channels, and wake it by its [`Waker`]. Needs Linux (eventfd, `epoll`, UDP
//! segmentation).
//!
//! ```
//! use byway_net::{Clock, LoopControl, Owner, Socket, spawn};
//! # use byway_wire::{Input, Machine, TransmitBuffer, Transmit};
//! use byway_wire::Instant;
//! use std::sync::mpsc;
//! # #[derive(Default)] struct Session(Vec<String>);
//! # impl Session { fn say(&mut self, word: String) { self.0.push(word); } }
//! # impl Machine for Session {
//! #     fn handle(&mut self, _: Instant, _: Input<'_>) {}
//! #     fn wake(&mut self, _: Instant) {}
//! #     fn transmit(&mut self, _: Instant, _: &mut TransmitBuffer<'_>) -> Option<Transmit> { None }
//! #     fn deadline(&self) -> Option<Instant> { None }
//! # }
//!
//! struct Sayer(mpsc::Receiver<String>);
//! impl Owner for Sayer {
//!     type Machine = Session;
//!     fn turn(&mut self, session: &mut Session, _now: Instant) -> LoopControl {
//!         self.0.try_iter().for_each(|word| session.say(word));
//!         LoopControl::Continue
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

mod address_changes;
mod address_sockets;
mod capabilities;
mod carrier;
mod clock;
mod connection_permit;
mod connections;
mod device;
mod driver;
mod driver_control;
mod driver_thread;
mod entropy;
mod icmp_errors;
mod interfaces;
mod links;
mod owned_machine;
mod owner;
mod pending_dials;
mod receive_batch;
mod route_lookup;
mod route_traffic;
mod send_backlog;
mod send_batch;
mod socket;
mod statistics;
mod systemd_notify;
mod tcp;
mod tcp_limits;
mod tcp_listener;
mod timed_wait;
mod traffic;
mod traffic_class;
#[cfg(feature = "tun")]
mod tun;
mod uplink_ledger;
mod waker;
mod watched_fds;

pub use address_changes::AddressChanges;
pub use capabilities::{allow_descriptors, has_net_admin, keep_net_admin};
pub use carrier::Carrier;
pub use clock::{Clock, unix_millis, unix_seconds};
pub use device::DeviceSource;
pub use driver::{DriverError, Finished, run};
pub use driver_control::Control;
pub use driver_thread::{Handle, Panicked, spawn, spawn_with};
pub use entropy::{EntropyError, seed};
pub use icmp_errors::{IcmpError, IcmpProbe};
pub use interfaces::{Interface, interface_addresses, interfaces, source_for};
pub use owner::{LoopControl, Owner};
pub use route_lookup::{is_own, way_out};
pub use route_traffic::{RouteLook, RouteTraffic};
pub use socket::{BUFFER_BYTES, BindError, Buffers, SendLimit, Socket};
pub use statistics::Statistics;
pub use systemd_notify::{NOTIFY_READY, NOTIFY_STOPPING, notify};
pub use tcp::{Dialing, TcpCarrier};
pub use tcp_limits::{TcpCongestion, TcpLimits};
pub use tcp_listener::{Backlog, Listener};
pub use traffic::Traffic;
#[cfg(feature = "tun")]
pub use tun::{Tun, TunError};
pub use uplink_ledger::{LedgerNews, UplinkLedger};
pub use waker::Waker;
pub use watched_fds::{Ready, Token, Watch};
