//! The manual pages: each has its sections, and the sections name what the code has.

use crate::common::Place;
use crate::common::pages::project;
use byway_cli::exit::Exit;
use clap::ValueEnum as _;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const HEADINGS: [&str; 5] = ["EXAMPLES", "EXIT STATUS", "ENVIRONMENT", "FILES", "SEE ALSO"];

/// All pages, with their names.
fn pages(place: &Place) -> Vec<(String, String)> {
    place.run("here", &["man", "--out", "man1"]).succeeded();
    let entries = fs::read_dir(place.path("man1")).unwrap().map(|entry| entry.unwrap().path());
    let text = |path: &Path| fs::read_to_string(path).unwrap();
    entries.map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), text(&path))).collect()
}

/// What stands in a section, without its macros.
fn section(page: &str, heading: &str) -> String {
    let headings = [format!(".SH {heading}"), format!(".SH \"{heading}\"")];
    let lines = page.lines().skip_while(|line| !headings.iter().any(|heading| heading == line)).skip(1);
    let lines = lines.take_while(|line| !line.starts_with(".SH")).filter(|line| !line.starts_with('.'));
    lines.map(|line| line.replace('\\', "") + "\n").collect()
}

#[test]
fn every_page_has_its_sections() {
    let pages = pages(&Place::new());
    assert!(pages.len() > 30, "{}", pages.len());
    for (name, page) in &pages {
        for heading in HEADINGS {
            assert!(!section(page, heading).is_empty(), "{name} has nothing under {heading}");
        }
        for exit in Exit::value_variants() {
            let status = section(page, "EXIT STATUS");
            assert!(status.contains(&format!("fB{}fR\n{}", *exit as u8, exit.meaning())), "{name}: {status}");
        }
        let see_also = section(page, "SEE ALSO");
        for named in see_also.split("fI").skip(1).filter_map(|rest| rest.split_once("fR(1)")) {
            let there = pages.iter().any(|(other, _)| *other == format!("{}.1", named.0));
            assert!(there, "{name} names the page {}, which does not exist", named.0);
        }
        for guide in see_also.split("/blob/main/").skip(1).filter_map(|rest| rest.split("fR").next()) {
            assert!(project().join(guide).exists(), "{name} names {guide}, which does not exist");
        }
    }
}

/// Names of environment variables in Rust text: of options, and those that the code asks for.
fn variables(text: &str) -> impl Iterator<Item = &str> {
    let name =
        |word: &&str| word.len() > 2 && word.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
    // What stands before the name: an attribute of an option, or a call.
    let before = ["env = ", "env(", "env::var(", "env::var_os(", "absolute("];
    let parts = before.into_iter().flat_map(move |before| text.split(before).skip(1));
    parts.filter_map(|rest| rest.strip_prefix('"')?.split('"').next()).filter(name)
}

#[test]
fn the_page_of_the_program_names_every_variable_that_the_code_reads() {
    let pages = pages(&Place::new());
    let (_, page) = pages.iter().find(|(name, _)| name == "byway.1").unwrap();
    let environment = section(page, "ENVIRONMENT");
    let mut found = BTreeSet::new();
    let mut directories = vec![project().join("crates")];
    while let Some(directory) = directories.pop() {
        for path in fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
            let name = path.file_name().unwrap().to_str().unwrap();
            match path.extension() {
                Some(kind) if kind == "rs" => {
                    let text = fs::read_to_string(&path).unwrap();
                    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
                    found.extend(variables(code).map(str::to_owned));
                }
                None if !matches!(name, "tests" | "benches" | "examples") && path.is_dir() => {
                    directories.push(path);
                }
                _ => {}
            }
        }
    }
    // An example of the library, and what the programs nft and ip are given.
    for elsewhere in ["TICKET", "LC_ALL"] {
        found.remove(elsewhere);
    }
    assert!(found.len() > 20, "{found:?}");
    // A name in bold stands between two marks.
    let told: BTreeSet<_> = environment
        .split([' ', ',', '\n'])
        .map(|word| word.trim_start_matches("fB").trim_end_matches("fR").to_owned())
        .collect();
    let missing: Vec<_> = found.difference(&told).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
