//! The table of carried flows, of bounded size. A flow enters only at its first SYN, because only
//! SYNs carry the window scale. Flows with incomplete handshake have their own limit, so a SYN
//! flood removes no open flow.

mod side;

pub use side::{EndState, FlowEnd};

use crate::key::FlowKey;
use crate::linked_lists::Lists;
use crate::tcp_header::Flags;
use crate::tcp_segment::Segment;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use byway_wire::{Duration, Instant};

/// The limits of a flow table, in flows and in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowTableLimits {
    /// The most flows in the table.
    pub flows: usize,
    /// The most flows of the table that are not open yet.
    pub opening: usize,
    /// The time after which a flow that does not open is forgotten.
    pub opening_for: Duration,
    /// An open flow without a packet is forgotten after this long (RFC 5382: not before 2 h 4 min).
    pub idle_for: Duration,
    /// Time without a packet after which an open flow makes room for another one, if the table is
    /// full.
    pub spare_after: Duration,
    /// Time for which an ended flow is kept for its last packets.
    pub closed_for: Duration,
}

impl Default for FlowTableLimits {
    fn default() -> Self {
        Self {
            flows: 16_384,
            opening: 2_048,
            opening_for: Duration::from_secs(75),
            idle_for: Duration::from_secs(7_440),
            spare_after: Duration::from_secs(300),
            closed_for: Duration::from_secs(30),
        }
    }
}

/// The name of a flow in a table. Not used again for another flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId {
    index: u32,
    generation: u32,
}

impl FlowId {
    /// A small number below [`FlowTableLimits::flows`], which no other present flow of the table
    /// has.
    #[must_use]
    pub const fn slot(self) -> u32 {
        self.index
    }
}

/// The state of a flow, from its first SYN to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FlowState {
    /// SYNs go to and fro.
    Opening,
    /// The opener has acknowledged the acceptor's SYN.
    Open,
    /// Both sides have sent a FIN, or one side a RST.
    Closed,
}

/// A flow that is carried.
#[derive(Clone, Debug)]
pub struct Flow<T> {
    /// The key of the flow in the direction of its opening.
    pub key: FlowKey,
    /// The state of the flow.
    pub phase: FlowState,
    /// When the flow's last packet was seen.
    pub last: Instant,
    /// Data that the table's owner stores with the flow.
    pub data: T,
    sides: [EndState; 2],
    generation: u32,
}

impl<T> Flow<T> {
    /// The state of one end.
    #[must_use]
    pub const fn side(&self, end: FlowEnd) -> &EndState {
        match end {
            FlowEnd::Opener => &self.sides[0],
            FlowEnd::Acceptor => &self.sides[1],
        }
    }

    const fn both(&mut self, end: FlowEnd) -> (&mut EndState, &mut EndState) {
        let [opener, acceptor] = &mut self.sides;
        match end {
            FlowEnd::Opener => (opener, acceptor),
            FlowEnd::Acceptor => (acceptor, opener),
        }
    }

    /// The window scale of `end`: the number of bits by which the windows that it advertises are
    /// shifted left. The window in a SYN is never scaled (RFC 7323, section 2.2). `None` until the
    /// SYNs of both ends were seen.
    #[must_use]
    pub const fn scale(&self, end: FlowEnd) -> Option<u8> {
        let (own, other) = (self.side(end), self.side(end.other()));
        match (own.isn, other.isn, own.scale, other.scale) {
            (Some(_), Some(_), Some(scale), Some(_)) => Some(scale),
            (Some(_), Some(_), _, _) => Some(0),
            _ => None,
        }
    }
}

/// Why a segment belongs to no carried flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndCause {
    /// The flow's SYN was not seen, or the segment belongs to no flow.
    MidLife,
    /// The owner did not want to carry the flow.
    Unwanted,
    /// The table is full of open flows.
    Full,
}

/// The decision about a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowVerdict {
    /// The segment is of a flow that is carried.
    Carried {
        /// The flow of the segment.
        flow: FlowId,
        /// The end that sent the segment.
        from: FlowEnd,
        /// Whether the flow is new.
        new: bool,
    },
    /// The segment goes by the plain route.
    PassThrough(EndCause),
}

/// Counts of the events in a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowCounters {
    /// Number of flows that were added.
    pub taken: u64,
    /// Flows removed before they were open, to make room for other flows.
    pub pushed_out: u64,
    /// Open flows that were idle and made room.
    pub made_room: u64,
    /// Flows that found the table full.
    pub refused: u64,
    /// Flows removed because they were idle for too long.
    pub expired: u64,
}

/// The table of carried flows.
#[derive(Debug)]
pub struct FlowTable<T> {
    limits: FlowTableLimits,
    by_key: BTreeMap<FlowKey, u32>,
    slots: Vec<Option<Flow<T>>>,
    generations: Vec<u32>,
    free: Vec<u32>,
    /// A list of flows for each state, the longest idle first.
    ages: Lists<3>,
    opening: usize,
    gone: Vec<(FlowId, T)>,
    counters: FlowCounters,
}

impl<T> FlowTable<T> {
    /// An empty table.
    #[must_use]
    pub const fn new(limits: FlowTableLimits) -> Self {
        Self {
            limits,
            by_key: BTreeMap::new(),
            slots: Vec::new(),
            generations: Vec::new(),
            free: Vec::new(),
            ages: Lists::new(),
            opening: 0,
            gone: Vec::new(),
            counters: FlowCounters { taken: 0, pushed_out: 0, made_room: 0, refused: 0, expired: 0 },
        }
    }

    /// Flows in the table.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Whether the table has no flows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// The counts so far.
    #[must_use]
    pub const fn counters(&self) -> FlowCounters {
        self.counters
    }

    /// Returns the flow with this id. `None`: it was removed.
    #[must_use]
    pub fn get(&self, id: FlowId) -> Option<&Flow<T>> {
        self.slots.get(id.index as usize)?.as_ref().filter(|flow| flow.generation == id.generation)
    }

    /// Returns the flow with this id, for a change of the owner's data. `None`: it was removed.
    pub fn get_mut(&mut self, id: FlowId) -> Option<&mut Flow<T>> {
        self.slots.get_mut(id.index as usize)?.as_mut().filter(|flow| flow.generation == id.generation)
    }

    /// The flow that `key` is a direction of, and which end sends in that direction.
    #[must_use]
    pub fn find(&self, key: &FlowKey) -> Option<(FlowId, FlowEnd)> {
        let (index, end) = match self.by_key.get(key) {
            Some(index) => (*index, FlowEnd::Opener),
            None => (*self.by_key.get(&key.reversed())?, FlowEnd::Acceptor),
        };
        let generation = self.slots.get(index as usize)?.as_ref()?.generation;
        Some((FlowId { index, generation }, end))
    }

    /// All flows, ordered by key.
    pub fn iter(&self) -> impl Iterator<Item = &Flow<T>> {
        self.by_key.values().filter_map(|index| self.slots.get(*index as usize)?.as_ref())
    }

    /// All flows, mutable.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Flow<T>> {
        self.slots.iter_mut().flatten()
    }

    /// Enters a segment into the table. For the first SYN of a flow, `want` decides: `None` does
    /// not carry the flow, and a value is stored in `Flow::data`. Call
    /// [`next_gone`](Self::next_gone) afterwards, because other flows may have been removed.
    pub fn on_segment(
        &mut self,
        now: Instant,
        segment: &Segment,
        want: impl FnOnce(&FlowKey) -> Option<T>,
    ) -> FlowVerdict {
        let key = segment.key();
        let opens = segment.tcp.flags.any(Flags::SYN) && !segment.tcp.flags.any(Flags::ACK);
        if let Some((id, from)) = self.find(&key) {
            let closed = self.get(id).is_some_and(|flow| flow.phase == FlowState::Closed);
            if !(opens && closed) {
                self.advance(now, id, from, segment);
                return FlowVerdict::Carried { flow: id, from, new: false };
            }
            // The same addresses and ports again: another flow.
            self.remove(id);
        }
        if !opens {
            return FlowVerdict::PassThrough(EndCause::MidLife);
        }
        let Some(data) = want(&key) else { return FlowVerdict::PassThrough(EndCause::Unwanted) };
        if !self.make_room(now) {
            self.counters.refused += 1;
            return FlowVerdict::PassThrough(EndCause::Full);
        }
        let id = self.insert(now, key, data);
        self.advance(now, id, FlowEnd::Opener, segment);
        FlowVerdict::Carried { flow: id, from: FlowEnd::Opener, new: true }
    }

    /// Removes a flow.
    pub fn remove(&mut self, id: FlowId) {
        if self.get(id).is_none() {
            return;
        }
        if let Some(flow) = self.slots.get_mut(id.index as usize).and_then(Option::take) {
            self.ages.remove(id.index);
            self.by_key.remove(&flow.key);
            self.opening -= usize::from(flow.phase == FlowState::Opening);
            self.free.push(id.index);
            self.gone.push((id, flow.data));
        }
    }

    /// A flow that left the table, with its `Flow::data`. Call this after each `on_segment` and
    /// each [`expire`](Self::expire), until it returns `None`. Flows that left the table use memory
    /// until they are returned here.
    pub fn next_gone(&mut self) -> Option<(FlowId, T)> {
        self.gone.pop()
    }

    /// Forgets flows that were idle for too long.
    pub fn expire(&mut self, now: Instant) {
        for phase in [FlowState::Opening, FlowState::Open, FlowState::Closed] {
            while let Some((id, due)) = self.eldest(phase) {
                if due > now {
                    break;
                }
                self.counters.expired += 1;
                self.remove(id);
            }
        }
    }

    /// When the next flow is to be forgotten.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        let due = |phase| self.eldest(phase).map(|(_, due)| due);
        [FlowState::Opening, FlowState::Open, FlowState::Closed].into_iter().filter_map(due).min()
    }

    /// Returns the longest idle flow of a state, and the time at which it is to be removed.
    fn eldest(&self, phase: FlowState) -> Option<(FlowId, Instant)> {
        let index = self.ages.front(phase as u8)?;
        let flow = self.slots.get(index as usize)?.as_ref()?;
        let stays = match phase {
            FlowState::Opening => self.limits.opening_for,
            FlowState::Open => self.limits.idle_for,
            FlowState::Closed => self.limits.closed_for,
        };
        Some((FlowId { index, generation: flow.generation }, flow.last + stays))
    }

    /// Makes room for a flow that opens. Returns whether there is room.
    fn make_room(&mut self, now: Instant) -> bool {
        if self.opening >= self.limits.opening.max(1) {
            let Some((eldest, _)) = self.eldest(FlowState::Opening) else { return false };
            self.counters.pushed_out += 1;
            self.remove(eldest);
        }
        if self.len() < self.limits.flows {
            return true;
        }
        let spare =
            |(_, due): &(FlowId, Instant)| now.since(*due - self.limits.idle_for) >= self.limits.spare_after;
        if let Some((closed, _)) = self.eldest(FlowState::Closed) {
            self.remove(closed);
        } else if let Some((opening, _)) = self.eldest(FlowState::Opening) {
            self.counters.pushed_out += 1;
            self.remove(opening);
        } else if let Some((idle, _)) = self.eldest(FlowState::Open).filter(spare) {
            self.counters.made_room += 1;
            self.remove(idle);
        }
        self.len() < self.limits.flows
    }

    fn insert(&mut self, now: Instant, key: FlowKey, data: T) -> FlowId {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.generations.push(0);
            self.slots.len() as u32 - 1
        });
        let generation = self.generations.get_mut(index as usize).map_or(0, |generation| {
            *generation = generation.wrapping_add(1);
            *generation
        });
        if let Some(slot) = self.slots.get_mut(index as usize) {
            *slot = Some(Flow {
                key,
                phase: FlowState::Opening,
                last: now,
                data,
                sides: Default::default(),
                generation,
            });
        }
        self.by_key.insert(key, index);
        self.ages.put(index, FlowState::Opening as u8);
        self.opening += 1;
        self.counters.taken += 1;
        FlowId { index, generation }
    }

    fn advance(&mut self, now: Instant, id: FlowId, from: FlowEnd, segment: &Segment) {
        let Some(flow) = self.get_mut(id) else {
            debug_assert!(false, "a flow that was found or made just now");
            return;
        };
        let before = flow.phase;
        flow.last = flow.last.max(now);
        let scale = flow.scale(from).unwrap_or(0);
        let (own, other) = flow.both(from);
        let reset = own.on_segment(other, segment, scale);
        let answered =
            from == FlowEnd::Opener && own.acked.zip(other.isn).is_some_and(|(acked, isn)| acked != isn);
        let both_ended = own.fin.is_some() && other.fin.is_some();
        flow.phase = match before {
            _ if reset || both_ended => FlowState::Closed,
            FlowState::Opening if answered => FlowState::Open,
            phase => phase,
        };
        let after = flow.phase;
        self.opening -= usize::from(before == FlowState::Opening && after != FlowState::Opening);
        self.ages.put(id.index, after as u8);
    }
}

#[cfg(test)]
mod tests;
