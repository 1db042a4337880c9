//! Unmodified hosts' background flows in and out of a session: IP packets, TCP flows, and the rules that choose them.
#![no_std]

extern crate alloc;

pub mod checksum;
pub mod clamp;
pub mod encap;
pub mod entry;
pub mod flow;
pub mod ip;
pub mod key;
mod lists;
pub mod pass;
pub mod pick;
pub mod prefix;
pub mod reorder;
pub mod rules;
pub mod segment;
pub mod serves;
pub mod tcp;
pub mod window;

#[cfg(test)]
mod testing;

pub use checksum::State;
pub use key::FlowKey;
pub use pass::{Pass, Passed};
pub use prefix::{Ports, Prefix};
pub use rules::{Origin, Rules, Verdict, classify};
pub use segment::Segment;
