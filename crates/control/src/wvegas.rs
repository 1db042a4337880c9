//! wVegas, the weighted Vegas of Cao, Xu and Fu: "Delay-based congestion control for multipath TCP" (ICNP 2012),
//! draft-xu-mptcp-congestion-control, and Linux (multipath-tcp.org, `mptcp_wvegas.c`), whose constants and order of steps these are.

use crate::Acked;
use crate::bundle::{Law, Member, Paths};
use byway_wire::{Instant, PathId};

/// Packets that all paths together keep waiting in queues.
const TOTAL: f64 = 10.0;
/// And each of them at least.
const LEAST: f64 = 2.0;
/// Slow start ends when more than so many wait.
const GAMMA: f64 = 1.0;
/// Fewer packets than this are no window.
const FLOOR: f64 = 2.0;

/// Each path keeps its share of ten packets waiting, by the rate that it contributes, so that load moves to where packets wait
/// least. A loss is answered as by TCP.
///
/// Whenever a queueing delay has doubled the path is drained, so that its base RTT is seen again. That costs: on a line of 10 Mbit/s
/// and 100 ms with a queue of 50 packets it gets 7.1 Mbit/s, and 10.0 without.
#[derive(Clone, Copy, Debug, Default)]
pub struct WVegas;

/// What is kept of a path.
#[derive(Clone, Copy, Debug)]
pub struct Vegas {
    /// The smallest RTT seen, in seconds.
    base: f64,
    sampled: f64,
    samples: f64,
    /// Packets sent from here on belong to the next round.
    round: Option<Instant>,
    /// Packets per second at the last full queue; 0: none yet.
    rate: f64,
    weight: f64,
    /// Packets that shall wait.
    alpha: f64,
    /// The smallest queueing delay since the last drain.
    least_queue: Option<f64>,
}

impl Default for Vegas {
    fn default() -> Self {
        Self {
            base: f64::INFINITY,
            sampled: 0.0,
            samples: 0.0,
            round: None,
            rate: 0.0,
            weight: 1.0,
            alpha: LEAST,
            least_queue: None,
        }
    }
}

impl WVegas {
    /// What a round of `rtt` seconds on average does to the window.
    fn end_round(paths: &mut Paths<Member<Vegas>>, path: PathId, rtt: f64) {
        let rates: f64 = paths.iter().map(|(_, member)| member.memory.rate).sum();
        let Some(member) = paths.get_mut(path) else { return };
        let (window, vegas) = (&mut member.window, &mut member.memory);
        let before = window.packets();
        // In whole packets, so that between alpha and alpha + 1 the window rests.
        let waiting = libm::floor(before * (rtt - vegas.base) / rtt);
        if window.in_slow_start() {
            if waiting > GAMMA {
                let fits = before * vegas.base / rtt + 1.0;
                window.set(before.min(fits), window.threshold().min(before.min(fits) - 1.0));
            }
        } else {
            if waiting >= vegas.alpha {
                let rate = before / rtt;
                let others = rates - vegas.rate;
                vegas.rate = rate;
                vegas.weight = rate / (others + rate);
                vegas.alpha = libm::floor(vegas.weight * TOTAL).max(LEAST);
            }
            let step = if waiting > vegas.alpha {
                -1.0
            } else if waiting < vegas.alpha {
                1.0
            } else {
                0.0
            };
            let mut after = before + step;
            let threshold = if step < 0.0 { window.threshold().min(after - 1.0) } else { window.threshold() };
            let queue = rtt - vegas.base;
            let least = vegas.least_queue.map_or(queue, |least| least.min(queue));
            vegas.least_queue = Some(least).filter(|least| *least > 0.0);
            if queue > 0.0 && queue >= 2.0 * least {
                // Drain: below what the pipe holds for once, so that everyone sees the base.
                after *= vegas.base / (2.0 * rtt);
                vegas.least_queue = None;
            }
            window.set(after, threshold);
        }
        // The kernel keeps the threshold at three quarters of the window at least, so that a drain is filled up quickly.
        let packets = window.packets().max(FLOOR);
        window.set(packets, window.threshold().max(0.75 * packets));
    }
}

impl Law for WVegas {
    type Memory = Vegas;

    fn heard(&mut self, paths: &mut Paths<Member<Vegas>>, path: PathId, acked: &Acked<'_>) {
        let Some(member) = paths.get_mut(path) else { return };
        let vegas = &mut member.memory;
        if let Some(rtt) = acked.rtt {
            let rtt = rtt.as_secs_f64().max(1e-6);
            vegas.base = vegas.base.min(rtt);
            vegas.sampled += rtt;
            vegas.samples += 1.0;
        }
        if acked.sent_at < vegas.round.unwrap_or(acked.sent_at) {
            return;
        }
        // The kernel distrusts a round of fewer than three samples, since one may come from a delayed ACK. A sample here is of the
        // packet that caused the ACK, so one is enough.
        let average = (vegas.samples > 0.0).then_some(vegas.sampled / vegas.samples);
        vegas.round = Some(acked.now);
        (vegas.sampled, vegas.samples) = (0.0, 0.0);
        if let (Some(average), false, true) = (average, acked.app_limited, member.window.recovered(acked)) {
            Self::end_round(paths, path, average);
        }
    }

    /// Nothing from ACK to ACK: the window changes once per round.
    fn increase(&self, _: &Paths<Member<Vegas>>, _: PathId, _: f64) -> f64 {
        0.0
    }

    /// After a loss everything but the base RTT is learnt anew.
    fn lost(&mut self, paths: &mut Paths<Member<Vegas>>, path: PathId) {
        if let Some(member) = paths.get_mut(path) {
            member.memory = Vegas { base: member.memory.base, ..Vegas::default() };
        }
    }
}
