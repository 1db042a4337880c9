//! How a path behaves beside somebody who asks for little, again and again.

use byway_wire::{Duration, Instant};

/// Company is gone when no burst has hurt it for so long.
const STAYS: Duration = Duration::from_secs(5);
/// A burst explains what is felt of a queue within so many RTTs.
const EXPLAINS: u32 = 2;
/// What a window may be, as a share of the one that would have filled the line without a queue.
const LEVEL: f64 = 0.95;
/// What that becomes when a queue is felt that no burst explains.
const LOWER: f64 = 0.86;
/// It is lowered no more often than this.
const BETWEEN: Duration = Duration::from_millis(500);
/// One packet in two RTTs is always fair.
const LEAST: f64 = 0.5;
/// Growth beyond is so many times slower for a second after it was lowered: six percent in a second at an RTT of 20 ms.
const SLOWER: f64 = 25.0;
/// After that it is faster by the square of the time, up to so many times: where the line was full it is likely to be full again, and
/// where nothing tells of that for long it lies idle. CUBIC searches so (RFC 9438).
const MOST_HASTE: f64 = 4.0;
/// What a queue takes of the window for the time that it lasts, and of a window of few packets more: so many of them. Until the
/// next one tells of a queue it has stood for half of their distance on average.
const YIELDS: f64 = 0.29;
const YIELDS_PACKETS: f64 = 1.0;
/// And no more than that.
const YIELDS_MOST: f64 = 0.8;
/// Who comes back and meets a queue so soon, in RTTs, has made it: in one RTT it fills, and is heard of in one.
const SOON: f64 = 1.5;
/// So often in a row, and it is no request that was made way for: those are over by then. Who gives each queue little comes back sooner,
/// so that a few requests in a row look like four times in vain.
const IN_VAIN: u32 = 6;
/// What the level becomes then.
const GIVES_UP: f64 = 0.5;

/// Requests of others come and go, and each is over before anybody could have yielded to it.
///
/// What they wait for is what the line holds already when they come, and what comes between their packets. So in their company a
/// path keeps its window below the one that fills the line, and searches beyond only slowly; it gives way to each
/// burst at once, and takes the window back as soon as the burst has passed.
///
/// Who does not go away is no request but a transfer. It shows in that the path comes back in vain, time after time: then
/// the level falls fast, and the path leaves the line to it as it would without company.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Company {
    burst: Option<Instant>,
    until: Option<Instant>,
    /// Up to this, in packets, the window grows as ever.
    level: f64,
    lowered: Instant,
    /// The level before, as long as a burst may still come that explains why.
    before: Option<f64>,
    /// The window before a queue took of it.
    lent: Option<f64>,
    /// When it was taken back, until the next queue; and how often in a row that came too soon.
    returned: Option<Instant>,
    in_vain: u32,
}

impl Company {
    /// Somebody's burst came upon this path. Its first packets may have been felt already, as too few to tell.
    pub fn on_burst(&mut self, now: Instant, rtt: Duration) {
        self.burst = Some(now);
        if let Some(level) = self.before.take()
            && now.since(self.lowered) <= rtt.saturating_mul(EXPLAINS)
        {
            self.level = self.level.max(level);
        }
    }

    /// Whether there is company.
    pub fn is_here(&self, now: Instant) -> bool {
        self.until.is_some_and(|until| now < until)
    }

    /// A queue was felt under a window of `window` packets, where `fitting` would fill the line without one. Returns the part
    /// of the window that is given to it; `None` if there is no company.
    pub fn on_queue(&mut self, now: Instant, rtt: Duration, window: f64, fitting: f64) -> Option<f64> {
        self.count_vain(now, rtt);
        // While one makes way already, the queue is theirs.
        let burst = self.burst.is_some_and(|at| now.since(at) <= rtt.saturating_mul(EXPLAINS));
        if burst || self.lent.is_some() {
            if !self.is_here(now) {
                self.level = (LEVEL * fitting).max(LEAST);
            }
            self.until = Some(now + STAYS);
        } else if !self.is_here(now) {
            return None;
        } else if now.since(self.lowered) >= BETWEEN {
            self.before = Some(self.level);
            self.lower(now, self.level.min(LOWER * window.max(self.level)));
        }
        Some(yields(window))
    }

    /// Lowers the level if the path came back in vain too often.
    fn count_vain(&mut self, now: Instant, rtt: Duration) {
        let Some(at) = self.returned.take() else { return };
        self.in_vain = if now.since(at) <= rtt.mul_f64(SOON) { self.in_vain.saturating_add(1) } else { 0 };
        if self.in_vain >= IN_VAIN {
            self.before = None;
            self.lower(now, GIVES_UP * self.level);
        }
    }

    fn lower(&mut self, now: Instant, level: f64) {
        self.level = level.max(LEAST);
        self.lowered = now;
    }

    /// Remembers a window of which a queue has taken.
    pub fn lend(&mut self, window: f64) {
        self.lent = Some(window);
    }

    /// The window before a queue took of it, if one has: what it takes next is taken of the same.
    pub fn lent(&self) -> Option<f64> {
        self.lent
    }

    /// The window to go back to now that the queue has passed, if one has taken of it.
    pub fn give_back(&mut self, now: Instant) -> Option<f64> {
        let lent = self.lent.take()?;
        self.returned = Some(now);
        Some(lent.min(self.level))
    }

    /// Something else than a queue took of the window: that is not given back.
    pub fn keep(&mut self) {
        self.lent = None;
    }

    /// Where a window of `window` packets is that would else have grown to `grown`; `silent` if there was no queue for long.
    pub fn grow(&mut self, now: Instant, window: f64, grown: f64, silent: bool) -> f64 {
        if silent {
            self.level = self.level.max(grown);
        } else if window >= self.level {
            self.level += self.haste(now) * (grown - window) / SLOWER;
        }
        grown.min(self.level.max(window))
    }

    /// How fast the level is searched beyond, by the time since it was lowered.
    fn haste(&self, now: Instant) -> f64 {
        let seconds = now.since(self.lowered).as_secs_f64();
        (seconds * seconds).clamp(1.0, MOST_HASTE)
    }
}

/// The part of a window of `window` packets that a queue takes.
fn yields(window: f64) -> f64 {
    (YIELDS + YIELDS_PACKETS / window.max(1.0)).min(YIELDS_MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(20);

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    /// Company that met a burst at one second, at a window of 20 where 16 would fill the line.
    fn met() -> Company {
        let mut company = Company::default();
        company.on_burst(at(1_000), RTT);
        assert_eq!(company.on_queue(at(1_020), RTT, 20.0, 16.0), Some(yields(20.0)));
        company.lend(20.0);
        company
    }

    #[test]
    fn a_queue_without_a_burst_brings_no_company() {
        let mut company = Company::default();
        assert_eq!(company.on_queue(at(1_000), RTT, 20.0, 16.0), None);
        company.on_burst(at(1_100), RTT);
        assert_eq!(company.on_queue(at(1_141), RTT, 20.0, 16.0), None, "too long ago");
        assert!(!company.is_here(at(1_141)));
    }

    #[test]
    fn a_large_window_gives_a_third_and_a_small_one_more() {
        assert!(yields(100.0) < 0.31 && yields(16.0) < 0.36, "{} {}", yields(100.0), yields(16.0));
        assert_eq!((yields(4.0), yields(1.0), yields(0.5)), (0.54, YIELDS_MOST, YIELDS_MOST));
    }

    #[test]
    fn company_stays_for_a_while_after_the_last_burst() {
        let company = met();
        assert!(company.is_here(at(6_019)) && !company.is_here(at(6_020)));
    }

    #[test]
    fn what_a_burst_took_comes_back_once_and_never_beyond_the_level() {
        let mut company = met();
        assert_eq!(company.give_back(at(1_060)), Some(LEVEL * 16.0));
        assert_eq!(company.give_back(at(1_080)), None);
        company.lend(20.0);
        company.keep();
        assert_eq!(company.give_back(at(1_100)), None);
    }

    #[test]
    fn growth_is_as_ever_below_the_level_slow_at_it_and_as_ever_in_silence() {
        let (mut company, level) = (met(), LEVEL * 16.0);
        company.lowered = at(1_000);
        assert_eq!(company.grow(at(2_000), 10.0, 10.3, false), 10.3);
        let at_level = company.grow(at(2_000), level, level + 0.6, false);
        assert!((at_level - level - 0.6 / SLOWER).abs() < 1e-9, "{at_level}");
        assert_eq!(company.grow(at(2_000), level, level + 0.6, true), level + 0.6);
        assert_eq!(company.grow(at(2_000), 20.0, 20.6, false), 20.0, "who is beyond stays where he is");
    }

    #[test]
    fn the_search_is_slow_where_the_line_was_full_and_faster_the_longer_nothing_tells_of_that() {
        let mut company = met();
        company.lowered = at(1_000);
        for (millis, haste) in [(1_000, 1.0), (2_000, 1.0), (2_500, 2.25), (2_900, 3.61), (9_000, MOST_HASTE)]
        {
            assert!(
                (company.haste(at(millis)) - haste).abs() < 1e-9,
                "{millis} ms: {}",
                company.haste(at(millis))
            );
        }
    }

    #[test]
    fn the_level_is_lowered_by_what_no_burst_explains_seldom_and_never_to_nothing() {
        let mut company = met();
        company.give_back(at(1_060));
        for millis in 1_100..1_600 {
            assert_eq!(company.on_queue(at(millis), RTT, 10.0, 16.0), Some(yields(10.0)));
        }
        assert!((company.level - LOWER * LEVEL * 16.0).abs() < 1e-9, "once: {}", company.level);
        for second in 2..400 {
            company.on_burst(at(second * 1_000 - 500), RTT);
            company.on_queue(at(second * 1_000 - 500), RTT, 0.1, 0.1);
            company.on_queue(at(second * 1_000), RTT, 0.1, 0.1);
        }
        assert_eq!(company.level, LEAST);
    }

    #[test]
    fn what_a_burst_explains_afterwards_is_given_back_and_nothing_else() {
        let lowered = || {
            let mut company = met();
            company.give_back(at(1_060));
            company.on_queue(at(1_600), RTT, 15.2, 16.0);
            company
        };
        let (mut soon, mut late) = (lowered(), lowered());
        soon.on_burst(at(1_640), RTT);
        soon.on_burst(at(1_641), RTT);
        late.on_burst(at(1_641), RTT);
        assert_eq!((soon.level, late.level), (LEVEL * 16.0, LOWER * LEVEL * 16.0));
    }

    #[test]
    fn a_queue_that_goes_on_while_one_makes_way_does_not_lower_the_level() {
        let mut company = met();
        for millis in (1_100..9_000).step_by(20) {
            assert_eq!(company.on_queue(at(millis), RTT, 1.0, 16.0), Some(yields(1.0)));
        }
        assert_eq!(company.level, LEVEL * 16.0);
        assert!(company.is_here(at(9_000)));
    }

    #[test]
    fn who_comes_back_in_vain_leaves_the_line_and_who_does_not_keeps_his_level() {
        for (after, halved) in [(25, true), (60, false)] {
            let (mut company, mut now) = (met(), 1_020);
            for _ in 0..IN_VAIN + 3 {
                now += 40;
                company.give_back(at(now));
                now += after;
                company.on_burst(at(now), RTT);
                company.on_queue(at(now), RTT, 15.2, 13.0);
                company.lend(15.2);
            }
            let given_up = if halved { GIVES_UP * GIVES_UP * GIVES_UP * GIVES_UP } else { 1.0 };
            let level = LEVEL * 16.0 * given_up;
            assert!((company.level - level).abs() < 1e-9, "{after} ms: {}", company.level);
        }
    }
}
