//! The arguments, verbs, progress and exit codes of the program `byway`. Other crates move the
//! data.
//!
//! The program is a library with a thin `main`, so that tests and fuzz targets reach every parser
//! of user input.

pub mod args;
pub mod exit;
#[cfg(feature = "gateway")]
pub mod gateway;
pub mod marking;
mod messages;
pub mod output;
pub mod signals;
pub mod verb;

pub use byway_transfer::{address, units};
