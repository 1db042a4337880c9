//! How many claims of an experiment hold: as published, by a second reading, and by byway's law.

use super::outcome::{ClaimResult, Verdict};
use super::reading::Reading;

/// Counts of claims. A claim of the paper and its second readings count as one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holds {
    /// Claims of the paper that hold as published.
    pub published: usize,
    /// Claims of the paper that hold by a declared second reading alone.
    pub by_reading: usize,
    /// Claims of the paper that hold by no reading.
    pub missed: usize,
    /// Claims about byway's own law that hold.
    pub ours: usize,
    /// Claims about byway's own law that are missed.
    pub ours_missed: usize,
    /// Misses among all of these without a reason.
    pub failed: usize,
}

impl Holds {
    /// Counts `claims`. Reports, and claims that were not run, do not count.
    #[must_use]
    pub fn of(claims: &[ClaimResult]) -> Self {
        let mut holds = Self::default();
        for claim in claims {
            let missed = matches!(claim.verdict, Verdict::KnownMiss | Verdict::Fail);
            let passed = claim.verdict == Verdict::Pass;
            holds.failed += usize::from(claim.verdict == Verdict::Fail);
            match claim.reading {
                Some(Reading::Ours) => {
                    holds.ours += usize::from(passed);
                    holds.ours_missed += usize::from(missed);
                }
                // Judged together with the claim that it reads a second time.
                Some(Reading::Second) if claim.of.is_some() => {}
                Some(Reading::Second) => {
                    holds.by_reading += usize::from(passed);
                    holds.missed += usize::from(missed);
                }
                Some(Reading::Strict) | None => {
                    let second = claims.iter().any(|other| {
                        other.reading == Some(Reading::Second)
                            && other.verdict == Verdict::Pass
                            && other.of.as_ref() == Some(&claim.id)
                    });
                    holds.published += usize::from(passed);
                    holds.by_reading += usize::from(missed && second);
                    holds.missed += usize::from(missed && !second);
                }
            }
        }
        holds
    }

    /// Claims of the paper that were judged.
    #[must_use]
    pub const fn of_paper(&self) -> usize {
        self.published + self.by_reading + self.missed
    }

    /// Whether every claim of the paper holds, as published or by a second reading. Where byway's
    /// own law alone was judged, whether all of its claims hold. `None`: nothing was judged.
    #[must_use]
    pub fn whole(&self) -> Option<bool> {
        match (self.of_paper(), self.ours + self.ours_missed) {
            (0, 0) => None,
            (0, _) => Some(self.ours_missed == 0),
            _ => Some(self.missed == 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(id: &str, reading: Reading, of: Option<&str>, verdict: Verdict) -> ClaimResult {
        let of = of.map(str::to_owned);
        ClaimResult { id: id.into(), reading: Some(reading), of, verdict, ..ClaimResult::default() }
    }

    #[test]
    fn a_claim_and_its_second_reading_count_as_one() {
        let mut claims = vec![
            claim("a", Reading::Strict, None, Verdict::Pass),
            claim("a-full", Reading::Second, Some("a"), Verdict::KnownMiss),
            claim("b", Reading::Strict, None, Verdict::KnownMiss),
            claim("b-full", Reading::Second, Some("b"), Verdict::Pass),
            claim("b-ours", Reading::Ours, Some("b"), Verdict::KnownMiss),
            claim("shown", Reading::Strict, None, Verdict::Report),
        ];
        let holds = Holds::of(&claims);
        let expected = Holds { published: 1, by_reading: 1, ours_missed: 1, ..Holds::default() };
        assert_eq!((holds, holds.whole()), (expected, Some(true)));
        claims.remove(3);
        let holds = Holds::of(&claims);
        assert_eq!((holds.published, holds.missed, holds.whole()), (1, 1, Some(false)));
        assert_eq!(Holds::of(&claims[4..]).whole(), None);
        assert_eq!(Holds::of(&claims[3..]).whole(), Some(false), "byway's own law alone");
    }
}
