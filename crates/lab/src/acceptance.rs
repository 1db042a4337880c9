//! How a known miss compares with the value at which it was accepted.

/// Part of the accepted value by which a result may be worse. It is a tolerance, and not measured:
/// the figure of one seed moves when anything before it changes.
const TOLERANCE_SHARE: f64 = 0.1;

/// The comparison of a known miss with the value at which it was accepted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Acceptance {
    /// The miss has no accepted value.
    Missing,
    /// Worse than this accepted value, by more than the tolerance.
    Worse(f64),
    /// The miss is within the tolerance of the accepted value.
    Alike,
    /// Better than this accepted value, by more than the tolerance.
    Better(f64),
}

/// The bounds that a value misses.
#[derive(Clone, Copy, Debug, Default)]
pub struct MissedBounds {
    /// The value should be no less.
    pub at_least: Option<f64>,
    /// The value should be no more.
    pub at_most: Option<f64>,
}

impl MissedBounds {
    /// Compares a value with the accepted one. A result may always be worse by `noise`, in the unit
    /// of the value. NaN stands for a value that could not be measured, the worst of all.
    #[must_use]
    pub fn compare(self, value: f64, accepted: Option<f64>, noise: f64) -> Acceptance {
        let Some(accepted) = accepted else { return Acceptance::Missing };
        let (now, before) = (self.beyond(value), self.beyond(accepted));
        let slack = (TOLERANCE_SHARE * libm::fabs(accepted)).max(noise);
        match (now.is_finite(), before.is_finite()) {
            (false, false) => Acceptance::Alike,
            (false, true) => Acceptance::Worse(accepted),
            (true, false) => Acceptance::Better(accepted),
            (true, true) if now > before + slack => Acceptance::Worse(accepted),
            (true, true) if now < before - slack => Acceptance::Better(accepted),
            (true, true) => Acceptance::Alike,
        }
    }

    /// Returns the distance of a value from the bounds. Negative: the value is within the bounds.
    #[must_use]
    pub fn beyond(self, value: f64) -> f64 {
        if value.is_nan() {
            return f64::INFINITY;
        }
        let below = self.at_least.map(|least| least - value);
        let above = self.at_most.map(|most| value - most);
        below.into_iter().chain(above).fold(f64::NEG_INFINITY, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_miss_is_compared_with_the_accepted_one() {
        let most = MissedBounds { at_most: Some(5.0), ..MissedBounds::default() };
        let least = MissedBounds { at_least: Some(0.25), ..MissedBounds::default() };
        for (value, accepted, bounds, is) in [
            (8.0, 8.0, most, Acceptance::Alike),
            (8.7, 8.0, most, Acceptance::Alike),
            (9.0, 8.0, most, Acceptance::Worse(8.0)),
            (f64::INFINITY, 8.0, most, Acceptance::Worse(8.0)),
            (f64::NAN, 8.0, most, Acceptance::Worse(8.0)),
            (8.0, f64::INFINITY, most, Acceptance::Better(f64::INFINITY)),
            (f64::INFINITY, f64::INFINITY, most, Acceptance::Alike),
            (0.0, 0.2, least, Acceptance::Worse(0.2)),
            (0.0, 0.01, least, Acceptance::Alike),
            (0.24, 0.2, least, Acceptance::Better(0.2)),
        ] {
            assert_eq!(bounds.compare(value, Some(accepted), 0.02), is, "{value} {accepted}");
        }
        assert_eq!(most.compare(8.0, None, 0.02), Acceptance::Missing);
    }
}
