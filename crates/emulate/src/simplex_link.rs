//! One direction of a wire: the simulator's pipe, and the frames that are in it.

use crate::ethernet_frame;
use byway_sim::link::{Decision, Delivery, DropReason, Link, Occupancy, Offer, PacketOutcome};
use byway_sim::{LinkCounters, Pipe, PipeConfig, Random};
use byway_wire::{Ecn, Instant};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// The most bytes of frames that a line holds, queued and propagating: 64 MiB. This is enough for
/// two seconds at 200 Mbit/s (50 MB). A frame that does not fit is dropped, as by a full queue.
const HOLD_BYTES: usize = 64 << 20;

/// One direction of a wire, without I/O and without a clock. [`offer`](Self::offer) takes a frame
/// that enters the wire. [`deliver`](Self::deliver) hands out frames that have reached the other
/// end. Call `deliver` no later than [`deadline`](Self::deadline).
#[derive(Debug)]
pub struct SimplexLink {
    pipe: Pipe,
    counters: LinkCounters,
    /// Frames by the time at which they arrive, then by the order in which they came.
    due: BinaryHeap<Reverse<(Instant, u64, usize)>>,
    accepted: u64,
    slots: Vec<HeldFrame>,
    free: Vec<usize>,
    held_bytes: usize,
    /// Frames about which the pipe has yet to decide: their arrival times and slots.
    undecided: VecDeque<(Instant, usize)>,
}

#[derive(Debug)]
struct HeldFrame {
    frame: Vec<u8>,
    ecn: Ecn,
}

impl SimplexLink {
    /// An empty line. `random` decides about its losses and other faults.
    #[must_use]
    pub fn new(config: PipeConfig, random: Random) -> Self {
        Self {
            pipe: Pipe::new(config, random),
            counters: LinkCounters::default(),
            due: BinaryHeap::new(),
            accepted: 0,
            slots: Vec::new(),
            free: Vec::new(),
            held_bytes: 0,
            undecided: VecDeque::new(),
        }
    }

    /// A frame arrives at the near end at `at`; an earlier time than the one before counts as that.
    pub fn offer(&mut self, at: Instant, frame: &[u8]) {
        let offer = Offer {
            size: ethernet_frame::size(frame),
            ecn: ethernet_frame::ecn(frame),
            flow: ethernet_frame::flow(frame),
        };
        self.decide(at);
        let full = self.held_bytes + 2 * frame.len() > HOLD_BYTES;
        let fate =
            if full { PacketOutcome::Dropped(DropReason::QueueFull) } else { self.pipe.offer(at, &offer) };
        self.counters.note(at, &offer, &fate);
        if matches!(fate, PacketOutcome::Dropped(_)) {
            return;
        }
        let slot = self.store(frame, offer.ecn);
        if fate == PacketOutcome::Queued {
            self.undecided.push_back((at, slot));
        } else {
            self.apply(slot, fate);
        }
    }

    /// Calls `take` for every frame that is due at the far end at `now`, in order, each with its
    /// due time.
    pub fn deliver(&mut self, now: Instant, mut take: impl FnMut(Instant, &[u8])) {
        self.decide(now);
        while let Some(&Reverse((at, _, slot))) = self.due.peek().filter(|Reverse((at, ..))| *at <= now) {
            self.due.pop();
            if let Some(slot) = self.slots.get(slot) {
                take(at, &slot.frame);
                self.counters.note_arrival(ethernet_frame::size(&slot.frame));
            }
            self.forget(slot);
        }
    }

    /// When to call [`deliver`](Self::deliver) next.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        let first = self.due.peek().map(|Reverse((at, ..))| *at);
        first.into_iter().chain(self.pipe.decides_at()).min()
    }

    /// Returns the counts of the frames offered so far, by their fate.
    #[must_use]
    pub fn counters(&self) -> LinkCounters {
        let held = (self.due.len() + self.undecided.len()) as u64;
        LinkCounters { in_flight: held, ..self.counters }
    }

    /// The packets and bytes that wait in the queue at `now`.
    #[must_use]
    pub fn waiting(&self, now: Instant) -> Occupancy {
        self.pipe.waiting(now)
    }

    /// The pipe's configuration: its rate, delay, queue and faults.
    #[must_use]
    pub fn config(&self) -> &PipeConfig {
        self.pipe.config()
    }

    /// Lets the pipe decide about waiting frames, as far as it can at this time.
    fn decide(&mut self, now: Instant) {
        while self.pipe.decides_at().is_some_and(|at| at <= now)
            && let Some(Decision { place, fate }) = self.pipe.decide(now)
            && let Some((came, slot)) = self.undecided.remove(place)
        {
            let ecn = self.slots.get(slot).map_or(Ecn::NotEct, |slot| slot.ecn);
            self.counters.note_fate(came, ecn, &fate);
            self.apply(slot, fate);
        }
    }

    fn store(&mut self, frame: &[u8], ecn: Ecn) -> usize {
        let place = self.free.pop().unwrap_or_else(|| {
            self.slots.push(HeldFrame { frame: Vec::new(), ecn });
            self.slots.len() - 1
        });
        if let Some(slot) = self.slots.get_mut(place) {
            slot.frame.clear();
            slot.frame.extend_from_slice(frame);
            slot.ecn = ecn;
            self.held_bytes += frame.len();
        }
        place
    }

    fn forget(&mut self, place: usize) {
        self.held_bytes -= self.slots.get(place).map_or(0, |slot| slot.frame.len());
        self.free.push(place);
    }

    /// Lets a fate come true for a frame that is kept.
    fn apply(&mut self, place: usize, fate: PacketOutcome) {
        match fate {
            PacketOutcome::Queued => {}
            PacketOutcome::Dropped(_) => self.forget(place),
            PacketOutcome::Delivered(delivery) => self.launch(place, &delivery),
            PacketOutcome::Duplicated(first, second) => {
                let Some(slot) = self.slots.get(place) else { return };
                let (frame, ecn) = (slot.frame.clone(), slot.ecn);
                let copy = self.store(&frame, ecn);
                self.launch(place, &first);
                self.launch(copy, &second);
            }
        }
    }

    fn launch(&mut self, place: usize, delivery: &Delivery) {
        let Some(slot) = self.slots.get_mut(place) else { return };
        if delivery.ecn == Ecn::Ce {
            ethernet_frame::mark(&mut slot.frame);
        }
        if let Some(corruption) = delivery.corruption {
            corruption.apply(ethernet_frame::on_the_line(&mut slot.frame));
        }
        self.accepted += 1;
        self.due.push(Reverse((delivery.at, self.accepted, place)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use byway_sim::aqm::CodelConfig;
    use byway_sim::{Discipline, Random};
    use byway_wire::Duration;
    use proptest::prelude::*;

    fn line(config: PipeConfig) -> SimplexLink {
        SimplexLink::new(PipeConfig { overhead: 0, ..config }, Random::new(1))
    }

    fn frame(ip_bytes: usize, tag: u8) -> Vec<u8> {
        vec![tag; ethernet_frame::ETHERNET_HEADER_LEN + ip_bytes]
    }

    #[test]
    fn a_frame_takes_its_time_and_arrives_as_it_was() {
        let mut line = line(PipeConfig::new(12_000_000, Duration::from_millis(10)).queue(1));
        let sent = Instant::from_millis(5);
        for tag in [1, 2, 3] {
            line.offer(sent, &frame(1_500, tag));
        }
        // One is being sent, one waits, the third finds no room.
        let mut arrived = Vec::new();
        assert_eq!(line.deadline(), Some(Instant::from_millis(16)));
        line.deliver(Instant::from_micros(15_999), |_, _| panic!("before its time"));
        line.deliver(Instant::from_millis(20), |at, frame| arrived.push((at, frame.to_vec())));
        let expected = [(16, 1), (17, 2)].map(|(ms, tag)| (Instant::from_millis(ms), frame(1_500, tag)));
        assert_eq!(arrived, expected);
        assert_eq!(line.counters().dropped_for(DropReason::QueueFull), 1);
        assert_eq!(line.deadline(), None);
    }

    #[test]
    fn codel_decides_later_and_nothing_is_forgotten() {
        let codel = Discipline::Codel(CodelConfig::default());
        let mut line =
            line(PipeConfig::new(1_200_000, Duration::from_millis(1)).queue(500).discipline(codel));
        for tag in 0..200 {
            line.offer(Instant::from_millis(u64::from(tag)), &frame(1_500, tag));
        }
        let mut arrived = 0;
        while let Some(at) = line.deadline() {
            line.deliver(at, |_, _| arrived += 1);
        }
        let counters = line.counters();
        assert!(counters.dropped_for(DropReason::Managed) > 0, "{counters:?}");
        assert_eq!(arrived, counters.delivered);
        assert!(counters.balance_with(0), "{counters:?}");
    }

    proptest! {
        #[test]
        fn the_books_balance_whatever_the_line_does(
            seed: u64,
            loss in 0.0..0.3_f64,
            copies in 0.0..0.3_f64,
            sizes in proptest::collection::vec(0..1_514_usize, 1..200),
        ) {
            let config = PipeConfig::new(5_000_000, Duration::from_millis(3))
                .queue(20)
                .loss(loss)
                .duplication(copies)
                .corruption(0.1)
                .reordering(0.1, Duration::from_millis(1));
            let mut line = SimplexLink::new(PipeConfig { overhead: 0, ..config }, Random::new(seed));
            let mut arrived = 0;
            for (number, size) in sizes.iter().enumerate() {
                let now = Instant::from_micros(700 * number as u64);
                line.offer(now, &vec![0x45; *size]);
                line.deliver(now, |at, _| { assert!(at <= now); arrived += 1; });
                let under_way = line.counters().in_flight;
                prop_assert!(line.counters().balance_with(under_way));
            }
            line.deliver(Instant::FAR_FUTURE, |_, _| arrived += 1);
            prop_assert_eq!(arrived, line.counters().delivered);
            prop_assert!(line.counters().balance_with(0));
            prop_assert_eq!(line.held_bytes, 0);
        }
    }
}
