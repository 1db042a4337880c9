//! One direction of an edge.

/// One direction of an edge of a [`Graph`](super::Graph). It is valid only in that graph.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Direction(pub(super) u32);

impl Direction {
    /// Returns the opposite direction of the same edge.
    #[must_use]
    pub const fn reversed(self) -> Self {
        Self(self.0 ^ 1)
    }
}
