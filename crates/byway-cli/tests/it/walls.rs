//! Rules of the code that the compiler and Cargo cannot check. They say which crate may import
//! which, which crates must do without an operating system, and how long a file may get.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Who may import whom (normal and build dependencies; tests may climb).
const FLOORS: [(&str, &[&str]); 21] = [
    ("byway-wire", &[]),
    ("byway-control", &["byway-wire"]),
    ("byway-relay", &["byway-wire"]),
    ("byway-net", &["byway-wire"]),
    ("byway-sim", &["byway-wire", "byway-control"]),
    ("byway-engine", &["byway-wire", "byway-control"]),
    ("byway-files", &["byway-wire", "byway-engine"]),
    ("byway-forward", &["byway-wire", "byway-engine"]),
    ("byway-forward-host", &["byway-wire", "byway-net", "byway-engine", "byway-forward"]),
    ("byway-gateway", &["byway-wire", "byway-control", "byway-engine"]),
    ("byway-registry", &["byway-wire", "byway-control", "byway-engine"]),
    ("byway-registry-store", &["byway-wire", "byway-net", "byway-engine", "byway-registry"]),
    (
        "byway-lab",
        &[
            "byway-wire",
            "byway-control",
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
            "byway-control",
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
    ("byway-sources", &["byway-wire", "byway-control", "byway-net", "byway-engine", "byway-transfer"]),
    ("byway-emulate", &["byway-wire", "byway-net", "byway-sim"]),
    (
        "byway-field",
        &[
            "byway-wire",
            "byway-control",
            "byway-relay",
            "byway-net",
            "byway-sim",
            "byway-engine",
            "byway-files",
            "byway-gateway",
            "byway-transfer",
            "byway-lab",
            "byway-emulate",
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
            "byway-gateway",
            "byway-gateway-host",
            "byway-registry",
            "byway-registry-store",
            "byway-transfer",
            "byway-sources",
            "byway-lab",
            "byway-emulate",
            "byway-field",
        ],
    ),
];

/// Crates without clock, socket, thread and random hash order, because they do not have `std`.
const WITHOUT_STD: [&str; 6] = ["wire", "control", "relay", "engine", "gateway", "registry"];

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

/// Crates of the program without its features, itself and ours included.
const SMALL: usize = 70;

/// The crates whose public numbers must name their unit or kind.
const WITH_UNITS: [&str; 4] = ["wire", "engine", "transfer", "control"];

/// Words of which a number's doc comment has one: units, and kinds of numbers without a unit. A
/// plural counts as its word.
const UNITS: [&str; 41] = [
    "byte",
    "packet",
    "datagram",
    "segment",
    "bit", // sizes
    "second",
    "millisecond",
    "microsecond",
    "nanosecond",
    "ms",
    "µs",
    "minute",
    "hour",
    "day", // times
    "how many",
    "how often",
    "count",
    "number",
    "index",
    "position",
    "offset",
    "id",
    "port", // numbers
    "share",
    "percent",
    "%",
    "factor",
    "ratio",
    "per",
    "unit",
    "exponent",
    "logarithm", // proportions
    "hash",
    "checksum",
    "cookie",
    "mac",
    "seed",
    "code",
    "version",
    "mask",
    "identifier", // opaque values
];

/// Two counts for each crate: `impl` blocks outside the file of their type, and fields that are
/// `pub(super)` or `pub(crate)`. An unlisted crate has none. The test refuses a higher count; a
/// lower count must be written here.
const SPREAD: [(&str, usize, usize); 11] = [
    ("control", 5, 0),
    ("emulate", 0, 3),
    ("engine", 10, 1),
    ("field", 0, 28),
    ("files", 5, 0),
    ("lab", 6, 83),
    ("net", 1, 5),
    ("relay", 0, 18),
    ("sim", 15, 50),
    ("transfer", 3, 0),
    ("wire", 2, 2),
];

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

#[test]
fn a_small_build_has_few_crates() {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["tree", "--offline", "--package", "byway-cli", "--no-default-features", "--edges", "normal"]);
    cargo.args(["--prefix", "none", "--format", "{p}"]).current_dir(root());
    let output = cargo.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let crates: BTreeSet<&str> = text.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(crates.contains("byway-engine"), "{crates:?}");
    assert!(crates.len() <= SMALL, "{} crates, at most {SMALL}: {crates:?}", crates.len());
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

/// The name of the type that an `impl` line is for; `None` if the line is none.
fn implemented(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let mut rest = line.strip_prefix("unsafe ").unwrap_or(line).strip_prefix("impl")?;
    if let Some(generics) = rest.strip_prefix('<') {
        let (mut depth, mut before) = (1, ' ');
        let end = generics.find(|letter| {
            // The `>` of `->` and `=>` closes nothing.
            match letter {
                '<' => depth += 1,
                '>' if !matches!(before, '-' | '=') => depth -= 1,
                _ => {}
            }
            before = letter;
            depth == 0
        })?;
        rest = &generics[end + 1..];
    }
    let rest = rest.strip_prefix(' ')?;
    let of = rest.split_once(" for ").map_or(rest, |(_, of)| of).trim_start_matches('&');
    let path = of.split(|letter: char| !letter.is_alphanumeric() && !matches!(letter, '_' | ':')).next()?;
    path.rsplit("::").next()
}

/// The name of the type that a line defines.
fn defined(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let visible = line.strip_prefix("pub").map_or(line, |rest| match rest.split_once(") ") {
        Some((_, rest)) if line.starts_with("pub(") => rest,
        _ => rest.trim_start(),
    });
    let name = ["struct ", "enum ", "union "].iter().find_map(|word| visible.strip_prefix(word))?;
    name.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next()
}

/// Whether a line has a field that other files of its crate may reach into.
fn opens_a_field(line: &str) -> bool {
    let is_field = |rest: &str| {
        let name = rest.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next();
        name.is_some_and(|name| !name.is_empty() && rest[name.len()..].trim_start().starts_with(':'))
    };
    let open = ["pub(super) ", "pub(crate) "];
    let named = open.iter().any(|word| line.trim_start().strip_prefix(word).is_some_and(is_field));
    let in_tuple = open.iter().any(|word| {
        [format!("({word}"), format!(", {word}")].iter().any(|place| line.contains(place.as_str()))
    });
    named || (in_tuple && defined(line).is_some())
}

#[test]
fn types_do_not_spread_over_more_files() {
    let (root, allowed) = (root(), SPREAD.map(|(name, impls, fields)| (name, (impls, fields))));
    let allowed = BTreeMap::from(allowed);
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(root.join("crates")).unwrap() {
        let path = entry.unwrap().path();
        let mut files = Vec::new();
        sources(&path.join("src"), &mut files);
        files.retain(|file| !is_test(file.strip_prefix(&root).unwrap().to_str().unwrap()));
        let texts: Vec<String> = files.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
        let texts: Vec<Vec<&str>> = texts.iter().map(|text| lines_without_tests(text)).collect();
        let mut homes: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
        for (file, lines) in texts.iter().enumerate() {
            for name in lines.iter().filter_map(|line| defined(line)) {
                homes.entry(name).or_default().insert(file);
            }
        }
        let away = |file: usize, line: &str| {
            implemented(line).and_then(|name| homes.get(name)).is_some_and(|homes| !homes.contains(&file))
        };
        let (mut impls, mut fields) = (0, 0);
        for (file, lines) in texts.iter().enumerate() {
            impls += lines.iter().filter(|line| away(file, line)).count();
            fields += lines.iter().filter(|line| opens_a_field(line)).count();
        }
        if impls + fields > 0 {
            found.insert(path.file_name().unwrap().to_str().unwrap().to_owned(), (impls, fields));
        }
    }
    let table: String = found.iter().map(|(name, (a, b))| format!("    (\"{name}\", {a}, {b}),\n")).collect();
    let names: BTreeSet<&str> = found.keys().map(String::as_str).chain(allowed.keys().copied()).collect();
    for name in names {
        let (impls, fields) = found.get(name).copied().unwrap_or_default();
        let (most_impls, most_fields) = allowed.get(name).copied().unwrap_or_default();
        assert!(
            impls <= most_impls && fields <= most_fields,
            "{name} has {impls} `impl` blocks away from their type ({most_impls} before) and {fields} fields that are \
             open to other files ({most_fields} before): give the part its own state, or, if code moved here from \
             another crate, move the number with it:\n{table}"
        );
        assert!(
            impls == most_impls && fields == most_fields,
            "{name} has only {impls} `impl` blocks away from their type and {fields} open fields now: write that down, \
             so that it stays so:\n{table}"
        );
    }
}

#[test]
fn lines_are_read_as_they_are_meant() {
    let types =
        ["impl<T: Fn() -> u8> Display for Pair<T> {", "impl Pair {", "    impl a::Pair<'_> {", "fn f() {"];
    assert_eq!(types.map(implemented), [Some("Pair"), Some("Pair"), Some("Pair"), None]);
    let names = ["pub struct A<T> {", "pub(super) enum B {", "struct C;", "use D;"];
    assert_eq!(names.map(defined), [Some("A"), Some("B"), Some("C"), None]);
    let fields = [
        "    pub(super) a: u8,",
        "pub(crate) struct B(pub(crate) u8);",
        "pub(crate) fn c() {",
        "    pub d: u8,",
    ];
    assert_eq!(fields.map(opens_a_field), [true, true, false, false]);
    let text = "a\n#[cfg(test)]\nuse b;\nc\n#[cfg(test)]\n#[path = \"d\"]\nmod tests;\n";
    assert_eq!(lines_without_tests(text).len(), 4);
}

/// The return type of a public function, or the type of a public field or constant. The item begins
/// at `lines[0]`.
fn public_type(lines: &[&str]) -> Option<String> {
    let item = lines[0].trim().strip_prefix("pub ")?;
    if item.contains("fn ") {
        let end = lines.iter().position(|line| line.contains(['{', ';']))?;
        let signature = lines[..=end].iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ");
        let (_, returned) = signature.rsplit_once("-> ")?;
        return Some(returned.split([' ', '{', ';']).next()?.to_owned());
    }
    let (_, of) = item.strip_prefix("const ").unwrap_or(item).split_once(": ")?;
    Some(of.split([' ', ',', ';', '{']).next()?.to_owned())
}

fn is_number(of: &str) -> bool {
    let of = of.strip_prefix("Option<").map_or(of, |of| of.trim_end_matches('>'));
    ["u8", "u16", "u32", "u64", "usize", "f32", "f64"].contains(&of)
}

fn names_a_unit(comment: &str) -> bool {
    let comment = comment.to_lowercase();
    let words: Vec<&str> = comment.split(|letter: char| !letter.is_alphanumeric() && letter != '%').collect();
    let has = |unit: &str| words.iter().any(|word| *word == unit || word.strip_suffix('s') == Some(unit));
    UNITS.iter().any(|unit| if unit.contains(' ') { comment.contains(unit) } else { has(unit) })
}

#[test]
fn public_numbers_say_what_they_count() {
    let (root, mut silent, mut seen) = (root(), Vec::new(), 0);
    for name in WITH_UNITS {
        let mut files = Vec::new();
        sources(&root.join(format!("crates/{name}/src")), &mut files);
        files.retain(|file| !is_test(file.to_str().unwrap()));
        for file in files {
            let text = fs::read_to_string(&file).unwrap();
            let (mut comment, lines) = (String::new(), lines_without_tests(&text));
            for (at, line) in lines.iter().map(|line| line.trim()).enumerate() {
                if let Some(more) = line.strip_prefix("///") {
                    comment = comment + more + "\n";
                    continue;
                }
                if line.starts_with("#[") {
                    continue;
                }
                if public_type(&lines[at..]).is_some_and(|of| is_number(&of)) {
                    seen += 1;
                    if !names_a_unit(&comment) {
                        let place = file.strip_prefix(&root).unwrap().display();
                        silent.push(format!("{place}:{}: {line}", at + 1));
                    }
                }
                comment.clear();
            }
        }
    }
    assert!(seen > 500, "only {seen} public numbers were found");
    assert_eq!(silent, [""; 0], "a public number's comment names its unit or kind: {UNITS:?}");
}

#[test]
fn units_are_found_in_comments() {
    assert!(names_a_unit(" Bytes in flight.") && names_a_unit(" How many there are."));
    assert!(!names_a_unit(" The window.") && !names_a_unit(" The idle window's name."));
    let function = ["    pub const fn room(", "        &self,", "    ) -> Option<u64> {"];
    assert!(is_number(&public_type(&function).unwrap()));
    assert_eq!(public_type(&["    pub id: PathId,"]).as_deref(), Some("PathId"));
    assert_eq!(public_type(&["pub const MOST: usize = 16;"]).as_deref(), Some("usize"));
    assert_eq!(public_type(&["    private: u64,"]), None);
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
