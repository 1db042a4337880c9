//! A lane: programs connect to a port of loopback, and their uploads leave by the kernel's TCP so
//! that others on the uplink hardly wait. The far end needs no byway.
//!
//! ```text
//! program ──TCP── lane ──TCP of this kernel── target
//!                  │ what is written: one pacer for all connections, by the law `background`
//!                  └ what comes back: as it comes
//! ```
//!
//! | module without I/O | what it is |
//! |---|---|
//! | [`pacer`] | when the next run of segments may be written |
//! | [`write_ledger`] | what one connection has written, sent and got acknowledged |
//! | [`base_rtts`] | each target's RTT without a queue, and what a sample waited |
//! | `active_bases` | the RTTs of the targets that bytes go to at present |
//! | [`uplink`] | the law on what all connections tell |
//! | `connect_request` | HTTP CONNECT as programs speak it |
//!
//! | module with I/O | what it is |
//! |---|---|
//! | `interface_watch` | the counters of the interface by which connections leave |
//! | `observer` | what the uplink carries, for a person who only looks |
//! | `kernel_stamps` | the kernel's time stamps of segments and ACKs |
//! | `program_dialog` | how a program names its target, on its socket |
//! | `paced_target` | the connection to a target, as a stream that a program's connection is joined with |
//! | [`report_text`] | what a lane says |
//! | [`proxy`] | listens, dials, and joins connections |
//! | `running_lane` | the thread of a lane, and what its owner holds |
#![warn(clippy::print_stdout, clippy::print_stderr, clippy::exit)]

mod active_bases;
pub mod base_rtts;
mod connect_request;
mod interface_watch;
mod kernel_stamps;
mod observer;
mod paced_target;
pub mod pacer;
mod program_dialog;
pub mod proxy;
pub mod report_text;
mod running_lane;
pub mod uplink;
pub mod write_ledger;

pub use observer::UplinkObserver;
pub use running_lane::{LaneError, RunningLane, check_loopback};
