//! An object on its way out: read from the disk ahead of need, chunk by chunk, each kept until
//! acknowledged.

use super::blocked_reason::Blocked;
use super::delivery_state::DeliveryState;
use super::streams::Fin;
use crate::data::data_frames::OBJECT_COST;
use alloc::collections::VecDeque;
use bytes::Bytes;
use byway_wire::Writer;

/// A chunk is charged at least this much of the memory, so that the books of many small ones are
/// paid for too.
const CHUNK_COST: usize = 4096;

/// A part of an object that is read from the disk at once.
#[derive(Debug)]
enum Chunk {
    /// The owner was asked to read the chunk.
    Asked,
    /// The chunk is in memory, with `unacked` bytes not acknowledged. It has no data where objects
    /// are only a length.
    Held { data: Bytes, length: usize, unacked: usize },
    /// The chunk was acknowledged, or is no longer wanted.
    Gone,
}

/// An object that is being sent. Once given up, it sends lost bytes again, because both ends must
/// count the same bytes for flow control. It sends no new bytes and no end mark, so it stays
/// incomplete at the peer.
#[derive(Debug)]
pub(super) struct OutObject {
    pub track: DeliveryState,
    /// Bytes of the object. After it was given up: the bytes that were sent.
    pub size: u64,
    /// Bytes per chunk; the last may be shorter.
    chunk_size: u64,
    /// Number of bytes that the owner was asked to read.
    asked: u64,
    /// The offset up to which the owner has provided bytes.
    here: u64,
    chunks: VecDeque<Chunk>,
    /// Number of chunks at the front that were removed.
    dropped: u64,
    pub abandoned: bool,
    /// Whether a frame of the object was sent.
    pub begun: bool,
    /// The end mark of an empty object. Other objects have it on their last bytes.
    pub fin: Fin,
    pub fin_repeated: bool,
}

impl OutObject {
    pub fn new(size: u64, chunk_size: usize) -> Self {
        Self {
            track: DeliveryState::default(),
            size,
            chunk_size: chunk_size.max(1) as u64,
            asked: 0,
            here: 0,
            chunks: VecDeque::new(),
            dropped: 0,
            abandoned: false,
            begun: false,
            fin: Fin::Due,
            fin_repeated: false,
        }
    }

    /// The memory that a chunk of `length` bytes counts for.
    fn cost(&self, length: usize) -> usize {
        length.max(CHUNK_COST.min(self.chunk_size as usize))
    }

    /// The next read: its offset, its length, and the memory it counts for.
    pub fn next_read(&self) -> Option<(u64, usize, usize)> {
        let length = self.chunk_size.min(self.size.saturating_sub(self.asked)) as usize;
        (length > 0 && !self.abandoned).then(|| (self.asked, length, self.cost(length)))
    }

    /// Notes that the next chunk was requested. Returns whether there are more.
    pub fn asked(&mut self) -> bool {
        self.asked += self.chunk_size.min(self.size - self.asked);
        self.chunks.push_back(Chunk::Asked);
        self.asked < self.size
    }

    /// Returns the number of chunks that were asked for and not completely sent.
    pub const fn unsent(&self) -> usize {
        (self.asked.div_ceil(self.chunk_size) - self.sent_chunks()) as usize
    }

    const fn sent_chunks(&self) -> u64 {
        let Self { track, size, chunk_size, .. } = self;
        if track.sent == *size { size.div_ceil(*chunk_size) } else { track.sent / *chunk_size }
    }

    fn index(&self, offset: u64) -> Option<usize> {
        (offset / self.chunk_size).checked_sub(self.dropped).map(|index| index as usize)
    }

    /// Takes a chunk that the owner read. Returns `false` if it is not the one that was requested.
    pub fn provide(&mut self, offset: u64, bytes: Bytes) -> bool {
        let expected = self.chunk_size.min(self.size.saturating_sub(offset));
        if !offset.is_multiple_of(self.chunk_size) || bytes.len() as u64 != expected {
            return false;
        }
        match self.index(offset).and_then(|index| self.chunks.get_mut(index)) {
            Some(chunk @ Chunk::Asked) => {
                *chunk = Chunk::Held { length: bytes.len(), unacked: bytes.len(), data: bytes };
                self.arrived();
                true
            }
            _ => false,
        }
    }

    /// Advances the end of the provided bytes. The owner may provide chunks in any order, so later
    /// ones may already be there.
    fn arrived(&mut self) {
        while self.here < self.size
            && let Some(Chunk::Held { length, .. }) =
                self.index(self.here).and_then(|index| self.chunks.get(index))
        {
            self.here += *length as u64;
        }
    }

    /// Provides a chunk of an object that is only a length. The owner is not asked.
    pub fn provide_length(&mut self, length: usize) {
        if let Some(chunk @ Chunk::Asked) = self.chunks.back_mut() {
            *chunk = Chunk::Held { data: Bytes::new(), length, unacked: length };
            self.arrived();
        }
    }

    /// Returns the held bytes from `offset` to the end of their chunk. Empty: they are not
    /// provided.
    fn held(&self, offset: u64) -> &[u8] {
        match self.index(offset).and_then(|index| self.chunks.get(index)) {
            Some(Chunk::Held { data, .. }) => {
                data.get((offset % self.chunk_size) as usize..).unwrap_or_default()
            }
            _ => &[],
        }
    }

    /// Returns the number of bytes that are provided from `offset` on.
    pub const fn available(&self, offset: u64) -> u64 {
        self.here.saturating_sub(offset)
    }

    /// Whether new bytes of the object may be sent within `credit`, or why not. `all_begun`: no
    /// other object may be begun.
    pub fn may_be_sent(&self, credit: u64, all_begun: bool) -> Result<(), Blocked> {
        let cost = if self.begun { 0 } else { OBJECT_COST } + u64::from(self.size > 0);
        if credit < cost || (!self.begun && all_begun) {
            return Err(Blocked::PeerLimit);
        }
        if self.size > 0 && self.available(self.track.sent) == 0 {
            return Err(Blocked::Reading);
        }
        Ok(())
    }

    /// Puts `length` held bytes from `offset` on into the packet.
    pub fn copy(&self, mut offset: u64, mut length: usize, writer: &mut Writer<'_>) {
        while length > 0 {
            let held = self.held(offset);
            let piece = held.get(..length).unwrap_or(held);
            if piece.is_empty() {
                return;
            }
            writer.bytes(piece);
            (offset, length) = (offset + piece.len() as u64, length - piece.len());
        }
    }

    /// Whether everything was sent that will be sent.
    pub const fn is_sent(&self) -> bool {
        self.abandoned || (self.begun && self.track.sent == self.size)
    }

    /// Whether a frame that ends at `end` ends the object.
    pub const fn ends_at(&self, end: u64) -> bool {
        end == self.size && !self.abandoned
    }

    /// Whether the end mark of an empty object must go out again.
    pub fn fin_due(&self) -> bool {
        self.begun && self.size == 0 && !self.abandoned && self.fin == Fin::Due
    }

    /// Whether something must go out that needs no flow control.
    pub fn wants_again(&self) -> bool {
        !self.track.lost.is_empty() || self.fin_due()
    }

    /// Whether the peer has acknowledged every byte that it will get.
    pub fn is_done(&self) -> bool {
        if self.size == 0 {
            self.abandoned || self.fin == Fin::Acked
        } else {
            self.track.acked.covers(0, self.size)
        }
    }

    /// The peer has `start..end`, and the end mark if `fin`; returns bytes newly acknowledged and
    /// memory freed.
    pub fn on_acked(&mut self, start: u64, end: u64, fin: bool) -> (u64, usize) {
        if fin {
            self.fin = Fin::Acked;
        }
        let Self { track, chunks, dropped, chunk_size, .. } = self;
        let (size, least) = (*chunk_size, CHUNK_COST.min(*chunk_size as usize));
        let mut freed = 0;
        let new = track.on_acked(start, end, |mut from, to| {
            while from < to {
                let stop = to.min((from / size + 1) * size);
                let index = (from / size).saturating_sub(*dropped) as usize;
                if let Some(chunk) = chunks.get_mut(index) {
                    freed += chunk.acked((stop - from) as usize, least);
                }
                from = stop;
            }
        });
        self.trim();
        (new, freed)
    }

    /// A packet with `start..end`, and the end mark if `fin`, was lost.
    pub fn on_lost(&mut self, start: u64, end: u64, fin: bool) {
        self.track.on_lost(start, end);
        if fin && self.fin == Fin::Sent {
            self.fin = Fin::Due;
        }
    }

    /// Abandons the unsent part of the object, since its source vanished. Returns the bytes of
    /// memory freed.
    pub fn abandon(&mut self) -> usize {
        let (sent, mut freed) = (self.track.sent, 0);
        self.abandoned = true;
        let least = CHUNK_COST.min(self.chunk_size as usize);
        for (index, chunk) in self.chunks.iter_mut().enumerate() {
            let start = (self.dropped + index as u64) * self.chunk_size;
            let end = (start + self.chunk_size).min(self.size);
            match chunk {
                Chunk::Asked => {
                    freed += ((end - start) as usize).max(least);
                    *chunk = Chunk::Gone;
                }
                Chunk::Held { .. } => freed += chunk.acked((end - end.min(sent.max(start))) as usize, least),
                Chunk::Gone => {}
            }
        }
        self.size = sent;
        self.trim();
        freed
    }

    fn trim(&mut self) {
        while let Some(Chunk::Gone) = self.chunks.front() {
            self.chunks.pop_front();
            self.dropped += 1;
        }
    }
}

#[cfg(debug_assertions)]
impl OutObject {
    /// Asserts the object's invariants.
    pub fn check(&self) {
        self.track.check();
        let (sent, chunks) = (self.track.sent, self.dropped + self.chunks.len() as u64);
        debug_assert!(sent <= self.size && sent <= self.here, "more was sent than is here: {self:?}");
        debug_assert!(self.here <= self.asked, "more is here than was asked for: {self:?}");
        debug_assert!(
            self.asked <= self.size || self.abandoned,
            "more was asked for than there is: {self:?}"
        );
        debug_assert_eq!(chunks, self.asked.div_ceil(self.chunk_size), "each read has its chunk: {self:?}");
        debug_assert!(self.begun || sent == 0 && self.fin == Fin::Due, "what is sent has begun: {self:?}");
    }

    /// Counts the object's memory. Asserts that the acknowledged bytes of each chunk are right.
    pub fn recount_memory(&self) -> usize {
        let mut memory = 0;
        for (index, chunk) in (self.dropped..).zip(&self.chunks) {
            let start = index * self.chunk_size;
            let end = (start + self.chunk_size).min(self.asked);
            memory += match chunk {
                Chunk::Asked => self.cost((end - start) as usize),
                Chunk::Held { length, unacked, .. } => {
                    let missing = self.track.acked.gaps(start, end.min(self.size));
                    let bytes = missing.map(|(start, end)| end - start).sum::<u64>();
                    debug_assert_eq!(*unacked as u64, bytes, "chunk {index} has a wrong count: {self:?}");
                    debug_assert!(*length as u64 == end - start && *unacked > 0, "chunk {index}: {self:?}");
                    self.cost(*length)
                }
                Chunk::Gone => 0,
            };
        }
        memory
    }

    /// Returns the number of ranges and chunks that a recount examines.
    pub fn parts(&self) -> usize {
        self.track.ranges() + self.chunks.len()
    }
}

impl Chunk {
    /// `count` bytes of the chunk need not be kept; returns memory freed.
    fn acked(&mut self, count: usize, least: usize) -> usize {
        let Self::Held { length, unacked, .. } = self else { return 0 };
        *unacked = unacked.saturating_sub(count);
        if *unacked > 0 || count == 0 {
            return 0;
        }
        let freed = (*length).max(least);
        *self = Self::Gone;
        freed
    }
}
