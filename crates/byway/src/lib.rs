//! The arguments, verbs, progress and exit codes of the program `byway`.
//!
//! A library with a thin `main`, so that tests and fuzz targets reach everything that a person's
//! input reaches. What moves the data lives in the crates below; here is what a person types and
//! reads.

pub mod args;
pub mod exit;
#[cfg(feature = "gateway")]
pub mod gateway;
pub mod marking;
pub mod output;
pub mod signals;
pub mod verb;

pub use byway_transfer::{address, units};
