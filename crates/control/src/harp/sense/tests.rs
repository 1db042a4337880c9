use super::*;
use crate::harp::Coupling;

/// A line of 1 Mbit/s.
const RATE: u64 = 125_000;
const FULL: u32 = 1_500;
const FULL_TIME: Duration = Duration::from_millis(12);
/// The delay of a packet without any length.
const WAY: i64 = 10_000_000;
const RTT: Duration = Duration::from_millis(40);

struct Line {
    sense: Sense,
    now: Instant,
}

impl Line {
    fn new() -> Self {
        let sense = Sense::new(&Options::production(Coupling::Adaptive), f64::from(FULL));
        Self { sense, now: Instant::from_millis(1_000) }
    }

    /// A packet that is sent `after` the one before and waits in a queue for `queue`. Whether that makes a signal.
    fn send(&mut self, after: Duration, bytes: u32, queue: Duration) -> bool {
        self.now += after;
        let time = as_i64(FULL_TIME.mul_f64(f64::from(bytes) / f64::from(FULL)));
        let one_way = WAY + time + as_i64(queue);
        let delay = Delay { sent_at: self.now, one_way, bytes };
        self.sense.sample(delay, self.now + RTT, RTT, 4.0, Instant::ZERO)
    }

    /// Many full packets on an empty line.
    fn fill(&mut self) {
        self.sense.delivers(RATE);
        for _ in 0..300 {
            assert!(!self.send(FULL_TIME, FULL, Duration::ZERO));
        }
    }
}

#[test]
fn full_packets_after_short_ones_have_not_waited() {
    let mut line = Line::new();
    for _ in 0..20 {
        line.send(Duration::from_secs(1), 60, Duration::ZERO);
    }
    line.fill();
    assert!(line.sense.waiting() < Duration::from_millis(1), "{:?}", line.sense.waiting());
    assert!(line.sense.free());
}

#[test]
fn full_packets_among_short_ones_have_not_waited_and_short_ones_tell_of_a_queue_as_they_do() {
    let mut line = Line::new();
    line.fill();
    for number in 0..1_000 {
        let bytes = if number % 3 == 0 { 60 } else { FULL };
        assert!(!line.send(FULL_TIME, bytes, Duration::ZERO), "{number}");
    }
    assert!(line.sense.waiting() < Duration::from_millis(1), "{:?}", line.sense.waiting());
    let limit = line.sense.threshold(Duration::from_millis(5)) + Duration::from_millis(1);
    assert!((0..8).any(|_| line.send(FULL_TIME, 60, limit)));
}

#[test]
fn a_path_of_short_packets_only_needs_no_full_ones() {
    let mut line = Line::new();
    line.sense.delivers(6_000);
    for _ in 0..100 {
        assert!(!line.send(Duration::from_millis(10), 60, Duration::ZERO));
    }
    assert!(line.sense.free());
    let mut signals = 0;
    for _ in 0..8 {
        signals += u32::from(line.send(Duration::from_millis(10), 60, Duration::from_millis(40)));
    }
    assert!(signals > 0);
}
