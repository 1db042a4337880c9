//! No two files of a crate need each other, by whatever way: who reads one would have to know the
//! other. A module names those below it, and these name files with what both need.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A module, by its names from the crate's root.
type Module = Vec<String>;

/// The sources of a crate by module, without comments and tests.
fn modules(source: &Path) -> BTreeMap<Module, String> {
    let mut files = Vec::new();
    super::walls::sources(source, &mut files);
    let module = |file: PathBuf| {
        let names = file.strip_prefix(source).unwrap().with_extension("");
        let mut names: Module = names.iter().map(|name| name.to_str().unwrap().to_owned()).collect();
        if names.last().is_some_and(|last| last == "mod") {
            names.pop();
        }
        let text = fs::read_to_string(file).unwrap();
        (names, without_visibility(&without_tests(&text)))
    };
    files
        .into_iter()
        .map(module)
        .filter(|(names, _)| !["lib", "main", "tests"].contains(&names[names.len() - 1].as_str()))
        .collect()
}

/// The lines up to the tests, which may look wherever they like, without comments.
fn without_tests(text: &str) -> String {
    let lines = text.lines().take_while(|line| !(line.starts_with("#[cfg(") && line.contains("test")));
    lines.map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// The text without the paths in `pub(in PATH)`. They say who may look, and need nothing.
fn without_visibility(text: &str) -> String {
    let mut parts = text.split("pub(in ");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |before, part| before + "pub " + part.split_once(')').map_or("", |(_, after)| after))
}

/// The paths that a tree of `use` names: `a::{b, c::{d, e}}` are three.
fn paths(tree: &str) -> Vec<String> {
    let tree = tree.trim();
    let Some((head, rest)) = tree.split_once('{') else {
        return vec![tree.split(" as ").next().unwrap_or_default().trim().to_owned()];
    };
    let (mut depth, mut parts, mut part) = (0, Vec::new(), String::new());
    for c in rest.strip_suffix('}').unwrap_or(rest).chars() {
        depth += i32::from(c == '{') - i32::from(c == '}');
        if c == ',' && depth == 0 {
            parts.push(std::mem::take(&mut part));
        } else {
            part.push(c);
        }
    }
    parts.push(part);
    let parts = parts.iter().filter(|part| !part.trim().is_empty());
    parts.flat_map(|part| paths(part)).map(|path| format!("{}{path}", head.trim())).collect()
}

/// Every path in a text. These are those of `use`, and others that begin at the crate, above, or in
/// a module below.
fn named(text: &str) -> Vec<String> {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let mut found = Vec::new();
    for statement in text.split(';') {
        let used = statement.find("use ").filter(|at| !statement[..*at].ends_with(word));
        let (before, used) = statement.split_at(used.unwrap_or(statement.len()));
        let words = before.split(|c| !word(c) && c != ':');
        found.extend(words.filter(|word| word.contains("::")).map(str::to_owned));
        if let Some(tree) = used.strip_prefix("use ") {
            found.extend(paths(&tree.replace('\n', " ")));
        }
    }
    found
}

/// The modules that each module needs.
fn needs(modules: &BTreeMap<Module, String>) -> BTreeMap<&Module, BTreeSet<&Module>> {
    let of = |module: &Module, text: &str| {
        let resolve = |path: String| {
            let mut names: Vec<&str> = path.split("::").map(str::trim).collect();
            let mut here: Module = match *names.first()? {
                "crate" => Vec::new(),
                "super" | "self" => module.clone(),
                first => {
                    let below: Module = module.iter().cloned().chain([first.to_owned()]).collect();
                    modules.contains_key(&below).then(|| module.clone())?
                }
            };
            while let Some(first) = names.first().filter(|name| ["crate", "super", "self"].contains(name)) {
                if *first == "super" {
                    here.pop();
                }
                names.remove(0);
            }
            for name in names {
                let below: Module = here.iter().cloned().chain([name.to_owned()]).collect();
                if !modules.contains_key(&below) {
                    break;
                }
                here = below;
            }
            modules.get_key_value(&here).map(|(found, _)| found).filter(|found| *found != module)
        };
        named(text).into_iter().filter_map(resolve).collect()
    };
    modules.iter().map(|(module, text)| (module, of(module, text))).collect()
}

/// A way from a module back to itself.
fn circle<'a>(
    from: &'a Module,
    needs: &BTreeMap<&'a Module, BTreeSet<&'a Module>>,
) -> Option<Vec<&'a Module>> {
    let mut before: BTreeMap<&Module, &Module> = BTreeMap::new();
    let mut open = vec![from];
    while let Some(here) = open.pop() {
        for &next in &needs[here] {
            if next == from {
                let mut way = vec![from, here];
                while let Some(earlier) = before.get(way[way.len() - 1]) {
                    way.push(*earlier);
                }
                return Some(way);
            }
            if !before.contains_key(next) {
                before.insert(next, here);
                open.push(next);
            }
        }
    }
    None
}

#[test]
fn no_two_files_need_each_other() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    for entry in fs::read_dir(&crates).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let modules = modules(&crates.join(&name).join("src"));
        let needs = needs(&modules);
        let circles = modules.keys().filter_map(|module| circle(module, &needs));
        let path =
            |way: Vec<&Module>| way.iter().map(|module| module.join("::")).collect::<Vec<_>>().join(" <- ");
        found.extend(circles.map(|way| format!("{name}: {}", path(way))));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn a_circle_is_found() {
    let module = |name: &str| vec![name.to_owned()];
    let sources = [
        ("a", "use crate::{\n    b::{Thing, Other as O},\n    d,\n};"),
        ("b", "fn f() { super::c::g() }"),
        ("c", "use crate::a;"),
        ("d", "use std::fs;"),
    ];
    let modules = sources.map(|(name, text)| (module(name), text.to_owned())).into();
    let needs = needs(&modules);
    let found = circle(&module("a"), &needs).map(|way| way.len());
    assert_eq!((found, circle(&module("d"), &needs)), (Some(4), None));
    assert_eq!(without_visibility("pub(in crate::a) struct D; fn f() {}"), "pub  struct D; fn f() {}");
}
