//! Emulates a network with real packets on this machine: a lab. Hosts are network namespaces, and
//! links end in virtual Ethernet devices. The simulator's [`byway_sim::Pipe`] runs inside links, by
//! the real clock.
//!
//! | module without I/O | purpose |
//! |---|---|
//! | [`lab_blueprint`] | plans hosts, wires and routes from a graph |
//! | [`simplex_link`](mod@simplex_link) | one direction of a link |
//! | [`ethernet_frame`] | reads a frame's size, ECN mark and flow, and sets the mark CE |
//! | [`lateness`] | how late frames left, and whether measurements are still valid |
//! | [`wakeup_lead`] | how early the lab's process must wake up before a frame is due |
//!
//! | module with I/O | purpose |
//! |---|---|
//! | [`lab_directory`] | the files of each lab, and whether the lab is alive |
//! | [`lab_process`] | the process that runs a lab |
//! | [`enter_host`](mod@enter_host) | moves a process into a host of a lab |
//! | [`take_down`](mod@take_down) | ends a lab |
//!
//! The keeper, the first process of a PID namespace, runs the lab. When the keeper ends, the kernel
//! removes the lab's processes and network namespaces.
//!
//! | not used | reason |
//! |---|---|
//! | TAP devices | need root; packet sockets also work in an unprivileged user namespace |
//! | Netlink for links and routes | `ip -batch` does the same, and reports errors in words |
//! | ARP, neighbour discovery | permanent entries do not delay the first packet |

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
mod keeper_error;
mod namespaces;
mod netlink;
mod packet_socket;

pub use enter_host::enter;
pub use keeper_error::KeeperError;
pub use lab_blueprint::{Blueprint, BlueprintError};
pub use lab_directory::{HostRecord, Lab, LabDirectory, LabRecord};
pub use lab_process::{keep, prepare};
pub use lab_status::{LinkStatus, Status};
pub use lateness::Lateness;
pub use simplex_link::SimplexLink;
pub use take_down::end;
