//! Chooses UDP or TCP for a session, because some networks drop most UDP packets.
//!
//! TCP is tried if UDP loses 1 % of its bytes although no queue builds. If TCP is more than twice
//! as fast as UDP, it stays for a minute. Then UDP is tried again.

use crate::connection::path::PathState;
use crate::connection::status::ConnectionStatus;
use crate::path::transport::PathTransport;
use byway_wire::{Duration, Instant};

/// Time between two checks of a session.
pub const CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// Duration of a trial.
const TRIAL_TIME: Duration = Duration::from_secs(5);
/// Time for a new carrier to reach its rate, before the trial measures.
const WARM_UP_TIME: Duration = Duration::from_secs(3);
/// Time for which the result of a trial is valid.
const JUDGEMENT_LIFETIME: Duration = Duration::from_secs(60);
/// The largest factor of the time before TCP's next trial, after trials in a row that TCP did not
/// pass.
const MAX_LIFETIME_FACTOR: u32 = 16;
/// Time after which a trial is over that cannot begin, or not be judged.
const TRIAL_TIMEOUT: Duration = Duration::from_secs(30);
/// The share of lost bytes from which UDP is doubted, in percent.
const LOSS_THRESHOLD_PERCENT: u64 = 1;
/// The wait above which a packet waits in a queue. The class `background` yields from there on.
const QUEUE_DELAY_THRESHOLD: Duration = Duration::from_millis(5);
/// Looks of which one may show a queue: jitter looks like one.
const CHECKS_PER_QUEUE: u32 = 4;

/// The figures of a session between two checks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sight {
    /// Bytes acknowledged on direct paths over UDP.
    pub udp: u64,
    /// Bytes lost on direct paths over UDP.
    pub lost: u64,
    /// Bytes acknowledged on direct paths over TCP.
    pub tcp: u64,
    /// Whether packets over UDP wait in a queue.
    pub waits: bool,
    /// Whether a path over UDP is choked, or a limit or the application holds the session back.
    pub held: bool,
}

impl Sight {
    /// The measurements from a session's status.
    #[must_use]
    pub fn of(status: &ConnectionStatus) -> Self {
        let held = status.capped || status.uplink_busy || status.blocked.is_some();
        let mut sight = Self { held, ..Self::default() };
        for path in status.paths.iter().filter(|path| !path.route.is_proxied()) {
            match path.route.carriage() {
                PathTransport::Datagrams => {
                    sight.udp += path.totals.acked_bytes;
                    sight.lost += path.totals.lost_bytes;
                    let queues = path.queueing.is_some_and(|wait| wait > QUEUE_DELAY_THRESHOLD);
                    sight.waits |= path.state == PathState::Active && queues;
                    sight.held |= path.state == PathState::Choked;
                }
                PathTransport::Connection => sight.tcp += path.totals.acked_bytes,
            }
        }
        sight
    }
}

/// The transport that carries the session, or is being tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// UDP carries, and is watched from this time on.
    Udp { from: Instant },
    /// TCP is tried. UDP carried `udp` bytes a second.
    TryTcp { udp: u64, begun: Instant },
    /// TCP carries, and did so with this many bytes a second.
    Tcp { tcp: u64, until: Instant },
    /// UDP is tried. TCP carried `tcp` bytes a second.
    TryUdp { tcp: u64, begun: Instant },
}

/// A time that is watched.
#[derive(Clone, Copy, Debug)]
struct Watch {
    begun: Instant,
    before: Sight,
    looks: u32,
    waits: u32,
}

/// The result of a trial, in bytes per second.
#[derive(Clone, Copy, Debug)]
struct Watched {
    udp: u64,
    lost: u64,
    tcp: u64,
}

impl Watched {
    const fn is_udp_doubted(&self) -> bool {
        self.lost > 0 && self.lost * 100 >= (self.udp + self.lost) * LOSS_THRESHOLD_PERCENT
    }
}

/// The choice of a session's carrier by trials.
#[derive(Debug)]
pub struct Trials {
    stage: Stage,
    watch: Option<Watch>,
    /// Trials in a row that TCP did not pass.
    failures: u32,
}

impl Default for Trials {
    fn default() -> Self {
        Self { stage: Stage::Udp { from: Instant::ZERO }, watch: None, failures: 0 }
    }
}

impl Trials {
    /// Whether TCP carries, or is to.
    #[must_use]
    pub const fn wants_tcp(&self) -> bool {
        matches!(self.stage, Stage::TryTcp { .. } | Stage::Tcp { .. })
    }

    /// Evaluates a measurement, once per [`CHECK_INTERVAL`]. Returns the transport that the session
    /// is to [prefer](crate::Connection::prefer).
    pub fn look(&mut self, now: Instant, sight: Sight) -> PathTransport {
        let stage = self.next(now, sight);
        if stage != self.stage {
            (self.stage, self.watch) = (stage, None);
        }
        if self.wants_tcp() { PathTransport::Connection } else { PathTransport::Datagrams }
    }

    fn next(&mut self, now: Instant, sight: Sight) -> Stage {
        let stage = self.stage;
        match stage {
            Stage::Udp { from } if now < from => stage,
            Stage::Udp { .. } => match self.watch(now, sight, sight.held, sight.waits) {
                Some(watched) if watched.is_udp_doubted() => Stage::TryTcp { udp: watched.udp, begun: now },
                _ => stage,
            },
            Stage::TryTcp { udp, begun } => {
                let early = self.watch.is_none() && (sight.tcp == 0 || now.since(begun) < WARM_UP_TIME);
                let watched = if early { None } else { self.watch(now, sight, false, false) };
                match watched {
                    Some(watched) if udp < watched.tcp / 2 => {
                        self.failures = 0;
                        Stage::Tcp { tcp: watched.tcp, until: now + JUDGEMENT_LIFETIME }
                    }
                    None if now.since(begun) < TRIAL_TIMEOUT => stage,
                    _ => {
                        let holds = JUDGEMENT_LIFETIME * (1 << self.failures.min(4)).min(MAX_LIFETIME_FACTOR);
                        self.failures += 1;
                        Stage::Udp { from: now + holds }
                    }
                }
            }
            Stage::Tcp { until, .. } if now < until => stage,
            Stage::Tcp { tcp, .. } => Stage::TryUdp { tcp, begun: now },
            Stage::TryUdp { tcp, begun } => {
                let early = now.since(begun) < WARM_UP_TIME;
                let watched = if early { None } else { self.watch(now, sight, sight.held, sight.waits) };
                match watched {
                    Some(watched) if watched.is_udp_doubted() && watched.udp < tcp / 2 => {
                        Stage::Tcp { tcp, until: now + JUDGEMENT_LIFETIME }
                    }
                    None if now.since(begun) < TRIAL_TIMEOUT => stage,
                    _ => Stage::Udp { from: now },
                }
            }
        }
    }

    /// Returns a session's rates over 5 s, or `None` before. The measurement starts again if a
    /// limit or the application slows the session (`held`), or if more than a quarter of the calls
    /// report packets in a queue (`waits`).
    fn watch(&mut self, now: Instant, sight: Sight, held: bool, waits: bool) -> Option<Watched> {
        let watch = self.watch.get_or_insert(Watch { begun: now, before: sight, looks: 0, waits: 0 });
        watch.looks += 1;
        watch.waits += u32::from(waits);
        let passed = now.since(watch.begun);
        let Watch { before, looks, waits, .. } = *watch;
        // A path that is gone takes its totals away.
        let gone = sight.udp < before.udp || sight.tcp < before.tcp;
        if !(held || gone) && passed < TRIAL_TIME {
            return None;
        }
        self.watch = None;
        if held || gone || waits * CHECKS_PER_QUEUE > looks {
            return None;
        }
        let millis = u64::try_from(passed.as_millis()).unwrap_or(u64::MAX).max(1);
        let rate = |now: u64, before: u64| now.saturating_sub(before).saturating_mul(1_000) / millis;
        Some(Watched {
            udp: rate(sight.udp, before.udp),
            lost: rate(sight.lost, before.lost),
            tcp: rate(sight.tcp, before.tcp),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How a session does over UDP, in each second.
    #[derive(Clone, Copy, Default)]
    struct Udp {
        carried: u64,
        lost: u64,
        waits: bool,
        held: bool,
    }

    /// UDP that a network throttles.
    const THROTTLED: Udp = Udp { carried: 100_000, lost: 20_000, waits: false, held: false };

    struct TrialWorld {
        trials: Trials,
        now: Instant,
        sight: Sight,
    }

    impl TrialWorld {
        fn new() -> Self {
            Self { trials: Trials::default(), now: Instant::ZERO, sight: Sight::default() }
        }

        /// Advances by `seconds`, with TCP able to carry `tcp` bytes per second. Returns for how
        /// many seconds TCP carried the session.
        fn go(&mut self, seconds: u64, udp: Udp, tcp: u64) -> u64 {
            let mut over_tcp = 0;
            for _ in 0..4 * seconds {
                if self.trials.wants_tcp() {
                    self.sight.tcp += tcp / 4;
                    over_tcp += 1;
                } else {
                    self.sight.udp += udp.carried / 4;
                    self.sight.lost += udp.lost / 4;
                }
                (self.sight.waits, self.sight.held) = (udp.waits, udp.held);
                self.now += CHECK_INTERVAL;
                self.trials.look(self.now, self.sight);
            }
            over_tcp / 4
        }
    }

    #[test]
    fn tcp_stays_where_udp_is_throttled_and_udp_is_tried_again_after_a_minute() {
        let mut world = TrialWorld::new();
        assert!((2..=5).contains(&world.go(10, THROTTLED, 1_000_000)));
        assert_eq!(world.go(60, THROTTLED, 1_000_000), 60);
        let over_tcp = world.go(600, THROTTLED, 1_000_000);
        assert!((500..560).contains(&over_tcp), "all but the trials of UDP: {over_tcp}");
        let free = Udp { carried: 1_000_000, ..Udp::default() };
        assert!(world.go(120, free, 1_000_000) < 70, "it is throttled no more");
        assert_eq!(world.go(300, free, 1_000_000), 0);
    }

    #[test]
    fn udp_stays_where_it_carries_half_as_much_and_tcp_is_tried_ever_less() {
        let mut world = TrialWorld::new();
        let good = Udp { carried: 500_000, lost: 50_000, ..Udp::default() };
        let over_tcp = world.go(300, good, 900_000);
        assert!((15..=30).contains(&over_tcp), "{over_tcp} s");
        assert!(world.go(3_600, good, 900_000) < 60);
    }

    #[test]
    fn who_loses_next_to_nothing_or_yields_is_not_compared() {
        let mut world = TrialWorld::new();
        assert_eq!(world.go(300, Udp { lost: 900, ..THROTTLED }, 9_000_000), 0, "losses by chance");
        assert_eq!(world.go(300, Udp { waits: true, ..THROTTLED }, 9_000_000), 0, "packets wait in a queue");
        assert_eq!(world.go(300, Udp { held: true, ..THROTTLED }, 9_000_000), 0, "choked, or limited");
        assert_eq!(world.go(300, Udp::default(), 9_000_000), 0, "nothing to send");
        // A choke now and then leaves no time of a trial's length, and queues for half of the time
        // leave none that is judged.
        for _ in 0..50 {
            assert_eq!(world.go(4, THROTTLED, 9_000_000), 0);
            assert_eq!(world.go(1, Udp { held: true, ..THROTTLED }, 9_000_000), 0);
        }
        for _ in 0..100 {
            assert_eq!(world.go(2, THROTTLED, 9_000_000), 0);
            assert_eq!(world.go(2, Udp { waits: true, ..THROTTLED }, 9_000_000), 0);
        }
    }

    #[test]
    fn who_yields_in_its_trial_carries_again() {
        let mut world = TrialWorld::new();
        world.go(30, THROTTLED, 1_000_000);
        assert!(world.trials.wants_tcp());
        assert!(world.go(120, Udp { held: true, ..THROTTLED }, 1_000_000) < 60);
        assert!(!world.trials.wants_tcp());
    }

    #[test]
    fn a_trial_of_tcp_that_no_connection_comes_for_ends() {
        let mut world = TrialWorld::new();
        assert!(world.go(600, THROTTLED, 0) <= 4 * 31);
    }

    #[test]
    fn totals_that_go_with_a_path_are_no_rate() {
        let mut world = TrialWorld::new();
        world.sight.udp = 1_000_000;
        for _ in 0..100 {
            assert_eq!(world.go(3, THROTTLED, 9_000_000), 0);
            world.sight = Sight::default();
        }
    }
}
