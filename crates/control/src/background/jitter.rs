//! How late packets are where there is no queue.

use super::closing_up::ClosingUp;
use super::constants::{
    DELAY_WINDOW_PACKETS, JITTER_SPREADS, MAX_BURST_TIME, MAX_JITTER, MAX_PROVEN_JITTER, OWN_QUEUE_PACKETS,
    PROVEN_RISE_MEASUREMENTS,
};
use byway_wire::{Duration, Instant};

/// Number of slots over which the usual wait is a median: two rows of `OWN_QUEUE_PACKETS` slots.
const DELAY_SLOT_COUNT: usize = 2 * OWN_QUEUE_PACKETS as usize;

/// The jitter of one path. Flows of any rate on one line get nearly equal results, so that they
/// agree whether there is a queue.
#[derive(Clone, Debug)]
pub(super) struct Jitter {
    /// The mean delays of the latest slots of [`MAX_BURST_TIME`], the latest first, in nanoseconds.
    delays: [i64; DELAY_SLOT_COUNT],
    /// The mean distance of a packet's delay from the delays just before, of the same slots.
    distances: [i64; DELAY_SLOT_COUNT],
    /// How many slots there were in all since the route changed.
    turn: usize,
    /// When the present slot began; the sums of its delays and distances, and its packets.
    slot_at: Instant,
    slot_delay: i64,
    slot_distance: i64,
    slot_packets: i64,
    /// What packets usually wait where no queue is seen, in nanoseconds.
    usual: Option<f64>,
    /// The usual distance of a packet's delay from the delays just before, in nanoseconds.
    spread: f64,
    /// Whether there is jitter for sure.
    pub closing_up: ClosingUp,
}

impl Jitter {
    /// The number of slots before a packet from which its distance is taken.
    const NEAR_SLOT_COUNT: usize = 3;

    /// Nothing is known yet.
    pub fn new() -> Self {
        Self {
            delays: [0; DELAY_SLOT_COUNT],
            distances: [0; DELAY_SLOT_COUNT],
            turn: 0,
            slot_at: Instant::ZERO,
            slot_delay: 0,
            slot_distance: 0,
            slot_packets: 0,
            usual: None,
            spread: 0.0,
            closing_up: ClosingUp::default(),
        }
    }

    /// The wait up to which a packet may have met no queue.
    ///
    /// | jitter is | bound |
    /// |---|---|
    /// | not proven | twice the usual wait, since half of the packets wait longer; at most [`MAX_JITTER`] |
    /// | proven | beyond [`MAX_JITTER`] also the usual wait and [`JITTER_SPREADS`] spreads |
    /// | proven, and delays fall at once | also by how much they do |
    ///
    /// On a fast line with jitter nearly all packets wait almost as long as the latest may. Their
    /// delays then tell of a queue only by what exceeds the usual wait by more than the spread.
    pub fn bound(&self) -> Duration {
        let usual = self.usual.unwrap_or(0.0);
        let twice = 2.0 * usual;
        let believed = twice.min(MAX_JITTER.as_nanos() as f64);
        if !self.closing_up.is_proven() {
            return Duration::from_nanos(believed as u64);
        }
        let spreads = usual + JITTER_SPREADS * self.spread;
        let proven = believed.max(twice.min(spreads)).max(self.closing_up.expected_fall());
        Duration::from_nanos(proven as u64).min(MAX_PROVEN_JITTER)
    }

    /// The usual distance of a packet's delay from the delays just before, in nanoseconds.
    pub fn spread(&self) -> f64 {
        self.spread
    }

    /// The route is another one, so its usual wait is unknown.
    pub fn forget(&mut self) {
        (self.usual, self.turn) = (None, 0);
        (self.slot_delay, self.slot_distance, self.slot_packets) = (0, 0, 0);
    }

    /// Takes into account a packet that met no queue. `base`: the least delay of the route. All
    /// delays are in nanoseconds. Returns whether the bound may have changed.
    ///
    /// The usual wait is the median of eight mean delays minus the least delay. Each mean covers 10
    /// ms ([`MAX_BURST_TIME`]). A higher result is smoothed, because a short queue may cause it.
    pub fn sample(&mut self, sent_at: Instant, delay: i64, base: Option<i64>) -> bool {
        self.slot_delay = self.slot_delay.saturating_add(delay);
        self.slot_packets += 1;
        if self.usual.is_some() {
            // Taken from the delays just before, since a TCP's queue moves slowly and is no spread.
            let near = self.turn.clamp(1, Self::NEAR_SLOT_COUNT);
            let near = self.delays.iter().take(near).map(|delay| delay / near as i64).sum::<i64>();
            self.slot_distance =
                self.slot_distance.saturating_add(delay.saturating_sub(near).saturating_abs());
        }
        // Each of the first packets is a slot, since nothing else is known yet.
        if self.turn >= DELAY_SLOT_COUNT && sent_at.since(self.slot_at) < MAX_BURST_TIME {
            return false;
        }
        // A slot counts once, with however many packets: flows of any rate measure the same jitter.
        self.delays.rotate_right(1);
        self.delays[0] = self.slot_delay / self.slot_packets;
        self.distances.rotate_right(1);
        self.distances[0] = self.slot_distance / self.slot_packets;
        self.slot_at = sent_at;
        (self.slot_delay, self.slot_distance, self.slot_packets) = (0, 0, 0);
        self.turn += 1;
        if !self.turn.is_multiple_of(DELAY_SLOT_COUNT / 2) {
            return false;
        }
        let median = self.median(self.delays);
        let waits = median.saturating_sub(base.unwrap_or(median)).max(0) as f64;
        self.usual = Some(self.usual.map_or(waits, |usual| waits.min(self.risen(usual, waits))));
        let distance = self.median(self.distances) as f64;
        let risen = self.spread + (distance - self.spread) / DELAY_WINDOW_PACKETS as f64;
        self.spread = if self.turn <= DELAY_SLOT_COUNT { risen } else { risen.min(distance) };
        true
    }

    /// The usual wait after one measurement more. It falls at once. It rises by a factor e in 2.6 s
    /// at one measurement per 40 ms. Where jitter is proven to exceed [`MAX_JITTER`], it rises in a
    /// second.
    fn risen(&self, usual: f64, waits: f64) -> f64 {
        let exceeds = self.closing_up.is_proven() && 2.0 * usual >= MAX_JITTER.as_nanos() as f64;
        let measurements = if exceeds { PROVEN_RISE_MEASUREMENTS } else { 2.0 * DELAY_WINDOW_PACKETS as f64 };
        usual + (waits - usual) / measurements
    }

    /// The median of what the latest slots have.
    fn median(&self, mut slots: [i64; DELAY_SLOT_COUNT]) -> i64 {
        let known = &mut slots[..self.turn.min(DELAY_SLOT_COUNT)];
        known.sort_unstable();
        known.get(known.len() / 2).copied().unwrap_or(0)
    }
}
