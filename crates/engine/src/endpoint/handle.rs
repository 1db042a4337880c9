//! The name of a connection.

/// Identifies a connection, or an attempt at one. An endpoint never uses it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Handle(u32);

impl Handle {
    pub(super) const fn new(number: u32) -> Self {
        Self(number)
    }
}
