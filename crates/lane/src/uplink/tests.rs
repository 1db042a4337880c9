//! The law and the pacer on an uplink that is a queue of bytes: no socket, no clock.

use super::*;
use crate::write_ledger::{LedgerEvent, Stamp, StampKind, WriteLedger};
use byway_wire::seeded_random::mixed;
use std::collections::VecDeque;

const STEP: Duration = Duration::from_micros(100);
const SEGMENT: usize = USUAL_SEGMENT_LEN;
/// How long receivers hold back the ACK of less than two segments.
const HELD_BACK: Duration = Duration::from_millis(40);

/// A connection with endless data.
struct Upload {
    target: IpAddr,
    segment: usize,
    rtt: Duration,
    ledger: WriteLedger,
    written: u64,
    acknowledged: u64,
    /// Whether the ACK of the latest run is held back.
    holds_back: bool,
    /// When ACKs arrive, and for which byte.
    acks: VecDeque<(Instant, u32)>,
}

impl Upload {
    /// The target gets a run, and acknowledges it at once, or a short one with the next.
    fn acknowledge(&mut self, at: Instant, byte: u32, run: usize) {
        self.holds_back = run < 2 * self.segment && !self.holds_back;
        if self.holds_back {
            self.acks.push_back((at + HELD_BACK, byte));
        } else {
            while self.acks.back().is_some_and(|(held, _)| *held > at) {
                self.acks.pop_back();
            }
            self.acks.push_back((at, byte));
        }
    }
}

/// An uplink of `rate` bytes per second with an endless queue.
struct Line {
    rate: f64,
    now: Instant,
    /// When the queue is empty.
    free_at: Instant,
    uplink: Uplink,
    uploads: Vec<Upload>,
    turn: usize,
    longest_wait: Duration,
    /// Bytes that the interface has sent, as it counts them.
    sent: u64,
    /// Whether somebody looks at the interface's counters.
    is_watched: bool,
    /// How long the host's own requests took on the line, in seconds.
    requests: Vec<f64>,
}

impl Line {
    fn new(mbit: f64, rtts: &[u64]) -> Self {
        let now = Instant::from_millis(1);
        let uploads = rtts.iter().zip(1..).map(|(millis, last)| Upload {
            target: [192, 0, 2, last].into(),
            segment: SEGMENT,
            rtt: Duration::from_millis(*millis),
            ledger: WriteLedger::default(),
            written: 0,
            acknowledged: 0,
            holds_back: false,
            acks: VecDeque::new(),
        });
        Self {
            rate: mbit * 125_000.0,
            now,
            free_at: now,
            uplink: Uplink::new(now),
            uploads: uploads.collect(),
            turn: 0,
            longest_wait: Duration::ZERO,
            sent: 0,
            is_watched: false,
            requests: Vec::new(),
        }
    }

    /// The host answers a request of 20 kB: ten segments, and four an RTT of 20 ms later.
    fn answer(&mut self) {
        let begun = self.now;
        for (segments, rtts) in [(10, 0), (4, 1)] {
            let at = begun + Duration::from_millis(20) * rtts;
            let mut left = at;
            while self.now < at {
                self.step();
            }
            for _ in 0..segments {
                left = self.queue(SEGMENT);
                self.sent += SEGMENT as u64 + HEADER_BYTES;
            }
            if rtts == 1 {
                self.requests.push(left.since(begun).as_secs_f64());
            }
        }
    }

    /// Requests come for this time, five a second on average. Returns what the host's own requests
    /// take, as multiples of what they take alone: median and 90 of 100. And the uploads' part of
    /// the rest.
    fn beside_requests(&mut self, millis: u64) -> ([f64; 2], f64) {
        self.requests.clear();
        let (begun, mut seed) = (self.now, 1);
        let acknowledged = |line: &Self| line.uploads.iter().map(|it| it.acknowledged).sum::<u64>();
        let before = acknowledged(self);
        while self.now.since(begun) < Duration::from_millis(millis) {
            seed = mixed(seed);
            self.run(50 + seed % 250);
            self.answer();
        }
        let time = self.now.since(begun).as_secs_f64();
        let [first, second] = [10.0, 4.0].map(|segments| segments * SEGMENT as f64 / self.rate);
        let alone = first.max(0.02) + second;
        let count = self.requests.len();
        let rest = self.rate * time - (count * 14 * SEGMENT) as f64;
        let share = (acknowledged(self) - before) as f64 / rest;
        self.requests.sort_by(f64::total_cmp);
        ([count / 2, count * 9 / 10].map(|at| self.requests[at] / alone), share)
    }

    /// Puts bytes of anybody into the queue. Returns when they have left it.
    fn queue(&mut self, bytes: usize) -> Instant {
        self.longest_wait = self.longest_wait.max(self.free_at.since(self.now));
        self.free_at = self.free_at.max(self.now) + Duration::from_secs_f64(bytes as f64 / self.rate);
        self.free_at
    }

    fn wall(at: Instant) -> i64 {
        at.as_nanos() as i64
    }

    fn step(&mut self) {
        self.now += STEP;
        let now = self.now;
        let mut runs = Vec::new();
        for upload in &mut self.uploads {
            while let Some((_, byte)) = upload.acks.front().copied().filter(|(at, _)| *at <= now) {
                upload.acks.pop_front();
                let stamp = Stamp { kind: StampKind::Acknowledged, byte, wall_nanos: Self::wall(now) };
                if let Some(LedgerEvent::Acknowledged(acknowledged)) = upload.ledger.on_stamp(stamp) {
                    upload.acknowledged += acknowledged.bytes;
                    let (target, segment) = (upload.target, upload.segment);
                    runs.push(TargetAcknowledged { target, segment, acknowledged });
                }
            }
        }
        self.uplink.on_acknowledged(&mut runs, now);
        self.uplink.on_time(now);
        if self.is_watched && now.as_nanos().is_multiple_of(1_000_000) {
            self.uplink.look(Some(InterfaceCounters { sent: self.sent, received: 0 }), now);
        }
        while !self.uploads.is_empty() {
            let turn = self.turn % self.uploads.len();
            let segment = self.uploads[turn].segment;
            let lease = self.uplink.lease(segment, now);
            if lease == 0 {
                break;
            }
            self.turn += 1;
            let left = self.queue(lease);
            self.sent += lease as u64 + lease.div_ceil(segment) as u64 * HEADER_BYTES;
            let upload = &mut self.uploads[turn];
            upload.ledger.on_written(lease, self.uplink.written_context(now));
            upload.written += lease as u64;
            let byte = (upload.written - 1) as u32;
            let sent = Stamp { kind: StampKind::Sent, byte, wall_nanos: Self::wall(now) };
            assert_eq!(upload.ledger.on_stamp(sent), Some(LedgerEvent::Sent(lease as u64)));
            self.uplink.on_sent(lease as u64, segment, now);
            upload.acknowledge(left + upload.rtt, byte, lease);
        }
        self.uplink.on_turn_over(true, now);
    }

    fn run(&mut self, millis: u64) {
        let until = self.now + Duration::from_millis(millis);
        while self.now < until {
            self.step();
        }
    }

    /// The part of the line that the uploads have in this time.
    fn share(&mut self, millis: u64) -> f64 {
        let acknowledged = |line: &Self| line.uploads.iter().map(|it| it.acknowledged).sum::<u64>();
        let before = acknowledged(self);
        self.longest_wait = Duration::ZERO;
        self.run(millis);
        (acknowledged(self) - before) as f64 / (self.rate * millis as f64 / 1e3)
    }
}

#[test]
fn an_idle_line_is_filled_and_its_queue_stays_short() {
    for (mbit, rtts) in [(2.0, &[20][..]), (10.0, &[60]), (50.0, &[20; 4]), (10.0, &[20, 150, 80])] {
        let mut line = Line::new(mbit, rtts);
        line.run(12_000);
        // How long the first packets wait.
        assert!(line.longest_wait < Duration::from_millis(250), "{mbit} Mbit/s: {:?}", line.longest_wait);
        let share = line.share(8_000);
        let packet = Duration::from_secs_f64(SEGMENT as f64 / line.rate);
        assert!(share > 0.92, "{mbit} Mbit/s, {rtts:?} ms: {share}");
        let most = Duration::from_millis(12).max(packet * 8);
        assert!(line.longest_wait < most, "{mbit} Mbit/s, {rtts:?} ms: {:?}", line.longest_wait);
        let least = line.uploads.iter().map(|it| it.acknowledged).min().unwrap();
        let all: u64 = line.uploads.iter().map(|it| it.acknowledged).sum();
        assert!(least as f64 > 0.7 * all as f64 / rtts.len() as f64, "{least} of {all}");
    }
}

/// A path of few bytes a packet, as a tunnel's, leads to one target. The lines have no other use
/// here.
#[test]
fn each_connection_has_runs_of_its_own_segments() {
    for (mbit, rtts) in
        [(2.0, [20, 30]), (4.0, [20, 20]), (10.0, [20, 30]), (20.0, [60, 20]), (50.0, [20, 150])]
    {
        let mut line = Line::new(mbit, &rtts);
        line.uploads[0].segment = 536;
        line.run(12_000);
        let share = line.share(8_000);
        assert!(share > 0.88, "{mbit} Mbit/s, {rtts:?} ms: {share}");
    }
}

#[test]
fn a_queue_of_others_that_stands_takes_the_rate_down_and_its_end_brings_it_back() {
    let mut line = Line::new(10.0, &[20]);
    line.run(8_000);
    // Others keep 40 ms of queue.
    let mut lane = 0;
    for step in 0..100_000 {
        if line.free_at.since(line.now) < Duration::from_millis(40) {
            line.queue(SEGMENT);
        }
        let before = line.uploads[0].acknowledged;
        line.step();
        if step >= 50_000 {
            lane += line.uploads[0].acknowledged - before;
        }
    }
    let share = lane as f64 / (line.rate * 5.0);
    assert!(share < 0.05, "{share} of the line beside a queue that stands");
    line.run(4_000);
    let share = line.share(4_000);
    assert!(share > 0.9, "{share} after it");
}

#[test]
fn nothing_acknowledged_at_all_stops_the_uplink_and_the_first_ack_starts_it() {
    let mut line = Line::new(10.0, &[20]);
    line.run(4_000);
    let kept: Vec<_> = std::mem::take(&mut line.uploads[0].acks).into();
    let written = line.uploads[0].written;
    for _ in 0..30_000 {
        line.step();
        line.uploads[0].acks.clear();
    }
    let rate = line.uplink.figures().rate;
    assert!(line.uploads[0].written - written < 100_000, "{}", line.uploads[0].written - written);
    assert!(rate < 200_000, "{rate} bytes per second after three seconds of silence");
    assert!(line.uplink.next_lease(SEGMENT).is_none(), "the window is full");
    // The last of what is in flight is acknowledged, and all before it.
    let last = (line.uploads[0].written - 1) as u32;
    assert!(!kept.is_empty());
    line.uploads[0].acks.push_back((line.now, last));
    line.run(4_000);
    let share = line.share(4_000);
    assert!(share > 0.85, "{share} after the silence");
}

#[test]
fn connections_that_are_over_leave_no_bytes_in_flight() {
    let mut line = Line::new(10.0, &[20, 20]);
    line.run(3_000);
    let gone = line.uploads.remove(1);
    assert!(gone.ledger.in_flight() > 0);
    line.uplink.on_forgotten(gone.ledger.in_flight());
    assert_eq!(line.uplink.in_flight(), line.uploads[0].ledger.in_flight());
    let share = line.share(4_000);
    assert!(share > 0.9, "{share}");
}

/// What requests take and the uploads' part of the rest, with counters and without, after the
/// line's rate changed by this factor.
fn with_and_without(mbit: f64, uploads: usize, factor: f64) -> [([f64; 2], f64); 2] {
    [true, false].map(|is_watched| {
        let mut line = Line::new(mbit, &vec![20; uploads]);
        line.is_watched = is_watched;
        line.run(12_000);
        line.rate *= factor;
        line.beside_requests(15_000)
    })
}

#[test]
fn the_hosts_own_requests_hardly_wait_and_all_else_is_used() {
    for (mbit, uploads) in [(2.0, 1), (4.0, 2), (10.0, 1), (10.0, 4), (50.0, 1)] {
        let [(waits, share), (without, _)] = with_and_without(mbit, uploads, 1.0);
        let told = format!("{mbit} Mbit/s, {uploads} uploads: {waits:?}, {share}; without {without:?}");
        assert!(waits[0] < 1.07 && waits[1] < 1.12 && share > 0.93, "{told}");
        assert!(waits[0] < without[0] && waits[1] < without[1], "{told}");
    }
}

/// The line gets slower after its rate was learnt. So the rate is believed too high.
#[test]
fn a_rate_that_is_believed_too_high_makes_no_standing_queue() {
    for (mbit, slower) in [(2.0, 0.97), (10.0, 0.97), (50.0, 0.97), (10.0, 0.94), (10.0, 0.5)] {
        let [(waits, share), (without, _)] = with_and_without(mbit, 1, slower);
        let told = format!("{mbit} Mbit/s, {slower}: {waits:?}, {share}; without {without:?}");
        // A rate that was halved is believed for half a minute more. The law governs meanwhile.
        let most = if slower < 0.9 { [1.7, 2.0] } else { [1.1, 1.2] };
        assert!(waits[0] < most[0] && waits[1] < most[1] && share > 0.8, "{told}");
        assert!(waits[0] < without[0] && waits[1] < without[1], "{told}");
    }
}

#[test]
fn a_line_that_gets_faster_is_used_again_soon() {
    let mut line = Line::new(10.0, &[20]);
    line.is_watched = true;
    line.run(12_000);
    line.rate *= 2.0;
    line.run(15_000);
    let share = line.share(10_000);
    assert!(share > 0.9, "{share}");
}
