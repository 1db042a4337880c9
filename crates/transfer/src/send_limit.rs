//! What a sender sends at most: the lower of its own limit and the one that the receiver told.

/// The limits of a sender: its own and the receiver's, in bytes per second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SendLimit {
    own: Option<u64>,
    /// Whether the sender's own limit is lifted.
    is_lifted: bool,
    /// The rate in bytes per second that the receiver permits. 0: no limit.
    wanted: u64,
}

impl SendLimit {
    pub const fn new(own: Option<u64>) -> Self {
        Self { own, is_lifted: false, wanted: 0 }
    }

    /// Takes in what the receiver wants, if it said that since the last call, and whether this
    /// side's own limit is lifted. Returns whether either changed.
    pub fn update(&mut self, wanted: Option<u64>, is_lifted: bool) -> bool {
        let before = (self.wanted, self.is_lifted);
        (self.wanted, self.is_lifted) = (wanted.unwrap_or(self.wanted), is_lifted);
        before != (self.wanted, self.is_lifted)
    }

    /// The limit that holds, in bytes per second; `None` is no limit.
    pub fn bytes_per_second(&self) -> Option<u64> {
        let own = self.own.filter(|_| !self.is_lifted);
        let wanted = Some(self.wanted).filter(|wanted| *wanted > 0);
        own.into_iter().chain(wanted).min()
    }

    /// Whether the receiver's limit is the one that applies.
    pub fn is_receivers(&self) -> bool {
        self.wanted > 0 && self.bytes_per_second() == Some(self.wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cap(own: Option<u64>, wanted: u64) -> SendLimit {
        let mut cap = SendLimit::new(own);
        cap.update(Some(wanted), false);
        cap
    }

    #[test]
    fn the_lower_limit_counts() {
        let limit = |own, wanted| cap(own, wanted).bytes_per_second();
        assert_eq!((limit(None, 0), limit(Some(5), 0)), (None, Some(5)));
        assert_eq!((limit(None, 7), limit(Some(5), 7), limit(Some(9), 7)), (Some(7), Some(5), Some(7)));
        assert!(cap(Some(9), 7).is_receivers() && !cap(Some(5), 7).is_receivers());
    }

    #[test]
    fn a_limit_that_is_lifted_leaves_the_receivers() {
        let mut cap = cap(Some(5), 7);
        assert!(cap.update(None, true) && !cap.update(None, true));
        assert_eq!((cap.bytes_per_second(), cap.is_receivers()), (Some(7), true));
        assert!(cap.update(Some(0), true));
        assert_eq!((cap.bytes_per_second(), cap.is_receivers()), (None, false));
    }
}
