//! Whether a path carries packets of lower effort. Networks may drop code points that they do not
//! know (the code point is that of RFC 8622).

/// What a route does with the first packets of lower effort decides for as long as it is used.
///
/// Where lower effort is starved from the beginning it looks the same as where it is dropped. There
/// the path goes on as best effort, and the controller alone yields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DscpSupport {
    /// Nothing came back yet.
    #[default]
    Untried,
    /// A packet was acknowledged.
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
        let mut passage = DscpSupport::default();
        assert!(passage.is_used());
        passage.on_ack();
        passage.on_timeout();
        assert!(passage.is_used(), "it was carried before: this is congestion");
        let mut passage = DscpSupport::default();
        passage.on_timeout();
        passage.on_ack();
        assert!(!passage.is_used(), "what came back had no mark");
    }
}
