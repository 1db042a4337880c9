//! A network of the lab on this machine, with real kernels' stacks and real packets. Hosts become
//! network namespaces, and links become pairs of virtual Ethernets. Between the two ends of a link
//! stands the simulator's own link code, driven by the real clock. What shapes a packet here is
//! what shapes it there ([`byway_sim::Pipe`]).
//!
//! * [`lab_blueprint`]: a graph becomes hosts with addresses, wires with pipes, and routes. Pure.
//! * [`simplex_link`](mod@simplex_link): one direction of a wire: frames and times in, frames and
//!   times out. Pure.
//! * [`ethernet_frame`]: what has to be known of a frame, and changed in it. Pure.
//! * [`lateness`]: how late frames left, and whether that is too late. Pure.
//! * [`wakeup_lead`]: how much earlier to get up. Pure.
//! * [`lab_directory`]: where labs are written down, and which of them are alive.
//! * [`lab_process`]: the process that is a lab.
//! * [`enter_host`](mod@enter_host): running a program on a host; [`take_down`](mod@take_down):
//!   taking a lab down.
//!
//! # A lab is one process
//!
//! The keeper is the first process of a PID namespace. It holds the network namespaces of all hosts
//! open by descriptors that nobody else has. Their devices live in no other. So when it ends, by
//! whatever way, the kernel ends all that runs on the hosts. It takes hosts, devices, routes and
//! firewalls away. Nothing is left that could be forgotten but a directory with a few files, which
//! whoever comes next recognises by a lock that nobody holds.
//!
//! # Why not …
//!
//! * TAP devices: `/dev/net/tun` is root's, while an unprivileged user namespace may make virtual
//!   Ethernets and packet sockets.
//! * netlink for links, addresses and routes. One `ip -batch` per host does it, says in words what
//!   was wrong, and needs no asynchronous runtime.
//! * address resolution: neighbours are entered for good, so that the first packet takes as long as
//!   the second and only what somebody sends is counted.

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
