//! Experiments. Each is a folder with what is claimed, where, and how to see whether it holds.

use include_dir::{Dir, include_dir};
use std::path::Path;
use std::{fs, io};

/// The experiments that travel in the program.
static EMBEDDED_EXPERIMENTS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../experiments");

/// An experiment: a folder of `experiments/`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Experiment {
    /// The name of the experiment's directory.
    pub id: String,
    /// The text of `README.md`: the claim, its source, and the reconstructed details.
    pub readme: String,
    /// The text of `plan.toml`. `None`: the experiment cannot be run, and the expectation says why.
    pub plan: Option<String>,
    /// The text of `expect.toml`.
    pub expect: String,
    /// The text of `result.json`: the last kept result. `None`: none was kept.
    pub result: Option<String>,
}

impl Experiment {
    fn read(id: &str, file: impl Fn(&str) -> Option<String>) -> Option<Self> {
        Some(Self {
            id: id.to_owned(),
            readme: file("README.md").unwrap_or_default(),
            plan: file("plan.toml"),
            expect: file("expect.toml")?,
            result: file("result.json"),
        })
    }
}

/// The experiments in the program, by name.
#[must_use]
pub fn embedded() -> Vec<Experiment> {
    let mut found: Vec<Experiment> = EMBEDDED_EXPERIMENTS
        .dirs()
        .filter_map(|folder| {
            let id = folder.path().file_name()?.to_str()?;
            Experiment::read(id, |name| {
                folder.get_file(folder.path().join(name))?.contents_utf8().map(str::to_owned)
            })
        })
        .collect();
    found.sort_by(|a, b| a.id.cmp(&b.id));
    found
}

/// The name of the file with the sentences of the papers' abstracts, beside the experiments.
pub const HEADLINES_FILE: &str = "headlines.toml";

/// The text of the headlines in the program. See [`read`](crate::headlines::read).
#[must_use]
pub fn embedded_headlines() -> &'static str {
    EMBEDDED_EXPERIMENTS.get_file(HEADLINES_FILE).and_then(|file| file.contents_utf8()).unwrap_or_default()
}

/// The experiments in a directory, by name.
///
/// # Errors
/// If the directory cannot be read.
pub fn in_directory(directory: &Path) -> io::Result<Vec<Experiment>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if let Some(id) = path.file_name().and_then(|name| name.to_str()) {
            found.extend(Experiment::read(id, |name| fs::read_to_string(path.join(name)).ok()));
        }
    }
    found.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_travels_is_what_stands_in_the_folder() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
        let there = in_directory(&folder).expect("readable");
        assert!(!there.is_empty());
        assert_eq!(embedded(), there);
        for experiment in there {
            assert!(experiment.readme.starts_with(&format!("# {}: ", experiment.id)), "{}", experiment.id);
        }
    }
}
