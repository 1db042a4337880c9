//! Which flows are background: an ordered table like a firewall's, in which the first rule that
//! matches decides. A rule matches in the direction of the flow's first SYN. The decision holds for
//! both directions, while the flow lives.

mod analysis;
mod classification;
mod dscp;
mod explain;

pub use analysis::{RuleFinding, analyse};
pub use classification::{Action, Classification, Direction, FlowOrigin, Protocol, Rule, Rules, classify};
pub use dscp::Dscp;
pub use explain::explain;

#[cfg(test)]
mod tests;
