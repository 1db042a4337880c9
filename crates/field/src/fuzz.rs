//! Random worlds, random faults, and laws that must hold.

use crate::error::{About as _, Error, Result};
use crate::quiet_panics::QuietPanics;
use byway_lab::fuzz::{Finding, judge, setup};
use byway_lab::plan::{MAX_SEED, plan_text};
use rayon::prelude::*;
use serde::Serialize;
use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// Number of worlds that run between two calls of `stop`.
const BATCH_WORLDS: usize = 50;

/// The seeds of the worlds to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorldSeeds {
    /// This number of consecutive seeds.
    Count {
        /// The first of the seeds.
        first: u64,
        /// Number of seeds.
        count: u64,
    },
    /// Consecutive seeds until the time is over.
    Time {
        /// The first of the seeds.
        first: u64,
        /// No world begins later than this after the beginning, but the worlds of one batch.
        time: Duration,
    },
    /// A list of seeds.
    Listed(Vec<u64>),
}

impl WorldSeeds {
    /// The seeds in the file at `path`: one in a line, comments behind `#`.
    ///
    /// # Errors
    /// The file cannot be read, or what is wrong with it and where.
    pub fn in_file(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).about(|| path.display().to_string())?;
        let seeds = text.lines().enumerate().filter_map(|(number, line)| {
            let told = line.split('#').next().unwrap_or_default().trim();
            let wrong = |_| {
                let place = format!("{}:{}", path.display(), number + 1);
                Error::Usage(format!("{place}: expected a seed, which is a whole number, found `{told}`"))
            };
            (!told.is_empty()).then(|| told.parse().map_err(wrong))
        });
        Ok(Self::Listed(seeds.collect::<Result<_>>()?))
    }

    /// Returns the number of seeds. `None`: it depends on the time.
    #[must_use]
    pub const fn count(&self) -> Option<u64> {
        match self {
            Self::Count { count, .. } => Some(*count),
            Self::Time { .. } => None,
            Self::Listed(seeds) => Some(seeds.len() as u64),
        }
    }

    /// The seed, if there is only one. `None`: there are several.
    #[must_use]
    pub fn only(&self) -> Option<u64> {
        match self {
            Self::Count { first, count: 1 } => Some(*first),
            Self::Listed(seeds) => match seeds.as_slice() {
                [seed] => Some(*seed),
                _ => None,
            },
            _ => None,
        }
    }

    /// All seeds in order, and the time in which runs may begin. `None`: no limit.
    fn all(&self) -> (Box<dyn Iterator<Item = u64> + '_>, Option<Duration>) {
        match self {
            Self::Count { first, count } => (Box::new(*first..first.saturating_add(*count)), None),
            Self::Time { first, time } => (Box::new(*first..=u64::MAX), Some(*time)),
            Self::Listed(seeds) => (Box::new(seeds.iter().copied()), None),
        }
    }
}

/// An event while random worlds are run.
#[derive(Debug)]
pub enum FuzzEvent {
    /// A world broke a law.
    Found(Finding),
    /// The number of worlds run so far, and their contents.
    Progress(FuzzCounts),
}

/// Seeds that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SeedSeries {
    /// The first seed.
    pub first: u64,
    /// The last seed.
    pub last: u64,
}

/// The counts of a fuzzing run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FuzzCounts {
    /// Worlds that were run.
    pub worlds: u64,
    /// The seeds, in the order in which they were run.
    pub seeds: Vec<SeedSeries>,
    /// Number of packets in the worlds.
    pub packets: u64,
    /// Number of worlds that broke a law.
    pub found: u64,
    /// Seconds of real time that the worlds took.
    #[serde(skip)]
    pub seconds: f64,
}

impl FuzzCounts {
    fn add(&mut self, seeds: &[u64]) {
        self.worlds += seeds.len() as u64;
        for &seed in seeds {
            match self.seeds.last_mut() {
                Some(series) if series.last.checked_add(1) == Some(seed) => series.last = seed,
                _ => self.seeds.push(SeedSeries { first: seed, last: seed }),
            }
        }
    }
}

/// Runs the worlds of these seeds on all cores, until `stop` returns true.
///
/// # Errors
/// Nobody could be told.
pub fn run(
    seeds: &WorldSeeds,
    stop: impl Fn() -> bool,
    mut tell: impl FnMut(FuzzEvent) -> io::Result<()>,
) -> Result<FuzzCounts> {
    let _quiet = QuietPanics::begin();
    let begun = Instant::now();
    let mut counts = FuzzCounts::default();
    let (mut left, time) = seeds.all();
    let over = || time.is_some_and(|time| begun.elapsed() >= time);
    while !stop() && !over() {
        let batch: Vec<u64> = left.by_ref().take(BATCH_WORLDS).collect();
        if batch.is_empty() {
            break;
        }
        let judged: Vec<_> = batch.par_iter().with_max_len(1).map(|&seed| judge(seed)).collect();
        for result in judged {
            match result {
                Ok(record) => counts.packets += record.packets,
                Err(finding) => {
                    counts.found += 1;
                    tell(FuzzEvent::Found(finding))?;
                }
            }
        }
        counts.add(&batch);
        counts.seconds = begun.elapsed().as_secs_f64();
        tell(FuzzEvent::Progress(counts.clone()))?;
    }
    counts.seconds = begun.elapsed().as_secs_f64();
    Ok(counts)
}

/// Returns the world of `seed` as a plan, which runs only with that seed. `finding`: a description
/// of the broken law.
///
/// # Errors
/// The seed is larger than a plan's may be.
pub fn world_plan(seed: u64, finding: Option<&str>) -> Result<String> {
    if seed > MAX_SEED {
        return Err(Error::Usage(format!("the seeds of plans end at {MAX_SEED}, and this is {seed}")));
    }
    let title = match finding {
        Some(what) => format!("The random world of seed {seed}: {what}"),
        None => format!("The random world of seed {seed}"),
    };
    let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
    let world = plan_text(&title, &setup(seed));
    Ok(format!(
        "# `byway lab run` runs this world as `byway lab fuzz --first {seed} --seeds 1` does.\n\
         first_seed = {seed}\nseeds = 1\n{world}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use byway_lab::plan::{Mode, Overrides, Plan};
    use byway_lab::runner;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn the_plan_of_a_world_runs_as_the_world_does() {
        let seed = 4;
        let text = world_plan(seed, Some("two\nlines of \"what\"")).expect("a plan");
        let plan = Plan::read("p", &text, Mode::All, &Overrides::default()).expect("a plan").expect("a form");
        assert_eq!(plan.title, "The random world of seed 4: two lines of \"what\"");
        let outcome = runner::run(&plan, &AtomicBool::new(false), &|_, _| {});
        let record = judge(seed).expect("a world that keeps the laws");
        assert_eq!((outcome.error, outcome.records), (None, vec![record]));
        assert!(world_plan(MAX_SEED + 1, None).is_err());
    }

    #[test]
    fn seeds_are_counted_listed_or_run_by_time() {
        let listed = |text: &str| {
            let file = tempfile::NamedTempFile::new().expect("a file");
            fs::write(file.path(), text).expect("written");
            WorldSeeds::in_file(file.path())
        };
        let seeds = listed("# of last week\n7\n\n 8 # slow\n3\n").expect("seeds");
        assert_eq!(seeds, WorldSeeds::Listed(vec![7, 8, 3]));
        assert_eq!((seeds.count(), seeds.only()), (Some(3), None));
        assert_eq!(listed("# none yet\n").expect("seeds"), WorldSeeds::Listed(Vec::new()));
        let wrong = listed("1\nseven\n").expect_err("no number").to_string();
        assert!(wrong.contains(":2: expected a seed, which is a whole number, found `seven`"), "{wrong}");
        let ran = run(&seeds, || false, |_| Ok(())).expect("a run");
        assert_eq!(
            (ran.worlds, ran.found, ran.seeds),
            (3, 0, vec![SeedSeries { first: 7, last: 8 }, SeedSeries { first: 3, last: 3 }])
        );
        let none = run(&WorldSeeds::Time { first: 1, time: Duration::ZERO }, || false, |_| Ok(()));
        assert_eq!(none.expect("a run").worlds, 0);
        let some = run(&WorldSeeds::Time { first: 5, time: Duration::from_millis(1) }, || false, |_| Ok(()));
        assert_eq!(some.expect("a run").seeds, [SeedSeries { first: 5, last: 54 }]);
        let one = WorldSeeds::Count { first: 9, count: 1 };
        assert_eq!((one.count(), one.only()), (Some(1), Some(9)));
        let stopped = run(&one, || true, |_| Ok(()));
        assert_eq!(stopped.expect("a run").worlds, 0);
    }
}
