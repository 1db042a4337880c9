//! An IP packet with room before it for what the session's datagram begins with, so that no packet
//! is moved in memory.

use crate::encap::{BATCHED_LEN, Label, Message, ORDERED_LEN, UNORDERED_LEN};
use crate::loss::LossRuleKind;
use alloc::vec::Vec;
use byway_wire::Writer;

/// Bytes of room before the packet.
pub const HEADROOM_BYTES: usize = ORDERED_LEN;

/// An IP packet in a buffer, behind [`HEADROOM_BYTES`] bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketBuffer(Vec<u8>);

impl PacketBuffer {
    /// A copy of `packet`, in `buffer`, whose contents go.
    #[must_use]
    pub fn copy(mut buffer: Vec<u8>, packet: &[u8]) -> Self {
        buffer.clear();
        buffer.resize(HEADROOM_BYTES, 0);
        buffer.extend_from_slice(packet);
        Self(buffer)
    }

    /// The packet in `buffer` behind [`HEADROOM_BYTES`] bytes. An empty packet if `buffer` is
    /// shorter.
    #[must_use]
    pub fn new(mut buffer: Vec<u8>) -> Self {
        if buffer.len() < HEADROOM_BYTES {
            buffer.resize(HEADROOM_BYTES, 0);
        }
        Self(buffer)
    }

    /// Copies the packet in a datagram to a peer. `None`: the datagram has none.
    pub(super) fn of_datagram(datagram: &[u8]) -> Option<Self> {
        match Message::read(datagram).ok()? {
            Message::Ordered { packet, .. }
            | Message::Batched { packet, .. }
            | Message::Unordered { packet } => Some(Self::copy(Vec::new(), packet)),
            Message::Serves { .. } | Message::Loss { .. } | Message::Relay { .. } | Message::Table { .. } => {
                None
            }
        }
    }

    /// The IP packet.
    #[must_use]
    pub fn packet(&self) -> &[u8] {
        self.0.get(HEADROOM_BYTES..).unwrap_or_default()
    }

    /// The packet, to be changed.
    pub fn packet_mut(&mut self) -> &mut [u8] {
        self.0.get_mut(HEADROOM_BYTES..).unwrap_or_default()
    }

    /// Bytes of the packet.
    #[must_use]
    pub fn len(&self) -> usize {
        self.packet().len()
    }

    /// Whether there is no packet in the buffer.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.packet().is_empty()
    }

    /// The buffer, with the room before the packet.
    #[must_use]
    pub fn into_buffer(self) -> Vec<u8> {
        self.0
    }

    /// The datagram that carries the packet in order, with room for a map if the rule wants one.
    pub(super) fn in_place(self, rule: LossRuleKind, label: Label, sequence: u32) -> Vec<u8> {
        if rule != LossRuleKind::Batched {
            return self.ordered(label, sequence);
        }
        let mut datagram = alloc::vec![0; BATCHED_LEN];
        Message::Batched { label, sequence, map: 0, packet: &[] }
            .write_header(&mut Writer::new(&mut datagram));
        datagram.extend_from_slice(self.packet());
        datagram
    }

    /// The datagram that carries the packet in order.
    pub(super) fn ordered(mut self, label: Label, sequence: u32) -> Vec<u8> {
        if let Some(room) = self.0.get_mut(..ORDERED_LEN) {
            Message::Ordered { label, sequence, packet: &[] }.write_header(&mut Writer::new(room));
        }
        self.0
    }

    /// Makes a datagram that carries the packet without an order. The packet is moved by a few
    /// bytes, so it should be small.
    pub(super) fn unordered(mut self) -> Vec<u8> {
        self.0.drain(..HEADROOM_BYTES.saturating_sub(UNORDERED_LEN));
        if let Some(room) = self.0.get_mut(..UNORDERED_LEN) {
            Message::Unordered { packet: &[] }.write_header(&mut Writer::new(room));
        }
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_becomes_a_datagram_where_it_stands() {
        let parcel = PacketBuffer::copy(alloc::vec![9; 3], b"packet");
        assert_eq!((parcel.packet(), parcel.len()), (&b"packet"[..], 6));
        let place = parcel.0.as_ptr();
        let datagram = parcel.ordered(Label::new(7), 5);
        assert_eq!(datagram.as_ptr(), place);
        let read = Message::read(&datagram).unwrap();
        assert_eq!(read, Message::Ordered { label: Label::new(7), sequence: 5, packet: b"packet" });
        assert_eq!(PacketBuffer::new(datagram).packet(), b"packet");
        assert!(PacketBuffer::new(alloc::vec![1]).is_empty());
    }

    #[test]
    fn datagrams_of_each_kind() {
        let parcel = || PacketBuffer::copy(Vec::new(), b"packet");
        let (label, packet) = (Label::new(7), &b"packet"[..]);
        assert_eq!(Message::read(&parcel().unordered()), Ok(Message::Unordered { packet }));
        let batched = parcel().in_place(LossRuleKind::Batched, label, 5);
        assert_eq!(Message::read(&batched), Ok(Message::Batched { label, sequence: 5, map: 0, packet }));
        for datagram in [parcel().unordered(), batched, parcel().ordered(label, 5)] {
            assert_eq!(PacketBuffer::of_datagram(&datagram), Some(parcel()));
        }
        assert_eq!(PacketBuffer::of_datagram(&[0x12, 1, 2]), None);
    }
}
