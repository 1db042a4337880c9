//! The duration of a test case of the scoreboard in simulated time. It is only as long as reliable
//! results need, to save processor time. Simulating a fast line costs up to a hundred times as much
//! as a slow line.

use super::cases::LATE_START_MS;
use super::grid::{Foreground, Paths, Scene};
use super::transfer_mix::TransferMix;

/// A scene from beginning to end, in milliseconds. The transfers begin at 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SceneTimes {
    /// The start of the foreground or, without one, the time from which the transfers' bytes count.
    pub begin: u32,
    /// The end of the foreground, or the time of its last request.
    pub end: u32,
    /// When the scene does.
    pub stop: u32,
    /// Between two requests, pages or chunks, on average.
    pub every: u32,
    /// Number of requests, pages, chunks or packets.
    pub count: u32,
}

/// Number of requests, as in `lab harm`. On fast lines half as many suffice for a 90th percentile.
const REQUEST_COUNT: u32 = 300;
/// Number of pages to fetch.
const PAGE_COUNT: u32 = 24;
/// Bits of a page: 30 objects of 7.8 KB on average.
const PAGE_BITS: u32 = 30 * 7_800 * 8;
/// Milliseconds for which one transfer over several paths is measured.
const MULTIPATH_MS: u32 = 50_000;
/// Chunks of a video: a chunk is more than a request, and its percentiles are steadier.
const CHUNK_COUNT: u32 = 30;

impl Scene {
    /// The times of the scene.
    #[must_use]
    pub fn times(&self) -> SceneTimes {
        let rtt = self.line.rtt_ms;
        // What a law needs to settle: seconds, and round trips of which it grows by a packet.
        let settled = if self.line.mbit < 300 { 10_000 + 50 * rtt } else { 5_000 + 20 * rtt };
        let fast = match self.line.mbit {
            0..300 => 1,
            300..1_000 => 2,
            _ => 4,
        };
        let (every, count) = match self.foreground {
            Foreground::Requests => (200 / fast, if fast == 1 { REQUEST_COUNT } else { REQUEST_COUNT / 2 }),
            Foreground::Video => (2_000 / fast, CHUNK_COUNT),
            // Pages do not take more than a quarter of the line, nor wait for each other.
            Foreground::Page => {
                let sent = 4 * PAGE_BITS / (self.line.mbit * 1_000);
                (sent.max(6 * rtt).max(2_000 / fast), PAGE_COUNT)
            }
            // A packet every 20 ms.
            Foreground::Call => (20, 1_000 / fast),
            Foreground::Cubic | Foreground::Bbr | Foreground::Nobody => (0, 0),
        };
        let company = match self.foreground {
            _ if self.foreground.is_bulk() => 20_000 / fast + 50 * rtt,
            _ => every * count,
        };
        // What was asked last comes; a bulk flow's line is had again.
        let after = match self.foreground {
            _ if self.foreground.is_bulk() => 8_000 + 40 * rtt,
            _ if self.line.mbit < 7 => 10_000,
            _ => 3_000,
        };
        if self.foreground == Foreground::Nobody {
            // What several paths have is compared once all are there.
            let several = self.line.paths != Paths::One && self.transfers == 1;
            let begin = match self.among {
                TransferMix::Late => LATE_START_MS,
                TransferMix::Single => settled,
                _ if several => settled,
                _ => 0,
            };
            // Whether transfers share is seen in the second minute; what fast lines cost allows
            // less.
            let length = match (self.transfers, self.line.mbit) {
                _ if several => MULTIPATH_MS,
                (1, 0..300) => 20_000,
                (1, _) => 10_000,
                (_, 0..=50) => 120_000,
                (_, 0..300) => 60_000,
                _ => 20_000,
            };
            let stop = begin + length;
            return SceneTimes { begin, end: stop, stop, every, count };
        }
        let begin = settled;
        SceneTimes { begin, end: begin + company, stop: begin + company + after, every, count }
    }

    /// Returns the megabits that the line could carry in the scene, as its cost.
    #[must_use]
    pub fn cost(&self) -> u64 {
        u64::from(self.line.mbit * self.line.paths.lines()) * u64::from(self.times().stop) / 1_000
    }
}
