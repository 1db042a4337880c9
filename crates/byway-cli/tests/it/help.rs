//! The pages of `--help`: how long they are, how they are laid out, and what their examples do.

use crate::common::Place;
use byway_cli::args::Cli;
use byway_cli::args::help_layout::EXPERT_OPTIONS;
use clap::{Command, CommandFactory as _};

/// The longest page of `--help`, in lines.
const PAGE_LINES: usize = 100;
/// Packet hops that the simulator does in far less than two seconds, with a build for tests too.
const HOPS_OF_A_SECOND: u64 = 500_000;

/// The words that lead to each verb, and to the verbs below it.
fn verbs(command: &Command, words: &[&str]) -> Vec<Vec<String>> {
    let own = words.iter().map(|&word| word.to_owned()).collect();
    let below = command.get_subcommands().filter(|verb| !verb.is_hide_set());
    let below = below.flat_map(|verb| verbs(verb, &[words, &[verb.get_name()]].concat()));
    std::iter::once(own).chain(below).collect()
}

/// What `byway VERB --help` prints on a terminal of so many columns.
fn page(place: &Place, verb: &[String], columns: &str) -> String {
    let words: Vec<_> = verb.iter().map(String::as_str).chain(["--help"]).collect();
    let output = place.command("here", &words).env("COLUMNS", columns).output().unwrap();
    assert!(output.status.success(), "{words:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_page_is_short_and_lists_options_in_one_layout_with_those_of_experts_last() {
    let place = Place::new();
    let verbs = verbs(&Cli::command(), &[]);
    assert!(verbs.len() > 30, "{verbs:?}");
    let mut with_expert_options = 0;
    for verb in &verbs {
        for columns in ["80", "100"] {
            let lines = page(&place, verb, columns).lines().count();
            assert!(lines <= PAGE_LINES, "{verb:?}: {lines} lines in {columns} columns");
        }
        let page = page(&place, verb, "100");
        assert!(!page.contains("Possible values:"), "{verb:?}: values in lines of their own: {page}");
        let headings: Vec<_> = page
            .lines()
            .skip_while(|line| !line.starts_with("Usage:"))
            .filter(|line| line.ends_with(':') && !line.starts_with(' '))
            .collect();
        let expert = headings.iter().position(|line| line.strip_suffix(':') == Some(EXPERT_OPTIONS));
        if let Some(at) = expert {
            assert_eq!(at + 1, headings.len(), "{verb:?}: {headings:?}");
            with_expert_options += 1;
        }
    }
    assert!(with_expert_options >= 8, "{with_expert_options}");
}

#[test]
fn the_first_experiment_in_the_help_of_lab_passes_at_once() {
    let mut command = Cli::command();
    let help = |command: &Command| command.get_before_help().unwrap().to_string();
    let top = help(&command);
    let lab = help(command.find_subcommand_mut("lab").unwrap());
    let place = Place::new();
    for page in [top, lab] {
        let line = page.lines().find(|line| line.contains("byway lab run ")).unwrap();
        let (example, told) = line.trim().split_once("  ").unwrap();
        assert!(told.contains("PASS"), "{line}");
        let words: Vec<_> = example.split(' ').skip(1).collect();
        let ended = place.run("here", &words);
        assert_eq!(ended.code, Some(0), "{example}: {}", ended.stderr);
        let said = String::from_utf8(ended.stdout).unwrap() + &ended.stderr;
        let verdict =
            said.lines().find(|line| line.contains(" packet hops")).unwrap_or_else(|| panic!("{said}"));
        assert!(verdict.contains(": PASS, "), "{verdict}");
        let before = verdict.split(" packet hops").next().unwrap();
        let hops: u64 = before.rsplit(' ').next().unwrap().parse().unwrap();
        assert!(hops <= HOPS_OF_A_SECOND, "{verdict}");
    }
}
