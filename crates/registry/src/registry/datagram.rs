//! Single datagrams that leave.

use byway_wire::heartbeat::{ANSWERED_LEN, HeartbeatAnswer, HeartbeatOrders};
use byway_wire::relay::MacKey;
use byway_wire::{Dscp, Ecn, Local, Transmit, TransmitBuffer, Writer};
use core::net::SocketAddr;

/// The bytes of an answer to a heartbeat.
pub(super) fn written(orders: HeartbeatOrders, key: &MacKey) -> [u8; ANSWERED_LEN] {
    let mut bytes = [0; ANSWERED_LEN];
    HeartbeatAnswer::new(orders, key).write(&mut Writer::new(&mut bytes));
    bytes
}

/// Writes one datagram into `out`.
pub(super) fn send(
    local: Local,
    remote: SocketAddr,
    bytes: &[u8],
    out: &mut TransmitBuffer<'_>,
) -> Option<Transmit> {
    let size = bytes.len();
    out.buffer.get_mut(..size)?.copy_from_slice(bytes);
    let (ecn, dscp) = (Ecn::NotEct, Dscp::BestEffort);
    Some(Transmit { local, remote, ecn, dscp, size, segment: size, phantom: 0 })
}
