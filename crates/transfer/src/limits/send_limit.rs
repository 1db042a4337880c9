//! A sender's rate limit: the lower of its own limit and the receiver's.

/// The limits of a sender: its own and the receiver's, in bytes per second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SendLimit {
    own: Option<u64>,
    /// The rate in bytes per second that the receiver permits. 0: no limit.
    wanted: u64,
}

impl SendLimit {
    pub const fn new(own: Option<u64>) -> Self {
        Self { own, wanted: 0 }
    }

    /// Sets the receiver's limit, if it sent a new one, and this host's own. Returns whether either
    /// changed.
    pub fn update(&mut self, wanted: Option<u64>, own: Option<u64>) -> bool {
        let before = (self.wanted, self.own);
        (self.wanted, self.own) = (wanted.unwrap_or(self.wanted), own);
        before != (self.wanted, self.own)
    }

    /// The limit that holds, in bytes per second; `None` is no limit.
    pub fn bytes_per_second(&self) -> Option<u64> {
        let wanted = Some(self.wanted).filter(|wanted| *wanted > 0);
        self.own.into_iter().chain(wanted).min()
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
        cap.update(Some(wanted), own);
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
    fn an_own_limit_that_changes_leaves_the_receivers() {
        let mut cap = cap(Some(5), 7);
        assert!(cap.update(None, None) && !cap.update(None, None));
        assert_eq!((cap.bytes_per_second(), cap.is_receivers()), (Some(7), true));
        assert!(cap.update(Some(0), None));
        assert_eq!((cap.bytes_per_second(), cap.is_receivers()), (None, false));
        assert!(cap.update(None, Some(3)));
        assert_eq!((cap.bytes_per_second(), cap.is_receivers()), (Some(3), false));
    }
}
