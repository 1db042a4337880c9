//! Limits on the bytes that a stream takes from the application, and the queue of streams that wait
//! to be writable. Bytes that the peer's flow control does not permit yet take at most half of the
//! streams' memory. Otherwise streams that the peer does not read would block all others.

use super::send_limits::OutgoingLimits;
use super::streams::{OutStream, WriteAllowance, WriteBlock};
use alloc::collections::{BTreeMap, VecDeque};
use byway_wire::StreamId;

/// Bytes beyond the peer's limit that a stream keeps, so that there is something to send as soon as
/// the limit moves.
const MAX_AHEAD_BYTES: usize = 64 << 10;

/// Returns the bytes that a stream may hold beyond the peer's limit. It now holds `own` of them,
/// and all streams together `beyond`.
fn ahead(own: usize, beyond: usize, most: usize) -> usize {
    (own + most.saturating_sub(beyond)).min(MAX_AHEAD_BYTES)
}

/// The bytes that lie beyond the peer's limits, and the streams that wait for memory.
#[derive(Debug, Default)]
pub(super) struct WriteLimits {
    /// Bytes of streams beyond the streams' own limits.
    beyond: usize,
    /// Streams of which a write was cut short, and that only wait for memory.
    waiting: VecDeque<StreamId>,
}

impl WriteLimits {
    fn allowance(&self, stream: &OutStream, limits: &OutgoingLimits) -> WriteAllowance {
        let ahead = ahead(stream.beyond, self.beyond, limits.share() / 2);
        WriteAllowance { share: limits.memory / 4, ahead }
    }

    /// Notes the condition that a stream waits for, unless it is already in the queue for memory.
    fn wait(&mut self, id: StreamId, stream: &mut OutStream, what: WriteBlock) {
        if stream.wait != WriteBlock::Memory {
            stream.wait = what;
            if what == WriteBlock::Memory {
                self.waiting.push_back(id);
            }
        }
    }

    /// Updates the counts after a change to a stream, and queues the stream if it takes bytes
    /// again.
    pub fn settle(&mut self, id: StreamId, stream: &mut OutStream, limits: &OutgoingLimits) {
        let beyond = stream.end().saturating_sub(stream.limit) as usize;
        self.beyond = self.beyond + beyond - core::mem::replace(&mut stream.beyond, beyond);
        if stream.wait == WriteBlock::Limit && stream.is_worth_while(self.allowance(stream, limits)) {
            self.wait(id, stream, WriteBlock::Memory);
        }
    }

    /// Returns how many of `wanted` bytes a stream takes, where all streams together take `room`.
    /// The stream waits if these are fewer.
    pub fn of(
        &mut self,
        id: StreamId,
        stream: &mut OutStream,
        wanted: usize,
        room: usize,
        limits: &OutgoingLimits,
    ) -> usize {
        let own = stream.room(self.allowance(stream, limits));
        let taken = wanted.min(room).min(own);
        if taken < wanted {
            self.wait(id, stream, if own <= room { WriteBlock::Limit } else { WriteBlock::Memory });
        }
        taken
    }

    /// Removes the next stream that waits for memory. Returns the stream, or `Some(None)` if it
    /// takes no bytes now. `None`: none waits.
    pub fn next(
        &mut self,
        streams: &mut BTreeMap<StreamId, OutStream>,
        limits: &OutgoingLimits,
    ) -> Option<Option<StreamId>> {
        let id = self.waiting.pop_front()?;
        let Some(stream) = streams.get_mut(&id).filter(|stream| !stream.finished) else { return Some(None) };
        let has_room = stream.room(self.allowance(stream, limits)) > 0;
        stream.wait = if has_room { WriteBlock::Nothing } else { WriteBlock::Limit };
        Some(has_room.then_some(id))
    }

    /// Whether anybody waits for memory.
    pub fn is_awaited(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether any stream has bytes beyond the peer's limit.
    pub const fn is_beyond(&self) -> bool {
        self.beyond > 0
    }

    /// Asserts that bytes beyond limits are counted, and that streams which wait for memory are
    /// queued.
    #[cfg(debug_assertions)]
    pub fn check(&self, streams: &BTreeMap<StreamId, OutStream>) {
        let beyond = streams.values().map(|stream| stream.beyond).sum::<usize>();
        debug_assert_eq!(self.beyond, beyond, "bytes beyond limits are counted");
        // A stream that is finished takes no bytes, and no longer waits.
        let waits = |stream: &OutStream| stream.wait == WriteBlock::Memory && !stream.finished;
        let standing = self.waiting.iter().filter(|id| streams.get(id).is_some_and(waits)).count();
        let waiting = streams.values().filter(|stream| waits(stream)).count();
        debug_assert!(waiting <= standing, "some that wait for memory do not stand in the queue: {self:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::super::{OutEvent, Outgoing};
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;

    fn write(out: &mut Outgoing, id: u32, length: usize) -> usize {
        out.open_stream(StreamId(id));
        out.write(StreamId(id), &vec![1; length])
    }

    fn writable(out: &mut Outgoing) -> Vec<u32> {
        let events = core::iter::from_fn(|| out.next_event());
        events
            .map(|event| if let OutEvent::Writable(id) = event { id.0 } else { panic!("{event:?}") })
            .collect()
    }

    /// Sends and acknowledges all that may go.
    fn flow(out: &mut Outgoing) {
        while out.wants_to_send() {
            let (mut buffer, mut carried) = ([0; 1_200], smallvec::SmallVec::new());
            out.fill(&mut byway_wire::Writer::new(&mut buffer), &mut carried);
            carried.iter().for_each(|carried| out.on_acked(carried));
        }
    }

    #[test]
    fn streams_that_the_peer_does_not_read_leave_half_of_the_memory() {
        let mut out = Outgoing::new(OutgoingLimits { memory: 4 << 20, ..OutgoingLimits::default() });
        out.on_max_data(1 << 40);
        out.set_initial_stream_limit(4_000);
        for id in 0..10_000 {
            write(&mut out, 2 * id, 100_000);
            flow(&mut out);
        }
        assert!(out.memory() <= 3 << 19, "{} of 3 MiB", out.memory());
        assert!(writable(&mut out).is_empty());
        // One that is read goes on.
        let id = StreamId(20_000);
        assert_eq!(write(&mut out, id.0, 100_000), 4_000, "nothing is left to go ahead");
        for limit in 1..100 {
            flow(&mut out);
            out.on_max_stream_data(id, 4_000 + 2_000 * limit);
            assert_eq!(writable(&mut out), [id.0]);
            assert_eq!(write(&mut out, id.0, 100_000), 2_000);
        }
    }

    #[test]
    fn who_waits_for_memory_is_told_in_turn_and_only_while_there_is_some() {
        let mut out = Outgoing::new(OutgoingLimits { memory: 1 << 20, ..OutgoingLimits::default() });
        out.on_max_data(768 << 10);
        out.set_initial_stream_limit(1 << 30);
        let taken: Vec<_> = (0..100).map(|id| write(&mut out, 2 * id, 64 << 10)).collect();
        assert!(
            taken[..12].iter().all(|taken| *taken == 64 << 10) && taken[12..].iter().all(|taken| *taken == 0)
        );
        assert!(writable(&mut out).is_empty() && !out.has_news());
        flow(&mut out);
        out.on_max_data(1 << 40);
        // Each fills its place at once; those that find none are not bothered.
        let mut told = 0;
        while let Some(OutEvent::Writable(id)) = out.next_event() {
            assert_eq!(id, StreamId(2 * (12 + told)));
            assert_eq!(out.write(id, &vec![1; 64 << 10]), 64 << 10);
            told += 1;
        }
        assert_eq!(told, 11, "a sixteenth is left");
        flow(&mut out);
        // Nobody writes now: all hear of it, and once.
        assert_eq!(writable(&mut out), (23..100).map(|index| 2 * index).collect::<Vec<_>>());
        assert!(!out.has_news());
    }
}
