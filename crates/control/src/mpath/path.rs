//! One path of mPath.

use super::aggregate_flow::AggregateFlow;
use super::options::MPathOptions;
use super::trials::{COMPARISON_TIME, USEFUL_PATH_AGE};
use crate::bundle::{Rate, UndoState};
use crate::detector::{DelaySeries, HyStart, HyStartOptions, RoundDelay};
use crate::{Acked, Congested, Delay, Opened, Undo};
use byway_wire::Instant;

/// Keeps sums finite whatever is reported.
const MAX_WINDOW_PACKETS: f64 = 1e8;
/// The window stands while a rise of the delay is confirmed, where RFC 9406 lets it grow by a
/// quarter: the rate at the first ten seconds is the same, and fewer packets are lost.
const SLOW_START_EXIT: HyStartOptions = HyStartOptions { slower: f64::INFINITY, ..HyStartOptions::RFC9406 };

/// The state that is restored after a spurious loss.
#[derive(Clone, Copy, Debug)]
pub(super) struct SavedWindow {
    window: f64,
    threshold: f64,
    /// The flow of all paths before the loss, and the number of losses of all paths including this
    /// one.
    flow: AggregateFlow,
    losses: u64,
}

/// Load that is lent.
#[derive(Clone, Copy, Debug)]
pub(super) struct MovedLoad {
    /// The packets of window that were moved to the direct path.
    packets: f64,
    /// Whether the path lent all its load, and sends no data.
    all: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Path {
    /// Bytes of a full packet.
    pub packet: f64,
    pub proxied: bool,
    /// The paper's w_i: the path's window in packets.
    pub window: f64,
    /// Slow start threshold, in packets.
    pub threshold: f64,
    /// Whether the path has met congestion since it was created: a loss, or a rise of delays that
    /// ended its slow start.
    pub met_congestion: bool,
    /// The paper's loss interval: from the sending of a lost packet to the detection of its loss.
    pub interval: Option<(Instant, Instant)>,
    /// Whether the present loss has moved load to the direct path: each does so once.
    pub moved: bool,
    /// The number of this path's losses that coincided with losses of the direct path. A loss that
    /// did not coincide lowers it by one.
    pub coincident: u32,
    pub acked_at: Option<Instant>,
    /// Timeouts in a row.
    pub timeouts: u32,
    /// Whether a slow start after a timeout keeps its threshold through losses, and whether this
    /// applies to the present slow start.
    starts: bool,
    restarts: bool,
    /// Whether the path is about to be closed.
    pub dropped: bool,
    /// The part of the window that is lent to the direct path.
    pub lent: Option<MovedLoad>,
    /// The latest delays, for a comparison with the direct path's.
    pub delays: DelaySeries,
    /// Whether the delays suggest that packets of this path and of the direct path share a queue.
    pub same_queue: bool,
    /// Whether `same_queue` was false once, a minute after the path's opening or later.
    pub stays: bool,
    /// Whether the delays are known to differ from the direct path's.
    pub differs: bool,
    pub opened_at: Instant,
    /// The rate of bytes acknowledged.
    pub contributed: Rate,
    /// Losses of packets sent before this time belong to a loss that was already answered.
    recover: Instant,
    /// When the first ACK after a timeout arrived. Losses of packets sent earlier are no new
    /// signal.
    revived: Instant,
    undo_state: Option<UndoState<SavedWindow>>,
    /// The number of the bundle's last loss event that the path took part in.
    pub event: u64,
    /// Detects the end of the first slow start.
    hystart: HyStart,
    /// Whether a one-way delay has ever been reported. Then RTTs say nothing more.
    has_one_way_delays: bool,
}

impl Path {
    pub fn new(opened: &Opened, options: &MPathOptions) -> Self {
        let slow = options.start_everywhere || !opened.proxied;
        let window = if opened.proxied { options.initial_proxied } else { options.initial };
        Self {
            packet: f64::from(opened.packet_size.max(1)),
            proxied: opened.proxied,
            window,
            threshold: if slow { MAX_WINDOW_PACKETS } else { 0.0 },
            met_congestion: false,
            interval: None,
            moved: false,
            coincident: 0,
            acked_at: None,
            timeouts: 0,
            starts: options.start_everywhere,
            restarts: false,
            dropped: false,
            lent: None,
            delays: DelaySeries::NONE,
            same_queue: false,
            stays: false,
            differs: false,
            opened_at: opened.now,
            contributed: Rate::new(opened.now),
            recover: opened.now,
            revived: opened.now,
            undo_state: None,
            event: 0,
            hystart: HyStart::new(SLOW_START_EXIT, opened.now),
            has_one_way_delays: false,
        }
    }

    /// Whether the path sends: it is not about to be closed, and has not lent all of its load.
    pub fn takes_part(&self) -> bool {
        !self.dropped && !self.lent.is_some_and(|lent| lent.all)
    }

    /// Takes `part` of the window for load aggregation. Returns it in packets.
    pub fn lend(&mut self, part: f64) -> f64 {
        let packets = part * self.window;
        let before = self.lent.map_or(0.0, |lent| lent.packets);
        self.window -= packets;
        self.threshold = self.threshold.min(self.window);
        self.lent = Some(MovedLoad { packets: before + packets, all: part >= 1.0 });
        packets
    }

    /// Returns the load that was lent at `since`, unless the path has lost packets meanwhile and so
    /// needs less.
    pub fn take_back(&mut self, since: Instant) {
        let Some(lent) = self.lent.take() else { return };
        if lent.all || self.recover <= since {
            self.grow(lent.packets);
            self.threshold = self.threshold.min(self.window);
        }
    }

    /// Whether the path is known not to share the direct path's queue. At an age of 21 s, clearly
    /// different delays show this. At 60 s, it is enough that delays are not similar. `doubt`:
    /// whether similar delays count as different ones, after a failed trial.
    pub fn proven(&self, now: Instant, doubt: bool) -> bool {
        let age = now.since(self.opened_at);
        let differs = if doubt { self.differs || self.same_queue } else { self.differs };
        age >= COMPARISON_TIME && differs || age >= USEFUL_PATH_AGE && !self.same_queue
    }

    /// Notes the delays of packets. Returns whether a slot ended.
    pub fn note_delays(&mut self, delays: &[Delay]) -> bool {
        delays.iter().fold(false, |over, delay| self.delays.sample(delay) | over)
    }

    pub fn in_slow_start(&self) -> bool {
        self.window < self.threshold
    }

    /// The slow start threshold, in packets, after a loss: `keep` times the window. In the slow
    /// start after a timeout: `keep` times the present threshold, because the small window does not
    /// tell what the path carries.
    pub fn lowered(&self, keep: f64) -> f64 {
        keep * if self.restarts && self.in_slow_start() { self.threshold } else { self.window }
    }

    pub fn answered(&self, sent_at: Instant) -> bool {
        sent_at < self.recover
    }

    /// Whether a loss needs no decrease, because an earlier decrease or timeout has answered it.
    /// `sent_at`: when the last of the lost packets was sent. Packets sent between a timeout and
    /// the next ACK belong to the timeout.
    pub fn covered(&self, sent_at: Instant) -> bool {
        self.answered(sent_at) || self.timeouts > 0 || sent_at < self.revived
    }

    /// Something was acknowledged: the path is alive.
    pub fn alive(&mut self, now: Instant) {
        if self.timeouts > 0 {
            self.revived = now;
        }
        self.timeouts = 0;
        self.acked_at = Some(now);
    }

    /// Sets the size of a full packet. The window keeps its size in bytes.
    pub fn resize(&mut self, bytes: f64) {
        let factor = self.packet / bytes;
        self.packet = bytes;
        self.window *= factor;
        if self.threshold < MAX_WINDOW_PACKETS {
            self.threshold *= factor;
        }
        // The saved window counts packets of the old size. To lose it costs little.
        self.undo_state = None;
    }

    /// Adds packets to the window.
    pub fn grow(&mut self, packets: f64) {
        self.window = (self.window + packets).min(MAX_WINDOW_PACKETS);
    }

    /// "During slow-start, the congestion window of the direct path will increase by one for every
    /// ACK received."
    pub fn grow_slow_start(&mut self, packets: f64) {
        let room = (self.threshold - self.window).max(0.0);
        self.grow(packets.min(room));
    }

    /// Ends the first slow start when the least delay of a round rises (RFC 9406). Returns the
    /// factor of its growth: 1, or less while the rise is not confirmed yet.
    pub fn sense_rise(&mut self, acked: &Acked<'_>) -> f64 {
        let one_way = acked.delays.iter().map(|delay| delay.one_way).min();
        self.has_one_way_delays |= one_way.is_some();
        let delay = if self.has_one_way_delays {
            one_way.map(|delay| RoundDelay::OneWay(delay, acked.min_rtt))
        } else {
            acked.rtt.map(RoundDelay::RoundTrip)
        };
        // RFC 9406, 4.3: it is for the first slow start.
        if self.met_congestion {
            return 1.0;
        }
        self.hystart.on_acked(acked, delay).unwrap_or_else(|| {
            self.threshold = self.window;
            self.met_congestion = true;
            1.0
        })
    }

    /// Stores the state to restore if the loss is spurious.
    pub fn remember(&mut self, congested: &Congested, flow: AggregateFlow, losses: u64) {
        let before = SavedWindow { window: self.window, threshold: self.threshold, flow, losses };
        self.undo_state = Some(UndoState::new(before, congested, self.packet));
        self.recover = congested.now;
    }

    pub fn on_more_lost(&mut self, congested: &Congested) {
        if let Some(undo_state) = &mut self.undo_state {
            undo_state.extend(congested, self.packet);
        }
    }

    /// Takes the path's latest decrease back if `undo` shows that it was wrong. Returns the CUBIC
    /// state of all paths from before the decrease. Also returns the decrease's number among the
    /// decreases of all paths, counted from 1.
    pub fn on_undo(&mut self, undo: &Undo) -> Option<(AggregateFlow, u64)> {
        let before = self.undo_state.as_mut().and_then(|undo_state| undo_state.undone(undo))?;
        self.window = self.window.max(before.window);
        self.threshold = before.threshold;
        self.undo_state = None;
        Some((before.flow, before.losses))
    }

    /// Sets the window to one packet, as TCP does after a timeout (RFC 5681, 3.1; RFC 9438, 4.8).
    /// Slow start follows, up to the part `keep` of the window before the timeout.
    pub fn time_out(&mut self, congested: &Congested, keep: f64, flow: AggregateFlow, losses: u64) {
        if self.timeouts == 0 || self.undo_state.is_none() {
            self.remember(congested, flow, losses);
            self.threshold = self.lowered(keep).max(2.0);
            self.restarts = self.starts;
        } else {
            self.on_more_lost(congested);
            self.recover = congested.now;
        }
        self.timeouts = self.timeouts.saturating_add(1);
        self.window = 1.0;
    }

    /// Whether the path's latest loss interval and the other interval overlap.
    pub fn coincides(&self, other: Option<(Instant, Instant)>) -> bool {
        match (self.interval, other) {
            (Some(a), Some(b)) => a.0 <= b.1 && b.0 <= a.1,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seeded_random::Random;
    use crate::{Delay, Shape, Trigger};
    use byway_wire::Duration;

    fn congested(trigger: Trigger, sent: u64, now: u64) -> Congested {
        let at = Instant::from_millis;
        Congested {
            trigger,
            first_sent_at: at(sent),
            sent_at: at(sent),
            now: at(now),
            bytes: 1_000,
            in_flight: 1_000,
        }
    }

    #[test]
    fn what_was_sent_into_the_dark_is_not_lost_twice() {
        let at = Instant::from_millis;
        let opened = Opened { now: at(0), proxied: false, packet_size: 1_000, rtt: None };
        let mut path = Path::new(&opened, &MPathOptions::PRODUCTION);
        path.window = 40.0;
        path.time_out(&congested(Trigger::Timeout, 100, 300), 0.5, AggregateFlow::new(Shape::RFC9438), 1);
        assert!(path.covered(at(400)), "nothing has come back yet");
        path.alive(at(900));
        assert!(path.covered(at(400)), "sent before the path was alive again");
        assert!(!path.covered(at(900)));
        assert!(path.in_slow_start() && path.threshold == 20.0);
        // A second timeout before slow start is over, then a loss: both lower the threshold.
        path.time_out(&congested(Trigger::Timeout, 950, 1_200), 0.5, AggregateFlow::new(Shape::RFC9438), 2);
        assert_eq!((path.window, path.threshold, path.lowered(0.5)), (1.0, 10.0, 5.0));
        path.window = 10.0;
        assert_eq!(path.lowered(0.5), 5.0, "of the window when slow start is over");
    }

    /// Returns the number of rounds until the first slow start ends. Each round has 20 packets with
    /// these delays in milliseconds, and takes 50 ms.
    fn rounds_of_slow_start(mut delay: impl FnMut(i32) -> f64) -> Option<i32> {
        let opened = Opened { now: Instant::ZERO, proxied: false, packet_size: 1_000, rtt: None };
        let mut path = Path::new(&opened, &MPathOptions::PRODUCTION);
        let rtt = Duration::from_millis(50);
        (0..40_i32).find(|&round| {
            for packet in 0..20 {
                let sent_at = Instant::from_micros(u64::from(round.unsigned_abs()) * 50_000 + packet * 1_000);
                let delays = [Delay { sent_at, one_way: (delay(round) * 1e6) as i64, bytes: 1_000 }];
                path.sense_rise(&Acked {
                    now: sent_at + rtt,
                    bytes: 1_000,
                    packets: 1,
                    sent_at,
                    rtt: Some(rtt),
                    srtt: rtt,
                    min_rtt: rtt,
                    delays: &delays,
                    in_flight: 20_000,
                    app_limited: false,
                    delivery_rate: None,
                    ce: 0,
                });
            }
            path.met_congestion
        })
    }

    #[test]
    fn a_queue_ends_the_first_slow_start_and_jitter_does_not() {
        let mut random = Random::new(5);
        assert_eq!(rounds_of_slow_start(|_| random.unit() * 10.0), None);
        // It was jitter: the delays of one round are longer, and then they are as before.
        assert_eq!(rounds_of_slow_start(|round| if round == 10 { 20.0 } else { 0.0 }), None);
        // From the tenth round on there is a queue. Five rounds confirm it.
        let queued = rounds_of_slow_start(|round| f64::from((round - 9).max(0)) * 8.0);
        assert!(queued.is_some_and(|round| (14..=17).contains(&round)), "{queued:?}");
    }
}
