//! Datagrams that one path took on and did not send yet.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// A datagram that waits to be sent, with the owner's mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct QueuedDatagram {
    /// The number that the owner gave the datagram.
    pub mark: u64,
    pub data: Vec<u8>,
}

/// The datagrams that one path holds, in order.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    parcels: VecDeque<QueuedDatagram>,
    bytes: u64,
}

impl Outbox {
    pub fn is_empty(&self) -> bool {
        self.parcels.is_empty()
    }

    /// The bytes of all datagrams.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The next datagram to send.
    pub fn first(&self) -> Option<&QueuedDatagram> {
        self.parcels.front()
    }

    /// The length in bytes of the datagram after the next.
    pub fn second_length(&self) -> Option<usize> {
        self.parcels.get(1).map(|parcel| parcel.data.len())
    }

    pub fn push(&mut self, parcel: QueuedDatagram) {
        self.bytes += parcel.data.len() as u64;
        self.parcels.push_back(parcel);
    }

    pub fn pop(&mut self) -> Option<QueuedDatagram> {
        let parcel = self.parcels.pop_front()?;
        self.bytes -= parcel.data.len() as u64;
        Some(parcel)
    }
}
