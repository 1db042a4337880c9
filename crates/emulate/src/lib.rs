//! Emulates a network on this machine, with the kernel's network stack and real packets. Such a
//! network is called a lab. Its hosts are network namespaces, and its links end in virtual Ethernet
//! devices. Between the two ends of a link runs the simulator's link code ([`byway_sim::Pipe`]),
//! driven by the real clock. So links shape packets here as in the simulator.
//!
//! Modules without I/O:
//!
//! * [`lab_blueprint`]: makes a plan of hosts, wires and routes from a graph.
//! * [`simplex_link`](mod@simplex_link): one direction of a link.
//! * [`ethernet_frame`]: reads a frame's size, ECN mark and flow, and sets the ECN mark "congestion
//!   experienced".
//! * [`lateness`]: how late frames left their links, and whether measurements are still valid.
//! * [`wakeup_lead`]: by how much the lab's process must wake up before a frame is due.
//!
//! Modules with I/O:
//!
//! * [`lab_directory`]: the files of each lab, and whether the lab is alive.
//! * [`lab_process`]: the process that runs a lab.
//! * [`enter_host`](mod@enter_host): moves a process into a host of a lab.
//! * [`take_down`](mod@take_down): ends a lab.
//!
//! # A lab is one process
//!
//! The process that runs a lab is called its keeper. It is the first process of a PID namespace.
//! Only the keeper holds descriptors of the hosts' network namespaces. So when the keeper ends, for
//! whatever reason, the kernel ends all processes on the hosts, and removes the network namespaces
//! with all devices, routes and firewalls. Only a directory with a few files is left, and the next
//! lab of the same name reuses this directory.
//!
//! # Why not …
//!
//! * TAP devices: only root may use `/dev/net/tun`. Virtual Ethernets and packet sockets also work
//!   in an unprivileged user namespace.
//! * Netlink for links, addresses and routes: one call of `ip -batch` per host does the same, and
//!   reports errors in words.
//! * Address resolution (ARP, neighbour discovery): all neighbour entries are permanent. So no
//!   address request delays the first packet, and links carry only packets of programs.

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
