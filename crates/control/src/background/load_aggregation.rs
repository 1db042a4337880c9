//! Whether other paths add anything to the direct path (mPath, 2.3: load aggregation). One whose
//! packets wait in the direct path's queue lends its rate to the direct path for some seconds. If
//! the direct path alone then carries as much as all paths did, the other is of no use. A relay is
//! dropped, since its operator need not pay for it. A further direct path, as over IPv6, rests.

use byway_wire::{Duration, Instant};

/// Two queues of a path's own that are less than these RTTs apart are one queue.
const QUEUE_GAP_RTTS: u32 = 4;
/// Relays lend if one of them has built this many queues more together with the direct path than
/// without it.
const SHARED_QUEUES: u32 = 5;
/// What is enough for the other relays that lend with it.
const SOME_SHARED_QUEUES: u32 = 3;
/// The most that are counted, so that other evidence counts soon.
const MAX_SHARED_QUEUES: u32 = 7;
/// A transfer that is over sooner does without loans.
const FIRST_LOAN_TIME: Duration = Duration::from_secs(12);
/// The RTTs after which no packet of a relay waits any more.
const DRAINING_RTTS: u32 = 4;
/// The time in which the direct path takes up what it is lent, by a quarter per RTT.
const SETTLING_TIME: Duration = Duration::from_millis(300);
const SETTLING_RTTS: u32 = 10;
/// The time over which the sum of all paths is measured after that.
const MEASURED_TIME: Duration = Duration::from_millis(2_000);
/// The part of the sum before the loan that shows relays to be of no use. Where they share the
/// bottleneck it is .9 to 1.2 (2 to 50 Mbit/s), and .8 at most where one of them adds a quarter.
const MIN_CARRIED_SHARE: f64 = 0.9;
/// A loan fails at once if the sum is below this part, after `EARLY_TIME` of measurement or at a
/// queue of the direct path.
const EARLY_SHARE: f64 = 0.75;
const EARLY_TIME: Duration = Duration::from_millis(500);
/// The pause after a loan that failed. It doubles with each.
const LOAN_PAUSE: Duration = Duration::from_secs(20);
const MAX_LOAN_PAUSE: Duration = Duration::from_secs(320);
/// The pause before another relay is tried after useless ones. It doubles each time.
const WISH_PAUSE: Duration = Duration::from_secs(120);
const MAX_WISH_PAUSE: Duration = Duration::from_secs(480);
/// That pause ends at this many times the rate at which they were of no use: more than the 1.2 by
/// which the sum varies on one bottleneck. They were judged while something else than the line was
/// the limit, such as a busy host.
const OUTGROWN_FACTOR: f64 = 1.25;

/// How many more queues a relay built together with the direct path than without it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SharedQueues {
    excess: u32,
    /// When the latest queue began that was counted.
    counted: Option<Instant>,
}

impl SharedQueues {
    /// Whether a queue that began at `at` is not counted yet. `gap`: the least time between two.
    pub fn is_new(&mut self, at: Instant, gap: Duration) -> bool {
        let is_new = self.counted.is_none_or(|counted| at.since(counted) > gap);
        if is_new {
            self.counted = Some(at);
        }
        is_new
    }

    /// Counts a queue. `together`: the relay and the direct path built one at the same time.
    pub fn note(&mut self, together: bool) {
        self.excess =
            if together { (self.excess + 1).min(MAX_SHARED_QUEUES) } else { self.excess.saturating_sub(1) };
    }

    /// Whether the relay's packets most probably wait in the direct path's queue.
    pub const fn are_many(self) -> bool {
        self.excess >= SHARED_QUEUES
    }

    /// Whether they probably do.
    pub const fn are_some(self) -> bool {
        self.excess >= SOME_SHARED_QUEUES
    }
}

/// What a bundle's loans know of one path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PathLoan {
    /// When the path's own queues began: the last one, and the one before.
    queues: [Option<Instant>; 2],
    /// The RTT at the last one.
    rtt: Duration,
    shared: SharedQueues,
    /// Whether the path lends its rate, and carries only probes.
    pub lends: bool,
    /// The bytes per second up to which a loan raises the path's level. 0: there is no loan.
    pub borrowed: f64,
}

impl PathLoan {
    /// The path built a queue.
    pub fn on_own_queue(&mut self, now: Instant, rtt: Duration) {
        self.rtt = rtt;
        let last = self.queues[0];
        if last.is_none_or(|last| now.since(last) > self.gap()) {
            self.queues = [Some(now), last];
        }
    }

    /// The least time between two queues.
    fn gap(&self) -> Duration {
        self.rtt * QUEUE_GAP_RTTS
    }

    /// The RTT at the path's latest queue.
    pub const fn rtt(&self) -> Duration {
        self.rtt
    }

    /// Whether a queue began at `now`.
    pub fn begins_queue(&self, now: Instant) -> bool {
        self.queues[0] == Some(now)
    }

    /// When the latest queue began that is not of the present.
    fn queue_before(&self, now: Instant) -> Option<Instant> {
        self.queues.into_iter().flatten().find(|began| now.since(*began) > self.gap())
    }

    /// Counts the latest queues of the relay and of the direct path as one or as two, unless that
    /// has been done.
    pub fn compare(&mut self, direct: &Self, now: Instant) {
        let (Some(ours), Some(theirs)) = (self.queue_before(now), direct.queue_before(now)) else { return };
        let gap = self.gap().max(direct.gap());
        let (first, last) = if ours < theirs { (ours, theirs) } else { (theirs, ours) };
        if self.shared.is_new(last, gap) {
            self.shared.note(last.since(first) <= gap / 2);
        }
    }

    /// How surely the relay shares the direct path's queue.
    pub const fn shared(&self) -> SharedQueues {
        self.shared
    }

    /// Ends a loan that failed.
    pub fn end(&mut self) {
        self.borrowed = 0.0;
        if self.lends {
            (self.lends, self.shared) = (false, SharedQueues::default());
        }
    }
}

/// A loan under way.
#[derive(Clone, Copy, Debug)]
struct Loan {
    drained_at: Instant,
    settled_at: Instant,
    /// Bytes per second of all paths before the loan.
    before: f64,
    /// The start of the measurement, and the bytes carried until then.
    from: Option<(Instant, f64)>,
}

/// What became of a loan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LoanOutcome {
    /// The direct path carries everything.
    Carried,
    /// The relays are needed.
    Missed,
}

/// The loans of a bundle: at most one at a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loans {
    now: Option<Loan>,
    not_before: Instant,
    pause: Duration,
    quiet_until: Instant,
    wish_pause: Duration,
    /// The bytes per second of all paths at which the latest lenders were of no use. `None`: they
    /// were of use, or there were none.
    useless_at: Option<f64>,
}

impl Loans {
    pub const fn new() -> Self {
        Self {
            now: None,
            not_before: Instant::ZERO,
            pause: LOAN_PAUSE,
            quiet_until: Instant::ZERO,
            wish_pause: WISH_PAUSE,
            useless_at: None,
        }
    }

    /// A path opened: the first loan waits for `FIRST_LOAN_TIME` since the first path.
    pub fn on_opened(&mut self, now: Instant) {
        if self.not_before == Instant::ZERO {
            self.not_before = now + FIRST_LOAN_TIME;
        }
    }

    /// Whether a loan is under way.
    pub const fn is_under_way(&self) -> bool {
        self.now.is_some()
    }

    /// Whether a loan may begin.
    pub fn may_begin(&self, now: Instant) -> bool {
        self.now.is_none() && now >= self.not_before
    }

    /// The most relays that may be asked for: after useless ones, one at a time. `carried`: the
    /// bytes per second of all paths, if known.
    pub fn allowed_wishes(&self, now: Instant, carried: Option<f64>) -> usize {
        let outgrown = |rate: f64| carried.is_some_and(|carried| carried >= OUTGROWN_FACTOR * rate);
        match (self.now, self.useless_at) {
            (None, None) => usize::MAX,
            (None, Some(rate)) if now >= self.quiet_until || outgrown(rate) => 1,
            _ => 0,
        }
    }

    /// Whether paths that were of no use still rest at an own queue of the direct path, while all
    /// paths' rate is `level` bytes per second. It may have grown beyond what was lent, or have
    /// fallen so far that the direct path cannot carry that any more.
    pub fn keep_resting(&self, now: Instant, level: f64) -> bool {
        let like = |rate: f64| level >= EARLY_SHARE * rate && level < OUTGROWN_FACTOR * rate;
        self.useless_at.is_some_and(|rate| now < self.quiet_until && like(rate))
    }

    /// A loan begins. `before`: the bytes per second of all paths. `rtt`: the direct path's.
    pub fn begin(&mut self, now: Instant, before: f64, rtt: Duration) {
        self.now = Some(Loan {
            drained_at: now + rtt * DRAINING_RTTS,
            settled_at: now + SETTLING_TIME + rtt * SETTLING_RTTS,
            before,
            from: None,
        });
    }

    /// Ends a loan without an outcome. Returns whether there was one.
    pub const fn cancel(&mut self) -> bool {
        self.now.take().is_some()
    }

    /// Measures what all paths carry during a loan: `total` bytes until now. Returns the outcome at
    /// its end.
    pub fn judge(&mut self, now: Instant, total: f64) -> Option<LoanOutcome> {
        let loan = self.now.as_mut().filter(|loan| now >= loan.settled_at)?;
        let (since, had) = *loan.from.get_or_insert((now, total));
        let time = now.since(since);
        let rate = (total - had) / time.as_secs_f64().max(1e-3);
        let share = rate / loan.before.max(1.0);
        if time < MEASURED_TIME && (time < EARLY_TIME || share >= EARLY_SHARE) {
            return None;
        }
        let useless_at = (share >= MIN_CARRIED_SHARE).then(|| rate.max(loan.before));
        Some(self.end(now, useless_at))
    }

    /// The direct path has a queue while all paths' rate was `level` bytes per second. Returns
    /// the outcome of a loan that has failed by that: the direct path cannot carry what was lent.
    pub fn on_queue(&mut self, now: Instant, level: f64) -> Option<LoanOutcome> {
        let loan = self.now.filter(|loan| now >= loan.drained_at)?;
        (level < EARLY_SHARE * loan.before).then(|| self.end(now, None))
    }

    fn end(&mut self, now: Instant, useless_at: Option<f64>) -> LoanOutcome {
        self.now = None;
        self.useless_at = useless_at;
        if useless_at.is_some() {
            (self.not_before, self.pause) = (now, LOAN_PAUSE);
            self.quiet_until = now + self.wish_pause;
            self.wish_pause = self.wish_pause.saturating_mul(2).min(MAX_WISH_PAUSE);
            return LoanOutcome::Carried;
        }
        self.not_before = now + self.pause;
        self.pause = self.pause.saturating_mul(2).min(MAX_LOAN_PAUSE);
        LoanOutcome::Missed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(50);

    /// A loan of paths that had 1,000 bytes per second. Returns its outcome and the time that it
    /// took, if they have `rate` then.
    fn outcome(loans: &mut Loans, began: Instant, rate: f64) -> (LoanOutcome, Duration) {
        loans.begin(began, 1_000.0, RTT);
        assert!(loans.is_under_way() && !loans.may_begin(began) && loans.allowed_wishes(began, None) == 0);
        let mut now = began;
        loop {
            now += Duration::from_millis(10);
            if let Some(outcome) = loans.judge(now, rate * now.since(began).as_secs_f64()) {
                return (outcome, now.since(began));
            }
        }
    }

    #[test]
    fn relays_are_useless_if_the_direct_path_carries_as_much() {
        let (mut loans, began) = (Loans::new(), Instant::from_millis(10_000));
        assert_eq!(loans.allowed_wishes(began, None), usize::MAX);
        assert_eq!(outcome(&mut loans, began, 950.0), (LoanOutcome::Carried, Duration::from_millis(2_800)));
        let ended = began + Duration::from_millis(2_800);
        assert!(loans.may_begin(ended), "another relay may be useless, too");
        let later = ended + Duration::from_secs(119);
        assert_eq!(loans.allowed_wishes(later, Some(1_200.0)), 0);
        assert_eq!(loans.allowed_wishes(later, Some(1_250.0)), 1, "1,000 was not what the line carries");
        assert_eq!(loans.allowed_wishes(ended + WISH_PAUSE, None), 1);
    }

    #[test]
    fn relays_that_are_missed_come_back_and_are_left_alone_for_ever_longer() {
        let mut loans = Loans::new();
        let mut now = Instant::from_millis(10_000);
        for (rate, took, pause) in [(850.0, 2_800, 20), (500.0, 1_300, 40), (0.0, 1_300, 80)] {
            assert!(loans.may_begin(now));
            assert_eq!(outcome(&mut loans, now, rate), (LoanOutcome::Missed, Duration::from_millis(took)));
            now += Duration::from_millis(took);
            assert!(!loans.may_begin(now + Duration::from_secs(pause - 1)));
            assert_eq!(loans.allowed_wishes(now, None), usize::MAX);
            now += Duration::from_secs(pause);
        }
        loans.begin(now, 1_000.0, RTT);
        assert_eq!(loans.on_queue(now + RTT, 300.0), None, "packets of relays wait in it");
        assert_eq!(loans.on_queue(now + RTT * 4, 800.0), None, "it carries nearly all");
        assert_eq!(loans.on_queue(now + RTT * 4, 700.0), Some(LoanOutcome::Missed));
        assert!(!loans.is_under_way() && !loans.cancel());
    }

    #[test]
    fn queues_that_are_often_shared_are_evidence() {
        let (mut queues, gap) = (SharedQueues::default(), Duration::from_millis(200));
        let mut at = Instant::from_millis(1_000);
        let mut count = |together: bool| {
            at += Duration::from_millis(1_000);
            assert!(queues.is_new(at, gap) && !queues.is_new(at + gap, gap));
            queues.note(together);
            (queues.are_some(), queues.are_many())
        };
        let seen: alloc::vec::Vec<_> = [true, true, false, true, true, true, true].map(&mut count).into();
        assert_eq!(seen[4..], [(true, false), (true, false), (true, true)]);
        assert_eq!([false; 3].map(count)[2], (false, false));
    }
}
