//! BMC, bidimensional-probe multipath congestion control (Honda et al., "Multipath congestion
//! control for shared bottleneck", PFLDNeT 2009).
//!
//! A path of weight D gets D times a TCP's throughput. All weights sum to 1. The [`proportion`]
//! manager moves weight to faster paths.

mod options;
pub mod proportion;

pub use options::{BmcOptions, WeightStep};

use crate::Acked;
use crate::bundle::{CoupledPath, Law, Paths};
use alloc::vec::Vec;
use byway_wire::{Duration, Instant, PathId};

/// The length of a measurement, in congestion epochs of the path whose epochs are the longest. The
/// paper: "at least during one".
const MEASUREMENT_EPOCHS: f64 = 2.0;
/// The least and the greatest length of a measurement, in seconds.
const MEASUREMENT_SECONDS: (f64, f64) = (2.0, 60.0);

/// The BMC controller: the paths' weights, and their adjustment.
#[derive(Clone, Debug)]
pub struct Bmc {
    /// Fixed weights. Empty: the proportion manager adjusts the weights.
    fixed: Vec<f64>,
    options: BmcOptions,
    /// Begin and end of the measurement that runs.
    period: Option<(Instant, Instant)>,
}

/// BMC's state of a path.
#[derive(Clone, Copy, Debug, Default)]
pub struct BmcPath {
    /// The weight D of the path: its throughput in multiples of a TCP's.
    pub weight: f64,
    /// Bytes acknowledged since the measurement began.
    delivered: f64,
    /// The sum of smoothed RTTs at each ACK since, in seconds, and how many.
    rtts: (f64, f64),
    /// Whether the application had less to send than the window allowed. Then the measurement is
    /// not the throughput of the path.
    limited: bool,
}

type BmcPaths = Paths<CoupledPath<BmcPath>>;

impl Bmc {
    /// A law with both managers at work.
    #[must_use]
    pub fn new(options: BmcOptions) -> Self {
        Self { fixed: Vec::new(), options, period: None }
    }

    /// Each path keeps a fixed weight, and takes that part of what a TCP flow takes (BMC, Honda et
    /// al., 2.1). Path number i has the weight `weights[i mod n]`, for `n` weights, limited to at
    /// most 1. If all are 1, the paths are independent TCP flows.
    #[must_use]
    pub fn fixed(weights: &[f64]) -> Self {
        let fixed = weights.iter().map(|weight| weight.clamp(f64::MIN_POSITIVE, 1.0)).collect();
        Self { fixed, ..Self::new(BmcOptions::LITERAL) }
    }

    /// The estimated time from one loss on `member` to the next, in seconds. The paper gives
    /// `W/(2a)+1` RTTs. W is the window in packets at the end of this time. The variable `a` is the
    /// growth of the window in packets per RTT.
    fn epoch(member: &CoupledPath<BmcPath>) -> f64 {
        let left = Some(member.window.threshold()).filter(|threshold| threshold.is_finite()).unwrap_or(0.0);
        let largest = member.window.packets().max(2.0 * left);
        let increase = (member.memory.weight * member.memory.weight).max(f64::MIN_POSITIVE);
        (largest / (2.0 * increase) + 1.0) * member.seconds().unwrap_or(0.0)
    }

    fn begin_period(&mut self, paths: &mut BmcPaths, now: Instant) -> Instant {
        let longest = paths.iter().map(|(_, member)| Self::epoch(member)).fold(0.0, f64::max);
        let length = (MEASUREMENT_EPOCHS * longest).clamp(MEASUREMENT_SECONDS.0, MEASUREMENT_SECONDS.1);
        let until = now + Duration::from_secs_f64(length);
        self.period = Some((now, until));
        for (_, member) in paths.iter_mut() {
            member.memory = BmcPath { weight: member.memory.weight, ..BmcPath::default() };
        }
        until
    }

    /// Moves weight by the throughputs that were measured over `seconds`.
    fn move_weight(&self, paths: &mut BmcPaths, seconds: f64) {
        if paths.iter().any(|(_, member)| member.memory.limited) {
            return;
        }
        // (6): T_wr = R T / D, with the mean of the smoothed RTT for R.
        let weighted = |share: &BmcPath| {
            let (sum, count) = share.rtts;
            sum / count.max(1.0) * (share.delivered / seconds) / share.weight.max(f64::MIN_POSITIVE)
        };
        let throughputs: Vec<f64> = paths.iter().map(|(_, member)| weighted(&member.memory)).collect();
        let mut weights: Vec<f64> = paths.iter().map(|(_, member)| member.memory.weight).collect();
        proportion::step(&mut weights, &throughputs, &self.options);
        for ((_, member), weight) in paths.iter_mut().zip(weights) {
            member.memory.weight = weight;
        }
    }
}

impl Law for Bmc {
    type Memory = BmcPath;

    /// The paper begins with the weights of all paths given. Here a path that is added gets an
    /// equal share of the weight, and all other paths give up part of their weight in proportion.
    fn opened(&mut self, paths: &mut BmcPaths, path: PathId) {
        self.period = None;
        let count = paths.len() as f64;
        let given = self.fixed.get(path.0 as usize % self.fixed.len().max(1)).copied();
        let others: f64 = paths.iter().filter(|(id, _)| *id != path).map(|(_, m)| m.memory.weight).sum();
        for (id, member) in paths.iter_mut() {
            let weight = &mut member.memory.weight;
            match given {
                Some(given) if id == path => *weight = given,
                Some(_) => {}
                None if id == path => *weight = 1.0 / count,
                None => *weight *= (count - 1.0) / count / others.max(f64::MIN_POSITIVE),
            }
        }
    }

    /// (1): the sum of the weights is 1.
    fn closed(&mut self, paths: &mut BmcPaths, _: PathId) {
        self.period = None;
        let sum: f64 = paths.iter().map(|(_, member)| member.memory.weight).sum();
        if self.fixed.is_empty() && sum > 0.0 {
            for (_, member) in paths.iter_mut() {
                member.memory.weight /= sum;
            }
        }
    }

    fn heard(&mut self, paths: &mut BmcPaths, path: PathId, acked: &Acked<'_>) {
        if let Some(member) = paths.get_mut(path) {
            let share = &mut member.memory;
            share.delivered += acked.bytes as f64;
            share.rtts = (share.rtts.0 + acked.srtt.as_secs_f64(), share.rtts.1 + 1.0);
            share.limited |= acked.app_limited;
        }
    }

    /// "One slow-starting subflow with the weight D increases the window size by D packets per
    /// reception of an acknowledgment."
    fn slow_start(&self, paths: &BmcPaths, path: PathId, packets: f64) -> f64 {
        packets * paths.get(path).map_or(0.0, |member| member.memory.weight)
    }

    /// (5): a = D^2 packets per RTT. That is D times a TCP's throughput where both meet the same
    /// loss rate.
    fn increase(&self, paths: &BmcPaths, path: PathId, packets: f64) -> f64 {
        let per_packet = |member: &CoupledPath<BmcPath>| {
            member.memory.weight * member.memory.weight / member.window.packets()
        };
        packets * paths.get(path).map_or(0.0, per_packet)
    }

    fn tick(&mut self, paths: &mut BmcPaths, now: Instant) -> Option<Instant> {
        if !self.fixed.is_empty() || paths.len() < 2 {
            return None;
        }
        match self.period {
            Some((_, until)) if now < until => Some(until),
            Some((since, _)) => {
                self.move_weight(paths, now.since(since).as_secs_f64());
                Some(self.begin_period(paths, now))
            }
            None => Some(self.begin_period(paths, now)),
        }
    }
}
