//! The limit on streams that a peer may open since the connection began (MAX_STREAMS, RFC 9000
//! section 4.6).
//!
//! Each ended stream raises the limit by one, so at most [`most`](StreamLimit::new) are open. A
//! MAX_STREAMS frame adds at least a quarter of `most`.

/// Counts the streams of a peer.
#[derive(Debug)]
pub(super) struct StreamLimit {
    /// The most streams that may be open at once.
    most: u64,
    /// Number of streams that have ended.
    over: u64,
    /// The limit that was last sent to the peer.
    told: u64,
    /// Whether the limit must be sent again, because its packet was lost.
    again: bool,
}

impl StreamLimit {
    /// A limit without open streams. The peer knows that it may open `most`.
    pub const fn new(most: u64) -> Self {
        Self { most, over: 0, told: most, again: false }
    }

    /// Whether the peer may open the stream with this index, counted from 0 among the peer's
    /// streams.
    pub const fn allows(&self, index: u64) -> bool {
        index < self.told
    }

    /// Enters that `count` more streams are over.
    pub const fn on_over(&mut self, count: u64) {
        self.over += count;
    }

    /// Whether a new limit should be sent to the peer.
    pub const fn is_due(&self) -> bool {
        self.again || self.over + self.most - self.told >= self.most.div_ceil(4) && self.most > 0
    }

    /// Returns the new limit for the peer, in streams since the connection began, and marks it as
    /// sent.
    pub const fn tell(&mut self) -> u64 {
        self.again = false;
        self.told = self.over + self.most;
        self.told
    }

    /// Notes that the packet with the limit may be lost.
    pub const fn tell_again(&mut self) {
        self.again = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_as_are_over_may_be_opened_anew() {
        let mut places = StreamLimit::new(8);
        assert!(places.allows(7) && !places.allows(8) && !places.is_due());
        places.on_over(1);
        assert!(!places.is_due(), "less than a quarter");
        places.on_over(1);
        assert!(places.is_due() && !places.allows(8), "it was not told yet");
        assert_eq!(places.tell(), 10);
        assert!(places.allows(9) && !places.allows(10) && !places.is_due());
        places.tell_again();
        assert!(places.is_due());
        assert_eq!(places.tell(), 10);
    }

    #[test]
    fn who_takes_none_tells_none() {
        let places = StreamLimit::new(0);
        assert!(!places.allows(0) && !places.is_due());
    }
}
