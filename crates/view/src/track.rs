//! The state of a transfer and its paths between two samples, and their last ten minutes.

use crate::frame::{PathFigures, Tenths};
use crate::ring::Ring;
use crate::told::{MAX_FIGURE, ToldPath, ToldTransfer};
use crate::uplinks::whole;
use byway_transfer::PauseReason;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The most paths of a transfer that are shown and remembered: the fastest.
pub const MAX_SHOWN_PATHS: usize = 8;
/// The factor by which a path must be faster to take another's place.
const REPLACING_FACTOR: f64 = 1.5;
/// The weight of a path's new rate in the average by which paths are chosen.
const RANK_WEIGHT: f64 = 0.2;
/// Seconds after which figures that a process does not renew are no longer shown.
const MAX_SILENT_SECONDS: u64 = 4;
/// The unit of loss: one part in this number.
const LOSS_SCALE: f64 = 10_000.0;
/// The share of the earlier counts that still counts at the next sample.
const LOSS_MEMORY: f64 = 0.7;

/// A transfer between two looks.
#[derive(Debug)]
pub struct Track {
    /// The number by which the page knows the transfer.
    pub id: u32,
    /// Whether the transfer was present at the last sample.
    pub is_seen: bool,
    /// The transfer's own time at its newest figures. The next field: the second of their arrival.
    seconds: f64,
    told: u64,
    bytes: u64,
    bps: Option<f64>,
    rate_ring: Ring,
    paths: BTreeMap<PathKey, PathTrack>,
}

/// Whether this host sends on a path, and the path's number.
type PathKey = (bool, u32);

#[derive(Debug, Default)]
struct PathTrack {
    bytes: u64,
    packets: Option<u64>,
    lost: Option<u64>,
    bps: Option<f64>,
    recent: RecentLoss,
    loss: Option<u64>,
    rank: f64,
    is_seen: bool,
    /// The last ten minutes. `None`: the path is not shown.
    rings: Option<Box<PathRings>>,
}

#[derive(Debug, Default)]
struct PathRings {
    rate: Ring,
    queue: Ring,
    loss: Ring,
}

/// The last ten minutes of a transfer.
#[derive(Debug, Serialize)]
pub struct TransferPast {
    /// Bits per second.
    pub bps: Vec<Option<f32>>,
    /// The paths that are shown.
    pub paths: BTreeMap<String, PathPast>,
}

/// The last ten minutes of a path.
#[derive(Debug, Serialize)]
pub struct PathPast {
    pub bps: Vec<Option<f32>>,
    pub queue_ms: Vec<Option<f32>>,
    /// Packets lost, of 10,000.
    pub loss: Vec<Option<f32>>,
}

/// A path in one sample, with its earlier counts.
pub struct SeenPath {
    key: PathKey,
    path: ToldPath,
    pub interface: Option<Arc<str>>,
}

impl SeenPath {
    pub const fn new(sends: bool, path: ToldPath, interface: Option<Arc<str>>) -> Self {
        Self { key: (sends, path.path), path, interface }
    }

    /// Whether this host sends on the path.
    pub const fn sends(&self) -> bool {
        self.key.0
    }
}

/// The result of a sample of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PathRate {
    pub bps: Option<f64>,
    /// Whether the path makes a queue or loses packets, and only the line limits it.
    pub fills: bool,
}

/// Bits per second. A process may tell of any number of bytes in any time.
fn rate(bytes: u64, seconds: f64) -> f64 {
    (bytes as f64 * 8.0 / seconds).min(MAX_FIGURE)
}

impl Track {
    /// A transfer that is seen for the first time.
    pub fn new(id: u32) -> Self {
        Self {
            id,
            is_seen: true,
            seconds: -1.0,
            told: 0,
            bytes: 0,
            bps: None,
            rate_ring: Ring::default(),
            paths: BTreeMap::new(),
        }
    }

    /// Whether the figures are of another transfer than the earlier ones.
    pub fn is_another(&self, told: &ToldTransfer) -> bool {
        told.seconds < self.seconds || told.bytes < self.bytes
    }

    /// Notes the newest figures of the transfer. Returns the seconds since the earlier ones, on its
    /// own clock. `None`: these are the first, or no newer.
    pub fn note(&mut self, second: u64, told: &ToldTransfer) -> Option<f64> {
        self.is_seen = true;
        let passed = told.seconds - self.seconds;
        let is_first = self.seconds < 0.0;
        let is_newer = passed > 0.0 || is_first;
        if is_first {
            self.bps = Some(told.rate_bps);
        } else if is_newer {
            self.bps = Some(rate(told.bytes.saturating_sub(self.bytes), passed));
        }
        if is_newer {
            (self.seconds, self.bytes, self.told) = (told.seconds, told.bytes, second);
        } else if second.saturating_sub(self.told) > MAX_SILENT_SECONDS {
            self.bps = None;
        }
        (is_newer && !is_first).then_some(passed)
    }

    /// Returns the bits per second. `None`: no progress was reported for seconds.
    pub const fn bps(&self) -> Option<f64> {
        self.bps
    }

    /// Notes the newest figures of a path. `passed`: as [`note`](Self::note) returned it.
    pub fn note_path(&mut self, passed: Option<f64>, seen: &SeenPath) -> PathRate {
        let silent = self.bps.is_none();
        let path = &seen.path;
        let track = self.paths.entry(seen.key).or_default();
        track.is_seen = true;
        match passed {
            Some(passed) if track.bytes <= path.bytes && track.bps.is_some() => {
                track.bps = Some(rate(path.bytes - track.bytes, passed));
                track.loss = track.recent.note([track.packets, path.packets], [track.lost, path.lost]);
            }
            _ if silent => (track.bps, track.loss) = (None, None),
            None if track.bps.is_some() => {}
            _ => (track.bps, track.loss) = (Some(path.rate_bps), None),
        }
        (track.bytes, track.packets, track.lost) = (path.bytes, path.packets, path.lost);
        let bps = track.bps.unwrap_or_default();
        track.rank += (bps - track.rank) * RANK_WEIGHT;
        let has_queue = path.queue_ms.is_some_and(|queue| queue >= 1.0);
        let is_lossy = track.loss.is_some_and(|loss| loss > 0);
        let fills = seen.key.0 && bps > 0.0 && path.pause.is_none() && (has_queue || is_lossy);
        PathRate { bps: track.bps, fills }
    }

    /// Chooses the paths to show, after all were noted, and stores the figures. Returns the shown
    /// paths, and the number and rate of the rest.
    pub fn shown(&mut self, second: u64, seen: Vec<SeenPath>) -> (Vec<PathFigures>, usize, u64) {
        self.paths.retain(|_, track| std::mem::take(&mut track.is_seen));
        // Bytes that an earlier try had brought count at once, and travel over no path.
        let carried: Option<f64> = self.paths.values().map(|track| track.bps).sum();
        self.bps = self.bps.map(|bps| bps.min(carried.unwrap_or(f64::MAX)));
        self.rate_ring.push(second, self.bps);
        if self.paths.len() <= MAX_SHOWN_PATHS {
            self.paths.values_mut().for_each(|track| _ = track.rings.get_or_insert_default());
        } else {
            self.choose();
        }
        let (mut shown, mut more, mut more_bps) = (Vec::new(), 0, 0.0);
        for SeenPath { key, path, interface } in seen {
            let Some(track) = self.paths.get_mut(&key) else { continue };
            // A process may tell of one path twice.
            let is_new = |shown: &[PathFigures]| shown.iter().all(|shown| shown.id != id(key));
            let Some(rings) = track.rings.as_mut().filter(|_| is_new(&shown)) else {
                more += 1;
                more_bps += track.bps.unwrap_or_default();
                continue;
            };
            rings.rate.push(second, track.bps);
            rings.queue.push(second, path.queue_ms);
            rings.loss.push(second, track.loss.map(|loss| loss as f64));
            shown.push(figures(key, path, track, interface));
        }
        (shown, more, whole(more_bps))
    }

    /// Gives places to the paths that carry most. One that has a place keeps it unless another
    /// carries much more.
    fn choose(&mut self) {
        let rank = |track: &PathTrack| {
            let factor = if track.rings.is_some() { REPLACING_FACTOR } else { 1.0 };
            (track.rank * factor, track.rings.is_some())
        };
        let mut ranked: Vec<_> = self.paths.iter().map(|(key, track)| (rank(track), *key)).collect();
        ranked.sort_by(|((a, has_a), _), ((b, has_b), _)| b.total_cmp(a).then(has_b.cmp(has_a)));
        for (place, (_, key)) in ranked.into_iter().enumerate() {
            let Some(track) = self.paths.get_mut(&key) else { continue };
            if place < MAX_SHOWN_PATHS {
                track.rings.get_or_insert_default();
            } else {
                track.rings = None;
            }
        }
    }

    /// The last ten minutes.
    pub fn past(&self, second: u64) -> TransferPast {
        let rounded = |ring: &Ring, scale: f32| -> Vec<Option<f32>> {
            ring.until(second).into_iter().map(|value| value.map(|it| (it * scale).round() / scale)).collect()
        };
        let path = |rings: &PathRings| PathPast {
            bps: rounded(&rings.rate, 1.0),
            queue_ms: rounded(&rings.queue, 10.0),
            loss: rounded(&rings.loss, 1.0),
        };
        let shown = self.paths.iter().filter_map(|(key, track)| Some((id(*key), track.rings.as_deref()?)));
        let paths = shown.map(|(id, rings)| (id, path(rings))).collect();
        TransferPast { bps: rounded(&self.rate_ring, 1.0), paths }
    }
}

/// Packets of the last seconds, and the lost ones among them.
#[derive(Clone, Copy, Debug, Default)]
struct RecentLoss {
    sent: f64,
    lost: f64,
}

impl RecentLoss {
    /// Notes the counters of two samples. Returns the packets lost lately, of 10,000. `None`: not
    /// known, or no packet was sent.
    fn note(
        &mut self,
        [packets_before, packets]: [Option<u64>; 2],
        [lost_before, lost]: [Option<u64>; 2],
    ) -> Option<u64> {
        let sent = packets?.checked_sub(packets_before?)?;
        // Packets that arrived after all are taken back.
        let lost = lost?.saturating_sub(lost_before?);
        self.sent = self.sent * LOSS_MEMORY + sent as f64;
        self.lost = self.lost * LOSS_MEMORY + lost as f64;
        (self.sent >= 1.0).then(|| ((self.lost / self.sent * LOSS_SCALE) as u64).min(LOSS_SCALE as u64))
    }
}

fn figures(key: PathKey, path: ToldPath, track: &PathTrack, interface: Option<Arc<str>>) -> PathFigures {
    let tenths = |number: Option<f64>| number.filter(|number| number.is_finite()).map(Tenths);
    PathFigures {
        id: id(key),
        name: path.name,
        remote: path.remote,
        carrier: path.carrier,
        state: path.state,
        bytes: path.bytes,
        bps: track.bps.map(whole),
        rtt_ms: tenths(path.rtt_ms),
        base_rtt_ms: tenths(path.base_rtt_ms),
        queue_ms: tenths(path.queue_ms),
        loss: track.loss,
        lost: path.lost,
        pause: path.pause.map(PauseReason::code),
        interface,
    }
}

fn id((sends, path): PathKey) -> String {
    format!("{}{path}", if sends { 's' } else { 'r' })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(number: u32, bytes: u64, rate_bps: f64) -> SeenPath {
        SeenPath::new(true, ToldPath { path: number, bytes, rate_bps, ..ToldPath::default() }, None)
    }

    fn told(seconds: f64, bytes: u64) -> ToldTransfer {
        ToldTransfer { seconds, bytes, rate_bps: 8e6, ..ToldTransfer::default() }
    }

    #[test]
    fn rates_are_of_the_time_between_two_figures_of_the_process() {
        let mut track = Track::new(1);
        assert_eq!((track.note(10, &told(5.0, 1_000_000)), track.bps()), (None, Some(8e6)));
        assert_eq!(track.note_path(None, &path(0, 500, 7.0)).bps, Some(7.0), "as the process says");
        let passed = track.note(11, &told(6.25, 2_000_000));
        assert_eq!((passed, track.bps()), (Some(1.25), Some(6.4e6)));
        assert_eq!(track.note_path(passed, &path(0, 1_500, 7.0)).bps, Some(6_400.0));
        // A process that tells nothing new for a while has no rate.
        assert_eq!((track.note(12, &told(6.25, 2_000_000)), track.bps()), (None, Some(6.4e6)));
        assert_eq!(track.note_path(None, &path(0, 1_500, 7.0)).bps, Some(6_400.0));
        assert_eq!((track.note(30, &told(6.25, 2_000_000)), track.bps()), (None, None));
        assert_eq!(track.note_path(None, &path(0, 1_500, 7.0)).bps, None);
        assert!(track.is_another(&told(0.5, 0)) && !track.is_another(&told(7.0, 2_000_000)));
    }

    #[test]
    fn loss_is_of_the_packets_of_the_last_seconds() {
        let first = |packets, lost| RecentLoss::default().note(packets, lost);
        assert_eq!(first([Some(100), Some(300)], [Some(4), Some(8)]), Some(200));
        assert_eq!(first([Some(100), Some(100)], [Some(4), Some(8)]), None);
        assert_eq!(first([Some(100), Some(300)], [Some(4), Some(3)]), Some(0));
        assert_eq!(first([Some(1), Some(2)], [Some(0), Some(u64::MAX)]), Some(10_000));
        assert_eq!(first([None, Some(300)], [Some(4), Some(8)]), None);
        let mut recent = RecentLoss { sent: 100.0, lost: 10.0 };
        assert_eq!(recent.note([Some(0), Some(130)], [Some(0), Some(0)]), Some(350));
        let later = (0..20).map(|_| recent.note([Some(0), Some(100)], [Some(0), Some(0)])).last();
        assert_eq!(later, Some(Some(0)));
    }

    #[test]
    fn the_paths_that_carry_most_are_shown_and_keep_their_places() {
        let mut track = Track::new(1);
        let mut look = |second: u64, busy: &dyn Fn(u32) -> f64| {
            let told = told(second as f64, second);
            let passed = track.note(second, &told);
            assert!(second == 1 || passed == Some(1.0));
            // Counters that stand still: the rates are those of the first look.
            let all: Vec<_> = (0..64).map(|number| path(number, 0, busy(number))).collect();
            for seen in &all {
                track.paths.entry(seen.key).or_default().bps = None;
                track.note_path(None, seen);
            }
            let (shown, more, _) = track.shown(second, all);
            assert_eq!((shown.len(), more), (8, 56));
            shown.into_iter().map(|path| path.id).collect::<Vec<_>>()
        };
        let first = look(1, &f64::from);
        assert_eq!(first[0], "s56");
        assert_eq!(look(2, &|number| f64::from(if number == 1 { 64 } else { number })), first, "hardly more");
        let mut later = Vec::new();
        for second in 3..30 {
            later = look(second, &|number| f64::from(if number == 1 { 900 } else { number }));
        }
        assert!(later.contains(&"s1".to_owned()), "{later:?}");
        let past = track.past(30);
        assert!(past.paths.len() == 8 && past.paths["s63"].bps.len() == 30, "{past:?}");
    }
}
