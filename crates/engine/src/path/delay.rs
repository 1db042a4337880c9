//! One-way delay between two unsynchronized clocks: the receiver's timestamp minus the sender's, in
//! µs modulo 2^32. A constant offset does not matter, because only differences are used. Clock
//! drift matters: 50 ppm are 30 ms in ten minutes.

use byway_wire::{Duration, Instant};

/// The least duration over which one maximum of (one-way delay - RTT) is taken. This difference is
/// the clocks' offset minus the delay of the ACK. So the maximum comes from the ACK with the least
/// delay.
const MIN_WINDOW: Duration = Duration::from_secs(1);
/// The smallest number of packets for one maximum. The maximum of a few packets varies with the
/// jitter of the ACKs' path.
const MIN_WINDOW_PACKETS: u32 = 32;
/// An error beyond this, in ns, is not the drift of two crystals in a window: that is a tenth of
/// it.
const DRIFT_SLACK_NANOS: i64 = 1_000_000;
/// The fastest that two clocks are believed to drift apart: each within 50 ppm, which is the worst
/// of common crystals.
const MAX_SKEW_PPM: i64 = 100;
/// Share of the remaining error that the level takes over per window.
const LEVEL_GAIN: f64 = 0.2;
/// Share of the remaining error that goes into the skew, per second.
const SKEW_GAIN: f64 = 0.03;
/// A change in ns that no clock drift causes within a window. A larger one means that ACKs take
/// another path.
const MIN_REROUTE_NANOS: i64 = 5_000_000;
/// After so many consecutive windows with nearly the same change, ACKs are taken to use another
/// path.
const MIN_REROUTE_WINDOWS: u32 = 3;
/// A packet whose RTT exceeds the smallest by at most this, in ns, waited in no queue in either
/// direction.
const IDLE_RTT_SLACK_NANOS: i64 = 500_000;
/// The shortest time between two such packets for which a skew is computed. Over a second, their
/// queueing causes an error of 500 ppm at most.
const MIN_SKEW_SPAN: Duration = Duration::from_secs(1);
/// The largest relative difference of two successive skews, apart from the error by queueing, at
/// which the second is believed.
const SKEW_AGREEMENT: f64 = 0.25;
/// Part of the largest packet's bytes from which on a packet counts as full. The line sends a short
/// one faster, so that their RTTs do not compare.
const FULL_SHARE: f64 = 0.75;
/// The fastest that clocks are set right: chrony slews by up to 83,333 ppm, ntpd by 500.
const MAX_SLEW_PPM: i64 = 100_000;
/// The smallest jump that is a clock step, if no queue can explain it.
const STEP_NANOS: i64 = 500_000_000;

/// Follows the offset between the clocks of the sender and the receiver of a path. One-way delay
/// minus RTT is this offset minus the delay of the ACK. So queues on the way forward do not matter.
#[derive(Clone, Debug, Default)]
pub struct DelayClock {
    /// The last raw difference of stamps in µs modulo 2^32, and the same unwrapped, in ns.
    last: Option<(u32, i64)>,
    /// Time from the sending of that packet to its ACK, in ns.
    away: i64,
    /// The offset that is subtracted at `level_at`, and its change in ns per second.
    level: i64,
    level_at: Instant,
    skew: f64,
    windows: u32,
    /// Maximum of (one-way delay - RTT - expected level) in the window that began at
    /// `window_began`, in ns, and of how many packets.
    window: Option<i64>,
    window_began: Instant,
    packets: u32,
    /// The correction of such a maximum since the path of the ACKs changed, in ns.
    bias: i64,
    rebias: bool,
    /// The smallest RTT of a full packet since the path of the ACKs changed, in ns.
    least_rtt: Option<i64>,
    /// Bytes of the largest packet.
    largest_bytes: u32,
    /// The packet that met no queue from which the skew is measured: when its ACK came, and its
    /// one-way delay minus RTT, in ns.
    idle: Option<(Instant, i64)>,
    /// The skew that was measured last, in ns per second.
    measured_skew: Option<f64>,
    /// Windows in a row that were off by more than clocks can explain, and by how much the latest
    /// was.
    off: (u32, i64),
}

impl DelayClock {
    /// Takes the stamps of a packet of `bytes` that was acknowledged. Returns its one-way delay in
    /// ns, with the skew removed, on a scale with an arbitrary zero. `None` if a clock has stepped.
    pub fn sample(
        &mut self,
        now: Instant,
        sent_at: Instant,
        arrival: u32,
        rtt: Option<Duration>,
        bytes: u32,
    ) -> Option<i64> {
        let raw = arrival.wrapping_sub(sent_at.as_micros() as u32);
        let rtt = rtt.map(|rtt| byway_wire::time::nanos(rtt) as i64);
        let away_before = core::mem::replace(&mut self.away, now.signed_nanos_since(sent_at).max(0));
        let Some((before, unwrapped)) = self.last else {
            // The scale begins where one-way delay and RTT agree.
            let guess = rtt.unwrap_or(0);
            self.last = Some((raw, 0));
            (self.level, self.level_at, self.window_began) = (-guess, now, now);
            self.window = rtt.map(|_| 0);
            return Some(guess);
        };
        let jump = i64::from(raw.wrapping_sub(before) as i32) * 1000;
        let delay = unwrapped + jump;
        if jump > STEP_NANOS.max(self.away) || -jump > STEP_NANOS.max(away_before) {
            // Keep the scale: the new offset is the old one plus the jump.
            self.last = Some((raw, delay));
            self.level += jump;
            (self.window, self.idle, self.measured_skew) = (None, None, None);
            (self.window_began, self.packets) = (now, 0);
            return None;
        }
        self.last = Some((raw, delay));
        if let Some(rtt) = rtt {
            if self.is_idle(rtt, bytes) {
                self.follow(now, delay - rtt);
            }
            self.observe(now, delay - rtt);
        }
        Some(delay - self.level_now(now))
    }

    /// Notes that the path of the ACKs changed, so that the difference of delay and RTT jumps once.
    pub const fn way_back_changed(&mut self) {
        self.window = None;
        self.rebias = true;
        self.forget_idle();
    }

    const fn forget_idle(&mut self) {
        (self.least_rtt, self.idle, self.measured_skew) = (None, None, None);
    }

    /// Converts a delay on this path's scale to the receiver's view: the receiver's stamp minus the
    /// sender's, modulo 2^32 µs.
    #[must_use]
    pub fn apparent(&self, now: Instant, one_way: i64) -> Option<u32> {
        let (raw, unwrapped) = self.last?;
        let distance = one_way + self.level_now(now) - unwrapped;
        Some(raw.wrapping_add((distance / 1000) as u32))
    }

    fn level_now(&self, now: Instant) -> i64 {
        let elapsed = now.signed_nanos_since(self.level_at) as f64 / 1e9;
        self.level + (self.skew * elapsed) as i64
    }

    /// Whether a packet of this RTT, in ns, met no queue. Both ends of an RTT are read from one
    /// clock, so no drift hides in it.
    fn is_idle(&mut self, rtt: i64, bytes: u32) -> bool {
        if f64::from(self.largest_bytes) < FULL_SHARE * f64::from(bytes) {
            self.forget_idle();
        }
        self.largest_bytes = self.largest_bytes.max(bytes);
        if f64::from(bytes) < FULL_SHARE * f64::from(self.largest_bytes) {
            return false;
        }
        let before = self.least_rtt.unwrap_or(rtt);
        if rtt < before - IDLE_RTT_SLACK_NANOS {
            self.forget_idle();
        }
        self.least_rtt = Some(before.min(rtt));
        rtt <= before + IDLE_RTT_SLACK_NANOS
    }

    /// Adjusts the drift by a packet that met no queue. `difference` is its one-way delay minus the
    /// RTT, whose deviation from the level can only be drift.
    fn follow(&mut self, now: Instant, difference: i64) {
        let Some((since, before)) = self.idle else {
            self.idle = Some((now, difference));
            return;
        };
        let error = difference + self.bias - self.level_now(now);
        if self.rebias || error.abs() <= DRIFT_SLACK_NANOS {
            return;
        }
        let span = now.since(since);
        if span >= MIN_SKEW_SPAN {
            self.measure_skew((difference - before) as f64 / span.as_secs_f64());
            self.idle = Some((now, difference));
        }
        if error < 0 {
            // Measured delays fell meanwhile, and the least of them is on the present scale.
            self.bias -= error;
        }
        self.level = difference + self.bias;
        self.level_at = now;
        self.window = None;
        (self.window_began, self.packets, self.off) = (now, 0, (0, 0));
    }

    /// Takes a skew in ns per second. One alone may come of a least RTT that was not yet the
    /// path's.
    fn measure_skew(&mut self, skew: f64) {
        let doubt = SKEW_AGREEMENT * skew.abs() + IDLE_RTT_SLACK_NANOS as f64;
        let agrees = self.measured_skew.is_some_and(|before| (skew - before).abs() <= doubt);
        self.measured_skew = Some(skew);
        if agrees {
            let fastest = (MAX_SLEW_PPM * 1000) as f64;
            self.skew = skew.clamp(-fastest, fastest);
        }
    }

    fn observe(&mut self, now: Instant, difference: i64) {
        let difference = difference + self.bias;
        if self.rebias {
            self.rebias = false;
            self.bias += self.level_now(now) - difference;
            self.window = Some(0);
            (self.window_began, self.packets) = (now, 0);
            return;
        }
        let error = difference - self.level_now(now);
        self.window = Some(self.window.map_or(error, |before| before.max(error)));
        self.packets += 1;
        let elapsed = now.since(self.window_began);
        if elapsed < MIN_WINDOW || self.packets < MIN_WINDOW_PACKETS {
            return;
        }
        let Some(error) = self.window.take() else { return };
        (self.window_began, self.packets) = (now, 0);
        let seconds = elapsed.as_secs_f64().min(10.0);
        let predicted = self.level_now(now);
        if self.is_another_way(error, elapsed) {
            return;
        }
        let most = (MAX_SKEW_PPM * 1000) as f64;
        let slack = DRIFT_SLACK_NANOS.saturating_add((most * (seconds - 1.0)) as i64);
        self.windows = self.windows.saturating_add(1);
        self.level_at = now;
        if self.windows == 1 || error > slack {
            self.level = predicted + error;
            return;
        }
        let is_queue = -error > slack;
        let error = (error as f64).clamp(-most * seconds, most * seconds);
        let gain = LEVEL_GAIN.max(1.0 / f64::from(self.windows));
        self.level = predicted + (gain * error) as i64;
        if is_queue {
            return;
        }
        // A skew that packets without a queue have shown may be larger.
        let most = most.max(self.skew.abs());
        self.skew = (self.skew + SKEW_GAIN * error / seconds).clamp(-most, most);
    }

    /// Whether `error` is too large for clock drift, so that the route of the ACKs has changed.
    /// `error`, in ns: the measured maximum of (one-way delay - RTT) minus the expected one. After
    /// three nearly equal errors in a row, later maxima are reduced by the last one.
    fn is_another_way(&mut self, error: i64, elapsed: Duration) -> bool {
        let drift = (elapsed.as_secs_f64() * (MAX_SKEW_PPM * 1000) as f64) as i64;
        if error.abs() <= MIN_REROUTE_NANOS.saturating_add(drift) {
            self.off = (0, 0);
            return false;
        }
        let (windows, before) = self.off;
        let windows = if (error - before).abs() <= error.abs() / 4 { windows + 1 } else { 1 };
        self.off = (windows, error);
        if windows >= MIN_REROUTE_WINDOWS {
            let most = (MAX_SKEW_PPM * 1000) as f64;
            self.skew = self.skew.clamp(-most, most);
            self.bias -= error;
            self.off = (0, 0);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    /// Bytes of a packet.
    const FULL: u32 = 1_400;

    /// A path whose receiver's clock runs `ppm` fast, and is `offset` µs ahead.
    struct Model {
        ppm: i64,
        offset: i64,
    }

    impl Model {
        fn stamp(&self, at_micros: i64) -> u32 {
            (at_micros + self.offset + at_micros * self.ppm / 1_000_000) as u32
        }

        /// The sample of a packet sent at `sent` µs that took `forward` and whose ACK took `back`
        /// µs.
        fn sample(&self, clock: &mut DelayClock, sent: i64, forward: i64, back: i64) -> Option<i64> {
            let (sent_at, now) =
                (Instant::from_micros(sent as u64), Instant::from_micros((sent + forward + back) as u64));
            clock.sample(now, sent_at, self.stamp(sent + forward), Some(now.since(sent_at)), FULL)
        }
    }

    #[test]
    fn a_queue_is_seen_although_the_clocks_drift_for_ten_minutes() {
        for ppm in [-50, 0, 50, 100] {
            let model = Model { ppm, offset: -7_000_000_000 };
            let mut clock = DelayClock::default();
            let mut base = i64::MAX;
            let mut last_base = (i64::MAX, i64::MIN);
            for step in 0i64..60_000 {
                let sent = step * 10_000;
                // A sawtooth queue that never drains, of 2 to 6 ms, and a jittery way back.
                let queue = 2_000 + (step % 40) * 100;
                let back = 10_000 + (step * 7919 % 3000);
                let delay = model.sample(&mut clock, sent, 10_000 + queue, back).unwrap();
                if step > 50_000 {
                    last_base = (last_base.0.min(delay), last_base.1.max(delay));
                } else if step > 3000 && step < 6000 {
                    base = base.min(delay);
                }
            }
            let (low, high) = last_base;
            assert!((low - base).abs() < 2_000_000, "{ppm} ppm: the base moved from {base} to {low}");
            assert!((3_500_000..6_000_000).contains(&(high - low)), "{ppm} ppm: sawtooth of {}", high - low);
        }
    }

    #[test]
    fn a_clock_step_costs_one_sample_and_not_the_scale() {
        let mut clock = DelayClock::default();
        let mut model = Model { ppm: 0, offset: 0 };
        let mut before = 0;
        for step in 0..200 {
            before = model.sample(&mut clock, step * 10_000, 10_000, 10_000).unwrap();
        }
        model.offset = 3_600_000_000;
        assert_eq!(model.sample(&mut clock, 2_010_000, 10_000, 10_000), None);
        let after = model.sample(&mut clock, 2_020_000, 10_000, 10_000).unwrap();
        assert!((after - before).abs() < 1_000_000, "{before} became {after}");
    }

    /// A CUBIC flow in a deep buffer makes waits longer than a second. They end at once when the
    /// flow ends.
    #[test]
    fn a_deep_queue_that_vanishes_between_two_packets_is_no_clock_step() {
        let mut clock = DelayClock::default();
        let model = Model { ppm: 0, offset: 77 };
        let first = model.sample(&mut clock, 0, 10_000, 10_000).unwrap();
        let mut sent = 0;
        for queue in [0, 900_000, 1_200_000, 0, 1_200_000, 0] {
            sent += 2_000_000;
            let delay = model.sample(&mut clock, sent, 10_000 + queue, 10_000).unwrap();
            assert_eq!(delay, first + queue * 1000, "{queue} µs");
        }
    }

    /// ntpd slews a clock by up to 500 ppm, chrony by up to 83,333. An idle path shows no queue
    /// meanwhile, at any rate of packets, and a queue is still seen.
    #[test]
    fn a_clock_that_is_set_right_is_no_queue() {
        for ppm in [-80_000, -5_000, -825, 825, 5_000, 80_000] {
            for every in [10_000, 1_000_000] {
                let model = Model { ppm, offset: 77 };
                let mut clock = DelayClock::default();
                let (mut base, mut worst, mut waits) = (i64::MAX, 0, (i64::MAX, 0));
                for step in 0..120_000_000 / every {
                    let at = step * every;
                    let queue = if at % 10_000_000 >= 9_000_000 { 30_000 } else { 0 };
                    let wait = model.sample(&mut clock, at, 10_000 + queue, 10_000).unwrap() - base;
                    base += wait.min(0);
                    if at > 20_000_000 && queue > 0 {
                        waits = (waits.0.min(wait), waits.1.max(wait));
                    } else if at > 20_000_000 {
                        worst = worst.max(wait);
                    }
                }
                let told = format!("{ppm} ppm, each {every} µs: idle {worst} ns, a queue {waits:?} ns");
                assert!(worst < 2_000_000, "{told}");
                assert!(waits.0 > 25_000_000 && waits.1 < 35_000_000, "{told}");
            }
        }
    }

    /// At first each packet waits somewhere, and the least RTT is not yet the path's: 11 ms move
    /// from the way forward to the way back. That is no skew, and nothing is believed of it.
    #[test]
    fn a_wait_that_moves_to_the_other_way_is_no_drift() {
        let (model, mut clock) = (Model { ppm: 0, offset: 77 }, DelayClock::default());
        for (at, forward, back) in [(0, 21_000, 10_000), (9_000, 21_000, 10_000), (2_340_000, 10_000, 21_000)]
        {
            model.sample(&mut clock, at, forward, back).unwrap();
        }
        let delays = (3..120).map(|step| model.sample(&mut clock, step * 1_000_000, 25_000, 10_000).unwrap());
        let delays: Vec<i64> = delays.collect();
        let (first, last) = (delays[10], delays[delays.len() - 1]);
        assert!((last - first).abs() < 1_000_000, "{first} became {last}");
    }

    /// The least one-way delay of each second. Packets leave `every` µs apart. Each packet and each
    /// ACK waits up to `jitter` µs.
    fn least<const SECONDS: usize>(every: i64, jitter: u64) -> [i64; SECONDS] {
        let (mut clock, model) = (DelayClock::default(), Model { ppm: 0, offset: 9 });
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 33) % (jitter + 1)) as i64
        };
        let mut least = [i64::MAX; SECONDS];
        // The first ACK meets the longest way back.
        least[0] = model.sample(&mut clock, 0, 10_000, 10_000 + jitter as i64).unwrap();
        for step in 1..SECONDS as i64 * 1_000_000 / every {
            let (at, forward, back) = (step * every, 10_000 + random(), 10_000 + random());
            let delay = model.sample(&mut clock, at, forward, back).unwrap();
            let of = &mut least[(at / 1_000_000) as usize];
            *of = (*of).min(delay);
        }
        least
    }

    #[test]
    fn jitter_on_the_way_back_moves_no_delay() {
        let least = least::<120>(5_000, 3_000);
        let (low, high) = (least[2..].iter().min().unwrap(), least[2..].iter().max().unwrap());
        assert!(high - low < 400_000, "moved by {} ns", high - low);
    }

    #[test]
    fn a_few_packets_under_jitter_move_no_delay() {
        let mean = |from: usize| {
            let (mut sum, least) = (0, least::<240>(250_000, 3_000));
            least[from..from + 60].iter().for_each(|least| sum += least);
            sum / 60
        };
        let moved = (mean(180) - mean(60)).abs();
        assert!(moved < 500_000, "moved by {moved} ns");
    }

    /// A queue of 3 ms on the way back, for half a minute, does not count as another route back.
    #[test]
    fn a_queue_on_the_way_back_is_not_followed() {
        let (mut clock, model) = (DelayClock::default(), Model { ppm: 0, offset: 5 });
        let (mut first, mut worst) = (0, 0);
        for step in 0i64..12_000 {
            let back = if (3_000..6_000).contains(&step) { 13_000 } else { 10_000 };
            let delay = model.sample(&mut clock, step * 10_000, 10_000, back).unwrap();
            if step < 3_000 { first = delay } else { worst = worst.max((delay - first).abs()) }
        }
        assert!(worst < 1_000_000, "{worst} ns off");
    }

    #[test]
    fn another_way_back_does_not_look_like_a_queue() {
        let mut clock = DelayClock::default();
        let model = Model { ppm: 0, offset: 5 };
        let first = model.sample(&mut clock, 0, 10_000, 10_000).unwrap();
        for step in 1..500 {
            model.sample(&mut clock, step * 10_000, 10_000, 10_000);
        }
        clock.way_back_changed();
        let mut last = 0;
        for step in 500..6000 {
            last = model.sample(&mut clock, step * 10_000, 10_000, 150_000).unwrap();
        }
        assert!((last - first).abs() < 1_000_000, "{first} became {last}");
    }

    /// Both ways become 30 ms longer while the clocks drift by 30 ppm. The measured one-way delay
    /// must then be 30 ms more, within 1 ms.
    #[test]
    fn a_longer_way_back_that_nobody_tells_of_is_not_followed() {
        let mut clock = DelayClock::default();
        let model = Model { ppm: 30, offset: 5 };
        let mut before = 0;
        for step in 0..18_000 {
            before = model.sample(&mut clock, step * 10_000, 10_000, 10_000).unwrap();
        }
        let mut worst = 0;
        for step in 18_000..48_000 {
            let now = model.sample(&mut clock, step * 10_000, 40_000, 40_000).unwrap();
            worst = worst.max((now - before - 30_000_000).abs());
        }
        assert!(worst < 1_000_000, "{worst} ns off");
    }

    #[test]
    fn the_limit_is_told_on_the_receivers_scale() {
        let mut clock = DelayClock::default();
        let model = Model { ppm: 0, offset: 123_456 };
        let base = model.sample(&mut clock, 0, 10_000, 10_000).unwrap();
        let limit = clock.apparent(Instant::from_micros(20_000), base + 5_000_000).unwrap();
        // A packet that takes 5 ms longer than the first shows exactly this difference of stamps.
        assert_eq!(limit, model.stamp(50_000 + 15_000).wrapping_sub(50_000));
    }

    proptest! {
        #[test]
        fn any_stamps_are_survived(stamps in prop::collection::vec((any::<u32>(), 0u64..5_000_000, 0u64..3_000_000), 1..200)) {
            let mut clock = DelayClock::default();
            let mut at = 0;
            for (stamp, step, rtt) in stamps {
                at += step;
                let now = Instant::from_micros(at + rtt);
                let _ = clock.sample(now, Instant::from_micros(at), stamp, Some(Duration::from_micros(rtt)), stamp);
                let _ = clock.apparent(now, 0);
            }
        }
    }
}
