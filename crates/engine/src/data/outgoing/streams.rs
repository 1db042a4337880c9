//! A stream on its way out: ordered bytes, kept until acknowledged.

use super::delivery_state::DeliveryState;
use super::send_buffer::SendBuffer;
use alloc::vec::Vec;
use bytes::Bytes;
use byway_wire::Writer;

/// The bytes that a stream may hold: its share of the memory, and bytes beyond the peer's limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct WriteAllowance {
    /// Bytes of the memory that the stream may take.
    pub share: usize,
    /// Bytes that may be written beyond the peer's limit.
    pub ahead: usize,
}

/// The state of a stream's end mark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Fin {
    /// The mark was not sent, or was lost.
    #[default]
    Due,
    /// The mark is in flight.
    Sent,
    /// The peer has acknowledged the end mark.
    Acked,
}

/// The state of a stream's RESET_STREAM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Reset {
    /// The stream was not given up.
    #[default]
    None,
    /// The stream was given up with this code, of which the peer must still learn.
    Due(u64),
    /// The reset is in flight.
    Sent(u64),
    /// The peer knows that the stream was given up.
    Acked,
}

/// Why a write was cut short, and the condition for the next one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum WriteBlock {
    /// No write was cut short.
    #[default]
    Nothing,
    /// The peer's limit on the stream, or the stream's share of the memory.
    Limit,
    /// The memory shared by all streams. The stream is in the queue for it.
    Memory,
}

/// A stream that is being sent. Bytes sent before a reset are still sent again if lost: both ends
/// must count the same bytes for flow control. When the reset is acknowledged, an empty frame tells
/// the final offset.
#[derive(Debug, Default)]
pub(super) struct OutStream {
    pub track: DeliveryState,
    /// Bytes that are not acknowledged, sent or not.
    kept: SendBuffer,
    /// The peer's limit on this stream: the offset up to which it may be sent.
    pub limit: u64,
    /// Whether the owner has ended the stream.
    pub finished: bool,
    pub fin: Fin,
    /// Whether the end mark was repeated at the end of the data.
    pub fin_repeated: bool,
    pub reset: Reset,
    /// Whether the stream is in the queue of streams with new data.
    pub in_ready: bool,
    /// Whether the stream counts among those that wait for acknowledgments.
    pub busy: bool,
    pub wait: WriteBlock,
    /// Bytes beyond the peer's limit.
    pub beyond: usize,
    /// Whether the peer opened the stream and ended its own direction, so that the stream ends with
    /// this direction.
    pub last: bool,
}

impl OutStream {
    /// A stream of which the peer takes `limit` bytes for now.
    pub fn new(limit: u64) -> Self {
        Self { limit, ..Self::default() }
    }

    /// One more than the offset of the last written byte.
    pub const fn end(&self) -> u64 {
        self.kept.end()
    }

    /// Bytes held.
    pub const fn held(&self) -> usize {
        self.kept.len()
    }

    /// Returns the bytes that the stream takes from the owner: within its share of the memory, and
    /// only a little beyond the peer's limit.
    pub fn room(&self, allowance: WriteAllowance) -> usize {
        let ahead = (self.limit + allowance.ahead as u64).saturating_sub(self.end());
        allowance.share.saturating_sub(self.held()).min(usize::try_from(ahead).unwrap_or(usize::MAX))
    }

    /// Whether a stream that had no room for a write has enough again to report
    /// `OutEvent::Writable`.
    pub fn is_worth_while(&self, allowance: WriteAllowance) -> bool {
        let least = (allowance.share / 4).min((allowance.ahead / 2).max(1));
        self.held() <= allowance.share / 4 * 3 && self.room(allowance) >= least
    }

    /// Takes bytes from the owner.
    pub fn write(&mut self, data: &[u8], spare: &mut Vec<u8>) {
        self.kept.copy_from(data, spare);
    }

    /// Takes bytes from the owner by value.
    pub fn push(&mut self, data: Bytes, spare: &mut Vec<u8>) {
        self.kept.push(data, spare);
    }

    /// Whether the stream has new bytes within its own limit.
    pub fn has_new(&self) -> bool {
        self.track.sent < self.end().min(self.limit)
    }

    /// Whether a frame at the stream's end may carry the end mark.
    pub const fn may_end(&self) -> bool {
        self.finished && matches!(self.reset, Reset::None | Reset::Acked)
    }

    /// Whether the end mark must go without waiting for new bytes.
    pub fn fin_due(&self) -> bool {
        self.may_end() && self.fin == Fin::Due && self.track.sent == self.end()
    }

    /// Whether something must go out that needs no flow control.
    pub fn wants_again(&self) -> bool {
        !self.track.lost.is_empty() || self.fin_due()
    }

    /// Whether anything waits to be sent or acknowledged.
    pub fn is_busy(&self) -> bool {
        !self.kept.is_empty() || (self.finished && self.fin != Fin::Acked)
    }

    /// Whether something sent was not acknowledged.
    pub fn is_in_flight(&self) -> bool {
        self.kept.base() < self.track.sent || self.fin == Fin::Sent
    }

    /// Whether the peer has acknowledged the whole stream and its end.
    pub fn is_done(&self) -> bool {
        self.finished && !self.is_busy()
    }

    /// Gives the stream up; returns the bytes freed.
    pub fn give_up(&mut self, code: u64) -> usize {
        self.finished = true;
        self.reset = Reset::Due(code);
        self.kept.truncate(self.track.sent)
    }

    /// The peer has `start..end`, and the end mark if `fin`; returns bytes newly acknowledged and
    /// bytes freed.
    pub fn on_acked(&mut self, start: u64, end: u64, fin: bool, spare: &mut Vec<u8>) -> (u64, usize) {
        let new = self.track.on_acked(start, end, |_, _| ());
        if fin {
            self.fin = Fin::Acked;
        }
        let before = self.kept.len();
        self.kept.advance(self.track.acked.prefix(), spare);
        (new, before - self.kept.len())
    }

    /// A packet with `start..end`, and the end mark if `fin`, was lost.
    pub fn on_lost(&mut self, start: u64, end: u64, fin: bool) {
        self.track.on_lost(start, end);
        if fin && self.fin == Fin::Sent {
            self.fin = Fin::Due;
        }
    }

    /// Puts `length` held bytes from `offset` on into the packet.
    pub fn copy(&self, offset: u64, length: usize, writer: &mut Writer<'_>) {
        self.kept.write(offset, length, writer);
    }

    /// Asserts the stream's invariants.
    #[cfg(debug_assertions)]
    pub fn check(&self) {
        self.track.check();
        let sent = self.track.sent;
        debug_assert!(sent <= self.end().min(self.limit), "more was sent than may be: {self:?}");
        debug_assert!(self.kept.base() == self.track.acked.prefix(), "all is kept that is needed: {self:?}");
        debug_assert!(self.in_ready || !self.has_new(), "new bytes wait for their turn: {self:?}");
        debug_assert!(self.busy == self.is_busy(), "it is known whether it is busy: {self:?}");
        debug_assert!(self.finished || self.fin == Fin::Due, "only an end is told: {self:?}");
        debug_assert!(self.finished || self.reset == Reset::None, "what is given up is over: {self:?}");
        debug_assert!(self.fin == Fin::Due || sent == self.end(), "the end comes last: {self:?}");
        let beyond = self.end().saturating_sub(self.limit);
        debug_assert!(self.beyond as u64 == beyond, "what is beyond the limit is counted: {self:?}");
    }
}
