//! Which entries of what is named are sent: patterns, whose order counts, and a list of paths.

use crate::exit::{Exit, Failure};
use crate::messages;
use anyhow::Result;
use byway_files::{ListedPaths, TreeSelection};
use clap::{ArgMatches, Args, Command, Error, FromArgMatches};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufReader};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::Arc;

/// The heading of these options, and of those that say how a tree is compared.
pub const TREE_OPTIONS: &str = "What travels";

/// The options as clap reads them.
#[derive(Debug, Args)]
#[command(next_help_heading = TREE_OPTIONS)]
struct SelectionArguments {
    /// Leave out what matches, by gitignore's rules: `*.o`, `logs/`; repeatable [default: nothing]
    #[arg(long, value_name = "PATTERN", allow_hyphen_values = true)]
    exclude: Vec<OsString>,
    /// Send what an earlier --exclude left [default: none]
    #[arg(long, value_name = "PATTERN", allow_hyphen_values = true)]
    include: Vec<OsString>,
    /// Send only what FILE (or `-`) lists [default: all]
    #[arg(long, value_name = "FILE")]
    files_from: Option<PathBuf>,
}

/// Which entries are sent, as the command line says.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Patterns in the order of the command line, and whether each excludes.
    patterns: Vec<(OsString, bool)>,
    files_from: Option<PathBuf>,
}

impl Args for Selection {
    fn augment_args(command: Command) -> Command {
        SelectionArguments::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        SelectionArguments::augment_args_for_update(command)
    }
}

impl FromArgMatches for Selection {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut placed = Vec::new();
        for (name, excludes) in [("exclude", true), ("include", false)] {
            let patterns = matches.get_many::<OsString>(name).into_iter().flatten();
            let places = matches.indices_of(name).into_iter().flatten();
            placed.extend(places.zip(patterns).map(|(place, pattern)| (place, pattern.clone(), excludes)));
        }
        placed.sort_unstable();
        let patterns = placed.into_iter().map(|(_, pattern, excludes)| (pattern, excludes)).collect();
        Ok(Self { patterns, files_from: matches.get_one("files_from").cloned() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Selection {
    /// Whether anything is selected by it, which a stream cannot be.
    #[must_use]
    pub const fn is_given(&self) -> bool {
        !self.patterns.is_empty() || self.files_from.is_some()
    }

    /// Reads patterns and list. A list needs one directory that its paths begin in.
    ///
    /// # Errors
    /// A pattern or path that cannot be, a list that cannot be read, or `paths` that are not one.
    pub fn read(&self, paths: &[PathBuf]) -> Result<Arc<TreeSelection>> {
        let usage = |sentence: String| Failure::new(Exit::Usage, sentence);
        let mut selection = TreeSelection::default();
        for (pattern, excludes) in &self.patterns {
            let name = pattern.to_string_lossy();
            let added = selection.filter.add(pattern.as_bytes(), *excludes);
            added.map_err(|error| usage(messages::send::bad_pattern(&name, error)))?;
            if !selection.filter.can_exclude() {
                return Err(usage(messages::send::include_of_nothing(&name)).into());
            }
        }
        if let Some(file) = &self.files_from {
            if !matches!(paths, [path] if path.is_dir()) {
                return Err(usage(messages::send::LIST_WITHOUT_DIRECTORY.into()).into());
            }
            let read = match file.as_os_str() == "-" {
                true => ListedPaths::read(io::stdin().lock()),
                false => File::open(file).and_then(|file| ListedPaths::read(BufReader::new(file))),
            };
            let listed = read.map_err(|error| {
                let exit = if error.kind() == io::ErrorKind::NotFound { Exit::NotFound } else { Exit::Usage };
                Failure::new(exit, messages::send::bad_list(file, &error))
            })?;
            selection.listed = Some(listed);
        }
        Ok(Arc::new(selection))
    }
}
