//! Single datagrams that come and leave.

use super::Registry;
use byway_wire::heartbeat::{ANSWERED_LEN, Answered, BEAT, Orders};
use byway_wire::relay::{self, MacKey};
use byway_wire::{Datagram, Dscp, Ecn, Input, Instant, Local, Machine as _, Out, Transmit, Writer};
use core::net::SocketAddr;

/// The bytes of an answer to a heartbeat.
pub(super) fn written(orders: Orders, key: &MacKey) -> [u8; ANSWERED_LEN] {
    let mut bytes = [0; ANSWERED_LEN];
    Answered::new(orders, key).write(&mut Writer::new(&mut bytes));
    bytes
}

/// Writes one.
pub(super) fn send(local: Local, remote: SocketAddr, bytes: &[u8], out: &mut Out<'_>) -> Option<Transmit> {
    let size = bytes.len();
    out.buffer.get_mut(..size)?.copy_from_slice(bytes);
    let (ecn, dscp) = (Ecn::NotEct, Dscp::BestEffort);
    Some(Transmit { local, remote, ecn, dscp, size, segment: size, phantom: 0 })
}

impl Registry {
    /// Gives a datagram to whom it is for.
    pub(super) fn on_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        let Datagram { local, remote, .. } = datagram;
        let first = datagram.payload.first().copied();
        match first.and_then(relay::Kind::of) {
            _ if first == Some(BEAT) && !self.examiner.is_probe(local) => {
                self.on_beat(now, local, remote, datagram.payload)
            }
            Some(relay::Kind::Greeted) => {
                let known = self.examiner.trials().on_greeted(now, remote, datagram.payload);
                self.counters.malformed += u64::from(!known);
            }
            Some(relay::Kind::Notice) => self.examiner.trials().on_notice(remote, datagram.payload),
            Some(relay::Kind::Delivered) if self.examiner.trials().on_delivered(now, datagram.payload) => {}
            // Nobody has business there.
            _ if self.examiner.is_probe(local) => self.counters.malformed += 1,
            _ => self.endpoint.handle(now, Input::Datagram(datagram)),
        }
    }
}
