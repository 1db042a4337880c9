//! The end-to-end session over many paths: sealed packets, recovery per path, streams, objects and datagrams above them.
//!
//! Pure: it is told the time and handed its entropy; datagrams go in, datagrams and deadlines come out.
#![no_std]

extern crate alloc;

pub mod data;
pub mod handshake;
pub mod seal;
