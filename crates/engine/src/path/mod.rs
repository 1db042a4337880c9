//! What is known of one path. A path owns facts: numbers, round-trip time, one-way delay, bytes in
//! flight, losses, size. What to make of them is the controller's and the scheduler's business.

pub mod delay;
pub mod dscp_support;
pub mod ecn;
pub mod mtu;
pub mod pacer;
pub mod receive;
pub mod reordering;
pub mod rtt;
pub mod send;
pub mod sent_packets;
pub mod transport;
