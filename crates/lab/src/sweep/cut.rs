//! Cuts the runs of a plan into tasks of about equal length.

use super::identity::SweepIdentity;
use super::task::SweepTask;
use crate::plan::Mode;
use core::ops::RangeInclusive;

/// Returns the number of seeds with which a task takes about `task_seconds`, where one run takes
/// `run_seconds`: at least 1.
#[must_use]
pub fn seeds_per_task(run_seconds: f64, task_seconds: f64) -> u64 {
    // A run of no measurable time makes a task of all seeds: the division saturates.
    ((task_seconds / run_seconds) as u64).max(1)
}

/// Cuts the seeds of each variant into tasks. `per_task` has the number of seeds of a task for each
/// variant. The last task of a variant may have fewer.
pub fn cut<'c>(
    identity: &'c SweepIdentity,
    mode: Mode,
    seeds: RangeInclusive<u64>,
    per_task: &'c [u64],
) -> impl Iterator<Item = SweepTask> + 'c {
    let (first, last) = seeds.into_inner();
    per_task.iter().enumerate().flat_map(move |(place, &per_task)| {
        let per_task = per_task.max(1);
        let of_task = move |first: u64| SweepTask {
            identity: identity.clone(),
            mode,
            variant: place + 1,
            seeds: first..=last.min(first.saturating_add(per_task - 1)),
        };
        let next = move |first: &u64| first.checked_add(per_task).filter(|next| *next <= last);
        core::iter::successors((first <= last).then_some(first), next).map(of_task)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_task_lasts_as_asked_and_has_a_seed_at_least() {
        assert_eq!(seeds_per_task(2.0, 30.0), 15);
        assert_eq!(seeds_per_task(90.0, 30.0), 1);
        assert_eq!(seeds_per_task(0.0, 30.0), u64::MAX);
    }

    proptest! {
        #[test]
        fn each_seed_is_in_one_task(first in 1_u64..1_000, count in 0_u64..200, per in prop::collection::vec(0_u64..50, 0..4)) {
            let identity = SweepIdentity { plan: "a".into(), program: "b".into() };
            let tasks: Vec<_> = cut(&identity, Mode::All, first..=first + count, &per).collect();
            for variant in 1..=per.len() {
                let of_variant = tasks.iter().filter(|task| task.variant == variant);
                let seeds: Vec<u64> = of_variant.flat_map(|task| task.seeds.clone()).collect();
                prop_assert_eq!(seeds, (first..=first + count).collect::<Vec<_>>());
            }
        }
    }
}
