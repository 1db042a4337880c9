//! The arguments of `byway completions` and `byway man`.

use clap::Args;
use std::path::PathBuf;

/// `byway completions`
#[derive(Clone, Debug, Args)]
#[command(before_help = include_str!("examples/completions.txt").trim_end())]
pub struct Completions {
    /// The shell: bash, elvish, fish, powershell or zsh
    #[arg(value_enum, hide_possible_values = true)]
    pub shell: clap_complete::Shell,
}

/// `byway man`
#[derive(Clone, Debug, Args)]
#[command(before_help = include_str!("examples/man.txt").trim_end())]
pub struct Man {
    /// Directory to write all pages into [default: the page of the program, to standard output]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}
