//! Whatever happens in whatever order: no panic, no window that cannot move, never all paths
//! choked.

use byway_control::{
    Acked, Congested, Controller, Delay, Opened, ProbeResult, Sent, Trigger, Undo, by_name, controller_names,
};
use byway_wire::{Duration, Instant, PathId};
use proptest::prelude::*;
use std::collections::BTreeSet;

#[derive(Clone, Debug)]
enum Operation {
    Open { proxied: bool, size: u32, rtt: Option<u64> },
    Close(usize),
    Sent(usize, u32),
    Acked { path: usize, bytes: u64, age: u64, rtt: u64, delays: Vec<i64>, limited: bool, rate: Option<u64> },
    Congested { path: usize, trigger: Trigger, age: u64, bytes: u64 },
    Undo(usize, u64),
    Probe(usize, Option<i64>),
    Route(usize),
    Tick,
}

fn bytes() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0..100_000_u64, 1 => Just(u64::MAX), 1 => Just(0)]
}

fn age() -> impl Strategy<Value = u64> {
    prop_oneof![9 => 0..2_000_u64, 1 => Just(u64::MAX / 4_000_000)]
}

fn delay() -> impl Strategy<Value = i64> {
    prop_oneof![6 => 0..100_000_000_i64, 1 => Just(i64::MAX), 1 => Just(i64::MIN), 3 => Just(1_000_000)]
}

fn operation() -> impl Strategy<Value = Operation> {
    let path = || 0..6_usize;
    let trigger = prop_oneof![Just(Trigger::Loss), Just(Trigger::Ce), Just(Trigger::Timeout)];
    let open = (any::<bool>(), 0..70_000_u32, proptest::option::of(age()));
    let acked = (
        path(),
        bytes(),
        age(),
        age(),
        proptest::collection::vec(delay(), 0..12),
        any::<bool>(),
        proptest::option::of(any::<u64>()),
    );
    prop_oneof![
        2 => open.prop_map(|(proxied, size, rtt)| Operation::Open { proxied, size, rtt }),
        1 => path().prop_map(Operation::Close),
        3 => (path(), 0..70_000_u32).prop_map(|(path, bytes)| Operation::Sent(path, bytes)),
        9 => acked.prop_map(|(path, bytes, age, rtt, delays, limited, rate)| Operation::Acked {
            path, bytes, age, rtt, delays, limited, rate
        }),
        5 => (path(), trigger, age(), bytes())
            .prop_map(|(path, trigger, age, bytes)| Operation::Congested { path, trigger, age, bytes }),
        2 => (path(), age()).prop_map(|(path, age)| Operation::Undo(path, age)),
        2 => (path(), proptest::option::of(delay())).prop_map(|(path, delay)| Operation::Probe(path, delay)),
        1 => path().prop_map(Operation::Route),
        2 => Just(Operation::Tick),
    ]
}

fn apply(
    controller: &mut dyn Controller,
    open: &mut BTreeSet<PathId>,
    next: &mut u32,
    now: Instant,
    what: Operation,
) {
    // The path is one that is open, or one that is not any more.
    let pick = |open: &BTreeSet<PathId>, path: usize| open.iter().nth(path).copied().unwrap_or(PathId(0));
    let millis = Duration::from_millis;
    match what {
        Operation::Open { proxied, size, rtt } if open.len() < 6 => {
            let id = PathId(*next);
            *next += 1;
            open.insert(id);
            controller.open(id, &Opened { now, proxied, packet_size: size, rtt: rtt.map(millis) });
        }
        Operation::Open { .. } => {}
        Operation::Close(path) => {
            let id = pick(open, path);
            open.remove(&id);
            controller.close(id);
        }
        Operation::Sent(path, bytes) => {
            let sent = Sent { now, bytes, in_flight: u64::from(bytes), app_limited: false };
            controller.on_sent(pick(open, path), &sent);
        }
        Operation::Acked { path, bytes, age, rtt, delays, limited, rate } => {
            let sent_at = now - millis(age);
            let delays: Vec<Delay> =
                delays.iter().map(|one_way| Delay { sent_at, one_way: *one_way, bytes: 1200 }).collect();
            let acked = Acked {
                now,
                bytes,
                packets: delays.len() as u32,
                sent_at,
                rtt: (age % 3 > 0).then_some(millis(age)),
                srtt: millis(rtt),
                min_rtt: millis(rtt / 2),
                delays: &delays,
                in_flight: bytes,
                app_limited: limited,
                delivery_rate: rate,
                ce: 0,
            };
            controller.on_acked(pick(open, path), &acked);
        }
        Operation::Congested { path, trigger, age, bytes } => {
            let sent_at = now - millis(age);
            let first_sent_at = sent_at - millis(age / 2);
            let congested = Congested { trigger, first_sent_at, sent_at, now, bytes, in_flight: bytes };
            controller.on_congested(pick(open, path), &congested);
        }
        Operation::Undo(path, age) => {
            controller.on_undo(pick(open, path), &Undo { now, sent_at: now - millis(age) })
        }
        Operation::Probe(path, delay) => {
            let delay = delay.map(|one_way| Delay { sent_at: now, one_way, bytes: 1200 });
            controller.on_probe(pick(open, path), &ProbeResult { now, delay, rtt: None });
        }
        Operation::Route(path) => controller.on_route_change(pick(open, path), now),
        Operation::Tick => {
            controller.tick(now);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn any_sequence_of_events_leaves_a_bundle_that_moves(
        operations in proptest::collection::vec((0..700_u64, operation()), 1..120),
        seed in any::<u64>(),
    ) {
        for name in controller_names() {
            let mut controller = by_name(name, seed).unwrap();
            let (mut open, mut next, mut now) = (BTreeSet::new(), 0, Instant::from_millis(10));
            for (later, what) in operations.clone() {
                now += Duration::from_millis(later);
                apply(controller.as_mut(), &mut open, &mut next, now, what);
                let mut unchoked = 0;
                for path in &open {
                    let allowance = controller.allowance(*path);
                    if allowance.choked {
                        continue;
                    }
                    unchoked += 1;
                    prop_assert!(allowance.window > 0, "{name}: {allowance:?}");
                    prop_assert!(allowance.rate != Some(0), "{name}: {allowance:?}");
                }
                prop_assert!(open.is_empty() || unchoked > 0, "{name}: all are choked");
                let wants = controller.wants();
                for path in wants.drop.iter().chain(wants.forget) {
                    prop_assert!(open.contains(path), "{name}: {path} is gone already");
                }
                prop_assert!(wants.drop.len() + wants.forget.len() < open.len().max(1), "{name}: drops all");
            }
        }
    }
}

/// A path through a relay stays one when its route changes: a bundle asks for as many others then
/// as it would without.
#[test]
fn a_relayed_path_stays_relayed_when_its_route_changes() {
    let now = Instant::from_millis(10);
    for name in controller_names() {
        let asked_for = |changes: bool| {
            let mut controller = by_name(name, 1).unwrap();
            for id in 0..6 {
                let rtt = Some(Duration::from_millis(20));
                controller.open(PathId(id), &Opened { now, proxied: id > 0, packet_size: 1_200, rtt });
            }
            for id in (1..6).filter(|_| changes) {
                controller.on_route_change(PathId(id), now);
            }
            controller.close(PathId(5));
            controller.tick(now);
            controller.wants().open
        };
        assert_eq!(asked_for(true), asked_for(false), "{name}");
    }
}
