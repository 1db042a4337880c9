//! In: a batch of buffers from the system becomes datagrams, one by one, each with the time it
//! arrived.

use crate::clock::Clock;
use crate::socket::Socket;
use crate::statistics::Counters;
use byway_wire::{Datagram, Duration, Ecn, Input, Instant, Local, Machine};
use quinn_udp::{BATCH_SIZE, EcnCodepoint, RecvMeta, UdpSockRef};
use std::array;
use std::io::{self, IoSliceMut};

/// A buffer takes the longest run that the system coalesces.
const BUFFER_BYTES: usize = 65_536;
/// The largest number of bytes that one receive call should bring. It sets the number of buffers of
/// a call, given how full the buffers of the last call were. With more bytes, the first would leave
/// the processor's cache before they are decrypted.
const CALL_BYTES: usize = 512 << 10;

/// The most bytes that one call reads from a TCP connection.
const STREAM_BYTES: usize = 256 << 10;

/// Buffers for one batch, used for every receive call of a driver.
#[derive(Debug)]
pub(crate) struct Inbox {
    bytes: Vec<u8>,
    metas: [RecvMeta; BATCH_SIZE],
    /// Buffers that the next call is given.
    offered: usize,
    converter: StampConverter,
}

/// The result of a receive call.
#[derive(Debug)]
pub(crate) enum ReceiveResult {
    /// The batch was full, so there may be more datagrams.
    Full,
    /// The socket has nothing more.
    Drained,
    /// The call failed.
    Failed(io::Error),
}

impl Inbox {
    pub(crate) fn new() -> Self {
        Self {
            bytes: vec![0; BUFFER_BYTES * BATCH_SIZE],
            metas: [RecvMeta::default(); BATCH_SIZE],
            offered: BATCH_SIZE,
            converter: StampConverter::default(),
        }
    }

    /// Returns a buffer for one read of a TCP connection, of `most` bytes or the largest size.
    pub(crate) fn bytes(&mut self, most: usize) -> &mut [u8] {
        self.bytes.get_mut(..most.clamp(1, STREAM_BYTES)).unwrap_or_default()
    }

    /// Receives once from `socket`, and passes each datagram to `machine`.
    pub(crate) fn receive(
        &mut self,
        (local, socket): (Local, &Socket),
        machine: &mut dyn Machine,
        clock: &Clock,
        counters: &Counters,
    ) -> ReceiveResult {
        let mut room = self.bytes.chunks_exact_mut(BUFFER_BYTES);
        let mut slices: [IoSliceMut<'_>; BATCH_SIZE] =
            array::from_fn(|_| IoSliceMut::new(room.next().unwrap_or_default()));
        let offered = self.offered;
        let slices = slices.get_mut(..offered).unwrap_or_default();
        let count = match socket.state.recv(UdpSockRef::from(&*socket.io), slices, &mut self.metas) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return ReceiveResult::Drained,
            Err(error) => return ReceiveResult::Failed(error),
        };
        self.converter.compare(clock.with_wall());
        let now = clock.now();
        counters.receive_calls.add(1);
        let brought: usize = self.metas.iter().take(count).map(|meta| meta.len).sum();
        self.offered = buffers_for(count, brought);

        for (meta, buffer) in self.metas.iter().zip(self.bytes.chunks_exact_mut(BUFFER_BYTES)).take(count) {
            let arrival = self.converter.of(now, meta.timestamp);
            let bytes = buffer.get_mut(..meta.len).unwrap_or_default();
            let mut datagrams = 0;
            each_datagram(bytes, meta.stride, |payload| {
                datagrams += 1;
                let ecn = mark(meta.ecn);
                let datagram = Datagram { local, remote: meta.addr, ecn, arrival, payload, phantom: 0 };
                machine.handle(now, Input::Datagram(datagram));
            });
            counters.received_datagrams.add(datagrams);
            counters.received_bytes.add(meta.len as u64);
            if datagrams > 1 {
                counters.gro_runs.add(1);
            }
        }
        if count == offered { ReceiveResult::Full } else { ReceiveResult::Drained }
    }
}

/// Returns the number of buffers for the next receive call, after `bytes` bytes in `count` buffers:
/// 8 if these were full (64 KiB of coalesced datagrams each), 32 if they held short datagrams.
fn buffers_for(count: usize, bytes: usize) -> usize {
    (CALL_BYTES / (bytes / count.max(1)).max(1)).clamp(1, BATCH_SIZE)
}

/// Splits a coalesced run into datagrams. An empty run is one empty datagram.
fn each_datagram(bytes: &mut [u8], stride: usize, mut handle: impl FnMut(&mut [u8])) {
    if bytes.is_empty() {
        handle(bytes);
    } else {
        bytes.chunks_mut(stride.max(1)).for_each(handle);
    }
}

fn mark(ecn: Option<EcnCodepoint>) -> Ecn {
    match ecn {
        None => Ecn::NotEct,
        Some(EcnCodepoint::Ect0) => Ecn::Ect0,
        Some(EcnCodepoint::Ect1) => Ecn::Ect1,
        Some(EcnCodepoint::Ce) => Ecn::Ce,
    }
}

/// Translates the kernel's receive timestamps from wall-clock time to the driver's clock. After the
/// wall clock was set, datagrams with older timestamps may wait in the socket. So for one second
/// (`MAX_QUEUE_TIME`), the time of the receive call counts instead.
#[derive(Debug, Default)]
struct StampConverter {
    /// Wall clock minus driver's clock, in nanoseconds, once measured.
    offset: Option<u64>,
    trusted_from: Instant,
}

/// A change of the offset that is no measuring error (readings are 20 µs apart at most).
const STEP_NANOS: u64 = 1_000_000;
/// The longest time that a datagram may have waited in a socket's buffer.
const MAX_QUEUE_TIME: Duration = Duration::from_secs(1);

impl StampConverter {
    /// Compares simultaneous readings of both clocks.
    fn compare(&mut self, readings: Option<(Instant, u64)>) {
        let Some((now, wall)) = readings else { return };
        let offset = wall.wrapping_sub(now.as_nanos());
        // Differences of wrapped numbers are right whichever clock is ahead.
        if self
            .offset
            .is_some_and(|known| offset.wrapping_sub(known).cast_signed().unsigned_abs() > STEP_NANOS)
        {
            self.trusted_from = now + MAX_QUEUE_TIME;
        }
        self.offset = Some(offset);
    }

    /// The arrival time of a datagram with this timestamp. `now` if the timestamp is missing or
    /// implausible.
    fn of(&self, now: Instant, stamp: Option<Duration>) -> Instant {
        let (Some(stamp), Some(offset)) = (stamp, self.offset) else { return now };
        if now < self.trusted_from {
            return now;
        }
        let nanos = byway_wire::time::nanos(stamp).wrapping_sub(offset);
        // Before the driver's epoch it wraps to the far future, and then `now` is as good as any.
        Instant::from_nanos(nanos).min(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIX: u64 = 1_800_000_000_000_000_000;

    #[test]
    fn long_runs_are_taken_in_smaller_batches() {
        let longest = BUFFER_BYTES - 1;
        assert_eq!(buffers_for(BATCH_SIZE, BATCH_SIZE * longest), BATCH_SIZE.min(8));
        assert_eq!(buffers_for(3, 3 * 16 * 1_200), BATCH_SIZE.min(27));
        for nothing in [buffers_for(1, 0), buffers_for(0, 0), buffers_for(5, 100)] {
            assert_eq!(nothing, BATCH_SIZE);
        }
    }

    fn stamp(nanos: u64) -> Option<Duration> {
        Some(Duration::from_nanos(nanos))
    }

    #[test]
    fn runs_are_cut_at_the_stride() {
        let cut = |bytes: &[u8], stride| {
            let mut parts = Vec::new();
            each_datagram(&mut bytes.to_vec(), stride, |part| parts.push(part.to_vec()));
            parts
        };
        assert_eq!(cut(b"aabbc", 2), [b"aa".to_vec(), b"bb".to_vec(), b"c".to_vec()]);
        assert_eq!(cut(b"aa", 2), [b"aa".to_vec()]);
        assert_eq!(cut(b"", 0), [b"".to_vec()]);
        assert_eq!(cut(b"ab", 0).len(), 2);
    }

    #[test]
    fn stamps_become_the_time_of_arrival_and_never_the_future() {
        let mut converter = StampConverter::default();
        converter.compare(Some((Instant::from_millis(10), UNIX + 10_000_000)));
        let now = Instant::from_millis(11);
        assert_eq!(converter.of(now, stamp(UNIX + 9_000_000)), Instant::from_millis(9));
        assert_eq!(converter.of(now, stamp(UNIX + 99_000_000)), now);
        assert_eq!(converter.of(now, stamp(UNIX - 5)), now);
        assert_eq!(converter.of(now, None), now);
    }

    #[test]
    fn stamps_are_not_trusted_across_a_step_of_the_wall_clock() {
        let mut converter = StampConverter::default();
        converter.compare(Some((Instant::from_millis(10), UNIX)));
        let hour = 3_600_000_000_000;
        for stepped in [UNIX + hour, UNIX] {
            let mut converter = StampConverter { ..converter };
            converter.compare(Some((Instant::from_millis(20), stepped + 10_000_000)));
            let expected_to_step = stepped != UNIX;
            let now = Instant::from_millis(21);
            let arrival = converter.of(now, stamp(stepped + 9_000_000));
            assert_eq!(arrival, if expected_to_step { now } else { Instant::from_millis(19) });
        }
        converter.compare(Some((Instant::from_millis(20), UNIX - hour)));
        converter.compare(Some((Instant::from_millis(1_100), UNIX - hour + 1_080_000_000)));
        let later = Instant::from_millis(1_100);
        assert_eq!(converter.of(later, stamp(UNIX - hour + 1_079_000_000)), Instant::from_millis(1_099));
    }
}
