//! Governs what byway sends by an uplink. byway waits for what the host itself sends, and stays
//! just below the line's rate. So nobody finds a queue of byway's.
//!
//! ```text
//! counters, less what byway sent ──> the host's own bytes ──> closed until the line has carried them
//! acknowledged bytes, and queues that the law saw ──> the line's rate ──> at most 97 % of it
//! ```
//!
//! The law `background` goes on judging what it hears of the path. This only limits it. Before the
//! law has seen two queues of its own the line's rate is not known, and nothing is limited.

use crate::host_record::HostRecord;
use crate::host_traffic::{HostTraffic, Way};
use crate::interface_counters::InterfaceCounters;
use crate::line_rate::LineRate;
use crate::line_share::{LineShare, OtherSessions};
use crate::shared_queue::{MAX_FALL_GAP, MIN_FALL_SHARE, SharedQueue};
use byway_wire::{Duration, Instant};

/// Bytes of payload in a full packet on Ethernet.
const PACKET_BYTES: f64 = 1_472.0;
/// The part of the rate at which byway goes on after what the host sent. At 97 % of the line, a
/// queue that was not seen would stay for long.
const DRAINING_SHARE: f64 = 0.9;
/// The longest time that a session waits for the packets of those before it.
const MAX_TURN_WAIT: Duration = Duration::from_millis(50);

/// What a session tells of what it sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionReading {
    /// Bytes of payload that the peer acknowledged on these paths so far.
    pub acked_bytes: u64,
    /// When the newest packet was sent that was acknowledged.
    pub newest_acked_at: Instant,
    /// How long that packet waited in queues.
    pub queueing: Duration,
    /// The rate that the law believes its own, in bytes per second.
    pub own_rate: u64,
    /// Whether the governor's limit holds data back, and not the law.
    pub is_limited: bool,
    /// Whether the session has data to send.
    pub has_data: bool,
}

/// What byway may send. The default limits nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Permission {
    /// Bytes of payload per second at most.
    pub rate: Option<u64>,
    /// Nothing until this time: the line still carries what the host sent.
    pub closed_until: Option<Instant>,
}

/// A time in which byway may send though the line should carry the host's bytes first.
#[derive(Clone, Copy, Debug)]
struct Trial {
    begun_at: Instant,
    /// `None`: it has not ended.
    ended_at: Option<Instant>,
    backlog: Duration,
}

/// A governor of what one session sends.
#[derive(Clone, Debug)]
pub struct Governor {
    host: HostTraffic,
    record: HostRecord,
    line: LineRate,
    paths: SharedQueue,
    share: LineShare,
    /// When this session's turn comes after what the host sent.
    turn_at: Instant,
    /// After what the host sent, the line gets time until then to carry what was not seen.
    drains_until: Instant,
    /// The law's rate when it was last read.
    own_rate: u64,
    /// When that fell because the law saw a queue of its own.
    fell_at: Option<Instant>,
    newest_acked_at: Instant,
    trial: Option<Trial>,
}

impl Governor {
    /// A governor of an uplink of which nothing is known.
    #[must_use]
    pub fn new(now: Instant) -> Self {
        Self {
            host: HostTraffic::new(now),
            record: HostRecord::default(),
            line: LineRate::new(now),
            paths: SharedQueue::default(),
            share: LineShare::new(now),
            drains_until: now,
            turn_at: now,
            own_rate: 0,
            fell_at: None,
            newest_acked_at: now,
            trial: None,
        }
    }

    /// Notes what this session handed to the interface, as its counter counts them.
    pub fn on_sent(&mut self, wire_bytes: u64, now: Instant) {
        self.host.on_sent(wire_bytes, now);
    }

    /// Notes what other sessions of byway on this host did.
    pub fn on_others(&mut self, others: OtherSessions, now: Instant) {
        self.host.on_sent(others.sent, now);
        self.share.on_others(others, now < self.turn_at, now);
    }

    /// Takes in what the counters of the uplink's interface show. `None`: they cannot be read.
    pub fn look(&mut self, shown: Option<InterfaceCounters>, now: Instant) {
        self.host.look(shown, now);
        self.record.push(now, self.host.total() + self.share.total());
    }

    /// Takes in what the session tells. `paces`: the number of each path on which it sends, and the
    /// law's pace there in bytes per second.
    pub fn read(&mut self, session: &SessionReading, paces: impl Iterator<Item = (u32, u64)>, now: Instant) {
        if !self.paths.read(paces, now) {
            // What was learnt of the line is what other paths carried.
            self.line = LineRate::new(now);
            self.host.set_rate(None, now);
            (self.own_rate, self.trial) = (0, None);
        }
        if session.newest_acked_at > self.newest_acked_at {
            self.newest_acked_at = session.newest_acked_at;
            let delivered = session.acked_bytes + self.record.at(session.newest_acked_at);
            self.line.on_delivered(session.newest_acked_at + session.queueing, delivered);
        }
        if let Some(trial) = self.trial.filter(|trial| session.newest_acked_at >= trial.begun_at) {
            self.trial = None;
            // A packet that left later says nothing of that backlog.
            if trial.ended_at.is_none_or(|ended| session.newest_acked_at < ended) {
                self.host.on_waited(trial.backlog, session.queueing, now);
            }
        }
        let fell = (session.own_rate as f64) < self.own_rate as f64 * (1.0 - MIN_FALL_SHARE);
        self.fell_at = if fell { Some(now) } else { self.fell_at };
        if self.fell_at.is_some_and(|at| now.since(at) <= MAX_FALL_GAP) && self.paths.is_shared(now) {
            self.fell_at = None;
            self.line.on_queue(session.is_limited, now);
            self.host.set_rate(self.line.drain(), now);
        }
        self.own_rate = session.own_rate;
        let wants_more = session.has_data && self.line.held().is_some_and(|held| session.own_rate >= held);
        if self.line.on_wanted(wants_more, now) {
            self.host.set_rate(self.line.drain(), now);
        }
    }

    /// What the session may send now.
    pub fn permission(&mut self, now: Instant) -> Permission {
        let way = self.host.way(now);
        if let Some(trial) = self.trial.as_mut().filter(|_| way != Way::Trial) {
            trial.ended_at.get_or_insert(now);
        }
        match way {
            Way::BusyUntil(until) => {
                let turn = self.packet_time() * self.share.before();
                self.turn_at = until + turn.min(MAX_TURN_WAIT);
                self.drains_until =
                    self.turn_at + until.since(now).max(self.drains_until.since(self.turn_at));
            }
            Way::Trial => {
                let backlog = self.host.backlog();
                self.trial = Some(Trial { begun_at: now, ended_at: None, backlog });
                self.host.on_trial(now);
                self.turn_at = now;
            }
            Way::Free => {}
        }
        let closed_until = Some(self.turn_at).filter(|turn_at| now < *turn_at);
        let share = if now < self.drains_until { DRAINING_SHARE } else { 1.0 };
        let limit = self.line.limit(now).map(|limit| (limit as f64 * share) as u64);
        Permission { rate: limit.map(|limit| self.share.of(limit)), closed_until }
    }

    /// How long the line carries a full packet. Sessions that waited for the host do not send all
    /// at once: that would be a queue.
    fn packet_time(&self) -> Duration {
        let rate = self.line.rate().map_or(f64::INFINITY, |rate| rate.max(1) as f64);
        Duration::from_secs_f64(PACKET_BYTES / rate)
    }

    /// The line's rate in bytes of payload per second. `None`: it is not known.
    #[must_use]
    pub fn line_rate(&self) -> Option<u64> {
        self.line.rate()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host_traffic::PAYLOAD_SHARE;
    use byway_wire::seeded_random::mixed;

    const STEP: Duration = Duration::from_millis(1);
    const HEADERS: f64 = 42.0;
    /// Bytes of a burst of the host: the answer to a request.
    const BURST: f64 = 8_000.0;

    /// A session: a law that grows by a tenth per second and falls by a tenth when it waits.
    struct Session {
        governor: Governor,
        level: f64,
        /// The wait from which the law answers: more than that of a few bursts.
        patience: Duration,
        credit: f64,
        sent: f64,
        new: f64,
        /// When each packet was sent, and how long it waits.
        flight: std::collections::VecDeque<(Instant, Duration)>,
        acked: f64,
        newest: (Instant, Duration),
        fell_at: Instant,
    }

    /// A line with a queue, its host, and sessions of byway.
    struct World {
        seed: u64,
        now: Instant,
        line: f64,
        /// Bytes of anybody in the queue.
        queue: f64,
        /// The host's bytes on the wire.
        host: f64,
        sessions: std::vec::Vec<Session>,
        /// The longest queue of byway's that a burst of the host found, as a time.
        found: Duration,
    }

    impl World {
        fn new(seed: u64, count: usize) -> Self {
            let now = Instant::from_millis(1);
            let line = 250e3 * (1 + mixed(seed) % 20) as f64;
            let rtt = Duration::from_millis(20);
            let session = |_| Session {
                governor: Governor::new(now),
                level: line / count as f64 / 2.0,
                patience: Duration::from_secs_f64(4.0 * BURST / line).max(rtt),
                credit: 0.0,
                sent: 0.0,
                new: 0.0,
                flight: std::collections::VecDeque::new(),
                acked: 0.0,
                newest: (now, Duration::ZERO),
                fell_at: now,
            };
            let sessions = (0..count).map(session).collect();
            Self { seed: seed + 1, now, line, queue: 0.0, host: 0.0, sessions, found: Duration::ZERO }
        }

        fn wait(&self) -> Duration {
            Duration::from_secs_f64(self.queue / self.line)
        }

        fn run(&mut self, seconds: u64) {
            for _ in 0..seconds * 1_000 {
                self.step();
            }
        }

        fn step(&mut self) {
            self.now += STEP;
            self.queue = (self.queue - self.line * STEP.as_secs_f64()).max(0.0);
            self.seed = mixed(self.seed);
            if self.seed.is_multiple_of(200) {
                self.found = self.found.max(self.wait());
                self.queue += BURST;
                self.host += BURST / PAYLOAD_SHARE;
            }
            let wires: std::vec::Vec<f64> = self
                .sessions
                .iter_mut()
                .map(|it| core::mem::take(&mut it.new) / PACKET_BYTES * (PACKET_BYTES + HEADERS))
                .collect();
            let all: f64 = wires.iter().sum();
            let sent: f64 = self.sessions.iter().map(|it| it.sent).sum();
            let shown = self.host + sent / PACKET_BYTES * (PACKET_BYTES + HEADERS);
            let shown = InterfaceCounters { sent: shown as u64, received: 0 };
            let (now, active) = (self.now, self.sessions.len() as u32 - 1);
            for (before, wire) in wires.into_iter().enumerate() {
                let others = OtherSessions { sent: (all - wire) as u64, active, before: before as u32 };
                let wait = self.wait();
                self.queue += self.sessions[before].turn(now, (shown, wire as u64), others, wait);
            }
        }
    }

    impl Session {
        /// What the session sends now.
        fn turn(
            &mut self,
            now: Instant,
            (shown, own): (InterfaceCounters, u64),
            others: OtherSessions,
            wait: Duration,
        ) -> f64 {
            let rtt = Duration::from_millis(20);
            while let Some((sent_at, waited)) =
                self.flight.front().copied().filter(|it| it.0 + it.1 + rtt <= now)
            {
                self.flight.pop_front();
                self.acked += PACKET_BYTES;
                self.newest = (sent_at, waited);
                if waited > self.patience && sent_at > self.fell_at {
                    (self.level, self.fell_at) = (self.level * 0.9, now);
                }
            }
            self.governor.on_sent(own, now);
            self.governor.on_others(others, now);
            self.governor.look(Some(shown), now);
            let reading = SessionReading {
                acked_bytes: self.acked as u64,
                newest_acked_at: self.newest.0,
                queueing: self.newest.1,
                own_rate: self.level as u64,
                is_limited: false,
                has_data: true,
            };
            self.governor.read(&reading, [(0, self.level as u64)].into_iter(), now);
            let Permission { rate, closed_until } = self.governor.permission(now);
            if closed_until.is_some() {
                return 0.0;
            }
            let rate = rate.map_or(f64::INFINITY, |rate| rate as f64);
            if self.level < rate {
                self.level *= 1.0 + 0.1 * STEP.as_secs_f64();
            }
            self.credit = (self.credit + self.level.min(rate) * STEP.as_secs_f64())
                .min(2.0 * PACKET_BYTES + self.level * 1e-3);
            let packets = (self.credit / PACKET_BYTES) as u32;
            let bytes = f64::from(packets) * PACKET_BYTES;
            self.credit -= bytes;
            (self.sent, self.new) = (self.sent + bytes, bytes);
            self.flight.extend((0..packets).map(|_| (now, wait)));
            bytes
        }
    }

    #[test]
    fn the_host_finds_no_queue_and_byway_has_the_rest() {
        for seed in 0..60 {
            let mut world = World::new(seed, 1);
            world.run(30);
            let packet = Duration::from_secs_f64(PACKET_BYTES / world.line);
            let (host, acked) = (world.host, world.sessions[0].acked);
            let mut long = 0;
            for _ in 0..20 {
                world.found = Duration::ZERO;
                world.run(1);
                // A burst may find the one before it.
                long += u32::from(world.found > packet * 3 + Duration::from_secs_f64(BURST / world.line));
            }
            // The law tries more each ten seconds, and finds the line full.
            assert!(long <= 7, "{seed}: a queue in {long} of 20 seconds");
            let rest = world.line * 20.0 - (world.host - host) * PAYLOAD_SHARE;
            let share = (world.sessions[0].acked - acked) / rest;
            assert!((0.88..1.0).contains(&share), "{seed}: {share:.3} of the rest");
        }
    }

    #[test]
    fn a_line_that_got_slower_is_noticed_where_the_law_hears_nothing() {
        for seed in 0..60 {
            let mut world = World::new(seed, 1);
            world.run(30);
            world.line *= 0.5;
            world.sessions[0].patience = Duration::MAX;
            world.run(4);
            let believed = world.sessions[0].governor.line_rate().unwrap() as f64 / world.line;
            assert!((0.8..1.1).contains(&believed), "{seed}: {believed:.3}");
        }
    }

    #[test]
    fn sessions_share_the_line() {
        for seed in 0..40 {
            let mut world = World::new(seed, 3);
            world.run(30);
            let before: std::vec::Vec<f64> = world.sessions.iter().map(|it| it.acked).collect();
            world.run(30);
            let parts: std::vec::Vec<f64> =
                world.sessions.iter().zip(&before).map(|(it, before)| it.acked - before).collect();
            let all: f64 = parts.iter().sum();
            assert!(parts.iter().all(|part| *part > 0.2 * all), "{seed}: {parts:.0?}");
        }
    }

    #[test]
    fn other_paths_are_another_line() {
        let mut world = World::new(5, 1);
        world.run(30);
        let Session { governor, .. } = &mut world.sessions[0];
        assert!(governor.line_rate().is_some());
        let reading = SessionReading {
            acked_bytes: 0,
            newest_acked_at: world.now,
            queueing: Duration::ZERO,
            own_rate: 1,
            is_limited: false,
            has_data: true,
        };
        governor.read(&reading, [(1, 9)].into_iter(), world.now);
        assert_eq!((governor.line_rate(), governor.permission(world.now)), (None, Permission::default()));
    }
}
