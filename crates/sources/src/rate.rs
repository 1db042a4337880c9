//! Sets the rates of a source's paths by figure 2 of Wang et al. ([`RateController`]).
//!
//! Its input is each path's delivered rate: the bytes between the first packets of two successive
//! control intervals, divided by the time between these packets' arrivals at the sink.

use byway_control::wang::{RateController, WangOptions};
use byway_control::{Acked, Allowance, Congested, Controller, Opened, PathDemand, ProbeResult, Sent, Undo};
use byway_wire::{Duration, Instant, PathId};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The shortest interval (T in Wang et al.). It lasts longer if `INTERVAL_PACKETS` packets take
/// longer at the demand.
const MIN_INTERVAL: Duration = Duration::from_millis(400);
/// The longest control interval.
const MAX_INTERVAL: Duration = Duration::from_secs(2);
/// Packets that an interval has at the demand.
const INTERVAL_PACKETS: f64 = 10.0;
/// A path's first rate is at most this part of the demand, the source's wanted bytes per second.
/// The first rate is y(0) in Wang et al. If a path carries less, it delays the records until its
/// real rate is known.
const FIRST_RATE_SHARE: f64 = 0.4;
/// Bytes of a packet of an unknown size.
const DEFAULT_PACKET_BYTES: f64 = 1_200.0;
/// delta in Wang et al., section V: the part of a rate that may be lost before a raise counts as
/// failed.
const WANG_DELTA: f64 = 0.1;
/// beta(0) in Wang et al., section V. With 0, rates rise by steps of a constant size.
pub(crate) const DEFAULT_BETA: f64 = 0.0;
/// A path's rate rises in steps of this part of the source's demand (epsilon in Wang et al.). On a
/// full line, a raise takes rate from other sources, at most one step.
const RATE_STEP_SHARE: f64 = 0.04;
/// After a path has gone, a raise is this part of the demand that the other rates lack. Each such
/// raise that fails halves the part. Steps alone would take half a minute to make up for the path.
const CATCH_UP_SHARE: f64 = 0.5;
/// Seconds between the packets of a path whose rate is 0.
const IDLE_PACKET_SECONDS: f64 = 2.0;
/// Time between two checks whether a control interval can be judged.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// The least seconds that two round trips count as. A path may have in flight the data that its
/// rate sends in two round trips.
const MIN_WINDOW_SECONDS: f64 = 0.5;
/// The most seconds that two round trips count as. More would hide an overload from the source for
/// too long.
const MAX_WINDOW_SECONDS: f64 = 1.0;
/// Packets that a path may have in flight, even at a low rate.
const MIN_WINDOW_PACKETS: f64 = 4.0;

/// The reading of figure 2 of Wang et al. by which a source sets the rates of its paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ControllerReading {
    /// No path's probability to be raised falls below 1 %, or half of its equal share.
    #[default]
    Recommended,
    /// Figure 2, literally: the probability of a path may vanish.
    Literal,
}

/// The rule by which a source sets the rates of its paths.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateRule {
    /// The reading of figure 2.
    pub reading: ControllerReading,
    /// beta(0) in Wang et al.: the part of its rate by which a new path is raised beside the
    /// constant step, from 0 to 1. It grows with each success, and falls with each failure. Section
    /// V has 0, figure 3 and table I have 0 and 0.1.
    pub beta: f64,
}

impl Default for RateRule {
    fn default() -> Self {
        Self { reading: ControllerReading::default(), beta: DEFAULT_BETA }
    }
}

/// Values that a source and its session's congestion controller share.
#[derive(Debug)]
pub struct RateState {
    /// The rate in bytes per second that the source wants, with the overhead of packets.
    demand: AtomicU64,
    /// Whether the source had no data to send at some time since the controller's last check.
    idle: AtomicBool,
    paths: Mutex<Vec<PathRates>>,
}

/// The rates of a path, as the controller sees them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathRates {
    /// The path.
    pub path: PathId,
    /// The path's rate limit in bytes of packets per second (y in Wang et al.).
    pub rate: f64,
    /// x: bytes per second that the sink got in the last interval. `None`: that is not known yet.
    pub received: Option<f64>,
    /// Raises in a row that the sink did not get.
    pub failures: u32,
}

impl RateState {
    /// The state for a source that wants `demand` bytes of packets per second.
    pub fn new(demand: u64) -> Arc<Self> {
        Arc::new(Self {
            demand: AtomicU64::new(demand),
            idle: AtomicBool::new(true),
            paths: Mutex::default(),
        })
    }

    /// Sets the rate that the source wants, in bytes of packets per second.
    pub fn set_demand(&self, demand: u64) {
        self.demand.store(demand, Ordering::Relaxed);
    }

    /// The source has nothing to send for now.
    pub fn is_idle(&self) {
        self.idle.store(true, Ordering::Relaxed);
    }

    /// The rates of all paths in use.
    pub fn paths(&self) -> Vec<PathRates> {
        self.paths.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn show(&self, paths: Vec<PathRates>) {
        *self.paths.lock().unwrap_or_else(PoisonError::into_inner) = paths;
    }
}

/// An arrival at the sink: how many bytes had arrived by then, and the time in nanoseconds. The
/// zero of this time is unknown but constant, so only differences count.
type ArrivalSample = (u64, i64);

/// A path whose rate is set.
#[derive(Clone, Copy, Debug)]
struct GovernedPath {
    path: PathId,
    /// Whether the path goes through a relay.
    proxied: bool,
    packet: f64,
    /// Bytes acknowledged on the path so far.
    acked: u64,
    /// The first arrival of data sent in the interval. `until`: the first arrival of data sent
    /// after it.
    from: Option<ArrivalSample>,
    until: Option<ArrivalSample>,
    min_rtt: Duration,
    received: Option<f64>,
    failures: u32,
}

impl GovernedPath {
    fn new(path: PathId, opened: &Opened) -> Self {
        Self {
            path,
            proxied: opened.proxied,
            packet: f64::from(opened.packet_size),
            acked: 0,
            from: None,
            until: None,
            min_rtt: opened.rtt.unwrap_or(Duration::from_secs(1)),
            received: None,
            failures: 0,
        }
    }

    /// x over the interval, once that is known.
    fn measured(&self) -> Option<f64> {
        let ((before, from), (after, until)) = (self.from?, self.until?);
        let seconds = until.saturating_sub(from) as f64 / 1e9;
        (seconds > 0.0).then(|| after.saturating_sub(before) as f64 / seconds)
    }
}

/// The congestion controller of a source: sets the rates of its paths.
#[derive(Debug)]
pub struct SourceRates {
    rate_state: Arc<RateState>,
    rates: RateController,
    /// In the order of `rates`.
    paths: Vec<GovernedPath>,
    /// Paths that carry data only while there is no other: the direct ones of a source with relays.
    spare: Vec<GovernedPath>,
    /// The number of paths that there are to be. At first the demand is spread over as many.
    wanted: usize,
    relayed: bool,
    demand: f64,
    /// The share of the lacking rate by which a rate is raised, if that is more than a step.
    catch_up: f64,
    /// Bytes per second by which the last raised path was raised.
    raise: f64,
    /// When the interval began.
    began: Option<Instant>,
}

impl SourceRates {
    /// For a source with `wanted` paths, through relays if `relayed`. Lots are drawn by `seed`.
    pub fn new(
        rate_state: Arc<RateState>,
        RateRule { reading, beta }: RateRule,
        wanted: usize,
        relayed: bool,
        seed: u64,
    ) -> Self {
        let demand = rate_state.demand.load(Ordering::Relaxed) as f64;
        let read = match reading {
            ControllerReading::Recommended => WangOptions::RECOMMENDED,
            ControllerReading::Literal => WangOptions::LITERAL,
        };
        let options = WangOptions { demand, epsilon: 0.0, delta: WANG_DELTA, beta, slack: 0.0, ..read };
        Self {
            rate_state,
            rates: RateController::new(options, &[], seed),
            paths: Vec::new(),
            spare: Vec::new(),
            wanted: wanted.max(1),
            relayed,
            demand,
            catch_up: 0.0,
            raise: 0.0,
            began: None,
        }
    }

    fn interval(&self) -> Duration {
        let packets = Duration::try_from_secs_f64(INTERVAL_PACKETS * self.packet() / self.demand.max(1.0));
        packets.unwrap_or(MAX_INTERVAL).clamp(MIN_INTERVAL, MAX_INTERVAL)
    }

    fn packet(&self) -> f64 {
        self.paths.iter().map(|path| path.packet).fold(0.0, f64::max).max(DEFAULT_PACKET_BYTES)
    }

    fn find(&mut self, path: PathId) -> Option<&mut GovernedPath> {
        self.paths.iter_mut().find(|it| it.path == path)
    }

    /// Adds a path, which begins with its share of the demand.
    fn take(&mut self, governed: GovernedPath) {
        let sum: f64 = self.rates.rates().iter().sum();
        let share = if self.wanted > 1 {
            self.demand * FIRST_RATE_SHARE.min(1.0 / self.wanted as f64)
        } else {
            self.demand
        };
        // A path that takes the place of another gets no more than that had left.
        self.rates.add(share.min((self.demand - sum).max(governed.packet / self.interval().as_secs_f64())));
        self.paths.push(governed);
        self.rates.set_demand(self.demand);
    }

    /// Direct paths carry data only while there is no path through a relay.
    fn choose(&mut self) {
        if self.paths.is_empty() {
            let whole = std::mem::take(&mut self.spare);
            let wanted = std::mem::replace(&mut self.wanted, whole.len().max(1));
            whole.into_iter().for_each(|path| self.take(path));
            self.wanted = wanted;
        }
    }

    fn leave(&mut self, path: PathId) -> Option<GovernedPath> {
        let at = self.paths.iter().position(|it| it.path == path)?;
        self.rates.remove(at);
        Some(self.paths.remove(at))
    }

    /// Judges the interval if that can be done, and begins the next. When to look again.
    fn step(&mut self, now: Instant) -> Instant {
        let interval = self.interval();
        let demand = self.rate_state.demand.load(Ordering::Relaxed) as f64;
        if (demand - self.demand).abs() > 0.5 {
            self.demand = demand;
            self.rates.set_demand(demand);
        }
        let Some(began) = self.began else {
            self.begin(now);
            return now + interval;
        };
        let ended = began + interval;
        if now < ended {
            return ended;
        }
        let raised = self.rates.raised();
        let rate = raised.and_then(|at| self.rates.rates().get(at).copied()).unwrap_or(0.0);
        let path = raised.and_then(|at| self.paths.get(at));
        let measured = path.and_then(GovernedPath::measured);
        // What is under way for longer than this will not come in time.
        let patience = interval * 2 + path.map_or(Duration::ZERO, |path| path.min_rtt * 2);
        if path.is_some() && measured.is_none() && now < ended + patience {
            return now + CHECK_INTERVAL;
        }
        let received = measured.unwrap_or_else(|| {
            let bytes = path.and_then(|it| Some(it.acked.saturating_sub(it.from?.0))).unwrap_or(0);
            bytes as f64 / now.since(began).as_secs_f64().max(f64::MIN_POSITIVE)
        });
        let success = received >= (1.0 - WANG_DELTA) * rate;
        // Where the source itself gave less, that the sink got less says nothing.
        let idle = self.rate_state.idle.load(Ordering::Relaxed);
        if success || !idle || path.is_none() {
            let received: Vec<f64> =
                (0..self.paths.len()).map(|at| if Some(at) == raised { received } else { 0.0 }).collect();
            if let Some(path) = raised.and_then(|at| self.paths.get_mut(at)) {
                path.failures = if success { 0 } else { path.failures.saturating_add(1) };
            }
            self.set_raise(success);
            self.rates.interval(&received);
        }
        for path in &mut self.paths {
            path.received = path.measured().or(path.received);
        }
        self.begin(now);
        now + interval
    }

    /// Sets by how much the next path is raised. A raise that was no `success` is taken back.
    fn set_raise(&mut self, success: bool) {
        let step = RATE_STEP_SHARE * self.demand;
        let mut lacking = self.demand - self.rates.rates().iter().sum::<f64>();
        if !success {
            // By the factor beta, more was raised than the step.
            lacking += self.raise.max(self.rates.last_raise());
            self.catch_up /= 2.0;
        }
        if lacking <= step {
            self.catch_up = 0.0;
        }
        self.raise = step.max(self.catch_up * lacking);
        self.rates.set_epsilon(self.raise);
    }

    fn begin(&mut self, now: Instant) {
        self.began = Some(now);
        self.rate_state.idle.store(false, Ordering::Relaxed);
        for path in &mut self.paths {
            (path.from, path.until) = (None, None);
        }
        let view = |(path, rate): (&GovernedPath, &f64)| PathRates {
            path: path.path,
            rate: *rate,
            received: path.received,
            failures: path.failures,
        };
        self.rate_state.show(self.paths.iter().zip(self.rates.rates()).map(view).collect());
    }
}

impl Controller for SourceRates {
    fn name(&self) -> &'static str {
        "wang"
    }

    fn governs_connections(&self) -> bool {
        true
    }

    fn open(&mut self, path: PathId, opened: &Opened) {
        let governed = GovernedPath::new(path, opened);
        if governed.proxied == self.relayed {
            // What stood in rests from now on.
            while let Some(stood_in) =
                self.paths.iter().find(|it| it.proxied != self.relayed).map(|it| it.path)
            {
                let resting = self.leave(stood_in);
                self.spare.extend(resting);
            }
            self.take(governed);
        } else {
            self.spare.push(governed);
            self.choose();
        }
        self.began = None;
    }

    fn close(&mut self, path: PathId) {
        self.spare.retain(|it| it.path != path);
        if self.leave(path).is_some() {
            self.began = None;
            self.catch_up = CATCH_UP_SHARE;
            self.choose();
        }
    }

    fn on_sent(&mut self, _: PathId, _: &Sent) {}

    fn on_acked(&mut self, path: PathId, acked: &Acked<'_>) {
        let span = self.began.map(|began| (began, began + self.interval()));
        let Some(governed) = self.find(path) else { return };
        governed.acked += acked.bytes;
        governed.min_rtt = governed.min_rtt.min(acked.min_rtt);
        let Some((_, until)) = span.filter(|(from, _)| acked.sent_at >= *from) else { return };
        let nanos = |at: Instant| i64::try_from(at.since(Instant::ZERO).as_nanos()).unwrap_or(i64::MAX);
        let stamped = acked.delays.last().map(|delay| nanos(delay.sent_at).saturating_add(delay.one_way));
        // Without the sink's stamp there is no other scale to hold it against.
        let Some(arrived) = stamped else { return };
        let arrival = (governed.acked, arrived);
        if governed.from.is_none() {
            governed.from = Some(arrival);
        } else if acked.sent_at >= until && governed.until.is_none() {
            governed.until = Some(arrival);
        }
    }

    fn on_congested(&mut self, _: PathId, _: &Congested) {}

    fn on_undo(&mut self, _: PathId, _: &Undo) {}

    fn on_probe(&mut self, _: PathId, _: &ProbeResult) {}

    fn on_route_change(&mut self, _: PathId, _: Instant) {}

    fn on_packet_size(&mut self, path: PathId, bytes: u32) {
        if let Some(governed) = self.find(path) {
            governed.packet = f64::from(bytes);
        }
    }

    fn tick(&mut self, now: Instant) -> Option<Instant> {
        (!self.paths.is_empty()).then(|| self.step(now))
    }

    fn allowance(&self, path: PathId) -> Allowance {
        let at = self.paths.iter().position(|it| it.path == path);
        let rated = at.and_then(|at| Some((self.paths.get(at)?, *self.rates.rates().get(at)?)));
        let Some((governed, rate)) = rated else {
            return Allowance { choked: true, ..Allowance::default() };
        };
        let rate = rate.max(governed.packet / IDLE_PACKET_SECONDS);
        let round_trip = governed.min_rtt.as_secs_f64() * 2.0;
        let window = rate * round_trip.clamp(MIN_WINDOW_SECONDS, MAX_WINDOW_SECONDS);
        let window = window.max(MIN_WINDOW_PACKETS * governed.packet);
        Allowance {
            window: window as u64,
            rate: Some((rate as u64).max(1)),
            choked: false,
            spare: false,
            delay_limit: None,
        }
    }

    fn wants(&self) -> PathDemand<'_> {
        // One direct path is enough, unless the host has several addresses to send from.
        let open = if self.relayed || self.wanted > 1 { usize::MAX } else { 1 };
        PathDemand { open, ..PathDemand::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use byway_control::Delay;

    const RTT: Duration = Duration::from_millis(20);
    const PACKET_SIZE: u32 = 1_000;

    fn opened(proxied: bool) -> Opened {
        Opened { now: Instant::ZERO, proxied, packet_size: PACKET_SIZE, rtt: Some(RTT) }
    }

    /// A path that carries at most `capacity` bytes per second.
    struct LimitedPath {
        capacity: f64,
        /// The time at which the accepted data are carried, and the time of the next packet.
        free_at: f64,
        next_at: f64,
        carried: u64,
    }

    /// Sends over `lines` for `seconds`, as the rates allow.
    fn drive(rates: &mut SourceRates, lines: &mut [LimitedPath], from: u64, seconds: u64) {
        let mut acks: Vec<(u64, usize, f64)> = Vec::new();
        for millis in from * 1_000..(from + seconds) * 1_000 {
            let now = Instant::from_millis(millis);
            rates.rate_state.idle.store(false, Ordering::Relaxed);
            acks.retain(|(at, line, sent)| {
                if *at > millis {
                    return true;
                }
                let sent_at = Instant::from_millis(*sent as u64);
                let one_way = (*at - *sent as u64) as i64 * 1_000_000;
                let acked = Acked {
                    now,
                    bytes: PACKET_SIZE.into(),
                    packets: 1,
                    sent_at,
                    rtt: None,
                    srtt: RTT,
                    min_rtt: RTT,
                    delays: &[Delay { sent_at, one_way, bytes: PACKET_SIZE }],
                    in_flight: 0,
                    app_limited: false,
                    delivery_rate: None,
                    ce: 0,
                };
                rates.on_acked(PathId(*line as u32), &acked);
                false
            });
            let _ = rates.tick(now);
            for (at, line) in lines.iter_mut().enumerate() {
                let allowance = rates.allowance(PathId(at as u32));
                let in_flight = acks.iter().filter(|ack| ack.1 == at).count() as u64 * u64::from(PACKET_SIZE);
                if allowance.choked
                    || in_flight + u64::from(PACKET_SIZE) > allowance.window
                    || line.next_at > millis as f64
                {
                    continue;
                }
                let rate = allowance.rate.unwrap() as f64;
                line.next_at = line.next_at.max(millis as f64 - 10.0) + 1e3 * f64::from(PACKET_SIZE) / rate;
                line.free_at = line.free_at.max(millis as f64) + 1e3 * f64::from(PACKET_SIZE) / line.capacity;
                line.carried += u64::from(PACKET_SIZE);
                acks.push((line.free_at as u64 + 20, at, millis as f64));
            }
        }
    }

    fn line(capacity: f64) -> LimitedPath {
        LimitedPath { capacity, free_at: 0.0, next_at: 0.0, carried: 0 }
    }

    /// A source with this demand and two paths through relays.
    fn two_paths(demand: u64) -> SourceRates {
        let mut rates = SourceRates::new(RateState::new(demand), RateRule::default(), 2, true, 1);
        rates.open(PathId(0), &opened(true));
        rates.open(PathId(1), &opened(true));
        rates
    }

    #[test]
    fn the_demand_moves_to_the_path_that_has_room() {
        let mut rates = two_paths(37_500);
        let mut lines = [line(31_000.0), line(7_000.0)];
        drive(&mut rates, &mut lines, 0, 20);
        let before: u64 = lines.iter().map(|line| line.carried).sum();
        drive(&mut rates, &mut lines, 20, 20);
        let after = lines.iter().map(|line| line.carried).sum::<u64>() - before;
        assert!(after as f64 / 20.0 > 0.93 * 37_500.0, "{after} {:?}", rates.rates.rates());
        assert!(rates.rates.rates().iter().sum::<f64>() <= 37_501.0);
        let view = rates.rate_state.paths();
        assert!(view.len() == 2 && view[0].received.is_some_and(|it| it > 20_000.0), "{view:?}");
    }

    /// The seconds until the rates come within 5 % of a demand that has grown tenfold.
    fn seconds_to_meet(beta: f64) -> u64 {
        let rule = RateRule { beta, ..RateRule::default() };
        let mut rates = SourceRates::new(RateState::new(30_000), rule, 2, true, 1);
        (0..2).for_each(|path| rates.open(PathId(path), &opened(true)));
        let mut lines = [line(1e6), line(1e6)];
        drive(&mut rates, &mut lines, 0, 10);
        rates.rate_state.set_demand(300_000);
        let is_met = |second: &u64| {
            drive(&mut rates, &mut lines, 10 + second, 1);
            rates.rates.rates().iter().sum::<f64>() > 0.95 * 300_000.0
        };
        (0..60).find(is_met).expect("the demand is met")
    }

    #[test]
    fn with_a_factor_a_grown_demand_is_met_sooner_than_by_steps_alone() {
        let (by_steps, by_factor) = (seconds_to_meet(0.0), seconds_to_meet(0.1));
        assert!(by_factor * 3 < by_steps * 2, "{by_factor} s and {by_steps} s");
    }

    #[test]
    fn what_a_lost_path_carried_moves_to_the_other_within_seconds() {
        let mut rates = two_paths(30_000);
        let mut lines = [line(60_000.0), line(60_000.0)];
        drive(&mut rates, &mut lines, 0, 40);
        let less = usize::from(rates.rates.rates()[0] > rates.rates.rates()[1]);
        let before = rates.rates.rates()[less];
        assert!(before < 0.3 * 30_000.0, "{:?}", rates.rates.rates());
        rates.close(PathId(1 - less as u32));
        drive(&mut rates, &mut lines, 40, 6);
        assert!(rates.rates.rates()[0] > 0.85 * 30_000.0, "{before} {:?}", rates.rates.rates());
    }

    #[test]
    fn a_lost_path_is_made_up_for_as_far_as_the_other_carries_it() {
        let mut rates = two_paths(30_000);
        let mut lines = [line(18_000.0), line(60_000.0)];
        drive(&mut rates, &mut lines, 0, 20);
        rates.close(PathId(1));
        drive(&mut rates, &mut lines, 20, 10);
        let before = lines[0].carried;
        drive(&mut rates, &mut lines, 30, 20);
        let part = (lines[0].carried - before) as f64 / 20.0 / 18_000.0;
        let offered = rates.rates.rates()[0];
        let most = 18_000.0 / (1.0 - WANG_DELTA) + RATE_STEP_SHARE * 30_000.0;
        assert!(part > 0.9 && offered <= most, "{part} {offered}");
    }

    #[test]
    fn a_source_that_gives_less_is_not_judged_by_it() {
        let mut rates = SourceRates::new(RateState::new(37_500), RateRule::default(), 1, false, 1);
        rates.open(PathId(0), &opened(false));
        for millis in (0..20_000).step_by(50) {
            rates.rate_state.is_idle();
            let _ = rates.tick(Instant::from_millis(millis));
        }
        assert_eq!(rates.rates.rates(), [37_500.0]);
        assert!(rates.rate_state.paths().iter().all(|path| path.failures == 0));
    }

    #[test]
    fn the_direct_path_stands_in_while_no_relay_is_there() {
        let mut rates = SourceRates::new(RateState::new(10_000), RateRule::default(), 2, true, 1);
        let choked = |rates: &SourceRates, path| rates.allowance(PathId(path)).choked;
        rates.open(PathId(0), &opened(false));
        assert!(!choked(&rates, 0));
        rates.open(PathId(1), &opened(true));
        assert!(choked(&rates, 0) && !choked(&rates, 1));
        assert_eq!(rates.allowance(PathId(1)).rate, Some(4_000), "a part of the demand at first");
        rates.close(PathId(1));
        assert!(!choked(&rates, 0));
        rates.close(PathId(0));
        assert!(rates.paths.is_empty() && rates.tick(Instant::ZERO).is_none());
    }
}
