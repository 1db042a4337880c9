//! Middleboxes on links between hosts: filters that drop UDP, devices that clear ECN marks, and an
//! attacker who replays and forges.

use crate::setup::{Attack, UdpFilter};
use byway_sim::topology::Direction;
use byway_sim::{Random, TapVerdict, TappedDatagram, World};
use byway_wire::{Duration, Ecn, Instant};
use core::net::{IpAddr, SocketAddr};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// A datagram that was seen may be replayed for this long.
const MAX_REPLAY_DELAY: Duration = Duration::from_secs(2);
/// UDP ports of hosts are below, TCP's above (`byway_sim::tcp::tcp_address`).
const TCP_PORTS: u16 = 1 << 15;
/// The most bytes by which a forgery exceeds the packet from which it is made.
const MAX_PADDING_LEN: u64 = 64;

/// All middleboxes of a world.
#[derive(Clone, Debug)]
pub(super) struct Middleboxes(Rc<RefCell<MiddleboxState>>);

#[derive(Debug)]
struct MiddleboxState {
    /// The links from one host to another.
    ways: BTreeMap<(IpAddr, IpAddr), Vec<Direction>>,
    filters: BTreeMap<Direction, UdpFilter>,
    bleaching: BTreeSet<Direction>,
    attack: Attack,
    /// Hosts that speak byway's protocol. Packets of other hosts pass.
    hosts: BTreeSet<IpAddr>,
    /// The forgeries that the attacker will send.
    forgeries: Vec<Forgery>,
    random: Random,
}

#[derive(Debug)]
struct Forgery {
    at: Instant,
    from: SocketAddr,
    to: SocketAddr,
    payload: Vec<u8>,
}

impl Middleboxes {
    /// Makes the middleboxes on the routes `ways` between hosts.
    pub(super) fn new(
        ways: BTreeMap<(IpAddr, IpAddr), Vec<Direction>>,
        bleaching: BTreeSet<Direction>,
        attack: Attack,
        hosts: BTreeSet<IpAddr>,
        seed: u64,
    ) -> Self {
        let random = Random::component(seed, "middleboxes");
        let (filters, forgeries) = (BTreeMap::new(), Vec::new());
        Self(Rc::new(RefCell::new(MiddleboxState {
            ways,
            filters,
            bleaching,
            attack,
            hosts,
            forgeries,
            random,
        })))
    }

    /// Shows the middleboxes all packets that hosts send.
    pub(super) fn watch(&self, world: &mut World) {
        let state = Rc::clone(&self.0);
        world.tap(move |seen| state.borrow_mut().look(seen));
    }

    /// Sets the filter for UDP on a link, or removes it.
    pub(super) fn filter(&self, link: Direction, filter: Option<UdpFilter>) {
        let mut state = self.0.borrow_mut();
        match filter {
            Some(filter) => state.filters.insert(link, filter),
            None => state.filters.remove(&link),
        };
    }

    /// Sends the forgeries that the attacker has prepared.
    pub(super) fn attack(&self, world: &mut World) {
        let forgeries = core::mem::take(&mut self.0.borrow_mut().forgeries);
        for Forgery { at, from, to, payload } in forgeries {
            world.inject(at, from, to, Ecn::NotEct, &payload);
        }
    }
}

impl MiddleboxState {
    fn look(&mut self, seen: TappedDatagram<'_>) -> TapVerdict {
        let Self { ways, filters, bleaching, attack, hosts, forgeries, random } = self;
        if seen.to.port() >= TCP_PORTS || !hosts.contains(&seen.from.ip()) {
            return TapVerdict::Pass;
        }
        if !(filters.is_empty() && bleaching.is_empty())
            && let Some(way) = ways.get(&(seen.from.ip(), seen.to.ip()))
        {
            for link in way {
                if let Some(filter) = filters.get(link)
                    && seen.payload.len() + seen.phantom > filter.above
                    && random.chance(filter.share)
                {
                    return TapVerdict::Drop;
                }
                if bleaching.contains(link) {
                    *seen.ecn = Ecn::NotEct;
                }
            }
        }
        for (share, is_forged) in [(attack.replayed, false), (attack.forged, true)] {
            if !random.chance(share) || seen.phantom > 0 {
                continue;
            }
            let mut payload = seen.payload.clone();
            if is_forged {
                forge(&mut payload, random);
            }
            let at = seen.now + random.up_to(MAX_REPLAY_DELAY);
            forgeries.push(Forgery { at, from: *seen.from, to: *seen.to, payload });
        }
        TapVerdict::Pass
    }
}

/// Changes some bytes, and often the length.
fn forge(payload: &mut Vec<u8>, random: &mut Random) {
    match random.below(3) {
        0 => payload.truncate(random.below(payload.len() as u64 + 1) as usize),
        1 => {
            let mut padding = vec![0; random.below(MAX_PADDING_LEN) as usize];
            random.fill(&mut padding);
            payload.extend(padding);
        }
        _ => {}
    }
    for _ in 0..1 + random.below(4) {
        let place = random.below(payload.len().max(1) as u64) as usize;
        if let Some(byte) = payload.get_mut(place) {
            *byte ^= 1 << random.below(8);
        }
    }
}
