//! The books as those who look at a world see them, and whether they say what is there.

use super::LinkId;
use super::events::EventSubject;
use super::feeder::Feeder;
use super::network::{CHAIN_END, Edge, Network};
use super::trace::Trace;
use crate::counters::LinkCounters;
use crate::link::Occupancy;
use byway_wire::Instant;

impl Network {
    /// Returns the counts of a link, including waiting packets and packets in flight.
    pub(super) fn counters(&self, now: Instant, id: LinkId) -> LinkCounters {
        let edge = self.edge(id);
        let queued = edge.body.waiting(now).deliveries;
        assert!(
            queued <= edge.outstanding,
            "law broken: link {} says that {queued} packets wait, {} are outstanding at {now:?}",
            edge.name,
            edge.outstanding
        );
        LinkCounters { queued, in_flight: edge.outstanding - queued, ..edge.counters }
    }

    /// The queue of a link at `now`.
    pub(super) fn waiting(&self, now: Instant, id: LinkId) -> Occupancy {
        self.edge(id).body.waiting(now)
    }

    pub(super) fn stop_trace(&mut self) {
        self.traced = false;
    }

    /// A number that combines the traces of all links. 0: tracing is off.
    pub(super) fn trace(&self) -> u64 {
        if !self.traced {
            return 0;
        }
        let mut all = Trace::new();
        for edge in &self.edges {
            all.number(edge.trace.value());
        }
        all.value()
    }

    /// Counts all packets in flight and all free buffers, and asserts that the counters agree.
    pub(super) fn audit(&self) {
        let mut found: Vec<u64> =
            self.edges.iter().map(|edge| (edge.line.len() + edge.held.len()) as u64).collect();
        for edge in &self.edges {
            if let Feeder::Link(feeder) = edge.feeder {
                found[feeder as usize] += edge.coming.len() as u64;
            }
        }
        let mut injected = 0;
        // Whether there is the event by which a link is looked at, and the one by which it decides.
        let mut waited_for = vec![(false, false); self.edges.len()];
        for event in self.events.iter() {
            match event.subject() {
                EventSubject::Loose(order) => match self.places[self.loose[&order].place as usize] {
                    CHAIN_END => injected += 1,
                    id => found[id as usize] += 1,
                },
                EventSubject::Line(id) => {
                    waited_for[id as usize].0 |= event.at() == self.edges[id as usize].expected();
                }
                EventSubject::Decision(id) => {
                    waited_for[id as usize].1 |= Some(event.at()) == self.edges[id as usize].decision();
                }
                EventSubject::Wake(_) => {}
            }
        }
        for (edge, (&found, &(looks, decides))) in self.edges.iter().zip(found.iter().zip(&waited_for)) {
            assert!(
                edge.outstanding == found,
                "law broken: link {} has {found} packets under way, its books say {}",
                edge.name,
                edge.outstanding
            );
            assert!(
                edge.lost == edge.counters.dropped(),
                "law broken: link {} lost {} packets: {:?}",
                edge.name,
                edge.lost,
                edge.counters
            );
            let late = edge.line.front().is_some_and(|first| first.at < edge.expected());
            assert!(
                looks && !late || edge.line.is_empty() && edge.coming.is_empty(),
                "law broken: nobody looks in time at the packets on link {}, {} there and {} coming",
                edge.name,
                edge.line.len(),
                edge.coming.len()
            );
            assert!(
                decides || edge.held.is_empty(),
                "law broken: link {} holds {} packets and never decides about them",
                edge.name,
                edge.held.len()
            );
        }
        let under_way = injected + found.iter().sum::<u64>();
        assert!(
            under_way + self.free.len() as u64 == self.packets.len() as u64,
            "law broken: {under_way} packets under way and {} free buffers, but {} buffers",
            self.free.len(),
            self.packets.len()
        );
    }
}

impl Edge {
    /// Asserts [`LinkCounters::balance_with`] at every event, so without a sum over all reasons.
    #[inline]
    pub(super) fn balance(&self, now: Instant) {
        let LinkCounters { sent, duplicated, delivered, .. } = self.counters;
        assert!(
            sent + duplicated == delivered + self.lost + self.outstanding,
            "law broken: link {} does not balance at {now:?}: {:?}, {} outstanding",
            self.name,
            self.counters,
            self.outstanding
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipe::{Pipe, PipeConfig};
    use crate::random::Random;
    use crate::world::events::PacketInFlight;
    use crate::world::network::{EdgeLink, WorldEvent};
    use byway_wire::{Duration, Ecn};

    /// A network with a packet on its one link, which arrives at 1 ms.
    fn network() -> Network {
        let mut network = Network::new();
        let pipe = Pipe::new(PipeConfig::delay_only(Duration::from_millis(1)), Random::new(1));
        let link = network.add("line", EdgeLink::new(pipe));
        let place = network.chain(Instant::ZERO, &[link]);
        let [from, to] = ["10.0.0.1:1", "10.0.0.2:1"].map(|address| address.parse().unwrap());
        let slot = network.claim(from, to, None);
        let flight = PacketInFlight { at: Instant::ZERO, slot, place, size: 100, ecn: Ecn::NotEct };
        assert!(matches!(network.offer(flight), WorldEvent::Quiet));
        network
    }

    #[test]
    fn a_packet_that_is_waited_for_is_in_order() {
        network().audit();
    }

    #[test]
    #[should_panic(expected = "nobody looks in time at the packets on link line")]
    fn a_packet_whose_event_is_lost_is_found() {
        let mut network = network();
        let event = network.next().unwrap();
        network.events.again(event, None);
        network.audit();
    }

    #[test]
    #[should_panic(expected = "nobody looks in time at the packets on link line")]
    fn a_packet_whose_event_is_late_is_found() {
        let mut network = network();
        let event = network.next().unwrap();
        let late = event.at() + Duration::from_millis(1);
        network.events.again(event, Some(late));
        network.audit();
    }
}
