//! What the interface of a host tells of its line: what it carries, what of it byway sends, and how
//! fast the line is. Pure state machines over the interface's byte counters.
//!
//! | module | what it is |
//! |---|---|
//! | [`interface_counters`] | the counters, and what passed between two looks at them |
//! | [`unseen_bytes`] | what byway sent and the counters have yet to show: the rest is what the host sends |
//! | [`recent_unseen`] | the same, for whoever does not know how the interface counts headers |
//! | [`governor`] | what a session of byway may send by the uplink |
//! | [`host_record`] | what the host had sent at a past time |
//! | [`host_traffic`] | what the host sends, and how long the line needs for it |
//! | [`carried_rate`] | the rate that the line was seen to carry in a window |
//! | [`observation`] | what an uplink carries, for a person who only looks |
//! | [`shared_queue`] | whether all paths meet the same queue |
//! | [`line_rate`] | the line's rate, learnt from queues, and how near byway goes to it |
//! | [`line_share`] | how sessions on one host share the line |
#![no_std]

#[cfg(test)]
extern crate std;

pub mod carried_rate;
pub mod governor;
pub mod host_record;
pub mod host_traffic;
pub mod interface_counters;
pub mod line_rate;
pub mod line_share;
pub mod observation;
pub mod recent_unseen;
pub mod shared_queue;
pub mod unseen_bytes;

pub use carried_rate::CarriedRate;
pub use governor::{Governor, Permission, SessionReading};
pub use host_record::HostRecord;
pub use host_traffic::{HostTraffic, Way};
pub use interface_counters::{CounterLook, CounterReader, InterfaceCounters};
pub use line_rate::LineRate;
pub use line_share::{LineShare, OtherSessions};
pub use observation::{Observation, ObservedUplink};
pub use recent_unseen::RecentUnseen;
pub use shared_queue::SharedQueue;
pub use unseen_bytes::UnseenBytes;
