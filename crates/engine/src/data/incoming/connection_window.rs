//! The connection's flow control, as the receiver keeps it.

use crate::data::data_frames::ProtocolError;

/// Counts bytes that arrived, and bytes that the owner took.
#[derive(Debug)]
pub(super) struct ConnectionWindow {
    window: u64,
    /// The largest window, if it is a [share](ConnectionWindow::share) of an endpoint's memory.
    most: u64,
    /// The initial window in bytes.
    least: u64,
    /// The number of bytes taken from which on the window wants to be larger.
    more_at: u64,
    /// Distinct bytes and costs that came.
    came: u64,
    /// Number of these bytes that the owner has taken.
    taken: u64,
    /// The limit that was last sent to the peer, in bytes since the connection began.
    told: u64,
    /// Whether the limit must be sent again, because its packet was lost.
    again: bool,
    /// Distinct bytes that came, without costs.
    pub bytes: u64,
}

impl ConnectionWindow {
    pub const fn new(window: u64) -> Self {
        let (most, least, more_at) = (window, window, u64::MAX);
        Self { window, most, least, more_at, came: 0, taken: 0, told: window, again: false, bytes: 0 }
    }

    /// Starts with a window of `least` bytes, and keeps the present window as the largest.
    pub fn sharing(&mut self, least: u64) {
        *self = Self { most: self.most, ..Self::new(least) };
        self.set_window(least);
    }

    /// Returns (granted, wanted) in bytes. Granted: what the peer may still send, plus what arrived
    /// and the application has not taken. Wanted: `least` plus four times what the application has
    /// taken so far, at most `most`.
    pub fn share(&self) -> (u64, u64) {
        (self.told - self.taken, self.taken.saturating_mul(4).saturating_add(self.least).min(self.most))
    }

    /// Sets the window. The limit that the peer has stays valid.
    pub fn set_window(&mut self, window: u64) {
        self.window = window.min(self.most);
        self.more_at = if self.window < self.most { self.taken + self.window / 2 } else { u64::MAX };
    }

    /// Whether enough was taken for a larger window to be worth asking for.
    pub const fn wants_window(&self) -> bool {
        self.taken >= self.more_at
    }

    /// The connection's window in bytes.
    pub const fn window(&self) -> u64 {
        self.window
    }

    /// Bytes and costs not taken yet.
    pub const fn held(&self) -> u64 {
        self.came - self.taken
    }

    /// Whether more than half of the window is used.
    pub const fn is_half_full(&self) -> bool {
        self.held() > self.window / 2
    }

    /// Notes `bytes` new bytes, and objects with this `cost`. An error: they exceed the limit.
    pub const fn receive(&mut self, bytes: u64, cost: u64) -> Result<(), ProtocolError> {
        self.came += bytes + cost;
        self.bytes += bytes;
        if self.came > self.told {
            return Err(ProtocolError::new(
                ProtocolError::FLOW_CONTROL,
                "more data than the connection's limit",
            ));
        }
        Ok(())
    }

    /// Notes that the owner took `amount` bytes.
    pub fn take(&mut self, amount: u64) {
        self.taken = (self.taken + amount).min(self.came);
    }

    /// Whether a new limit should be sent. It should exceed the last one by an eighth of the
    /// window.
    pub const fn is_due(&self) -> bool {
        self.again || (self.taken + self.window).saturating_sub(self.told) >= self.window / 8
    }

    /// Returns the limit for the peer, in bytes since the connection began, and marks it as sent.
    pub fn tell(&mut self) -> u64 {
        self.again = false;
        self.told = self.told.max(self.taken + self.window);
        self.told
    }

    /// Notes that the packet with the limit may be lost.
    pub const fn tell_again(&mut self) {
        self.again = true;
    }
}
