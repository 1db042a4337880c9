//! Does without an event for a packet's arrival at a link B that follows a link A. Conditions: all
//! packets of B come from A, neither link reorders, and B is a plain pipe with a delay.
//!
//! | example | what happens |
//! |---|---|
//! | A accepts a packet | B's [`coming`](super::network::Edge::coming) lists it, for 10 ms |
//! | 10 ms, arrival at B | there is no event |
//! | 15 ms, first exit from B | an event; `catch_up` offers the packet to B as if at 10 ms |
//! | 12 ms, if `run_until` returns | `catch_up` is called then, since a caller may read B's state |

use super::events::PacketInFlight;
use super::feeder::Feeder;
use super::link_id::LinkId;
use super::network::{Edge, EdgeLink, Network};
use byway_wire::Instant;

impl Network {
    /// Notes a chain that is new at `now`, and which of its links may be examined late from then
    /// on.
    pub(super) fn note_feeders(&mut self, now: Instant, links: &[LinkId]) {
        let mut before = Feeder::Many;
        for &link in links {
            let known = self.edge(link).feeder;
            if known != before && known != Feeder::Nobody {
                // What leaves it still leaves in order: who looks late at what this link leads to
                // may go on.
                while self.edge(link).ahead && self.catch_up(link.0, now) {}
                self.stop_ahead(link.0);
                before = Feeder::Many;
            }
            self.edge_mut(link).feeder = before;
            before = Feeder::Link(link.0);
        }
        if !self.may_look_ahead {
            return;
        }
        for &link in links {
            let Feeder::Link(feeder) = self.edge(link).feeder else { continue };
            let feeding = self.edge(LinkId(feeder));
            let quiet = |edge: &Edge| {
                edge.outstanding == 0
                    && edge.coming.is_empty()
                    && edge.observers.is_empty()
                    && !edge.may_reorder
            };
            let fits = feeder != link.0 && quiet(feeding) && quiet(self.edge(link));
            let edge = self.edge_mut(link);
            if fits && edge.soonest(Instant::ZERO, 0).is_some() {
                edge.ahead = true;
                self.edge_mut(LinkId(feeder)).leads_ahead = true;
            }
        }
    }

    /// Notes that a packet will reach this link at `flight.at`.
    #[inline]
    pub(super) fn come(&mut self, id: u32, flight: PacketInFlight) {
        let edge = &mut self.edges[id as usize];
        let alone = edge.coming.is_empty() && edge.line.is_empty();
        edge.coming.push_back(flight);
        if alone && let Some(at) = edge.next_arrival() {
            self.expect(at, id);
        }
    }

    /// Offers the link the next packet that has reached it by `now`. Returns whether there was one.
    #[inline]
    pub(super) fn catch_up(&mut self, id: u32, now: Instant) -> bool {
        let due = self.edges[id as usize].coming.front().is_some_and(|first| first.at <= now);
        if due {
            self.offer_first_coming(id);
        }
        due
    }

    fn offer_first_coming(&mut self, id: u32) {
        let edge = &mut self.edges[id as usize];
        let Some(flight) = edge.coming.pop_front() else { return };
        if let Feeder::Link(feeder) = edge.feeder {
            self.edges[feeder as usize].note_arrival(&flight);
        }
        let _ = self.offer(flight);
    }

    /// Lets every link catch up with `now`.
    pub(super) fn catch_up_all(&mut self, now: Instant) {
        // A packet may reach a link by another one's catching up.
        let mut moved = true;
        while moved {
            moved = false;
            for id in 0..self.edges.len() as u32 {
                while self.edges[id as usize].ahead && self.catch_up(id, now) {
                    moved = true;
                }
            }
        }
    }

    /// Makes every packet that reaches or leaves this link have an event of its own.
    pub(super) fn look_closely(&mut self, link: LinkId) {
        self.stop_ahead(link.0);
        for id in 0..self.edges.len() as u32 {
            if self.edges[id as usize].feeder == Feeder::Link(link.0) {
                self.stop_ahead(id);
            }
        }
    }

    /// Permits or forbids links without arrival events.
    pub(super) fn look_ahead(&mut self, may: bool) {
        self.may_look_ahead = may;
        if !may {
            for id in 0..self.edges.len() as u32 {
                self.stop_ahead(id);
            }
        }
    }

    /// Stops looking ahead at a link: returns its future arrivals to the line of the link before.
    pub(super) fn stop_ahead(&mut self, id: u32) {
        let edge = &mut self.edges[id as usize];
        if !core::mem::take(&mut edge.ahead) {
            return;
        }
        let coming = core::mem::take(&mut edge.coming);
        // It may be waited for at an earlier time, which is then for nothing.
        if let Some(at) = edge.line.front().map(|first| first.at) {
            self.expect(at, id);
        }
        let Feeder::Link(feeder) = self.edges[id as usize].feeder else { return };
        let line = &mut self.edges[feeder as usize].line;
        line.extend(coming.into_iter().map(|flight| PacketInFlight { place: flight.place - 1, ..flight }));
        line.make_contiguous().sort_by_key(|flight| flight.at);
        if let Some(at) = self.edges[feeder as usize].line.front().map(|first| first.at) {
            self.expect(at, feeder);
        }
    }
}

impl Edge {
    /// When the link must handle arriving packets. It is not later than the next arrival.
    #[inline]
    pub(super) fn next_arrival(&mut self) -> Option<Instant> {
        if let Some(first) = self.line.front() {
            return Some(first.at);
        }
        let &PacketInFlight { at, size, .. } = self.coming.front()?;
        Some(self.soonest(at, size).unwrap_or(at).max(self.last_at))
    }

    #[inline]
    pub(super) fn soonest(&mut self, at: Instant, size: u32) -> Option<Instant> {
        match &mut self.body {
            EdgeLink::Pipe(pipe) => pipe.soonest(at, size),
            EdgeLink::Other(_) => None,
        }
    }
}
