//! Every congestion controller under whatever happens in whatever order: no panic, no window that
//! cannot move, never all paths choked, and a clockwork that goes on.
#![no_main]

use byway_control::{
    Acked, Congested, Controller, Delay, Opened, ProbeResult, Sent, Trigger, Undo, by_name, controller_names,
};
use byway_wire::{Duration, Instant, PathId};
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use std::collections::BTreeSet;

#[derive(Arbitrary, Debug)]
enum Step {
    Later(u16),
    MuchLater(u64),
    Open {
        proxied: bool,
        size: u16,
        rtt: Option<u16>,
    },
    Close(u8),
    Sent(u8, u16),
    Acked {
        path: u8,
        bytes: u32,
        age: u16,
        rtt: u16,
        delays: Vec<Distance>,
        limited: bool,
        rate: Option<u64>,
        ce: u8,
    },
    Congested {
        path: u8,
        why: u8,
        age: u16,
        bytes: u64,
    },
    Undo(u8, u16),
    Probe(u8, Option<Distance>),
    Route(u8),
    Tick,
}

/// A one-way delay: mostly of a size that occurs.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum Distance {
    Micros(u16),
    Nanos(i64),
}

impl Distance {
    fn nanos(self) -> i64 {
        match self {
            Self::Micros(micros) => i64::from(micros) * 1_000,
            Self::Nanos(nanos) => nanos,
        }
    }

    /// Met by a packet of any size: which, its last bits say.
    fn of_packet(self, sent_at: Instant) -> Delay {
        let one_way = self.nanos();
        Delay { sent_at, one_way, bytes: (one_way.unsigned_abs() / 1_000 % 2_000) as u32 }
    }
}

#[derive(Arbitrary, Debug)]
struct Story {
    controller: u8,
    seed: u64,
    steps: Vec<Step>,
}

fuzz_target!(|story: Story| {
    let names = controller_names();
    let name = names[usize::from(story.controller) % names.len()];
    let mut controller: Box<dyn Controller> = by_name(name, story.seed).expect("a name of the list");
    let (mut open, mut next, mut now) = (BTreeSet::new(), 0, Instant::from_millis(100_000));
    let millis = |millis: u16| Duration::from_millis(millis.into());
    for step in story.steps.iter().take(400) {
        // The path is one that is open, or one that is not any more.
        let pick = |path: u8| {
            let index = usize::from(path) % open.len().max(1);
            open.iter().nth(index).copied().unwrap_or(PathId(0))
        };
        match step {
            Step::Later(later) => now += millis(*later),
            Step::MuchLater(nanos) => now += Duration::from_nanos(nanos >> 8),
            Step::Open { proxied, size, rtt } => {
                if open.len() < 6 {
                    let opened =
                        Opened { now, proxied: *proxied, packet_size: (*size).into(), rtt: rtt.map(millis) };
                    controller.open(PathId(next), &opened);
                    open.insert(PathId(next));
                    next += 1;
                }
            }
            Step::Close(path) => {
                let id = pick(*path);
                open.remove(&id);
                controller.close(id);
            }
            Step::Sent(path, bytes) => {
                let sent =
                    Sent { now, bytes: (*bytes).into(), in_flight: (*bytes).into(), app_limited: false };
                controller.on_sent(pick(*path), &sent);
            }
            Step::Acked { path, bytes, age, rtt, delays, limited, rate, ce } => {
                let sent_at = now - millis(*age);
                let delays: Vec<Delay> = delays.iter().map(|distance| distance.of_packet(sent_at)).collect();
                let acked = Acked {
                    now,
                    bytes: (*bytes).into(),
                    packets: delays.len() as u32,
                    sent_at,
                    rtt: (age % 3 > 0).then_some(millis(*age)),
                    srtt: millis(*rtt),
                    min_rtt: millis(rtt / 2),
                    delays: &delays,
                    in_flight: (*bytes).into(),
                    app_limited: *limited,
                    delivery_rate: *rate,
                    ce: (*ce).into(),
                };
                controller.on_acked(pick(*path), &acked);
            }
            Step::Congested { path, why, age, bytes } => {
                let trigger = [Trigger::Loss, Trigger::Ce, Trigger::Timeout][usize::from(why % 3)];
                let sent_at = now - millis(*age);
                let first_sent_at = sent_at - millis(age / 2);
                let (bytes, in_flight) = (*bytes, *bytes);
                let congested = Congested { trigger, first_sent_at, sent_at, now, bytes, in_flight };
                controller.on_congested(pick(*path), &congested);
            }
            Step::Undo(path, age) => {
                controller.on_undo(pick(*path), &Undo { now, sent_at: now - millis(*age) });
            }
            Step::Probe(path, distance) => {
                let delay = distance.map(|distance| distance.of_packet(now));
                controller.on_probe(pick(*path), &ProbeResult { now, delay, rtt: None });
            }
            Step::Route(path) => controller.on_route_change(pick(*path), now),
            Step::Tick => {
                if let Some(again) = controller.tick(now) {
                    assert!(again > now, "{name}: to be called again at once, for ever");
                }
            }
        }
        let mut unchoked = 0;
        for path in &open {
            let allowance = controller.allowance(*path);
            if !allowance.choked {
                unchoked += 1;
                assert!(allowance.window > 0 && allowance.rate != Some(0), "{name}: {allowance:?}");
            }
        }
        assert!(open.is_empty() || unchoked > 0, "{name}: all are choked");
        let wants = controller.wants();
        assert!(wants.drop.iter().chain(wants.forget).all(|path| open.contains(path)), "{name}: {wants:?}");
        assert!(wants.drop.len() + wants.forget.len() < open.len().max(1), "{name}: {wants:?}");
    }
});
