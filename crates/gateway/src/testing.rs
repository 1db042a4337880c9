//! Packets for tests, made by another hand (`etherparse`).

use alloc::vec::Vec;
use etherparse::{PacketBuilder, TcpHeader};

/// Bytes of the IP header before the payload of [`build`].
pub const IP_HEADER_LEN: usize = 20;

/// The addresses of [`tcp_v4`] and [`build`].
pub const V4_ADDRESSES: ([u8; 4], [u8; 4]) = ([10, 0, 0, 1], [10, 0, 1, 2]);

/// A segment with this header and payload in an IPv4 packet.
pub fn build(header: &TcpHeader, payload: &[u8]) -> Vec<u8> {
    let mut packet = Vec::new();
    PacketBuilder::ipv4(V4_ADDRESSES.0, V4_ADDRESSES.1, 64)
        .tcp_header(header.clone())
        .write(&mut packet, payload)
        .unwrap();
    packet
}

fn acknowledging() -> TcpHeader {
    let mut header = TcpHeader::new(40_000, 873, 0x1234_5678, 500);
    (header.ack, header.acknowledgment_number) = (true, 0x9abc_def0);
    header
}

/// A segment of an IPv4 flow that acknowledges.
pub fn tcp_v4(payload: &[u8]) -> Vec<u8> {
    build(&acknowledging(), payload)
}

/// A segment of an IPv6 flow that acknowledges.
pub fn tcp_v6(payload: &[u8]) -> Vec<u8> {
    let mut packet = Vec::new();
    let (mut from, mut to) = ([0x20; 16], [0x20; 16]);
    (from[15], to[15]) = (1, 2);
    PacketBuilder::ipv6(from, to, 64).tcp_header(acknowledging()).write(&mut packet, payload).unwrap();
    packet
}
