//! Puts a flow's packets in order at the exit (Harp, III.C). A packet waits until the packets
//! before it arrive, or its timer expires. Then it leaves, with all earlier packets that have
//! arrived. Missing packets are given up.

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
