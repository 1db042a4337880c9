//! Checks that a controller keeps the contract of [`Controller`]: whatever happens in whatever
//! order, it does not panic, no window stands still, and not all paths are choked.

use crate::seeded_random::Random;
use crate::{Acked, Congested, Controller, Delay, Opened, ProbeResult, Sent, Trigger, Undo};
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use byway_wire::{Duration, Instant, PathId};

/// Events of one check.
const EVENT_COUNT: usize = 120;
/// The most paths that are open at a time.
const MAX_PATHS: usize = 6;
/// The most milliseconds between two events.
const MAX_GAP_MS: u64 = 700;

/// A controller with its paths, which gets random events.
struct Trial {
    random: Random,
    controller: Box<dyn Controller>,
    open: BTreeSet<PathId>,
    next: u32,
    now: Instant,
}

impl Trial {
    /// A path that is open, or one that is not any more.
    fn path(&mut self) -> PathId {
        let place = self.random.below(MAX_PATHS as u64) as usize;
        self.open.iter().nth(place).copied().unwrap_or(PathId(0))
    }

    /// A number of bytes: plausible, or as large or small as there is.
    fn bytes(&mut self) -> u64 {
        match self.random.below(10) {
            0 => u64::MAX,
            1 => 0,
            _ => self.random.below(100_000),
        }
    }

    fn packet_bytes(&mut self) -> u32 {
        self.random.below(70_000) as u32
    }

    fn age(&mut self) -> Duration {
        Duration::from_millis(match self.random.below(10) {
            0 => u64::MAX / 4_000_000,
            _ => self.random.below(2_000),
        })
    }

    fn one_way(&mut self) -> i64 {
        match self.random.below(11) {
            0 => i64::MAX,
            1 => i64::MIN,
            2..5 => 1_000_000,
            _ => self.random.below(100_000_000) as i64,
        }
    }

    fn chance(&mut self) -> bool {
        self.random.below(2) == 0
    }

    /// Makes a random event, and returns its name.
    fn happens(&mut self) -> &'static str {
        let now = self.now;
        match self.random.below(27) {
            0..2 if self.open.len() < MAX_PATHS => {
                let id = PathId(self.next);
                self.next += 1;
                self.open.insert(id);
                let rtt = if self.chance() { Some(self.age()) } else { None };
                let opened = Opened { now, proxied: self.chance(), packet_size: self.packet_bytes(), rtt };
                self.controller.open(id, &opened);
                "a path opens"
            }
            0..3 => {
                let id = self.path();
                self.open.remove(&id);
                self.controller.close(id);
                "a path closes"
            }
            3..6 => {
                let (path, bytes) = (self.path(), self.packet_bytes());
                let sent = Sent { now, bytes, in_flight: u64::from(bytes), app_limited: false };
                self.controller.on_sent(path, &sent);
                "a packet is sent"
            }
            6..15 => {
                self.acknowledges();
                "an ACK arrives"
            }
            15..20 => {
                let trigger = [Trigger::Loss, Trigger::Ce, Trigger::Timeout][self.random.below(3) as usize];
                let (path, age, bytes) = (self.path(), self.age(), self.bytes());
                let sent_at = now - age;
                let first_sent_at = sent_at - age / 2;
                let congested = Congested { trigger, first_sent_at, sent_at, now, bytes, in_flight: bytes };
                self.controller.on_congested(path, &congested);
                "congestion is signalled"
            }
            20..22 => {
                let (path, sent_at) = (self.path(), now - self.age());
                self.controller.on_undo(path, &Undo { now, sent_at });
                "a loss was none"
            }
            22..24 => {
                let path = self.path();
                let one_way = self.one_way();
                let delay = self.chance().then_some(Delay { sent_at: now, one_way, bytes: 1_200 });
                self.controller.on_probe(path, &ProbeResult { now, delay, rtt: None });
                "a probe ends"
            }
            24 => {
                let path = self.path();
                self.controller.on_route_change(path, now);
                "a route changes"
            }
            25 => {
                let (path, bytes) = (self.path(), self.packet_bytes());
                self.controller.on_packet_size(path, bytes);
                "the packet size changes"
            }
            _ => {
                self.controller.tick(now);
                "a timer rings"
            }
        }
    }

    fn acknowledges(&mut self) {
        let (now, path, bytes, age) = (self.now, self.path(), self.bytes(), self.age());
        let sent_at = now - age;
        let delays: Vec<Delay> = (0..self.random.below(12))
            .map(|_| Delay { sent_at, one_way: self.one_way(), bytes: 1_200 })
            .collect();
        let srtt = self.age();
        let acked = Acked {
            now,
            bytes,
            packets: delays.len() as u32,
            sent_at,
            rtt: (self.random.below(3) > 0).then_some(age),
            srtt,
            min_rtt: srtt / 2,
            delays: &delays,
            in_flight: bytes,
            app_limited: self.chance(),
            delivery_rate: if self.chance() { Some(self.random.below(u64::MAX)) } else { None },
            ce: 0,
        };
        self.controller.on_acked(path, &acked);
    }

    /// Returns the rule of the contract that the controller breaks, if it breaks one.
    fn broken(&self) -> Option<String> {
        let mut unchoked = 0;
        for path in &self.open {
            let allowance = self.controller.allowance(*path);
            if allowance.choked {
                continue;
            }
            unchoked += 1;
            if allowance.window == 0 || allowance.rate == Some(0) {
                return Some(format!("{path} can never send: {allowance:?}"));
            }
        }
        if unchoked == 0 && !self.open.is_empty() {
            return Some("all paths are choked".into());
        }
        let wants = self.controller.wants();
        let unwanted = || wants.drop.iter().chain(wants.forget);
        if let Some(path) = unwanted().find(|path| !self.open.contains(path)) {
            return Some(format!("{path} is to be dropped, and is gone already"));
        }
        (unwanted().count() >= self.open.len().max(1)).then(|| "all paths are to be dropped".into())
    }
}

/// Lets 120 random events happen to the controller that `make` makes from `seed`.
///
/// # Errors
/// What the controller did that its contract forbids, after which event. The same seed shows it
/// again. A controller that panics does so here.
pub fn check(make: impl FnOnce(u64) -> Box<dyn Controller>, seed: u64) -> Result<(), String> {
    let mut trial = Trial {
        random: Random::new(seed),
        controller: make(seed),
        open: BTreeSet::new(),
        next: 0,
        now: Instant::from_millis(10),
    };
    for event in 1..=EVENT_COUNT {
        trial.now += Duration::from_millis(trial.random.below(MAX_GAP_MS));
        let what = trial.happens();
        if let Some(broken) = trial.broken() {
            return Err(format!("seed {seed}, event {event} ({what}): {broken}"));
        }
    }
    Ok(())
}

/// Checks that a path through a relay keeps that property when its route changes: the bundle must
/// ask for as many other paths as without the change.
///
/// # Errors
/// How many it asks for with and without the changes.
pub fn check_route_change(make: impl Fn(u64) -> Box<dyn Controller>) -> Result<(), String> {
    let now = Instant::from_millis(10);
    let asked_for = |changes: bool| {
        let mut controller = make(1);
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
    match (asked_for(true), asked_for(false)) {
        (with, without) if with == without => Ok(()),
        (with, without) => Err(format!("asks for {with} paths after changes of routes, else for {without}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::UncoupledPaths;
    use crate::{Allowance, PathController};

    /// A window that loses a packet at each loss, and is nothing in the end.
    #[derive(Debug)]
    struct Shrinking(u64);

    impl PathController for Shrinking {
        fn on_acked(&mut self, _: &Acked<'_>) {}
        fn on_congested(&mut self, _: &Congested) {
            self.0 = self.0.saturating_sub(1_200);
        }
        fn on_undo(&mut self, _: &Undo) {}
        fn on_route_change(&mut self, _: Instant) {}
        fn on_packet_size(&mut self, _: u32) {}
        fn allowance(&self) -> Allowance {
            Allowance { window: self.0, ..Allowance::default() }
        }
    }

    #[test]
    fn a_window_that_closes_is_found_and_one_that_does_not_is_not() {
        let of = |window: u64| {
            let found = (0..50).map(move |seed| {
                let make = |_| UncoupledPaths::new("shrinking", move |_: &Opened| Shrinking(window));
                check(|seed| Box::new(make(seed)), seed)
            });
            found.filter_map(Result::err).collect::<Vec<_>>()
        };
        assert!(of(u64::MAX).is_empty());
        let found = of(2_400);
        assert!(found.iter().any(|why| why.contains("can never send")), "{found:?}");
    }
}
