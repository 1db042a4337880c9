//! A stack's state of connections that the owner writes and reads itself.

use crate::tcp::flow_spec::Subflow;
use crate::tcp::options::TcpConfig;

/// A connection of a stack: the slot is this connection's as long as it has this port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tcp) struct ByHand {
    pub slot: u32,
    pub port: u32,
}

/// The destination to which a relay forwards received data.
#[derive(Clone, Debug)]
pub(in crate::tcp) struct Onward {
    pub to: Subflow,
    pub options: TcpConfig,
    pub pairs: Vec<Pair>,
}

/// An accepted connection, and the flow that forwards its data.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Pair {
    pub(super) slot: u32,
    /// The port of the connection. The slot belongs to it only while the port is the same.
    pub(super) port: u32,
    pub bundle: u32,
    /// Bytes that came in order.
    pub came: u64,
    /// Bytes that came in order and that the next end has acknowledged.
    pub gone: u64,
    pub(super) ended: bool,
}
