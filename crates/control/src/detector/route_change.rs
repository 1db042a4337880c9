//! A route that got longer from one packet to the next.

use byway_wire::time::signed_nanos;
use byway_wire::{Duration, Instant};

/// Detects a longer route within half a second, or within eight RTTs if they are longer. A
/// [`BaseDelay`](super::BaseDelay) alone needs 15 s.
///
/// | what | condition |
/// |---|---|
/// | delay before the rise | near the base, or above it by less than half of the rise |
/// | rise | more than twice the time between the two packets: a TCP's queue grows slower |
/// | delays after the rise | nearly equal minima in three of four RTTs: a burst's queue drains |
#[derive(Clone, Copy, Debug, Default)]
pub struct RouteChange {
    /// The sending time of the latest packet, and its delay. `None`: there was no packet.
    latest: Option<(Instant, i64)>,
    look: Option<DelayRise>,
}

/// The state of a possible route change, since the delay rose.
#[derive(Clone, Copy, Debug)]
struct DelayRise {
    /// The least delay of a longer route: a lower delay ends the search.
    least: i64,
    low: i64,
    since: Instant,
    rounds: u32,
    near: u32,
    round_low: i64,
    round_until: Instant,
}

/// The base delay of a line and the noise around it, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct DelayNoise {
    /// The base delay so far.
    pub floor: i64,
    /// Delays that exceed a base delay by at most this count as equal to it.
    pub tolerance: i64,
    /// The jitter of delays without a queue.
    pub spread: i64,
    /// The most of the time between two packets that counts.
    pub pause: Duration,
}

impl RouteChange {
    /// The least rise that may be a longer route, in tolerances.
    const MIN_RISE_TOLERANCES: i64 = 4;
    /// The least rise that may be a longer route, in gaps between the two packets.
    const MIN_RISE_GAPS: i64 = 2;
    /// The least number of rounds that the rise must last.
    const MIN_ROUND_COUNT: u32 = 8;
    /// The least time that the rise must last.
    const MIN_RISE_TIME: Duration = Duration::from_millis(500);
    /// The shortest round, in which the smallest delay is taken.
    const MIN_ROUND_TIME: Duration = Duration::from_millis(10);

    /// Takes the delay of a packet into account. The packet was sent at `sent_at`, and its delay
    /// became known at `now`. Returns the new base delay in nanoseconds if the route got longer.
    pub fn sample(
        &mut self,
        delay: i64,
        sent_at: Instant,
        now: Instant,
        rtt: Duration,
        line: DelayNoise,
    ) -> Option<i64> {
        let before = self.latest.replace((sent_at, delay));
        let margin = line.tolerance.saturating_mul(Self::MIN_RISE_TOLERANCES).saturating_add(line.spread);
        if let Some(look) = &mut self.look {
            let verdict = look.sample(delay, now, rtt, line);
            if verdict.is_some() {
                self.look = None;
            }
            return verdict.flatten();
        }
        let (sent_before, delay_before) = before?;
        let leap = delay.saturating_sub(delay_before);
        let gap = signed_nanos(sent_at.since(sent_before).min(line.pause));
        let steep =
            leap > margin.saturating_add(line.spread) && leap > gap.saturating_mul(Self::MIN_RISE_GAPS);
        let near = line.floor.saturating_add((2 * margin).max(leap / 2));
        if steep && delay_before <= near {
            self.look = Some(DelayRise {
                least: line.floor.saturating_add(leap / 2),
                low: delay,
                since: now,
                rounds: 0,
                near: 0,
                round_low: i64::MAX,
                round_until: now,
            });
        }
        None
    }
}

impl DelayRise {
    /// Handles a delay. `Some(None)`: the route did not change. `Some(Some(floor))`: it did, and
    /// `floor` is the new base delay.
    fn sample(&mut self, delay: i64, now: Instant, rtt: Duration, line: DelayNoise) -> Option<Option<i64>> {
        if delay < self.least {
            return Some(None);
        }
        if now >= self.round_until {
            if self.round_low != i64::MAX {
                self.rounds += 1;
                let near = self.low.saturating_add(line.tolerance).saturating_add(line.spread);
                self.near += u32::from(self.round_low <= near);
            }
            self.round_low = i64::MAX;
            self.round_until = now + rtt.max(RouteChange::MIN_ROUND_TIME);
        }
        if delay < self.low.saturating_sub(line.tolerance) {
            (self.since, self.rounds, self.near) = (now, 0, 0);
        }
        self.low = self.low.min(delay);
        self.round_low = self.round_low.min(delay);
        if self.rounds < RouteChange::MIN_ROUND_COUNT || now.since(self.since) < RouteChange::MIN_RISE_TIME {
            return None;
        }
        Some((self.near >= self.rounds - self.rounds / 4).then_some(self.low))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;
    const RTT: Duration = Duration::from_millis(20);
    const LINE: DelayNoise =
        DelayNoise { floor: 10 * MS, tolerance: 5 * MS / 4, spread: 0, pause: Duration::from_millis(10) };

    /// Sends a packet each millisecond, with the delay of that time. Returns the first new floor,
    /// and when it was found.
    fn look(until: u64, delay: impl Fn(u64) -> i64) -> Option<(u64, i64)> {
        let mut leap = RouteChange::default();
        (0..until).find_map(|at| {
            let sent = Instant::from_millis(at);
            leap.sample(delay(at), sent, sent + RTT, RTT, LINE).map(|floor| (at, floor))
        })
    }

    #[test]
    fn a_longer_route_is_known_in_half_a_second() {
        // `queue`: how many ms of the sender's own packets wait in the queue before the route
        // change. After the change this queue drains, because the sender takes the longer delay for
        // congestion.
        for queue in [4, 11] {
            let drains = |at: u64| (queue * MS - (at as i64 - 100) * MS / 10).max(0);
            let found = look(3_000, |at| if at < 100 { (10 + queue) * MS } else { 40 * MS + drains(at) });
            let (at, floor) = found.unwrap_or_default();
            assert!((600..900).contains(&at) && floor == 40 * MS, "{queue}: {at} {floor}");
        }
    }

    #[test]
    fn queues_of_others_are_none() {
        // Once a second, 40 ms of queue appear at once and drain within 40 ms.
        let burst = look(20_000, |at| 10 * MS + (40 - (at % 1_000) as i64).max(0) * MS);
        // 30 ms of queue appear at once, then a TCP's sawtooth between 30 and 70 ms follows.
        let saw =
            look(60_000, |at| 10 * MS + if at < 100 { 0 } else { 30 + (at as i64 - 100) % 2_000 / 50 } * MS);
        // The queue grows by 1 ms per ms up to 40 ms, and stays.
        let slow_start = look(60_000, |at| 10 * MS + (at as i64 - 100).clamp(0, 40) * MS);
        assert_eq!((burst, saw, slow_start), (None, None, None));
    }
}
