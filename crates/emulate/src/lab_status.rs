//! How a lab is, as its keeper tells it.

use crate::SimplexLink;
use crate::lateness::Lateness;
use byway_sim::link::DropReason;
use byway_wire::Instant;
use serde::{Deserialize, Serialize};

/// How a lab is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Seconds since the lab was ready.
    pub seconds: f64,
    /// Whether the lab's links behaved as the plan says (see [`Lateness::accurate`]).
    pub accurate: bool,
    /// How late packets left.
    pub lateness: Lateness,
    /// The counters of each direction of each link.
    pub links: Vec<LinkStatus>,
}

/// Counters of one direction of a link. Bytes are counted from the IP header on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkStatus {
    /// The two hosts of the link in the direction of its packets, as `alice>bob`.
    pub link: String,
    /// Packets that entered the link.
    pub packets: u64,
    /// Bytes of the packets that entered the link.
    pub bytes: u64,
    /// Packets that left the link at its far end, copies included.
    pub delivered: u64,
    /// Bytes of the packets that left the link at its far end, copies included.
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
    /// The mean time that a packet waited in the queue, in milliseconds.
    pub mean_wait_ms: f64,
}

impl LinkStatus {
    /// The counters of a line until `now`.
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
