//! How a lab is, as its keeper tells it.

use crate::SimplexLink;
use crate::lateness::Lateness;
use byway_sim::link::DropReason;
use byway_wire::Instant;
use serde::{Deserialize, Serialize};

/// How a lab is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Seconds since it was ready.
    pub seconds: f64,
    /// Whether its links were what the plan says, by [`Lateness::accurate`].
    pub accurate: bool,
    /// How late packets left.
    pub lateness: Lateness,
    /// Each direction of each link.
    pub links: Vec<LinkStatus>,
}

/// What one direction of a link did. Sizes count from the IP header on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkStatus {
    /// Both ends of the link, as `alice>bob`.
    pub link: String,
    /// Packets that came to it.
    pub packets: u64,
    /// Bytes of the packets that came to it.
    pub bytes: u64,
    /// Packets that arrived at its far end, copies included.
    pub delivered: u64,
    /// Bytes of the packets that arrived at its far end, copies included.
    pub delivered_bytes: u64,
    /// Packets that found the queue full.
    pub dropped_queue: u64,
    /// Packets that the queue's discipline dropped.
    pub dropped_managed: u64,
    /// Packets that were lost by chance.
    pub dropped_loss: u64,
    /// Packets that came while the link was down, or were too large.
    pub dropped_other: u64,
    /// Packets that were marked CE.
    pub marked: u64,
    /// Packets that wait now.
    pub waiting: usize,
    /// How long a packet waited for its service on average, in milliseconds.
    pub mean_wait_ms: f64,
}

impl LinkStatus {
    /// What a line did until `now`.
    #[must_use]
    pub fn of(link: String, line: &SimplexLink, now: Instant) -> Self {
        let counters = line.counters();
        let dropped = |reason| counters.dropped_for(reason);
        Self {
            link,
            packets: counters.sent,
            bytes: counters.sent_bytes,
            delivered: counters.delivered,
            delivered_bytes: counters.delivered_bytes,
            dropped_queue: dropped(DropReason::QueueFull),
            dropped_managed: dropped(DropReason::Managed),
            dropped_loss: dropped(DropReason::Loss),
            dropped_other: dropped(DropReason::Partition) + dropped(DropReason::TooLarge),
            marked: counters.marked,
            waiting: line.waiting(now).packets,
            mean_wait_ms: counters.mean_wait().as_secs_f64() * 1e3,
        }
    }
}
