//! Where experiments and their results are.

use crate::error::{About as _, Error, Result};
use byway_lab::expect::{Expectation, Outcome};
use byway_lab::experiment::{self, Experiment};
use byway_lab::headlines::{self, Headline};
use byway_lab::plan::Mode;
use byway_lab::spelling;
use std::fs;
use std::path::PathBuf;

/// The directories of experiments and of their results.
#[derive(Clone, Debug, Default)]
pub struct Directories {
    /// The directory with a folder for each experiment. `None`: the experiments in the program.
    pub experiments: Option<PathBuf>,
    /// The directory for results and figures.
    pub out: PathBuf,
}

impl Directories {
    /// The experiments, by name.
    ///
    /// # Errors
    /// Their directory cannot be read.
    pub fn experiments(&self) -> Result<Vec<Experiment>> {
        match &self.experiments {
            None => Ok(experiment::embedded()),
            Some(directory) => experiment::in_directory(directory).about(|| directory.display().to_string()),
        }
    }

    /// The experiment called `id`.
    ///
    /// # Errors
    /// There is none; the sentence names what may have been meant.
    pub fn experiment(&self, id: &str) -> Result<Experiment> {
        let mut all = self.experiments()?;
        if let Some(found) = all.iter().position(|experiment| experiment.id == id) {
            return Ok(all.swap_remove(found));
        }
        let sentence = match spelling::closest(id, all.iter().map(|experiment| experiment.id.as_str())) {
            Some(close) => format!("there is no experiment {id}: did you mean {close}?"),
            None => format!("there is no experiment {id}: `byway lab list` names them, a plan ends in .toml"),
        };
        Err(Error::NotFound(sentence))
    }

    /// Returns the sentences of the papers' abstracts. There are none if the directory has no such
    /// file.
    ///
    /// # Errors
    /// The file is not valid.
    pub(crate) fn headlines(&self) -> Result<Vec<Headline>> {
        let text = match &self.experiments {
            None => experiment::embedded_headlines().to_owned(),
            Some(directory) => {
                fs::read_to_string(directory.join(experiment::HEADLINES_FILE)).unwrap_or_default()
            }
        };
        if text.is_empty() {
            return Ok(Vec::new());
        }
        headlines::read(&text)
            .map_err(|error| Error::Usage(format!("{}: {error}", experiment::HEADLINES_FILE)))
    }

    /// The directory for the results of experiment `id`.
    pub(crate) fn results(&self, id: &str) -> PathBuf {
        self.out.join(id)
    }

    /// Returns the last outcome of an experiment: of a run here, or the one saved with the
    /// experiment. A quick form that was run here does not hide a larger form that was kept. But it
    /// shows whether that is stale: of a program whose quick form had another trace. Returns this
    /// too. A quick form with other seeds or values than the plan's shows nothing.
    pub(crate) fn last(&self, experiment: &Experiment, expectation: &Expectation) -> (Option<Outcome>, bool) {
        let here = fs::read_to_string(self.results(&experiment.id).join("result.json")).ok();
        let here = here.and_then(|text| Outcome::from_json(&text).ok());
        let kept = experiment.result.as_ref().and_then(|text| Outcome::from_json(text).ok());
        let (outcome, stale) = match (here, kept) {
            (Some(here), Some(kept)) if here.mode == Mode::Quick => {
                let stale = here.whole && kept.quick.as_ref() != Some(&here.trace);
                (Some(if kept.mode == Mode::Quick { here } else { kept }), stale)
            }
            (here, kept) => (here.or(kept), false),
        };
        (outcome.map(|outcome| expectation.recall(outcome)), stale)
    }

    /// The figures that were drawn here, in order.
    pub(crate) fn figures(&self, id: &str) -> Vec<String> {
        (1..)
            .map_while(|number| {
                fs::read_to_string(self.results(id).join(format!("figure-{number}.svg"))).ok()
            })
            .collect()
    }
}

/// The expectation of an experiment.
pub(crate) fn expectation(experiment: &Experiment) -> Result<Expectation> {
    let file = format!("{}/expect.toml", experiment.id);
    Expectation::read(&file, &experiment.expect).map_err(|error| Error::Usage(error.to_string()))
}

/// Whether the expectation has one of `tags`. Without tags, it always matches.
pub(crate) fn tagged(expectation: &Expectation, tags: &[String]) -> bool {
    tags.is_empty() || tags.iter().any(|tag| expectation.tags.contains(tag))
}
