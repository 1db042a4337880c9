//! How a queue decides what it drops or marks before it is full.

mod codel;
mod red;

pub use codel::{Codel, CodelConfig, Leaving, Queued};
pub use red::{Red, RedConfig, RedVerdict};

/// What a [`Pipe`](crate::Pipe) does with what waits. Its bounds in packets and bytes hold under every discipline.
#[derive(Clone, Debug, PartialEq, Default)]
pub enum Discipline {
    /// First come, first served; what finds the queue full is dropped.
    #[default]
    DropTail,
    /// Random Early Detection: decides when a packet comes.
    Red(RedConfig),
    /// Controlled Delay: decides when a packet's service would begin.
    Codel(CodelConfig),
}
