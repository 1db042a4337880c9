//! LEDBAT keeps the queueing delay at a target. Source: section 2.4.2 of RFC 6817, as the code of
//! other implementations quotes it. A queue older than the flow, or than `history` minutes, counts
//! as base delay (the delay of the empty path); [`ledbat_pp`](super::ledbat_pp) corrects this.

use crate::bundle::{Decrease, PathController, Window};
use crate::{Acked, Allowance, Congested, Opened, Sent, Trigger, Undo};
use alloc::collections::VecDeque;
use byway_wire::{Duration, Instant};

/// The parameters that RFC 6817 names or leaves open.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LedbatOptions {
    /// TARGET: the queueing delay that the window is steered to. MUST be 100 ms or less.
    pub target: Duration,
    /// GAIN: the packets by which the window grows in an RTT with an empty queue. MUST be 1 or
    /// less.
    pub gain: f64,
    /// `ALLOWED_INCREASE` in packets: by how much the window may exceed the bytes in flight. SHOULD
    /// be 1.
    pub allowed_increase: f64,
    /// `INIT_CWND` in packets. SHOULD be 2.
    pub initial: f64,
    /// `MIN_CWND` in packets. SHOULD be 2.
    pub least: f64,
    /// `BASE_HISTORY`: minutes after which a base delay is forgotten. SHOULD be 10.
    pub history: usize,
    /// `CURRENT_FILTER` in samples, of which the smallest counts. At least 1; implementations take
    /// 4.
    pub filter: usize,
}

impl LedbatOptions {
    /// The options that the RFC recommends, literally.
    pub const RFC6817: Self = Self {
        target: Duration::from_millis(100),
        gain: 1.0,
        allowed_increase: 1.0,
        initial: 2.0,
        least: 2.0,
        history: 10,
        filter: 4,
    };
}

/// The base delay of a path and its present delay. The base delay is the smallest delay of the last
/// `history` minutes. The present delay is the smallest of the last `filter` samples.
#[derive(Clone, Debug)]
pub(crate) struct DelayHistory {
    /// Smallest of each minute, the latest last.
    base: VecDeque<i64>,
    current: VecDeque<i64>,
    minute: u64,
    history: usize,
    filter: usize,
}

impl DelayHistory {
    pub(crate) const fn new(history: usize, filter: usize) -> Self {
        Self { base: VecDeque::new(), current: VecDeque::new(), minute: 0, history, filter }
    }

    /// `update_base_delay()` and `update_current_delay()`.
    pub(crate) fn sample(&mut self, delay: i64, now: Instant) {
        let minute = now.as_nanos() / 60_000_000_000;
        match self.base.back_mut() {
            Some(latest) if minute == self.minute => *latest = delay.min(*latest),
            _ => {
                self.minute = minute;
                push(&mut self.base, delay, self.history);
            }
        }
        push(&mut self.current, delay, self.filter);
    }

    /// MIN(base_delays), in nanoseconds.
    pub(crate) fn base(&self) -> Option<i64> {
        self.base.iter().copied().min()
    }

    /// `FILTER(current_delays) - MIN(base_delays)`, in nanoseconds.
    pub(crate) fn queue(&self) -> Option<i64> {
        let current = self.current.iter().copied().min()?;
        Some(current.saturating_sub(self.base()?))
    }

    pub(crate) fn clear(&mut self) {
        self.base.clear();
        self.current.clear();
    }
}

fn push(list: &mut VecDeque<i64>, value: i64, length: usize) {
    if list.len() >= length.max(1) {
        list.pop_front();
    }
    list.push_back(value);
}

/// The congestion window of one path by LEDBAT.
#[derive(Clone, Debug)]
pub struct Ledbat {
    options: LedbatOptions,
    window: Window,
    delays: DelayHistory,
    /// The largest number of bytes in flight: during the present RTT, and during the RTT before.
    /// The present RTT began at `round`. It ends at the ACK of a packet that was sent since
    /// `round`.
    flight: [u64; 2],
    round: Instant,
}

impl Ledbat {
    /// A path with the values of the RFC.
    #[must_use]
    pub fn new(opened: &Opened) -> Self {
        Self::with_options(opened, LedbatOptions::RFC6817)
    }

    /// Makes a path with these options.
    #[must_use]
    pub fn with_options(opened: &Opened, options: LedbatOptions) -> Self {
        Self {
            options,
            window: Window::new(opened, options.initial),
            delays: DelayHistory::new(options.history, options.filter),
            flight: [0; 2],
            round: opened.now,
        }
    }

    /// The window, in packets.
    #[must_use]
    pub fn packets(&self) -> f64 {
        self.window.packets()
    }

    /// Returns the queueing delay in nanoseconds, as LEDBAT measures it. Without one-way delays
    /// from the receiver, it comes from the RTT.
    fn queue(&self, acked: &Acked<'_>) -> Option<i64> {
        self.delays.queue().or_else(|| {
            let waited = acked.rtt?.saturating_sub(acked.min_rtt);
            i64::try_from(waited.as_nanos()).ok()
        })
    }
}

impl PathController for Ledbat {
    fn yields(&self) -> bool {
        true
    }

    fn on_sent(&mut self, sent: &Sent) {
        self.flight[0] = self.flight[0].max(sent.in_flight);
    }

    /// 2.4.2, "on acknowledgement".
    fn on_acked(&mut self, acked: &Acked<'_>) {
        self.window.on_acked(acked);
        for delay in acked.delays {
            self.delays.sample(delay.one_way, acked.now);
        }
        let Some(queue) = self.queue(acked) else { return };
        let LedbatOptions { target, gain, allowed_increase, least, .. } = self.options;
        let cwnd = self.window.packets();
        let bytes_newly_acked = self.window.in_packets(acked.bytes);
        // off_target = (TARGET - queuing_delay) / TARGET
        let off_target = 1.0 - queue as f64 / 1e9 / target.as_secs_f64();
        // cwnd += GAIN * off_target * bytes_newly_acked * MSS / cwnd
        let steered = cwnd + gain * off_target * bytes_newly_acked / cwnd;
        // max_allowed_cwnd = flightsize + ALLOWED_INCREASE * MSS (RFC 6817, 2.5). flightsize is the
        // most that was in flight in this RTT and the RTT before. The bytes in flight at the ACK
        // itself are too few: with pacing, they are below the window.
        if acked.sent_at >= self.round {
            self.round = acked.now;
            self.flight = [acked.in_flight, self.flight[0]];
        }
        let flight = self.window.in_packets(self.flight[0].max(self.flight[1]));
        let allowed = flight + allowed_increase;
        self.window.set(steered.min(allowed).max(least), 0.0);
    }

    /// 2.4.2, "on data loss" and "if no ACKs are received within a CTO".
    fn on_congested(&mut self, congested: &Congested) {
        // `cwnd = min (cwnd, max (cwnd/2, MIN_CWND * MSS))`, at most once per RTT
        let cwnd = self.window.packets();
        let half = Decrease { keep: 0.5, least: self.options.least };
        if self.window.on_congested(congested, half) && congested.trigger != Trigger::Timeout {
            self.window.set(cwnd.min((cwnd / 2.0).max(self.options.least)), 0.0);
        }
    }

    fn on_undo(&mut self, undo: &Undo) {
        self.window.on_undo(undo);
    }

    fn on_route_change(&mut self, now: Instant) {
        self.window.start_over(now);
        self.delays.clear();
    }

    fn on_packet_size(&mut self, bytes: u32) {
        self.window.resize(bytes);
    }

    fn allowance(&self) -> Allowance {
        self.window.allowance()
    }
}
