//! The books as those who look at a world see them, and whether they say what is there.

use super::LinkId;
use super::eventless_links::Feeder;
use super::events::EventSubject;
use super::network::{END, Edge, Network};
use super::trace::Trace;
use crate::counters::LinkCounters;
use crate::link::Occupancy;
use byway_wire::Instant;

impl Network {
    /// The books of a link, with what waits and what is in flight.
    pub(super) fn counters(&self, now: Instant, id: LinkId) -> LinkCounters {
        let edge = self.edge(id);
        let queued = edge.body.waiting(now).deliveries;
        assert!(
            queued <= edge.outstanding,
            "law broken: link {} says that {queued} packets wait, {} are outstanding at {now:?}",
            edge.name,
            edge.outstanding
        );
        LinkCounters { queued, in_flight: edge.outstanding - queued, ..edge.books }
    }

    /// What waits before a link.
    pub(super) fn waiting(&self, now: Instant, id: LinkId) -> Occupancy {
        self.edge(id).body.waiting(now)
    }

    pub(super) fn stop_trace(&mut self) {
        self.traced = false;
    }

    /// The traces of all links in one number; 0 if stopped.
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

    /// Counts every packet under way and every free buffer: what the books say must be what is
    /// there.
    pub(super) fn audit(&self) {
        let mut found: Vec<u64> =
            self.edges.iter().map(|edge| (edge.line.len() + edge.held.len()) as u64).collect();
        for edge in &self.edges {
            if let Feeder::Link(feeder) = edge.feeder {
                found[feeder as usize] += edge.coming.len() as u64;
            }
        }
        let mut injected = 0;
        for event in self.events.iter() {
            let EventSubject::Loose(order) = event.subject() else { continue };
            let flight = self.loose[&order];
            match self.places[flight.place as usize] {
                END => injected += 1,
                id => found[id as usize] += 1,
            }
        }
        for (edge, &found) in self.edges.iter().zip(&found) {
            assert!(
                edge.outstanding == found,
                "law broken: link {} has {found} packets under way, its books say {}",
                edge.name,
                edge.outstanding
            );
            assert!(
                edge.lost == edge.books.dropped(),
                "law broken: link {} lost {} packets: {:?}",
                edge.name,
                edge.lost,
                edge.books
            );
        }
        let under_way = injected + found.iter().sum::<u64>();
        assert!(
            under_way + self.free.len() as u64 == self.parcels.len() as u64,
            "law broken: {under_way} packets under way and {} free buffers, but {} buffers",
            self.free.len(),
            self.parcels.len()
        );
    }
}

impl Edge {
    /// As [`LinkCounters::balance_with`], at every event: so without a sum over all reasons.
    #[inline]
    pub(super) fn balance(&self, now: Instant) {
        let LinkCounters { sent, duplicated, delivered, .. } = self.books;
        assert!(
            sent + duplicated == delivered + self.lost + self.outstanding,
            "law broken: link {} does not balance at {now:?}: {:?}, {} outstanding",
            self.name,
            self.books,
            self.outstanding
        );
    }
}
