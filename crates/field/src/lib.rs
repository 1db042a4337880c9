//! The parts of the lab that need this machine: experiments that are run and stored, networks that
//! are built here for a plan, and transfers by real programs.
//!
//! [`byway_lab`] simulates, without clock or processes. [`byway_emulate`] builds networks, without
//! knowing plans. This crate combines the two. A program on top of this crate adds arguments,
//! messages and exit codes, and learns through callbacks what happens.
//!
//! * [`experiments`]: runs, judges and stores experiments and plans. [`directories`]: where they
//!   are.
//! * [`experiment_list`]: all experiments, each with its claims and its newest result.
//! * [`scoreboard`]: compares congestion controls. [`fuzz`]: runs random networks.
//! * [`network`]: reads what network to build. [`labs`]: starts, enters and ends labs.
//! * [`emulation`]: runs a plan's transfers by real programs. [`http_requests`]: the requests
//!   beside them.
//! * [`demo`]: a transfer on loopback, over the simulator's links.
//! * [`harm`]: how much longer requests take beside bulk transfers, emulated or simulated.

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
