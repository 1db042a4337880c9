//! Which flows are background: an ordered table like a firewall's, in which the first rule that
//! matches decides.
//!
//! A rule matches a flow in the direction in which it was opened: from the host that sent the first
//! SYN to the host that the SYN was for. The decision holds for both directions of the flow, and
//! for as long as the flow lives.

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
