//! Which flows are background: an ordered table like a firewall's, in which the first rule that
//! matches decides.
//!
//! A rule speaks of a flow as it was opened: from the host that sent the first SYN to the one that
//! it was for. Both directions of the flow, and what is in them, follow from that one decision. A
//! flow keeps it for as long as it lives.

mod analysis;
mod dscp;
mod explain;
mod table;

pub use analysis::{RuleFinding, analyse};
pub use dscp::Dscp;
pub use explain::explain;
pub use table::{Action, Classification, Direction, FlowOrigin, Protocol, Rule, Rules, classify};

#[cfg(test)]
mod tests;
