//! The class `normal` (mPath), when paths through relays share a queue with the direct path. In a
//! trial, mPath moves part of their windows to the direct path. If the direct path carries the
//! load, mPath drops the other paths.

use crate::hand::{PACKET, opened};
use byway_control::mpath::{MPath, MPathOptions};
use byway_control::{Acked, Controller, Delay};
use byway_wire::{Duration, Instant, PathId};
use std::collections::BTreeMap;

const DIRECT: PathId = PathId(0);
const STEP: u64 = 10;
const BASE: i64 = 25_000_000;

/// A simulated line that carries one packet per ms. The paths share it in proportion to their
/// windows. But the direct path carries at most `direct_at_most` packets per ms, and each other
/// path at most `others_at_most`.
struct Line {
    flow: MPath,
    direct_at_most: f64,
    others_at_most: f64,
    paths: u32,
    owed: BTreeMap<PathId, f64>,
    carried: BTreeMap<PathId, f64>,
    now: u64,
}

impl Line {
    fn new(paths: u32, direct_at_most: f64) -> Self {
        Self::of(MPathOptions::PRODUCTION, paths, direct_at_most)
    }

    fn of(options: MPathOptions, paths: u32, direct_at_most: f64) -> Self {
        let mut flow = MPath::new("normal", options, 1);
        (0..=paths).for_each(|path| flow.open(PathId(path), &opened(path > 0)));
        Self {
            flow,
            direct_at_most,
            others_at_most: 1.0,
            paths,
            owed: BTreeMap::new(),
            carried: BTreeMap::new(),
            now: 0,
        }
    }

    /// Runs for `seconds`. `queue` is how long a packet of a path waits, in nanoseconds, at a time
    /// in ms.
    fn run(&mut self, seconds: u64, queue: impl Fn(PathId, u64) -> i64) {
        for _ in 0..seconds * 1_000 / STEP {
            self.now += STEP;
            let (flow, ids) = (&self.flow, (0..=self.paths).map(PathId));
            let open: Vec<(PathId, f64)> = ids
                .map(|id| (id, flow.allowance(id)))
                .filter(|(id, allowance)| !allowance.choked && !flow.wants().shares.contains(id))
                .map(|(id, allowance)| (id, allowance.window as f64))
                .collect();
            let total: f64 = open.iter().map(|(_, window)| window).sum();
            for (id, window) in open {
                let most = if id == DIRECT { self.direct_at_most } else { self.others_at_most };
                let owed = self.owed.entry(id).or_default();
                *owed += STEP as f64 * (window / total).min(most);
                let packets = *owed as u32;
                *owed -= f64::from(packets);
                *self.carried.entry(id).or_default() += f64::from(packets);
                let delays: Vec<Delay> = (0..packets)
                    .map(|packet| {
                        let at = self.now + u64::from(packet) % STEP;
                        let sent_at = Instant::from_millis(at);
                        Delay { sent_at, one_way: BASE + queue(id, at), bytes: PACKET }
                    })
                    .collect();
                self.flow.on_acked(id, &acked(self.now, &delays));
            }
        }
    }
}

fn acked(now: u64, delays: &[Delay]) -> Acked<'_> {
    let rtt = Duration::from_millis(50);
    Acked {
        now: Instant::from_millis(now) + rtt,
        bytes: delays.len() as u64 * u64::from(PACKET),
        packets: delays.len() as u32,
        sent_at: Instant::from_millis(now),
        rtt: Some(rtt),
        srtt: rtt,
        min_rtt: rtt,
        delays,
        in_flight: 100 * u64::from(PACKET),
        app_limited: true,
        delivery_rate: None,
        ce: 0,
    }
}

/// The delay of a queue that fills to 30 ms in `period` ms, again and again, in nanoseconds.
fn fills(period: u64, at: u64) -> i64 {
    (at % period) as i64 * 30_000_000 / period as i64
}

#[test]
fn paths_in_the_direct_path_s_queue_end_if_it_carries_their_load() {
    let mut line = Line::new(3, 1.0);
    line.run(60, |_, at| fills(2_300, at));
    assert_eq!(line.flow.wants().shares.len(), 3);
    let direct = line.carried[&DIRECT];
    line.run(10, |_, at| fills(2_300, at));
    assert_eq!(line.carried[&DIRECT] - direct, 10_000.0, "it has the whole line");
}

#[test]
fn what_the_direct_path_cannot_carry_comes_back() {
    let mut line = Line::new(3, 0.2);
    line.run(60, |_, at| fills(2_300, at));
    assert!(line.flow.wants().shares.is_empty());
    let window = |id| line.flow.allowance(PathId(id));
    assert!((1..=3).all(|id| !window(id).choked && window(id).window >= u64::from(PACKET)), "all are back");
}

#[test]
fn lines_of_their_own_stay_full_while_their_queues_are_held_against_the_direct_one_s() {
    let large = MPathOptions { initial_proxied: 10.0, ..MPathOptions::PRODUCTION };
    let mut line = Line::of(large, 3, 0.05);
    line.others_at_most = 0.05;
    line.run(60, |_, at| fills(2_300, at));
    assert!(line.flow.wants().shares.is_empty());
    let carried = &line.carried;
    assert!((0..=3).all(|id| carried[&PathId(id)] >= 2_990.0), "of 3000: {carried:?}");
}

#[test]
fn paths_with_queues_of_their_own_stay() {
    let mut line = Line::new(3, 1.0);
    line.run(60, |id, at| fills(1_900 + 700 * u64::from(id.0), at));
    assert!(line.flow.wants().shares.is_empty());
    assert!((1..=3).all(|id| line.carried[&PathId(id)] > 1_000.0));
}

#[test]
fn without_a_queue_nothing_is_concluded() {
    let mut line = Line::new(3, 1.0);
    line.run(60, |_, _| 0);
    assert!(line.flow.wants().shares.is_empty());
}
