//! Whether a path carries packets marked as lower effort, with the code point of RFC 8622. Networks
//! may drop packets whose code point they do not know.

/// Whether a route carries packets of lower effort; the first such packets decide this. A network
/// may drop or starve such packets. Then the path sends as best effort, and only the congestion
/// controller yields to other traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DscpSupport {
    /// No packet with this code point was answered yet.
    #[default]
    Untried,
    /// A packet with this code point was acknowledged.
    Open,
    /// A timeout came before anything was acknowledged.
    Shut,
}

impl DscpSupport {
    /// Whether packets may leave with the code point of lower effort.
    #[must_use]
    pub fn is_used(self) -> bool {
        self != Self::Shut
    }

    /// Enters that packets of the path were acknowledged.
    pub fn on_ack(&mut self) {
        if *self == Self::Untried {
            *self = Self::Open;
        }
    }

    /// Nothing was acknowledged for a whole timeout.
    pub fn on_timeout(&mut self) {
        if *self == Self::Untried {
            *self = Self::Shut;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_first_decides() {
        let mut dscp_support = DscpSupport::default();
        assert!(dscp_support.is_used());
        dscp_support.on_ack();
        dscp_support.on_timeout();
        assert!(dscp_support.is_used(), "it was carried before: this is congestion");
        let mut dscp_support = DscpSupport::default();
        dscp_support.on_timeout();
        dscp_support.on_ack();
        assert!(!dscp_support.is_used(), "what came back had no mark");
    }
}
