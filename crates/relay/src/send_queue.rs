//! Datagrams to send, sorted into runs of one address and size, so a run leaves in one system call
//! (segmentation offload). Each batch fills the memory from its beginning, so the part used stays
//! in the processor's cache.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use byway_wire::{Dscp, Ecn, Local, Transmit, TransmitBuffer};
use core::net::SocketAddr;

/// The most datagrams in a run. It is the limit of one system call.
const MAX_RUN_DATAGRAMS: u16 = 64;
/// The most bytes in a run. It is the limit of one system call.
const MAX_RUN_BYTES: usize = 65_000;
const SLOT_COUNT: usize = 256;
const NO_DATAGRAM: u32 = u32::MAX;

/// Returns the size of a datagram in bytes, including its phantom bytes (which exist only as a
/// length).
pub(crate) const fn size(datagram: &byway_wire::Datagram<'_>) -> usize {
    datagram.payload.len() + datagram.phantom
}

/// The destination of a datagram, and its socket and ECN mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SendAddress {
    pub(crate) local: Local,
    pub(crate) remote: SocketAddr,
    pub(crate) ecn: Ecn,
}

#[derive(Clone, Copy, Debug)]
struct Datagram {
    at: u32,
    length: u32,
    next: u32,
}

#[derive(Debug)]
struct QueuedRun {
    way: SendAddress,
    segment: usize,
    /// Phantom bytes of each datagram ([`Transmit::phantom`]), which are not in the buffer.
    phantom: usize,
    head: u32,
    tail: u32,
    count: u16,
    /// Whether the run ends with a shorter datagram, so that none may follow it.
    closed: bool,
}

#[derive(Debug)]
pub(crate) struct SendQueue {
    bytes: Box<[u8]>,
    used: usize,
    /// Phantom bytes of all queued datagrams. They take room like other bytes.
    phantom: usize,
    datagrams: Vec<Datagram>,
    runs: Vec<QueuedRun>,
    /// The first run that is not sent whole.
    first: usize,
    /// The latest run for each hash of a send address. An entry may be stale, so the run's address
    /// is compared.
    latest: [u32; SLOT_COUNT],
}

impl SendQueue {
    pub(crate) fn new(bytes: usize, datagrams: usize) -> Self {
        let datagrams = datagrams.clamp(1, 1 << 20);
        Self {
            bytes: vec![0; bytes.min(1 << 30)].into_boxed_slice(),
            used: 0,
            phantom: 0,
            datagrams: Vec::with_capacity(datagrams),
            runs: Vec::with_capacity(datagrams),
            first: 0,
            latest: [NO_DATAGRAM; SLOT_COUNT],
        }
    }

    /// Whether a datagram of this length, phantom bytes included, finds room.
    pub(crate) fn has_room(&self, length: usize) -> bool {
        self.datagrams.len() < self.datagrams.capacity()
            && self.bytes.len() - self.used >= length.saturating_add(self.phantom)
    }

    /// Queues a datagram that has `phantom` bytes beyond its own. Returns false, without effect, if
    /// there is no room.
    pub(crate) fn push(&mut self, way: SendAddress, datagram: &[u8], phantom: usize) -> bool {
        let length = datagram.len();
        let end = self.used + length;
        if !self.has_room(length.saturating_add(phantom)) || length == 0 {
            return false;
        }
        let Some(room) = self.bytes.get_mut(self.used..end) else { return false };
        room.copy_from_slice(datagram);
        let index = self.datagrams.len() as u32; // capacity is at most 2^20
        self.datagrams.push(Datagram { at: self.used as u32, length: length as u32, next: NO_DATAGRAM });
        self.used = end;
        self.phantom += phantom;
        let slot = slot(&way);
        let latest = self.latest[slot] as usize;
        let open = self.runs.get_mut(latest).filter(|run| {
            latest >= self.first
                && run.way == way
                && !run.closed
                && run.count < MAX_RUN_DATAGRAMS
                && length <= run.segment
                && phantom == run.phantom
                && (usize::from(run.count) + 1) * (run.segment + phantom) <= MAX_RUN_BYTES
        });
        match open {
            Some(run) => {
                if let Some(tail) = self.datagrams.get_mut(run.tail as usize) {
                    tail.next = index;
                }
                run.tail = index;
                run.count += 1;
                run.closed = length < run.segment;
            }
            None => {
                self.latest[slot] = self.runs.len() as u32;
                self.runs.push(QueuedRun {
                    way,
                    segment: length,
                    phantom,
                    head: index,
                    tail: index,
                    count: 1,
                    closed: false,
                });
            }
        }
        true
    }

    /// Removes the next run, or as much of it as fits. A datagram that is larger than the whole
    /// buffer is dropped.
    pub(crate) fn transmit(&mut self, out: &mut TransmitBuffer<'_>) -> Option<Transmit> {
        let most = out.max_segments.max(1);
        while let Some(run) = self.runs.get_mut(self.first) {
            let (mut size, mut count) = (0, 0);
            while let Some(datagram) = self.datagrams.get(run.head as usize) {
                let (at, length) = (datagram.at as usize, datagram.length as usize);
                let room = out.buffer.get_mut(size..size + length);
                let (Some(room), true) = (room, count < most) else {
                    if count > 0 {
                        break;
                    }
                    run.head = datagram.next; // too large for the driver
                    continue;
                };
                room.copy_from_slice(self.bytes.get(at..at + length)?);
                size += length;
                count += 1;
                run.head = datagram.next;
            }
            let (way, segment, phantom) = (run.way, run.segment.min(size), run.phantom);
            if run.head == NO_DATAGRAM {
                self.first += 1;
            }
            if count > 0 {
                return Some(Transmit {
                    local: way.local,
                    remote: way.remote,
                    ecn: way.ecn,
                    dscp: Dscp::BestEffort,
                    size,
                    segment,
                    phantom,
                });
            }
        }
        self.datagrams.clear();
        self.runs.clear();
        (self.used, self.phantom, self.first) = (0, 0, 0);
        None
    }
}

/// The index in `latest` for an address, from a hash. The multiplication usually separates
/// neighbouring hosts, whose addresses differ only in the last byte. If two addresses share an
/// index, the only effect is that fewer datagrams leave in one system call.
fn slot(way: &SendAddress) -> usize {
    let ip = match way.remote.ip() {
        core::net::IpAddr::V4(ip) => ip.to_bits(),
        core::net::IpAddr::V6(ip) => {
            let bits = ip.to_bits();
            (bits ^ (bits >> 64) ^ (bits >> 96)) as u32
        }
    };
    let mixed = (ip ^ (u32::from(way.remote.port()) << 16)).wrapping_mul(0x9e37_79b1);
    (mixed >> 24) as usize ^ way.ecn as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn way(port: u16) -> SendAddress {
        SendAddress { local: Local(0), remote: SocketAddr::from(([192, 0, 2, 1], port)), ecn: Ecn::NotEct }
    }

    fn drain(queue: &mut SendQueue, buffer: usize, max_segments: usize) -> Vec<(u16, usize, Vec<u8>)> {
        let mut buffer = vec![0; buffer];
        let mut all = Vec::new();
        while let Some(sent) = queue.transmit(&mut TransmitBuffer { buffer: &mut buffer, max_segments }) {
            assert!(sent.size.div_ceil(sent.segment) <= max_segments);
            all.push((sent.remote.port(), sent.segment, buffer[..sent.size].to_vec()));
        }
        all
    }

    #[test]
    fn interleaved_datagrams_leave_in_runs_and_a_shorter_one_ends_its_run() {
        let mut queue = SendQueue::new(10_000, 100);
        for (port, length) in [(1, 10), (2, 10), (1, 10), (2, 4), (2, 4), (1, 10), (1, 20)] {
            assert!(queue.push(way(port), &vec![port as u8; length], 0));
        }
        let sizes: Vec<_> = drain(&mut queue, 1000, 64)
            .into_iter()
            .map(|(port, segment, bytes)| (port, segment, bytes.len()))
            .collect();
        assert_eq!(sizes, [(1, 10, 30), (2, 10, 14), (2, 4, 4), (1, 20, 20)]);
    }

    #[test]
    fn only_datagrams_with_equally_many_phantom_bytes_leave_together() {
        let mut queue = SendQueue::new(10_000, 100);
        for phantom in [30, 30, 30, 29, 30, 0] {
            assert!(queue.push(way(1), &[7; 10], phantom));
        }
        assert!(!queue.has_room(10_000 - 60 - 149 + 1) && queue.has_room(10_000 - 60 - 149));
        let mut buffer = [0; 1000];
        let mut runs = Vec::new();
        while let Some(sent) = queue.transmit(&mut TransmitBuffer { buffer: &mut buffer, max_segments: 64 }) {
            runs.push((sent.size, sent.segment, sent.phantom));
        }
        assert_eq!(runs, [(30, 10, 30), (10, 10, 29), (10, 10, 30), (10, 10, 0)]);
        assert!(queue.has_room(10_000));
    }

    proptest! {
        #[test]
        fn nothing_is_lost_or_reordered_within_a_way(
            steps in prop::collection::vec((0u16..6, 1usize..5, any::<bool>()), 0..200), buffer in 5usize..60, max_segments in 1usize..8,
        ) {
            let mut queue = SendQueue::new(300, 50);
            let (mut sent, mut got) = (Vec::new(), Vec::new());
            let mut collect = |queue: &mut SendQueue| {
                for (port, segment, bytes) in drain(queue, buffer, max_segments) {
                    got.extend(bytes.chunks(segment).map(|chunk| (port, chunk.to_vec())));
                }
            };
            for (number, (port, length, pause)) in steps.into_iter().enumerate() {
                let datagram = vec![number as u8; length];
                let room = queue.has_room(length);
                prop_assert_eq!(queue.push(way(port), &datagram, 0), room);
                if room {
                    sent.push((port, datagram));
                }
                if pause {
                    collect(&mut queue);
                }
            }
            collect(&mut queue);
            for port in 0..6 {
                let of = |all: &[(u16, Vec<u8>)]| all.iter().filter(|(to, _)| *to == port).cloned().collect::<Vec<_>>();
                prop_assert_eq!(of(&sent), of(&got));
            }
            prop_assert!(queue.has_room(300));
        }
    }
}
