//! The data that an application sends over a session, as objects.

use crate::setup::Demand;
use byway_engine::data::Outgoing;
use byway_wire::time::nanos;
use byway_wire::{Duration, Instant, ObjectId};

/// Bytes of an object without an end: more than any simulation moves.
const ENDLESS_BYTES: u64 = 1 << 50;
/// The time whose data a source writes at once, but no less than about a packet.
const CHUNK_TIME: Duration = Duration::from_millis(10);
/// Bytes of the smallest chunk: about a packet.
const MIN_CHUNK_BYTES: u64 = 1_400;
/// Seconds of a source's rate that may be unacknowledged. With more the source is blocked, and
/// drops its data meanwhile.
const BACKLOG_SECONDS: u64 = 1;
/// Bytes that may be unacknowledged at any rate.
const MIN_BACKLOG_BYTES: u64 = 64 << 10;
/// A byte in units of the credit, which counts bits and nanoseconds of a second.
const CREDIT_PER_BYTE: u128 = 8 * 1_000_000_000;

/// The data to send.
#[derive(Debug)]
pub(super) enum Supply {
    /// A number of bytes, in one object.
    Bulk { size: u64, given: bool },
    /// A rate that follows the clock.
    Source(RateSource),
}

/// A source that writes at a rate, which changes at known times.
#[derive(Debug)]
pub(super) struct RateSource {
    steps: Vec<(Instant, u64)>,
    /// Steps that are in force, or have been.
    past: usize,
    rate: u64,
    at: Instant,
    /// Data that the source has produced and not written, in billionths of a bit.
    credit: u128,
    objects: u32,
    written: u64,
}

impl Supply {
    /// Makes a supply of bytes from `demand`.
    pub(super) fn new(demand: &Demand) -> Self {
        match demand {
            Demand::Unlimited => Self::Bulk { size: ENDLESS_BYTES, given: false },
            Demand::Size(size) => Self::Bulk { size: *size, given: false },
            Demand::Rate(steps) => Self::Source(RateSource {
                steps: steps.iter().map(|(at, rate)| (Instant::ZERO + *at, *rate)).collect(),
                past: 0,
                rate: 0,
                at: Instant::ZERO,
                credit: 0,
                objects: 0,
                written: 0,
            }),
        }
    }

    /// Begins to count when the connection is made. Earlier data of the source are lost.
    pub(super) fn begin(&mut self, now: Instant) {
        if let Self::Source(source) = self {
            source.advance(now);
            source.credit = 0;
        }
    }

    /// Adds the data that are ready.
    pub(super) fn fill(&mut self, now: Instant, out: &mut Outgoing) {
        match self {
            Self::Bulk { given: true, .. } => {}
            Self::Bulk { size, given } => {
                out.add_object(ObjectId(0), *size);
                *given = true;
            }
            Self::Source(source) => source.fill(now, out),
        }
    }

    /// Whether nothing more will come.
    pub(super) const fn is_over(&self) -> bool {
        matches!(self, Self::Bulk { given: true, .. })
    }

    /// When there is more.
    pub(super) fn due(&self) -> Option<Instant> {
        match self {
            Self::Bulk { .. } => None,
            Self::Source(source) => source.due(),
        }
    }
}

impl RateSource {
    fn chunk(&self) -> u64 {
        let bits = u128::from(self.rate) * u128::from(nanos(CHUNK_TIME));
        u64::try_from(bits / CREDIT_PER_BYTE).unwrap_or(u64::MAX).max(MIN_CHUNK_BYTES)
    }

    fn advance(&mut self, now: Instant) {
        while self.at < now {
            let next = self.steps.get(self.past).map_or(Instant::FAR_FUTURE, |step| step.0);
            let until = next.min(now).max(self.at);
            self.credit += u128::from(self.rate) * u128::from(nanos(until.since(self.at)));
            self.at = until;
            self.step();
        }
        self.step();
    }

    fn step(&mut self) {
        while let Some((at, rate)) = self.steps.get(self.past)
            && *at <= self.at
        {
            self.rate = *rate;
            self.past += 1;
        }
    }

    fn fill(&mut self, now: Instant, out: &mut Outgoing) {
        self.advance(now);
        let chunk = self.chunk();
        let backlog = (self.rate / 8 * BACKLOG_SECONDS).max(MIN_BACKLOG_BYTES);
        while self.credit >= u128::from(chunk) * CREDIT_PER_BYTE {
            self.credit -= u128::from(chunk) * CREDIT_PER_BYTE;
            if self.written - out.progress().acked.min(self.written) + chunk <= backlog {
                out.add_object(ObjectId(self.objects), chunk);
                self.objects += 1;
                self.written += chunk;
            }
        }
    }

    /// When the next chunk is whole, or the rate another.
    fn due(&self) -> Option<Instant> {
        let step = self.steps.get(self.past).map(|step| step.0);
        let missing = (u128::from(self.chunk()) * CREDIT_PER_BYTE).saturating_sub(self.credit);
        let wait = missing.div_ceil(u128::from(self.rate.max(1)));
        let whole = (self.rate > 0)
            .then(|| self.at + Duration::from_nanos(u64::try_from(wait).unwrap_or(u64::MAX).max(1)));
        [step, whole].into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use byway_engine::data::OutgoingLimits;

    #[test]
    fn a_source_writes_what_its_steps_say() {
        let at = Instant::from_millis;
        let demand = Demand::Rate(vec![
            (Duration::from_secs(1), 800_000),
            (Duration::from_secs(2), 0),
            (Duration::from_secs(3), 1_600_000),
        ]);
        let mut supply = Supply::new(&demand);
        let mut out = Outgoing::new(OutgoingLimits::default());
        supply.begin(Instant::ZERO);
        let (mut now, mut turns) = (Instant::ZERO, 0);
        let mut written_at_three = 0;
        while let Some(due) = supply.due().filter(|due| *due <= at(3_500)) {
            assert!(due > now, "{due:?} after {now:?}");
            now = due;
            supply.fill(now, &mut out);
            let Supply::Source(source) = &supply else { unreachable!("a rate is a source") };
            if now <= at(3_000) {
                written_at_three = source.written;
            }
            turns += 1;
        }
        let Supply::Source(source) = supply else { unreachable!("a rate is a source") };
        // Nothing is acknowledged. So it ends at a backlog of a second, which is 100 KB and then
        // 200 KB.
        assert!((98_600..=100_000).contains(&written_at_three), "{written_at_three}");
        assert!((198_000..=200_000).contains(&source.written), "{}", source.written);
        assert!(turns < 140, "{turns}");
    }
}
