//! The interface of a rule that finds lost packets.

use alloc::vec::Vec;
use byway_wire::PathId;
use core::fmt;

/// A packet as the entry gateway sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentPacket {
    /// The path on which the packet was sent.
    pub path: PathId,
    /// The number of the packet on that path.
    pub number: u64,
    /// The number of the packet's first byte, or of the packet if packets are counted.
    pub start: u64,
    /// One more than the number of the packet's last byte.
    pub end: u64,
}

/// A rule that decides which packets were lost.
pub trait LossRule: fmt::Debug + Send {
    /// A packet is sent. Starts only ever grow, and so do the numbers of a path.
    fn on_sent(&mut self, packet: SentPacket);

    /// Says that `packet` has arrived. Packets that this arrival proves lost are added to `lost`,
    /// each packet at most once. `packet` itself may have been reported lost before.
    fn on_arrived(&mut self, packet: SentPacket, lost: &mut Vec<SentPacket>);

    /// Forgets a packet that its path returned, so that it was not sent.
    fn withdraw(&mut self, packet: SentPacket);

    /// Returns all packets in flight on a path as lost, because the path was closed or its
    /// retransmission timeout expired. The path may be used again.
    fn close(&mut self, path: PathId) -> Vec<SentPacket>;
}
