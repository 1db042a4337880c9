//! Optional, off by default: the entry gateway keeps packets until the receiver acknowledges them,
//! and sends a lost packet again (Harp, III.D). The sender then sees no loss, and does not slow
//! down. Only the receiver acknowledges, never a gateway.

use crate::tcp_header::before;
use alloc::collections::BTreeMap;
use byway_wire::{Duration, Instant};

/// The limits of a cache: its memory, and its attempts to repair losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheLimits {
    /// The most bytes of all flows. A packet beyond it is not kept.
    pub bytes: usize,
    /// The most bytes of one flow.
    pub flow_bytes: usize,
    /// Duplicate ACKs that count as a loss if no loss was reported.
    pub duplicates: u32,
    /// Number of times that a packet is sent again before its sender must repeat it.
    pub tries: u32,
}

impl Default for CacheLimits {
    fn default() -> Self {
        Self { bytes: 32 << 20, flow_bytes: 4 << 20, duplicates: 3, tries: 3 }
    }
}

/// The counters of a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounters {
    /// The number of packets kept.
    pub kept: u64,
    /// Packets that did not fit.
    pub unkept: u64,
    /// Number of packets that were sent again.
    pub resent: u64,
    /// Duplicate ACKs kept from the sender.
    pub suppressed: u64,
}

/// The action on an ACK on its way to the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckAction {
    /// The ACK goes on to the sender.
    Pass,
    /// The ACK is dropped, because the loss that it reports is being repaired.
    Suppress,
    /// The ACK is dropped. The packet with this [number](DataPacket::number) is to be [sent
    /// again](Cache::resend).
    Mend(u32),
}

/// A packet with data that the entry sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataPacket<P> {
    /// The number under which a loss is reported: the packet's sequence number under its label.
    pub number: u32,
    /// The TCP sequence number of the first byte.
    pub sequence: u32,
    /// The TCP sequence number after the last byte.
    pub end: u32,
    /// The size of the packet in bytes.
    pub bytes: usize,
    /// The packet itself.
    pub packet: P,
}

/// The fields of an ACK, from its [`Segment`](crate::Segment).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// The byte expected next.
    pub acknowledgment: u32,
    /// The window field, not scaled.
    pub window: u16,
    /// Whether the ACK has neither data, SYN nor FIN. Only such an ACK is a duplicate (RFC 5681,
    /// section 2).
    pub pure: bool,
}

#[derive(Debug)]
struct CachedPacket<P> {
    sent: DataPacket<P>,
    tries: u32,
    /// The end of the time in which the loss is kept from the sender. `None`: the packet was not
    /// sent again.
    mending: Option<Instant>,
}

#[derive(Debug)]
struct CachedFlow<P> {
    /// The kept packets by sequence number.
    kept: BTreeMap<u32, CachedPacket<P>>,
    numbers: BTreeMap<u32, u32>,
    /// The sequence number up to which everything is acknowledged.
    origin: u32,
    window: u16,
    duplicates: u32,
    bytes: usize,
}

/// The cache of an entry gateway. Flows are small numbers
/// ([`FlowId::slot`](crate::flow_table::FlowId::slot)), one direction of each.
#[derive(Debug)]
pub struct Cache<P> {
    limits: CacheLimits,
    flows: BTreeMap<u32, CachedFlow<P>>,
    bytes: usize,
    counters: CacheCounters,
}

impl<P> Cache<P> {
    /// An empty cache.
    #[must_use]
    pub const fn new(limits: CacheLimits) -> Self {
        let counters = CacheCounters { kept: 0, unkept: 0, resent: 0, suppressed: 0 };
        Self { limits, flows: BTreeMap::new(), bytes: 0, counters }
    }

    /// The number of bytes kept.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// The counts so far.
    #[must_use]
    pub const fn counters(&self) -> CacheCounters {
        self.counters
    }

    /// Stores a packet that was sent. If the host sends the same bytes again, the new packet
    /// replaces the old one.
    pub fn on_sent(&mut self, flow: u32, sent: DataPacket<P>) {
        let state = self.flows.entry(flow).or_insert_with(|| CachedFlow {
            kept: BTreeMap::new(),
            numbers: BTreeMap::new(),
            origin: sent.sequence,
            window: 0,
            duplicates: 0,
            bytes: 0,
        });
        if before(sent.sequence, state.origin) {
            return;
        }
        if let Some(old) = state.kept.remove(&sent.sequence) {
            state.forget(&old.sent, &mut self.bytes);
        }
        if state.bytes + sent.bytes > self.limits.flow_bytes || self.bytes + sent.bytes > self.limits.bytes {
            self.counters.unkept += 1;
            return;
        }
        self.counters.kept += 1;
        state.bytes += sent.bytes;
        self.bytes += sent.bytes;
        state.numbers.insert(sent.number, sent.sequence);
        state.kept.insert(sent.sequence, CachedPacket { sent, tries: 0, mending: None });
    }

    /// Takes in an ACK of the receiver.
    pub fn on_ack(&mut self, now: Instant, flow: u32, ack: Ack) -> AckAction {
        let Some(state) = self.flows.get_mut(&flow) else { return AckAction::Pass };
        if ack.acknowledgment != state.origin {
            if before(state.origin, ack.acknowledgment) {
                state.advance(ack.acknowledgment, &mut self.bytes);
            }
            state.window = ack.window;
            return AckAction::Pass;
        }
        let duplicate = ack.pure && ack.window == state.window;
        state.window = ack.window;
        let Some(missing) = state.kept.get(&ack.acknowledgment).filter(|_| duplicate) else {
            return AckAction::Pass;
        };
        state.duplicates = state.duplicates.saturating_add(1);
        let fate = match missing.mending {
            Some(until) if now < until => AckAction::Suppress,
            // It was sent again, and in vain.
            _ if missing.tries >= self.limits.tries => AckAction::Pass,
            Some(_) => AckAction::Mend(missing.sent.number),
            None if state.duplicates >= self.limits.duplicates => AckAction::Mend(missing.sent.number),
            None => AckAction::Suppress,
        };
        self.counters.suppressed += u64::from(fate != AckAction::Pass);
        fate
    }

    /// Returns the kept packet `number`, which was lost, to be sent again as number `again`. For
    /// the time `patience`, duplicate ACKs for it do not reach the sender. `None` if it was
    /// acknowledged, not kept, or resent too often.
    pub fn resend(
        &mut self,
        now: Instant,
        flow: u32,
        number: u32,
        again: u32,
        patience: Duration,
    ) -> Option<&P> {
        let state = self.flows.get_mut(&flow)?;
        let sequence = *state.numbers.get(&number)?;
        let kept = state.kept.get_mut(&sequence)?;
        if kept.tries >= self.limits.tries {
            return None;
        }
        kept.tries += 1;
        kept.mending = Some(now + patience);
        kept.sent.number = again;
        state.numbers.remove(&number);
        state.numbers.insert(again, sequence);
        self.counters.resent += 1;
        Some(&kept.sent.packet)
    }

    /// Forgets the packets of a flow.
    pub fn clear(&mut self, flow: u32) {
        if let Some(state) = self.flows.remove(&flow) {
            self.bytes -= state.bytes;
        }
    }
}

impl<P> CachedFlow<P> {
    fn advance(&mut self, acknowledgment: u32, bytes: &mut usize) {
        self.origin = acknowledgment;
        self.duplicates = 0;
        // The oldest is the one furthest behind in the circle, which need not be the smallest
        // number.
        while let Some(oldest) = self
            .oldest()
            .filter(|oldest| self.kept.get(oldest).is_some_and(|kept| !before(acknowledgment, kept.sent.end)))
        {
            if let Some(kept) = self.kept.remove(&oldest) {
                self.forget(&kept.sent, bytes);
            }
        }
    }

    /// The oldest kept sequence number, in the circular order of TCP.
    fn oldest(&self) -> Option<u32> {
        let behind = self.origin.wrapping_sub(1 << 31);
        self.kept.range(behind..).chain(self.kept.range(..behind)).next().map(|(sequence, _)| *sequence)
    }

    fn forget(&mut self, sent: &DataPacket<P>, bytes: &mut usize) {
        self.numbers.remove(&sent.number);
        self.bytes -= sent.bytes;
        *bytes -= sent.bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PATIENCE: Duration = Duration::from_millis(100);

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    /// Packets of 1000 bytes from `start` on, the number telling which.
    fn filled(start: u32, packets: u32) -> Cache<u32> {
        let mut cache = Cache::new(CacheLimits::default());
        for number in 0..packets {
            let sequence = start.wrapping_add(number * 1_000);
            let end = sequence.wrapping_add(1_000);
            cache.on_sent(7, DataPacket { number, sequence, end, bytes: 1_040, packet: number });
        }
        cache
    }

    fn ack(cache: &mut Cache<u32>, millis: u64, acknowledgment: u32) -> AckAction {
        cache.on_ack(at(millis), 7, Ack { acknowledgment, window: 500, pure: true })
    }

    #[test]
    fn a_loss_that_is_told_is_mended_and_its_duplicates_are_kept_from_the_sender() {
        let start = u32::MAX - 1_500;
        let mut cache = filled(start, 5);
        let second = start.wrapping_add(1_000);
        assert_eq!(ack(&mut cache, 0, second), AckAction::Pass);
        assert_eq!((cache.bytes(), cache.resend(at(1), 7, 1, 5, PATIENCE)), (4 * 1_040, Some(&1)));
        assert_eq!(
            (ack(&mut cache, 2, second), ack(&mut cache, 100, second)),
            (AckAction::Suppress, AckAction::Suppress)
        );
        assert_eq!(cache.resend(at(101), 7, 1, 6, PATIENCE), None, "it goes by another number now");
        let fourth = start.wrapping_add(3_000);
        assert_eq!((ack(&mut cache, 105, fourth), cache.bytes()), (AckAction::Pass, 2 * 1_040));
        assert_eq!(cache.resend(at(106), 7, 5, 6, PATIENCE), None, "it was acknowledged");
        assert_eq!((cache.counters().resent, cache.counters().suppressed), (1, 2));
    }

    #[test]
    fn without_word_of_a_loss_the_third_duplicate_is_one() {
        let mut cache = filled(1_000, 3);
        assert_eq!(ack(&mut cache, 0, 2_000), AckAction::Pass);
        let fates = [1, 2, 3].map(|millis| ack(&mut cache, millis, 2_000));
        assert_eq!(fates, [AckAction::Suppress, AckAction::Suppress, AckAction::Mend(1)]);
        // In vain, until it is the sender's.
        for again in 10..13 {
            assert!(
                cache
                    .resend(at(3), 7, if again == 10 { 1 } else { again - 1 }, again, Duration::ZERO)
                    .is_some()
            );
        }
        assert_eq!(cache.resend(at(4), 7, 12, 13, PATIENCE), None);
        assert_eq!(ack(&mut cache, 5, 2_000), AckAction::Pass);
    }

    #[test]
    fn what_is_no_duplicate_or_complains_of_nothing_kept_goes_on() {
        let mut cache = filled(1_000, 3);
        ack(&mut cache, 0, 2_000);
        let with = |cache: &mut Cache<u32>, window, pure| {
            cache.on_ack(at(1), 7, Ack { acknowledgment: 2_000, window, pure })
        };
        assert_eq!(
            (with(&mut cache, 600, true), with(&mut cache, 600, false)),
            (AckAction::Pass, AckAction::Pass)
        );
        assert_eq!(ack(&mut cache, 1, 1_000), AckAction::Pass, "an old one");
        assert_eq!(
            (ack(&mut cache, 1, 4_000), ack(&mut cache, 1, 4_000)),
            (AckAction::Pass, AckAction::Pass)
        );
        assert_eq!(cache.on_ack(at(1), 8, Ack { acknowledgment: 0, window: 0, pure: true }), AckAction::Pass);
        cache.clear(7);
        assert_eq!(cache.bytes(), 0);
    }

    #[test]
    fn what_the_host_sends_again_is_kept_once() {
        let mut cache = filled(1_000, 2);
        cache.on_sent(7, DataPacket { number: 9, sequence: 1_000, end: 2_000, bytes: 500, packet: 9 });
        assert_eq!((cache.bytes(), cache.resend(at(0), 7, 0, 10, PATIENCE)), (1_540, None));
        assert_eq!(cache.resend(at(0), 7, 9, 10, PATIENCE), Some(&9));
    }

    proptest! {
        #[test]
        fn it_is_bounded_and_forgets_what_was_acknowledged(
            start: u32, steps in prop::collection::vec((0u32..3, 0u32..40, 0u32..40, 1usize..900), 1..200)
        ) {
            let limits = CacheLimits { bytes: 5_000, flow_bytes: 3_000, ..CacheLimits::default() };
            let mut cache = Cache::new(limits);
            for (number, (flow, sequence, acked, bytes)) in (0..).zip(steps) {
                let sequence = start.wrapping_add(sequence * 100);
                cache.on_sent(flow, DataPacket { number, sequence, end: sequence.wrapping_add(100), bytes, packet: () });
                if number % 4 == 0 {
                    let acknowledgment = start.wrapping_add(acked * 100);
                    cache.on_ack(at(0), flow, Ack { acknowledgment, window: 5, pure: true });
                }
                prop_assert!(cache.bytes() <= limits.bytes);
                let mut all = 0;
                for state in cache.flows.values() {
                    prop_assert!(state.bytes <= limits.flow_bytes && state.numbers.len() == state.kept.len());
                    prop_assert!(state.kept.values().all(|kept| before(state.origin, kept.sent.end)));
                    prop_assert_eq!(state.bytes, state.kept.values().map(|kept| kept.sent.bytes).sum::<usize>());
                    all += state.bytes;
                }
                prop_assert_eq!(all, cache.bytes());
            }
        }
    }
}
