//! How much of its line an end host lends to the transfers of strangers. That is the line's rate,
//! or a configured limit, minus the rate of the host's own traffic. The relay drops at once what
//! exceeds it.

use byway_uplink::{CarriedRate, CounterLook, CounterReader, InterfaceCounters, UnseenBytes};
use byway_wire::{Duration, Instant, Transmit};

/// Time between two looks at the counters while strangers' datagrams come.
pub const COUNTER_READ_INTERVAL: Duration = Duration::from_millis(20);
/// Time without a look after which the counters are read before the next datagram is judged.
pub const COUNTER_READ_DEADLINE: Duration = Duration::from_millis(40);
/// The longest age of the interface's counters at which strangers' packets may still pass.
const MAX_COUNTER_AGE: Duration = Duration::from_millis(50);
/// The depth of the token bucket for strangers' packets, as a time at the lent rate. It is at least
/// `MIN_BUCKET_DEPTH_BYTES`.
const BUCKET_DEPTH_TIME: Duration = Duration::from_millis(40);
/// The least number of bytes that may pass at once.
const MIN_BUCKET_DEPTH_BYTES: u64 = 12_000;
/// The time over which rates of the line are seen.
const RATE_WINDOW: Duration = Duration::from_millis(500);
/// The longest window from which rates are computed. After a longer one the host slept, or nobody
/// read the counters.
const MAX_RATE_WINDOW: Duration = Duration::from_millis(1_500);
/// Bytes per second that every line is assumed to carry.
const MIN_LINE_RATE: u64 = 32 << 10;
/// Bytes per second at which the climb begins.
const INITIAL_CLIMB_RATE: u64 = 128 << 10;
/// Bytes that the interface counts per datagram in addition to its payload: UDP, IPv4 and Ethernet
/// headers.
const HEADER_BYTES: u64 = 8 + 20 + 14;
/// Bytes per second. A host that lends its line to others counts as active if its own traffic
/// exceeds this rate. If an eighth of the rate that it lends is more, this eighth is the limit
/// instead.
const MIN_ACTIVE_RATE: u64 = 32 << 10;
/// The host's own bytes between two looks that are more than a few packets.
const MIN_OWN_BURST_BYTES: u64 = 6_000;
/// Bytes of strangers that may pass after a pause in reading the counters, before the next reading.
const INITIAL_BUDGET_BYTES: u64 = 4_000;
/// Bytes per second that may pass then.
const INITIAL_BUDGET_RATE: u64 = 64 << 10;
/// Time that strangers' datagrams may wait in this host: a look finds those of the one before.
const HOST_QUEUE_TIME: Duration = COUNTER_READ_INTERVAL;
/// Strangers' bytes that may wait at the interface on the slowest line.
const MIN_HOST_QUEUE_BYTES: u64 = 16 << 10;
/// Strangers' bytes of a window from which on the counters must show at least half of them.
const MIN_CHECKED_BYTES: u64 = 64 << 10;
/// How long nothing is lent after the interface's counters did not show relayed bytes.
const DISTRUST_TIME: Duration = Duration::from_secs(30);

/// How an end host lends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LendingConfig {
    /// Bytes per second of either direction; `None`: the most that the line has shown.
    pub rate: Option<u64>,
    /// Whether the line can be measured by its counters. Loopback cannot.
    pub measured: bool,
}

/// Why nothing is lent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LendingTrouble {
    /// The counters cannot be read.
    #[error("the interface's counters cannot be read")]
    Unreadable,
    /// The interface's counters do not grow with the relayed bytes.
    #[error("the interface's counters do not show what is relayed")]
    Still,
}

/// How far a host lends at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LendingState {
    /// Bytes per second that strangers may send through this host's uplink.
    pub up: u64,
    /// Bytes per second that strangers may send to this host.
    pub down: u64,
    /// Bytes per second that the host itself sends.
    pub own_up: u64,
    /// Bytes per second that the host itself receives.
    pub own_down: u64,
    /// Why nothing is lent, if the host's own traffic is not the reason.
    pub trouble: Option<LendingTrouble>,
}

/// Decides how much of its line an end host lends to strangers.
#[derive(Debug)]
pub struct LendingControl {
    lend: LendingConfig,
    counters: CounterReader,
    trouble: Option<LendingTrouble>,
    distrusted_until: Instant,
    window: RefusalWindow,
    up: DirectionRate,
    down: DirectionRate,
    /// Bytes of strangers' datagrams that left since they were last taken.
    lent: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct RefusalWindow {
    begun: Instant,
    /// Something was dropped that had room on the line as far as anybody knows.
    refused: bool,
}

impl LendingControl {
    pub(crate) fn new(lend: LendingConfig) -> Self {
        let side = DirectionRate::new(lend.rate);
        Self {
            lend,
            counters: CounterReader::new(MAX_RATE_WINDOW),
            trouble: None,
            distrusted_until: Instant::ZERO,
            window: RefusalWindow::default(),
            up: side,
            down: side,
            lent: 0,
        }
    }

    /// The interface or its address is another from now on: nothing is known of the line.
    pub fn move_on(&mut self) {
        *self = Self::new(self.lend);
    }

    /// A datagram arrived that is no traffic of the host's own.
    pub(crate) const fn arrived(&mut self, bytes: u64) {
        self.down.relayed(bytes, 1);
    }

    /// Counts datagrams that leave and are no traffic of the host's own.
    pub(crate) fn left(&mut self, sent: &Transmit) {
        let datagrams = sent.size.div_ceil(sent.segment.max(1));
        let bytes = (sent.size + datagrams * sent.phantom) as u64;
        self.up.relayed(bytes, datagrams as u64);
        self.lent += bytes + datagrams as u64 * HEADER_BYTES;
    }

    /// Takes the bytes of strangers' datagrams that left since the last call, as the interface's
    /// counter counts them.
    pub fn take_lent(&mut self) -> u64 {
        core::mem::take(&mut self.lent)
    }

    /// Whether a stranger's datagram of `bytes` bytes may pass. If so it is taken to leave.
    pub(crate) fn admit(&mut self, now: Instant, bytes: u64) -> bool {
        if !self.lend.measured {
            return self.lend.rate.is_none_or(|rate| {
                self.up.budget = rate;
                self.up.has(now, bytes) && self.up.take(bytes)
            });
        }
        let fresh = self.counters.looked_at().is_some_and(|looked| now.since(looked) <= MAX_COUNTER_AGE);
        if self.trouble.is_some() || !fresh {
            return false;
        }
        let room = self.up.has(now, bytes) && self.down.has(now, bytes);
        self.window.refused |= !room;
        if room {
            self.up.take(bytes);
            self.down.take(bytes);
        }
        room
    }

    /// Takes in what the interface's counters show now; `None`: they cannot be read. The driver
    /// calls this once [`COUNTER_READ_INTERVAL`] has passed since the last call, after it handled
    /// the arrived datagrams. If even [`COUNTER_READ_DEADLINE`] has passed, the driver calls this
    /// before it handles them.
    pub fn look(&mut self, now: Instant, counted: Option<InterfaceCounters>) {
        self.trouble = counted.is_none().then_some(LendingTrouble::Unreadable);
        let (bytes, time) = match self.counters.look(now, counted) {
            CounterLook::Passed { bytes, time } => (bytes, time),
            // The first look for a while: what the host sends now is told by the next one.
            CounterLook::First => return self.forget(now, INITIAL_BUDGET_BYTES),
            CounterLook::Unreadable | CounterLook::Reset => return self.forget(now, 0),
        };
        self.up.look(now, bytes.sent, time);
        self.down.look(now, bytes.received, time);
        let lasted = now.since(self.window.begun);
        if lasted >= RATE_WINDOW {
            if lasted <= MAX_RATE_WINDOW {
                if self.up.is_still() || self.down.is_still() {
                    self.distrusted_until = now + DISTRUST_TIME;
                }
                for side in [&mut self.up, &mut self.down] {
                    side.learn(lasted, self.window.refused);
                }
            }
            for side in [&mut self.up, &mut self.down] {
                side.turn();
            }
            self.window = RefusalWindow { begun: now, refused: false };
        }
        if now < self.distrusted_until {
            self.trouble = Some(LendingTrouble::Still);
        }
        for side in [&mut self.up, &mut self.down] {
            side.lend(now);
        }
    }

    /// Nothing is known of the time since the last look. So many bytes may pass all the same.
    fn forget(&mut self, now: Instant, first: u64) {
        for side in [&mut self.up, &mut self.down] {
            side.forget(now, first);
        }
        self.window = RefusalWindow { begun: now, refused: false };
        if now < self.distrusted_until {
            self.trouble = Some(LendingTrouble::Still);
        }
    }

    /// Bytes of strangers' datagrams that may wait at the interface, where that has a queue of its
    /// own: what the line was seen to carry in 20 ms. The counters show a datagram when it leaves
    /// that queue. One that waited for longer would be taken for the host's own.
    #[must_use]
    pub fn queue(&self) -> u64 {
        self.up.queue()
    }

    /// How much the host lends at this time.
    #[must_use]
    pub fn state(&self) -> LendingState {
        LendingState {
            up: self.up.budget,
            down: self.down.budget,
            own_up: self.up.own(),
            own_down: self.down.own(),
            trouble: self.trouble,
        }
    }
}

/// What is known of one direction of the line, up or down. Rates are in bytes per second.
#[derive(Clone, Copy, Debug)]
struct DirectionRate {
    /// The operator's limit in bytes per second.
    rate: Option<u64>,
    /// Strangers' bytes that the counter has not shown yet.
    unseen: UnseenBytes,
    /// The host's own bytes between the last two looks, and the time.
    last: (u64, Duration),
    /// The host's own rate at the last look.
    now: u64,
    /// The highest rate of the host itself in this window of half a second, and in each of the two
    /// before.
    peaks: [u64; 3],
    /// Whether the host's own rate was above [`chat`](Self::chat) in each of these windows.
    active: [bool; 3],
    /// The host's own bytes in the present window.
    own: u64,
    /// Bytes that the interface counted in the present window.
    shown: u64,
    relayed: u64,
    /// What the line was seen to carry. The sustained rate falls slowly.
    carried: CarriedRate,
    /// The rate to lend if the operator set none. It rises step by step while strangers' packets
    /// are refused.
    climb: u64,
    budget: u64,
    tokens: u64,
    filled: Instant,
}

impl DirectionRate {
    fn new(rate: Option<u64>) -> Self {
        Self {
            rate,
            unseen: UnseenBytes::default(),
            last: (0, Duration::ZERO),
            now: 0,
            peaks: [0; 3],
            active: [false; 3],
            own: 0,
            shown: 0,
            relayed: 0,
            carried: CarriedRate::new(MIN_LINE_RATE),
            climb: INITIAL_CLIMB_RATE,
            budget: 0,
            tokens: 0,
            filled: Instant::ZERO,
        }
    }

    /// Strangers' datagrams pass the interface.
    const fn relayed(&mut self, bytes: u64, datagrams: u64) {
        let shown = bytes + HEADER_BYTES * datagrams;
        self.unseen.on_sent(shown);
        self.relayed = self.relayed.saturating_add(shown);
    }

    /// The rate without the host's own traffic.
    fn quiet(&self) -> u64 {
        self.rate.unwrap_or(self.climb)
    }

    /// The rate that the host itself needs: the peak of the last three windows.
    fn own(&self) -> u64 {
        self.peaks.into_iter().fold(0, u64::max)
    }

    /// Own rates above that are more than a chat.
    fn chat(&self) -> u64 {
        (self.quiet().min(self.carried.sustained()) / 8).max(MIN_ACTIVE_RATE)
    }

    /// Whether the host itself uses the line for more.
    fn is_active(&self) -> bool {
        self.active.contains(&true)
    }

    /// The host's own bytes between two readings of the counters that count as a burst: more than a
    /// few packets.
    fn burst(&self) -> u64 {
        MIN_OWN_BURST_BYTES.max(of_time(self.carried.peak(), Duration::from_millis(2)))
    }

    /// Strangers' bytes that may wait at the interface.
    fn queue(&self) -> u64 {
        of_time(self.carried.peak(), HOST_QUEUE_TIME).max(MIN_HOST_QUEUE_BYTES)
    }

    fn forget(&mut self, now: Instant, first: u64) {
        self.unseen = UnseenBytes::default();
        (self.last, self.shown, self.relayed) = ((0, Duration::ZERO), 0, 0);
        (self.now, self.peaks, self.active, self.own) = (0, [0; 3], [false; 3], 0);
        let budget = if first > 0 { INITIAL_BUDGET_RATE.min(self.quiet()) } else { 0 };
        (self.budget, self.tokens, self.filled) = (budget, first, now);
    }

    fn look(&mut self, now: Instant, bytes: u64, time: Duration) {
        self.fill(now);
        self.shown = self.shown.saturating_add(bytes);
        let own = self.unseen.split(bytes);
        // What stands in the interface's queue comes by and by; what was dropped there never does.
        self.unseen.limit(self.queue());
        let (before, earlier) = self.last;
        let over_both = per_second(own + before, time + earlier);
        let bursts = own >= self.burst();
        let rate = if bursts { over_both.max(per_second(own, time)) } else { over_both };
        // A rate that grows quickly is doubled, so that a new transfer of the host finds room.
        let grows = bursts && rate > self.now + self.now / 4;
        (self.last, self.now, self.own) = ((own, time), rate, self.own.saturating_add(own));
        self.active[0] |= bursts && rate > self.chat();
        self.peaks[0] = self.peaks[0].max(if grows { rate.saturating_mul(2) } else { rate });
    }

    /// Whether the interface counted less than half of the relayed bytes, so that its counters
    /// cannot be trusted.
    const fn is_still(&self) -> bool {
        self.relayed >= MIN_CHECKED_BYTES && self.shown < self.relayed / 2
    }

    /// Updates the estimates at the end of a window of length `lasted`. `refused`: a stranger's
    /// packet was refused because the lent rate was used up.
    fn learn(&mut self, lasted: Duration, refused: bool) {
        let carried = per_second(self.shown, lasted);
        self.active[0] |= per_second(self.own, lasted) > self.chat();
        // Room that nobody took although somebody sent: the line may have less.
        let is_unused = !refused && carried > MIN_LINE_RATE / 4;
        self.carried.on_window(carried, is_unused.then_some(if self.is_active() { 64 } else { 1_024 }));
        // Whoever sends at a policer fills no more than a part of it, and less the slower it is.
        if refused && !self.is_active() && carried >= self.climb / 8 {
            self.climb += self.climb / 5;
        }
        self.climb = self.climb.min(self.carried.peak() * 2).max(INITIAL_CLIMB_RATE);
    }

    const fn turn(&mut self) {
        (self.shown, self.relayed, self.own) = (0, 0, 0);
        self.peaks = [0, self.peaks[0], self.peaks[1]];
        self.active = [false, self.active[0], self.active[1]];
    }

    /// While the host is active, the lent rate is at most 15/16 of what the line carried for 1.5
    /// seconds.
    fn lend(&mut self, now: Instant) {
        let quiet = self.quiet();
        let most = self.carried.sustained();
        let rate = if self.is_active() { quiet.min(most - most / 16) } else { quiet };
        self.budget = rate.saturating_sub(self.own());
        self.fill(now);
    }

    fn fill(&mut self, now: Instant) {
        let time = now.since(self.filled).min(Duration::from_secs(1));
        let depth = of_time(self.budget, BUCKET_DEPTH_TIME).max(MIN_BUCKET_DEPTH_BYTES);
        self.filled = self.filled.max(now);
        self.tokens = self.tokens.saturating_add(of_time(self.budget, time)).min(depth);
        if self.budget == 0 {
            self.tokens = 0;
        }
    }

    fn has(&mut self, now: Instant, bytes: u64) -> bool {
        self.fill(now);
        self.tokens >= bytes
    }

    const fn take(&mut self, bytes: u64) -> bool {
        self.tokens = self.tokens.saturating_sub(bytes);
        true
    }
}

/// Bytes in some time, as bytes per second.
fn per_second(bytes: u64, time: Duration) -> u64 {
    let nanos = time.as_nanos().max(1);
    u64::try_from(u128::from(bytes) * 1_000_000_000 / nanos).unwrap_or(u64::MAX)
}

/// The bytes that `rate` (bytes per second) gives in `time`.
fn of_time(rate: u64, time: Duration) -> u64 {
    u64::try_from(u128::from(rate) * time.as_nanos() / 1_000_000_000).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use byway_wire::seeded_random::mixed;
    use proptest::prelude::*;

    const PACKET: u64 = 1_200;
    const MEBI: u64 = 1 << 20;

    /// A host whose own traffic is as it is, and a stranger who offers so much. Counters show both.
    struct LendingWorld {
        lending: LendingControl,
        now: Instant,
        counted: InterfaceCounters,
        /// Bytes that passed.
        passed: u64,
        /// Parts of packets that are still to come.
        own: u64,
        offered: u64,
        /// Whether the counters move.
        moves: bool,
    }

    impl LendingWorld {
        fn new(rate: Option<u64>) -> Self {
            let mut lending = LendingControl::new(LendingConfig { rate, measured: true });
            let now = Instant::from_millis(1_000);
            lending.look(now, Some(InterfaceCounters::default()));
            let (counted, passed, own, offered, moves) = (InterfaceCounters::default(), 0, 0, 0, true);
            Self { lending, now, counted, passed, own, offered, moves }
        }

        /// Goes on for so many ms, with these rates. Gives what of the stranger's passed.
        fn run(&mut self, millis: u64, own: u64, offered: u64, line: u64) -> u64 {
            let before = self.passed;
            for _ in 0..millis {
                self.now += Duration::from_millis(1);
                if self.now.as_nanos().is_multiple_of(20_000_000) {
                    self.lending.look(self.now, Some(self.counted));
                }
                (self.own, self.offered) = (self.own + own / 1_000, self.offered + offered / 1_000);
                let mut room = line / 1_000 + PACKET;
                while self.own >= PACKET && room >= PACKET {
                    (self.own, room) = (self.own - PACKET, room - PACKET);
                    self.count(PACKET, 0);
                }
                self.own = self.own.min(10 * PACKET);
                while self.offered >= PACKET {
                    self.offered -= PACKET;
                    self.lending.arrived(PACKET);
                    let passes = room >= PACKET && self.lending.admit(self.now, PACKET);
                    self.passed += if passes { PACKET } else { 0 };
                    self.lending.up.relayed(if passes { PACKET } else { 0 }, u64::from(passes));
                    room -= if passes { PACKET } else { 0 };
                    self.count(if passes { PACKET } else { 0 }, PACKET);
                }
            }
            self.passed - before
        }

        fn count(&mut self, sent: u64, received: u64) {
            if self.moves {
                self.counted.sent += sent + if sent > 0 { HEADER_BYTES } else { 0 };
                self.counted.received += received + if received > 0 { HEADER_BYTES } else { 0 };
            }
        }
    }

    #[test]
    fn a_transfer_of_its_own_that_begins_at_full_speed_has_the_line_within_50_ms() {
        for rate in [Some(MEBI), Some(5 * MEBI), None] {
            let mut world = LendingWorld::new(rate);
            // Idle: strangers get the lent rate. A line of 1 MiB/s shows no more.
            world.run(30_000, 0, MEBI, MEBI);
            let idle = world.run(5_000, 0, MEBI, MEBI);
            assert!(idle >= 5 * MEBI * 8 / 10, "{rate:?}: {idle}");
            let first = world.run(60, MEBI, MEBI, 100 * MEBI);
            assert!(first <= MEBI * 60 / 1_000, "{rate:?}: {first}");
            let then = world.run(10_000, MEBI, MEBI, MEBI);
            assert!(then <= MEBI / 100, "{rate:?}: {then}");
            // A second and a half after its end the stranger has it again.
            world.run(2_000, 0, MEBI, MEBI);
            let again = world.run(5_000, 0, MEBI, MEBI);
            assert!(again >= 5 * MEBI * 8 / 10, "{rate:?}: {again}");
        }
    }

    /// Bytes of a stranger that pass in 20 s. An idle host lends more than its line of 1 MiB/s. Its
    /// interface has a queue of 200 ms, of which a stranger may fill `most` bytes. The stranger
    /// sends twice what the line carries, and pauses for `pause` ms of each 100.
    fn passed_by_a_queue(pause: u64, most: impl Fn(&LendingControl) -> u64) -> u64 {
        let mut world = LendingWorld::new(Some(5 * MEBI));
        let (mut waiting, mut room, mut passed) = (0, 0, 0);
        for milli in 0..20_000 {
            world.now += Duration::from_millis(1);
            if world.now.as_nanos().is_multiple_of(20_000_000) {
                world.lending.look(world.now, Some(world.counted));
            }
            world.offered += if milli % 100 < pause { 0 } else { 2 * MEBI / 1_000 };
            while world.offered >= PACKET {
                world.offered -= PACKET;
                world.lending.arrived(PACKET);
                world.count(0, PACKET);
                if waiting < most(&world.lending) && world.lending.admit(world.now, PACKET) {
                    world.lending.up.relayed(PACKET, 1);
                    waiting += if waiting < MEBI / 5 { PACKET } else { 0 };
                }
            }
            room = (room + MEBI / 1_000).min(2 * PACKET);
            while waiting >= PACKET && room >= PACKET {
                (waiting, room, passed) = (waiting - PACKET, room - PACKET, passed + PACKET);
                world.count(PACKET, 0);
            }
        }
        passed
    }

    #[test]
    fn what_waits_in_the_hosts_own_queue_is_not_taken_for_its_own_traffic() {
        let all = passed_by_a_queue(0, |_| u64::MAX);
        for pause in [0, 10, 30, 50] {
            let limited = passed_by_a_queue(pause, LendingControl::queue);
            assert!(limited >= 20 * MEBI * (100 - pause) / 100 * 8 / 10, "{pause}: {limited}");
            assert!(all < limited / 2, "{all}: what waits for long looks like the host's own");
        }
    }

    #[test]
    fn a_chat_of_its_own_takes_its_own_part_alone() {
        let mut world = LendingWorld::new(Some(MEBI));
        world.run(5_000, 20 << 10, MEBI, 10 * MEBI);
        let passed = world.run(10_000, 20 << 10, MEBI, 10 * MEBI);
        assert!((8 * MEBI..=10 * MEBI - (200 << 10)).contains(&passed), "{passed}");
    }

    #[test]
    fn the_rate_is_found_by_a_slow_climb_and_no_stranger_makes_it_higher_than_the_line() {
        let mut world = LendingWorld::new(None);
        let second = world.run(1_000, 0, 100 * MEBI, MEBI);
        assert!(second <= INITIAL_CLIMB_RATE * 2, "{second}");
        world.run(60_000, 0, 100 * MEBI, MEBI);
        let state = world.lending.state();
        assert!((MEBI * 3 / 4..=4 * MEBI).contains(&state.up), "{state:?}");
        assert!(world.lending.up.carried.sustained() <= MEBI + MEBI / 3, "{:?}", world.lending);
        // Another line: from the beginning.
        world.lending.move_on();
        assert!(world.run(500, 0, MEBI, MEBI) <= INITIAL_CLIMB_RATE);
    }

    #[test]
    fn a_stranger_who_sends_a_hundred_times_as_much_gets_no_more_and_no_burst() {
        let mut world = LendingWorld::new(Some(MEBI));
        world.run(2_000, 0, 100 * MEBI, 1_000 * MEBI);
        for _ in 0..200 {
            let passed = world.run(50, 0, 100 * MEBI, 1_000 * MEBI);
            assert!(passed <= MEBI * 50 / 1_000 + of_time(MEBI, BUCKET_DEPTH_TIME) + PACKET, "{passed}");
        }
    }

    #[test]
    fn without_a_look_that_is_fresh_nothing_is_lent() {
        let mut world = LendingWorld::new(Some(MEBI));
        assert!(world.run(1_000, 0, MEBI, MEBI) > 0);
        for asleep in [51, 3_000, 86_400_000] {
            // The host slept, or the loop was held up.
            world.now += Duration::from_millis(asleep);
            assert!(!world.lending.admit(world.now, PACKET));
            world.lending.look(world.now, Some(world.counted));
            world.now += Duration::from_millis(1);
            assert!(world.run(1_000, 0, MEBI, MEBI) > MEBI / 2, "{asleep}");
        }
        world.lending.look(world.now, None);
        assert_eq!(world.lending.state().trouble, Some(LendingTrouble::Unreadable));
        assert!(!world.lending.admit(world.now, PACKET));
    }

    #[test]
    fn counters_that_wrap_or_begin_anew_cost_a_look() {
        let mut world = LendingWorld::new(Some(MEBI));
        world.run(1_000, 0, MEBI, MEBI);
        world.counted = InterfaceCounters { sent: 5, received: 7 };
        world.lending.look(world.now, Some(world.counted));
        assert!(!world.lending.admit(world.now, PACKET));
        assert_eq!(world.lending.state().trouble, None);
        assert!(world.run(1_000, 0, MEBI, MEBI) > MEBI / 2);
    }

    #[test]
    fn counters_that_stand_still_end_it_for_half_a_minute() {
        let mut world = LendingWorld::new(Some(MEBI));
        world.run(1_000, 0, MEBI, MEBI);
        world.moves = false;
        world.run(1_100, 0, MEBI, MEBI);
        assert_eq!(world.lending.state().trouble, Some(LendingTrouble::Still));
        assert_eq!(world.run(28_000, 0, MEBI, MEBI), 0);
        world.moves = true;
        world.run(30_000, 0, MEBI, MEBI);
        assert!(world.run(5_000, 0, MEBI, MEBI) > 4 * MEBI);
    }

    #[test]
    fn loopback_is_no_line() {
        let (mut any, now) =
            (LendingControl::new(LendingConfig { rate: None, measured: false }), Instant::from_millis(5));
        assert!((0..1_000).all(|_| any.admit(now, 1 << 20)));
        let mut some = LendingControl::new(LendingConfig { rate: Some(MEBI), measured: false });
        let passed = (0..1_000).filter(|ms| some.admit(now + Duration::from_millis(*ms), 10_000)).count();
        assert!((95..=110).contains(&passed), "{passed}");
    }

    proptest! {
        /// Whatever the host itself does, strangers never get more than the lent rate leaves, as of
        /// 50 ms before.
        #[test]
        fn it_stays_behind_whatever_the_host_does(seed: u64, rate in (64_u64 << 10)..(4 * MEBI), fixed: bool) {
            let mut world = LendingWorld::new(fixed.then_some(rate));
            let mut own_before = u64::MAX;
            for step in 0..400 {
                // Bursts and pauses of any length.
                let chance = mixed(seed ^ (step / (1 + seed % 7)));
                let own = if chance.is_multiple_of(3) { 0 } else { chance % (2 * rate) };
                let lent = world.lending.up.quiet();
                let passed = world.run(50, own, 2 * rate, 100 * MEBI);
                if step > 2 && own == own_before {
                    let left = lent.saturating_sub(own) / 20;
                    prop_assert!(passed <= left + MIN_BUCKET_DEPTH_BYTES + of_time(lent, BUCKET_DEPTH_TIME) + lent / 300, "{} {} {}", step, passed, left);
                }
                own_before = own;
            }
        }
    }
}
