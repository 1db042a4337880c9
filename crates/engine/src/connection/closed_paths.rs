//! The paths of this side that are closed, and of which the peer must still be told.

use alloc::collections::VecDeque;
use byway_wire::PathId;

/// The dropped paths of this side that the peer must be told about. PATH_DROPPED is repeated until
/// acknowledged, because it also tells the peer that the id exists. The peer accepts ids only up to
/// `PATH_LOOKAHEAD` above the highest id that it knows.
#[derive(Clone, Debug, Default)]
pub(super) struct ClosedPaths {
    due: VecDeque<PathId>,
    known: u32,
}

impl ClosedPaths {
    /// Notes that the peer has seen this path id.
    pub fn on_known(&mut self, id: PathId) {
        self.known = self.known.max(id.0.saturating_add(1));
    }

    /// One more than the highest path id that the peer is known to have seen.
    pub const fn known(&self) -> u32 {
        self.known
    }

    /// Queues the message to the peer that this path is dropped.
    pub fn push(&mut self, id: PathId) {
        self.due.push_back(id);
    }

    /// Returns the next dropped path to report to the peer.
    pub fn pop(&mut self) -> Option<PathId> {
        self.due.pop_front()
    }

    pub fn is_empty(&self) -> bool {
        self.due.is_empty()
    }
}
