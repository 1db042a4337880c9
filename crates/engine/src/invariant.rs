//! Values that are missing only if byway itself has a defect.

/// Asserts that a value is present, where earlier steps guarantee it. If it is missing, a debug
/// build panics, and a release build continues without it. Not for values that depend on the peer
/// or on the application.
pub(crate) trait Invariant {
    /// Returns the value unchanged. A debug build panics if it is missing.
    #[must_use]
    fn sure(self) -> Self;
}

impl<T> Invariant for Option<T> {
    #[inline]
    #[track_caller]
    fn sure(self) -> Self {
        debug_assert!(self.is_some(), "what must be there is missing");
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_stays() {
        assert_eq!(Some(1).sure(), Some(1));
    }

    #[test]
    #[should_panic(expected = "missing")]
    fn what_is_missing_stops_a_debug_build() {
        let _ = None::<u8>.sure();
    }
}
