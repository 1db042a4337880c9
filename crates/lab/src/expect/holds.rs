//! Counts the claims of an experiment that hold: as published, by a second reading, and by byway's
//! law.

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
    /// Number of missed claims without a known reason.
    pub failed: usize,
}

/// Whether a second reading of the claim `id` holds.
fn holds_by_reading(id: &str, claims: &[ClaimResult]) -> bool {
    claims.iter().any(|other| {
        other.reading == Some(Reading::Second)
            && other.verdict == Verdict::Pass
            && other.of.as_deref() == Some(id)
    })
}

/// Ids of the paper's claims that hold by no reading, in the order of `claims`.
pub fn missed_of_paper(claims: &[ClaimResult]) -> impl Iterator<Item = &str> {
    let missed = move |claim: &&ClaimResult| {
        matches!(claim.verdict, Verdict::KnownMiss | Verdict::Fail)
            && match claim.reading {
                Some(Reading::Ours) => false,
                Some(Reading::Second) => claim.of.is_none(),
                Some(Reading::Strict) | None => !holds_by_reading(&claim.id, claims),
            }
    };
    claims.iter().filter(missed).map(|claim| claim.id.as_str())
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
                Some(Reading::Second) => holds.by_reading += usize::from(passed),
                Some(Reading::Strict) | None => {
                    holds.published += usize::from(passed);
                    holds.by_reading += usize::from(missed && holds_by_reading(&claim.id, claims));
                }
            }
        }
        holds.missed = missed_of_paper(claims).count();
        holds
    }

    /// Claims of the paper that were judged.
    #[must_use]
    pub const fn of_paper(&self) -> usize {
        self.published + self.by_reading + self.missed
    }

    /// Whether every claim of the paper holds, as published or by a second reading. `None`: the
    /// experiment judges no claim of a paper.
    #[must_use]
    pub fn paper_whole(&self) -> Option<bool> {
        (self.of_paper() > 0).then_some(self.missed == 0)
    }

    /// Whether every claim of an experiment about byway alone holds. `None`: the experiment judges
    /// a claim of a paper too, or nothing.
    #[must_use]
    pub fn own_whole(&self) -> Option<bool> {
        let own = self.of_paper() == 0 && self.ours + self.ours_missed > 0;
        own.then_some(self.ours_missed == 0)
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
        assert_eq!((holds, holds.paper_whole(), holds.own_whole()), (expected, Some(true), None));
        claims.remove(3);
        let holds = Holds::of(&claims);
        assert_eq!((holds.published, holds.missed, holds.paper_whole()), (1, 1, Some(false)));
        claims.push(claim("alone", Reading::Second, None, Verdict::Fail));
        assert_eq!(missed_of_paper(&claims).collect::<Vec<_>>(), ["b", "alone"]);
    }

    #[test]
    fn a_claim_about_byway_says_nothing_about_a_paper() {
        let shown = claim("shown", Reading::Strict, None, Verdict::Report);
        let paper = claim("a", Reading::Strict, None, Verdict::Pass);
        let [held, missed] =
            [Verdict::Pass, Verdict::KnownMiss].map(|verdict| claim("b", Reading::Ours, None, verdict));
        let whole = |claims: &[&ClaimResult]| {
            let claims: Vec<ClaimResult> = claims.iter().map(|claim| (*claim).clone()).collect();
            let holds = Holds::of(&claims);
            (holds.paper_whole(), holds.own_whole())
        };
        assert_eq!(whole(&[&shown]), (None, None));
        assert_eq!(whole(&[&shown, &held]), (None, Some(true)));
        assert_eq!(whole(&[&held, &missed]), (None, Some(false)));
        assert_eq!(whole(&[&paper, &held]), (Some(true), None));
        assert_eq!(whole(&[&paper, &missed]), (Some(true), None), "byway's miss is not the paper's");
    }
}
