//! What the interface of a host tells of its line: what it carries, what of it byway sends, and how
//! fast the line is. Pure state machines over the interface's byte counters.
//!
//! | module | what it is |
//! |---|---|
//! | [`interface_counters`] | the counters, and what passed between two looks at them |
//! | [`unseen_bytes`] | what byway sent and the counters have yet to show; so, what the host itself sends |
//! | [`carried_rate`] | the rate that the line was seen to carry |
#![no_std]

pub mod carried_rate;
pub mod interface_counters;
pub mod unseen_bytes;

pub use carried_rate::CarriedRate;
pub use interface_counters::{CounterLook, CounterReader, InterfaceCounters};
pub use unseen_bytes::UnseenBytes;
