//! The program `byway`: arguments, verbs, progress, exit codes.
//!
//! A library with a thin `main`, so that tests and fuzz targets reach everything that a person's input reaches. What
//! moves the data lives in the crates below; here is what a person types and reads.

pub mod args;
pub mod demo;
pub mod exit;
pub mod gateway;
pub mod identity;
pub mod marking;
pub mod memory;
pub mod output;
pub mod relaying;
pub mod secret;
pub mod signals;
pub mod state;
pub mod ticket;
pub mod transfer;
pub mod units;
pub mod verb;
pub mod word;
