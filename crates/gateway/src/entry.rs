//! The bounded queue of an entry gateway. Flows share the paths by deficit round robin (Shreedhar
//! and Varghese, SIGCOMM 1995). A full queue drops the oldest packet of a flow with many waiting
//! bytes, because this loss is noticed soonest.

use crate::counters::counters;
use crate::linked_lists::Lists;
use alloc::vec::Vec;

/// The limits of an entry queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryLimits {
    /// Bytes of all flows.
    pub bytes: usize,
    /// The most bytes of one flow.
    pub flow_bytes: usize,
    /// The most packets of all flows. Small packets take memory too.
    pub packets: usize,
    /// Bytes that a flow may send in its turn; at least the size of the largest packet so far.
    pub quantum: usize,
}

impl Default for EntryLimits {
    fn default() -> Self {
        Self { bytes: 8 << 20, flow_bytes: 1 << 20, packets: 16_384, quantum: 1_514 }
    }
}

counters! {
    /// Number of packets that arrived.
    came,
    /// Packets that were handed out.
    left,
    /// Packets dropped since all flows together had too much.
    dropped,
    /// Packets dropped because their flow had too many bytes.
    dropped_of_flow,
    /// Packets dropped because their flow ended before their turn.
    cleared,
}

const NO_NODE: u32 = u32::MAX;

#[derive(Debug)]
struct FlowNode<T> {
    packet: Option<T>,
    bytes: usize,
    next: u32,
}

#[derive(Clone, Copy, Debug)]
struct FlowBacklog {
    first: u32,
    last: u32,
    bytes: usize,
    credit: usize,
}

const EMPTY_BACKLOG: FlowBacklog = FlowBacklog { first: NO_NODE, last: NO_NODE, bytes: 0, credit: 0 };

/// The queue of an entry gateway. Flows are small numbers
/// ([`FlowId::slot`](crate::flow_table::FlowId::slot)).
#[derive(Debug)]
pub struct EntryQueue<T> {
    limits: EntryLimits,
    quantum: usize,
    nodes: Vec<FlowNode<T>>,
    free: Vec<u32>,
    flows: Vec<FlowBacklog>,
    /// Flows with waiting packets, in turn.
    turns: Lists<1>,
    /// The waiting flows by the binary logarithm of their waiting bytes. So the longest is found
    /// within a factor of two.
    sizes: Lists<32>,
    bytes: usize,
    counters: Counters,
}

impl<T> EntryQueue<T> {
    /// An empty queue.
    #[must_use]
    pub fn new(limits: EntryLimits) -> Self {
        Self {
            limits,
            quantum: limits.quantum.max(1),
            nodes: Vec::new(),
            free: Vec::new(),
            flows: Vec::new(),
            turns: Lists::new(),
            sizes: Lists::new(),
            bytes: 0,
            counters: Counters::default(),
        }
    }

    /// Bytes that wait.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the number of waiting packets.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.nodes.len() - self.free.len()
    }

    /// Whether nothing waits.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of one flow that wait.
    #[must_use]
    pub fn bytes_of(&self, flow: u32) -> usize {
        self.flows.get(flow as usize).map_or(0, |waiting| waiting.bytes)
    }

    /// The counts so far.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// Adds a packet behind the other packets of its flow. Packets that must leave for it are
    /// passed to `dropped`, perhaps including the packet itself.
    pub fn push(&mut self, flow: u32, bytes: usize, packet: T, mut dropped: impl FnMut(u32, T)) {
        self.counters.came += 1;
        self.quantum = self.quantum.max(bytes);
        if self.flows.len() <= flow as usize {
            self.flows.resize(flow as usize + 1, EMPTY_BACKLOG);
        }
        let node = FlowNode { packet: Some(packet), bytes, next: NO_NODE };
        let index = match self.free.pop() {
            Some(index) => {
                if let Some(place) = self.nodes.get_mut(index as usize) {
                    *place = node;
                }
                index
            }
            None => {
                self.nodes.push(node);
                self.nodes.len() as u32 - 1
            }
        };
        let waiting = &mut self.flows[flow as usize];
        let last = core::mem::replace(&mut waiting.last, index);
        if last == NO_NODE {
            waiting.first = index;
            waiting.credit = self.quantum;
            self.turns.put(flow, 0);
        }
        waiting.bytes += bytes;
        self.bytes += bytes;
        if let Some(last) = self.nodes.get_mut(last as usize) {
            last.next = index;
        }
        self.sort(flow);
        while self.bytes_of(flow) > self.limits.flow_bytes {
            let Some(packet) = self.take(flow) else { break };
            self.counters.dropped_of_flow += 1;
            dropped(flow, packet);
        }
        while self.bytes > self.limits.bytes || self.len() > self.limits.packets {
            let Some(longest) = (0..32).rev().find_map(|magnitude| self.sizes.front(magnitude)) else {
                break;
            };
            let Some(packet) = self.take(longest) else { break };
            self.counters.dropped += 1;
            dropped(longest, packet);
        }
    }

    /// Returns the next packet, with its flow. It stays until it is [popped](Self::pop).
    pub fn peek(&mut self) -> Option<(u32, &mut T)> {
        let flow = self.turn()?;
        let first = self.flows.get(flow as usize)?.first;
        Some((flow, self.nodes.get_mut(first as usize)?.packet.as_mut()?))
    }

    /// Removes and returns the next packet, with its flow.
    pub fn pop(&mut self) -> Option<(u32, T)> {
        let flow = self.turn()?;
        let waiting = self.flows.get_mut(flow as usize)?;
        let bytes = self.nodes.get(waiting.first as usize)?.bytes;
        waiting.credit = waiting.credit.saturating_sub(bytes);
        self.counters.left += 1;
        self.take(flow).map(|packet| (flow, packet))
    }

    /// Removes and returns the oldest packet of a flow, out of turn.
    pub fn withdraw(&mut self, flow: u32) -> Option<T> {
        let packet = self.take(flow);
        self.counters.left += u64::from(packet.is_some());
        packet
    }

    /// Drops all waiting packets of a flow.
    pub fn clear(&mut self, flow: u32) {
        while self.take(flow).is_some() {
            self.counters.cleared += 1;
        }
    }

    /// Returns the flow whose turn it is. It has enough credit for its first packet.
    fn turn(&mut self) -> Option<u32> {
        // As no packet is larger than the quantum, each flow is passed by at most once.
        loop {
            let flow = self.turns.front(0)?;
            let waiting = self.flows.get_mut(flow as usize)?;
            if self.nodes.get(waiting.first as usize)?.bytes <= waiting.credit {
                return Some(flow);
            }
            waiting.credit += self.quantum;
            self.turns.put(flow, 0);
        }
    }

    /// Takes the oldest packet of a flow.
    fn take(&mut self, flow: u32) -> Option<T> {
        let waiting = self.flows.get_mut(flow as usize)?;
        let index = waiting.first;
        let node = self.nodes.get_mut(index as usize)?;
        let packet = node.packet.take();
        waiting.first = node.next;
        waiting.bytes -= node.bytes;
        self.bytes -= node.bytes;
        if waiting.first == NO_NODE {
            *waiting = EMPTY_BACKLOG;
            self.turns.remove(flow);
        }
        self.free.push(index);
        self.sort(flow);
        packet
    }

    /// Moves a flow to the list for its number of waiting bytes.
    fn sort(&mut self, flow: u32) {
        let Some(waiting) = self.flows.get(flow as usize) else { return };
        if waiting.first == NO_NODE {
            self.sizes.remove(flow);
            return;
        }
        let magnitude = waiting.bytes.checked_ilog2().unwrap_or(0).min(31) as u8;
        if self.sizes.list_of(flow) != Some(magnitude) {
            self.sizes.put(flow, magnitude);
        }
    }
}

#[cfg(test)]
mod tests;
