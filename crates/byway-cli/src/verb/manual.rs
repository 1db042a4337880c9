//! `byway completions` and `byway man`: what the definitions of the arguments say, for shells and
//! for `man`.

mod sections;

use crate::args::Cli;
use crate::args::manual::{Completions, Man as ManArguments};
use crate::exit::Exit;
use crate::messages;
use anyhow::{Context as _, Result};
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::Roff;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// Date of the last change that readers of the manual pages notice. A page must name one.
const LAST_CHANGE_DATE: &str = "2026-11-29";

/// Prints the completions for a shell.
pub(super) fn completions(arguments: &Completions) -> Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "byway", &mut script);
    print(&script)
}

/// Prints the page of the program, or writes all pages into a directory.
pub(super) fn man(arguments: &ManArguments) -> Result<Exit> {
    let mut command = Cli::command();
    command.build();
    let Some(directory) = &arguments.out else { return print(&page(&command, &[])?) };
    fs::create_dir_all(directory).with_context(|| messages::manual::cannot_make_directory(directory))?;
    write_pages(directory, &command, &[])?;
    Ok(Exit::Ok)
}

/// Writes the page of a command, and the pages of its verbs (`byway-lab-run.1`). `words` are the
/// words behind `byway`.
fn write_pages(directory: &Path, command: &Command, words: &[&str]) -> Result<()> {
    let file = directory.join(format!("{}.1", [&["byway"], words].concat().join("-")));
    fs::write(&file, page(command, words)?).with_context(|| messages::manual::cannot_write(&file))?;
    let mut verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set());
    verbs.try_for_each(|verb| write_pages(directory, verb, &[words, &[verb.get_name()]].concat()))
}

/// Returns the manual page of a command: the sections that clap makes, then the sections of
/// [`sections`].
fn page(command: &Command, words: &[&str]) -> io::Result<Vec<u8>> {
    let (_, notes) = sections::examples_and_notes(command);
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let version = env!("CARGO_PKG_VERSION");
    let man = Man::new(command.clone().long_about(format!("{about}.\n\n{notes}").trim_end().to_owned()))
        .date(LAST_CHANGE_DATE)
        .source(format!("byway {version}"))
        .manual("byway");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.get_subcommands().any(|verb| !verb.is_hide_set()) {
        man.render_subcommands_section(&mut page)?;
    }
    let mut roff = Roff::new();
    sections::write(&mut roff, command, words);
    roff.to_writer(&mut page)?;
    Ok(page)
}

/// Writes to standard output. A reader that has closed the pipe is no error.
fn print(bytes: &[u8]) -> Result<Exit> {
    match io::stdout().lock().write_all(bytes) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(Exit::Ok),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verb_has_a_page_that_says_what_it_does() {
        let directory = tempfile::tempdir().unwrap();
        man(&ManArguments { out: Some(directory.path().join("man1")) }).unwrap();
        for (page, says) in [
            ("byway.1", "Moves bulk data over many paths at once"),
            ("byway-send.1", "\\-\\-bwlimit"),
            ("byway-lab-run.1", "\\-\\-sweep"),
        ] {
            let text = fs::read_to_string(directory.path().join("man1").join(page)).unwrap();
            assert!(text.contains(says), "{page} does not say {says}: {text}");
        }
    }

    /// Asserts that the page of each verb names all flags of the verb. Returns the number of pages.
    fn look_up(command: &Command, directory: &Path) -> usize {
        let name = command.get_display_name().unwrap_or_else(|| command.get_name());
        let text = fs::read_to_string(directory.join(format!("{name}.1"))).unwrap().replace('\\', "");
        for long in command.get_arguments().filter(|flag| !flag.is_hide_set()).filter_map(clap::Arg::get_long)
        {
            assert!(text.contains(&format!("--{long}")), "{name}.1 does not know --{long}");
        }
        let verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set());
        1 + verbs.map(|verb| look_up(verb, directory)).sum::<usize>()
    }

    #[test]
    fn every_flag_stands_in_its_page() {
        let directory = tempfile::tempdir().unwrap();
        man(&ManArguments { out: Some(directory.path().to_owned()) }).unwrap();
        let mut command = Cli::command();
        command.build();
        let pages = look_up(&command, directory.path());
        assert!(pages > 10 && pages == fs::read_dir(directory.path()).unwrap().count(), "{pages}");
    }

    #[test]
    fn every_shell_completes_every_verb() {
        use clap::ValueEnum;
        for shell in clap_complete::Shell::value_variants() {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "byway", &mut script);
            let script = String::from_utf8(script).unwrap();
            for verb in Cli::command().get_subcommands() {
                assert!(script.contains(verb.get_name()), "{shell} does not know {}", verb.get_name());
            }
        }
    }
}
