//! The number of a link.

/// The number of a link, in the order of [`World::link`](crate::World::link).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct LinkId(pub u32);
