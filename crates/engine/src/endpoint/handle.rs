//! The name of a connection.

/// A connection, or an attempt at one. Never reused by an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Handle(u32);

impl Handle {
    pub(super) const fn new(number: u32) -> Self {
        Self(number)
    }
}
