//! The parts of the lab that need this machine: experiments that are run and stored, plans'
//! networks built on this machine, and transfers by real programs.
//!
//! [`byway_lab`] uses neither clock nor processes, and [`byway_emulate`] knows nothing of plans.
//! This crate combines them. A program on top of it adds arguments, messages and exit codes, and is
//! told through callbacks what happens. The programs that run on hosts are the kernel's TCP,
//! iperf3, and byway itself, whose path is a parameter.
//!
//! * [`experiments`]: experiments and plans run, judged and written down; [`directories`]: where
//!   they are.
//! * [`experiment_list`]: what is claimed, and what came of it the last time.
//! * [`scoreboard`] and [`fuzz`]: the lab's other questions.
//! * [`network`]: what is to be built; [`labs`]: the labs on this machine, from `up` to `down`.
//! * [`emulation`]: the transfers of a plan by real programs; [`http_requests`]: the requests
//!   beside them.
//! * [`demo`]: a transfer on loopback, over the simulator's links.
//! * [`harm`]: what requests wait for beside bulk transfers, emulated or simulated.

pub mod demo;
pub mod directories;
pub mod emulation;
pub mod error;
pub mod experiment_list;
pub mod experiments;
pub mod fuzz;
pub mod harm;
pub mod http_requests;
pub mod labs;
pub mod network;
pub mod scoreboard;

mod date;
mod result_store;

pub use error::{Error, Result};
