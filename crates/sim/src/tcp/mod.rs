//! Reference TCP hosts. byway is compared with them, and shares links with them.
//!
//! A segment has a header of 24 bytes and SACK blocks. Its data is only a length. A pipe adds 28
//! bytes for IPv4 and UDP. These 52 bytes equal the headers of IPv4 and TCP with timestamps (RFC
//! 7323), so a full segment is 1 500 bytes on the line.
//!
//! A host records what is in flight, lost and delivered. From this, a
//! [`Controller`](byway_control::Controller) sets the congestion window and the rate. So every
//! congestion control runs here as in a real transfer.

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
