//! What packets carry, and what became of it: streams and objects, datagrams, and the names of dropped paths.

use super::closed::Farewells;
use super::outbox::Outbox;
use super::parcels::Datagrams;
use crate::config::{Config, Params};
use crate::data::{Carried, Incoming, Outgoing};

/// All that the packets of a connection carry.
#[derive(Debug)]
pub(super) struct Exchange {
    out: Outgoing,
    incoming: Incoming,
    datagrams: Datagrams,
    farewells: Farewells,
    /// Whether the owner has nothing more to add.
    finishing: bool,
}

impl Exchange {
    pub fn new(config: &Config, params: &Params) -> Self {
        let mut out = Outgoing::new(config.outgoing).made_of(config.payload);
        out.on_max_data(params.max_data);
        out.set_initial_stream_limit(params.max_stream_data);
        let mut incoming = Incoming::new(config.incoming).made_of(config.payload);
        if let Some(least) = config.least_window() {
            incoming = incoming.sharing(least);
        }
        let (datagrams, farewells) = (Datagrams::new(config), Farewells::default());
        Self { out, incoming, datagrams, farewells, finishing: false }
    }

    pub const fn out(&mut self) -> &mut Outgoing {
        &mut self.out
    }

    pub const fn incoming(&mut self) -> &mut Incoming {
        &mut self.incoming
    }

    pub const fn datagrams(&mut self) -> &mut Datagrams {
        &mut self.datagrams
    }

    pub const fn farewells(&mut self) -> &mut Farewells {
        &mut self.farewells
    }

    /// Why no more data are sent, if not for want of window.
    pub fn blocked_by(&self) -> Option<crate::data::Blocked> {
        self.out.blocked_by()
    }

    /// One above the highest path id of ours that the peer is known to know.
    pub const fn known_ids(&self) -> u32 {
        self.farewells.known()
    }

    /// Whether data of streams and objects want to be sent.
    pub fn has_data(&self) -> bool {
        self.out.wants_to_send()
    }

    /// Whether data or datagrams want to be sent.
    pub fn has_any(&self) -> bool {
        self.has_data() || self.datagrams.waiting() > 0
    }

    /// Whether limits, refusals or farewells want to be sent.
    pub fn has_control(&self) -> bool {
        self.incoming.wants_to_send() || !self.farewells.is_empty()
    }

    /// The owner has nothing more to add.
    pub const fn finish(&mut self) {
        self.finishing = true;
    }

    /// Whether the owner has nothing more to add.
    pub const fn is_finishing(&self) -> bool {
        self.finishing
    }

    /// What a path took on comes back: it carries no datagrams for now.
    pub fn recall(&mut self, outbox: &mut Outbox) {
        self.datagrams.recall(outbox);
    }

    /// What a packet carried arrived.
    pub fn arrived(&mut self, carried: &Carried) {
        match carried {
            Carried::Datagram(mark) => self.datagrams.on_fate(*mark, true),
            Carried::PathDropped(id) => self.farewells.on_known(*id),
            _ => self.out.on_acked(carried),
        }
    }

    /// What a packet carried is lost: what must arrive goes out again.
    pub fn lost(&mut self, carried: &Carried) {
        match carried {
            Carried::Datagram(mark) => self.datagrams.on_fate(*mark, false),
            Carried::PathDropped(id) => self.farewells.push(*id),
            Carried::MaxData | Carried::MaxStreamData(_) | Carried::StopSending(_) => {
                self.incoming.on_lost(carried);
            }
            _ => self.out.on_lost(carried),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use byway_wire::PathId;

    #[test]
    fn a_dropped_path_is_told_until_it_is_known() {
        let config = Config { datagrams: 4, ..Config::default() };
        let mut exchange = Exchange::new(&config, &Params::of(&config));
        exchange.farewells().push(PathId(3));
        for _ in 0..3 {
            assert!(exchange.has_control());
            assert_eq!(exchange.farewells().pop(), Some(PathId(3)));
            assert!(!exchange.has_control());
            exchange.lost(&Carried::PathDropped(PathId(3)));
        }
        exchange.farewells().pop();
        exchange.arrived(&Carried::PathDropped(PathId(3)));
        assert_eq!((exchange.known_ids(), exchange.has_control()), (4, false));
    }

    #[test]
    fn the_fate_of_a_datagram_is_told_under_its_mark() {
        let config = Config { datagrams: 4, ..Config::default() };
        let mut exchange = Exchange::new(&config, &Params::of(&config));
        exchange.lost(&Carried::Datagram(8));
        exchange.arrived(&Carried::Datagram(9));
        let fates = core::iter::from_fn(|| exchange.datagrams().next_fate());
        let fates: alloc::vec::Vec<_> = fates.map(|fate| (fate.mark, fate.arrived)).collect();
        assert_eq!(fates, [(8, false), (9, true)]);
    }
}
