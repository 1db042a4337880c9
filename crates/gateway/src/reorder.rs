//! Packets of a flow put in order at the exit, so that the receiver sees no difference between
//! paths.
//!
//! "If packets are in sequence, they are sent immediately to the receiver. Otherwise, they are kept
//! in a reorder queue till either the packets before them arrive (and thus complete the sequence)
//! or a timer expires" (Harp, III.C). The timer runs from a packet's arrival. When it expires, this
//! packet leaves, with all packets before it that have arrived. The exit does not wait any more for
//! packets before it that are missing.

mod delays;
mod exit;
mod lateness;
mod queue;
mod stats;
mod timer;

pub use delays::{PathDelay, PathDelays};
pub use exit::{ExitLimits, ReorderQueues};
pub use lateness::PacketLateness;
pub use queue::{ArrivedPacket, FlowLimits, Reorder};
pub use stats::{BOUNDS_MS, Release, WaitStats};
pub use timer::Timer;

#[cfg(test)]
mod tests;
