//! Options that verbs of `byway lab` share.

use byway_field::directories::Directories;
use clap::Args;
use std::path::PathBuf;

/// Where experiments are.
#[derive(Clone, Debug, Args)]
pub struct Where {
    /// Directory with a folder for each experiment [default: those that came with the program]
    #[arg(long, value_name = "DIR", env = "BYWAY_EXPERIMENTS")]
    pub experiments: Option<PathBuf>,
    /// Directory for results and figures
    #[arg(long, value_name = "DIR", default_value = "byway-lab")]
    pub out: PathBuf,
}

impl Where {
    /// The directories of these options, for the crate that does the work.
    #[must_use]
    pub fn directories(&self) -> Directories {
        Directories { experiments: self.experiments.clone(), out: self.out.clone() }
    }
}

/// An axis of a sweep and its values.
///
/// # Errors
/// The text is something else.
pub fn parse_sweep(text: &str) -> Result<(String, Vec<String>), String> {
    match text.split_once('=') {
        Some((axis, values)) if !axis.is_empty() && !values.is_empty() => {
            Ok((axis.to_owned(), values.split(',').map(|value| value.trim().to_owned()).collect()))
        }
        _ => Err(format!("`{text}`: expected for example congestion=background,mpath")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_is_an_axis_and_values() {
        assert_eq!(parse_sweep("n=1, 2"), Ok(("n".into(), vec!["1".into(), "2".into()])));
        for wrong in ["n", "=1", "n="] {
            assert!(parse_sweep(wrong).is_err(), "{wrong}");
        }
    }
}
