//! What the host itself sends by its uplink, seen in the interface's counters before any queue, and
//! how long the line needs for it.
//!
//! ```text
//! counters ──> less what byway sent ──> the host's own bytes ──> backlog, which drains at the line's rate
//!     ──> until it is drained, byway sends nothing
//! ```
//!
//! Not all that an interface sends goes by the line: a copy to a host next door does not. So byway
//! sends a run at times during a long backlog. If that run waits for far less than the backlog
//! says, the counters tell nothing of the line, and are not heeded for a while.

use crate::interface_counters::{CounterLook, CounterReader, InterfaceCounters};
use crate::recent_unseen::RecentUnseen;
use byway_wire::{Duration, Instant};

/// A look older than this says nothing of the present.
const MAX_LOOK_AGE: Duration = Duration::from_millis(1_500);
/// Between two looks nearer than this, the host's bytes count as sent just now. Over a longer time
/// they count as sent evenly.
const BURST_LOOK_TIME: Duration = Duration::from_millis(10);
/// The longest backlog, as a time at the line's rate. Routers keep no longer queue in use, and who
/// fills the line for long leaves no longer one behind.
const MAX_BACKLOG_TIME: Duration = Duration::from_millis(200);
/// During a backlog that lasts, byway sends a run after each of these times.
const TRIAL_INTERVAL: Duration = Duration::from_millis(250);
/// The shortest backlog of which a run tells whether it is one.
const MIN_TRIAL_BACKLOG: Duration = Duration::from_millis(20);
/// The host's bytes do not go by the line if a run waits for less than this part of the backlog.
const MIN_WAIT_SHARE: f64 = 0.25;
/// The time for which counters are not heeded that showed what does not go by the line. It doubles
/// each time, up to the longest.
const FIRST_DISTRUST_TIME: Duration = Duration::from_secs(10);
const MAX_DISTRUST_TIME: Duration = Duration::from_secs(320);
/// The part of the bytes that interfaces count which is payload of TCP: full segments on Ethernet.
pub(crate) const PAYLOAD_SHARE: f64 = 1_448.0 / 1_514.0;

/// The host's own traffic on its uplink, and the backlog that it makes there.
#[derive(Clone, Debug)]
pub struct HostTraffic {
    counters: CounterReader,
    ours: RecentUnseen,
    /// The line's rate in bytes per second. `None`: not known, so no backlog is.
    rate: Option<f64>,
    /// Bytes of the host that the line has yet to carry.
    backlog: f64,
    drained_at: Instant,
    /// Since when there has been a backlog without a pause.
    blocked_since: Option<Instant>,
    /// The host's own bytes on the line so far.
    total: f64,
    distrusted_until: Instant,
    distrust_time: Duration,
}

/// Whether byway may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The line is free of the host's own traffic.
    Free,
    /// The line still carries what the host sent. A run may be sent all the same, to see whether it
    /// waits.
    Trial,
    /// The line still carries what the host sent.
    BusyUntil(Instant),
}

impl HostTraffic {
    /// A host of which nothing is known.
    #[must_use]
    pub fn new(now: Instant) -> Self {
        Self {
            counters: CounterReader::new(MAX_LOOK_AGE),
            ours: RecentUnseen::new(now),
            rate: None,
            backlog: 0.0,
            drained_at: now,
            blocked_since: None,
            total: 0.0,
            distrusted_until: Instant::ZERO,
            distrust_time: FIRST_DISTRUST_TIME,
        }
    }

    /// The interface is another from now on.
    pub fn move_on(&mut self, now: Instant) {
        *self = Self { total: self.total, ..Self::new(now) };
    }

    /// The host's own bytes on the line so far, as payload.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.total as u64
    }

    /// Sets the line's rate, in bytes of payload per second. `None`: it is not known.
    pub fn set_rate(&mut self, rate: Option<u64>, now: Instant) {
        self.drain(now);
        self.rate = rate.map(|rate| rate.max(1) as f64);
        if rate.is_none() {
            (self.backlog, self.blocked_since) = (0.0, None);
        }
    }

    /// Notes that byway handed these bytes to the interface, as its counter counts them.
    pub fn on_sent(&mut self, bytes: u64, now: Instant) {
        self.ours.on_sent(bytes, now);
    }

    fn drain(&mut self, now: Instant) {
        let time = now.since(self.drained_at).as_secs_f64();
        self.drained_at = self.drained_at.max(now);
        if let Some(rate) = self.rate {
            self.backlog = (self.backlog - rate * time).max(0.0);
        }
        if self.backlog <= 0.0 {
            self.blocked_since = None;
        }
    }

    /// Takes in what the counters show now. `None`: they cannot be read.
    pub fn look(&mut self, shown: Option<InterfaceCounters>, now: Instant) {
        let CounterLook::Passed { bytes, time } = self.counters.look(now, shown) else {
            self.drain(now);
            return;
        };
        let host = self.ours.split(bytes.sent, now) as f64 * PAYLOAD_SHARE;
        let Some(rate) = self.rate.filter(|_| now >= self.distrusted_until) else {
            self.drain(now);
            return;
        };
        // Whatever the host sends, the line carries no more than its rate.
        self.total += host.min(rate * (time + MAX_BACKLOG_TIME).as_secs_f64());
        if time > BURST_LOOK_TIME {
            self.backlog += host;
            self.drain(now);
        } else {
            self.drain(now);
            self.backlog += host;
        }
        self.backlog = self.backlog.min(rate * MAX_BACKLOG_TIME.as_secs_f64());
        if self.backlog > 0.0 {
            self.blocked_since.get_or_insert(now);
        }
    }

    /// How long the line needs for what the host sent.
    #[must_use]
    pub fn backlog(&self) -> Duration {
        self.rate.map_or(Duration::ZERO, |rate| Duration::from_secs_f64(self.backlog / rate))
    }

    /// Whether byway may send now.
    pub fn way(&mut self, now: Instant) -> Way {
        self.drain(now);
        match self.blocked_since {
            None => Way::Free,
            Some(since) if now.since(since) >= TRIAL_INTERVAL => Way::Trial,
            Some(since) => Way::BusyUntil((now + self.backlog()).min(since + TRIAL_INTERVAL)),
        }
    }

    /// Notes that a run was sent as a trial: the next follows after a while.
    pub fn on_trial(&mut self, now: Instant) {
        self.blocked_since = self.blocked_since.map(|_| now);
    }

    /// Judges a run that was sent while there was a backlog: whether it waited as if the host's
    /// bytes were before it.
    pub fn on_waited(&mut self, backlog: Duration, waited: Duration, now: Instant) {
        if backlog < MIN_TRIAL_BACKLOG || now < self.distrusted_until {
            return;
        }
        if waited >= backlog.mul_f64(MIN_WAIT_SHARE) {
            self.distrust_time = FIRST_DISTRUST_TIME;
            return;
        }
        self.distrusted_until = now + self.distrust_time;
        self.distrust_time = (self.distrust_time * 2).min(MAX_DISTRUST_TIME);
        (self.backlog, self.blocked_since) = (0.0, None);
    }

    /// Whether the counters are heeded.
    #[must_use]
    pub fn is_heeded(&self, now: Instant) -> bool {
        self.rate.is_some() && now >= self.distrusted_until
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use byway_wire::seeded_random::mixed;

    const STEP: Duration = Duration::from_millis(1);
    const PACKET: f64 = 1_448.0;

    /// A host that sends bursts at times that chance sets, an interface that counts them at once,
    /// and a line with a queue.
    struct World {
        seed: u64,
        now: Instant,
        /// The line's rate, and what is believed of it, in bytes per second.
        line: f64,
        traffic: HostTraffic,
        counters: InterfaceCounters,
        /// The host's bytes in the line's queue.
        queue: f64,
        /// Whether what the host sends goes by the line.
        by_line: bool,
    }

    impl World {
        fn new(seed: u64, believed: f64) -> Self {
            let line = 100e3 * (1 + mixed(seed) % 100) as f64;
            let now = Instant::from_millis(1);
            let mut traffic = HostTraffic::new(now);
            traffic.set_rate(Some((line * believed) as u64), now);
            let counters = InterfaceCounters { sent: mixed(seed) >> 1, received: 0 };
            traffic.look(Some(counters), now);
            Self { seed, now, line, traffic, counters, queue: 0.0, by_line: true }
        }

        fn chance(&mut self, of: u64) -> u64 {
            self.seed = mixed(self.seed);
            self.seed % of
        }

        /// A millisecond in which the host sends this much, as payload.
        fn step(&mut self, host: f64) {
            self.now += STEP;
            self.queue = (self.queue - self.line * STEP.as_secs_f64()).max(0.0);
            self.queue += if self.by_line { host } else { 0.0 };
            self.counters.sent += (host / PAYLOAD_SHARE) as u64;
            self.traffic.look(Some(self.counters), self.now);
        }
    }

    /// A rate that is believed 3 % too high is held 3 % below, and so is right.
    #[test]
    fn the_way_is_free_once_the_hosts_bytes_have_left_and_soon_after() {
        for seed in 0..300 {
            let error = [1.0, 1.03, 0.97, 1.0][(seed % 4) as usize];
            let mut world = World::new(seed, 0.97 * error);
            let (mut free, mut idle, mut exceeds) = (0, 0, false);
            let counted = world.line * MAX_BACKLOG_TIME.as_secs_f64();
            for _ in 0..5_000 {
                let bursts = world.chance(150) == 0;
                world.step(if bursts { PACKET * 10.0 } else { 0.0 });
                let (way, left) = (world.traffic.way(world.now), world.queue);
                // Bursts in a row may make a longer queue than any that is counted.
                exceeds = left > 0.0 && (exceeds || left > counted * 0.95);
                assert!(way != Way::Free || exceeds || left <= PACKET, "{seed}: {left} bytes are left");
                idle += u32::from(world.queue <= 0.0);
                free += u32::from(way == Way::Free && world.queue <= 0.0);
            }
            // A backlog that drains 6 % slower than the line takes this much longer.
            let least = f64::from(idle) - 0.07 * f64::from(5_000 - idle) - 100.0;
            assert!(f64::from(free) >= least, "{seed}: {free} of {idle} ms");
        }
    }

    #[test]
    fn what_goes_to_a_host_next_door_is_found_out_and_not_heeded() {
        for seed in 0..50 {
            let mut world = World::new(seed, 0.97);
            world.by_line = false;
            let (mut trials, mut free) = (0, 0);
            for _ in 0..9_000 {
                world.step(world.line * 10.0 * STEP.as_secs_f64());
                match world.traffic.way(world.now) {
                    Way::Trial => {
                        trials += 1;
                        let backlog = world.traffic.backlog();
                        world.traffic.on_trial(world.now);
                        world.traffic.on_waited(backlog, Duration::from_micros(300), world.now);
                    }
                    Way::Free => free += 1,
                    Way::BusyUntil(until) => assert!(until > world.now),
                }
            }
            assert_eq!(trials, 1, "{seed}");
            assert!(free > 8_500, "{seed}: {free} ms");
            // Later it is looked at again, for ever longer pauses.
            for _ in 0..2_000 {
                world.step(world.line * 10.0 * STEP.as_secs_f64());
            }
            assert_ne!(world.traffic.way(world.now), Way::Free, "{seed}");
        }
    }

    #[test]
    fn a_run_that_waits_as_the_backlog_says_keeps_the_counters_heeded() {
        let mut world = World::new(3, 0.97);
        let mut trials = 0;
        for _ in 0..5_000 {
            world.step(world.line * 1.5 * STEP.as_secs_f64());
            if world.traffic.way(world.now) == Way::Trial {
                trials += 1;
                let backlog = world.traffic.backlog();
                world.traffic.on_trial(world.now);
                world.traffic.on_waited(backlog, backlog, world.now);
            }
        }
        assert!((18..=20).contains(&trials), "{trials} in five seconds");
        assert!(world.traffic.is_heeded(world.now));
    }

    #[test]
    fn counters_that_wrap_jump_or_are_gone_stop_nobody() {
        let mut world = World::new(5, 0.97);
        for shown in [None, Some(0), Some(1 << 62), Some(3), None, Some(u64::MAX), Some(7)] {
            world.now += STEP;
            world.traffic.look(shown.map(|sent| InterfaceCounters { sent, received: 0 }), world.now);
            assert_eq!(world.traffic.way(world.now), Way::Free, "{shown:?}");
        }
        world.now += Duration::from_secs(4);
        world.traffic.look(Some(InterfaceCounters { sent: 1 << 20, received: 0 }), world.now);
        assert_eq!(world.traffic.way(world.now), Way::Free, "the host slept");
    }

    #[test]
    fn without_a_known_rate_nothing_is_judged_and_what_byway_sent_is_not_the_hosts() {
        let mut world = World::new(6, 0.97);
        world.traffic.set_rate(None, world.now);
        world.step(1e6);
        assert_eq!(world.traffic.way(world.now), Way::Free);
        world.traffic.set_rate(Some(world.line as u64), world.now);
        for _ in 0..200 {
            world.traffic.on_sent(3_028, world.now);
            world.step(2.0 * PACKET);
            assert_eq!(world.traffic.way(world.now), Way::Free);
        }
        assert!(world.traffic.total() < 200, "{}", world.traffic.total());
    }
}
