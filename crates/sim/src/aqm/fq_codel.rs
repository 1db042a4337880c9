//! Fair queueing with Controlled Delay (RFC 8290). Each flow has a queue under CoDel, and the
//! queues are served in turn by their bytes.

use super::codel::{Codel, CodelConfig, Dequeued, Queued};
use byway_wire::Instant;
use byway_wire::seeded_random::mixed;
use std::collections::VecDeque;

/// The parameters of [`FqCodel`].
#[derive(Clone, Debug, PartialEq)]
pub struct FqCodelConfig {
    /// The parameters of CoDel in each queue.
    pub codel: CodelConfig,
    /// Bytes that a queue may send in its turn, headers included (QUANTUM).
    pub quantum: u32,
    /// The number of queues. Flows with the same hash share a queue.
    pub queues: usize,
}

impl Default for FqCodelConfig {
    /// CoDel's default values, a quantum of 1 514 bytes, and 1 024 queues (RFC 8290, sections 5.2.1
    /// to 5.2.4).
    fn default() -> Self {
        Self { codel: CodelConfig::default(), quantum: 1_514, queues: 1_024 }
    }
}

/// The number of a waiting packet, in the order of arrival.
type Number = u64;

/// The most packets that an overflow drops at once (section 4.1).
const MAX_BATCH_DROPS: usize = 64;

/// The queues of all flows on one link.
#[derive(Clone, Debug)]
pub struct FqCodel {
    quantum: i64,
    /// Added to the hash of flows, so that other flows collide in each run.
    salt: u64,
    queues: Vec<FlowQueue>,
    /// Queues that were empty before. `old`: the other queues. Both are in the order of their
    /// turns.
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    packets: usize,
    bytes: u64,
    next: Number,
    /// Packets whose outcome is not decided yet, in the order of arrival.
    held: VecDeque<Number>,
}

#[derive(Clone, Debug)]
struct FlowQueue {
    codel: Codel,
    /// The numbers of the packets in `codel`.
    numbers: VecDeque<Number>,
    /// Bytes that the queue may still send in its turn.
    deficit: i64,
    listed: bool,
}

impl FqCodel {
    /// Empty queues, whose flows are hashed with `salt`.
    #[must_use]
    pub fn new(config: &FqCodelConfig, salt: u64) -> Self {
        let queue = FlowQueue {
            codel: Codel::new(config.codel.clone()),
            numbers: VecDeque::new(),
            deficit: 0,
            listed: false,
        };
        Self {
            // A turn of nothing would never end.
            quantum: i64::from(config.quantum.max(1)),
            salt,
            queues: vec![queue; config.queues.max(1)],
            new: VecDeque::new(),
            old: VecDeque::new(),
            packets: 0,
            bytes: 0,
            next: 0,
            held: VecDeque::new(),
        }
    }

    /// Returns the number of waiting packets.
    #[must_use]
    pub fn len(&self) -> usize {
        self.packets
    }

    /// Whether nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.packets == 0
    }

    /// Bytes that wait.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// A packet of `flow` comes.
    pub fn enqueue(&mut self, flow: u64, packet: Queued) {
        let place = (mixed(flow ^ self.salt) % self.queues.len() as u64) as usize;
        let queue = &mut self.queues[place];
        queue.codel.enqueue(packet);
        queue.numbers.push_back(self.next);
        self.held.push_back(self.next);
        self.next += 1;
        self.packets += 1;
        self.bytes += packet.bytes;
        if !queue.listed {
            (queue.listed, queue.deficit) = (true, self.quantum);
            self.new.push_back(place);
        }
    }

    /// Makes room for another packet. Drops the oldest half of the queue with the most bytes, at
    /// most `MAX_BATCH_DROPS` packets. Calls `leaving` for each dropped packet. First argument: the
    /// number of packets in all queues that arrived before that packet and still wait.
    pub fn overflow(&mut self, mut leaving: impl FnMut(usize, Dequeued)) {
        // The first of those that are equally long, in every build.
        let longest = self.queues.iter_mut().rev().max_by_key(|queue| queue.codel.bytes());
        let Some(queue) = longest.filter(|queue| !queue.codel.is_empty()) else { return };
        let (before, mut dropped) = (queue.codel.bytes(), Vec::new());
        for _ in 0..queue.codel.len().div_ceil(2).min(MAX_BATCH_DROPS) {
            queue.codel.drop_first();
            dropped.extend(queue.numbers.pop_front());
        }
        self.bytes -= before - queue.codel.bytes();
        self.packets -= dropped.len();
        for number in dropped {
            leaving(self.told(number), Dequeued::Dropped);
        }
    }

    /// Takes packets off the queues until one is found to send (RFC 8290, section 4.2). Calls
    /// `leaving(ahead, fate)` for each dropped packet and for the packet to send. `ahead` is the
    /// number of packets that arrived before this packet and still wait in any queue.
    pub fn dequeue(&mut self, now: Instant, mut leaving: impl FnMut(usize, Dequeued)) {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let Some(&place) = list.front() else { return };
            let queue = &mut self.queues[place];
            if queue.deficit <= 0 {
                queue.deficit += self.quantum;
                list.pop_front();
                self.old.push_back(place);
                continue;
            }
            let (before, mut left) = (queue.codel.bytes(), Vec::new());
            queue.codel.dequeue(now, |fate| left.push(fate));
            self.bytes -= before - queue.codel.bytes();
            self.packets -= left.len();
            let numbers: Vec<Number> = queue.numbers.drain(..left.len()).collect();
            let served = left.last().and_then(|fate| match fate {
                Dequeued::Served(packet) => Some(packet.bytes),
                Dequeued::Dropped => None,
            });
            match served {
                Some(bytes) => queue.deficit -= bytes as i64,
                None => {
                    list.pop_front();
                    // One that goes on being new would keep the others from their turns.
                    queue.listed = is_new;
                    if is_new {
                        self.old.push_back(place);
                    }
                }
            }
            for (number, fate) in numbers.into_iter().zip(left) {
                leaving(self.told(number), fate);
            }
            if served.is_some() {
                return;
            }
        }
    }

    /// Removes a packet. Returns how many earlier packets are still waiting.
    fn told(&mut self, number: Number) -> usize {
        let place = self.held.partition_point(|&held| held < number);
        self.held.remove(place);
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use byway_wire::{Duration, Ecn};

    const MS: Duration = Duration::from_millis(1);

    fn queued(since: Instant, bytes: u64) -> Queued {
        Queued { since, bytes, ecn: Ecn::NotEct }
    }

    fn fair() -> FqCodel {
        FqCodel::new(&FqCodelConfig::default(), 7)
    }

    /// Takes the next packet off the queues. Returns the number of packets that arrived earlier and
    /// still wait, over all queues, and the packet itself. Also returns the number of packets
    /// dropped before it.
    fn send(queues: &mut FqCodel, now: Instant) -> (Option<(usize, Queued)>, usize) {
        let (mut served, mut dropped) = (None, 0);
        queues.dequeue(now, |place, leaving| match leaving {
            Dequeued::Served(packet) => served = Some((place, packet)),
            Dequeued::Dropped => dropped += 1,
        });
        (served, dropped)
    }

    #[test]
    fn flows_have_equal_parts_however_much_they_send_and_however_large_their_packets_are() {
        let mut queues = fair();
        let mut sent = [0, 0];
        // A line that sends a packet in a millisecond. One flow fills it twice over, the other has
        // packets of 500 bytes.
        for tick in 0..4_000 {
            let now = Instant::from_millis(tick);
            for _ in 0..2 {
                queues.enqueue(1, queued(now, 1_500));
            }
            (0..3).for_each(|_| queues.enqueue(2, queued(now, 500)));
            if let (Some((_, packet)), _) = send(&mut queues, now) {
                sent[usize::from(packet.bytes == 500)] += packet.bytes;
            }
        }
        let ratio = sent[0] as f64 / sent[1] as f64;
        assert!((0.99..1.01).contains(&ratio), "{sent:?}");
    }

    #[test]
    fn a_sparse_flow_waits_for_no_queue() {
        let mut queues = fair();
        let begins = Instant::from_millis(1_000);
        (0..100).for_each(|_| queues.enqueue(1, queued(begins, 1_500)));
        send(&mut queues, begins);
        for tick in 1..50_u32 {
            let now = begins + MS * tick;
            let sparse = tick % 10 == 0;
            if sparse {
                queues.enqueue(2, queued(now, 200));
            }
            let (served, _) = send(&mut queues, now);
            let (place, packet) = served.expect("a packet");
            assert_eq!(packet.bytes == 200, sparse, "{tick}");
            // It passes all that wait, and the world hears which it is.
            assert_eq!(place, if sparse { queues.len() } else { 0 });
        }
        // One that has its turn again and again is not new each time: the other one is served in
        // between.
        let mut order = Vec::new();
        for tick in 50..60_u32 {
            let now = begins + MS * tick;
            queues.enqueue(2, queued(now, 1_500));
            order.extend(send(&mut queues, now).0.map(|(_, packet)| packet.since == now));
        }
        assert!(order.contains(&true) && order.iter().filter(|&&fresh| !fresh).count() >= 4, "{order:?}");
    }

    #[test]
    fn a_standing_queue_is_dropped_from_and_others_are_not() {
        let mut queues = fair();
        let mut dropped = 0;
        for tick in 0..1_000 {
            let now = Instant::from_millis(tick);
            while queues.len() < 20 {
                queues.enqueue(1, queued(now, 1_500));
            }
            dropped += send(&mut queues, now).1;
        }
        // As many as CoDel drops of one queue in a second whose first drop comes after 100 ms: 100
        // / sqrt(n) ms apart.
        assert!((15..30).contains(&dropped), "{dropped}");
        let now = Instant::from_millis(1_000);
        queues.enqueue(2, queued(now, 100));
        let (served, dropped) = send(&mut queues, now);
        assert_eq!((served.map(|(_, packet)| packet.bytes), dropped), (Some(100), 0));
    }

    #[test]
    fn where_there_is_no_room_the_longest_queue_makes_it() {
        let mut queues = fair();
        let now = Instant::from_millis(5);
        for flow in [1, 2, 2, 2, 1, 2, 2] {
            queues.enqueue(flow, queued(now, 1_000));
        }
        let mut places = Vec::new();
        queues.overflow(|place, leaving| {
            assert_eq!(leaving, Dequeued::Dropped);
            places.push(place);
        });
        // The first three of the second flow: each time the second of those that are left.
        assert_eq!((places, queues.len(), queues.bytes()), (vec![1, 1, 1], 4, 4_000));
        let mut none = fair();
        none.overflow(|_, _| panic!("nothing waits"));
    }

    #[test]
    fn every_packet_leaves_once_and_the_same_packets_leave_alike() {
        let run = |salt| {
            let mut queues = FqCodel::new(&FqCodelConfig { queues: 4, ..FqCodelConfig::default() }, salt);
            let (mut held, mut order) = (Vec::new(), Vec::new());
            for number in 0..3_000_u64 {
                let now = Instant::from_millis(number);
                let flow = number * number % 11;
                queues.enqueue(flow, queued(now, 100 + flow * 100));
                held.push(number);
                if queues.len() > 50 {
                    queues.overflow(|place, _| order.push((held.remove(place), false)));
                }
                if number % 5 < 3 {
                    queues.dequeue(now, |place, leaving| {
                        order.push((held.remove(place), leaving != Dequeued::Dropped));
                    });
                }
                assert_eq!(held.len(), queues.len());
            }
            while !queues.is_empty() {
                queues.dequeue(Instant::from_millis(3_000), |place, leaving| {
                    order.push((held.remove(place), leaving != Dequeued::Dropped));
                });
            }
            assert!(held.is_empty() && queues.bytes() == 0);
            order
        };
        let order = run(1);
        assert_eq!(order.len(), 3_000);
        assert_eq!(order, run(1));
        assert_ne!(order, run(2), "another salt lets other flows share a queue");
    }
}
