//! The hosts' side: packets that wait to be put out there, and buffers for those to come.

use super::packet_buffer::{HEADROOM_BYTES, PacketBuffer};
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Buffers that are kept for packets to come.
const MAX_SPARE_BUFFERS: usize = 256;

/// Packets that wait to be sent to hosts of this site, and unused buffers.
#[derive(Debug)]
pub(super) struct Hosts {
    out: VecDeque<PacketBuffer>,
    /// Packets that wait at most.
    most: usize,
    spare: Vec<Vec<u8>>,
    overrun: u64,
}

impl Hosts {
    /// Nothing waits, and at most `most` packets will.
    pub fn new(most: usize) -> Self {
        Self { out: VecDeque::new(), most: most.max(1), spare: Vec::new(), overrun: 0 }
    }

    /// The next packet for the hosts' side.
    pub fn next_packet(&mut self) -> Option<PacketBuffer> {
        self.out.pop_front()
    }

    /// Puts a packet out. If the queue to the hosts is full, its oldest packet is dropped, as on
    /// any link.
    pub fn put_out(&mut self, parcel: PacketBuffer) {
        self.out.push_back(parcel);
        while self.out.len() > self.most
            && let Some(oldest) = self.out.pop_front()
        {
            self.overrun += 1;
            self.recycle(oldest.into_buffer());
        }
    }

    /// Packets that the hosts' side took too late, dropped.
    pub const fn overrun(&self) -> u64 {
        self.overrun
    }

    /// A buffer for a packet, used before if there is one.
    pub fn buffer(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }

    /// Gives back the buffer of a packet.
    pub fn recycle(&mut self, buffer: Vec<u8>) {
        if self.spare.len() < MAX_SPARE_BUFFERS {
            self.spare.push(buffer);
        }
    }

    /// The packet that begins `header` bytes into a datagram. It is moved only if the header has an
    /// unusual length.
    pub fn unpack(&mut self, header: usize, mut datagram: Vec<u8>) -> PacketBuffer {
        if header != HEADROOM_BYTES {
            let copy =
                PacketBuffer::copy(self.buffer(), datagram.get(header..).unwrap_or_default()).into_buffer();
            self.recycle(core::mem::replace(&mut datagram, copy));
        }
        PacketBuffer::new(datagram)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(byte: u8) -> PacketBuffer {
        PacketBuffer::copy(Vec::new(), &[byte])
    }

    #[test]
    fn the_oldest_goes_and_its_buffer_is_used_again() {
        let mut hosts = Hosts::new(2);
        (0..3).for_each(|byte| hosts.put_out(packet(byte)));
        assert_eq!(hosts.overrun(), 1);
        assert!(hosts.buffer().capacity() > 0, "that of the first");
        assert_eq!(hosts.buffer().capacity(), 0);
        assert_eq!([hosts.next_packet(), hosts.next_packet()], [Some(packet(1)), Some(packet(2))]);
        assert_eq!(hosts.next_packet(), None);
    }

    #[test]
    fn a_packet_behind_the_usual_header_stays_where_it_is() {
        let mut hosts = Hosts::new(2);
        let datagram = [&[7; HEADROOM_BYTES][..], b"packet"].concat();
        let place = datagram.as_ptr();
        let parcel = hosts.unpack(HEADROOM_BYTES, datagram);
        assert_eq!(parcel.packet(), b"packet");
        let buffer = parcel.into_buffer();
        assert_eq!(buffer.as_ptr(), place);
        assert_eq!(hosts.unpack(1, b"7packet".to_vec()).packet(), b"packet");
        assert!(hosts.unpack(9, b"7".to_vec()).is_empty());
    }
}
