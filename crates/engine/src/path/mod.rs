//! The facts about one path. A path holds facts: packet numbers, round-trip time, one-way delay,
//! bytes in flight, losses and datagram size. The congestion controller and the scheduler decide
//! what follows from these facts.

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
