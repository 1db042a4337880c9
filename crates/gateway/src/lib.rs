//! Carries background flows of unmodified hosts over the paths of a session (papers: Harp, HIR). A
//! background flow enters at the gateway of one site, travels over all paths, and leaves at the
//! other gateway in order. TCP stays end to end. The code has no socket, clock, thread or
//! randomness.
//!
//! | a packet's way | module |
//! |---|---|
//! | what it is: headers and options, or the reason to leave it alone | [`ip_header`], [`tcp_header`], [`tcp_segment`], [`bypass`] |
//! | who makes the checksum right | [`checksum`] |
//! | whether its flow is background, and what the rules mean | [`rules`], [`ports`] |
//! | which gateway serves its destination | [`serves`]; what others tell of it: [`forwarded_announcements`] |
//! | a host that asks a gateway to be served | [`joining`] |
//! | the flow it is of: SYN to FIN, window scale | [`flow_table`], [`key`] |
//! | a SYN's segment size lowered by what the session adds | [`clamp`] |
//! | an ACK's receive window lowered to what the paths can carry in a round trip | [`receive_window`] |
//! | waiting at the entry, fair among flows | [`entry`] |
//! | which path takes it | [`path_selection`] |
//! | what stands before it in a datagram | [`encap`] |
//! | a host told that no path carries its large packets | [`icmp`] |
//! | put in order at the exit, and for how long that may take | [`reorder`] |
//! | what is lost, by three rules; one penalty per path and epoch | [`loss`], [`epoch`] |
//! | kept at the entry to mend losses there, if asked for | [`cache`] |
//! | what a gateway may be told, and what that means | [`gateway_options`] |
//! | all of it together: entry and exit at once, sessions with many peers | [`machine`] |
//! | what it is doing, for programs | [`report`] |
//! | what the kernel does for it, as texts for `nft` and `ip` | [`kernel`] |
//!
//! Congestion that shows as delay is detected in `byway_control::detector`.
#![no_std]

extern crate alloc;

pub mod bypass;
pub mod cache;
pub mod checksum;
pub mod clamp;
mod counters;
pub mod encap;
pub mod entry;
pub mod epoch;
pub mod flow_table;
pub mod forwarded_announcements;
pub mod gateway_options;
pub mod icmp;
pub mod ip_header;
pub mod joining;
pub mod kernel;
pub mod key;
mod linked_lists;
pub mod loss;
pub mod machine;
pub mod path_selection;
pub mod ports;
pub mod receive_window;
pub mod reorder;
pub mod report;
pub mod rules;
pub mod serves;
pub mod tcp_header;
pub mod tcp_segment;

#[cfg(test)]
mod testing;

pub use bypass::{BypassCounters, BypassReason};
pub use byway_wire::Prefix;
pub use checksum::ChecksumState;
pub use encap::{Label, Message};
pub use flow_table::{FlowId, FlowTable};
pub use key::FlowKey;
pub use ports::Ports;
pub use reorder::ReorderQueues;
pub use rules::{Classification, FlowOrigin, Rules, classify};
pub use tcp_segment::Segment;
