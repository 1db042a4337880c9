//! One path of Harp: its window, its memory, its rounds.

use super::company::Company;
use super::losses::Losses;
use super::options::{DelayRule, LossRule, Options};
use super::sense::Sense;
use crate::bundle::Memento;
use crate::detector::Drain;
use crate::{Acked, Allowance, Congested, Opened, Undo};
use byway_wire::{Duration, Instant};

/// Rounds (RTTs) without a queue after which the path counts as empty and growth doubles, and doubles again after as
/// many. A sawtooth on a path that is full shows a queue every 5.5 RTT.
pub(super) const QUIET: u32 = 6;
/// Slow start doubles up to so many packets.
const DOUBLING: f64 = 16.0;
/// The pacing rate over window/RTT: a little more, so that the window and not the pacer is the limit; and no more, since
/// on a long path a bunch sent faster than the bottleneck drains looks like a queue that stands.
const PACE: f64 = 1.05;
/// The same while the window grows fast.
const PACE_RUSHING: f64 = 1.5;
/// Growth is at most so many times alpha on an empty path: a quarter per RTT.
const CLIMB: u32 = 8;
/// A window of fewer packets is kept by the pacer alone: a whole packet less or more would be too coarse a step. Of ten flows
/// that have 1.9 packets each, none would send less before it came below one.
const COARSE: f64 = 3.5;
/// A decrease takes at most so many times what empties the queue.
const EMPTYING: f64 = 1.5;
/// More than fits any path; keeps sums finite whatever is reported.
const LARGEST_WINDOW: f64 = 1e8;
/// Taken for the RTT as long as there is none (RFC 9002, kInitialRtt).
const UNKNOWN_RTT: Duration = Duration::from_millis(333);

/// What a spurious loss gives back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before {
    window: f64,
    largest: f64,
    slow_start: bool,
    threshold: f64,
}

/// What a loss means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    /// A queue overflowed, or more is lost than chance explains.
    Heavy,
    /// A queue stands, but a short one: no more than a delay signal.
    Delayed,
    /// No queue: chance.
    Gentle,
}

#[derive(Clone, Debug)]
pub(super) struct Path {
    /// Bytes of a full packet.
    pub packet: f64,
    /// w_i, in packets.
    pub window: f64,
    /// M_i, in packets.
    pub largest: f64,
    pub sense: Sense,
    pub choked: bool,
    /// Whether the last probe came back.
    pub reached: bool,
    /// Timeouts since something was acknowledged.
    pub timeouts: u32,
    pub drain: Option<Drain>,
    /// When nothing has confirmed the base until then, a drain shall; and no sooner.
    pub drain_after: Instant,
    slow_start: bool,
    /// Slow start ends here after a timeout.
    threshold: f64,
    /// Packets sent before are of an RTT that has been answered.
    pub recover: Instant,
    memento: Option<Memento<Before>>,
    /// What was before the delays leapt.
    before_leap: Option<Before>,
    /// Packets sent from here on belong to the next round.
    round: Instant,
    delivered: f64,
    delivered_before: f64,
    pub quiet: u32,
    losses: Losses,
    pub company: Company,
    /// Whether there was company at the latest ACK.
    pub in_company: bool,
    pub srtt: Duration,
    pub min_rtt: Duration,
    delivery_rate: Option<u64>,
}

impl Path {
    pub fn new(opened: &Opened, options: &Options) -> Self {
        let rtt = opened.rtt.unwrap_or(UNKNOWN_RTT);
        Self {
            packet: f64::from(opened.packet_size.max(1)),
            window: options.initial,
            largest: options.initial,
            sense: Sense::new(options, f64::from(opened.packet_size.max(1))),
            choked: false,
            reached: true,
            timeouts: 0,
            drain: None,
            drain_after: opened.now,
            slow_start: options.agile,
            threshold: LARGEST_WINDOW,
            recover: opened.now,
            memento: None,
            before_leap: None,
            round: opened.now,
            delivered: 0.0,
            delivered_before: 0.0,
            quiet: 0,
            losses: Losses::default(),
            company: Company::default(),
            in_company: false,
            srtt: rtt,
            min_rtt: rtt,
            delivery_rate: None,
        }
    }

    pub fn answered(&self, sent_at: Instant) -> bool {
        sent_at < self.recover
    }

    /// Takes an ACK into account: facts, rounds, growth. Whether its delays make a signal.
    pub fn on_acked(&mut self, acked: &Acked<'_>, options: &Options) -> bool {
        self.timeouts = 0;
        (self.srtt, self.min_rtt) = (acked.srtt, acked.min_rtt);
        self.delivery_rate = acked.delivery_rate;
        self.delivered += acked.bytes as f64;
        let packets = acked.bytes as f64 / self.packet;
        self.losses.on_acked(packets);
        if let Some(rate) = acked.delivery_rate {
            self.sense.delivers(rate);
        }
        let delayed = self.sense_delays(acked, options);
        let signal = !self.follow_leap(acked.now) && delayed;
        if acked.sent_at >= self.round {
            (self.delivered_before, self.delivered) = (self.delivered, 0.0);
            self.round = acked.now;
            self.quiet = if self.sense.end_round() { self.quiet.saturating_add(1) } else { 0 };
        }
        if !signal {
            self.take_back(acked);
        }
        // "Further, the window is not incremented within one round-trip time of the previous decrement" (Harp, III.A).
        let held =
            self.answered(acked.sent_at) || self.drain.is_some() || (options.agile && acked.app_limited);
        if !signal && !held {
            self.grow(acked.now, packets, options);
        }
        signal
    }

    fn sense_delays(&mut self, acked: &Acked<'_>, options: &Options) -> bool {
        self.in_company = self.has_company(acked.now);
        self.sense
            .expect(self.in_company, acked.bytes as f64 / self.packet / acked.delays.len().max(1) as f64);
        let mut signal = false;
        for delay in acked.delays {
            signal |= self.sense.sample(*delay, acked.now, acked.srtt, self.window, self.recover);
        }
        if let (true, Some(rtt)) = (acked.delays.is_empty(), acked.rtt) {
            signal |= self.sense.round_trip(rtt, acked.sent_at, acked.now, self.window, self.recover);
        }
        self.notice_burst(acked, options);
        signal
    }

    /// Remembers the window when the delays leap, and takes back what it lost since if the base has leapt. Whether it has.
    fn follow_leap(&mut self, now: Instant) -> bool {
        if self.sense.has_leapt() {
            if let Some(before) = self.before_leap.take() {
                self.window = self.window.max(before.window);
                self.largest = self.largest.max(before.largest);
                self.recover = now;
            }
            self.company = Company::default();
            return true;
        }
        if !self.sense.doubts() {
            self.before_leap = None;
        } else if self.before_leap.is_none() {
            self.before_leap = Some(self.before());
        }
        false
    }

    fn before(&self) -> Before {
        Before {
            window: self.window,
            largest: self.largest,
            slow_start: self.slow_start,
            threshold: self.threshold,
        }
    }

    fn grow(&mut self, now: Instant, packets: f64, options: &Options) {
        if self.slow_start {
            // Twice per RTT, and beyond some packets one and a half times: what is found out an RTT too late is then half
            // as much. M is not raised here: it would remember the overshoot and make xi too small for long.
            let gain = if self.window < DOUBLING { 1.0 } else { 0.5 };
            self.window = (self.window + gain * packets).min(self.threshold).min(LARGEST_WINDOW);
            self.slow_start = self.window < self.threshold;
            return;
        }
        let grown = if options.agile && self.window < 1.0 && self.sense.calm() {
            // One packet per RTT harms nobody who is not harmed by the probes already.
            (self.window * 2.0).min(1.0)
        } else {
            // Algorithm 1, line 6: w_i <- w_i + alpha, for each packet acknowledged.
            (self.window + self.alpha(options) * packets).min(LARGEST_WINDOW)
        };
        self.window = self.hold_back(now, grown);
        if !self.rushing(options) {
            self.largest = self.largest.max(self.window);
        }
    }

    fn alpha(&self, options: &Options) -> f64 {
        let climbs = options.agile && (!self.in_company || self.is_silent());
        let doublings = if climbs { (self.quiet / QUIET).min(CLIMB.ilog2()) } else { 0 };
        options.alpha * f64::from(1_u32 << doublings)
    }

    /// Whether growth is faster than the algorithm's, so that a signal finds the window far beyond the mark.
    pub fn rushing(&self, options: &Options) -> bool {
        options.agile && (self.slow_start || self.quiet >= QUIET && !self.in_company)
    }

    /// The window that would have delivered what was delivered, without a queue.
    pub fn fitting(&self, options: &Options) -> f64 {
        let bytes = match self.delivery_rate {
            Some(rate) => rate as f64 * self.min_rtt.as_secs_f64(),
            None => self.delivered.max(self.delivered_before),
        };
        // A rate may be too low, of late ACKs or beside a burst; a start grows fourfold in two RTT, later alpha is added in one.
        let most = self.window * (1.0 - options.beta);
        let least = if self.slow_start { self.window / 4.0 } else { most / (1.0 + self.alpha(options)) };
        (bytes / self.packet).max(least).min(most)
    }

    /// beta, but no more than one and a half times what empties the queue: on a path of 300 ms an eighth is 37 ms, to get rid
    /// of 5.
    pub fn beta(&self, options: &Options) -> f64 {
        match options.delay {
            DelayRule::Absolute { threshold } => {
                let queue = self.sense.waiting().max(self.sense.threshold(threshold)).as_secs_f64()
                    / self.srtt.as_secs_f64().max(1e-9);
                options.beta.min(EMPTYING * queue)
            }
            DelayRule::Relative { .. } | DelayRule::Averaged { .. } => options.beta,
        }
    }

    /// Sets the window after a decrease and begins an epoch. Whether the window has reached its floor.
    pub fn decrease(&mut self, to: f64, now: Instant, options: &Options) -> bool {
        self.largest = (self.largest * (1.0 - options.forget)).max(to).max(options.floor);
        self.window = to.max(options.floor);
        self.slow_start = false;
        self.quiet = 0;
        self.company.keep();
        self.losses.answered();
        self.recover = now;
        to <= options.floor
    }

    pub fn remember(&mut self, congested: &Congested) {
        self.memento = Some(Memento::new(self.before(), congested, self.packet));
    }

    pub fn on_more_lost(&mut self, congested: &Congested) {
        if let Some(memento) = &mut self.memento {
            memento.extend(congested, self.packet);
        }
    }

    /// What a loss means, by the delays at the time and the share lost lately.
    pub fn judge(&mut self, congested: &Congested, options: &Options) -> Loss {
        let (LossRule::ByDelay { tolerated, .. }, DelayRule::Absolute { threshold }) =
            (options.loss, options.delay)
        else {
            return Loss::Heavy;
        };
        let threshold = self.sense.threshold(threshold);
        self.losses.on_lost(congested.bytes as f64 / self.packet);
        let waiting = self.sense.waiting();
        if self.losses.exceed(tolerated) || waiting > threshold.saturating_mul(2) {
            Loss::Heavy
        } else if waiting > threshold {
            Loss::Delayed
        } else {
            Loss::Gentle
        }
    }

    /// A loss by chance takes up to `each` packets for every one lost, but no more than a delay signal would, and all together
    /// no more than half. Growth of alpha per packet balances it at a loss rate of alpha/each, whatever the window: 1 % at
    /// .03 and 3. Where fewer are lost, each costs less, by the cube of the share: growth would make good for it anyhow, and the
    /// line would meanwhile be idle for nobody's sake. No epoch begins, growth goes on.
    pub fn decrease_gently(&mut self, congested: &Congested, each: f64, options: &Options) {
        let balance = options.alpha / each.max(options.alpha);
        let rarity = (self.losses.share() / balance).min(1.0);
        let lost = congested.bytes as f64 / self.packet;
        let off = lost * (each * rarity * rarity * rarity).min(options.beta * self.window);
        self.window = (self.window - off.min(self.window / 2.0)).max(self.window.min(1.0));
    }

    /// Nothing came back for a whole timeout: one packet, and slow start to half of what it was.
    pub fn on_timeout(&mut self, congested: &Congested, options: &Options) {
        if self.timeouts == 0 || self.memento.is_none() {
            self.remember(congested);
            self.threshold = (self.window / 2.0).max(1.0);
        } else {
            self.on_more_lost(congested);
        }
        self.timeouts = self.timeouts.saturating_add(1);
        self.decrease(self.window.min(1.0), congested.now, options);
        self.slow_start = true;
    }

    /// Takes a decrease back that was none of the network's doing.
    pub fn on_undo(&mut self, undo: &Undo) -> bool {
        let Some(before) = self.memento.as_mut().and_then(|memento| memento.undone(undo)) else {
            return false;
        };
        self.window = self.window.max(before.window);
        self.largest = self.largest.max(before.largest);
        (self.slow_start, self.threshold) = (before.slow_start, before.threshold);
        self.memento = None;
        true
    }

    /// What was learnt is void: the route is another one.
    pub fn start_over(&mut self, now: Instant, options: &Options) {
        let opened = Opened { now, proxied: false, packet_size: self.packet as u32, rtt: Some(self.srtt) };
        *self =
            Self { window: self.window.clamp(options.floor, options.initial), ..Self::new(&opened, options) };
    }

    pub fn choke(&mut self) {
        self.choked = true;
        self.drain = None;
    }

    pub fn unchoke(&mut self, now: Instant) {
        self.choked = false;
        self.window = self.window.clamp(1.0, 2.0);
        self.slow_start = false;
        (self.timeouts, self.quiet) = (0, 0);
        self.recover = now;
    }

    /// Begins a drain if the base has not been seen for long and there is a queue of its own to drain.
    pub fn drain_if_due(&mut self, now: Instant, every: Duration) -> bool {
        let due = self.sense.unconfirmed(now) >= every && now >= self.drain_after;
        if !due || self.slow_start || self.choked || self.window <= 2.0 {
            return false;
        }
        // min_rtt/srtt of the window is what the pipe holds; half of that empties the queue even when min_rtt is not
        // quite empty itself.
        let pipe = self.min_rtt.as_secs_f64() / self.srtt.as_secs_f64().max(1e-9);
        let cap = (0.5 * self.window * pipe.min(1.0)).max(1.0) * self.packet;
        self.drain = Some(Drain::new(libm::ceil(cap) as u64, now, self.srtt));
        self.drain_after = now + every;
        true
    }

    pub fn allowance(&self, options: &Options) -> Allowance {
        let delay_limit = self.sense.one_way_limit();
        if self.choked {
            return Allowance { choked: true, delay_limit, ..Allowance::default() };
        }
        let bytes = self.window * self.packet;
        let coarse = options.agile && self.window < COARSE;
        let paced = self.in_company || options.company && coarse && self.window > 1.0;
        let gain = match self.rushing(options) {
            _ if self.window < 1.0 => 1.0,
            true => PACE_RUSHING,
            false if coarse || paced => 1.0,
            false => PACE,
        };
        let per_second = gain * bytes / self.pacing_rtt(paced).as_secs_f64().max(1e-3);
        let rate = options.agile.then_some((per_second as u64).max(1));
        let window = if paced {
            self.paced_window()
        } else if coarse && self.window > 1.0 {
            libm::ceil(self.window) * self.packet
        } else {
            bytes
        };
        let window = self.drain.map_or(u64::MAX, |drain| drain.cap()).min((window as u64).max(1));
        Allowance { window, rate, choked: false, delay_limit }
    }
}
