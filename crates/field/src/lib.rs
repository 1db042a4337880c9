//! The parts of the lab that need this machine: stored experiments, emulated networks, and
//! transfers by real programs.
//!
//! [`byway_lab`] only simulates, without clock or processes. [`byway_emulate`] builds networks, but
//! cannot read plans. This crate combines the two. Callbacks tell the program that uses this crate
//! what happens.
//!
//! | module | what it does |
//! |---|---|
//! | [`experiment_run`] | runs, judges and stores experiments |
//! | [`directories`] | the directories with the files of experiments |
//! | [`experiment_list`] | all experiments, each with its claims and its newest result |
//! | [`scoreboard`] | compares congestion controls |
//! | [`sweep`] | cuts plans into tasks for many machines, and gathers their rows |
//! | [`fuzz`] | simulates random networks |
//! | [`new_controller`] | a crate to begin with for a congestion controller of one's own |
//! | [`network`] | reads which network to emulate |
//! | [`labs`] | starts, enters and ends emulated networks |
//! | [`emulation`] | runs the transfers of a plan by real programs |
//! | [`http_requests`] | makes the requests of a plan by real programs |
//! | [`harm`] | measures how much longer requests take beside bulk transfers |

pub mod directories;
pub mod emulation;
pub mod error;
pub mod experiment_list;
pub mod experiment_run;
pub mod fuzz;
pub mod harm;
pub mod harm_table;
pub mod http_requests;
pub mod labs;
pub mod link_table;
pub mod network;
pub mod new_controller;
pub mod scoreboard;
pub mod sweep;

mod date;
mod program_hash;
mod quiet_panics;
mod result_files;
mod result_store;
mod thread_time;

pub use error::{Error, Result};
