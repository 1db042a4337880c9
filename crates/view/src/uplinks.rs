//! The traffic of each network interface: its total by the kernel's counters, byway's part by its
//! paths' counters, and the rest of others.

use crate::ring::{KEPT_SECONDS, Ring};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The kernel's counters of this network namespace.
const COUNTERS_FILE: &str = "/proc/self/net/dev";
/// Interfaces that are kept at most.
const MAX_INTERFACES: usize = 64;
/// The most interfaces that are shown, those with most bytes first.
const MAX_SHOWN: usize = 16;
/// Letters of an interface's name in Linux.
const MAX_NAME_LEN: usize = 15;
/// The time constant by which rates are smoothed. Processes tell their figures up to 1 s late.
const SMOOTHING_SECONDS: f64 = 2.0;
/// A pause after which counters tell no rate.
const MAX_PAUSE: Duration = Duration::from_secs(20);
/// Bits per second from which an interface counts as used by anyone.
const USED_BPS: f64 = 1_000.0;
/// The largest size of byway's headers and acknowledgements, as a share of the data that its paths
/// carry. The kernel counts these, and the paths do not. Acknowledgements return by the
/// fastest line.
const OVERHEAD_SHARE: f64 = 0.08;
/// Seconds after which a smaller rate of a full line replaces the capacity.
const CAPACITY_SECONDS: u64 = 60;

/// The traffic of byway's paths over an interface in one direction.
#[derive(Clone, Copy, Debug, Default)]
pub struct OwnTraffic {
    pub bps: f64,
    /// Whether nothing but the line holds back a path that makes a queue or loses packets.
    pub fills: bool,
    pub paths: usize,
}

/// Both directions of an interface.
#[derive(Clone, Copy, Debug, Default)]
pub struct OwnPart {
    pub up: OwnTraffic,
    pub down: OwnTraffic,
}

/// The interfaces that were seen so far.
#[derive(Debug, Default)]
pub struct Uplinks {
    known: BTreeMap<Arc<str>, Uplink>,
}

#[derive(Debug)]
struct Uplink {
    counted: Option<(Instant, [u64; 2])>,
    up: Direction,
    down: Direction,
    has_paths: bool,
    /// The second in which the interface last carried data.
    used: Option<u64>,
}

#[derive(Debug, Default)]
struct Direction {
    total: Option<f64>,
    own: f64,
    capacity: Option<Capacity>,
    own_ring: Ring,
    total_ring: Ring,
}

#[derive(Clone, Copy, Debug)]
struct Capacity {
    bps: f64,
    second: u64,
}

/// The figures of an interface, for the page.
#[derive(Debug, Serialize)]
pub struct UplinkFigures {
    pub name: String,
    pub paths: bool,
    pub up: DirectionFigures,
    pub down: DirectionFigures,
}

/// One direction of an interface. Figures that were not measured are left out.
#[derive(Debug, Default, Serialize)]
pub struct DirectionFigures {
    /// Bits per second of byway's paths.
    pub own_bps: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_bps: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub others_bps: Option<u64>,
    /// A bound of others' traffic, below which byway's own headers and acknowledgements may account
    /// for all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub others_below_bps: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_bps: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity_bps: Option<u64>,
    /// Seconds since the capacity was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity_age: Option<u64>,
}

/// The last ten minutes of an interface.
#[derive(Debug, Serialize)]
pub struct UplinkPast {
    pub up: DirectionPast,
    pub down: DirectionPast,
}

/// Bits per second of the last ten minutes, in all and of byway's paths.
#[derive(Debug, Serialize)]
pub struct DirectionPast {
    pub total: Vec<Option<f32>>,
    pub own: Vec<Option<f32>>,
}

impl Uplinks {
    /// Notes the kernel's counters, and byway's part of each interface.
    pub fn note(&mut self, second: u64, now: Instant, own: &BTreeMap<Arc<str>, OwnPart>) {
        let text = fs::read_to_string(COUNTERS_FILE).unwrap_or_default();
        self.note_counters(second, now, own, &counters(&text));
    }

    fn note_counters(
        &mut self,
        second: u64,
        now: Instant,
        own: &BTreeMap<Arc<str>, OwnPart>,
        counted: &[(&str, [u64; 2])],
    ) {
        self.known.retain(|name, _| counted.iter().any(|(counted, _)| **counted == **name));
        for (name, counts) in counted {
            if self.known.len() >= MAX_INTERFACES && !self.known.contains_key(*name) {
                continue;
            }
            let own = own.get(*name).copied().unwrap_or_default();
            self.known.entry((*name).into()).or_insert_with(Uplink::new).note(second, now, own, *counts);
        }
    }

    /// Returns the figures to show.
    pub fn figures(&self, second: u64) -> Vec<UplinkFigures> {
        let is_used =
            |uplink: &Uplink| uplink.used.is_some_and(|at| second.saturating_sub(at) < KEPT_SECONDS);
        // Loopback is no uplink. Where paths lead over it, it stands for one.
        let is_shown =
            |(name, uplink): &(&Arc<str>, &Uplink)| uplink.has_paths || ***name != *"lo" && is_used(uplink);
        let mut shown: Vec<_> = self.known.iter().filter(is_shown).collect();
        shown.sort_by(|(_, a), (_, b)| b.weight().total_cmp(&a.weight()));
        shown.truncate(MAX_SHOWN);
        // In one order, however much each carries.
        shown.sort_by_key(|(name, _)| *name);
        let sent: f64 = self.known.values().map(|uplink| uplink.up.own).sum();
        let received: f64 = self.known.values().map(|uplink| uplink.down.own).sum();
        let figures = |(name, uplink): (&Arc<str>, &Uplink)| UplinkFigures {
            name: name.to_string(),
            paths: uplink.has_paths,
            up: uplink.up.figures(second, (uplink.up.own + received) * OVERHEAD_SHARE),
            down: uplink.down.figures(second, (uplink.down.own + sent) * OVERHEAD_SHARE),
        };
        shown.into_iter().map(figures).collect()
    }

    /// Returns the last ten minutes of an interface. `None`: there is no such interface.
    pub fn past(&self, name: &str, second: u64) -> Option<UplinkPast> {
        let uplink = self.known.get(name)?;
        Some(UplinkPast { up: uplink.up.past(second), down: uplink.down.past(second) })
    }
}

impl Uplink {
    fn new() -> Self {
        Self {
            counted: None,
            up: Direction::default(),
            down: Direction::default(),
            has_paths: false,
            used: None,
        }
    }

    fn note(&mut self, second: u64, now: Instant, own: OwnPart, counts: [u64; 2]) {
        let before = self.counted.replace((now, counts));
        let passed = before.map_or(Duration::ZERO, |(at, _)| now.saturating_duration_since(at));
        self.has_paths = own.up.paths + own.down.paths > 0;
        let is_known = !passed.is_zero() && passed <= MAX_PAUSE;
        let seconds = passed.as_secs_f64();
        let bps = |index: usize| {
            let (_, before) = before.filter(|_| is_known)?;
            let more = counts.get(index)?.checked_sub(*before.get(index)?)?;
            Some(more as f64 * 8.0 / seconds)
        };
        let [received, sent] = [bps(0), bps(1)];
        self.up.note(second, seconds, own.up, sent);
        self.down.note(second, seconds, own.down, received);
        if [received, sent].into_iter().flatten().any(|bps| bps >= USED_BPS) {
            self.used = Some(second);
        }
    }

    /// Returns the weight by which interfaces are chosen, if there are many.
    fn weight(&self) -> f64 {
        let carried = self.up.total.unwrap_or_default() + self.down.total.unwrap_or_default();
        if self.has_paths { f64::MAX } else { carried }
    }
}

impl Direction {
    fn note(&mut self, second: u64, seconds: f64, own: OwnTraffic, total: Option<f64>) {
        let weight = 1.0 - (-seconds / SMOOTHING_SECONDS).exp();
        let smoothed = |before: f64, now: f64| before + (now - before) * weight;
        match (self.total, total) {
            (Some(before), Some(now)) => {
                self.total = Some(smoothed(before, now));
                self.own = smoothed(self.own, own.bps);
            }
            // After a pause nothing is smoothed.
            (_, now) => (self.total, self.own) = (now, own.bps),
        }
        if let Some(total) = self.total {
            let is_more = self.capacity.is_some_and(|known| total > known.bps);
            let is_old =
                self.capacity.is_none_or(|known| second.saturating_sub(known.second) > CAPACITY_SECONDS);
            if is_more || own.fills && is_old {
                self.capacity = Some(Capacity { bps: total, second });
            }
        }
        self.own_ring.push(second, Some(self.own));
        self.total_ring.push(second, self.total);
    }

    fn figures(&self, second: u64, overhead: f64) -> DirectionFigures {
        let others = self.total.map(|total| total - self.own);
        let is_told = others.is_some_and(|others| others > overhead);
        let capacity = self.capacity;
        let idle = self.total.zip(capacity).map(|(total, capacity)| whole((capacity.bps - total).max(0.0)));
        DirectionFigures {
            own_bps: whole(self.own),
            total_bps: self.total.map(whole),
            others_bps: others.filter(|_| is_told).map(whole),
            others_below_bps: others.filter(|_| !is_told).map(|_| whole(overhead)),
            idle_bps: idle,
            capacity_bps: capacity.map(|capacity| whole(capacity.bps)),
            capacity_age: capacity.map(|capacity| second.saturating_sub(capacity.second)),
        }
    }

    fn past(&self, second: u64) -> DirectionPast {
        let whole = |ring: &Ring| ring.until(second).into_iter().map(|bps| bps.map(f32::round)).collect();
        DirectionPast { total: whole(&self.total_ring), own: whole(&self.own_ring) }
    }
}

/// Bits per second without a fraction, and never below zero.
pub fn whole(bps: f64) -> u64 {
    bps.max(0.0) as u64
}

/// Reads the interfaces in the kernel's table, each with its bytes received and sent.
fn counters(text: &str) -> Vec<(&str, [u64; 2])> {
    let line = |line| -> Option<(_, _)> {
        let (name, counts): (&str, &str) = str::rsplit_once(line, ':')?;
        let mut counts = counts.split_ascii_whitespace();
        let received = counts.next()?.parse().ok()?;
        let sent = counts.nth(7)?.parse().ok()?;
        let name = name.trim();
        (name.len() <= MAX_NAME_LEN).then_some((name, [received, sent]))
    };
    text.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(up_bps: f64, fills: bool) -> BTreeMap<Arc<str>, OwnPart> {
        let up = OwnTraffic { bps: up_bps, fills, paths: 1 };
        BTreeMap::from([("eth0".into(), OwnPart { up, down: OwnTraffic::default() })])
    }

    /// Seconds in which an interface sends `mbit` in all, of which paths have `own`.
    struct Line {
        uplinks: Uplinks,
        begun: Instant,
        second: u64,
        sent: u64,
    }

    impl Line {
        fn new() -> Self {
            Self { uplinks: Uplinks::default(), begun: Instant::now(), second: 0, sent: 0 }
        }

        fn pass(&mut self, seconds: u64, total_mbit: u64, own_mbit: f64, fills: bool) -> DirectionFigures {
            for _ in 0..seconds {
                self.second += 1;
                self.sent += total_mbit * 125_000;
                let now = self.begun + Duration::from_secs(self.second);
                let counted = [("eth0", [0, self.sent])];
                self.uplinks.note_counters(self.second, now, &own(own_mbit * 1e6, fills), &counted);
            }
            self.uplinks.figures(self.second).remove(0).up
        }
    }

    #[test]
    fn the_kernels_table_is_read() {
        let text = "Inter-|   Receive                |  Transmit\n face |bytes    packets\n\
            \x20   lo: 100 1 0 0 0 0 0 0 200 2 0 0 0 0 0 0\n eth0:7 1 0 0 0 0 0 0 9 2 0 0 0 0 0 0\nbroken: 1 2\n";
        assert_eq!(counters(text), [("lo", [100, 200]), ("eth0", [7, 9])]);
        let here = fs::read_to_string(COUNTERS_FILE).unwrap();
        assert!(counters(&here).iter().any(|(name, _)| *name == "lo"), "{here}");
    }

    #[test]
    fn what_is_not_byways_is_others_and_the_capacity_is_what_a_full_line_carried() {
        let mut line = Line::new();
        let first = line.pass(1, 8, 4.0, false);
        assert_eq!((first.total_bps, first.others_bps), (None, None), "one look tells no rate");
        let shared = line.pass(30, 8, 4.0, false);
        assert!(shared.others_bps.unwrap().abs_diff(4_000_000) < 10_000, "{shared:?}");
        assert_eq!((shared.capacity_bps, shared.idle_bps), (None, None), "nobody filled the line");
        let full = line.pass(30, 10, 6.0, true);
        assert!(full.capacity_bps.unwrap().abs_diff(10_000_000) < 50_000, "{full:?}");
        let after = line.pass(30, 2, 1.9, false);
        assert!(after.idle_bps.unwrap().abs_diff(8_000_000) < 100_000, "{after:?}");
        assert_eq!((after.others_bps, after.others_below_bps), (None, Some(152_000)), "{after:?}");
        assert!(after.capacity_age >= Some(20), "{after:?}");
    }

    /// Acknowledgements of data on one line may return by another, and do not count as others'
    /// traffic.
    #[test]
    fn acknowledgements_are_nobody_elses() {
        let (mut uplinks, begun) = (Uplinks::default(), Instant::now());
        for second in 0..30 {
            let counted = [("eth0", [0, second * 1_250_000]), ("lte0", [second * 60_000, 0])];
            uplinks.note_counters(second, begun + Duration::from_secs(second), &own(9.7e6, true), &counted);
        }
        let down = &uplinks.figures(30)[1].down;
        assert_eq!((down.others_bps, down.others_below_bps), (None, Some(776_000)), "{down:?}");
    }

    #[test]
    fn a_line_that_became_slower_is_measured_anew() {
        let mut line = Line::new();
        line.pass(30, 10, 9.7, true);
        let slower = line.pass(90, 5, 4.8, true);
        assert!(slower.capacity_bps.unwrap().abs_diff(5_000_000) < 50_000, "{slower:?}");
        // More than it can carry is not carried.
        let faster = line.pass(30, 20, 1.0, false);
        assert!(faster.capacity_bps.unwrap() > 19_000_000 && faster.idle_bps < Some(500_000), "{faster:?}");
    }

    #[test]
    fn a_pause_tells_no_rate_and_an_interface_that_is_gone_is_forgotten() {
        let mut line = Line::new();
        line.pass(5, 10, 9.7, true);
        line.second += 3_000;
        assert_eq!(line.pass(1, 10, 9.7, true).total_bps, None);
        let now = line.begun + Duration::from_secs(9_000);
        line.uplinks.note_counters(9_000, now, &BTreeMap::new(), &[]);
        assert!(line.uplinks.figures(9_000).is_empty() && line.uplinks.past("eth0", 9_000).is_none());
    }

    #[test]
    fn many_interfaces_take_bounded_room_and_loopback_is_shown_with_paths_alone() {
        let (mut uplinks, begun) = (Uplinks::default(), Instant::now());
        let names: Vec<String> = (0..500).map(|number| format!("veth{number}")).collect();
        for second in 0..3 {
            let count = second * 1_000_000;
            let named = names.iter().map(|name| (name.as_str(), [count, count]));
            let counted: Vec<_> = [("lo", [count, count])].into_iter().chain(named).collect();
            uplinks.note_counters(second, begun + Duration::from_secs(second), &BTreeMap::new(), &counted);
        }
        assert_eq!(uplinks.known.len(), MAX_INTERFACES);
        let shown = uplinks.figures(3);
        assert!(shown.len() == MAX_SHOWN && shown.iter().all(|uplink| uplink.name != "lo"));
        let part = OwnPart { up: OwnTraffic { bps: 1.0, fills: false, paths: 1 }, ..OwnPart::default() };
        let counted = [("lo", [9, 9])];
        uplinks.note_counters(4, begun, &BTreeMap::from([("lo".into(), part)]), &counted);
        assert_eq!(uplinks.figures(4).len(), 1);
    }
}
