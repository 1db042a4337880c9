//! The rate of a line, learnt from what was delivered whenever a queue was seen, and how near byway
//! goes to it.
//!
//! ```text
//! unknown ──a queue, twice──> hold: at most 97 % of the rate ──10 s──> try more, a little more each moment
//!                                   ^                                        │
//!                                   └────────── a queue is seen <────────────┘
//! ```
//!
//! The law goes on judging: this only limits it. A rate that is believed too high leaves the law
//! alone, and the next queues correct it.

use byway_wire::{Duration, Instant};

/// Rates are measured over this time.
const MEASURED_TIME: Duration = Duration::from_millis(200);
/// The time between two points of the record from which rates are measured.
const POINT_INTERVAL: Duration = Duration::from_millis(10);
const MAX_POINTS: usize = 24;
/// Queues nearer than this to each other count as one.
const MIN_QUEUE_INTERVAL: Duration = Duration::from_millis(300);
/// Queues that must be seen before a rate is believed. The first ends the start, during which less
/// than the line's rate was delivered.
const MIN_QUEUES: u32 = 2;
/// Of all queues in this time, the greatest rate is kept.
const SAMPLE_TIME: Duration = Duration::from_secs(8);
/// The number of samples whose greatest rate is the line's: those of the last 24 to 32 seconds.
const MAX_SAMPLES: usize = 4;
/// The part of the line's rate at which byway stays: the queue of a burst drains, and an error of
/// the rate makes no queue.
const HELD_SHARE: f64 = 0.97;
/// After this time without a queue, more than the held rate is tried.
const HOLD_TIME: Duration = Duration::from_secs(10);
/// The same after a try that found more.
const SHORT_HOLD_TIME: Duration = Duration::from_secs(2);
/// The line got slower if it carries less than this part of what byway may send, for this time.
const SLOW_SHARE: f64 = 0.75;
const SLOW_TIME: Duration = Duration::from_secs(1);
/// A try finds more if the rate rises by more than this part.
const RISE_SHARE: f64 = 0.03;
/// After `t` seconds of a try, the held rate is exceeded by this times `t²`.
const TRY_GROWTH: f64 = 0.12;

/// What is known of a line's rate. Rates are in bytes per second.
#[derive(Clone, Debug)]
pub struct LineRate {
    /// When bytes had left the line, and how many, the oldest first.
    points: [(Instant, u64); MAX_POINTS],
    point_count: usize,
    /// The most that was delivered at queues, the latest first, and since when the first counts.
    samples: [u64; MAX_SAMPLES],
    sampled_since: Instant,
    /// What was delivered at the latest queue.
    latest: u64,
    /// Queues that were seen, at most [`MIN_QUEUES`], and when the latest was.
    queues: u32,
    queue_at: Instant,
    hold_time: Duration,
    /// Since when the line has carried far less than byway may send.
    slow_since: Option<Instant>,
}

impl LineRate {
    /// A line of which nothing is known.
    #[must_use]
    pub const fn new(now: Instant) -> Self {
        Self {
            points: [(now, 0); MAX_POINTS],
            point_count: 0,
            samples: [0; MAX_SAMPLES],
            sampled_since: now,
            latest: 0,
            queues: 0,
            queue_at: now,
            hold_time: SHORT_HOLD_TIME,
            slow_since: None,
        }
    }

    /// Notes that `total` bytes had left the line at this time, since the beginning.
    pub fn on_delivered(&mut self, at: Instant, total: u64) {
        let points = self.points.get(..self.point_count).unwrap_or_default();
        if points.last().is_some_and(|(last, _)| at.since(*last) < POINT_INTERVAL) {
            return;
        }
        // A pause says nothing of the line. A try begins anew after it.
        if points.last().is_some_and(|(last, _)| at.since(*last) > MEASURED_TIME) {
            self.point_count = 0;
            self.queue_at += at.since(self.queue_at).saturating_sub(self.hold_time);
        }
        if self.point_count == MAX_POINTS {
            self.points.rotate_left(1);
            self.point_count -= 1;
        }
        if let Some(point) = self.points.get_mut(self.point_count) {
            *point = (at, total);
            self.point_count += 1;
        }
    }

    /// The rate over the latest time, if it is known.
    fn measured(&self) -> Option<u64> {
        let points = self.points.get(..self.point_count).unwrap_or_default();
        let (at, total) = *points.last()?;
        let (since, before) = points.iter().rev().find(|(since, _)| at.since(*since) >= MEASURED_TIME)?;
        Some((total.saturating_sub(*before) as f64 / at.since(*since).as_secs_f64()) as u64)
    }

    /// Notes that a queue was seen: the line carries no more than it does now. `is_held`: whether
    /// byway stayed below the [`limit`](Self::limit) because of it.
    pub fn on_queue(&mut self, is_held: bool, now: Instant) {
        // Somebody else's, or a mistake: at the held rate byway makes none. If the line got slower,
        // the law finds it without a limit.
        if is_held && now.since(self.queue_at) <= self.hold_time {
            return;
        }
        let before = self.rate();
        let Some(rate) = self.measured() else { return };
        if now.since(self.sampled_since) >= SAMPLE_TIME {
            self.samples.rotate_right(1);
            (self.samples[0], self.sampled_since) = (0, now);
        }
        self.samples[0] = self.samples[0].max(rate);
        self.latest = rate;
        let is_another = self.queues == 0 || now.since(self.queue_at) >= MIN_QUEUE_INTERVAL;
        let rose = match (before, self.rate()) {
            (Some(before), Some(rate)) => rate as f64 > before as f64 * (1.0 + RISE_SHARE),
            _ => true,
        };
        (self.queue_at, self.queues) = (now, MIN_QUEUES.min(self.queues + u32::from(is_another)));
        self.hold_time = if rose { SHORT_HOLD_TIME } else { HOLD_TIME };
    }

    /// Notes whether byway has more to send than the held rate. If the line carries far less all
    /// the same for a while, it got slower, and only what it carries now is believed. The law may
    /// not hear of it: its queues drain while it waits for the host. Returns whether that was so.
    pub fn on_wanted(&mut self, wants_more: bool, now: Instant) -> bool {
        let (Some(held), Some(rate)) = (self.held(), self.measured()) else { return false };
        if !wants_more || rate as f64 >= held as f64 * SLOW_SHARE {
            self.slow_since = None;
            return false;
        }
        if now.since(*self.slow_since.get_or_insert(now)) < SLOW_TIME {
            return false;
        }
        self.samples = [rate, 0, 0, 0];
        (self.latest, self.slow_since) = (rate, None);
        (self.sampled_since, self.queue_at, self.hold_time) = (now, now, SHORT_HOLD_TIME);
        true
    }

    /// The line's rate, if it is known.
    #[must_use]
    pub fn rate(&self) -> Option<u64> {
        (self.queues >= MIN_QUEUES).then(|| self.samples.into_iter().fold(0, u64::max))
    }

    /// The rate at which the queue of a burst surely drains: the latest queue may have shown a line
    /// that got slower. `None`: it is not known.
    #[must_use]
    pub fn drain(&self) -> Option<u64> {
        self.rate().map(|rate| (rate.min(self.latest) as f64 * HELD_SHARE) as u64)
    }

    /// The rate at which byway stays. `None`: the law alone decides.
    #[must_use]
    pub fn held(&self) -> Option<u64> {
        self.rate().map(|rate| (rate as f64 * HELD_SHARE) as u64)
    }

    /// The most that byway may send now. `None`: the law alone decides.
    #[must_use]
    pub fn limit(&self, now: Instant) -> Option<u64> {
        let tried = now.since(self.queue_at).saturating_sub(self.hold_time).as_secs_f64();
        Some((self.held()? as f64 * (1.0 + TRY_GROWTH * tried * tried)) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use byway_wire::seeded_random::mixed;

    const STEP: Duration = Duration::from_millis(5);

    /// A line, and a sender that grows by a tenth per second, up to the limit. It falls to .9 of
    /// the line's rate when it finds a queue.
    struct World {
        seed: u64,
        now: Instant,
        line: f64,
        pace: f64,
        total: f64,
        learnt: LineRate,
        queues: u32,
        /// Nanoseconds by which departures are told late, at most.
        jitter: u64,
    }

    impl World {
        fn new(seed: u64) -> Self {
            let line = 20e3 * (1 + mixed(seed) % 1_000) as f64;
            let now = Instant::from_millis(1);
            let jitter = mixed(seed ^ 1) % 2_000_000;
            Self {
                seed,
                now,
                line,
                pace: line / 2.0,
                total: 0.0,
                learnt: LineRate::new(now),
                queues: 0,
                jitter,
            }
        }

        fn run(&mut self, seconds: u64) {
            for _ in 0..seconds * 200 {
                self.now += STEP;
                self.seed = mixed(self.seed);
                self.total += self.pace.min(self.line) * STEP.as_secs_f64();
                let late = Duration::from_nanos(self.seed % (self.jitter + 1));
                self.learnt.on_delivered(self.now + late, self.total as u64);
                let limit = self.learnt.limit(self.now).map_or(f64::INFINITY, |limit| limit as f64);
                let is_held = self.pace >= limit;
                if self.pace > self.line * 1.01 {
                    self.learnt.on_queue(is_held, self.now);
                    self.queues += 1;
                    self.pace = self.line * 0.9;
                }
                self.pace = (self.pace * (1.0 + 0.1 * STEP.as_secs_f64())).min(limit);
            }
        }

        /// The believed rate as a part of the line's.
        fn believed(&self) -> f64 {
            self.learnt.rate().unwrap_or_default() as f64 / self.line
        }
    }

    #[test]
    fn lines_of_any_rate_are_learnt_and_rarely_filled() {
        for seed in 0..200 {
            let mut world = World::new(seed);
            world.run(20);
            assert!((0.98..1.025).contains(&world.believed()), "{seed}: {}", world.believed());
            let queues = world.queues;
            world.run(60);
            assert!((0.98..1.025).contains(&world.believed()), "{seed}: {}", world.believed());
            let queues = world.queues - queues;
            assert!((4..=12).contains(&queues), "{seed}: {queues} queues in a minute");
        }
    }

    #[test]
    fn a_line_that_gets_slower_or_faster_is_learnt_anew() {
        for seed in 0..200 {
            let mut world = World::new(seed);
            world.run(30);
            let factor = [0.5, 0.97, 1.03, 2.0][(seed % 4) as usize];
            world.line *= factor;
            world.run(60);
            assert!((0.97..1.03).contains(&world.believed()), "{seed}: {}", world.believed());
        }
    }

    #[test]
    fn queues_of_others_at_the_held_rate_take_nothing_from_it() {
        let mut world = World::new(7);
        world.run(30);
        let before = world.believed();
        for _ in 0..1_000 {
            world.now += STEP;
            world.learnt.on_queue(true, world.learnt.queue_at + STEP);
        }
        assert!((world.believed() - before).abs() < 1e-9);
        assert!(world.learnt.limit(world.now).unwrap() >= world.learnt.held().unwrap());
    }

    #[test]
    fn a_line_that_carries_far_less_than_wanted_is_believed_to() {
        for (wants, seconds, is_believed) in [(true, 2, true), (true, 1, false), (false, 5, false)] {
            let mut world = World::new(9);
            world.run(30);
            let (before, mut heard) = (world.believed(), false);
            for _ in 0..seconds * 200 {
                world.now += STEP;
                world.total += world.line * 0.5 * STEP.as_secs_f64();
                world.learnt.on_delivered(world.now, world.total as u64);
                heard |= world.learnt.on_wanted(wants, world.now);
            }
            let expected = if is_believed { 0.5 } else { before };
            assert!((world.believed() - expected).abs() < 0.02, "{}", world.believed());
            assert_eq!(heard, is_believed);
        }
    }

    #[test]
    fn a_try_begins_anew_after_a_pause() {
        let mut world = World::new(11);
        world.run(30);
        world.now += Duration::from_secs(3_600);
        world.learnt.on_delivered(world.now, world.total as u64 + 3_000);
        assert_eq!(world.learnt.limit(world.now), world.learnt.held());
    }
}
