//! A network of the lab on this machine, with real kernels' stacks and real packets. Hosts become
//! network namespaces, and links become pairs of virtual Ethernets. Between the two ends of a link
//! runs the simulator's own link code ([`byway_sim::Pipe`]), driven by the real clock. So a packet
//! is shaped here as it is in the simulator.
//!
//! * [`lab_blueprint`]: a graph becomes hosts with addresses, wires with pipes, and routes. Pure.
//! * [`simplex_link`](mod@simplex_link): one direction of a wire: frames and times in, frames and
//!   times out. Pure.
//! * [`ethernet_frame`]: what has to be known of a frame, and changed in it. Pure.
//! * [`lateness`]: how late frames left, and whether that is too late. Pure.
//! * [`wakeup_lead`]: how much earlier than needed the lab's process wakes up. Pure.
//! * [`lab_directory`]: where labs are written down, and which of them are alive.
//! * [`lab_process`]: the process that is a lab.
//! * [`enter_host`](mod@enter_host): running a program on a host; [`take_down`](mod@take_down):
//!   taking a lab down.
//!
//! # A lab is one process
//!
//! The process of a lab is called its keeper. It is the first process of a PID namespace. Only the
//! keeper holds descriptors of the hosts' network namespaces, in which all devices of the hosts
//! are. When the keeper ends, for whatever reason, the kernel ends all processes on the hosts. It
//! also removes the hosts, devices, routes and firewalls. Only a directory with a few files is
//! left. No process holds the lock in this directory any more, so the next lab knows that it is
//! stale.
//!
//! # Why not …
//!
//! * TAP devices: only root may use `/dev/net/tun`, while an unprivileged user namespace may make
//!   virtual Ethernets and packet sockets.
//! * netlink for links, addresses and routes: one `ip -batch` per host does the same, reports
//!   errors in words, and needs no asynchronous runtime.
//! * address resolution: neighbours are permanent entries. So the first packet takes as long as the
//!   second, and only packets of programs are counted.

pub mod enter_host;
pub mod ethernet_frame;
pub mod lab_blueprint;
pub mod lab_directory;
pub mod lab_process;
pub mod lab_status;
pub mod lateness;
pub mod simplex_link;
pub mod take_down;
pub mod wakeup_lead;

mod devices;
mod frame_forwarding;
mod namespaces;
mod netlink;
mod packet_socket;

pub use enter_host::enter;
pub use lab_blueprint::{Blueprint, BlueprintError};
pub use lab_directory::{HostRecord, Lab, LabDirectory, LabRecord};
pub use lab_process::{KeeperError, keep, prepare};
pub use lab_status::{LinkStatus, Status};
pub use lateness::Lateness;
pub use simplex_link::SimplexLink;
pub use take_down::end;
