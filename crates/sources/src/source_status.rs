//! How a source stands, and why it is slower than it asks for.

use crate::rate::PathRates;
use byway_engine::connection::status::PathStatus;
use byway_transfer::route_name;
use byway_transfer::units::Rate;
use byway_wire::PathId;
use std::collections::BTreeMap;

/// Bytes of packets per byte of records, before any was measured.
const DEFAULT_OVERHEAD_FACTOR: f64 = 1.08;
/// A factor on top of the packet overhead, so that the paths' rates do not limit the source below
/// its demand.
const HEADROOM_FACTOR: f64 = 1.02;

/// The state of a source, for a person.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SourceStatus {
    /// Whether the sink takes records.
    pub connected: bool,
    /// Bytes of records per second that the sink got in the last second or so.
    pub rate: f64,
    /// The rate in bytes per second that the source wants.
    pub demand: u64,
    /// Records that came and that the sink has not written.
    pub lag: u64,
    /// Time that the oldest unwritten record has waited, in seconds.
    pub lag_seconds: f64,
    /// Records that were given up.
    pub given_up: u64,
    /// Lines of the input that were too long for a record, and were cut or left out.
    pub long_lines: u64,
    /// The sink's reason for not accepting records. `None`: it accepts them.
    pub refusal: Option<String>,
    /// Whether the demand held the input back within about the last second.
    pub held_back: bool,
    /// Numbers written by the sink.
    pub written: u64,
    /// Bytes that were sent again.
    pub repeated: u64,
    /// The source's paths.
    pub paths: Vec<PathStanding>,
    /// Why the source is slower than the rate that it wants. `None`: it is not slower.
    pub why: Option<String>,
}

/// The state of one path of a source.
#[derive(Clone, Debug, PartialEq)]
pub struct PathStanding {
    /// The name of the path.
    pub name: String,
    /// The rates of the path.
    pub view: PathRates,
    /// The RTT of the path, queues included, in seconds. `None`: not measured.
    pub rtt: Option<f64>,
    /// Timeouts in a row. Above 0 the path does not answer.
    pub timeouts: u32,
}

/// The state of each path of a source. `several`: more than one path may use the same route.
pub fn path_standings(paths: &[PathStatus], rates: &[PathRates], several: bool) -> Vec<PathStanding> {
    let named = paths.iter().filter_map(|path| {
        let view = rates.iter().find(|view| view.path == path.id)?;
        let name = route_name(&path.route, &[]);
        Some(PathStanding {
            name: if several { format!("{name} (path {})", path.id.0) } else { name },
            view: *view,
            rtt: path.is_rtt_measured.then_some(path.srtt.as_secs_f64()),
            timeouts: path.silent,
        })
    });
    named.collect()
}

/// The measured ratio of bytes of packets to bytes of records.
#[derive(Debug, Default)]
pub struct Overhead {
    /// Bytes of packets that had arrived on each path at the last check. `records`: bytes of
    /// records.
    packets: BTreeMap<PathId, u64>,
    records: u64,
    factor: Option<f64>,
}

impl Overhead {
    /// Updates the ratio. `packets`: bytes that arrived on each path so far; `records`: bytes of
    /// records so far.
    pub fn look(&mut self, packets: BTreeMap<PathId, u64>, records: u64) {
        let more = |(path, bytes): (&PathId, &u64)| {
            bytes.saturating_sub(self.packets.get(path).copied().unwrap_or_default())
        };
        let moved: u64 = packets.iter().map(more).sum();
        let new = records.saturating_sub(self.records);
        if new > 8 << 10 {
            let factor = (moved as f64 / new as f64).clamp(1.0, 1.5);
            self.factor = Some(self.factor.map_or(factor, |before| before + (factor - before) / 4.0));
            self.records = records;
            self.packets = packets;
        }
    }

    /// The measurement for a new session. Keeps the ratio measured so far.
    pub fn anew(&self) -> Self {
        Self { factor: self.factor, ..Self::default() }
    }

    /// Bytes of packets for each byte of records, and a little more.
    pub fn factor(&self) -> f64 {
        self.factor.unwrap_or(DEFAULT_OVERHEAD_FACTOR) * HEADROOM_FACTOR
    }
}

/// Returns why a source is slower than its demand, as a sentence. `None`: it is not slower.
pub fn slow_because(standing: &SourceStatus) -> Option<String> {
    if !standing.connected {
        return Some(match &standing.refusal {
            Some(why) => format!("the sink refuses: {why}"),
            None => String::from("no connection leads to the sink"),
        });
    }
    let has_demand = standing.rate >= 0.95 * standing.demand as f64;
    if standing.lag_seconds < 2.0 && !(standing.held_back && has_demand) {
        return None;
    }
    if has_demand {
        return Some(String::from("the input gives more than --demand lets pass"));
    }
    let stuck = standing.paths.iter().filter(|path| path.view.failures > 0 || path.timeouts > 1);
    let names: Vec<String> = stuck
        .map(|PathStanding { name, view, timeouts, .. }| match timeouts {
            0 | 1 => {
                let grows_to = Rate(view.received.unwrap_or(view.rate) * 8.0);
                format!("{name} does not grow beyond {grows_to}")
            }
            _ => format!("{name} does not answer"),
        })
        .collect();
    Some(match (names.is_empty(), standing.paths.is_empty()) {
        (_, true) => String::from("no path to the sink is in use"),
        (true, _) => String::from("its paths are still growing, or the sink does not write"),
        (false, _) => names.join(", "),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_source_names_the_path_that_does_not_grow() {
        let view = |failures| PathRates { path: PathId(1), rate: 9e3, received: Some(7e3), failures };
        let path = |name: &str, view| PathStanding { name: name.into(), view, rtt: Some(0.1), timeouts: 0 };
        let mut standing = SourceStatus {
            connected: true,
            rate: 20e3,
            demand: 37_500,
            lag_seconds: 5.0,
            paths: vec![path("relay a", view(0)), path("relay b", view(3))],
            ..SourceStatus::default()
        };
        assert_eq!(slow_because(&standing).unwrap(), "relay b does not grow beyond 56.0 kbit/s");
        standing.rate = 37_500.0;
        assert!(slow_because(&standing).unwrap().contains("--demand"));
        standing.lag_seconds = 0.1;
        standing.held_back = true;
        assert!(slow_because(&standing).unwrap().contains("--demand"));
        standing.held_back = false;
        assert_eq!(slow_because(&standing), None);
        standing.connected = false;
        assert!(slow_because(&standing).unwrap().contains("no connection"));
        standing.refusal = Some("its disk is gone".into());
        assert_eq!(slow_because(&standing).unwrap(), "the sink refuses: its disk is gone");
    }

    #[test]
    fn what_packets_add_is_measured_over_all_paths() {
        let mut added = Overhead::default();
        added.look(BTreeMap::from([(PathId(0), 11_000), (PathId(1), 11_000)]), 20_000);
        assert!((added.factor() - 1.1 * HEADROOM_FACTOR).abs() < 1e-9);
        added.look(BTreeMap::from([(PathId(1), 33_000)]), 40_000);
        assert!((added.factor() - 1.1 * HEADROOM_FACTOR).abs() < 1e-9, "a path that is gone counts no more");
    }
}
