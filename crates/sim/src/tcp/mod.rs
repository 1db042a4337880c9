//! Reference TCP hosts: what byway is measured against, and shares links with.
//!
//! A segment carries a header of 24 bytes and SACK blocks; its data is only a length. A pipe counts
//! 28 bytes for IPv4 and UDP. Together that is as much as IPv4, TCP and timestamps (RFC 7323) take.
//! So a full segment is 1 500 bytes on the line.
//!
//! The host owns the facts. They are what is in flight, lost and delivered, and how long it took.
//! The judgement is a [`Controller`](byway_control::Controller)'s, so every congestion control runs
//! here as it does in a real transfer.

mod acking;
mod bundle;
mod carried;
mod cbr;
mod connection;
mod flow;
mod host;
mod options;
mod pace;
mod packets;
mod rack;
mod ranges;
mod receive;
mod relay;
mod rtt;
mod scoreboard;
mod segment;
mod sending;
mod stack;
mod supply;
mod tail;
pub mod web;

pub use carried::{Bytes, Carried, tcp_address};
pub use cbr::Cbr;
pub use flow::{Demand, Flow, FlowId, Received, Report, Subflow, SubflowReport, SubflowState, Tag, newreno};
pub use host::{Host, Serve};
pub use options::{MSS, Options, Recovery};
pub use packets::Packets;
pub use relay::Relay;
