//! The number of a link.

/// Which link. Numbered in the order of [`World::link`](crate::World::link).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct LinkId(pub u32);
