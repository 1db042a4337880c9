//! The three lines of the demo: a direct one and two detours, each of another rate and length.

use byway_sim::PipeConfig;
use byway_sim::pipe::OVERHEAD_IPV4;
use std::time::Duration;

/// Bytes that the demo generates, and for which the rates below are meant.
pub const DEFAULT_BYTES: u64 = 32 << 20;
/// The largest packet of the lines, as on most of the Internet.
pub const LINE_MTU: usize = 1500;

/// A path from sender to receiver, and the properties of its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathSpec {
    /// The demo's name of the path.
    pub name: &'static str,
    /// Bits per second, IP and UDP headers included.
    pub rate: u64,
    /// Round trip without a queue.
    pub rtt: Duration,
    /// Packets that may wait.
    pub queue: usize,
}

/// The lines of the demo's three paths, for files of `bytes` bytes in all. For more than
/// `DEFAULT_BYTES`, rates and queues grow in proportion, so that the demo takes about the same
/// time.
#[must_use]
pub fn lines(bytes: u64) -> [PathSpec; 3] {
    let scale = bytes.div_ceil(DEFAULT_BYTES).max(1);
    let line = |name, mbit: u64, millis, queue: usize| PathSpec {
        name,
        rate: mbit * 1_000_000 * scale,
        rtt: Duration::from_millis(millis),
        queue: queue * usize::try_from(scale).unwrap_or(usize::MAX),
    };
    [line("direct", 20, 20, 50), line("via relay 1", 30, 30, 80), line("via relay 2", 15, 45, 60)]
}

impl PathSpec {
    /// Returns the pipe of one direction, if a packet passes `pipes` of them in a row.
    #[must_use]
    pub fn pipe(&self, pipes: u32) -> PipeConfig {
        PipeConfig {
            mtu: Some(LINE_MTU),
            overhead: OVERHEAD_IPV4,
            ..PipeConfig::new(self.rate, self.rtt / 2 / pipes).queue(self.queue)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_larger_tree_gets_faster_lines_and_a_smaller_one_does_not_get_slower_ones() {
        assert_eq!(lines(1), lines(DEFAULT_BYTES));
        assert_eq!(lines(10 * DEFAULT_BYTES)[0].rate, 10 * lines(0)[0].rate);
        assert_eq!(lines(0)[1].pipe(2).delay, Duration::from_micros(7_500));
    }
}
