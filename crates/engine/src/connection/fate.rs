//! What became of what a packet carried, told to whoever had it sent.

use super::datagrams::Datagrams;
use super::probing::Farewells;
use crate::data::{Carried, Incoming, Outgoing};

/// It arrived.
pub(super) fn arrived(
    out: &mut Outgoing,
    farewells: &mut Farewells,
    datagrams: &mut Datagrams,
    carried: &Carried,
) {
    match carried {
        Carried::Datagram(mark) => datagrams.on_fate(*mark, true),
        Carried::PathDropped(id) => farewells.on_known(*id),
        _ => out.on_acked(carried),
    }
}

/// It is lost: what must arrive goes out again.
pub(super) fn lost(
    out: &mut Outgoing,
    incoming: &mut Incoming,
    farewells: &mut Farewells,
    datagrams: &mut Datagrams,
    carried: &Carried,
) {
    match carried {
        Carried::Datagram(mark) => datagrams.on_fate(*mark, false),
        Carried::PathDropped(id) => farewells.due.push_back(*id),
        Carried::MaxData | Carried::MaxStreamData(_) | Carried::StopSending(_) => incoming.on_lost(carried),
        _ => out.on_lost(carried),
    }
}
