//! Reference TCP hosts, to compare byway with. A segment's header of 24 bytes and the 28 bytes that
//! a pipe adds are as long as the headers of IPv4 and TCP with timestamps. A
//! [`Controller`](byway_control::Controller) sets window and rate.

mod acks_and_timeouts;
mod bundle;
mod cbr;
mod connection;
mod datagrams_over_tcp;
mod flow_spec;
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
mod server_config;
mod stack;
mod supply;
mod tail;
pub mod web;

pub use cbr::Cbr;
pub use datagrams_over_tcp::{FrameBytes, TcpCarried, tcp_address};
pub use flow_spec::{
    Demand, Flow, FlowId, FlowReport, FlowTag, ReceiverReport, Subflow, SubflowReport, SubflowState, newreno,
};
pub use host::TcpHost;
pub use options::{MSS_BYTES, PartialAck, Recovery, TcpConfig};
pub use packets::Packets;
pub use relay::TcpRelay;
pub use server_config::{MakeController, ServerConfig};
