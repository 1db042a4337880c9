//! The law against events by hand: a line with an RTT of 20 ms and packets of 1250 bytes, which
//! take 1 ms each.

use super::*;
use crate::Delay;
use byway_wire::Duration;
use constants::{
    DECREASE_FACTOR, INITIAL_RATE_PACKETS, MIN_RATE_PACKETS, MIN_RATE_SHARE, MIN_STANDING_QUEUE_TIME,
    STANDING_QUEUE_RTTS,
};

const PACKET: u32 = 1_250;
const RTT: Duration = Duration::from_millis(20);
const MS: i64 = 1_000_000;

struct SimulatedLine {
    law: Background,
    at: Instant,
}

impl SimulatedLine {
    /// A line of so many paths.
    fn new(paths: u32) -> Self {
        let mut law = Background::new("test");
        let opened =
            Opened { now: Instant::from_millis(1_000), proxied: false, packet_size: PACKET, rtt: Some(RTT) };
        (0..paths).for_each(|path| law.open(PathId(path), &opened));
        Self { law, at: opened.now }
    }

    /// A bundle of `paths` after a start that filled the line at once.
    fn started(paths: u32) -> Self {
        let mut line = Self::new(paths);
        (0..3).for_each(|_| line.wait_all(paths, 0));
        (0..3).for_each(|_| line.wait_all(paths, 10 * MS));
        // The packets that are on their way tell of the queue too.
        line.at += RTT;
        (0..40).for_each(|_| line.wait_all(paths, 0));
        assert!((0..paths).all(|path| !line.path(path).start));
        line
    }

    fn path(&self, path: u32) -> &BackgroundPath {
        self.law.paths.get(PathId(path)).expect("a path")
    }

    fn rate(&self, path: u32) -> f64 {
        self.law.allowance(PathId(path)).rate.expect("a rate") as f64
    }

    /// Sends a packet on `path` 1 ms after the one before. Its ACK tells that it waited `waited`
    /// nanoseconds.
    fn wait(&mut self, path: u32, waited: i64) {
        self.at += Duration::from_millis(1);
        let sent_at = self.at;
        let level = self.path(path).level;
        let waits = Duration::from_nanos(waited.unsigned_abs());
        let acked = Acked {
            now: sent_at + RTT + waits,
            bytes: u64::from(PACKET),
            packets: 1,
            sent_at,
            rtt: Some(RTT + waits),
            srtt: RTT,
            min_rtt: RTT,
            delays: &[Delay { sent_at, one_way: 7 * MS + waited, bytes: PACKET }],
            in_flight: 10_000,
            app_limited: false,
            // What is sent is delivered.
            delivery_rate: Some(level as u64),
            ce: 0,
        };
        self.law.on_acked(PathId(path), &acked);
    }

    /// A queue that grows to `most` milliseconds, as fast as time passes, like a TCP's queue in
    /// slow start.
    fn rise_to(&mut self, most: i64) {
        (1..=most).for_each(|waited| self.wait(0, waited * MS));
    }

    /// Waits of `waited` nanoseconds, on the first `paths` paths at the same time.
    fn wait_all(&mut self, paths: u32, waited: i64) {
        let at = self.at;
        for path in 0..paths {
            self.at = at;
            self.wait(path, waited);
        }
    }

    fn congested(&mut self, path: u32, trigger: Trigger) {
        let now = self.at + RTT;
        let (first_sent_at, sent_at) = (self.at, self.at);
        let bytes = u64::from(PACKET);
        let told = Congested { trigger, first_sent_at, sent_at, now, bytes, in_flight: 10_000 };
        self.law.on_congested(PathId(path), &told);
    }
}

fn near(found: f64, expected: f64, within: f64) {
    assert!((found / expected - 1.0).abs() <= within, "{found}, expected {expected}");
}

#[test]
fn a_start_doubles_per_rtt_and_ends_with_the_third_packet_that_waits() {
    let mut line = SimulatedLine::new(1);
    near(line.path(0).level, INITIAL_RATE_PACKETS * f64::from(PACKET), 1e-9);
    // So many packets are an RTT's at the first level.
    (0..4).for_each(|_| line.wait(0, 0));
    near(line.path(0).level, 2.0 * INITIAL_RATE_PACKETS * f64::from(PACKET), 1e-9);
    let before = line.path(0).level;
    (0..2).for_each(|_| line.wait(0, 10 * MS));
    assert!(line.path(0).start);
    line.wait(0, 10 * MS);
    assert!(!line.path(0).start && line.path(0).level < before, "{:?}", line.path(0));
}

#[test]
fn growth_is_faster_the_longer_there_is_no_queue() {
    let mut line = SimulatedLine::started(1);
    let grows = |line: &mut SimulatedLine, packets: u32| {
        let before = line.path(0).level;
        (0..packets).for_each(|_| line.wait(0, 0));
        line.path(0).level / before - 1.0
    };
    let (first, _, third) = (grows(&mut line, 500), grows(&mut line, 1_000), grows(&mut line, 500));
    assert!(first > 0.01 && third > 2.0 * first, "{first}, then {third}");
}

#[test]
fn a_burst_takes_pace_and_no_level_and_the_first_free_packet_gives_it_back() {
    let mut line = SimulatedLine::started(1);
    let level = line.path(0).level;
    (0..2).for_each(|_| line.wait(0, 9 * MS));
    near(line.path(0).level, level, 1e-9);
    assert!(line.rate(0) < 0.9 * level, "{}", line.rate(0));
    // Deeper than half of an RTT: what is left is the least.
    (0..4).for_each(|_| line.wait(0, 15 * MS));
    near(line.rate(0), MIN_RATE_SHARE * level, 0.001);
    line.wait(0, 0);
    near(line.rate(0), level, 0.01);
}

#[test]
fn a_queue_that_creeps_up_lowers_the_level_once() {
    let mut line = SimulatedLine::started(1);
    let level = line.path(0).level;
    // A twentieth of overload.
    (0..60).for_each(|packet| line.wait(0, packet * MS / 20));
    near(line.path(0).level, DECREASE_FACTOR * level, 0.03);
}

#[test]
fn a_queue_that_stands_takes_the_level_by_and_by() {
    let mut line = SimulatedLine::started(1);
    line.rise_to(12);
    let level = line.path(0).level;
    let grace = (RTT.mul_f64(STANDING_QUEUE_RTTS)).max(MIN_STANDING_QUEUE_TIME).as_millis() as u32;
    (0..grace - 20).for_each(|_| line.wait(0, 12 * MS));
    near(line.path(0).level, level, 1e-9);
    (0..1_010).for_each(|_| line.wait(0, 12 * MS));
    near(line.path(0).level, level * libm::exp(-1.0), 0.02);
}

#[test]
fn a_level_that_nobody_delivers_is_not_believed() {
    let mut line = SimulatedLine::started(1);
    let path = line.law.paths.get_mut(PathId(0)).expect("a path");
    path.level *= 6.0;
    let level = path.level;
    line.rise_to(12);
    (0..12).for_each(|_| line.wait(0, 12 * MS));
    assert!(line.path(0).level < level, "{}", line.path(0).level);
}

#[test]
fn a_loss_by_chance_costs_nothing_a_mark_and_a_loss_in_a_queue_do() {
    let mut line = SimulatedLine::started(1);
    let level = line.path(0).level;
    line.congested(0, Trigger::Loss);
    near(line.path(0).level, level, 1e-9);
    line.congested(0, Trigger::Ce);
    near(line.path(0).level, DECREASE_FACTOR * level, 1e-9);
    // The mark is answered: what was sent before it changes nothing.
    line.congested(0, Trigger::Ce);
    near(line.path(0).level, DECREASE_FACTOR * level, 1e-9);
    line.at += RTT;
    (0..2).for_each(|_| line.wait(0, 12 * MS));
    line.congested(0, Trigger::Loss);
    near(line.path(0).level, DECREASE_FACTOR * DECREASE_FACTOR * level, 1e-9);
}

#[test]
fn paths_that_wait_together_lower_together_and_one_that_does_not_wait_stays() {
    let mut line = SimulatedLine::started(3);
    let before = [0, 1, 2].map(|path| line.path(path).level);
    for packet in 0..4 {
        line.wait(0, 2 * MS + packet * MS / 20);
        line.wait(1, 2 * MS + packet * MS / 20);
        line.wait(2, 0);
    }
    let after = [0, 1, 2].map(|path| line.path(path).level / before[path as usize]);
    assert!(after[0] < 0.95 && after[1] < 0.95 && after[2] >= 1.0, "{after:?}");
}

#[test]
fn a_path_that_waited_before_another_found_no_queue_stays() {
    let mut line = SimulatedLine::started(4);
    let levels = |line: &SimulatedLine| [0, 1, 2, 3].map(|path| line.path(path).level);
    let before = levels(&line);
    (1..4).for_each(|path| line.wait(path, 2 * MS));
    line.wait(0, 0);
    (0..3).for_each(|_| line.wait(0, 2 * MS));
    assert!(levels(&line)[0] >= before[0], "other paths' packets make no row with its own");
    line.wait(0, 2 * MS);
    assert!(levels(&line)[0] < 0.95 * before[0], "four of its own in a row");
    assert_eq!(levels(&line)[1..], before[1..]);
}

#[test]
fn a_relay_begins_with_ten_packets_in_the_first_round_trip() {
    for (proxied, millis, expected) in [(true, 20, 200.0), (true, 500, 20.0), (false, 500, 200.0)] {
        let rtt = Some(Duration::from_millis(millis));
        let opened = Opened { now: Instant::from_millis(1), proxied, packet_size: PACKET, rtt };
        near(BackgroundPath::new(&opened).level, expected * f64::from(PACKET), 1e-9);
    }
}

#[test]
fn a_bundle_grows_as_one_flow() {
    let grows = |paths: u32| {
        let mut line = SimulatedLine::started(paths);
        let one = line.path(0).level;
        for path in 0..paths {
            line.law.paths.get_mut(PathId(path)).expect("a path").level = one / f64::from(paths);
        }
        let level = |line: &SimulatedLine| (0..paths).map(|path| line.path(path).level).sum::<f64>();
        let before = level(&line);
        (0..200).for_each(|_| line.wait_all(paths, 0));
        level(&line) - before
    };
    near(grows(3), grows(1), 0.1);
}

#[test]
fn a_path_at_its_floor_is_choked_and_a_free_probe_opens_it() {
    let mut line = SimulatedLine::started(2);
    (0..2).for_each(|_| line.wait(0, 12 * MS));
    line.law.paths.get_mut(PathId(0)).expect("a path").level = MIN_RATE_PACKETS * f64::from(PACKET);
    line.wait(0, 12 * MS);
    assert!(line.law.allowance(PathId(0)).choked);
    for (waited, choked) in [(9 * MS, true), (0, false)] {
        let delay = Delay { sent_at: line.at, one_way: 7 * MS + waited, bytes: 60 };
        let probe = ProbeResult { now: line.at + RTT, delay: Some(delay), rtt: Some(RTT) };
        line.law.on_probe(PathId(0), &probe);
        assert_eq!(line.law.allowance(PathId(0)).choked, choked, "{waited}");
    }
}

#[test]
fn silence_chokes_all_paths_but_the_last_until_a_probe_of_another_comes_back() {
    let mut line = SimulatedLine::started(2);
    (0..2).for_each(|_| line.congested(0, Trigger::Timeout));
    (0..2).for_each(|_| line.congested(1, Trigger::Timeout));
    let choked = |line: &SimulatedLine| [0, 1].map(|path| line.law.allowance(PathId(path)).choked);
    assert_eq!(choked(&line), [true, false]);
    // It comes back, but through a queue.
    let probe = ProbeResult { now: line.at + RTT, delay: None, rtt: Some(RTT * 2) };
    line.law.on_probe(PathId(0), &probe);
    assert_eq!(choked(&line), [true, false]);
    line.congested(1, Trigger::Timeout);
    assert_eq!(choked(&line), [false, true]);
    line.law.close(PathId(0));
    assert!(!choked(&line)[1]);
}

#[test]
fn a_timeout_that_was_none_is_forgiven() {
    let mut line = SimulatedLine::started(1);
    let level = line.path(0).level;
    line.congested(0, Trigger::Timeout);
    near(line.path(0).level, f64::from(PACKET) / RTT.as_secs_f64(), 1e-9);
    line.law.on_undo(PathId(0), &Undo { now: line.at + RTT, sent_at: line.at });
    near(line.path(0).level, level, 1e-9);
}

/// A direct path and so many relays, all past their start.
fn with_relays(relays: u32) -> SimulatedLine {
    let mut line = SimulatedLine::new(1);
    open_relays(&mut line, 1..=relays);
    line
}

fn open_relays(line: &mut SimulatedLine, relays: core::ops::RangeInclusive<u32>) {
    let opened = Opened { now: line.at, proxied: true, packet_size: PACKET, rtt: Some(RTT) };
    relays.for_each(|path| line.law.open(PathId(path), &opened));
    line.law.paths.iter_mut().for_each(|(_, path)| path.start = false);
}

/// All paths together carry so many bytes per second for so long.
fn carry(line: &mut SimulatedLine, rate: u64, seconds: u64) {
    for _ in 0..seconds * 10 {
        line.at += Duration::from_millis(100);
        line.law.carried.add(line.at, rate / 10);
    }
}

#[test]
fn relays_are_wished_for_while_they_gain() {
    let wish = |line: &mut SimulatedLine, path: u32| {
        line.law.wish_for_more(PathId(path), line.at);
        line.law.wants().open
    };
    let mut line = SimulatedLine::new(1);
    assert_eq!(line.law.wants().open, INITIAL_PATH_LIMIT);
    line = with_relays(INITIAL_PATH_LIMIT as u32);
    assert_eq!(line.law.wants().open, 0);
    carry(&mut line, 1_000_000, 12);
    assert_eq!(wish(&mut line, 0), 0, "they have not shown yet what they are good for");
    carry(&mut line, 1_000_000, 12);
    assert_eq!(wish(&mut line, 3), 0, "the queue of a relay is no reason for others");
    line.law.paths.get_mut(PathId(2)).expect("a path").start = true;
    assert_eq!(wish(&mut line, 0), 0, "one has not met a queue yet");
    line.law.paths.get_mut(PathId(2)).expect("a path").start = false;
    assert_eq!(wish(&mut line, 0), 1, "a fourth of the four packets of the direct path");
    open_relays(&mut line, 9..=12);
    carry(&mut line, 1_000_000, 24);
    assert_eq!(wish(&mut line, 0), 0, "half as many again brought nothing");
}

#[test]
fn a_relay_that_is_choked_for_long_gives_way_if_there_are_many() {
    for (relays, dropped) in [(INITIAL_PATH_LIMIT as u32, 0), (12, 1)] {
        let mut line = with_relays(relays);
        line.law.choke(PathId(5), line.at);
        line.law.drop_choked(PathId(5), line.at);
        assert!(line.law.wants().drop.is_empty());
        line.law.drop_choked(PathId(5), line.at + CHOKED_TIMEOUT);
        assert_eq!(line.law.wants().drop.len(), dropped);
        line.law.close(PathId(5));
        assert!(line.law.wants().drop.is_empty());
    }
}

/// Two direct paths over a line of a packet per millisecond, for `seconds`. Their pace fills its
/// queue and empties it. `alone`: the part of the line that the first has to itself.
fn one_line(line: &mut SimulatedLine, seconds: u64, alone: f64) {
    let mut queue = 0.0_f64;
    for _ in 0..seconds * 1_000 {
        let spare = line.law.allowance(PathId(1)).spare;
        let (paths, part) = if spare { (1, alone) } else { (2, 1.0) };
        let pace: f64 = (0..paths).map(|path| line.rate(path)).sum();
        let full = f64::from(PACKET) * 1_000.0 * part;
        queue = (queue + (pace / full - 1.0) * MS as f64).max(0.0);
        line.wait_all(paths, queue as i64);
        // An ACK counts a whole packet, whatever the pace is.
        let acked = f64::from(PACKET * paths);
        line.law.carried.total += if queue > 0.0 { full } else { pace } / 1_000.0 - acked;
    }
}

#[test]
fn a_second_direct_path_that_adds_nothing_rests_until_the_first_is_not_enough() {
    let spare = |line: &SimulatedLine| [0, 1].map(|path| line.law.allowance(PathId(path)).spare);
    for (alone, rests) in [(1.0, true), (0.6, false)] {
        let mut line = SimulatedLine::started(2);
        one_line(&mut line, 8, alone);
        assert_eq!(spare(&line), [false; 2], "a short transfer does without loans");
        one_line(&mut line, 40, alone);
        assert_eq!(spare(&line), [false, rests]);
        assert!(line.law.wants().shares.is_empty(), "it is no relay, and costs nobody anything");
    }
    let rested = || {
        let mut line = SimulatedLine::started(2);
        one_line(&mut line, 48, 1.0);
        line
    };
    let mut line = rested();
    line.law.choke(PathId(0), line.at);
    assert_eq!(spare(&line), [false; 2], "the first is silent");
    line = rested();
    line.law.close(PathId(0));
    assert_eq!(spare(&line), [false; 2], "the first is gone");
    line = rested();
    let level = line.path(0).level;
    line.law.paths.get_mut(PathId(0)).expect("a path").level = level / 2.0;
    line.law.wake(line.at);
    assert_eq!(spare(&line), [false; 2], "the line of the first has become slower");
}
