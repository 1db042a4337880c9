//! Rules of the code that the compiler and Cargo cannot check. They say which crate may import
//! which, which crates must do without an operating system, and how long a file may get.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Who may import whom (normal and build dependencies; tests may climb).
const FLOORS: [(&str, &[&str]); 29] = [
    ("byway-wire", &[]),
    ("byway-uplink", &["byway-wire"]),
    ("byway-control", &["byway-wire"]),
    ("byway-relay", &["byway-wire", "byway-uplink"]),
    ("byway-net", &["byway-wire"]),
    ("byway-sim", &["byway-wire", "byway-control"]),
    ("byway-engine", &["byway-wire", "byway-control"]),
    ("byway-files", &["byway-wire", "byway-engine"]),
    ("byway-forward", &["byway-wire", "byway-engine"]),
    ("byway-forward-host", &["byway-wire", "byway-net", "byway-engine", "byway-forward"]),
    (
        "byway-lane",
        &[
            "byway-wire",
            "byway-uplink",
            "byway-control",
            "byway-net",
            "byway-engine",
            "byway-forward",
            "byway-forward-host",
        ],
    ),
    ("byway-gateway", &["byway-wire", "byway-control", "byway-engine"]),
    ("byway-registry", &["byway-wire", "byway-control", "byway-engine"]),
    ("byway-local-http", &[]),
    ("byway-qlog", &[]),
    ("byway-terminal", &["byway-wire"]),
    (
        "byway-registry-store",
        &["byway-wire", "byway-net", "byway-engine", "byway-registry", "byway-local-http"],
    ),
    (
        "byway-lab",
        &[
            "byway-wire",
            "byway-uplink",
            "byway-control",
            "byway-qlog",
            "byway-relay",
            "byway-sim",
            "byway-engine",
            "byway-gateway",
            "byway-registry",
        ],
    ),
    (
        "byway-transfer",
        &[
            "byway-wire",
            "byway-uplink",
            "byway-control",
            "byway-qlog",
            "byway-relay",
            "byway-net",
            "byway-engine",
            "byway-files",
            "byway-forward",
            "byway-forward-host",
            "byway-registry",
        ],
    ),
    ("byway", &["byway-wire", "byway-control", "byway-net", "byway-engine", "byway-transfer"]),
    ("byway-relay-http", &["byway-wire", "byway-relay", "byway-transfer", "byway-local-http"]),
    (
        "byway-gateway-host",
        &[
            "byway-wire",
            "byway-control",
            "byway-relay",
            "byway-net",
            "byway-engine",
            "byway-gateway",
            "byway-registry",
            "byway-transfer",
        ],
    ),
    ("byway-view", &["byway-net", "byway-transfer", "byway-local-http"]),
    ("byway-sources", &["byway-wire", "byway-control", "byway-net", "byway-engine", "byway-transfer"]),
    ("byway-emulate", &["byway-wire", "byway-net", "byway-sim"]),
    (
        "byway-field",
        &[
            "byway-wire",
            "byway-control",
            "byway-sim",
            "byway-engine",
            "byway-gateway",
            "byway-lab",
            "byway-emulate",
        ],
    ),
    (
        "byway-demo",
        &[
            "byway-wire",
            "byway-control",
            "byway-relay",
            "byway-net",
            "byway-sim",
            "byway-engine",
            "byway-files",
            "byway-transfer",
        ],
    ),
    ("byway-rivals", &["byway-wire", "byway-control", "byway-relay", "byway-net", "byway-engine"]),
    (
        "byway-cli",
        &[
            "byway-wire",
            "byway-control",
            "byway-relay",
            "byway-net",
            "byway-sim",
            "byway-engine",
            "byway-files",
            "byway-forward",
            "byway-forward-host",
            "byway-lane",
            "byway-gateway",
            "byway-gateway-host",
            "byway-registry",
            "byway-registry-store",
            "byway-relay-http",
            "byway-terminal",
            "byway-transfer",
            "byway-sources",
            "byway-view",
            "byway-lab",
            "byway-emulate",
            "byway-demo",
            "byway-field",
        ],
    ),
];

/// Crates without clock, socket, thread and random hash order, because they do not have `std`.
const WITHOUT_STD: [&str; 7] = ["wire", "uplink", "control", "relay", "engine", "gateway", "registry"];

/// What a pure crate must not depend on, directly: the system by another door.
const SYSTEM: [&str; 8] =
    ["libc", "rustix", "socket2", "getrandom", "quinn-udp", "tokio", "signal-hook", "rand"];

/// Lines of code that a file may have before its tests, and a congestion controller's file.
/// Comments do not count.
const FILE_LINES: usize = 540;
const CONTROLLER_LINES: usize = 320;

/// The last column of a comment.
const COMMENT_COLUMNS: usize = 100;

/// Files that are longer, and their length when they were let in. An entry leaves when its file
/// shrinks; none is added.
const LONGER: [(&str, usize); 0] = [];

/// Crates of others in the program without its features.
const SMALL: usize = 58;

/// Crates of others in the program with its default features.
const DEFAULT: usize = 89;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn metadata() -> Value {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--no-deps", "--offline", "--format-version", "1"]).current_dir(root());
    let output = cargo.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Each crate of the workspace with what it depends on outside of tests.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().unwrap();
    let name = |value: &Value| value["name"].as_str().unwrap().to_owned();
    packages
        .iter()
        .map(|package| {
            let all = package["dependencies"].as_array().unwrap().iter();
            (name(package), all.filter(|dependency| dependency["kind"] != "dev").map(name).collect())
        })
        .collect()
}

pub(super) fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Whether a file of sources holds tests and nothing else.
fn is_test(name: &str) -> bool {
    name.ends_with("/tests.rs") || name.contains("/tests/")
}

/// The lines before the module of tests.
fn lines_without_tests(text: &str) -> Vec<&str> {
    let lines: Vec<&str> = text.lines().collect();
    let begins_tests = |at: usize| {
        let mut after = lines.get(at + 1..).unwrap_or_default().iter().map(|line| line.trim());
        let item = after.find(|line| !line.starts_with("#["));
        lines[at].trim() == "#[cfg(test)]" && item.is_some_and(|item| item.contains("mod tests"))
    };
    let end = (0..lines.len()).find(|at| begins_tests(*at)).unwrap_or(lines.len());
    lines[..end].to_vec()
}

/// Tables, and what stands in fences, may be wider: nobody can break them.
#[test]
fn no_comment_is_wider_than_its_columns() {
    let root = root();
    let mut files = Vec::new();
    for folder in ["crates", "fuzz/fuzz_targets"] {
        sources(&root.join(folder), &mut files);
    }
    let mut wide = Vec::new();
    for file in files {
        let mut is_fenced = false;
        for (line, number) in fs::read_to_string(&file).unwrap().lines().zip(1..) {
            let Some(comment) = line.trim_start().strip_prefix("//") else {
                is_fenced = false;
                continue;
            };
            let comment = comment.trim_start_matches(['/', '!']).trim();
            is_fenced ^= comment.starts_with("```");
            let can_be_broken = !is_fenced && !comment.starts_with('|') && comment.contains(' ');
            if can_be_broken && line.chars().count() > COMMENT_COLUMNS {
                wide.push(format!("{}:{number}", file.strip_prefix(&root).unwrap().display()));
            }
        }
    }
    assert_eq!(wide, [""; 0], "comments end by column {COMMENT_COLUMNS}");
}

#[test]
fn every_crate_stands_on_its_floor() {
    let floors = BTreeMap::from(FLOORS);
    let crates = dependencies();
    for (name, dependencies) in &crates {
        let allowed = floors.get(name.as_str()).unwrap_or_else(|| panic!("{name} has no floor in the table"));
        for dependency in dependencies.iter().filter(|dependency| crates.contains_key(*dependency)) {
            assert!(
                allowed.contains(&dependency.as_str()),
                "{name} must not import {dependency}: it may import {allowed:?}"
            );
        }
    }
    for name in floors.keys() {
        assert!(crates.contains_key(*name), "{name} has a floor and does not exist");
    }
}

/// The names of the crates that the program is built from.
fn crates_of_program(features: &[&str]) -> BTreeSet<String> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["tree", "--offline", "--package", "byway-cli", "--edges", "normal"]).args(features);
    cargo.args(["--prefix", "none", "--format", "{p}"]).current_dir(root());
    let output = cargo.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let crates: BTreeSet<String> =
        text.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect();
    assert!(crates.contains("byway-engine"), "{crates:?}");
    crates
}

/// How many of these crates are not of this repository, whose rooms may be split.
fn of_others(crates: &BTreeSet<String>) -> usize {
    crates.iter().filter(|name| !name.starts_with("byway")).count()
}

#[test]
fn a_default_build_has_no_laboratory_no_registry_and_few_crates() {
    let crates = crates_of_program(&[]);
    assert!(of_others(&crates) <= DEFAULT, "more than {DEFAULT} crates of others: {crates:?}");
    let features = ["axum", "byway-field", "byway-lab", "byway-registry-store", "byway-view", "plotters"];
    for name in features.into_iter().chain(["rusqlite", "tokio", "tokio-postgres"]) {
        assert!(!crates.contains(name), "{name} belongs to the feature `lab`, `registry` or `view`");
    }
}

#[test]
fn a_small_build_has_few_crates() {
    let crates = crates_of_program(&["--no-default-features"]);
    assert!(of_others(&crates) <= SMALL, "more than {SMALL} crates of others: {crates:?}");
    let features =
        ["byway-field", "byway-gateway", "byway-lab", "byway-registry-store", "byway-sim", "clap_mangen"];
    for name in features.into_iter().chain(["rusqlite", "tun-rs"]) {
        assert!(!crates.contains(name), "{name} belongs to a feature");
    }
}

#[test]
fn pure_crates_have_no_std_and_no_way_around_it() {
    let dependencies = dependencies();
    for name in WITHOUT_STD {
        let text = fs::read_to_string(root().join(format!("crates/{name}/src/lib.rs"))).unwrap();
        assert!(text.lines().any(|line| line == "#![no_std]"), "{name} must be #![no_std]");
        let mut files = Vec::new();
        sources(&root().join(format!("crates/{name}/src")), &mut files);
        for file in files {
            let text = fs::read_to_string(&file).unwrap();
            // `#[cfg(test)] extern crate std;` is how tests get it back, and only they.
            let mut previous = "";
            for line in text.lines().map(str::trim) {
                let asks = line.starts_with("extern crate std");
                assert!(
                    !asks || previous == "#[cfg(test)]",
                    "{} imports std outside of tests",
                    file.display()
                );
                previous = line;
            }
        }
        for system in SYSTEM {
            assert!(
                !dependencies[&format!("byway-{name}")].contains(system),
                "{name} must not import {system}"
            );
        }
    }
}

#[test]
fn no_file_outgrows_its_reader() {
    let root = root();
    let mut files = Vec::new();
    for entry in fs::read_dir(root.join("crates")).unwrap() {
        sources(&entry.unwrap().path().join("src"), &mut files);
    }
    assert!(files.len() > FLOORS.len(), "the sources were not found");
    let longer = BTreeMap::from(LONGER);
    let mut seen = BTreeSet::new();
    for file in files {
        let name = file.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
        if is_test(&name) {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        let is_code = |line: &&&str| !line.trim().is_empty() && !line.trim().starts_with("//");
        let lines = lines_without_tests(&text).iter().filter(is_code).count();
        // In `control` a file is a controller, or a part of one.
        let limit = if name.starts_with("crates/control/") { CONTROLLER_LINES } else { FILE_LINES };
        match longer.get(name.as_str()) {
            None => {
                assert!(
                    lines <= limit,
                    "{name} has {lines} lines of code without its tests; {limit} is the limit"
                )
            }
            Some(was) => {
                assert!(lines > limit, "{name} has shrunk to {lines} lines: take it off the list");
                assert!(lines <= *was, "{name} grew from {was} to {lines} lines; it may only shrink");
            }
        }
        seen.insert(name);
    }
    for name in longer.keys() {
        assert!(seen.contains(*name), "{name} is on the list of long files and does not exist");
    }
}

#[test]
fn the_module_of_tests_is_no_code() {
    let text = "a\n#[cfg(test)]\nuse b;\nc\n#[cfg(test)]\n#[path = \"d\"]\nmod tests;\n";
    assert_eq!(lines_without_tests(text).len(), 4);
}

/// Figures that may only fall: code of the program without its tests, fields of a session, lines
/// and columns of the README.
const MAX_PROGRAM_LINES: usize = 8_440;
const MAX_CONNECTION_FIELDS: usize = 14;
const MAX_README_LINES: usize = 150;
const MAX_README_COLUMNS: usize = 120;

#[test]
fn what_has_shrunk_stays_small() {
    let root = root();
    let mut files = Vec::new();
    sources(&root.join("crates/byway-cli/src"), &mut files);
    let is_code = |line: &&str| !line.trim().is_empty() && !line.trim().starts_with("//");
    let code = |file: &PathBuf| {
        let text = fs::read_to_string(file).unwrap();
        lines_without_tests(&text).into_iter().filter(is_code).count()
    };
    let lines: usize = files.iter().filter(|file| !is_test(file.to_str().unwrap())).map(code).sum();
    assert!((1_000..=MAX_PROGRAM_LINES).contains(&lines), "the program has {lines} lines of code");
    let session = fs::read_to_string(root.join("crates/engine/src/connection/mod.rs")).unwrap();
    let (_, session) = session.split_once("pub struct Connection {").unwrap();
    let (fields, _) = session.split_once("\n}").unwrap();
    let is_field = |line: &&str| !line.trim().is_empty() && is_code(line);
    let fields = fields.lines().filter(is_field).count();
    assert!((5..=MAX_CONNECTION_FIELDS).contains(&fields), "a connection has {fields} fields");
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let lines = readme.lines().count();
    assert!(lines <= MAX_README_LINES, "the README has {lines} lines");
    let columns = readme.lines().map(|line| line.chars().count()).max().unwrap();
    assert!(columns <= MAX_README_COLUMNS, "a line of the README has {columns} columns");
}

/// The name of a constant of one word that a line defines, such as `MOST`.
fn one_word_constant(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let visible = line.strip_prefix("pub").map_or(line, |rest| match rest.split_once(") ") {
        Some((_, rest)) if line.starts_with("pub(") => rest,
        _ => rest.trim_start(),
    });
    let rest = ["const ", "static "].iter().find_map(|word| visible.strip_prefix(word))?;
    let (name, _) = rest.split_once(':')?;
    let is_constant = name.chars().all(|letter| letter.is_ascii_uppercase() || letter.is_ascii_digit());
    (is_constant && !name.is_empty()).then_some(name)
}

/// Whether the line at `at` stands in an `impl` or a trait: where a constant of it is used, its
/// type's name stands before it.
fn is_of_a_type(lines: &[&str], at: usize) -> bool {
    let depth = |line: &str| line.len() - line.trim_start().len();
    let is_around = |line: &&&str| !line.trim().is_empty() && depth(line) < depth(lines[at]);
    let around = lines[..at].iter().rev().find(is_around).map_or("", |line| line.trim_start());
    ["impl", "unsafe impl", "trait ", "pub trait ", "pub(crate) trait "]
        .iter()
        .any(|word| around.starts_with(word))
}

/// A name of one word says neither what is counted nor in which unit, and stands for something else
/// in the next file.
#[test]
fn a_constant_has_a_noun_and_its_kind() {
    let root = root();
    let mut found = Vec::new();
    for entry in fs::read_dir(root.join("crates")).unwrap() {
        let mut files = Vec::new();
        sources(&entry.unwrap().path().join("src"), &mut files);
        for file in files {
            let name = file.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
            let text = fs::read_to_string(&file).unwrap();
            let lines = if is_test(&name) { Vec::new() } else { lines_without_tests(&text) };
            for (at, line) in lines.iter().enumerate() {
                if let Some(constant) = one_word_constant(line).filter(|_| !is_of_a_type(&lines, at)) {
                    found.push(format!("{name}:{}: {constant}", at + 1));
                }
            }
        }
    }
    assert_eq!(found, [""; 0], "constants are called as in the field: MAX_RECORD_LEN, ACK_TIMEOUT");
}

#[test]
fn constants_of_one_word_are_found() {
    let lines = ["const MOST: usize = 1;", "pub(crate) const A1: u8 = 1;", "    static SEED: u8 = 1;"];
    assert_eq!(lines.map(one_word_constant), [Some("MOST"), Some("A1"), Some("SEED")]);
    for line in
        ["const MAX_LEN: usize = 1;", "pub const fn new(a: u8) {", "const _: () = ();", "let MOST = 1;"]
    {
        assert_eq!(one_word_constant(line), None, "{line}");
    }
    let text = ["impl Kind {", "    /// All.", "    pub const ALL: u8 = 1;", "}", "const ALL: u8 = 1;"];
    assert_eq!([2, 4].map(|at| is_of_a_type(&text, at)), [true, false]);
}

#[test]
fn crates_take_versions_and_lints_from_the_workspace() {
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let manifest = entry.unwrap().path().join("Cargo.toml");
        let text = fs::read_to_string(&manifest).unwrap();
        for line in ["rust-version.workspace = true", "license.workspace = true", "[lints]\nworkspace = true"]
        {
            assert!(text.contains(line), "{} lacks `{line}`", manifest.display());
        }
    }
}
