//! Which streams this side may open: as many in all as the peer said (RFC 9000 section 4.6).

use crate::role::Role;
use byway_wire::StreamId;

/// The limit on the streams that this host may open.
#[derive(Debug)]
pub(super) struct PeerStreamLimit {
    role: Role,
    /// Streams that may be opened in all.
    limit: u64,
    /// One more than the highest index of an opened stream, counted from 0.
    opened: u64,
    /// Whether a stream could not be opened, so that its owner waits for an event.
    refused: bool,
    /// Number of the peer's streams that ended here after they had ended in the other direction.
    answers_over: u64,
}

impl PeerStreamLimit {
    /// Makes a limit for the time before the peer has sent one. No stream is open.
    pub const fn new() -> Self {
        Self { role: Role::Initiator, limit: u64::MAX, opened: 0, refused: false, answers_over: 0 }
    }

    /// Whether the stream may be opened. If not, an event follows when one can be.
    pub fn open(&mut self, id: StreamId) -> bool {
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

    /// Sets the role of this side.
    pub const fn belong_to(&mut self, role: Role) {
        self.role = role;
    }

    /// The id of the next stream. `None`: the limit is reached.
    pub fn next(&self) -> Option<StreamId> {
        let index = u32::try_from(self.opened).ok().filter(|index| *index <= u32::MAX / 2)?;
        Some(StreamId(2 * index + self.role.first_stream()))
    }

    /// Returns the number of streams that this host has opened.
    pub const fn opened(&self) -> u64 {
        self.opened
    }

    /// Sets how many streams may be opened in all.
    pub const fn set_limit(&mut self, limit: u64) {
        self.limit = limit;
    }

    /// Raises how many streams may be opened in all to `limit`. Returns whether a stream that was
    /// refused can be opened now.
    pub fn raise_limit(&mut self, limit: u64) -> bool {
        self.limit = self.limit.max(limit);
        let told = self.refused && self.opened < self.limit;
        self.refused &= !told;
        told
    }

    /// Returns the number of the peer's streams that ended here since the last call, after they had
    /// ended in the other direction.
    pub const fn take_answers_over(&mut self) -> u64 {
        core::mem::replace(&mut self.answers_over, 0)
    }

    /// Notes that a stream of the peer ended here, after it had ended in the other direction.
    pub const fn on_answer_over(&mut self) {
        self.answers_over += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::super::{OutEvent, Outgoing, OutgoingLimits};
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
