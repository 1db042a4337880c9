//! Checks the documentation pages without running them. Each fenced block must name its language.
//! byway's parsers must accept each file in a block and each byway command, and also the examples
//! of `--help`. `tests/common/pages.rs` says how pages are written.

use crate::common::pages::{self, NOT_RUN, byway_commands, is_of, not_run, project};
use crate::walls::sources;
use byway_cli::args::Cli;
use byway_cli::gateway::config_file::GatewayConfig;
use byway_lab::expect::Expectation;
use byway_lab::plan::{Mode, Overrides, Plan};
use byway_transfer::identity::PublicKey;
use clap::{Command, CommandFactory as _, Parser as _};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Programs that lines may use, and that every host of a test has.
const PROGRAMS: [&str; 20] = [
    "base64", "borg", "byway", "cat", "chmod", "curl", "export", "git", "head", "ls", "mkdir", "pg_dump",
    "printf", "rclone", "restic", "rsync", "ssh", "sudo", "tar", "xargs",
];

const WHAT_TO_DO: &str = "crates/byway-cli/tests/common/pages.rs says what a page can hold; a line that cannot run in a test stands in \
                          NOT_RUN there, with its reason";

#[test]
fn every_block_says_what_it_is() {
    for page in pages::all() {
        for block in &page.blocks {
            let place = format!("{}:{}", page.name, block.line);
            let known = match block.language.as_str() {
                "sh" | "text" => block.file.is_none(),
                "toml" | "json" | "ini" | "sshconfig" => block.file.is_some(),
                _ => false,
            };
            let found = (&block.language, &block.file);
            assert!(
                known,
                "{place}: expected `sh`, `text`, or `toml`, `json`, `ini` or `sshconfig` with a name: {found:?}. {WHAT_TO_DO}"
            );
        }
    }
}

/// What the links of a page name, but for addresses in the web: a file, and perhaps a heading in
/// it.
fn links(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')').map(|(target, _)| target));
    targets
        .filter(|target| !target.contains("://"))
        .map(|target| target.split_once('#').unwrap_or((target, "")))
}

/// The name by which links know a heading: words in small letters, joined by hyphens.
fn anchor(heading: &str) -> String {
    let kept = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = kept.chars().filter(|char| char.is_alphanumeric() || matches!(char, ' ' | '-' | '_'));
    kept.map(|char| if char == ' ' { '-' } else { char }).collect()
}

#[test]
fn every_link_leads_somewhere() {
    for page in pages::all() {
        let from = project().join(&page.name);
        for (file, heading) in links(&page.text) {
            let to = if file.is_empty() { from.clone() } else { from.with_file_name("").join(file) };
            assert!(to.exists(), "{}: the link to {file} leads nowhere", page.name);
            if !heading.is_empty() {
                let text = fs::read_to_string(&to).unwrap();
                let known = text.lines().any(|line| line.starts_with('#') && anchor(line) == heading);
                assert!(known, "{}: {file} has no heading #{heading}", page.name);
            }
        }
    }
}

/// Names of Rust files in backquotes: a path, or its end. Directories may be left out.
#[test]
fn every_file_that_a_decision_names_exists() {
    let mut found = Vec::new();
    sources(&project().join("crates"), &mut found);
    let files: Vec<Vec<&str>> =
        found.iter().map(|file| file.iter().filter_map(|part| part.to_str()).collect()).collect();
    let stands_for = |file: &[&str], name: &[&str]| {
        let mut parts = file.iter();
        file.last() == name.last() && name.iter().all(|part| parts.any(|it| it == part))
    };
    let mut count = 0;
    for page in fs::read_dir(project().join("docs/decisions")).unwrap() {
        let path = page.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        for name in text.split('`').skip(1).step_by(2).filter(|name| name.ends_with(".rs")) {
            let parts: Vec<&str> = name.split('/').collect();
            let exists = files.iter().any(|file| stands_for(file, &parts));
            assert!(exists, "{}: there is no file {name}", path.display());
            count += 1;
        }
    }
    assert!(count > 50, "{count}");
}

#[test]
fn the_book_has_every_page_of_docs() {
    let summary = fs::read_to_string(project().join("docs/SUMMARY.md")).unwrap();
    let listed: BTreeSet<_> = links(&summary).map(|(file, _)| format!("docs/{file}")).collect();
    let all = pages::all().into_iter().map(|page| page.name);
    let there: BTreeSet<_> =
        all.filter(|name| name.starts_with("docs/") && name != "docs/SUMMARY.md").collect();
    assert_eq!(listed, there);
}

#[test]
fn every_line_is_run_or_in_the_list() {
    for page in pages::all() {
        for line in page.lines().iter().filter(|line| not_run(&line.text).is_none()) {
            for command in line.text.split('|') {
                let program = command.split_whitespace().find(|word| !word.contains('=')).unwrap_or_default();
                let known = PROGRAMS.contains(&program);
                assert!(known, "{}: `{program}` is no program that tests run. {WHAT_TO_DO}", line.place);
            }
        }
    }
}

#[test]
fn the_list_of_what_is_not_run_is_not_stale() {
    let lines: Vec<_> = pages::all().iter().flat_map(pages::Page::lines).collect();
    for (entry, why) in NOT_RUN {
        assert!(!why.is_empty(), "{entry}: why?");
        let printed = lines.iter().any(|line| is_of(&line.text, entry));
        assert!(printed, "no page prints {entry:?} any more: take it out of NOT_RUN");
    }
}

/// Whether byway's parser takes these words.
fn parsed(words: &[String]) -> Result<(), String> {
    let key = PublicKey([7; 32]).to_string();
    let words = words.iter().map(|word| match word.as_str() {
        "KEY" | "byway-key-…" => key.clone(),
        word if word.starts_with("byway-key-…@") => word.replace("byway-key-…", &key),
        word => match word.strip_suffix("=KEY").or_else(|| word.strip_suffix("=byway-key-…")) {
            Some(name) => format!("{name}={key}"),
            None => word.to_owned(),
        },
    });
    let arguments = ["byway".to_owned()].into_iter().chain(words);
    Cli::try_parse_from(arguments).map(|_| ()).map_err(|error| error.to_string())
}

#[test]
fn every_line_of_byway_is_understood() {
    let mut count = 0;
    for page in pages::all() {
        for line in page.lines() {
            for words in byway_commands(&line.text) {
                parsed(&words).unwrap_or_else(|why| panic!("{}: {}\n{why}", line.place, line.text));
                count += 1;
            }
            if let Some((cargo, words)) =
                line.text.split_once(" -- ").filter(|(cargo, _)| cargo.starts_with("cargo run"))
            {
                let words: Vec<_> = words.split_whitespace().map(str::to_owned).collect();
                parsed(&words).unwrap_or_else(|why| panic!("{}: {cargo}\n{why}", line.place));
            }
        }
    }
    assert!(count > 50, "{count} lines only");
}

#[test]
fn what_cargo_is_to_build_exists() {
    let names = |directory: &str| -> BTreeSet<String> {
        let all = fs::read_dir(project().join(directory)).unwrap();
        all.map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned()).collect()
    };
    let crates: BTreeSet<_> = names("crates").into_iter().collect();
    for page in pages::all() {
        for line in page.lines() {
            let words: Vec<_> = line.text.split_whitespace().collect();
            let after = |flag: &str| {
                words.iter().position(|word| *word == flag).and_then(|at| words.get(at + 1).copied())
            };
            // The program's folder is called as its package; those of others lack the prefix.
            let folder = |name: &str| match name {
                "byway-cli" => name.to_owned(),
                other => other.trim_start_matches("byway-").to_owned(),
            };
            let package = after("-p").map(folder);
            if let Some(package) = package.as_ref().filter(|_| line.text.contains("cargo ")) {
                assert!(crates.contains(package), "{}: there is no crate {package}", line.place);
                for (flag, directory) in [("--bench", "benches"), ("--test", "tests")] {
                    let there = after(flag)
                        .is_none_or(|name| names(&format!("crates/{package}/{directory}")).contains(name));
                    assert!(there, "{}: {package} has no {directory} of that name", line.place);
                }
            }
            if line.text.contains("cargo fuzz run") {
                let target = after("run").unwrap();
                assert!(names("fuzz/fuzz_targets").contains(target), "{}: no target {target}", line.place);
            }
            for word in
                words.iter().filter(|word| word.starts_with("crates/") || word.starts_with("contrib/"))
            {
                assert!(project().join(word).exists(), "{}: there is no {word}", line.place);
            }
        }
    }
}

#[test]
fn every_file_is_what_it_is_for() {
    for page in pages::all() {
        for (name, block) in page.files() {
            let place = format!("{}:{}: {name}", page.name, block.line);
            let text = block.text.as_str();
            let mode = Overrides::default();
            let result = match () {
                () if name.ends_with(".json") => serde_json::from_str::<serde_json::Value>(text)
                    .map(|_| ())
                    .map_err(|error| error.to_string()),
                // Other programs read them, in tests/machine/backup.rs and units.rs.
                () if ["ini", "sshconfig"].contains(&block.language.as_str()) => Ok(()),
                () if name.ends_with("expect.toml") => {
                    Expectation::read(name, text).map(|_| ()).map_err(|error| error.to_string())
                }
                // What it means is said by `byway gateway check`, which its page runs.
                () if text.starts_with("[gateway]") => {
                    match page.lines().iter().any(|line| line.text == format!("byway gateway check {name}")) {
                        true => Ok(()),
                        false => Err("the page does not run `byway gateway check` on it".to_owned()),
                    }
                }
                () if text.contains("title = ") => {
                    let every = Mode::EVERY
                        .iter()
                        .try_for_each(|&wanted| Plan::read(name, text, wanted, &mode).map(|_| ()));
                    every.map_err(|error| error.to_string())
                }
                () => Plan::read_network(name, text, &mode).map(|_| ()).map_err(|error| error.to_string()),
            };
            result.unwrap_or_else(|why| panic!("{place}: {why}. {WHAT_TO_DO}"));
        }
    }
}

/// A reader has what a line asks for: its page said before which file to keep a word in.
#[test]
fn a_page_says_to_save_a_word_before_it_uses_the_file() {
    let page = pages::all().into_iter().find(|page| page.name == "docs/registry.md").unwrap();
    for file in ["join.word", "use.word"] {
        let (before, _) = page.text.split_once(&format!("@{file}")).unwrap();
        let said = before.contains("Save each word in a file") && before.contains(&format!("`{file}`"));
        assert!(said, "`{file}` is used before the page says to save a word there");
    }
}

/// The page of gateways begins with what a reader needs: a short file for each site.
#[test]
fn the_page_of_gateways_begins_with_two_short_files_that_mirror_each_other() {
    let page = pages::all().into_iter().find(|page| page.name == "docs/gateway.md").unwrap();
    let mut files = page.files().take(2).map(|(name, block)| {
        assert!(block.text.lines().count() <= 16, "{name} is long");
        GatewayConfig::parse(Path::new(name), &block.text).unwrap()
    });
    let (one, other) = (files.next().unwrap(), files.next().unwrap());
    for (here, there) in [(&one, &other), (&other, &one)] {
        let [peer] = here.peers.as_slice() else { panic!("one peer each") };
        let served: Vec<_> = there.serves.iter().map(|served| served.hosts).collect();
        assert_eq!(peer.allowed, served);
    }
    let rule = |config: &GatewayConfig| format!("{:?}", config.rules);
    assert_eq!(rule(&one).replace("Outbound", "Inbound"), rule(&other));
    assert_ne!(rule(&one), rule(&other));
}

#[test]
fn the_examples_of_help_are_understood() {
    let mut count = 0;
    examine(&Cli::command(), &mut count);
    assert!(count > 40, "{count} examples only");
}

/// The examples of a verb, and of those below it.
fn examine(command: &Command, count: &mut usize) {
    let before = command.get_before_help().map(ToString::to_string).unwrap_or_default();
    for line in before.lines().filter_map(|line| line.strip_prefix("  ")) {
        // Behind two blanks it says what that does.
        let example = line.split("  ").next().unwrap_or_default();
        for words in byway_commands(example) {
            parsed(&words)
                .unwrap_or_else(|why| panic!("the help of {}: {example}\n{why}", command.get_name()));
            *count += 1;
        }
    }
    command.get_subcommands().for_each(|below| examine(below, count));
}
