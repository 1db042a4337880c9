//! The way of a path.

/// A route through the network.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PathChoice {
    /// The route that the routers choose.
    Direct,
    /// The route through this node.
    Through(String),
    /// Through nodes chosen by the seed: how their names begin, and how many are chosen.
    Any(String, usize),
    /// Routes through relays that the registry offers.
    Registry,
}
