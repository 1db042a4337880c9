//! Sections of manual pages that the definitions of the arguments do not hold.

use crate::args::help_layout::VERB_GROUPS;
use crate::exit::Exit;
use clap::{Command, ValueEnum as _};
use clap_mangen::roff::{Roff, bold, italic, roman};

/// The entries of sections. The first lines of the file describe its format.
const SECTION_ENTRIES: &str = include_str!("sections.txt");

/// Returns the items and texts of a section for the verb `words`, or all of them for the program
/// itself.
fn entries(section: &str, words: &[&str]) -> Vec<(&'static str, &'static str)> {
    let heading = format!("[{section}]");
    let lines = SECTION_ENTRIES.lines().skip_while(|line| *line != heading).skip(1);
    let entries = lines.take_while(|line| !line.starts_with('[')).filter_map(|line| {
        let (verbs, (item, text)) =
            line.split_once(" | ").and_then(|(a, b)| Some((a, b.split_once(" | ")?)))?;
        let holds = |verb: &str| verb == "all" || words.starts_with(&verb.split(' ').collect::<Vec<_>>());
        (words.is_empty() || verbs.split(", ").any(holds)).then_some((item, text))
    });
    entries.collect()
}

/// Splits the text before a verb's help into its examples and the notes below them.
pub(super) fn examples_and_notes(command: &Command) -> (String, String) {
    let help = command.get_before_help().map(ToString::to_string).unwrap_or_default();
    let (examples, notes) = help.split_once("\n\n").unwrap_or((&help, ""));
    (examples.trim_start_matches("Examples:\n").to_owned(), notes.to_owned())
}

/// Writes the sections that every page ends with. `words` are the words behind `byway`.
pub(super) fn write(roff: &mut Roff, command: &Command, words: &[&str]) {
    roff.control("SH", ["EXAMPLES"]);
    write_examples(roff, &examples_and_notes(command).0);
    roff.control("SH", ["EXIT STATUS"]);
    for exit in Exit::value_variants() {
        write_item(roff, &(*exit as u8).to_string(), &exit.meaning());
    }
    entries("EXIT STATUS", words).into_iter().for_each(|(code, text)| write_item(roff, code, text));
    roff.control("SH", ["ENVIRONMENT"]);
    for (variable, option) in variables(command, words.is_empty()) {
        write_item(roff, &variable, &format!("Sets {option}; the option wins."));
    }
    entries("ENVIRONMENT", words).into_iter().for_each(|(name, text)| write_item(roff, name, text));
    roff.control("SH", ["FILES"]);
    entries("FILES", words).into_iter().for_each(|(path, text)| write_item(roff, path, text));
    if let Some(help) = command.get_after_help().map(ToString::to_string) {
        // The codes have a section of their own.
        let notes = help.split_once("\n\nSignals:\n").map_or(&*help, |(_, signals)| signals);
        roff.control("SH", ["NOTES"]).control("nf", []);
        notes.lines().for_each(|line| _ = roff.text([roman(line)]));
        roff.control("fi", []);
    }
    roff.control("SH", ["SEE ALSO"]);
    let below = command.get_subcommands().filter(|verb| !verb.is_hide_set()).map(Command::get_name);
    let pages = beside(words).into_iter().chain(below.map(|verb| [words, &[verb]].concat()));
    let names = pages.map(|page| [italic([&["byway"], &*page].concat().join("-")), roman("(1)")]);
    roff.text(names.collect::<Vec<_>>().join(&roman(", ")));
    for (page, text) in entries("SEE ALSO", words) {
        write_item(roff, &format!("{}/blob/main/{page}", env!("CARGO_PKG_REPOSITORY")), text);
    }
}

fn write_item(roff: &mut Roff, name: &str, text: &str) {
    roff.control("TP", []).text([bold(name)]).text([roman(text)]);
}

/// Writes lines of examples. A line holds a command and its explanation, which follows two blanks
/// or stands on a line of its own.
fn write_examples(roff: &mut Roff, examples: &str) {
    for (count, line) in examples.lines().enumerate() {
        let (command, told) = match line.strip_prefix("  ").filter(|rest| !rest.starts_with(' ')) {
            Some(rest) => rest.split_once("  ").unwrap_or((rest, "")),
            None => ("", line),
        };
        if !command.is_empty() {
            // A paragraph begins with the section.
            if count > 0 {
                roff.control("PP", []);
            }
            roff.text([bold(command)]);
        }
        if !told.is_empty() {
            roff.control("RS", ["4"]).text([roman(told.trim())]).control("RE", []);
        }
    }
}

/// Returns the environment variables of options, each with its option. With `below`, those of all
/// verbs below are included.
fn variables(command: &Command, below: bool) -> Vec<(String, String)> {
    let own = command.get_arguments().filter_map(|argument| {
        let option = argument.get_long().map(|long| format!("--{long}"));
        let option = option.unwrap_or_else(|| argument.get_id().to_string().to_uppercase());
        Some((argument.get_env()?.to_str()?.to_owned(), option))
    });
    let verbs = command.get_subcommands().filter(|verb| below && !verb.is_hide_set());
    let mut found: Vec<_> = own.chain(verbs.flat_map(|verb| variables(verb, true))).collect();
    found.sort();
    found.dedup_by(|later, earlier| later.0 == earlier.0);
    found
}

/// Returns the pages above a verb's page, and the pages of the verb's group.
fn beside<'a>(words: &[&'a str]) -> Vec<Vec<&'a str>> {
    let group = VERB_GROUPS.iter().find(|(_, names)| matches!(words, [verb] if names.contains(verb)));
    let names = group.map_or(&[][..], |(_, names)| names).iter().filter(|name| !words.contains(name));
    (0..words.len()).map(|count| words[..count].to_vec()).chain(names.map(|name| vec![*name])).collect()
}
