//! What a rule is told, and what it answers.

use alloc::vec::Vec;
use byway_wire::PathId;
use core::fmt;

/// A packet as it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentPacket {
    /// The path it took.
    pub path: PathId,
    /// The number of the packet on that path.
    pub number: u64,
    /// The first of its bytes, or its place if packets are counted.
    pub start: u64,
    /// One past the last.
    pub end: u64,
}

/// What a rule knows of packets, and what it makes of it.
pub trait LossRule: fmt::Debug + Send {
    /// A packet is sent. Starts only ever grow, and so do the numbers of a path.
    fn on_sent(&mut self, packet: SentPacket);

    /// Says that `packet` has arrived. Packets that this arrival proves lost are added to `lost`,
    /// each packet at most once. `packet` itself may have been reported lost before.
    fn on_arrived(&mut self, packet: SentPacket, lost: &mut Vec<SentPacket>);

    /// A packet was not sent after all: its path gave it back.
    fn withdraw(&mut self, packet: SentPacket);

    /// Returns all packets in flight on a path as lost, because the path was closed or its
    /// retransmission timeout expired. The path may be used again.
    fn close(&mut self, path: PathId) -> Vec<SentPacket>;
}
