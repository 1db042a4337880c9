//! Reference TCP hosts: what byway is measured against, and shares links with.
//!
//! A segment carries a header of 24 bytes and SACK blocks; its data is only a length. A pipe counts
//! 28 bytes for IPv4 and UDP. Together that is as much as IPv4, TCP and timestamps (RFC 7323) take.
//! So a full segment is 1 500 bytes on the line.
//!
//! The host owns the facts. They are what is in flight, lost and delivered, and how long it took.
//! The judgement is a [`Controller`](byway_control::Controller)'s, so every congestion control runs
//! here as it does in a real transfer.

mod ack_processing;
mod bundle;
mod cbr;
mod connection;
mod datagrams_over_tcp;
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

pub use cbr::Cbr;
pub use datagrams_over_tcp::{FrameBytes, TcpCarried, tcp_address};
pub use flow::{
    Demand, Flow, FlowId, FlowReport, FlowTag, ReceiverReport, Subflow, SubflowReport, SubflowState, newreno,
};
pub use host::{ServerConfig, TcpHost};
pub use options::{MSS, Recovery, TcpConfig};
pub use packets::Packets;
pub use relay::TcpRelay;
