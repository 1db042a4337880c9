//! How long frames of streams wait, from their arrival until all bytes before them have arrived.

use super::out_of_order::NewRanges;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use byway_wire::{Instant, StreamId};

/// The longest wait that is told from longer ones, in milliseconds.
const MAX_WAIT_MS: usize = 10_000;
/// The most frames that are noted while they wait. Further ones are not measured.
const MAX_WAITING_FRAMES: usize = 1 << 17;

/// The frames that wait, and a histogram of the waits that are over.
#[derive(Debug, Default)]
pub(super) struct OrderWaits {
    /// The arrival of each run that waits, by its stream and its first byte.
    waiting: BTreeMap<(StreamId, u64), Instant>,
    /// The number of waits of each whole number of milliseconds.
    counts: Vec<u64>,
}

impl OrderWaits {
    /// Notes the new runs of a frame, after which all bytes below `prefix` have arrived.
    pub(super) fn on_frame(&mut self, now: Instant, id: StreamId, runs: &NewRanges, prefix: u64) {
        for &(start, _) in runs {
            if start < prefix {
                self.count(0);
            } else if self.waiting.len() < MAX_WAITING_FRAMES {
                self.waiting.insert((id, start), now);
            }
        }
        while let Some((&first, &arrived)) = self.waiting.range((id, 0)..(id, prefix)).next() {
            self.waiting.remove(&first);
            self.count(usize::try_from(now.since(arrived).as_millis()).unwrap_or(MAX_WAIT_MS));
        }
    }

    fn count(&mut self, millis: usize) {
        let place = millis.min(MAX_WAIT_MS);
        if self.counts.len() <= place {
            self.counts.resize(place + 1, 0);
        }
        if let Some(count) = self.counts.get_mut(place) {
            *count += 1;
        }
    }

    /// The waits that occurred: whole milliseconds, and how many.
    pub(super) fn histogram(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        (0..).zip(self.counts.iter().copied()).filter(|(_, count)| *count > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smallvec::smallvec;

    #[test]
    fn a_frame_waits_until_all_before_it_has_come() {
        let mut waits = OrderWaits::default();
        let id = StreamId(4);
        let at = Instant::from_millis;
        waits.on_frame(at(10), id, &smallvec![(0, 100)], 100);
        waits.on_frame(at(12), id, &smallvec![(200, 300)], 100);
        waits.on_frame(at(15), id, &smallvec![(300, 400)], 100);
        waits.on_frame(at(16), StreamId(8), &smallvec![(100, 200)], 0);
        waits.on_frame(at(20), id, &smallvec![(100, 200)], 400);
        assert_eq!(waits.histogram().collect::<Vec<_>>(), [(0, 2), (5, 1), (8, 1)]);
        waits.on_frame(at(60_000), StreamId(8), &smallvec![(0, 100)], 200);
        assert_eq!(waits.histogram().last(), Some((10_000, 1)));
    }
}
