//! Which streams this side may open: as many in all as the peer said (RFC 9000 section 4.6).

use super::streams::OutStream;
use super::{OutEvent, Outgoing};
use crate::connection::Role;
use byway_wire::StreamId;

/// Which streams may be opened.
#[derive(Debug)]
pub(super) struct Opening {
    role: Role,
    /// Streams that may be opened in all.
    limit: u64,
    /// Streams that were opened: one above the highest, counted from 0.
    opened: u64,
    /// Whether one could not be opened, and its owner waits for word.
    refused: bool,
    /// Streams of the peer's that are over here and were [over](Outgoing::answer_ends) in the other direction before.
    answers_over: u64,
}

impl Opening {
    /// None was opened, and no limit was told.
    pub const fn new() -> Self {
        Self { role: Role::Initiator, limit: u64::MAX, opened: 0, refused: false, answers_over: 0 }
    }

    /// Whether the stream may be opened; who may not is told when one can.
    fn open(&mut self, id: StreamId) -> bool {
        let index = u64::from(id.0 / 2);
        if !self.role.opens(id) {
            return true;
        }
        let allowed = index < self.limit;
        if allowed {
            self.opened = self.opened.max(index + 1);
        }
        self.refused |= !allowed;
        allowed
    }

    /// A stream of the peer's that was over in the other direction is over here.
    pub const fn on_answer_over(&mut self) {
        self.answers_over += 1;
    }
}

impl Outgoing {
    /// Says what this side is: who opens even streams, and who odd ones. Otherwise it is an initiator.
    #[must_use]
    pub(crate) const fn belonging_to(mut self, role: Role) -> Self {
        self.opening.role = role;
        self
    }

    /// Opens the next stream: its id is two above that of the one opened before. `None`: as many are open as the peer takes, and
    /// [`OutEvent::MayOpen`] follows.
    pub fn open_next(&mut self) -> Option<StreamId> {
        let index = u32::try_from(self.opening.opened).ok().filter(|index| *index <= u32::MAX / 2)?;
        let id = StreamId(2 * index + self.opening.role.first_stream());
        self.open_stream(id).then_some(id)
    }

    /// Opens a stream, or this side of one that the peer opened. An id serves one stream in the life of a connection. Returns whether it is
    /// open: if not, the peer takes no more streams for now, and [`OutEvent::MayOpen`] follows.
    pub fn open_stream(&mut self, id: StreamId) -> bool {
        let limit = self.stream_limit;
        let open = self.opening.open(id);
        if open {
            self.streams.entry(id).or_insert_with(|| OutStream::new(limit));
        }
        open
    }

    /// How many streams this side has opened.
    pub(crate) const fn opened(&self) -> u64 {
        self.opening.opened
    }

    /// How many streams the peer takes, as it said in the handshake.
    pub fn set_initial_max_streams(&mut self, limit: u64) {
        self.opening.limit = limit;
    }

    /// The peer takes so many streams in all. Limits never shrink.
    pub fn on_max_streams(&mut self, limit: u64) {
        self.opening.limit = self.opening.limit.max(limit);
        if self.opening.refused && self.opening.opened < self.opening.limit {
            self.opening.refused = false;
            self.events.push_back(OutEvent::MayOpen);
        }
    }

    /// Nothing more comes of a stream that the peer opened. Returns whether it goes on in this direction; then it is
    /// [counted](Self::take_answers_over) later.
    pub(crate) fn answer_ends(&mut self, id: StreamId) -> bool {
        self.streams.get_mut(&id).map(|stream| stream.last = true).is_some()
    }

    /// Streams of the peer's that went on in this direction and are over now.
    pub(crate) const fn take_answers_over(&mut self) -> u64 {
        core::mem::replace(&mut self.opening.answers_over, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::OutgoingLimits;
    use super::*;

    fn next(out: &mut Outgoing) -> Option<u32> {
        out.open_next().map(|id| id.0)
    }

    #[test]
    fn streams_are_opened_in_order_up_to_the_limit_and_then_word_comes() {
        for (role, first) in [(Role::Initiator, 0), (Role::Responder, 1)] {
            let mut out = Outgoing::new(OutgoingLimits::default()).belonging_to(role);
            out.set_initial_max_streams(2);
            assert_eq!(
                (next(&mut out), next(&mut out), next(&mut out)),
                (Some(first), Some(first + 2), None)
            );
            assert!(out.open_stream(StreamId(first + 1)), "the peer's own");
            assert_eq!((out.opened(), out.next_event()), (2, None));
            out.on_max_streams(2); // an old one, late
            assert_eq!(out.next_event(), None);
            out.on_max_streams(3);
            assert_eq!((out.next_event(), out.next_event()), (Some(OutEvent::MayOpen), None));
            assert_eq!((next(&mut out), next(&mut out)), (Some(first + 4), None));
            out.on_max_streams(u64::MAX);
            assert_eq!((out.next_event(), next(&mut out)), (Some(OutEvent::MayOpen), Some(first + 6)));
            out.on_max_streams(1);
            assert_eq!((next(&mut out), out.next_event()), (Some(first + 8), None));
        }
    }

    #[test]
    fn an_answer_is_over_when_the_peer_has_all_of_it() {
        let mut out = Outgoing::new(OutgoingLimits::default());
        let (theirs, ours) = (StreamId(1), StreamId(0));
        assert!(!out.answer_ends(theirs), "it was never opened here");
        for id in [theirs, ours] {
            out.open_stream(id);
            out.finish(id);
        }
        assert!(out.answer_ends(theirs));
        for id in [theirs, ours] {
            let mut carried = smallvec::SmallVec::new();
            out.fill(&mut byway_wire::Writer::new(&mut [0; 100]), &mut carried);
            out.on_acked(&crate::data::Carried::Stream { id, offset: 0, length: 0, fin: true });
        }
        assert_eq!((out.take_answers_over(), out.take_answers_over()), (1, 0));
    }
}
