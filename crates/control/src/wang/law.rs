//! The rate controller, with byway's paths in place of TCP connections.

use super::options::WangOptions;
use super::rates::RateController;
use crate::Acked;
use crate::bundle::{CoupledPath, Law, Paths};
use alloc::vec::Vec;
use byway_wire::{Duration, Instant, PathId};

/// T: the control interval (section IV).
const CONTROL_INTERVAL: Duration = Duration::from_millis(400);
/// The paper's delta (section V): a raise succeeds if at most this part of the sent rate is missing
/// at the receiver. The paper has 0.03; here one ACK may stand for ten packets, so received rates
/// are rough.
const MAX_MISSING_SHARE: f64 = 0.1;
/// Taken for the RTT of a path that has none yet (RFC 9002, kInitialRtt).
const UNKNOWN_RTT: f64 = 0.333;

/// A source that has more to send than its paths carry. Each path has a congestion window as TCP
/// has, and a rate that the source sets. The lower of the two limits applies.
#[derive(Clone, Debug)]
pub struct Wang {
    rates: RateController,
    /// Paths in the order of `rates`.
    order: Vec<PathId>,
    /// The interval that is measured, by the send times of packets.
    span: Option<(Instant, Instant)>,
    /// When the last packet of that interval has been acknowledged.
    judged: Instant,
}

/// The controller's state of one path.
#[derive(Clone, Copy, Debug, Default)]
pub struct WangPath {
    /// Acknowledged bytes of the packets sent in this interval.
    bytes: f64,
    /// Whether at least half of the window is used. If not, the window does not grow (RFC 7661),
    /// because its size has not been tested.
    used: bool,
}

type WangPaths = Paths<CoupledPath<WangPath>>;

impl Wang {
    /// A source without paths. `seed` determines its random choices.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let options = WangOptions {
            demand: f64::INFINITY,
            epsilon: 0.0,
            delta: MAX_MISSING_SHARE,
            slack: 0.0,
            ..WangOptions::RECOMMENDED
        };
        Self {
            rates: RateController::new(options, &[], seed),
            order: Vec::new(),
            span: None,
            judged: Instant::ZERO,
        }
    }

    fn position(&self, path: PathId) -> Option<usize> {
        self.order.iter().position(|known| *known == path)
    }
}

impl Law for Wang {
    type Memory = WangPath;

    /// Adds a new path, which begins with the rate of its initial window.
    fn opened(&mut self, paths: &mut WangPaths, path: PathId) {
        let Some(member) = paths.get(path) else { return };
        let rate = member.window.bytes() / member.seconds().unwrap_or(UNKNOWN_RTT);
        match self.position(path) {
            Some(position) => self.rates.reset(position, rate),
            None => {
                self.order.push(path);
                self.rates.add(rate);
            }
        }
        self.resized(paths);
    }

    fn resized(&mut self, paths: &WangPaths) {
        // epsilon and slack: one packet per interval.
        let packet = paths.iter().map(|(_, member)| member.window.packet()).fold(0.0, f64::max);
        self.rates.set_packet(packet / CONTROL_INTERVAL.as_secs_f64());
    }

    fn closed(&mut self, _: &mut WangPaths, path: PathId) {
        if let Some(position) = self.position(path) {
            self.order.remove(position);
            self.rates.remove(position);
        }
    }

    fn heard(&mut self, paths: &mut WangPaths, path: PathId, acked: &Acked<'_>) {
        let Some(member) = paths.get_mut(path) else { return };
        let bytes = acked.bytes as f64;
        member.memory.used = 2.0 * (acked.in_flight as f64 + bytes) >= member.window.bytes();
        if self.span.is_some_and(|(from, until)| (from..until).contains(&acked.sent_at)) {
            member.memory.bytes += bytes;
        }
    }

    fn slow_start(&self, paths: &WangPaths, path: PathId, packets: f64) -> f64 {
        if paths.get(path).is_some_and(|member| member.memory.used) { packets } else { 0.0 }
    }

    /// Returns the increase per ACK in packets: that of a TCP flow.
    fn increase(&self, paths: &WangPaths, path: PathId, packets: f64) -> f64 {
        let used = paths.get(path).filter(|member| member.memory.used);
        used.map_or(0.0, |member| packets / member.window.packets())
    }

    /// Judges whether the latest raise of a path's rate succeeded, by the paths' received rates (x
    /// in Wang et al.). Then begins the next interval (0.4 s). Its judgement waits one more RTT, at
    /// most 2 s, until its packets are acknowledged.
    fn tick(&mut self, paths: &mut WangPaths, now: Instant) -> Option<Instant> {
        if paths.is_empty() {
            return None;
        }
        if self.span.is_some() && now < self.judged {
            return Some(self.judged);
        }
        let seconds = CONTROL_INTERVAL.as_secs_f64();
        let received = |path: &PathId| paths.get(*path).map_or(0.0, |member| member.memory.bytes / seconds);
        let received: Vec<f64> = self.order.iter().map(received).collect();
        self.rates.interval(&received);
        let longest = paths.iter().filter_map(|(_, member)| member.rtt).max().unwrap_or_default();
        self.span = Some((now, now + CONTROL_INTERVAL));
        self.judged = now + CONTROL_INTERVAL + longest.min(CONTROL_INTERVAL.saturating_mul(5));
        for (_, member) in paths.iter_mut() {
            member.memory.bytes = 0.0;
        }
        Some(self.judged)
    }

    /// The rate of the path, at least a packet per interval: a path without packets could not be
    /// measured.
    fn rate(&self, paths: &WangPaths, path: PathId) -> Option<u64> {
        let least = paths.get(path)?.window.packet() / CONTROL_INTERVAL.as_secs_f64();
        let rate = self.rates.rates().get(self.position(path)?)?;
        Some((rate.max(least) as u64).max(1))
    }
}
