//! The arguments of `byway completions` and `byway man`.

use clap::Args;
use std::path::PathBuf;

/// `byway completions`
#[derive(Clone, Debug, Args)]
#[command(before_help = "\
Examples:
  byway completions bash > ~/.local/share/bash-completion/completions/byway
  byway completions fish > ~/.config/fish/completions/byway.fish")]
pub struct Completions {
    /// The shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

/// `byway man`
#[derive(Clone, Debug, Args)]
#[command(before_help = "\
Examples:
  byway man | man -l -                       read the page of the program
  byway man --out ~/.local/share/man/man1    a page for the program and for every verb")]
pub struct Man {
    /// Directory to write all pages into [default: the page of the program, to standard output]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}
