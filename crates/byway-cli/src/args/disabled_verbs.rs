//! Verbs that this build does not have.

use clap::Args;
use std::ffi::OsString;

/// A verb of which this build knows the name alone.
#[derive(Clone, Debug, Args)]
#[command(disable_help_flag = true)]
pub struct Absent {
    /// Whatever it is asked for.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    pub words: Vec<OsString>,
}

// The tests of every build have a laboratory, a registry and the page. `.ci/run` asks the default
// program for its sentences about these.
#[cfg(all(
    test,
    not(any(
        feature = "demo",
        feature = "gateway",
        feature = "help",
        feature = "lane",
        feature = "pairing"
    ))
))]
mod tests;
