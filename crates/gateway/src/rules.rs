//! Which flows are background: an ordered table like a firewall's, in which the first rule that
//! matches decides. A rule matches in the direction of the flow's first SYN. The decision holds for
//! both directions, while the flow lives.

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
