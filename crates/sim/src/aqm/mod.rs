//! How a queue decides what it drops or marks before it is full.

mod codel;
mod fq_codel;
mod red;

pub use codel::{Codel, CodelConfig, Dequeued, Queued};
pub use fq_codel::{FqCodel, FqCodelConfig};
pub use red::{Red, RedConfig, RedVerdict};

use byway_wire::Instant;

/// The treatment of waiting packets in a [`Pipe`](crate::Pipe). Its limits in packets and bytes
/// always apply.
#[derive(Clone, Debug, PartialEq, Default)]
pub enum Discipline {
    /// First in, first out. A packet that finds the queue full is dropped.
    #[default]
    DropTail,
    /// Random Early Detection: decides when a packet comes.
    Red(RedConfig),
    /// Controlled Delay: decides when a packet's service would begin.
    Codel(CodelConfig),
    /// FQ-CoDel: each flow has its own queue under CoDel, and flows take turns.
    FqCodel(FqCodelConfig),
}

impl Discipline {
    /// Whether the discipline decides about a packet after its arrival.
    #[must_use]
    pub const fn decides_later(&self) -> bool {
        matches!(self, Self::Codel(_) | Self::FqCodel(_))
    }
}

/// The queue of a discipline that decides when a packet's service would begin.
#[derive(Debug)]
pub(crate) enum DequeueAqm {
    One(Codel),
    Fair(FqCodel),
}

impl DequeueAqm {
    /// Makes an empty queue. `salt` is for a hash of flows. `None`: the discipline decides about a
    /// packet at its arrival.
    pub(crate) fn new(discipline: &Discipline, salt: impl FnOnce() -> u64) -> Option<Self> {
        match discipline {
            Discipline::Codel(config) => Some(Self::One(Codel::new(config.clone()))),
            Discipline::FqCodel(config) => Some(Self::Fair(FqCodel::new(config, salt()))),
            Discipline::DropTail | Discipline::Red(_) => None,
        }
    }

    /// Packets and bytes that wait.
    pub(crate) fn total(&self) -> (usize, u64) {
        match self {
            Self::One(codel) => (codel.len(), codel.bytes()),
            Self::Fair(queues) => (queues.len(), queues.bytes()),
        }
    }

    /// A packet of `flow` comes.
    pub(crate) fn enqueue(&mut self, flow: u64, packet: Queued) {
        match self {
            Self::One(codel) => codel.enqueue(packet),
            Self::Fair(queues) => queues.enqueue(flow, packet),
        }
    }

    /// Makes room for another packet, if this queue drops other packets for it. `leaving` is as in
    /// [`FqCodel::dequeue`].
    pub(crate) fn overflow(&mut self, leaving: impl FnMut(usize, Dequeued)) {
        match self {
            Self::One(_) => {}
            Self::Fair(queues) => queues.overflow(leaving),
        }
    }

    /// Serves the next packet on the free line. `leaving` gets the packets that leave the queue, as
    /// in [`FqCodel::dequeue`].
    pub(crate) fn dequeue(&mut self, now: Instant, mut leaving: impl FnMut(usize, Dequeued)) {
        match self {
            // Packets leave in the order in which they came.
            Self::One(codel) => codel.dequeue(now, |fate| leaving(0, fate)),
            Self::Fair(queues) => queues.dequeue(now, leaving),
        }
    }
}
